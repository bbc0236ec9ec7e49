"""A run's score against a single published number: what can be said without the samples behind that number.

In: a score with its `population` interval, and a number whose own uncertainty is mostly not published. Out: a
`Against`. The variance of a difference is s1^2 + s2^2 - 2 r s1 s2; s2 is assumed to be s1 where it is not known
(the same samples, a similar spread), and the correlation r of two models over the same trajectories cannot be
known without their scores of each. So two ends are given: r = 0, two independent draws, and r = 1; and the r from
which on the difference would be told from 0. Degrees of freedom of the sum after Satterthwaite [1946]; why paired
scores of language models correlate, and how much that gains: Miller [2024].
"""

from __future__ import annotations

from agentworldbench.records import Record
from agentworldbench.stats.intervals import LEVEL, Interval, satterthwaite
from agentworldbench.stats.student import student_t


class Against(Record):
    """A run's number minus a published one, in points; None where it is not available.

    `interval` is the run's own. `independent` bounds the difference if both numbers rest on draws of their own,
    `correlated` if their draws correlate perfectly; `fixed` takes the published number for exact. `told_from` is
    the least correlation (0 to 1) with which the difference would be told from 0; None: with none.
    `assumed` tells that the published number's standard error was taken to be the run's.
    """

    run: float | None
    interval: Interval | None
    published: float | None
    difference: float | None
    fixed: tuple[float, float] | None = None
    independent: tuple[float, float] | None = None
    correlated: tuple[float, float] | None = None
    told_from: float | None = None
    assumed: bool = True


def against(
    run: float | None, interval: Interval | None, published: float | None, own: Interval | None = None
) -> Against:
    """What can be said of `run` minus `published`; `own` is the published number's interval, where there is one."""
    difference = None if run is None or published is None else run - published
    assumed = own is None or own.se is None or own.df is None
    known = Against(run=run, interval=interval, published=published, difference=difference, assumed=assumed)
    if difference is None or interval is None or interval.se is None or interval.df is None:
        return known
    se, df = interval.se, interval.df
    other_se, other_df = (se, df) if assumed or own is None else (own.se or 0.0, own.df or df)
    t = student_t((1 + LEVEL) / 2, satterthwaite([(se, df), (other_se, other_df)]))

    def half(correlation: float) -> float:
        return float(t * max(0.0, se**2 + other_se**2 - 2 * correlation * se * other_se) ** 0.5)

    alone = student_t((1 + LEVEL) / 2, df) * se
    return known.model_copy(
        update={
            "fixed": (difference - alone, difference + alone),
            "independent": (difference - half(0), difference + half(0)),
            "correlated": (difference - half(1), difference + half(1)),
            "told_from": _told_from(difference, t, se, other_se),
        }
    )


def _told_from(difference: float, t: float, se: float, other_se: float) -> float | None:
    """The correlation at which t standard errors of the difference are the difference itself."""
    needed = (se**2 + other_se**2 - (difference / t) ** 2) / (2 * se * other_se)
    if difference == 0 or needed > 1:
        return None
    return max(0.0, needed)
