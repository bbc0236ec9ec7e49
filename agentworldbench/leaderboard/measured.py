"""From a run's results to leaderboard entries: one for each judge, or one of rule scores where there is none.

In: `Results` of a complete run, its `RunRecord` for date and commit. Out: entries with status `measured`, under
the headline of each judge's protocol, with intervals, both readings, costs and provenance, and with rule score and
skill beside them. Raises DataError where a run has no overall score to be entered with, or is a subset and
nobody has said that a subset is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add

from agentworldbench.errors import DataError
from agentworldbench.leaderboard.entries import WHOLE, Entry, Group, RuleScores, partial
from agentworldbench.leaderboard.provenance import Costs, EntryJudge, Provenance
from agentworldbench.protocol import PROTOCOLS, Parse, Policy
from agentworldbench.run_record import JudgeRecord, PanelRule, PredictSection, RunRecord
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.costs import together
from agentworldbench.stats.intervals import Interval, Intervals
from agentworldbench.stats.results import FromCache, JudgeResults, PanelResults, Reading, Results
from agentworldbench.texts import count_text, digest


def measured_entries(results: Results, run: RunRecord | None = None, subset: bool = False) -> list[Entry]:
    """The entries of a run, in the order of its judges, then that of their panel. `subset`: samples that are not all of the data are
    entered too, in a group of their own and without a rank."""
    if not results.complete:
        raise DataError(
            "not all samples of the run have been asked; only a whole run is an entry (the command that began it goes on)"
        )
    selection = selection_words(results)
    if selection != WHOLE and not subset:
        merged = "`awb runs merge` puts its parts together; " if results.selection.shard else ""
        raise DataError(
            f"the run is a subset ({selection}); {merged}only a run over the whole data is an entry. --subset enters it "
            "nevertheless, in a table of its own and without a rank"
        )
    if results.judges:
        panel = [_by_panel(results, run, results.panel)] if results.panel else []
        return [*(_judged(results, run, judge) for judge in results.judges), *panel]
    return [_by_rules(results, run)]


def selection_words(results: Results) -> str:
    """`whole`, or which samples a run is about: how many, chosen how, and a digest that only the same choice has."""
    selection = results.selection
    if results.subset is None and not selection.shard:
        return WHOLE
    chosen = {
        name: getattr(selection, name) for name in ("limit", "limit_trajectories", "sample_id", "shard")
    }
    ways = [
        f"limit {selection.limit}" if selection.limit else "",
        f"{count_text(selection.limit_trajectories, 'trajectory', 'trajectories')} a domain"
        if selection.limit_trajectories
        else "",
        "named one by one" if selection.sample_id else "",
        f"shard {selection.shard}" if selection.shard else "",
    ]
    count, total = sum(selection.samples.values()), sum(results.data_samples.values())
    of = f" of {total:,}" if total else ""
    sign = digest([chosen, selection.seed, selection.samples])[:8]
    return f"{count:,}{of} samples, {', '.join(filter(None, ways))} ({sign})"


def rule_scores(results: Results, policy: Policy) -> RuleScores:
    """What the rules say of a run's predictions, under one failure policy."""
    rules = results.rules
    scores = {domain: getattr(mean, policy) for domain, mean in rules.score.items()}
    overall = getattr(rules.macro[RULE_SCORE], policy)
    known = _known(rules.intervals, policy)
    return RuleScores(
        definition=digest({"tasks": results.task_files, "own": results.own_metrics}),
        policy=policy,
        scores={domain: 100 * score for domain, score in scores.items() if score is not None},
        overall=None if overall is None else 100 * overall,
        skill={domain: getattr(skill, policy) for domain, skill in rules.skill.items()},
        overall_skill=getattr(rules.overall_skill, policy),
        interval=_in_points(getattr(rules.macro_intervals, policy)),
        skill_interval=getattr(rules.overall_skill.intervals, policy),
        intervals={domain: one for domain, some in known.items() if (one := _in_points(some)) is not None},
    )


def _judged(results: Results, run: RunRecord | None, judge: JudgeResults) -> Entry:
    readings: dict[Parse, Reading] = {"strict": judge.strict, "official": judge.official}
    group = _group(results, [judge])
    return _headed(results, run, group, [judge], readings)


def _by_panel(results: Results, run: RunRecord | None, panel: PanelResults) -> Entry:
    """The panel is one judge, whatever the order in which its judges were named; it has the reading of their protocol."""
    judges = [one for one in results.judges if one.judge.digest in panel.judges]
    names = ", ".join(sorted(results.judge_names[one] for one in panel.judges))
    group = _group(results, judges).model_copy(
        update={"judge": f"panel: {panel.rule} ({names})", "judge_digest": panel.digest}
    )
    rule = PanelRule(combine=panel.combine, least=panel.least)
    readings = {PROTOCOLS[panel.protocol].parse: panel.reading}
    return _headed(results, run, group, judges, readings).model_copy(update={"panel": rule})


