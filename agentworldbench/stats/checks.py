"""Population intervals computed two other ways, to see whether the first can be trusted.

In: the score of each sample by domain, with its trajectory and its task. Out: for each domain and their plain
mean the interval as it is reported (clusters are trajectories, Student's t [Liang & Zeger 1986; Cameron & Miller
2015]), the same with all episodes of one task as one cluster, and the one that drawing trajectories again gives
[cluster bootstrap: Efron & Tibshirani 1993; see `bootstrap.py`]. The second is wider where episodes of one task
resemble each other, the third differs where few clusters or outliers leave the t interval a poor guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from agentworldbench.records import Record, SampleRef
from agentworldbench.stats.bootstrap import DRAWS, SEED, Resampled, resample_ratio, resampled_interval
from agentworldbench.stats.intervals import Interval, Sampled, clustered, mean, stratified

WIDER: Final = 1.1
"""By tasks so much wider than by trajectories, an interval is named."""
APART: Final = 0.15
"""A bound of the bootstrap that lies by this share of the half width from the reported one is named."""


class Check(Record):
    """One interval three ways; None where the number itself is not available."""

    reported: Interval | None
    by_task: Interval | None
    bootstrap: Interval | None

    @property
    def wider_by_task(self) -> bool:
        """Whether clusters of tasks make the interval more than a tenth wider, or leave none."""
        one, other = _half(self.reported), _half(self.by_task)
        return one is not None and (other is None or other > WIDER * one)

    @property
    def apart(self) -> bool:
        """Whether a bound of the bootstrap lies elsewhere. With few clusters it does by chance, and the reported
        interval is flagged as rough without it."""
        one, other = self.reported, self.bootstrap
        if one is None or other is None or one.half is None or other.half is None:
            return False
        if "few_clusters" in one.flags:
            return False
        assert one.low is not None and one.high is not None
        assert other.low is not None and other.high is not None
        return max(abs(other.low - one.low), abs(other.high - one.high)) > APART * one.half


class Checks(Record):
    """The headline intervals of one judge, or of the rules, in the unit and under the policy of the headline; the
    bootstrap with `draws` draws from `seed` and the domain's name."""

    policy: Literal["exclude", "floor"]
    draws: int = DRAWS
    seed: int = SEED
    domains: dict[str, Check]
    macro: Check


def interval_checks(
    groups: Mapping[str, Sequence[SampleRef]],
    values: Mapping[str, float],
    policy: Literal["exclude", "floor"],
) -> Checks:
    """Check the intervals of the means of `values` (by sample id: what counts under `policy`)."""
    drawn: list[Resampled] = []
    domains: dict[str, Check] = {}
    means: list[float | None] = []
    for domain, refs in groups.items():
        known = [(ref, values[ref.id]) for ref in refs if ref.id in values]
        trajectories: list[Sampled] = [(ref.cluster, value) for ref, value in known]
        means.append(mean([value for _, value in known]))
        bootstrap = None
        if known:
            drawn.append(resample_ratio(domain, [(cluster, value, 1.0) for cluster, value in trajectories]))
            bootstrap = resampled_interval(drawn[-1:])
        domains[domain] = Check(
            reported=clustered(means[-1], trajectories),
            by_task=clustered(means[-1], [(ref.task_key, value) for ref, value in known]),
            bootstrap=bootstrap,
        )
    some = [one for one in means if one is not None]
    overall = mean(some) if len(some) == len(means) else None
    rows = domains.values()
    return Checks(
        policy=policy,
        domains=domains,
        macro=Check(
            reported=stratified(overall, [one.reported for one in rows]),
            by_task=stratified(overall, [one.by_task for one in rows]),
            bootstrap=resampled_interval(drawn) if drawn and overall is not None else None,
        ),
    )


def _half(interval: Interval | None) -> float | None:
    return None if interval is None else interval.half
