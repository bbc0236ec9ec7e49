"""Counts predictions that rule metrics could not read: their values are 0, and the reason is kept.

In: `RuleResults` and the metrics of samples. Out: the same results with `unparsed` at every mean, and by
domain how many predictions could not be read and why most often. Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agentworldbench.records import SampleMetrics, SampleRef
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.results import MetricMean, RuleResults, Unread


def with_unread(
    rules: RuleResults,
    groups: Mapping[str, Sequence[SampleRef]],
    metrics: Mapping[str, SampleMetrics],
    primary: Mapping[str, Sequence[str]],
) -> RuleResults:
    """`rules` with the counts of what could not be read; a rule score counts the samples in which at least
    one primary metric could not read the prediction."""
    counts: dict[str, Counter[str]] = {}
    unread: dict[str, Unread] = {}
    for domain, refs in groups.items():
        records = [metrics[ref.id] for ref in refs if ref.id in metrics]
        counts[domain] = _counts(records, frozenset(primary[domain]))
        if reasons := Counter(reason for one in records for reason in dict.fromkeys(one.reasons.values())):
            unread[domain] = Unread(
                predictions=sum(one.failed is None for one in records),
                unread=sum(bool(one.reasons) for one in records),
                reason=min(reasons, key=lambda reason: (-reasons[reason], reason)),
            )
    total = sum(counts.values(), Counter())
    return rules.model_copy(
        update={
            "metrics": {domain: _counted(by, counts[domain]) for domain, by in rules.metrics.items()},
            "score": {
                domain: _with(mean, counts[domain][RULE_SCORE]) for domain, mean in rules.score.items()
            },
            "macro": _counted(rules.macro, total),
            "micro": _counted(rules.micro, total),
            "unread": unread,
        }
    )


def _counts(records: Iterable[SampleMetrics], primary: frozenset[str]) -> Counter[str]:
    found = Counter(name for one in records for name in one.reasons)
    found[RULE_SCORE] = sum(bool(primary & one.reasons.keys()) for one in records)
    return found


def _counted(means: Mapping[str, MetricMean], counts: Mapping[str, int]) -> dict[str, MetricMean]:
    return {name: _with(mean, counts.get(name, 0)) for name, mean in means.items()}


def _with(mean: MetricMean, unparsed: int) -> MetricMean:
    return mean.model_copy(update={"unparsed": unparsed})
