"""The table of every rule metric: a row a metric, because each domain has its own, a column a domain."""

from __future__ import annotations

from agentworldbench.render.names import domain_name, scope
from agentworldbench.render.table import DASH, Table, percent, share
from agentworldbench.render.unread import unread_notes
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.results import MetricMean, Results


def rule_table(results: Results) -> Table:
    """Every metric ([0, 1]) by domain under the headline policy, and the plain mean of the domains that have it."""
    rules, policy = results.rules, results.policy
    names = dict.fromkeys(name for metrics in rules.metrics.values() for name in metrics)
    columns = [*rules.metrics.values(), rules.macro]
    return Table(
        title=f"Rule metrics of {results.model} — {scope(results)}",
        columns=("Metric", *map(domain_name, rules.metrics), "Macro"),
        rows=(
            ("coverage", *(_coverage(one) for one in (*rules.score.values(), rules.micro[RULE_SCORE]))),
            *((name, *(_share(means.get(name), policy) for means in columns)) for name in names),
        ),
        left=("Metric",),
        notes=(
            f"0-1 ({policy}); the reference observation scores 1. {DASH}: no sample of the domain has the metric. Coverage: "
            "scored / all of the samples with a rule score.",
            *unread_notes(rules),
        ),
    )


def _coverage(one: MetricMean) -> str:
    return percent(one.scored / one.n if one.n else None)


def _share(value: MetricMean | None, policy: str) -> str:
    return share(None if value is None else getattr(value, policy))
