"""Intervals of ratios of sums over clusters, by resampling whole clusters.

In: numerators and denominators of samples by cluster. Out: the ratio as other draws of clusters would give
it, and an `Interval` of that, or of the plain mean of several such ratios (domains, resampled apart). Of G
clusters G-1 are drawn with replacement, so that the spread of few clusters is not too small [McCarthy &
Snowden 1985; Rao & Wu 1988], and percentiles are taken where Student's t has its tails, not the normal
distribution [Hesterberg 2015, "expanded percentile"; the bootstrap itself: Efron & Tibshirani 1993].
Percentiles keep a ratio inside its range, which a symmetric interval does not. Draws are seeded by name:
the same samples give the same interval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from agentworldbench.stats.intervals import (
    LEVEL,
    NONE_FOR,
    Flag,
    Interval,
    few,
    is_nothing,
    joint_flags,
    satterthwaite,
)
from agentworldbench.stats.student import student_t

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS: Final = 10_000
SEED: Final = 20_260_101
LEAST: Final = 5
"""Clusters below which there is too little to draw from."""
_AT_ONCE: Final = 500

Paired = tuple[str, float, float]
"""Cluster, numerator and denominator of one sample."""


@dataclass(frozen=True)
class Resampled:
    """A ratio in every draw (None: it cannot be resampled, and `flags` say why), and how many clusters it has."""

    draws: NDArray[np.float64] | None
    clusters: int
    flags: tuple[Flag, ...] = ()


def seeded(name: str) -> np.random.Generator:
    """A generator that gives the same draws for the same name."""
    import numpy as np

    seed = int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big")
    return np.random.default_rng([SEED, seed])


def resample_ratio(name: str, samples: Sequence[Paired]) -> Resampled:
    """Sum of numerators / sum of denominators, which are >= 0, in each of `DRAWS` draws; `name` seeds them."""
    import numpy as np

    sums: dict[str, tuple[list[float], list[float]]] = {}
    for cluster, numerator, denominator in samples:
        above, below = sums.setdefault(cluster, ([], []))
        above.append(numerator)
        below.append(denominator)
    count = len(sums)
    if count < LEAST:
        return Resampled(None, count, ("one_cluster" if count == 1 else "too_few_clusters",))
    ordered = [sums[cluster] for cluster in sorted(sums)]
    numerators = np.array([fsum(above) for above, _ in ordered])
    denominators = np.array([fsum(below) for _, below in ordered])
    random = seeded(name)
    draws = np.empty(DRAWS)
    for begin in range(0, DRAWS, _AT_ONCE):
        chosen = random.integers(0, count, size=(_AT_ONCE, count - 1))
        below = denominators[chosen].sum(axis=1)
        if below.min() <= 0:
            return Resampled(None, count, ("unstable",))
        draws[begin : begin + _AT_ONCE] = numerators[chosen].sum(axis=1) / below
    if is_nothing(float(draws.std()), (float(abs(draws).max()),)):
        return Resampled(draws, count, ("no_spread",))
    return Resampled(draws, count)


def resampled_interval(parts: Sequence[Resampled]) -> Interval:
    """The interval of the plain mean of independent ratios, or of the only one."""
    import numpy as np

    clusters = sum(part.clusters for part in parts)
    flags = joint_flags([part.flags for part in parts])
    draws = [part.draws for part in parts if part.draws is not None]
    if NONE_FOR.intersection(flags):
        return Interval(method="bootstrap", clusters=clusters, flags=flags)
    spreads = [(float(some.std()), part.clusters - 1.0) for some, part in zip(draws, parts, strict=True)]
    df = satterthwaite(spreads)
    mean = sum(draws[1:], start=draws[0]) / len(draws)
    tail = NormalDist().cdf(-student_t((1 + LEVEL) / 2, df))
    # Rounded, so that the last bits of another processor's sums do not show.
    low, high = (round(float(one), 12) for one in np.quantile(mean, [tail, 1 - tail]))
    return Interval(
        method="bootstrap",
        low=low,
        high=high,
        half=(high - low) / 2,
        se=round(float(mean.std()), 12),
        df=df,
        clusters=clusters,
        flags=(*flags, *few(df)),
    )
