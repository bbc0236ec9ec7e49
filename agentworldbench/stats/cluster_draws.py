"""Intervals of numbers that are computed from sums over clusters, by drawing whole clusters again.

In: one row of sums for each cluster. Out: the sums of every draw, from which the caller computes its number,
and the `Interval` of what it found. The bootstrap is that of `bootstrap.py`, which has it for ratios of two
sums: G-1 of G clusters with replacement, percentiles as far out as Student's t has its tails, seeded by name.
A number that is undefined in a single draw has no interval: what draws leave undefined is no accident of the
draws but a sign that the number hangs on few clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentworldbench.stats.bootstrap import DRAWS, LEAST, Resampled, resampled_interval, seeded
from agentworldbench.stats.intervals import Interval, is_nothing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE: Final = 500


def drawn_sums(name: str, sums: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Sums over clusters (rows of `sums`) in `DRAWS` draws, `_AT_ONCE` draws at a time; `name` seeds them.

    Nothing is drawn from fewer than `LEAST` clusters.
    """
    import numpy as np

    if len(sums) < LEAST:
        return
    for times in _times(name, len(sums)):
        yield times.astype(np.float64) @ sums


@lru_cache(maxsize=1)  # the columns of one verdict are drawn alike, one after the other
def _times(name: str, count: int) -> tuple[NDArray[np.uint16], ...]:
    """How often each of `count` clusters is in each draw."""
    import numpy as np

    random = seeded(name)
    offsets = count * np.arange(_AT_ONCE)[:, None]
    found = []
    for _ in range(0, DRAWS, _AT_ONCE):
        chosen = random.integers(0, count, size=(_AT_ONCE, count - 1)) + offsets
        times = np.bincount(chosen.ravel(), minlength=_AT_ONCE * count).reshape(_AT_ONCE, count)
        found.append(times.astype(np.uint16))
    return tuple(found)


def drawn_interval(draws: NDArray[np.float64], clusters: int) -> Interval:
    """The interval of a number from its value in every draw, NaN where a draw leaves it undefined."""
    import numpy as np

    if clusters < LEAST:
        some = Resampled(None, clusters, ("one_cluster" if clusters == 1 else "too_few_clusters",))
    elif np.isnan(draws).any():
        some = Resampled(None, clusters, ("unstable",))
    elif is_nothing(float(draws.std()), (float(abs(draws).max()),)):
        some = Resampled(draws, clusters, ("no_spread",))
    else:
        some = Resampled(draws, clusters)
    return resampled_interval([some])
