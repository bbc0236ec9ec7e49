"""A reply in its parts: reasoning, tagged answers, and the text outside of both.

In: the text of a model or a judge and the tag of its answers. Out: `Parts`, positions in the text; what
they mean (an observation, a verdict, a failure) is decided elsewhere. The text is read once from left
to right, by the table in `markers.py`. What is reasoning holds no answer, and what is an answer holds
no reasoning: an observation may show any marker, as a file does that names `<think>`. Work is linear in
the length of the text, whatever stands in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agentworldbench.markers import FIRST_CHARACTERS, REASONING

_OPENER, _CLOSER, _START, _END = "opener", "closer", "start", "end"


@lru_cache(maxsize=32)
def _pattern(tag: str) -> re.Pattern[str]:
    """All markers of the table, each under a group that tells its row and kind; and the tags of `tag`."""
    rows = [f"(?P<opener{n}>{row.opener})|(?P<closer{n}>{row.closer})" for n, row in enumerate(REASONING)]
    tags = f"(?i:(?P<start><{re.escape(tag)}>)|(?P<end></{re.escape(tag)}>))"
    first = re.escape(FIRST_CHARACTERS)
    return re.compile(f"(?=[{first}][^{first}])(?:{'|'.join((tags, *rows))})")


_KINDS: Final = re.compile(r"([a-z]+)(\d*)")


@dataclass(frozen=True)
class _Marker:
    kind: str
    row: int
    start: int
    end: int
    damaged: bool


@dataclass(frozen=True)
class Thought:
    """A span of reasoning from its opener to behind its closer; what was thought is `text[first:last]`."""

    start: int
    first: int
    last: int
    end: int


@dataclass(frozen=True)
class Answer:
    """A tagged answer outside of the reasoning: its content is `text[first:last]`.

    `opens`: its start tag begins the text, follows the reasoning or stands alone on a line, so it
    is no mention in a sentence. `segment` counts what reasoning ended before it. `blank`: nothing
    inside but white space and dots. `verbatim`: markers or tags inside were kept as text.
    """

    start: int
    first: int
    last: int
    closed: bool
    opens: bool
    segment: int
    blank: bool
    verbatim: bool


@dataclass(frozen=True)
class Parts:
    """What a reply consists of, as positions in `text`.

    `closers` are closing markers that no opener stands before. `open`: the last reasoning has no
    end. `doubtful`: some has one, but fewer closers than openers, or a closer of another family,
    so it may go on.
    """

    text: str
    thoughts: tuple[Thought, ...]
    closers: tuple[tuple[int, int], ...]
    answers: tuple[Answer, ...]
    open: bool
    doubtful: bool

    def begin(self, apart: bool) -> int:
        """Where the reply begins: behind the last closer without opener, for its opener stood in the prompt.

        A closer behind the last answer is stray: nothing is an answer any more behind it. All
        closers are when the server has returned the reasoning `apart`.
        """
        if apart:
            return 0
        last = self.closers[-1] if self.closers else (0, 0)
        standing = [one.start for one in self.answers if one.closed and not one.blank]
        if standing and not any(one.opens and one.start > last[0] for one in self.answers):
            return max((end for start, end in self.closers if start < standing[-1]), default=0)
        return last[1]

    def outside(self, first: int) -> str:
        """The text from `first` on without reasoning and without closers that have no opener."""
        kept: list[str] = []
        spans = [(one.start, one.end) for one in self.thoughts]
        for start, end in sorted((*spans, *self.closers)):
            if start >= first:
                kept.append(self.text[first:start])
                first = end
        kept.append(self.text[first:])
        return "".join(kept)

    def before(self, begin: int) -> str:
        """What was thought before `begin`, which a closer without opener ended."""
        ended = next((start for start, end in self.closers if end == begin), 0)
        return self.text[:ended].strip()

    def behind(self, begin: int) -> str:
        """What the spans of reasoning behind `begin` hold, without their own markers."""
        spans = (self.text[one.first : one.last].strip() for one in self.thoughts if one.start >= begin)
        return "\n".join(span for span in spans if span)


def parts_of(text: str, tag: str) -> Parts:
    """The parts of a reply whose answers stand in `tag`."""
    return _Reader(text, tag).read()


class _Reader:
    """One pass over the markers of a text; the tables made before it keep every step short."""

    def __init__(self, text: str, tag: str) -> None:
        self._text = text
        self._markers = [_marker(match) for match in _pattern(tag).finditer(text)]
        kinds = [marker.kind for marker in self._markers]
        self._starts = [n for n, kind in enumerate(kinds) if kind == _START]
        self._ends = [n for n, kind in enumerate(kinds) if kind == _END]
        self._reasoning = [n for n, kind in enumerate(kinds) if kind in (_OPENER, _CLOSER)]
        self._closers: dict[int | None, list[int]] = {None: []}
        self._partner = self._partners()
        self._thoughts: list[Thought] = []
        self._orphans: list[tuple[int, int]] = []
        self._answers: list[Answer] = []
        self._unclosed: list[tuple[int, bool, int]] = []
        self._doubtful = False

    def read(self) -> Parts:
        at = done = 0
        leading = True  # nothing but white space since the text began or the reasoning ended
        is_open = False
        while at < len(self._markers):
            marker = self._markers[at]
            leading = leading and not self._text[done : marker.start].strip()
            after = at
            if marker.kind == _OPENER:
                closer = self._closer(at)
                if closer is not None:
                    ended = self._markers[closer]
                    self._thoughts.append(Thought(marker.start, marker.end, ended.start, ended.end))
                    after, leading = closer, True
                elif not marker.damaged:
                    self._thoughts.append(Thought(marker.start, marker.end, *[len(self._text)] * 2))
                    is_open = True
                    break
                else:
                    leading = False
            elif marker.kind == _CLOSER:
                self._orphans.append((marker.start, marker.end))
                leading = True
            elif marker.kind == _START:
                after, leading = self._answer(at, leading), False
            done = self._markers[after].end
            at = after + 1
        # Of start tags that nothing closes the last one counts, and before it the last that is no mention.
        kept = {*self._unclosed[-1:], *[one for one in self._unclosed if one[1]][-1:]}
        for begun, opens, segment in sorted(kept):
            self._note(begun, None, opens, segment)
        return Parts(
            text=self._text,
            thoughts=tuple(self._thoughts),
            closers=tuple(self._orphans),
            answers=tuple(self._answers),
            open=is_open,
            doubtful=self._doubtful,
        )

    def _partners(self) -> dict[int, int]:
        """Opening marker to the closing one that balances it, within a row of the table and for the tags."""
        partner: dict[int, int] = {}
        stacks: dict[int, list[int]] = {}
        for n, marker in enumerate(self._markers):
            stack = stacks.setdefault(marker.row, [])
            if marker.kind in (_OPENER, _START):
                if not (marker.damaged and stack):  # a mention such as `the <think tag`
                    stack.append(n)
                continue
            if stack:
                partner[stack.pop()] = n
            if marker.kind == _CLOSER:
                self._closers[None].append(n)
                self._closers.setdefault(marker.row, []).append(n)
        return partner

    def _closer(self, opener: int) -> int | None:
        """The marker that ends the reasoning begun at `opener`, or None."""
        row = self._markers[opener].row
        if REASONING[row].nests and opener in self._partner:
            return self._partner[opener]
        closer = _next(self._closers.get(row, ()), opener)
        if closer is not None:
            # An opener named inside the reasoning: the first closer is the real one.
            self._doubtful = self._doubtful or REASONING[row].nests
        elif not self._markers[opener].damaged:
            closer = _next(self._closers[None], opener)
            self._doubtful = self._doubtful or closer is not None
        return closer

    def _answer(self, at: int, leading: bool) -> int:
        """Note the answer that a start tag begins, if it does. Returns the last marker that belongs to it."""
        start = self._markers[at]
        segment = len(self._thoughts) + len(self._orphans)
        opens = leading or self._alone(start)
        end = _next(self._ends, at)
        if end is None:
            self._unclosed.append((at, opens, segment))
            return at
        inner = _next(self._starts, at)
        if inner is not None and inner < end:
            if not opens:
                return at  # named in a sentence; the answer comes later
            if not leading and self._reasoning_then_start(at, end):
                return at  # begun in reasoning whose opener is missing, and begun again behind it
            end = self._partner.get(at, end)
        self._note(at, end, opens, segment)
        return end

    def _reasoning_then_start(self, at: int, end: int) -> bool:
        marker = _next(self._reasoning, at)
        again = None if marker is None else _next(self._starts, marker)
        return again is not None and again < end

    def _note(self, at: int, end: int | None, opens: bool, segment: int) -> None:
        """Add the answer between two markers; tags that were doubled, with nothing between, count once."""
        begun = self._markers[at].start
        while end is not None and self._partner.get(at) == end and self._partner.get(at + 1) == end - 1:
            outer, inner, last, behind = (self._markers[n] for n in (at, at + 1, end - 1, end))
            between = self._text[outer.end : inner.start] + self._text[last.end : behind.start]
            if inner.kind != _START or between.strip():
                break
            at, end = at + 1, end - 1
        first = self._markers[at].end
        last_char = len(self._text) if end is None else self._markers[end].start
        self._answers.append(
            Answer(
                start=begun,
                first=first,
                last=last_char,
                closed=end is not None,
                opens=opens,
                segment=segment,
                blank=not self._text[first:last_char].strip(" \t\r\n.…"),
                verbatim=end is not None and end - at > 1,
            )
        )

    def _alone(self, marker: _Marker) -> bool:
        """Whether nothing else stands on the marker's line (within eighty characters)."""
        before = self._text[max(0, marker.start - 80) : marker.start].rpartition("\n")
        after = self._text[marker.end : marker.end + 80].partition("\n")
        return bool(before[1]) and not before[2].strip() and bool(after[1]) and not after[0].strip()


def _marker(match: re.Match[str]) -> _Marker:
    found = _KINDS.fullmatch(match.lastgroup or "")
    assert found is not None, "every alternative of the pattern is a named group"
    kind, row = found.groups()
    return _Marker(
        kind=kind,
        row=int(row) if row else -1,
        start=match.start(),
        end=match.end(),
        damaged=kind == _OPENER and match.group().startswith("<") and not set("|>") & set(match.group()),
    )


def _next(positions: Sequence[int], after: int) -> int | None:
    """The first of the ascending `positions` that is greater than `after`."""
    found = bisect_right(positions, after)
    return positions[found] if found < len(positions) else None
