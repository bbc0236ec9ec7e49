"""Metrics of snapshot domains: what the action changed, not what stayed.

P, R, C are the multisets of masked lines, without element numbers, of the previous observation, the
reference and the prediction. What was added counts (A = R - P); only when nothing was added, what
was removed (D = P - R). The two are never pooled: an empty prediction would win on every page
navigation. Nor does what was removed count alone: an empty page removes all of it, and nearly nothing
else where a large window was closed. So there what stayed counts as much.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeVar

from agentworldbench.scoring.metrics.base import Metric
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1

T = TypeVar("T")


def has_change(facts: Facts) -> bool:
    """`change_f1` applies where the snapshot changed."""
    return facts.changed is True


def has_no_change(facts: Facts) -> bool:
    """`noop_match` applies where the snapshot did not change."""
    return facts.changed is False


def changed_f1(previous: Counter[T], reference: Counter[T], predicted: Counter[T]) -> float:
    """F1 of what was added; where nothing was, the harmonic mean of the F1 of what was removed and of what stayed."""
    if added := reference - previous:
        return multiset_f1(predicted - previous, added)
    removed = multiset_f1(previous - predicted, previous - reference)
    stayed = multiset_f1(predicted, reference)
    return 2 * removed * stayed / (removed + stayed) if removed else 0.0


def change_f1(facts: Facts, prediction: str) -> float:
    """`changed_f1` of lines."""
    previous = facts.previous_state
    assert previous is not None, "change_f1 is applied only where a previous snapshot exists"
    return changed_f1(previous, facts.reference_state, facts.state(prediction))


def noop_match(facts: Facts, prediction: str) -> float:
    """1 when the prediction changes nothing either, else 0."""
    return float(facts.state(prediction) == facts.previous_state)


METRICS: Final = {
    "change_f1": Metric(change_f1, has_change),
    "noop_match": Metric(noop_match, has_no_change),
}
