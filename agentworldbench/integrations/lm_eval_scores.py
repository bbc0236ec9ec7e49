"""A run's results under the names that lm-eval gives to numbers: `metric,filter` and `metric_stderr,filter`.

In: a `Source`. Out: one flat table of numbers for a domain, and one for the group of all domains. First the judge's
total and dimensions under the headline of its protocol; then the same total under the other failure policy and by the
other reading, so that neither stands alone; then rule score and skill. Scores are 0-100, `coverage` and `skill` are
shares. A number that is not available is `N/A`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from agentworldbench.integrations.export_source import Source, policy_of
from agentworldbench.protocol import Policy
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.intervals import Interval, Intervals
from agentworldbench.stats.results import JudgeResults, MetricMean, Reading, Scores, Skill

Metrics = Mapping[str, float | str]
Reader = Literal["strict", "official", "rules"]
MISSING: Final = "N/A"
_OTHER: Final[dict[Policy, Policy]] = {"exclude": "floor", "floor": "exclude"}


def filter_name(source: Source, judge: JudgeResults | None, reader: Reader, policy: Policy) -> str:
    """`strict-floor` and the like; before it the judge's name where the run has several. Holds no comma, because
    lm-eval parts metric and filter by one."""
    name = f"{reader}-{policy}"
    if judge is None or len(source.record.judges) == 1:
        return name
    return f"{source.names[judge.judge.digest].replace(',', ';')}: {name}"


def domain_metrics(source: Source, domain: str) -> Metrics:
    """The numbers of one domain."""
    found: dict[str, float | str] = {}
    for judge in source.judges:
        for reader, reading in _readings(judge):
            block = reading.domains[domain]
            scores: dict[Policy, Scores] = {"exclude": block.exclude, "floor": block.floor}
            found |= _judged(source, judge, reader, scores, block.intervals)
        name = filter_name(source, judge, judge.judge.parse, policy_of(judge))
        found[f"coverage,{name}"] = judge.domains[domain].coverage
    rules = source.results.rules
    means, intervals = rules.score[domain], rules.intervals.get(domain, Intervals())
    return found | _rules(source, means, intervals, rules.skill.get(domain, Skill()))


def group_metrics(source: Source) -> Metrics:
    """The numbers of all domains: plain means of theirs, and beside the total the mean over samples."""
    found: dict[str, float | str] = {}
    for judge in source.judges:
        for reader, reading in _readings(judge):
            scores: dict[Policy, Scores] = {"exclude": reading.macro_exclude, "floor": reading.macro_floor}
            found |= _judged(source, judge, reader, scores, reading.macro_intervals)
        policy = policy_of(judge)
        name = filter_name(source, judge, judge.judge.parse, policy)
        micro = judge.micro
        value = getattr(micro, policy)["total"]
        found |= _pair("total_micro", name, value, getattr(micro.intervals, policy))
        found[f"coverage,{name}"] = micro.coverage
    rules = source.results.rules
    return found | _rules(source, rules.macro[RULE_SCORE], rules.macro_intervals, rules.overall_skill)


def _readings(judge: JudgeResults) -> Iterator[tuple[Literal["strict", "official"], Reading]]:
    """Both readings of a judge's replies, that of its protocol first."""
    pairs: tuple[tuple[Literal["strict", "official"], Reading], ...]
    pairs = (("strict", judge.strict), ("official", judge.official))
    yield from pairs if judge.judge.parse == "strict" else reversed(pairs)


def _judged(
    source: Source,
    judge: JudgeResults,
    reader: Literal["strict", "official"],
    scores: Mapping[Policy, Scores],
    intervals: Intervals,
) -> dict[str, float | str]:
    """One reading: all columns where it is the headline, else the total; the other policy's total where it is."""
    policy, headline = policy_of(judge), reader == judge.judge.parse
    found: dict[str, float | str] = {}
    for column, value in scores[policy].items():
        if headline or column == "total":
            spread = getattr(intervals, policy) if column == "total" else None
            found |= _pair(column, filter_name(source, judge, reader, policy), value, spread)
    if headline:
        other = _OTHER[policy]
        name = filter_name(source, judge, reader, other)
        found |= _pair("total", name, scores[other]["total"], getattr(intervals, other))
    return found


def _rules(source: Source, score: MetricMean, intervals: Intervals, skill: Skill) -> dict[str, float | str]:
    policy = source.results.policy
    found: dict[str, float | str] = {}
    for one in (policy, _OTHER[policy]):
        value = getattr(score, one)
        name = filter_name(source, None, "rules", one)
        points = None if value is None else 100 * value
        found |= _pair(RULE_SCORE, name, points, getattr(intervals, one), 100)
    name = filter_name(source, None, "rules", policy)
    return found | _pair("skill", name, getattr(skill, policy), getattr(skill.intervals, policy))


def _pair(
    metric: str, name: str, value: float | None, interval: Interval | None, unit: float = 1
) -> dict[str, float | str]:
    """A number with its standard error, which is in points or, times `unit`, made so."""
    se = None if interval is None else interval.se
    return {
        f"{metric},{name}": MISSING if value is None else value,
        f"{metric}_stderr,{name}": MISSING if se is None else unit * se,
    }
