"""A predicted screen against the real one, element by element: what is right, wrong, missing, or made up.

In: two screens as the metrics read them, and the one before the action. Out: rows in the order of the real screen. An
element is the same when role, name, value and state are equal; a missing and a made-up one at the same place that share
role and name, or role and value, are one element that is `changed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agentworldbench.scoring.metrics.ui_nodes import Fact, Node, Screen

MOST: Final = 600
"""Rows that a page shows."""
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


def node_rows(predicted: Screen, real: Screen, before: Screen | None) -> list[NodeRow]:
    """Every element of both screens, at most `MOST`; those that differ first where there are more."""
    from rapidfuzz.distance import Indel

    earlier = Counter() if before is None else before.facts
    mine, theirs = [_fact(node) for node in predicted.nodes], [_fact(node) for node in real.nodes]
    rows, at = list[NodeRow](), [0, 0]
    for op in Indel.opcodes(mine, theirs):
        if op.tag == "equal":
            rows += _differing(mine[at[0] : op.src_start], theirs[at[1] : op.dest_start], earlier)
            rows += [_row("same", fact, fact, earlier) for fact in theirs[op.dest_start : op.dest_end]]
            at = [op.src_end, op.dest_end]
    rows += _differing(mine[at[0] :], theirs[at[1] :], earlier)
    if len(rows) > MOST:
        rows = [row for row in rows if row.kind != "same"]
    return rows[:MOST]


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
