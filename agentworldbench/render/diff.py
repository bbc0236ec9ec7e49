"""A prediction against what really came, line by line and word by word, as rows for a page.

In: two texts. Out: a `Difference`. Lines are aligned by their longest common subsequence, lines between that resemble
each other are put side by side, and words that differ in them are marked. Both texts are made visible first (control
characters as pictures) and cut to what a page may hold; how much is left out is told. Time and memory grow with the
product of the lengths over 64, which the cuts bound; of two lines too long even for that, ends are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Final, Literal

from agentworldbench.render.sample import shown

MOST_BYTES: Final = 60_000
"""Of HTML that one of the two texts may take with its lines, without the marks of words."""
MOST_LINES: Final = 1_200
LINE_BYTES: Final = 48
"""Of HTML around a line."""
MOST_MARKS: Final = 2_000
"""Pieces of lines that are marked on a page; lines after them are marked whole."""
NEAR: Final = 3
"""Equal lines that stay beside a difference when the others are hidden."""
_ALIKE: Final = 0.5
"""Likeness from which on two lines are put side by side."""
_SHARED: Final = 0.3
"""Share of two lines that must be equal for words to be marked in them rather than all."""
_MOST_PIECES: Final = 80
"""Of one line; with more of them the whole line is marked."""
_MOST_PAIRS: Final = 2_500
_MOST_WORDS: Final = 4_000_000
"""Product of the numbers of words of two lines up to which every word is aligned (half a megabyte); 475 MB without it."""
_TOKEN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W\d_]+|\d+|\s+|.", re.DOTALL)
"""Words, numbers, white space, and single characters of all else, Chinese and Japanese ones too."""

Kind = Literal["same", "changed", "predicted", "real"]


@dataclass(frozen=True)
class Piece:
    """A part of a line, and whether the other text lacks it."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class Row:
    """A line that both have (`same`, `changed`), or one alone; `far`: no difference stands near it."""

    kind: Kind
    predicted: tuple[Piece, ...] = ()
    real: tuple[Piece, ...] = ()
    far: bool = False


@dataclass(frozen=True)
class Difference:
    """The rows, how many lines of each kind they are, and how many characters of each text are left out."""

    rows: tuple[Row, ...]
    counts: dict[Kind, int]
    predicted_left: int
    real_left: int

    @property
    def equal(self) -> bool:
        """Whether the two texts, as far as they are compared, do not differ."""
        return self.counts["same"] == len(self.rows) and not (self.predicted_left or self.real_left)


def difference(predicted: str, real: str, most: int = MOST_BYTES) -> Difference:
    """Compare a prediction with the real observation; of each, as much as takes `most` bytes of HTML."""
    mine, mine_left = beginning(predicted, most, a_line=LINE_BYTES)
    theirs, theirs_left = beginning(real, most, a_line=LINE_BYTES)
    found = _rows(mine.split("\n") if mine else [], theirs.split("\n") if theirs else [])
    rows = _with_far(list(_few_marks(found)))
    kinds: tuple[Kind, ...] = ("same", "changed", "predicted", "real")
    counts: dict[Kind, int] = {kind: sum(row.kind == kind for row in rows) for kind in kinds}
    return Difference(tuple(rows), counts, mine_left, theirs_left)


def beginning(text: str, most: int = MOST_BYTES, lines: int = MOST_LINES, a_line: int = 0) -> tuple[str, int]:
    """As much of a text as fits into `most` bytes of HTML and into `lines`, made visible; and how many characters are left.

    `a_line`: bytes that a line takes beside its text.
    """
    kept = "\n".join(text[:most].split("\n")[:lines])
    while (size := html_bytes(visible(kept)) + a_line * (kept.count("\n") + 1)) > most:
        kept = kept[: int(len(kept) * most / size)]
    return visible(kept), len(text) - len(kept)


def html_bytes(text: str) -> int:
    """How many bytes a text takes in a page."""
    return len(escape(text).encode("utf-8", "replace"))


def visible(text: str) -> str:
    """A text of several lines with control characters as pictures or escapes; line feeds and tabs stay."""
    return shown(text, kept="\t\n")


def _rows(mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Row]:
    from rapidfuzz.distance import Indel

    at = [0, 0]
    for op in Indel.opcodes(mine, theirs):
        if op.tag != "equal":
            continue
        yield from _changed(mine[at[0] : op.src_start], theirs[at[1] : op.dest_start])
        for line in mine[op.src_start : op.src_end]:
            yield Row("same", (Piece(line),), (Piece(line),))
        at = [op.src_end, op.dest_end]
    yield from _changed(mine[at[0] :], theirs[at[1] :])


