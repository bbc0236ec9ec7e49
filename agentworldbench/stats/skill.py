"""Skill: how much of what copying leaves open a model gets right; and the intervals of rule scores.

In: `RuleResults` and the metrics of samples, which hold what `baseline/copy-last` scores on each. Out: the
same results with intervals and, by domain and overall, skill = (x - b) / (1 - b), where x is the model's rule
score and b that of copy-last over the same samples under the same failure policy. Copying has skill 0, the
reference 1, and it is not clipped: below 0 is worse than copying. Where copying leaves less than `ROOM` open,
skill would be noise and is not available; overall it is the plain mean of the domains, or not available.
The form is that of skill scores in forecasting [Murphy 1988], with persistence as the forecast to beat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentworldbench.records import SampleMetrics, SampleRef
from agentworldbench.stats.aggregate import RULE_SCORE, value_of
from agentworldbench.stats.bootstrap import Resampled, resample_ratio, resampled_interval
from agentworldbench.stats.intervals import (
    Interval,
    Intervals,
    Sampled,
    clustered,
    mean,
    of_strata,
    stratified,
)
from agentworldbench.stats.results import MetricMean, RuleResults, Skill

ROOM: Final = 0.02
"""1 - b below which skill is not available."""


@dataclass(frozen=True)
class Scored:
    """One sample: its trajectory, the model's rule score (None: failed) and copy-last's."""

    cluster: str
    score: float | None
    baseline: float

    @property
    def floor(self) -> Scored:
        """A failed sample counted 0."""
        return Scored(self.cluster, self.score or 0.0, self.baseline)


@dataclass(frozen=True)
class _Domain:
    """One domain under one policy: its samples, skill and copy-last's rule score, and skill in other draws."""

    samples: Sequence[Scored]
    skill: float | None
    baseline: float | None
    resampled: Resampled | None

    @property
    def rule_scores(self) -> list[Sampled]:
        return [(one.cluster, one.score) for one in self.samples if one.score is not None]


def with_skill(
    rules: RuleResults,
    groups: Mapping[str, Sequence[SampleRef]],
    metrics: Mapping[str, SampleMetrics],
    primary: Mapping[str, Sequence[str]],
) -> RuleResults:
    """`rules` with skill, and with intervals of rule scores and skill."""
    excluding: dict[str, _Domain] = {}
    flooring: dict[str, _Domain] = {}
    for domain, refs in groups.items():
        known = [(ref.cluster, metrics[ref.id]) for ref in refs if ref.id in metrics]
        every = [
            Scored(cluster, value_of(record, primary[domain]), _baseline(record, primary[domain]))
            for cluster, record in known
            if set(primary[domain]) & set(record.applicable)
        ]
        some = [one for one in every if one.score is not None]
        score = rules.score[domain]
        excluding[domain] = flooring[domain] = _domain(domain, some, score.exclude)
        if len(some) < len(every):
            flooring[domain] = _domain(domain, [one.floor for one in every], score.floor)
    both = {domain: (excluding[domain], flooring[domain]) for domain in groups}
    intervals = {domain: _intervals(rules.score[domain], *pair) for domain, pair in both.items()}
    macro, micro = rules.macro[RULE_SCORE], rules.micro[RULE_SCORE]
    return rules.model_copy(
        update={
            "intervals": intervals,
            "macro_intervals": Intervals(
                exclude=stratified(macro.exclude, [one.exclude for one in intervals.values()]),
                floor=stratified(macro.floor, [one.floor for one in intervals.values()]),
            ),
            "micro_intervals": Intervals(
                exclude=of_strata(micro.exclude, [one.rule_scores for one in excluding.values()]),
                floor=of_strata(micro.floor, [one.rule_scores for one in flooring.values()]),
            ),
            "skill": {domain: _skill(*pair) for domain, pair in both.items()},
            "overall_skill": _overall(list(excluding.values()), list(flooring.values())),
        }
    )


def skill_of(score: float | None, baseline: float | None) -> float | None:
    """(x - b) / (1 - b); None where either is missing or copying leaves less than `ROOM` open."""
    if score is None or baseline is None or 1 - baseline < ROOM:
        return None
    return (score - baseline) / (1 - baseline)


def _baseline(record: SampleMetrics, names: Sequence[str]) -> float:
    value = mean([record.baseline[name] for name in names if name in record.baseline])
    assert value is not None, "whoever scores a prediction scores the baseline beside it"
    return value


def _domain(name: str, samples: Sequence[Scored], score: float | None) -> _Domain:
    baseline = mean([one.baseline for one in samples])
    skill = skill_of(score, baseline)
    resampled = None
    if skill is not None:
        pairs = [(one.cluster, (one.score or 0.0) - one.baseline, 1 - one.baseline) for one in samples]
        resampled = resample_ratio(name, pairs)
    return _Domain(samples, skill, baseline, resampled)


def _intervals(score: MetricMean, excluding: _Domain, flooring: _Domain) -> Intervals:
    return Intervals(
        exclude=clustered(score.exclude, excluding.rule_scores),
        floor=clustered(score.floor, flooring.rule_scores),
    )


def _skill(excluding: _Domain, flooring: _Domain) -> Skill:
    exclude = _resampled([excluding])
    return Skill(
        exclude=excluding.skill,
        floor=flooring.skill,
        baseline_exclude=excluding.baseline,
        baseline_floor=flooring.baseline,
        intervals=Intervals(
            exclude=exclude, floor=exclude if flooring is excluding else _resampled([flooring])
        ),
    )


def _overall(excluding: Sequence[_Domain], flooring: Sequence[_Domain]) -> Skill:
    means = []
    for domains in (excluding, flooring):
        known = [one.skill for one in domains if one.skill is not None]
        means.append(mean(known) if len(known) == len(domains) else None)
    exclude, floor = (_resampled(domains) for domains in (excluding, flooring))
    return Skill(exclude=means[0], floor=means[1], intervals=Intervals(exclude=exclude, floor=floor))


def _resampled(domains: Sequence[_Domain]) -> Interval | None:
    parts = [one.resampled for one in domains if one.resampled is not None]
    return resampled_interval(parts) if parts and len(parts) == len(domains) else None
