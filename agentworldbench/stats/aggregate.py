"""Aggregation: verdicts and metrics of samples to means of domains and of the whole.

Pure functions. A verdict's score is (mean of its five integers - 1) / 4 x 100, a dimension's
(integer - 1) / 4 x 100 [Qwen-AgentWorld eval/eval.py at cd0aa83]; all columns of a row rest on the
same samples. Failed samples are left out (`exclude`) or count 0 (`floor`). Sums are exact
(`math.fsum`), so the order of records never shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum

from agentworldbench.records import DIMENSIONS, SampleMetrics, SampleRef
from agentworldbench.stats.results import Block, MetricMean, RuleResults, Scores

COLUMNS = ("total", *DIMENSIONS)
RULE_SCORE = "rule_score"
"""Name of the rule score among the overall means."""


def rescaled(scores: Mapping[str, int]) -> dict[str, float]:
    """Five integers 1-5 to 0-100, with their mean as `total`."""
    points = {name: (scores[name] - 1) * 25.0 for name in DIMENSIONS}
    return {"total": fsum(points.values()) / len(DIMENSIONS)} | points


def mean(values: Sequence[float]) -> float | None:
    """Plain mean, or None of nothing."""
    return fsum(values) / len(values) if values else None


def block(
    refs: Sequence[SampleRef], scores: Mapping[str, Mapping[str, int]], pending: Collection[str]
) -> Block:
    """Scores of the samples `refs`; `scores` holds the valid verdicts by sample id.

    Samples in `pending` have not been asked yet: they lower the coverage and no mean.
    """
    points = [rescaled(scores[ref.id]) for ref in refs if ref.id in scores]
    asked = sum(ref.id not in pending for ref in refs)
    sums = {name: fsum(point[name] for point in points) for name in COLUMNS}
    return Block(
        samples=len(refs),
        asked=asked,
        scored=len(points),
        clusters=len({(ref.domain, ref.cluster) for ref in refs}),
        coverage=len(points) / len(refs) if refs else 0.0,
        exclude={name: sums[name] / len(points) if points else None for name in COLUMNS},
        floor={name: sums[name] / asked if points else None for name in COLUMNS},
    )


def macro(domains: Iterable[Scores]) -> Scores:
    """Plain mean of domain means; a column is None when any domain has none."""
    rows = list(domains)
    result: Scores = {}
    for name in COLUMNS:
        values = [row[name] for row in rows]
        known = [value for value in values if value is not None]
        result[name] = mean(known) if len(known) == len(values) else None
    return result


def by_domain(refs: Iterable[SampleRef]) -> dict[str, list[SampleRef]]:
    """References grouped by domain, in the order in which domains first occur."""
    groups: dict[str, list[SampleRef]] = {}
    for ref in refs:
        groups.setdefault(ref.domain, []).append(ref)
    return groups


def rule_results(
    groups: Mapping[str, Sequence[SampleRef]],
    metrics: Mapping[str, SampleMetrics],
    primary: Mapping[str, Sequence[str]],
) -> RuleResults:
    """Means of every metric over the samples it applies to, and the rule score of each domain.

    `metrics` holds one record per asked sample; samples without one are not counted.
    """
    values: dict[str, dict[str, list[float | None]]] = {}
    for domain, refs in groups.items():
        records = [metrics[ref.id] for ref in refs if ref.id in metrics]
        names = dict.fromkeys(name for record in records for name in record.applicable)
        wanted = primary[domain]
        values[domain] = {
            name: [_value(record, (name,)) for record in records if name in record.applicable]
            for name in names
        } | {
            RULE_SCORE: [_value(record, wanted) for record in records if set(wanted) & set(record.applicable)]
        }
    means = {domain: {name: _metric_mean(some) for name, some in by.items()} for domain, by in values.items()}
    all_names = dict.fromkeys(name for by in values.values() for name in by)
    having = {name: [by[name] for by in means.values() if name in by] for name in all_names}
    pooled = {name: [value for by in values.values() for value in by.get(name, [])] for name in all_names}
    return RuleResults(
        metrics={
            domain: {name: by[name] for name in by if name != RULE_SCORE} for domain, by in means.items()
        },
        score={domain: by[RULE_SCORE] for domain, by in means.items()},
        macro={name: _macro(some) for name, some in having.items()},
        micro={name: _metric_mean(some) for name, some in pooled.items()},
    )


def _value(record: SampleMetrics, names: Sequence[str]) -> float | None:
    """Mean of a sample's applicable metrics among `names`; None when the prediction failed."""
    if record.failed is not None:
        return None
    return mean([record.values[name] for name in names if name in record.values])


def _metric_mean(values: Sequence[float | None]) -> MetricMean:
    scored = [value for value in values if value is not None]
    total = fsum(scored)
    return MetricMean(
        n=len(values),
        scored=len(scored),
        exclude=total / len(scored) if scored else None,
        floor=total / len(values) if scored else None,
    )


def _macro(means: Sequence[MetricMean]) -> MetricMean:
    """Plain mean of domain means; not available when any of them is not."""
    known = [(one.exclude, one.floor) for one in means if one.exclude is not None and one.floor is not None]
    whole = len(known) == len(means)
    return MetricMean(
        n=sum(one.n for one in means),
        scored=sum(one.scored for one in means),
        exclude=mean([exclude for exclude, _ in known]) if whole else None,
        floor=mean([floor for _, floor in known]) if whole else None,
    )
