"""Numbers of samples that were answered or judged several times, and how far another such run may lie.

In: of each sample what its epochs scored. Out: `Block`s and `RuleResults` in which each sample weighs the same, its
epochs averaged first, and the interval `re-run`: the same samples, answered and judged once more as often as here.
What failures do is the rule of `panel.py`, for one judge as for several. A sample's epochs are independent answers, each
with verdicts of its own, so that their spread holds the generation's part and the judge's:

    V = sum over samples of s^2 / E / n^2        [Cochran 1977, 5.3: samples are strata, each with epochs of its own]

with s^2 the variance of a sample's E epochs (where it has but one, that of the others, pooled). Degrees of freedom
after Satterthwaite [1946], corrected for samples of few epochs [Ames & Webster 1991]. With one epoch there is no such
interval: repeats of a judge alone do not tell how another answer would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import variance

from agentworldbench.records import DIMENSIONS, SampleMetrics, SampleRef
from agentworldbench.stats.aggregate import COLUMNS, RULE_SCORE, by_domain, rule_results, value_of
from agentworldbench.stats.intervals import (
    Interval,
    Intervals,
    around,
    is_nothing,
    mean,
    of_strata,
    stratified,
)
from agentworldbench.stats.panel import Judged, Panel, PanelScore, panel_score
from agentworldbench.stats.results import Block, MetricMean, PanelCounts, RuleResults, Skill
from agentworldbench.stats.skill import with_skill
from agentworldbench.stats.unread import with_unread

Primary = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class SampleScore:
    """What one sample counts, 0-100, its epochs averaged; None where it failed, and `failure` says how. `scored` is the
    share of its answers that have a score."""

    value: float | None
    failure: str | None = None
    scored: float = 1.0


@dataclass(frozen=True)
class SampleEpochs:
    """One sample: its score, and the total of each epoch under both policies (0-100)."""

    score: PanelScore
    exclude: tuple[float, ...]
    floor: tuple[float, ...]


def sample_epochs(panel: Panel, epochs: Sequence[Judged]) -> SampleEpochs:
    """A panel's score of a sample from all its epochs; one judge is a panel of one."""
    each = [panel_score(panel, [one]) for one in epochs]
    return SampleEpochs(
        panel_score(panel, epochs),
        tuple(value for one in each if (value := one.exclude["total"]) is not None),
        tuple(value for one in each if (value := one.floor["total"]) is not None),
    )


def epochs_block(refs: Sequence[SampleRef], samples: Mapping[str, SampleEpochs]) -> Block:
    """Scores of the samples `refs`, of one domain or several."""
    mine = [samples[ref.id] for ref in refs]
    exclude = {
        name: mean([v for one in mine if (v := one.score.exclude[name]) is not None]) for name in COLUMNS
    }
    floor = {name: mean([v for one in mine if (v := one.score.floor[name]) is not None]) for name in COLUMNS}
    # As for a single answer: nothing is available, not even 0, without a scored sample.
    floor = {name: None if exclude[name] is None else value for name, value in floor.items()}
    counts = sum((one.score.counts for one in mine), PanelCounts())
    strata = [[(ref.cluster, samples[ref.id].score) for ref in some] for some in by_domain(refs).values()]

    def around_column(column: str) -> Intervals:
        excluded = [
            [(c, value) for c, one in some if (value := one.exclude[column]) is not None] for some in strata
        ]
        floored = [
            [(c, value) for c, one in some if (value := one.floor[column]) is not None] for some in strata
        ]
        return Intervals(
            exclude=of_strata(exclude[column], excluded), floor=of_strata(floor[column], floored)
        )

    return Block(
        samples=len(refs),
        asked=sum(one.score.floor["total"] is not None for one in mine),
        scored=sum(one.score.counts.scored > 0 for one in mine),
        clusters=len({(ref.domain, ref.cluster) for ref in refs}),
        coverage=counts.scored / counts.predictions if counts.predictions else 0.0,
        exclude=exclude,
        floor=floor,
        intervals=around_column("total"),
        dimension_intervals={name: around_column(name) for name in DIMENSIONS},
        rerun=Intervals(
            exclude=rerun(exclude["total"], [one.exclude for one in mine]),
            floor=rerun(floor["total"], [one.floor for one in mine]),
        ),
    )


def rerun(estimate: float | None, samples: Iterable[Sequence[float]]) -> Interval | None:
    """The interval `re-run` of a mean over samples, from each one's values by epoch; None with one epoch only.

    `clusters` counts the samples, which are what varies independently.
    """
    some = [values for values in samples if values]
    known = [values for values in some if len(values) > 1]
    if estimate is None or not known:
        return None
    count, free = len(some), sum(len(values) - 1 for values in known)
    pooled = fsum((len(values) - 1) * variance(values) for values in known) / free
    spread = sorted((variance(values) if len(values) > 1 else pooled) / len(values) for values in some)
    se = sqrt(fsum(spread)) / count
    if is_nothing(se, (value for values in some for value in values)):
        return Interval(kind="re-run", method="clustered", clusters=count, flags=("no_spread",))
    terms = [(variance(values) / len(values), len(values) - 1) for values in known]
    whole = fsum(term for term, _ in terms)
    df = whole**2 / fsum(term**2 / (one + 2) for term, one in terms) - 2
    df = min(max(df, min(one for _, one in terms)), free)
    return around(estimate, se, df, count, "clustered").model_copy(update={"kind": "re-run"})


