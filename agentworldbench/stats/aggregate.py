"""Aggregation: verdicts and metrics of samples to means of domains and of the whole.

Pure functions. A verdict has values from 1 to 5 by column, its five integers and their mean as `total`;
a column's score is (mean of the values - 1) / 4 x 100, in the arithmetic of the official script
[Qwen-AgentWorld eval/eval.py at cd0aa83], so that the same decimals are printed. Failed samples are left
out (`exclude`) or count 0 (`floor`). Sums are exact, so the order of records never shows.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum

from agentworldbench.records import DIMENSIONS, SampleMetrics, SampleRef
from agentworldbench.stats.intervals import Intervals, mean, of_strata, stratified
from agentworldbench.stats.results import Block, MetricMean, RuleResults, Scores

COLUMNS = ("total", *DIMENSIONS)
RULE_SCORE = "rule_score"
"""Name of the rule score among the overall means."""


def strict_values(scores: Mapping[str, int]) -> dict[str, float]:
    """The values of a strict verdict: five integers 1-5, and their mean as `total`."""
    return {"total": sum(scores[name] for name in DIMENSIONS) / len(DIMENSIONS)} | {
        name: scores[name] for name in DIMENSIONS
    }


def official_values(scores: Mapping[str, int], total: float) -> dict[str, float]:
    """An official verdict's values other than 0: a 0 stands for no value and leaves the mean.

    They can be outside 1-5, and scores made of them outside 0-100, as in the official code.
    """
    values = {"total": total} | {name: scores[name] for name in DIMENSIONS}
    return {name: value for name, value in values.items() if value != 0}


def score_of(values: Sequence[float]) -> float | None:
    """The score, 0-100, of a column's values from 1 to 5; None of nothing."""
    return (statistics.mean(values) - 1) / 4 * 100 if values else None


def block(
    refs: Sequence[SampleRef], values: Mapping[str, Mapping[str, float]], pending: Collection[str]
) -> Block:
    """Scores of the samples `refs`; `values` holds those of the valid verdicts by sample id and column.

    A strict verdict has all columns; an official one can lack some, which then rest on fewer
    samples. Samples in `pending` have not been asked yet: they lower the coverage and no mean.
    """
    rows = [values[ref.id] for ref in refs if ref.id in values]
    asked = sum(ref.id not in pending for ref in refs)
    columns = {name: [row[name] for row in rows if name in row] for name in COLUMNS}
    exclude = {name: score_of(some) for name, some in columns.items()}
    floor = {
        name: None if score is None else score * (len(columns[name]) / asked)
        for name, score in exclude.items()
    }
    strata = by_domain(refs).values()

    def around(column: str) -> Intervals:
        known = {name: point_score(row[column]) for name, row in values.items() if column in row}
        scored = [[(ref.cluster, known[ref.id]) for ref in some if ref.id in known] for some in strata]
        zeros = [
            [(ref.cluster, known.get(ref.id, 0.0)) for ref in some if ref.id not in pending]
            for some in strata
        ]
        return Intervals(exclude=of_strata(exclude[column], scored), floor=of_strata(floor[column], zeros))

    return Block(
        samples=len(refs),
        asked=asked,
        scored=len(rows),
        clusters=len({(ref.domain, ref.cluster) for ref in refs}),
        coverage=len(rows) / len(refs) if refs else 0.0,
        exclude=exclude,
        floor=floor,
        intervals=around("total"),
        dimension_intervals={name: around(name) for name in DIMENSIONS},
    )


def point_score(value: float) -> float:
    """The score, 0-100, of one value from 1 to 5."""
    return (value - 1) / 4 * 100


def macro_intervals(blocks: Iterable[Block]) -> Intervals:
    """The intervals of the macro means of the totals."""
    rows = list(blocks)
    return _of_macro("total", rows, [one.intervals for one in rows])


def macro_dimension_intervals(blocks: Iterable[Block]) -> dict[str, Intervals]:
    """The intervals of the macro means of the dimensions."""
    rows = list(blocks)
    parts = {name: [one.dimension_intervals.get(name, Intervals()) for one in rows] for name in DIMENSIONS}
    return {name: _of_macro(name, rows, some) for name, some in parts.items()}


def _of_macro(column: str, rows: Sequence[Block], parts: Sequence[Intervals]) -> Intervals:
    return Intervals(
        exclude=stratified(macro(one.exclude for one in rows)[column], [one.exclude for one in parts]),
        floor=stratified(macro(one.floor for one in rows)[column], [one.floor for one in parts]),
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
            name: [value_of(record, (name,)) for record in records if name in record.applicable]
            for name in names
        } | {
            RULE_SCORE: [
                value_of(record, wanted) for record in records if set(wanted) & set(record.applicable)
            ]
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


def value_of(record: SampleMetrics, names: Sequence[str]) -> float | None:
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
