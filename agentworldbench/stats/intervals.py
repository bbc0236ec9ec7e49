"""How far a mean over samples may lie from the one that other trajectories would have given.

In: values of samples, and which trajectory (cluster) each belongs to. Out: an `Interval` of the kind
`population`: what another draw of trajectories from the same environments may give, at 95 %. Samples of
one trajectory resemble each other, so the standard error is that of cluster sums [Liang & Zeger 1986]
with the correction G/(G-1) for few clusters, and Student's t with G-1 degrees of freedom [Cameron & Miller
2015, VI.D; for evaluations of language models Miller 2024]. Domains are strata, not draws: variances of
their means add up, with the degrees of freedom of Satterthwaite [1946]. Where nothing can be estimated
there is no interval and a flag says why; a width of 0 is never reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, hypot, sqrt
from typing import Final, Literal

from agentworldbench.records import Record
from agentworldbench.stats.student import student_t

LEVEL: Final = 0.95
FEW: Final = 10
"""Clusters below which an interval is flagged as rough."""

Sampled = tuple[str, float]
"""Cluster and value of one sample."""

Flag = Literal[
    "one_cluster", "too_few_clusters", "no_spread", "unstable", "few_clusters", "no_spread_in_part"
]
"""Why there is no interval: `one_cluster` (no variance can be estimated), `too_few_clusters` (to resample),
`no_spread` (nothing varies), `unstable` (a ratio whose denominator resampling brings to 0). What weakens one:
`few_clusters` (fewer than `FEW`, or no more degrees of freedom than those have), `no_spread_in_part` (in some
domains nothing varies; they add nothing to the width)."""

NONE_FOR: Final = frozenset({"one_cluster", "too_few_clusters", "no_spread", "unstable"})
"""Flags with which there is no interval."""


class Interval(Record):
    """A 95 % interval around a number, in its unit; not clipped to the scale.

    `kind` says what is repeated: `population` another draw of trajectories, `re-run` the same ones again.
    `se` is the standard error, `df` the degrees of freedom, `half` half the width. All numbers are None
    where there is no interval; `flags` then say why, and else what weakens it.
    """

    kind: Literal["population", "re-run"] = "population"
    method: Literal["clustered", "stratified", "bootstrap"]
    level: float = LEVEL
    low: float | None = None
    high: float | None = None
    half: float | None = None
    se: float | None = None
    df: float | None = None
    clusters: int
    flags: tuple[Flag, ...] = ()


class Intervals(Record):
    """The intervals of one number under both failure policies; None where the number is not available."""

    exclude: Interval | None = None
    floor: Interval | None = None


def mean(values: Sequence[float]) -> float | None:
    """Plain mean, or None of nothing."""
    return fsum(values) / len(values) if values else None


def clustered(estimate: float | None, samples: Sequence[Sampled]) -> Interval | None:
    """The interval of a mean over samples in clusters; None where there is no mean.

    V = G/(G-1) * sum over clusters of (sum of the cluster's residuals)^2 / n^2: the cluster-robust variance
    of a regression on a constant. `estimate` is the mean as reported; the interval is laid around it.
    """
    if estimate is None or not samples:
        return None
    mean = fsum(value for _, value in samples) / len(samples)
    residuals: dict[str, list[float]] = {}
    for cluster, value in samples:
        residuals.setdefault(cluster, []).append(value - mean)
    count = len(residuals)
    if count == 1:
        return Interval(method="clustered", clusters=1, flags=("one_cluster",))
    # Exact sums in a fixed order: the order of records never shows. hypot does not overflow.
    length = hypot(*sorted(fsum(some) for some in residuals.values()))
    se = sqrt(count / (count - 1)) * length / len(samples)
    if is_nothing(se, (value for _, value in samples)):
        return Interval(method="clustered", clusters=count, flags=("no_spread",))
    return around(estimate, se, count - 1, count, "clustered")


def stratified(
    estimate: float | None, parts: Sequence[Interval | None], weights: Sequence[float] | None = None
) -> Interval | None:
    """The interval of a weighted sum of independent means (default: their plain mean), from theirs.

    V = sum of w^2 V_d; df = V^2 / sum of (w^2 V_d)^2 / df_d [Satterthwaite 1946]. A part without spread adds
    nothing, which is flagged; with a part of one cluster there is no interval.
    """
    known = [part for part in parts if part is not None]
    if estimate is None or not known or len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]
    shares = weights or [1 / len(known)] * len(known)
    clusters = sum(part.clusters for part in known)
    flags = joint_flags([part.flags for part in known])
    if NONE_FOR.intersection(flags):
        return Interval(method="stratified", clusters=clusters, flags=flags)
    terms = [
        (share * part.se, part.df)
        for part, share in zip(known, shares, strict=True)
        if part.se is not None and part.df is not None
    ]
    whole = hypot(*(se for se, _ in terms))
    return around(estimate, whole, satterthwaite(terms), clusters, "stratified", flags)


def of_strata(estimate: float | None, strata: Iterable[Sequence[Sampled]]) -> Interval | None:
    """The interval of a mean over the samples of several domains: each weighs as many samples as it has."""
    some = [samples for samples in strata if samples]
    total = sum(map(len, some))
    parts = [clustered(estimate, samples) for samples in some]
    return stratified(estimate, parts, [len(samples) / total for samples in some])


def satterthwaite(terms: Iterable[tuple[float, float]]) -> float:
    """Degrees of freedom of a sum of independent estimates, given by standard error and degrees of freedom."""
    known = [(se, df) for se, df in terms if se > 0]
    whole = hypot(*(se for se, _ in known))
    return 1 / fsum((se / whole) ** 4 / df for se, df in known)


def joint_flags(parts: Sequence[Sequence[Flag]]) -> tuple[Flag, ...]:
    """The flags of a mean over parts: what keeps one of them from an interval does so for the mean, but for a
    missing spread. Whether the clusters are few is seen in the mean's own degrees of freedom."""
    found: list[Flag] = list(dict.fromkeys(flag for flags in parts for flag in flags))
    if "no_spread" in found and not all("no_spread" in flags for flags in parts):
        found[found.index("no_spread")] = "no_spread_in_part"
    return tuple(flag for flag in found if flag != "few_clusters")


def few(df: float) -> tuple[Flag, ...]:
    """The flag of an interval that rests on fewer degrees of freedom than `FEW` clusters have."""
    return ("few_clusters",) if df < FEW - 1 else ()


def around(
    estimate: float,
    se: float,
    df: float,
    clusters: int,
    method: Literal["clustered", "stratified"],
    flags: tuple[Flag, ...] = (),
) -> Interval:
    """The symmetric interval of t quantiles around an estimate."""
    half = student_t((1 + LEVEL) / 2, df) * se
    return Interval(
        method=method,
        low=estimate - half,
        high=estimate + half,
        half=half,
        se=se,
        df=df,
        clusters=clusters,
        flags=(*flags, *few(df)),
    )


def is_nothing(spread: float, values: Iterable[float]) -> bool:
    """Whether a spread is what rounding leaves of none, beside the values that it was computed from."""
    return spread <= 1e-12 * max(abs(value) for value in values)
