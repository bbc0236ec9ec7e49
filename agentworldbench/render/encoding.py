"""Text for terminals and files whose encoding lacks characters: each is spelled in what it has.

In: text, the name of an encoding. Out: text that can be written in it, in which no two things look alike: `±`
becomes `+-`, a line of boxes hyphens, and a letter of a name its number (`\\u6a21`), where `?` would make two names one.
`register` lets streams do the same with whatever else is written to them.
"""

from __future__ import annotations

import codecs
from typing import Final

ERRORS: Final = "spelled"
"""Name of the error handler, for `open` and `reconfigure`, once registered."""
_SPELLED: Final = {
    "±": "+-", "−": "-", "–": "-", "—": "--", "…": "...", "·": "|", "×": "x", "≤": "<=", "≥": ">=", "→": "->",
    "─": "-", "│": "|", "█": "#", "░": ".", "◀": "<", "✓": "ok", "‘": "'", "’": "'", "“": '"', "”": '"',
    "\N{REPLACEMENT CHARACTER}": "?", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip
"""What stands in our own words and tables; dashes for a missing number stay one column wide, as lines do."""


def register() -> None:
    """Make the error handler known to codecs; doing so again changes nothing."""
    codecs.register_error(ERRORS, _spelled)


def _spelled(problem: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    lacking = problem.object[problem.start : problem.end]
    return "".join(_SPELLED.get(char) or ascii(char)[1:-1] for char in lacking), problem.end


def in_encoding(text: str, encoding: str | None) -> str:
    """`text` as a stream of this encoding shows it; None stands for one that has every character."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        register()
        return text.encode(encoding or "utf-8", ERRORS).decode(encoding or "utf-8")
    return text
