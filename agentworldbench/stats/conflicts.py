"""Where a judge and the rules contradict each other on one prediction, and how often they do.

In: of each sample the judge's factuality (1-5) and its rule metrics. Out: `Conflict`s, and per domain the share
of samples that are one, with a 95 % interval. Two things are called a conflict:

- the judge is *kinder*: factuality 4 or 5 although a metric of `DECISIVE` is 0;
- the judge is *stricter*: factuality 1 or 2 although every decisive metric is 1 and the rule score is high.

Decisive metrics are those with a yes or no: whether a call succeeded, which code it ended with, which page
came. A sample that none of them applies to cannot be a conflict and is left out of the shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Final, Literal

from agentworldbench.records import Record, SampleMetrics, SampleRef
from agentworldbench.stats.intervals import LEVEL, Interval, mean, of_strata
from agentworldbench.stats.student import student_t

DECISIVE: Final[Mapping[str, str]] = {
    "status_match": "status",
    "exit_code_match": "exit code",
    "test_counts_match": "test counts",
    "status_class": "what the commands came to",
    "prompt_match": "prompt",
    "echo_match": "echo",
    "interactive_state": "state of the terminal",
    "page_identity": "page",
    "noop_match": "nothing was to change",
}
"""Metrics whose 0 is a wrong answer to a plain question, and what that question is about."""

HIGH: Final = 4
LOW: Final = 2
"""Factuality from which on a judge finds a prediction right, and down to which it finds it wrong."""
HIGH_RULE: Final = 0.8
"""Rule score from which on the rules find a prediction right."""

Side = Literal["kinder", "stricter"]
"""How the judge is, compared with the rules."""


class Conflict(Record):
    """One sample on which they contradict each other. `wrong` names the decisive metrics that are 0, `gap` is by
    how much factuality, put on a scale from 0 to 1, is above the rule score (where no primary metric applies:
    above the mean of the decisive ones)."""

    sample_id: str
    domain: str
    side: Side
    factuality: float
    rule_score: float | None
    wrong: tuple[str, ...]
    gap: float


class ConflictRate(Record):
    """Of one domain (or of all): samples with a factuality and a decisive metric, how many are conflicts, and
    their share with a 95 % interval (None of no sample, or of one trajectory)."""

    samples: int
    clusters: int
    kinder: int
    stricter: int
    share: float | None
    low: float | None
    high: float | None


class Compared(Record):
    """One sample's place in the comparison: its cluster, and the conflict that it is, if it is one."""

    domain: str
    cluster: str
    conflict: Conflict | None


def compare(
    ref: SampleRef, factuality: float, metrics: SampleMetrics, primary: Sequence[str]
) -> Compared | None:
    """Judge and rules on one sample; None where there is nothing to compare."""
    decisive = {name: metrics.values[name] for name in DECISIVE if name in metrics.values}
    score = mean([metrics.values[name] for name in primary if name in metrics.values])
    if not decisive:
        return None
    wrong = tuple(name for name, value in decisive.items() if value == 0)
    side: Side | None = None
    if factuality >= HIGH and wrong:
        side = "kinder"
    elif factuality <= LOW and min(decisive.values()) == 1 and (score is None or score >= HIGH_RULE):
        side = "stricter"
    if side is None:
        return Compared(domain=ref.domain, cluster=ref.cluster, conflict=None)
    conflict = Conflict(
        sample_id=ref.id,
        domain=ref.domain,
        side=side,
        factuality=factuality,
        rule_score=score,
        wrong=wrong,
        gap=(factuality - 1) / 4 - (fsum(decisive.values()) / len(decisive) if score is None else score),
    )
    return Compared(domain=ref.domain, cluster=ref.cluster, conflict=conflict)


def worst_first(conflicts: Sequence[Conflict]) -> list[Conflict]:
    """The largest gap first, whichever side it is on; equal ones by sample id."""
    return sorted(conflicts, key=lambda one: (-abs(one.gap), one.sample_id))


class JudgeConflicts(Record):
    """One judge against the rules: samples with a factuality, shares by domain and over all, and the conflicts."""

    digest: str
    judge: str
    protocol: str
    judged: int
    domains: dict[str, ConflictRate]
    overall: ConflictRate
    conflicts: tuple[Conflict, ...]


def rate(strata: Sequence[Sequence[Compared]]) -> ConflictRate:
    """The share of conflicts among compared samples of one domain, or of several, with its interval."""
    compared = [one for some in strata for one in some]
    sides = [one.conflict.side for one in compared if one.conflict]
    share = len(sides) / len(compared) if compared else None
    sampled = [[(one.cluster, float(one.conflict is not None)) for one in some] for some in strata]
    low, high = _wilson(share, len(compared), of_strata(share, sampled))
    return ConflictRate(
        samples=len(compared),
        clusters=len({(one.domain, one.cluster) for one in compared}),
        kinder=sides.count("kinder"),
        stricter=sides.count("stricter"),
        share=share,
        low=low,
        high=high,
    )


def _wilson(
    share: float | None, samples: int, interval: Interval | None
) -> tuple[float | None, float | None]:
    """Wilson's 95 % interval [1927] on the number of samples that would be as exact if they were independent
    [Dean & Pagano 2015], with the t quantile of the clustered one. Where nothing varies a trajectory counts once."""
    if share is None or interval is None or interval.clusters < 2:
        return None, None
    count = float(interval.clusters)
    if interval.se:
        count = min(float(samples), share * (1 - share) / interval.se**2)
    t = student_t((1 + LEVEL) / 2, interval.df or interval.clusters - 1)
    middle = share + t * t / (2 * count)
    reach = t * sqrt(share * (1 - share) / count + t * t / (4 * count * count))
    scale = 1 + t * t / count
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)