def _few_marks(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, with whole lines marked once there are more pieces than a page may hold."""
    left = MOST_MARKS
    for row in rows:
        left -= (len(row.predicted) + len(row.real)) if row.kind == "changed" else 0
        if left >= 0 or row.kind != "changed":
            yield row
        else:
            yield Row("changed", _whole(row.predicted), _whole(row.real))


def _whole(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    return (Piece("".join(piece.text for piece in pieces), marked=True),)


def _changed(mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Row]:
    """The rows of a stretch without equal lines: pairs of like lines in their order, and what stands between them."""
    left, right = 0, 0
    for one, other in [*_pairs(mine, theirs), (len(mine), len(theirs))]:
        yield from (Row("predicted", predicted=(Piece(line, marked=True),)) for line in mine[left:one])
        yield from (Row("real", real=(Piece(line, marked=True),)) for line in theirs[right:other])
        if one < len(mine) and other < len(theirs):
            predicted, real = _words(mine[one], theirs[other])
            yield Row("changed", predicted, real)
        left, right = one + 1, other + 1


def _pairs(mine: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that belong together, ascending on both sides: the alignment with the most likeness."""
    if not mine or not theirs:
        return []
    if len(mine) == len(theirs) == 1:
        return [(0, 0)]
    if len(mine) * len(theirs) > _MOST_PAIRS:
        return [(at, at) for at in range(min(len(mine), len(theirs)))]
    from rapidfuzz.fuzz import ratio
    from rapidfuzz.process import cdist

    alike = (cdist(mine, theirs, scorer=ratio) / 100).tolist()
    best = [[0.0] * (len(theirs) + 1) for _ in range(len(mine) + 1)]
    for one in range(len(mine) - 1, -1, -1):
        for other in range(len(theirs) - 1, -1, -1):
            pair = alike[one][other] + best[one + 1][other + 1] if alike[one][other] >= _ALIKE else 0.0
            best[one][other] = max(pair, best[one + 1][other], best[one][other + 1])
    found, one, other = list[tuple[int, int]](), 0, 0
    while one < len(mine) and other < len(theirs):
        if best[one][other] == best[one + 1][other]:
            one += 1
        elif best[one][other] == best[one][other + 1]:
            other += 1
        else:
            found.append((one, other))
            one, other = one + 1, other + 1
    return found


def _words(mine: str, theirs: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """The pieces of two lines; words that stand in one of them alone are marked."""
    whole = (Piece(mine, marked=True),), (Piece(theirs, marked=True),)
    ops = list(_alignment(_TOKEN.findall(mine), _TOKEN.findall(theirs)))
    shared = sum(len("".join(some)) for equal, some, _ in ops if equal)
    if len(ops) > _MOST_PIECES or shared < _SHARED * max(len(mine), len(theirs)):
        return whole
    last = len(ops) - 1
    # A blank between two differences is part of one difference.
    marks = [
        not equal or (0 < at < last and "".join(some).isspace()) for at, (equal, some, _) in enumerate(ops)
    ]
    return (
        _joined((("".join(one), mark) for (_, one, _), mark in zip(ops, marks, strict=True))),
        _joined((("".join(other), mark) for (_, _, other), mark in zip(ops, marks, strict=True))),
    )


def _alignment(words: list[str], others: list[str]) -> Iterator[tuple[bool, list[str], list[str]]]:
    """Stretches of two lists of words, and whether they are equal; of very long lists the ends that both share."""
    from rapidfuzz.distance import Indel

    if len(words) * len(others) <= _MOST_WORDS:
        for op in Indel.opcodes(words, others):
            yield op.tag == "equal", words[op.src_start : op.src_end], others[op.dest_start : op.dest_end]
        return
    most = min(len(words), len(others))
    head = next((at for at in range(most) if words[at] != others[at]), most)
    tail = next((at for at in range(most - head) if words[-1 - at] != others[-1 - at]), most - head)
    ends = len(words) - tail, len(others) - tail
    yield True, words[:head], others[:head]
    yield False, words[head : ends[0]], others[head : ends[1]]
    yield True, words[ends[0] :], others[ends[1] :]


def _joined(parts: Iterator[tuple[str, bool]]) -> tuple[Piece, ...]:
    """Neighbours with one mark as one piece."""
    held = ((text, mark) for text, mark in parts if text)
    return tuple(
        Piece("".join(text for text, _ in some), mark) for mark, some in groupby(held, lambda part: part[1])
    )


def _with_far(rows: Sequence[Row]) -> list[Row]:
    """The rows, with those marked that no difference stands near."""
    differing = [at for at, row in enumerate(rows) if row.kind != "same"]
    near = {at + step for at in differing for step in range(-NEAR, NEAR + 1)}
    return [
        row if at in near else Row(row.kind, row.predicted, row.real, far=True) for at, row in enumerate(rows)
    ]
