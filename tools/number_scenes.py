"""What the pictures of docs/numbers.md share: simulated samples, their interval, and places on a scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean

from agentworldbench.stats.intervals import Interval, clustered

Sampled = tuple[str, float]
"""Trajectory and score, 0-100, of a sample."""


def place(low: float, high: float, left: float = 60, right: float = 640) -> Callable[[float], float]:
    """From a value to pixels."""
    return lambda value: left + (value - low) / (high - low) * (right - left)


def drawn(
    random: Random, trajectories: int, turns: int, mean: float = 50, spread: float = 14
) -> list[Sampled]:
    """Samples of trajectories that resemble each other, with scores 0-100."""
    found = []
    for number in range(trajectories):
        level = random.gauss(mean, spread)
        found += [(str(number), min(100.0, max(0.0, random.gauss(level, spread)))) for _ in range(turns)]
    return found


def interval_of(samples: Sequence[Sampled]) -> tuple[float, Interval]:
    """Mean and population interval."""
    mean = fmean(value for _, value in samples)
    interval = clustered(mean, samples)
    assert interval is not None and interval.half is not None
    return mean, interval


def ends(interval: Interval) -> tuple[float, float]:
    """The two bounds of an interval that has them."""
    assert interval.low is not None and interval.high is not None
    return interval.low, interval.high
