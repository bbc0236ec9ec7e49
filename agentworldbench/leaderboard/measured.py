"""From a run's results to leaderboard entries: one for each judge, or one of rule scores where there is none.

In: `Results` of a complete run. Out: entries with status `measured`, under the headline of each judge's
protocol, with intervals, and with rule score and skill beside them. Raises DataError where a run has no
overall score to be entered with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from agentworldbench.errors import DataError
from agentworldbench.leaderboard.entries import Entry, Group, RuleScores
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.intervals import Interval, Intervals
from agentworldbench.stats.results import JudgeResults, PanelResults, Results
from agentworldbench.texts import digest

Policy = Literal["exclude", "floor"]


def measured_entries(results: Results) -> list[Entry]:
    """The entries of a run, in the order of its judges, then that of their panel."""
    if not results.complete:
        raise DataError("not all samples of the run have been asked; only a whole run is an entry")
    if results.judges:
        judged = [_judged(results, judge) for judge in results.judges]
        return [*judged, *([_by_panel(results, results.panel, judged[0])] if results.panel else [])]
    return [_by_rules(results)]


def rule_scores(results: Results, policy: Policy) -> RuleScores:
    """What the rules say of a run's predictions, under one failure policy."""
    rules = results.rules
    scores = {domain: getattr(mean, policy) for domain, mean in rules.score.items()}
    overall = getattr(rules.macro[RULE_SCORE], policy)
    return RuleScores(
        definition=digest({"tasks": results.task_files, "own": results.own_metrics}),
        policy=policy,
        scores={domain: 100 * score for domain, score in scores.items() if score is not None},
        overall=None if overall is None else 100 * overall,
        skill={domain: getattr(skill, policy) for domain, skill in rules.skill.items()},
        overall_skill=getattr(rules.overall_skill, policy),
        interval=_in_points(getattr(rules.macro_intervals, policy)),
        skill_interval=getattr(rules.overall_skill.intervals, policy),
    )


def _judged(results: Results, judge: JudgeResults) -> Entry:
    policy = PROTOCOLS[judge.judge.protocol].policy
    macro = judge.macro_floor if policy == "floor" else judge.macro_exclude
    overall = macro["total"]
    if overall is None:
        raise DataError(f"judge {judge.judge.model} scored no sample of a domain: there is no overall score")
    blocks, group = judge.domains, _group(results, judge)
    scores = {domain: getattr(block, policy)["total"] for domain, block in blocks.items()}
    return Entry(
        slug=_slug(results, group),
        model=results.model,
        status="measured",
        group=group,
        scores=scores,
        coverage={domain: block.coverage for domain, block in blocks.items()},
        stated_overall=None,
        computed_overall=overall,
        intervals=_known({domain: block.intervals for domain, block in blocks.items()}, policy),
        overall_interval=getattr(judge.macro_intervals, policy),
        rules=rule_scores(results, policy),
    )


def _by_panel(results: Results, panel: PanelResults, judged: Entry) -> Entry:
    """The panel's entry: that of one of its judges, who share data and protocol, with the panel's numbers. Its group
    is the same whatever the order in which the judges were named."""
    policy, reading = PROTOCOLS[panel.protocol].policy, panel.reading
    macro = reading.macro_floor if policy == "floor" else reading.macro_exclude
    if macro["total"] is None:
        raise DataError(f"the panel ({panel.rule}) scored no sample of a domain: there is no overall score")
    names = ", ".join(sorted(results.judge_names[one] for one in panel.judges))
    group = judged.group.model_copy(
        update={"judge": f"panel: {panel.rule} ({names})", "judge_digest": panel.digest}
    )
    blocks = reading.domains
    numbers = {
        "slug": _slug(results, group),
        "group": group,
        "scores": {domain: getattr(block, policy)["total"] for domain, block in blocks.items()},
        "coverage": {domain: block.coverage for domain, block in blocks.items()},
        "computed_overall": macro["total"],
        "intervals": _known({domain: block.intervals for domain, block in blocks.items()}, policy),
        "overall_interval": getattr(reading.macro_intervals, policy),
    }
    return judged.model_copy(update=numbers)


def _by_rules(results: Results) -> Entry:
    rules = rule_scores(results, results.policy)
    if rules.overall is None:
        raise DataError("no prediction of a domain was scored: there is no overall score")
    known = _known(results.rules.intervals, results.policy)
    group = _group(results, None, rules.definition)
    return Entry(
        slug=_slug(results, group),
        model=results.model,
        status="measured",
        group=group,
        scores=rules.scores,
        coverage={domain: mean.scored / mean.n for domain, mean in results.rules.score.items() if mean.n},
        stated_overall=None,
        computed_overall=rules.overall,
        intervals={domain: one for domain, some in known.items() if (one := _in_points(some)) is not None},
        overall_interval=rules.interval,
        rules=rules,
    )


def _group(results: Results, judge: JudgeResults | None, definition: str = "") -> Group:
    data = results.predict.data
    return Group(
        score="rules" if judge is None else "judge",
        data=data.name,
        data_revision=data.revision,
        data_sha256=digest(data.files),
        protocol=f"rules {definition[:8]}" if judge is None else judge.judge.protocol,
        judge=None if judge is None else judge.judge.model,
        judge_digest=None if judge is None else judge.judge.digest,
    )


def _slug(results: Results, group: Group) -> str:
    """Letters, digits and dashes, so that it can name a file; one for each model and group."""
    name = re.sub(r"[^a-z0-9]+", "-", results.model.lower()).strip("-")
    return f"measured-{group.score}-{name}-{digest([results.model, group.model_dump(mode='json')])[:8]}"


def _known(intervals: Mapping[str, Intervals], policy: Policy) -> dict[str, Interval]:
    found = {domain: getattr(one, policy) for domain, one in intervals.items()}
    return {domain: one for domain, one in found.items() if one is not None}


def _in_points(interval: Interval | None) -> Interval | None:
    """An interval of a rule score, from [0, 1] to 0-100."""
    if interval is None:
        return None
    fields = ("low", "high", "half", "se")
    values = {name: getattr(interval, name) for name in fields}
    return interval.model_copy(
        update={name: 100 * value for name, value in values.items() if value is not None}
    )