def macro_rerun(estimate: float | None, parts: Sequence[Interval | None]) -> Interval | None:
    """The interval `re-run` of a plain mean of domains."""
    found = stratified(estimate, parts)
    return None if found is None else found.model_copy(update={"kind": "re-run"})


def run_rules(
    groups: Mapping[str, Sequence[SampleRef]],
    metrics: Mapping[str, Sequence[SampleMetrics]],
    primary: Primary,
) -> RuleResults:
    """All numbers by rules; `metrics` holds a record an epoch of each sample that has been asked."""
    excluding = _results(groups, {name: average(some, False) for name, some in metrics.items()}, primary)
    if all(len(some) == 1 for some in metrics.values()):
        return excluding
    flooring = _results(groups, {name: average(some, True) for name, some in metrics.items()}, primary)
    both = _joined(excluding, flooring)
    by_epoch = {domain: _by_epoch(refs, metrics, primary[domain]) for domain, refs in groups.items()}
    score, macro, micro = both.score, both.macro[RULE_SCORE], both.micro[RULE_SCORE]
    domains = {domain: _reruns(score[domain], some) for domain, some in by_epoch.items()}
    return both.model_copy(
        update={
            "rerun": domains,
            "macro_rerun": Intervals(
                exclude=macro_rerun(macro.exclude, [one.exclude for one in domains.values()]),
                floor=macro_rerun(macro.floor, [one.floor for one in domains.values()]),
            ),
            "micro_rerun": _reruns(micro, [one for some in by_epoch.values() for one in some]),
        }
    )


def _results(
    groups: Mapping[str, Sequence[SampleRef]], metrics: Mapping[str, SampleMetrics], primary: Primary
) -> RuleResults:
    counted = with_unread(rule_results(groups, metrics, primary), groups, metrics, primary)
    return with_skill(counted, groups, metrics, primary)


def average(records: Sequence[SampleMetrics], floor: bool) -> SampleMetrics:
    """A sample's epochs as one record: the mean of those that did not fail, or of all with 0 for those that did.

    It failed where all did; a metric could not read it where it could not read one of them.
    """
    good = [one for one in records if one.failed is None]
    if len(records) == 1 or not good:
        return records[0]
    count = len(records) if floor else len(good)
    values = {name: fsum(one.values[name] for one in good) / count for name in good[0].values}
    reasons = {name: reason for one in reversed(good) for name, reason in one.reasons.items()}
    return good[0].model_copy(update={"values": values, "reasons": reasons})


def rule_score(records: Sequence[SampleMetrics], floor: bool) -> SampleScore | None:
    """The rule score of a sample from its epochs; None where no primary metric applies, so that it counts nowhere."""
    record = average(records, floor)
    if not record.baseline:
        return None
    if record.failed is not None:
        return SampleScore(None, record.failed.value, scored=0.0)
    value = mean([record.values[name] for name in record.baseline if name in record.values])
    return None if value is None else SampleScore(100 * value)


def _joined(excluding: RuleResults, flooring: RuleResults) -> RuleResults:
    """What stands under `exclude` from one, what stands under `floor` from the other."""

    def means(one: Mapping[str, MetricMean], other: Mapping[str, MetricMean]) -> dict[str, MetricMean]:
        return {name: each.model_copy(update={"floor": other[name].floor}) for name, each in one.items()}

    def pair(one: Intervals, other: Intervals) -> Intervals:
        return Intervals(exclude=one.exclude, floor=other.floor)

    def skill(one: Skill, other: Skill) -> Skill:
        known = {"floor": other.floor, "baseline_floor": other.baseline_floor}
        return one.model_copy(update=known | {"intervals": pair(one.intervals, other.intervals)})

    return excluding.model_copy(
        update={
            "metrics": {
                name: means(some, flooring.metrics[name]) for name, some in excluding.metrics.items()
            },
            "score": means(excluding.score, flooring.score),
            "macro": means(excluding.macro, flooring.macro),
            "micro": means(excluding.micro, flooring.micro),
            "intervals": {
                name: pair(one, flooring.intervals[name]) for name, one in excluding.intervals.items()
            },
            "macro_intervals": pair(excluding.macro_intervals, flooring.macro_intervals),
            "micro_intervals": pair(excluding.micro_intervals, flooring.micro_intervals),
            "skill": {name: skill(one, flooring.skill[name]) for name, one in excluding.skill.items()},
            "overall_skill": skill(excluding.overall_skill, flooring.overall_skill),
        }
    )


def _by_epoch(
    refs: Sequence[SampleRef], metrics: Mapping[str, Sequence[SampleMetrics]], wanted: Sequence[str]
) -> list[list[float | None]]:
    """Rule scores of each sample that has one, by epoch (None: failed)."""
    known = [metrics[ref.id] for ref in refs if ref.id in metrics]
    return [
        [value_of(one, wanted) for one in some] for some in known if set(wanted) & set(some[0].applicable)
    ]


def _reruns(mean: MetricMean, samples: Sequence[Sequence[float | None]]) -> Intervals:
    return Intervals(
        exclude=rerun(mean.exclude, [[value for value in some if value is not None] for some in samples]),
        floor=rerun(mean.floor, [[value or 0.0 for value in some] for some in samples]),
    )
