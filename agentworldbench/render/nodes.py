"""A predicted screen against the real one, element by element: what is right, wrong, missing, or made up.

In: two screens as the metrics read them, and the one before the action. Out: rows in the order of the real screen, as many
as a page may hold. An element is the same when role, name, value and state are equal; a missing and a made-up one at the same place that share
role and name, or role and value, are one element that is `changed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agentworldbench.render.diff import html_bytes
from agentworldbench.render.sample import shown
from agentworldbench.scoring.metrics.ui_nodes import Fact, Node, Screen

MOST_BYTES: Final = 45_000
"""Of HTML that the rows of a page take."""
ROW_BYTES: Final = 170
"""Of HTML around a row."""
MOST: Final = 2_000
"""Elements of each screen that are looked at."""
_LONGEST: Final = 300

Kind = Literal["same", "changed", "missing", "made up"]


@dataclass(frozen=True)
class NodeRow:
    """One element: what it is, and of a changed one what was predicted in its place.

    `stood`: it was on the screen before the action already, so predicting it was no more than copying.
    """

    kind: Kind
    role: str
    real: str
    predicted: str
    stood: bool


def node_rows(predicted: Screen, real: Screen, before: Screen | None) -> tuple[list[NodeRow], int]:
    """The elements of both screens, and how many there is no room for; where not all have room, those that differ come first."""
    from rapidfuzz.distance import Indel

    earlier = Counter() if before is None else before.facts
    mine, theirs = (
        [_fact(node) for node in predicted.nodes[:MOST]],
        [_fact(node) for node in real.nodes[:MOST]],
    )
    beyond = len(predicted.nodes) + len(real.nodes) - len(mine) - len(theirs)
    rows, at = list[NodeRow](), [0, 0]
    for op in Indel.opcodes(mine, theirs):
        if op.tag == "equal":
            rows += _differing(mine[at[0] : op.src_start], theirs[at[1] : op.dest_start], earlier)
            rows += [_row("same", fact, fact, earlier) for fact in theirs[op.dest_start : op.dest_end]]
            at = [op.src_end, op.dest_end]
    rows += _differing(mine[at[0] :], theirs[at[1] :], earlier)
    kept = _with_room(rows)
    if len(kept) < len(rows):
        kept = _with_room([row for row in rows if row.kind != "same"])
    return kept, len(rows) - len(kept) + beyond


def _with_room(rows: Sequence[NodeRow]) -> list[NodeRow]:
    """The first rows, as many as a page may hold."""
    kept, left = list[NodeRow](), MOST_BYTES
    for row in rows:
        left -= ROW_BYTES + sum(html_bytes(shown(text)) for text in (row.role, row.real, row.predicted))
        if left < 0:
            break
        kept.append(row)
    return kept


def _fact(node: Node) -> Fact:
    return (node.role, node.name, node.value, node.state)


def _differing(mine: Sequence[Fact], theirs: Sequence[Fact], earlier: Counter[Fact]) -> Iterator[NodeRow]:
    left = list(mine)
    for fact in theirs:
        found = next(
            (one for one in left if one[0] == fact[0] and (one[1] == fact[1] or one[2] == fact[2] != "")),
            None,
        )
        if found is None:
            yield _row("missing", None, fact, earlier)
        else:
            left.remove(found)
            yield _row("changed", found, fact, earlier)
    for fact in left:
        yield _row("made up", fact, None, earlier)


def _row(kind: Kind, predicted: Fact | None, real: Fact | None, earlier: Counter[Fact]) -> NodeRow:
    fact = real or predicted
    assert fact is not None
    return NodeRow(kind, fact[0], _said(real), _said(predicted), stood=earlier[fact] > 0)


def _said(fact: Fact | None) -> str:
    """Name, value and state of an element in one line."""
    if fact is None:
        return ""
    _, name, value, state = fact
    text = " ".join(
        part
        for part in (name, f"= {value}" if value else "", f"[{', '.join(state)}]" if state else "")
        if part
    )
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
