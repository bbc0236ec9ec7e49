"""The numbers of a plot: a score with the ends of its interval, and the scores that one colour stands for.

In: scores 0-100 and intervals as `in_points` shows them. Out: `Value`s and `Series`, and what is said of marks without bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentworldbench.render.numbers import Shown
from agentworldbench.texts import count_text


@dataclass(frozen=True)
class Value:
    """A number with the ends of its interval, where it has one, and on how many samples it rests."""

    value: float
    low: float | None = None
    high: float | None = None
    samples: int | None = None

    @property
    def said(self) -> str:
        """As a mark tells it."""
        interval = "" if self.low is None or self.high is None else f", {self.low:z.1f} to {self.high:z.1f}"
        return f"{self.value:.1f}{interval}" + (
            "" if self.samples is None else f", {count_text(self.samples, 'sample')}"
        )


@dataclass(frozen=True)
class Series:
    """What one colour stands for; None where it has no number."""

    name: str
    values: tuple[Value | None, ...]


def with_ends(value: float, interval: Shown | None, samples: int | None = None) -> Value:
    """A score with the ends of its interval as `in_points` shows it."""
    ends = (None, None) if interval is None else (interval.low, interval.high)
    return Value(value, *ends, samples=samples)


def without_bars(series: Sequence[Series]) -> str:
    """What is said of marks that have no interval; nothing where all have one."""
    bare = any(value is not None and value.low is None for one in series for value in one.values)
    return (
        " A mark without a bar has no interval: too few trajectories, or no spread between them."
        if bare
        else ""
    )
