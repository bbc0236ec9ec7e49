"""What a metric is, and the two values it may give.

A metric is a pair: whether it applies (from the sample alone, so that all models share denominators)
and its value for a prediction. Every family's module ends in a table of its metrics by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentworldbench.scoring.metrics.facts import Facts


@dataclass(frozen=True)
class Unparsable:
    """A prediction that is not of the form the metric reads: counts 0, and `reason` says what was wrong."""

    reason: str


def always(facts: Facts) -> bool:
    """A metric that applies to every sample."""
    return True


@dataclass(frozen=True)
class Metric:
    """`applies(facts)`, and `score(facts, normalised prediction)` in [0, 1]."""

    score: Callable[[Facts, str], float | Unparsable]
    applies: Callable[[Facts], bool] = always
