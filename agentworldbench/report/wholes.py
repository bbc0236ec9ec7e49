"""Texts that a page cannot hold whole: the page shows the beginning and names a file with all of it.

In: a text, and how many bytes of HTML the page has for it. Out: the `Text` that is shown, and the files of the page: plain
text, which no browser runs, with control and bidirectional characters made visible as on the page.
"""

from __future__ import annotations

import json
from typing import Final

from agentworldbench.render.diff import beginning, visible
from agentworldbench.report.contents import File, Text

TEXTS: Final = "texts"
"""The folder of these files in a report."""
_UTF_8: Final = "\ufeff"
"""By this mark browsers know the encoding of a text that comes from a disk."""


class Wholes:
    """The files of one page, by name."""

    def __init__(self, page: str) -> None:
        self._page = page
        self.files: dict[str, str] = {}

    def file(self, text: str, what: str) -> File:
        """Keep a text as a file of its own; `what` is the part of its name that says which text of the page it is."""
        name = f"{self._page}.{what}.txt"
        self.files[name] = _UTF_8 + visible(text)
        return File(name, len(self.files[name].encode("utf-8", "replace")))

    def cut(self, text: str, most: int, what: str) -> Text:
        """As much of a text as takes `most` bytes of HTML, and the file of the whole where that is not all."""
        kept, left = beginning(text, most)
        return Text(
            kept,
            left,
            json=not left and _is_json(text),
            ansi="\x1b[" in kept or "␛[" in kept,
            file=self.file(text, what) if left else None,
        )


def _is_json(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False