def _headed(
    results: Results,
    run: RunRecord | None,
    group: Group,
    judges: Sequence[JudgeResults],
    readings: dict[Parse, Reading],
) -> Entry:
    """The entry of one judge or panel, headed as its protocol says."""
    protocol = PROTOCOLS[judges[0].judge.protocol]
    policy, head = protocol.policy, readings[protocol.parse]
    overall = (head.macro_floor if policy == "floor" else head.macro_exclude)["total"]
    if overall is None:
        who = (
            f"judge {group.judge}" if len(judges) == 1 else f"the {group.judge}".replace("panel:", "panel", 1)
        )
        alone = "" if len(judges) == 1 else "; --judge MODEL enters one judge alone"
        raise DataError(f"{who} scored no sample of a domain: there is no overall score{alone}")
    return Entry(
        slug=slug_of(results.model, group),
        model=results.model,
        status="measured",
        group=group,
        scores={domain: getattr(block, policy)["total"] for domain, block in head.domains.items()},
        coverage={domain: block.coverage for domain, block in head.domains.items()},
        stated_overall=None,
        computed_overall=overall,
        policy=policy,
        parse=protocol.parse,
        intervals=_known({domain: block.intervals for domain, block in head.domains.items()}, policy),
        overall_interval=getattr(head.macro_intervals, policy),
        readings=readings,
        rules=rule_scores(results, policy),
        costs=_costs(results, judges),
        judges=tuple(
            EntryJudge(judge=one.judge, served=one.served, repeats=results.repeats.get(one.judge.digest, 1))
            for one in judges
        ),
        provenance=provenance(results, run),
    )


def _by_rules(results: Results, run: RunRecord | None) -> Entry:
    rules = rule_scores(results, results.policy)
    if rules.overall is None:
        raise DataError("no prediction of a domain was scored: there is no overall score")
    group = _group(results, [], rules.definition)
    return Entry(
        slug=slug_of(results.model, group),
        model=results.model,
        status="measured",
        group=group,
        scores=rules.scores,
        coverage={domain: mean.scored / mean.n for domain, mean in results.rules.score.items() if mean.n},
        stated_overall=None,
        computed_overall=rules.overall,
        policy=rules.policy,
        intervals=rules.intervals,
        overall_interval=rules.interval,
        rules=rules,
        costs=_costs(results, []),
        provenance=provenance(results, run),
    )


def provenance(results: Results, run: RunRecord | None = None) -> Provenance:
    """Where results come from; without the run's own record the date is when they were computed."""
    last = run.sessions[-1] if run is not None and run.sessions else None
    return Provenance(
        begun=results.made_at if run is None else run.created_at,
        date=results.made_at if last is None else last.started_at,
        harness=results.made_by if last is None else last.harness,
        git_commit=None if last is None else last.git_commit,
        git_dirty=None if last is None else last.git_dirty,
        scored_by=results.made_by,
        predict=results.predict,
        samples=results.selection.samples,
        epochs=results.epochs,
    )


def _costs(results: Results, judges: Sequence[JudgeResults]) -> Costs:
    asked = results.predictions
    return Costs(
        answers=sum(asked.samples.values()),
        predictions=asked.spent,
        predictions_from_cache=asked.from_cache,
        verdicts=together([one.spent for one in judges]) if judges else None,
        verdicts_from_cache=reduce(add, (one.from_cache for one in judges), FromCache()),
    )


def _group(results: Results, judges: Sequence[JudgeResults], definition: str = "") -> Group:
    """The group of one judge, or what all judges of a panel share; without any that of the rules."""
    data = results.predict.data
    first = judges[0].judge if judges else None
    return Group(
        score="judge" if first else "rules",
        data=data.name,
        data_revision=data.revision,
        data_sha256=digest(data.files),
        protocol=first.protocol if first else f"rules {definition[:8]}",
        prompts_sha256=prompts_digest(results.predict, [one.judge for one in judges]),
        judge=first and first.model,
        judge_digest=first and first.digest,
        selection=selection_words(results),
        context_policy=results.predict.context_policy,
        gui_diagnostics=any("diagnostics" in one.judge.prompts for one in judges),
        domains=partial(data.files),
    )


def prompts_digest(predict: PredictSection, judges: Iterable[JudgeRecord]) -> str:
    """One digest over what the model and the judges are told: entries of unlike prompts never share a table."""
    told = sorted(digest([one.prompts, one.system_prompts]) for one in judges)
    return digest({"tasks": predict.tasks, "extraction": predict.extraction, "judges": told})


def slug_of(model: str, group: Group) -> str:
    """Letters, digits and dashes, so that it can name a file; one for each name and group."""
    name = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:100]
    return f"measured-{group.score}-{name}-{digest([model, group.model_dump(mode='json')])[:8]}"


def renamed(entry: Entry, name: str) -> Entry:
    """The entry under the name that is to be shown, with the slug that belongs to it."""
    return Entry.model_validate(entry.model_dump() | {"model": name, "slug": slug_of(name, entry.group)})


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
