"""Metrics of snapshot domains: what the action changed, not what stayed.

P, R, C are the multisets of masked lines, without element numbers, of the previous observation, the
reference and the prediction. What was added counts (A = R - P); only when nothing was added, what
was removed (D = P - R). The two are never pooled: an empty prediction would win on every page
navigation.
"""

from __future__ import annotations

from typing import Final

from agentworldbench.scoring.metrics.base import Metric
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1


def has_change(facts: Facts) -> bool:
    """`change_f1` applies where the snapshot changed."""
    return facts.changed is True


def has_no_change(facts: Facts) -> bool:
    """`noop_match` applies where the snapshot did not change."""
    return facts.changed is False


def change_f1(facts: Facts, prediction: str) -> float:
    """F1 of added lines, or of removed lines where none was added."""
    previous = facts.previous_state
    assert previous is not None, "change_f1 is applied only where a previous snapshot exists"
    predicted = facts.state(prediction)
    added = facts.reference_state - previous
    if added:
        return multiset_f1(predicted - previous, added)
    return multiset_f1(previous - predicted, previous - facts.reference_state)


def noop_match(facts: Facts, prediction: str) -> float:
    """1 when the prediction changes nothing either, else 0."""
    return float(facts.state(prediction) == facts.previous_state)


METRICS: Final = {
    "change_f1": Metric(change_f1, has_change),
    "noop_match": Metric(noop_match, has_no_change),
}
