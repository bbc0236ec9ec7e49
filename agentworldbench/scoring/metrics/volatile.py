"""Text that no model could know: clocks, ids, ports, and how it is masked before lines are compared.

A task names classes in order. A match becomes `<CLASS>`, but only where its text did not occur in
the sample's history or action: what was seen before is known. So a stale clock taken from the
history scores nothing and a fresh one is right, while a wrong date in a calendar stays wrong where
the task masks no dates. The patterns are narrow on purpose: a number that follows from the action
(a position in a file, a default port, a computed total) must not be masked, since any other would
then pass for it. All of them look back and ahead over a bounded number of characters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Final
from urllib.parse import unquote

_MONTHS = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAYS = "(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_NUMBER = r"\d+(?:\.\d+)?"
_EPHEMERAL = r"(?:3[2-9]\d{3}|[45]\d{4}|6[0-5]\d{3})\b"
"""Ports that the system hands out (32,768 up); those that a program or its user chooses are known."""

PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "uuid": re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE),
    # Shorter ones are constants and colours.
    "hex_address": re.compile(r"\b0x[0-9a-f]{8,16}\b", re.IGNORECASE),
    "container_id": re.compile(r"\b(?=\w{0,63}\d)(?=\w{0,63}[a-f])(?:[0-9a-f]{64}|[0-9a-f]{12})\b"),
    # The random part of a temporary name; /tmp/results.csv is a name like any other.
    "temp_path": re.compile(
        r"(?=[a-z])(?<=/tmp/)(?:tmp[\w.]{5,20}|cc\w{6}(?=\.)|pytest-of-[\w-]{1,30}/pytest-\d+|go-build\d+|[a-z][\w-]{0,30}-(?=\w*\d)(?=\w*[A-Za-z])\w{6,12})(?![\w-])"
        r"|(?=\d)(?<=console-)\d{4}-\d{2}-\d{2}T[\d-]+Z"
    ),
    "date": re.compile(
        r"(?=[\dA-Z])(?:\b\d{4}([-/])\d{2}\1\d{2}(?=T\d|\b)|\b\d{2}/[A-Z][a-z]{2}/\d{4}\b"
        rf"|\b(?:{_DAYS} )?{_MONTHS} {{1,2}}\d{{1,2}}\b(?:,? {{1,2}}\d{{4}}\b(?!:))?"
        rf"|\b(?:{_DAYS} )?\d{{1,2}} {_MONTHS}\b(?! {{1,2}}\d{{1,2}}\b)(?: \d{{4}}\b(?!:))?"
        # The year behind the time, as date and git print it.
        r"|\b(?:19|20)\d\d\b(?:(?<=:\d\d \d{4})|(?<=:\d\d [A-Z]{3} \d{4})))"
    ),
    # Not a place in a file (app.js:12:34), a slice ([12:34]) or a port mapping (80:80).
    "time": re.compile(
        rf"(?=\d)(?:(?<![\w:.\-])|(?<=[\d>]T)|(?<=[\d>]:)(?=\d\d:\d\d:))"
        rf"(?:(?:{_CLOCK}|\d:[0-5]\d):[0-5]\d(?:[.,]\d{{1,9}})?|\d{{1,2}}:[0-5]\d(?= ?[AaPp][Mm]\b)|(?<![\[{{]){_CLOCK}|{_CLOCK}(?=<\d))"
        r"(?: ?[AaPp][Mm]\b)?(?:Z\b|[+-]\d{2}:?\d{2}\b)?(?![\d:])"
    ),
    # Whole seconds are masked only where a timer prints them; elsewhere they are counts of something.
    "duration": re.compile(
        r"(?=\d)(?:\b\d+(?:\.\d+)? ?(?:ms|µs|us|ns)\b|\b(?:\d+m ?)?\d+\.\d+ ?(?:s|secs?|seconds?|minutes?)\b"
        r"|(?:(?<=\bin )|(?<=\btook ))(?:\d+m ?)?\d+ ?(?:s|secs?|seconds?|minutes?)\b)"
    ),
    "pid": re.compile(
        r"(?=\d)(?:(?<=\b[Pp]id )|(?<=\b[Pp]id=)|(?<=\b[Pp]id: )|(?<=\bPID )|(?<=\bPID=)|(?<=\bPID: )|(?<=\bprocess ))\d+\b"
        r"|(?<=^\[\d\] )\d+$|^ *\d+(?= (?:pts/\d|tty\w|\?) )",
        re.MULTILINE,
    ),
    "port": re.compile(
        rf"(?=[3-6])(?:(?<=localhost:)|(?<=127\.0\.0\.1:)|(?<=0\.0\.0\.0:)|(?<=\b[Pp]ort )|(?<=\b[Pp]ort: )){_EPHEMERAL}"
    ),
    "size": re.compile(rf"\b{_NUMBER}(?: ?[kKMGT]i?B\b|[KMGT](?![\w/]))(?!/s)"),
    "speed": re.compile(rf"\b{_NUMBER} ?(?:[kKMGT]?i?B/s(?:ec)?|it/s)\b"),
    "proxy_host": re.compile(r"(?:(?<=[?&;]proxy=)|(?<=%3Fproxy%3D)|(?<=%26proxy%3D))[\w.\-]+"),
    "status_clock": re.compile(
        r"(?=\d)(?:(?<=text=\")|(?<=desc=\"))\d{1,2}:\d{2}(?: [AP]M)?(?=\"[^\n]{0,200}systemui:id/clock)"
        rf"|(?<=\t)(?:{_DAYS} )?{_MONTHS} \d{{1,2}} {{1,2}}\d{{1,2}}\W{{1,2}}\d{{2}}(?: ?[AP]M)?(?=\t)"
    ),
}
"""One pattern for each class a task may name (`task.VolatileClass`)."""

_WORD = re.compile(r"\d+|[^\W\d]+")


class Seen:
    """Text that the model was shown; answers whether it holds another text as whole numbers and words."""

    def __init__(self, text: str) -> None:
        # A URL inside another URL's query is seen as well.
        self._text = f"{text}\n{unquote(text)}" if "%3D" in text else text
        self._answers: dict[str, bool] = {}

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = defaultdict(list)
        for word in _WORD.finditer(self._text):
            places[word.group()].append(word.start())
        return places

    def holds(self, text: str) -> bool:
        """Whether `text` stands in the seen text; 0.2s does not stand in 10.2s, nor 9:14 in 19:14."""
        if text not in self._answers:
            self._answers[text] = self._search(text)
        return self._answers[text]

    def _search(self, text: str) -> bool:
        # Looked for at the places of its rarest word: a log may hold thousands of times, all different.
        words = [(self._places.get(word.group(), []), word.start()) for word in _WORD.finditer(text)]
        if not words:
            return text in self._text
        places, offset = min(words, key=lambda word: len(word[0]))
        return any(self._stands_at(place - offset, text) for place in places)

    def _stands_at(self, start: int, text: str) -> bool:
        if start < 0 or not self._text.startswith(text, start):
            return False
        end = start + len(text)
        return not _glued(self._text[max(start - 1, 0) : start], text[0]) and not _glued(
            text[-1], self._text[end : end + 1]
        )


def _glued(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one number or one word."""
    return len(left) == len(right) == 1 and _WORD.fullmatch(left + right) is not None


def mask(text: str, classes: Sequence[str], seen: Seen) -> str:
    """`text` with every volatile match of `classes`, in order, replaced unless `seen` holds it.

    A text that holds such a label itself (`kill <PID>`) keeps it apart from a masked one.
    """
    for name in classes:
        label = f"<{name.upper()}>"
        text = PATTERNS[name].sub(partial(_masked, label, seen), text.replace(label, label[:-1] + " >"))
    return text


def _masked(label: str, seen: Seen, match: re.Match[str]) -> str:
    found = match.group()
    return found if seen.holds(found) else label
