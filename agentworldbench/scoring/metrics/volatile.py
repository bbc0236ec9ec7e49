"""Text that no model could know: clocks, ids, ports, and how it is masked before lines are compared.

A task names classes in order. A match becomes `<CLASS>`, but only where its text did not occur in
the sample's history or action: what was seen before is known. So a stale clock taken from the
history scores nothing and a fresh one is right, while a wrong date in a calendar stays wrong where
the task masks no dates. The patterns are narrow on purpose: a number that follows from the action
(a position in a file, a default port, a computed total) must not be masked, since any other would
then pass for it. All of them look back and ahead over a bounded number of characters.

A pattern begins with the set of characters that its matches begin with, and what stands before that
character is looked at behind it (`\\d(?<!\\w\\d)` is `\\b\\d`): only a set in front is searched fast, and a
mask is laid over every text that is scored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Final
from urllib.parse import unquote


def _after_first(words: Sequence[str]) -> str:
    """The pattern of what follows the first letter of one of these words."""
    return "(?:" + "|".join(f"(?<={word[0]}){word[1:]}" for word in words) + ")"


_MONTHS = (
    "Jan(?:uary)?", "Feb(?:ruary)?", "Mar(?:ch)?", "Apr(?:il)?", "May", "June?", "July?",
    "Aug(?:ust)?", "Sept?(?:ember)?", "Oct(?:ober)?", "Nov(?:ember)?", "Dec(?:ember)?",
)  # fmt: skip
_DAYS = ("Mon", "Tues?", "Wed(?:nes)?", "Thu(?:rs)?", "Fri", "Sat(?:ur)?", "Sun")
_MONTH = f"(?:{'|'.join(_MONTHS)})"
_DAY = f"{_after_first(_DAYS)}(?:day)?,? "
_DAY_AND_MONTH = f"(?:{_DAY}{_MONTH}|{_after_first(_MONTHS)})"
_DATE_START = r"[\dA-Z](?<!\w[\dA-Z])"
_DATE = (
    r"(?:(?<=\d)\d{3}([-/])\d{2}\1\d{2}(?=T\d|\b)|(?<=\d)\d/[A-Z][a-z]{2}/\d{4}\b"
    rf"|(?<=[A-Z]){_DAY_AND_MONTH} {{1,2}}\d{{1,2}}\b(?:,? {{1,2}}\d{{4}}\b(?!:))?"
    rf"|(?:(?<=\d)\d?|(?<=[A-Z]){_DAY}\d{{1,2}}) {_MONTH}\b(?! {{1,2}}\d{{1,2}}\b)(?: \d{{4}}\b(?!:))?)"
)
_LATE_YEAR = r"(?:(?<=1)9|(?<=2)0)\d\d\b(?:(?<=:\d\d \d{4})|(?<=:\d\d [A-Z]{3} \d{4}))"
"""The year behind the time, as date and git print it."""
_CLOCK = r"(?:(?<=[01])\d|(?<=2)[0-3]):[0-5]\d"
_NUMBER = r"\d(?<!\w\d)\d*(?:\.\d+)?"
_SECONDS = r"(?:\d*m ?\d+|\d*)"
_EPHEMERAL = r"(?:(?<=3)[2-9]\d{3}|(?<=[45])\d{4}|(?<=6)[0-5]\d{3})\b"
"""Ports that the system hands out (32,768 up); those that a program or its user chooses are known."""

PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "uuid": re.compile(
        r"[0-9a-fA-F](?<!\w[0-9a-fA-F])[0-9a-fA-F]{7}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
    ),
    # Shorter ones are constants and colours.
    "hex_address": re.compile(r"0(?<!\w0)[xX][0-9a-fA-F]{8,16}\b"),
    # All digits are a number, all letters a word.
    "container_id": re.compile(
        r"[0-9a-f](?<!\w[0-9a-f])"
        r"(?:[0-9a-f]{63}\b(?<!\d{64})(?<![a-f]{64})|[0-9a-f]{11}\b(?<!\d{12})(?<![a-f]{12}))"
    ),
    # The random part of a temporary name; /tmp/results.csv is a name like any other.
    "temp_path": re.compile(
        r"(?=[a-z])(?<=/tmp/)(?:tmp[\w.]{5,20}|cc\w{6}(?=\.)|pytest-of-[\w-]{1,30}/pytest-\d+|go-build\d+|[a-z][\w-]{0,30}-(?=\w*\d)(?=\w*[A-Za-z])\w{6,12})(?![\w-])"
        r"|(?=\d)(?:(?<=console-)|(?<=page-))\d{4}-\d{2}-\d{2}T[\d-]+Z"
    ),
    "date": re.compile(rf"{_DATE_START}(?:{_DATE}|{_LATE_YEAR})"),
    # The date of a time stamp; a date alone may be an answer.
    "stamp_date": re.compile(rf"{_DATE_START}(?:{_DATE}(?=(?:T|,? {{1,2}})\d{{1,2}}:\d\d)|{_LATE_YEAR})"),
    # Commits and blobs: whole anywhere, short where git prints them.
    "git_hash": re.compile(
        r"[\da-f](?<!\w[\da-f])(?:(?<=\d)(?=\d{0,39}[a-f])|(?<=[a-f])(?=[a-f]{0,39}\d))"
        r"(?:[\da-f]{39}\b|(?:(?<=^index [\da-f])|(?<=\.\.[\da-f]))[\da-f]{6,11}(?=\.\.[\da-f]{7}|(?: \d{6})?$)"
        r"|[\da-f]{6,11}(?=\] )|(?<=^[\da-f])[\da-f]{6,11}(?= \S))",
        re.MULTILINE,
    ),
    # Not a place in a file (app.js:12:34), a slice ([12:34]) or a port mapping (80:80).
    "time": re.compile(
        r"\d(?:(?<![\w:.\-]\d)|(?<=[\d>]T\d)|(?<=[\d>]:\d)(?=\d:\d\d:))"
        rf"(?:(?:{_CLOCK}|:[0-5]\d):[0-5]\d(?:[.,]\d{{1,9}})?|\d?:[0-5]\d(?= ?[AaPp][Mm]\b)|(?<![\[{{]\d){_CLOCK}|{_CLOCK}(?=<\d))"
        r"(?: ?[AaPp][Mm]\b)?(?:Z\b|[+-]\d{2}:?\d{2}\b)?(?![\d:])"
    ),
    # Whole seconds are masked only where a timer prints them; elsewhere they are counts of something.
    "duration": re.compile(
        r"\d(?<!\w\d)(?:\d*(?:\.\d+)? ?(?:ms|µs|us|ns)\b"
        rf"|{_SECONDS}\.\d+ ?(?:s|secs?|seconds?|minutes?)\b"
        rf"|(?:(?<=\bin \d)|(?<=\btook \d)){_SECONDS} ?(?:s|secs?|seconds?|minutes?)\b)"
    ),
    "pid": re.compile(
        r"[\d ](?:(?<=[ =]\d)(?:(?:(?<=\b[Pp]id \d)|(?<=\b[Pp]id=\d)|(?<=\b[Pp]id: \d)|(?<=\bPID \d)|(?<=\bPID=\d)|(?<=\bPID: \d)"
        r"|(?<=\bPIDs: \d)|(?<=\bPGID: \d)|(?<=\bprocess \d))\d*\b|(?<=^\[\d\] \d)\d*$)"
        r"|(?<=^[\d ])(?:(?<=\d)\d*|(?<= ) *\d+)(?= (?:pts/\d|tty\w|\?) ))",
        re.MULTILINE,
    ),
    "port": re.compile(
        r"[3-6](?:(?<=localhost:[3-6])|(?<=127\.0\.0\.1:[3-6])|(?<=0\.0\.0\.0:[3-6])|(?<=\b[Pp]ort [3-6])|(?<=\b[Pp]ort: [3-6]))"
        rf"{_EPHEMERAL}"
    ),
    "size": re.compile(rf"{_NUMBER}(?: ?[kKMGT]i?B\b|[KMGT](?![\w/]))(?!/s)"),
    "speed": re.compile(rf"{_NUMBER} ?(?:[kKMGT]?i?B/s(?:ec)?|it/s)\b"),
    "proxy_host": re.compile(r"(?:(?<=[?&;]proxy=)|(?<=%3Fproxy%3D)|(?<=%26proxy%3D))[\w.\-]+"),
    "status_clock": re.compile(
        r"[\dA-Z](?:(?:(?<=text=\"\d)|(?<=desc=\"\d))\d?:\d{2}(?: [AP]M)?(?=\"[^\n]{0,200}systemui:id/clock)"
        r"|(?:(?<=systemui:id/clock\" text=\"\d)|(?<=systemui:id/clock\", \"\d))\d?:\d{2}(?: [AP]M)?(?=\")"
        rf"|(?<=\t[A-Z]){_DAY_AND_MONTH} \d{{1,2}} {{1,2}}\d{{1,2}}\W{{1,2}}\d{{2}}(?: ?[AP]M)?(?=\t))"
    ),
    # How often a browser's call log says that it tried; `2 × 3.20 EUR` on a page is content.
    "retry_count": re.compile(r"\d(?<![^\n ]\d)\d{0,5} ×(?= (?:waiting|locator|retrying|unexpected) )"),
}
"""One pattern for each class a task may name (`task.VolatileClass`)."""

_NEEDED: Final = {
    "hex_address": ("0x", "0X"),
    "temp_path": ("/tmp/", "console-", "page-"),
    "duration": ("s", "minute"),
    "pid": ("pid", "Pid", "PID", "PGID", "process ", "] ", " pts/", " tty", " ? "),
    "port": ("localhost:", "127.0.0.1:", "0.0.0.0:", "ort ", "ort: "),
    "size": ("B", "K", "M", "G", "T"),
    "speed": ("B/s", "it/s"),
    "proxy_host": ("proxy",),
    "retry_count": (" ×",),
}
"""Texts of which one stands in every match or beside it: without them there is nothing to search for."""

_WORD = re.compile(r"\d+|[^\W\d]+")
_NUMBERS = re.compile(r"\d\d*")
_LETTERS = re.compile(r"[^\W\d]+")
_PLAIN_SEARCHES: Final = 25
_PLAIN_WORDS: Final = 200
"""So many texts are looked for as they are; for more of them an index of numbers, then of words is worth its price."""
_PLAIN_PLACES: Final = 20
"""At so many places is a text found that is glued to a longer one there; then the index is asked."""
_FEW_PLACES: Final = 100
"""A number that stands at no more places is rare enough; else words are asked too."""
_ESCAPED_BREAKS = (r"\n", r"\r", r"\t")


class Seen:
    """Text that the model was shown; answers whether it holds another text as whole numbers and words."""

    def __init__(self, text: str) -> None:
        self._shown = text
        self._answers: dict[str, bool] = {}

    @cached_property
    def _text(self) -> str:
        text = self._shown
        # In JSON the letter of a line break would be glued to the word behind it: `\\nJan 5`.
        for escaped in _ESCAPED_BREAKS:
            text = text.replace(escaped, "\n")
        # A URL inside another URL's query is seen as well.
        return f"{text}\n{unquote(text)}" if "%3D" in text else text

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        return _places(_NUMBERS, self._text)

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        return _places(_LETTERS, self._text)

    def holds(self, text: str) -> bool:
        """Whether `text` stands in the seen text; 0.2s does not stand in 10.2s, nor 9:14 in 19:14."""
        if text not in self._answers:
            self._answers[text] = self._search(text)
        return self._answers[text]

    def _search(self, text: str) -> bool:
        found = self._plain_search(text) if len(self._answers) < _PLAIN_SEARCHES else None
        return self._indexed_search(text) if found is None else found

    def _plain_search(self, text: str) -> bool | None:
        """The answer, or None where the text is found too often as a part of longer ones."""
        start = -1
        for _ in range(_PLAIN_PLACES):
            start = self._text.find(text, start + 1)
            if start < 0 or self._stands_at(start, text):
                return start >= 0
        return None

    def _indexed_search(self, text: str) -> bool:
        # At the places of its rarest part: a log may hold thousands of times, all different. Numbers first, for
        # there are fewer of them than words, and nearly all volatile texts have one.
        rarest, offset = _rarest(text, _NUMBERS, self._numbers)
        if (rarest is None or len(rarest) > _FEW_PLACES) and _LETTERS.search(text):
            found = self._plain_search(text) if len(self._answers) < _PLAIN_WORDS else None
            if found is not None:
                return found
            places, place = _rarest(text, _LETTERS, self._words)
            if places is not None and (rarest is None or len(places) < len(rarest)):
                rarest, offset = places, place
        if rarest is None:
            return text in self._text
        return any(self._stands_at(place - offset, text) for place in rarest)

    def _stands_at(self, start: int, text: str) -> bool:
        if start < 0 or not self._text.startswith(text, start):
            return False
        end = start + len(text)
        return not _glued(self._text[max(start - 1, 0) : start], text[0]) and not _glued(
            text[-1], self._text[end : end + 1]
        )


def _places(part: re.Pattern[str], text: str) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for match in part.finditer(text):
        places[match.group()].append(match.start())
    return places


def _rarest(text: str, part: re.Pattern[str], index: dict[str, list[int]]) -> tuple[list[int] | None, int]:
    """The places of the part of a text that has the fewest, and where it stands in the text; None without parts."""
    rarest: list[int] | None = None
    offset = 0
    for match in part.finditer(text):
        places = index.get(match.group(), [])
        if rarest is None or len(places) < len(rarest):
            rarest, offset = places, match.start()
    return rarest, offset


def _glued(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one number or one word."""
    return len(left) == len(right) == 1 and _WORD.fullmatch(left + right) is not None


def mask(text: str, classes: Sequence[str], seen: Seen) -> str:
    """`text` with every volatile match of `classes`, in order, replaced unless `seen` holds it.

    A text that holds such a label itself (`kill <PID>`) keeps it apart from a masked one.
    """
    for name in classes:
        label = f"<{name.upper()}>"
        text = text.replace(label, label[:-1] + " >")
        if name not in _NEEDED or any(needed in text for needed in _NEEDED[name]):
            text = PATTERNS[name].sub(partial(_masked, label, seen), text)
    return text


def _masked(label: str, seen: Seen, match: re.Match[str]) -> str:
    found = match.group()
    return found if seen.holds(found) else label
