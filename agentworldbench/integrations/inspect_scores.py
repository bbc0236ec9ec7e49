"""A run's results as the scores of an Inspect log.

In: a `Source`, and the summaries of the samples in the log. Out: one `EvalScore` a column of a judge (`total` and
the five dimensions, 0-100) and a rule metric (0-1), whose metrics are our means: `macro_floor`, `macro_exclude`,
`micro_floor`, `micro_exclude`, the standard error and bounds of the interval of the headline, and the domains in
groups; and the reductions, each sample's mean over its epochs. A number that is not available is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from agentworldbench.integrations.export_source import Source, policy_of
from agentworldbench.integrations.inspect_samples import RULES, Object, scorer_name
from agentworldbench.protocol import Policy
from agentworldbench.stats.aggregate import COLUMNS, RULE_SCORE
from agentworldbench.stats.intervals import Interval, Intervals, mean
from agentworldbench.stats.results import JudgeResults, MetricMean

POLICIES: tuple[Policy, Policy] = ("floor", "exclude")


def eval_scores(source: Source, summaries: list[Object]) -> list[Object]:
    """All scores, the headline first."""
    scores = [one for judge in source.judges for one in _judged(source, judge, summaries)]
    return scores + list(_by_rules(source, summaries))


def reductions(source: Source, summaries: list[Object]) -> list[Object]:
    """For each scorer the samples with their values averaged over epochs, failed ones left out."""
    names = [scorer_name(source, one) for one in source.judges] + [RULES]
    return [{"scorer": name, "reducer": "mean", "samples": list(_reduced(name, summaries))} for name in names]


def _reduced(scorer: str, summaries: list[Object]) -> Iterator[Object]:
    values: dict[str, list[Mapping[str, float | None]]] = {}
    for one in summaries:
        if scorer in one["scores"]:
            values.setdefault(one["id"], []).append(one["scores"][scorer]["value"])
    for sample_id, some in values.items():
        columns = dict.fromkeys(name for value in some for name in value)
        means = {
            name: mean([known for value in some if (known := value.get(name)) is not None])
            for name in columns
        }
        yield {"sample_id": sample_id, "value": means, "history": []}


def _judged(source: Source, judge: JudgeResults, summaries: list[Object]) -> Iterator[Object]:
    headline, policy = judge.headline, policy_of(judge)
    name = scorer_name(source, judge)
    for column in COLUMNS:
        metrics: dict[str, Object] = {}
        macro = {"floor": headline.macro_floor, "exclude": headline.macro_exclude}
        _put(metrics, f"macro_{policy}", macro[policy][column])
        if column == "total":
            _put_interval(metrics, headline.macro_intervals, policy)
        for one in _ordered(policy):
            _put(metrics, f"macro_{one}", macro[one][column])
            _put(metrics, f"micro_{one}", getattr(headline.micro, one)[column])
        if column == "total":
            _put(metrics, "coverage", headline.micro.coverage)
        for domain, block in headline.domains.items():
            for one in _ordered(policy):
                _put(metrics, f"{domain}_{one}", getattr(block, one)[column], domain, one)
            if column == "total":
                _put(metrics, f"{domain}_stderr", _se(block.intervals, policy), domain, "stderr")
                _put(metrics, f"{domain}_coverage", block.coverage, domain, "coverage")
        about = {
            "model": judge.judge.model,
            "digest": judge.judge.digest,
            "protocol": judge.judge.protocol,
            "reading": judge.judge.parse,
            "policy": policy,
        }
        yield _score(column, name, metrics, summaries, about)


def _by_rules(source: Source, summaries: list[Object]) -> Iterator[Object]:
    rules, policy = source.results.rules, source.results.policy
    names = dict.fromkeys((RULE_SCORE, *rules.macro))
    for name, macro in ((name, rules.macro[name]) for name in names):
        metrics: dict[str, Object] = {}
        _put_mean(metrics, "macro", macro, policy)
        _put_mean(metrics, "micro", rules.micro[name], policy)
        if name == RULE_SCORE:
            _put_interval(metrics, rules.macro_intervals, policy)
            _put(metrics, "skill", getattr(rules.overall_skill, policy))
        for domain in source.groups:
            found = rules.score.get(domain) if name == RULE_SCORE else rules.metrics[domain].get(name)
            if found is not None:
                _put_mean(metrics, domain, found, policy, domain)
        yield _score(name, RULES, metrics, summaries, {"policy": policy})


def _ordered(policy: Policy) -> tuple[Policy, ...]:
    """Both policies, that of the headline first."""
    return POLICIES if policy == "floor" else tuple(reversed(POLICIES))


def _score(
    name: str, scorer: str, metrics: Mapping[str, Object], summaries: list[Object], about: Object
) -> Object:
    values = [one["scores"][scorer]["value"].get(name) for one in summaries if scorer in one["scores"]]
    scored = sum(value is not None for value in values)
    return {
        "name": name,
        "scorer": scorer,
        "reducer": "mean",
        "scored_samples": scored,
        "unscored_samples": len(summaries) - scored,
        "params": {},
        "metrics": metrics,
        "metadata": about,
    }


def _put(
    metrics: dict[str, Object],
    name: str,
    value: float | None,
    group: str | None = None,
    leaf: str | None = None,
) -> None:
    if value is not None:
        metrics[name] = {"name": leaf or name, "group": group, "value": value, "params": {}}


def _put_mean(
    metrics: dict[str, Object], name: str, found: MetricMean, policy: Policy, group: str | None = None
) -> None:
    for one in _ordered(policy):
        _put(metrics, f"{name}_{one}", getattr(found, one), group, one if group else None)


def _put_interval(metrics: dict[str, Object], intervals: Intervals, policy: Policy) -> None:
    """Standard error and 95 % bounds of the headline."""
    found: Interval | None = getattr(intervals, policy)
    bounds: tuple[Literal["low", "high"], ...] = ("low", "high")
    _put(metrics, "stderr", _se(intervals, policy))
    for bound in bounds:
        _put(metrics, f"ci95_{bound}", None if found is None else getattr(found, bound))


def _se(intervals: Intervals, policy: Policy) -> float | None:
    found: Interval | None = getattr(intervals, policy)
    return None if found is None else found.se
