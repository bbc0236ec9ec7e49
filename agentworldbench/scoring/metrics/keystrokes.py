"""What an action types into a terminal: the lines that a screen can echo.

In: the action's text, a JSON array of keystroke strings, with or without its fence. A string is typed
as it stands, unless it is the name of a key (`Enter`, `C-c`). Objects with a `keystrokes` field and
plain text are read too. Out: the typed lines, and what was typed last without a line end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_KEYS: Final = {
    "Enter": "\n", "C-m": "\n", "C-j": "\n", "KPEnter": "\n", "Space": " ",
    "C-c": "\x03", "C-d": "\x04", "C-z": "\x1a", "C-\\": "\x1c",
}  # fmt: skip
_NAMED = re.compile(
    r"(?:[CMS]-){1,3}(?:\S|[A-Z][A-Za-z]+)|Escape|Tab|BTab|BSpace|Up|Down|Left|Right|Home|End|PageUp|PageDown"
    r"|PgUp|PgDn|PPage|NPage|IC|DC|F\d{1,2}"
)
_FIELDS: Final = ("keystrokes", "keys", "command", "input", "text")
_CONTROL: Final = {"\x03": "^C", "\x04": "^D", "\x1a": "^Z", "\x1c": "^\\"}
_ENDS = re.compile(r"([\r\n\x03\x04\x1a\x1c])")


@dataclass(frozen=True)
class Typed:
    """Typed lines and control keys (`^C`), blanks at both ends cut; `pending` is the last when it was not sent off."""

    lines: tuple[str, ...] = ()
    pending: str = ""


def typed(action: str) -> Typed:
    """The lines that an action types, in order."""
    lines: list[str] = []
    open_line = own = ""
    for piece in _pieces(action):
        own = ""
        for part in _ENDS.split(piece):
            if not _ENDS.fullmatch(part):
                open_line, own = open_line + part, own + part
                continue
            # A key for a pager is no part of the line typed behind it.
            lines += [open_line, own] if own != open_line else [open_line]
            lines.append(_CONTROL.get(part, ""))
            open_line = own = ""
    lines.append(open_line)
    return Typed(tuple(text for line in lines if (text := line.strip())), open_line.strip())


def _pieces(action: str) -> Iterator[str]:
    try:
        read = json.loads(action[action.index("[") : action.rindex("]") + 1])
    except (ValueError, RecursionError):
        yield _unfenced(action)
        return
    for piece in _strings(read):
        yield _KEYS.get(piece, "" if _NAMED.fullmatch(piece) else piece)


def _strings(read: Any) -> Iterator[str]:
    for item in read if isinstance(read, list) else []:
        if isinstance(item, dict):
            item = next((item[field] for field in _FIELDS if field in item), None)
        if isinstance(item, str):
            yield item


def _unfenced(action: str) -> str:
    lines = [line for line in action.split("\n") if not line.startswith("```")]
    return "\n".join(lines) + "\n"
