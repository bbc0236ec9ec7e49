"""How wide the intervals of a run would be that is only planned, from the variances that a pilot showed.

In: the `Components` of each domain (`variance.py`) and, by domain, the `Design` of the run: its trajectories, turns,
epochs and repeats of its judge. Out: `Half`, half the width of the 95 % interval of its macro score, of either
kind. Domains are strata; the intervals are made by the functions that make the real ones, with their degrees of
freedom [D study: Brennan 2001, chapter 4]. Where a pilot cannot tell two sources apart, a half width is known between
two bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Final

from agentworldbench.records import Record
from agentworldbench.stats.intervals import Interval, around, stratified
from agentworldbench.stats.student import MANY
from agentworldbench.stats.variance import (
    POPULATION,
    RERUN,
    Components,
    Design,
    Name,
    predicted_se,
)

ENDLESS: Final = 1e6 * MANY
"""Degrees of freedom of a width that nothing has to be estimated for: t is the normal quantile."""


class Half(Record):
    """Half the width of an interval, in points; `low` < `high` where the pilot cannot tell sources apart."""

    low: float
    high: float


class Mix(Record):
    """One way to spend. `selection` are the flags that choose the samples (empty: all of the data). Half widths are
    in points, of the macro score; USD are None where a price is unknown. `efficient`: no other mix costs no more and
    is as narrow; `reaches`: the width asked for, surely (None: none was asked for)."""

    selection: str
    samples: int
    trajectories: int
    epochs: int
    repeats: int
    population: Half | None
    rerun: Half | None
    requests: int
    tokens_low: int
    tokens_high: int
    usd_low: float | None
    usd_high: float | None
    efficient: bool = False
    reaches: bool | None = None

    @property
    def cost(self) -> tuple[float, int, int]:
        """What mixes are ordered by: USD at the high end, where they are unknown or nothing tokens."""
        return self.usd_high or 0.0, self.tokens_high, self.requests


def predicted_population(domains: Mapping[str, Components], designs: Mapping[str, Design]) -> Half | None:
    """Half the interval `population` of the macro score, as `clustered` and `stratified` would make it.

    None where a domain has one trajectory, now or in the pilot. A domain in which nothing varied adds nothing.
    """
    return _macro([_population(components, designs[domain]) for domain, components in domains.items()])


def predicted_rerun(domains: Mapping[str, Components], designs: Mapping[str, Design]) -> Half | None:
    """Half the interval `re-run` of the macro score, with as many degrees of freedom as there are answers beyond the
    first of each sample (see `epochs.rerun`).

    A run of one epoch cannot know it of itself; then this is what the pilot knows of it, at 1.96 standard errors.
    """
    return _macro([_rerun(components, designs[domain]) for domain, components in domains.items()])


Ends = tuple[Interval, Interval]
"""The narrower and the wider interval that a domain's mean may have."""


def _population(components: Components, design: Design) -> Ends | None:
    errors = _errors(components, design, POPULATION)
    if errors is None or design.trajectories < 2:
        return None
    return _ends(errors, design.trajectories - 1, design.trajectories)


def _rerun(components: Components, design: Design) -> Ends | None:
    errors = _errors(components, design, RERUN)
    samples = round(design.trajectories * design.turns)
    return None if errors is None else _ends(errors, samples * (design.epochs - 1) or ENDLESS, samples)


def _errors(components: Components, design: Design, drawn: frozenset[Name]) -> tuple[float, float] | None:
    nothing = components.reason == "no_spread"
    return (0.0, 0.0) if nothing else predicted_se(components, design, drawn)


def _ends(errors: tuple[float, float], df: float, count: int) -> Ends:
    low, high = (
        around(0.0, se, df, count, "clustered")
        if se
        else Interval(method="clustered", clusters=count, flags=("no_spread",))
        for se in errors
    )
    return low, high


def _macro(parts: Sequence[Ends | None]) -> Half | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    low, high = (stratified(0.0, side) for side in zip(*known, strict=True))
    if high is None or high.half is None:
        return None
    # The smaller standard error can have so few degrees of freedom that its interval is the wider one.
    ends = sorted(((low.half if low else None) or 0.0, high.half))
    return Half(low=ends[0], high=ends[1])


def predicted_precision(domains: Mapping[str, Components], designs: Mapping[str, Design]) -> float | None:
    """By what share a half width predicted from the pilot of these `designs` may be off, at 95 %: 1.96 / sqrt(2 df).

    A variance estimated with df degrees of freedom from normal values has the relative standard error sqrt(2 / df)
    [Satterthwaite 1946], its root half of that; df is that of the pilot's own macro interval. None where that has none.
    """
    ends = [_population(components, designs[domain]) for domain, components in domains.items()]
    whole = stratified(0.0, [end[1] if end else None for end in ends])
    return None if whole is None or whole.df is None else 1.96 / sqrt(2 * whole.df)
