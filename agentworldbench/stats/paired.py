"""Two runs on the same samples: the difference of their scores, and whether it is more than luck.

In: for each domain the shared samples with cluster and both scores. Out: a `Difference` for each domain, for
their plain mean and for the mean over samples: second minus first with its interval (that of a mean of
differences over clusters), a permutation test that flips the signs of whole clusters [Fisher 1935; for one
sample of differences Efron & Tibshirani 1993], corrected over the table by Holm [1979], the smallest
difference that as many samples would show, and on how many samples each run is better. What two runs share,
easy and hard trajectories alike, drops out of differences; so they are mostly known better than either score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final

from agentworldbench.records import Record
from agentworldbench.stats.bootstrap import seeded
from agentworldbench.stats.intervals import LEVEL, Interval, mean, of_strata, stratified
from agentworldbench.stats.student import student_t

EXACT: Final = 14
"""Clusters up to which every pattern of signs is tried; with more, `FLIPS` random ones are."""
FLIPS: Final = 10_000
POWER: Final = 0.8
"""How often the smallest detectable difference would be detected."""
_SAME: Final = 1e-9
"""Scores nearer than this are equal."""
_AT_ONCE: Final = 1000


@dataclass(frozen=True)
class Pair:
    """One sample as both runs scored it, with its trajectory (`cluster`) and the task that this is an episode of
    (empty: of its own)."""

    sample_id: str
    cluster: str
    first: float
    second: float
    task: str = ""

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first


class Difference(Record):
    """Second run minus first over the samples they share; None where a number is not available.

    `p` is two-sided, `p_holm` corrected for all of the table. `detectable` is the difference that would be
    told from 0 in 80 % of such comparisons. The second run is better on `better` samples, equal on `equal`.
    """

    samples: int
    clusters: int
    first: float | None
    second: float | None
    difference: float | None
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    detectable: float | None = None
    better: int
    equal: int
    worse: int

    def turned(self) -> Difference:
        """The other run minus the one: the same with the other sign."""
        interval = self.interval
        if interval is not None and interval.low is not None and interval.high is not None:
            interval = interval.model_copy(update={"low": -interval.high, "high": -interval.low})
        return self.model_copy(
            update={
                "first": self.second,
                "second": self.first,
                "difference": None if self.difference is None else -self.difference,
                "interval": interval,
                "better": self.worse,
                "worse": self.better,
            }
        )


class Differences(Record):
    """The rows of one table of differences."""

    domains: dict[str, Difference]
    macro: Difference
    micro: Difference


def differences(domains: Mapping[str, Sequence[Pair]]) -> Differences:
    """Differences by domain, as plain mean of the domains and as mean over samples. The mean over samples is
    shown for completeness and not tested."""
    rows = tested(domains)
    ps = holm([*(row.p for row in rows.domains.values()), rows.macro.p])
    return rows.model_copy(
        update={
            "domains": {
                domain: row.model_copy(update={"p_holm": p})
                for (domain, row), p in zip(rows.domains.items(), ps[:-1], strict=True)
            },
            "macro": rows.macro.model_copy(update={"p_holm": ps[-1]}),
        }
    )


def tested(domains: Mapping[str, Sequence[Pair]]) -> Differences:
    """The rows of `differences` with the p of each alone, for whoever corrects over more than one table."""
    rows = {domain: _row([pairs]) for domain, pairs in domains.items()}
    return Differences(
        domains={
            domain: row.model_copy(update={"p": _test(domain, [domains[domain]], [1.0])})
            for domain, row in rows.items()
        },
        macro=_macro(list(rows.values()), list(domains.values())),
        micro=_row(list(domains.values())),
    )


def by_task(domains: Mapping[str, Sequence[Pair]]) -> dict[str, list[Pair]]:
    """The same pairs with the tasks as their clusters: several episodes of one task may resemble each other too."""
    return {
        domain: [replace(pair, cluster=pair.task or pair.cluster) for pair in pairs]
        for domain, pairs in domains.items()
    }


def _row(strata: Sequence[Sequence[Pair]]) -> Difference:
    """A mean over samples."""
    pairs = [pair for some in strata for pair in some]
    difference = mean([pair.difference for pair in pairs])
    sampled = [[(pair.cluster, pair.difference) for pair in some] for some in strata]
    interval = of_strata(difference, sampled)
    return Difference(
        samples=len(pairs),
        clusters=sum(len({pair.cluster for pair in some}) for some in strata),
        first=mean([pair.first for pair in pairs]),
        second=mean([pair.second for pair in pairs]),
        difference=difference,
        interval=interval,
        detectable=detectable(interval),
        better=sum(pair.difference > _SAME for pair in pairs),
        equal=sum(abs(pair.difference) <= _SAME for pair in pairs),
        worse=sum(pair.difference < -_SAME for pair in pairs),
    )


def _macro(rows: Sequence[Difference], strata: Sequence[Sequence[Pair]]) -> Difference:
    """The plain mean of the domains; not available unless all are."""
    whole = bool(rows) and all(row.samples for row in rows)
    values = {
        name: mean([getattr(row, name) for row in rows]) if whole else None
        for name in ("first", "second", "difference")
    }
    interval = stratified(values["difference"], [row.interval for row in rows])
    return Difference(
        samples=sum(row.samples for row in rows),
        clusters=sum(row.clusters for row in rows),
        **values,
        interval=interval,
        p=_test("macro", strata, [1 / len(rows)] * len(rows)) if whole else None,
        detectable=detectable(interval),
        better=sum(row.better for row in rows),
        equal=sum(row.equal for row in rows),
        worse=sum(row.worse for row in rows),
    )


def _test(name: str, strata: Sequence[Sequence[Pair]], weights: Sequence[float]) -> float | None:
    parts: list[float] = []
    for pairs, weight in zip(strata, weights, strict=True):
        sums: dict[str, list[float]] = {}
        for pair in pairs:
            sums.setdefault(pair.cluster, []).append(pair.difference)
        parts += [weight * fsum(sums[cluster]) / len(pairs) for cluster in sorted(sums)]
    return sign_flip(name, parts) if parts else None


def sign_flip(name: str, parts: Sequence[float]) -> float:
    """How often a sum of independent parts would be as far from 0 if each part were as likely to have the other sign
    [Fisher 1935, section 21]; the seen pattern is counted among random ones, so that p is never 0 [Phipson & Smyth 2010].

    Two-sided, at least 2 / 2^(number of parts); exact up to `EXACT` parts that are not 0, else of `FLIPS` patterns
    seeded by `name`, the one that was seen counted among them.
    """
    import numpy as np

    some = np.array([part for part in parts if part != 0])
    if not len(some):
        return 1.0
    seen = abs(fsum(some)) - 1e-12 * fsum(abs(some))
    if len(some) <= EXACT:
        patterns = np.arange(2 ** len(some))[:, None] >> np.arange(len(some)) & 1
        return float((abs((2 * patterns - 1) @ some) >= seen).mean())
    random = seeded(name)
    count = 0
    for _ in range(0, FLIPS, _AT_ONCE):
        signs = 2 * random.integers(0, 2, size=(_AT_ONCE, len(some)), dtype=np.int8) - 1
        count += int((abs(signs @ some) >= seen).sum())
    return (count + 1) / (FLIPS + 1)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Each p so corrected that of all of them together one is wrongly called small in no more than its share of
    tables [Holm 1979]; None stays None and counts for nothing."""
    order = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p))
        corrected[place] = highest
    return corrected


def detectable(interval: Interval | None) -> float | None:
    """(t at 97.5 % + t at 80 %) * standard error: the difference found in 80 % of such comparisons [Bloom 1995]."""
    if interval is None or interval.se is None or interval.df is None:
        return None
    quantiles = student_t((1 + LEVEL) / 2, interval.df) + student_t(POWER, interval.df)
    return quantiles * interval.se
