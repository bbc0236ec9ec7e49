"""The first table of a run: what the judges and the rules say, side by side and never mixed, with intervals.

In: `Results`. Out: a row a domain, below them the averages; a column each for the headline of every judge, the
rule score and skill. The tables behind it have the details.
"""

from __future__ import annotations

from agentworldbench.protocol import PROTOCOLS
from agentworldbench.render.checks import check_notes
from agentworldbench.render.names import domain_name, letters, scope
from agentworldbench.render.numbers import Named, in_points, interval_notes, score_cell, skill_cell
from agentworldbench.render.table import DASH, Table, points
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.intervals import Interval, Intervals
from agentworldbench.stats.results import MetricMean, Reading, Results, Scores, Skill
from agentworldbench.stats.skill import ROOM

_AVERAGES = ("Overall, macro", "Overall, micro")
_PANEL = ("By panel", "Panel")
_Column = dict[str, str]
"""A cell for each row, by the row's name."""
_Shown = list[Named]
"""Every interval of the table, with the name of its row."""


def scores_table(results: Results) -> Table:
    """Headline of each judge, rule score (both 0-100) and skill, by domain and on average."""
    shown: _Shown = []
    columns: dict[str, _Column] = {}
    together: list[tuple[str, ...]] = []
    notes = []
    for letter, judge in zip(judge_letters(len(results.judges)), results.judges, strict=True):
        policy = PROTOCOLS[judge.judge.protocol].policy
        names = (f"Judged{letter}", f"Judge{letter}")
        columns |= _reading_columns(judge.headline, policy, names, shown)
        together.append(names)
        name, protocol = results.judge_names[judge.judge.digest], judge.judge.protocol
        notes.append(
            f"Judge{letter}: {name}, protocol {protocol}, 0-100, headline macro, {PROTOCOLS[protocol].policy}."
        )
    if panel := results.panel:
        policy = PROTOCOLS[panel.protocol].policy
        columns |= _reading_columns(panel.reading, policy, _PANEL, shown)
        together.append(_PANEL)
        notes.append(f"Panel: {panel.rule}, protocol {panel.protocol}, 0-100, headline macro, {policy}.")
    rules = _rule_columns(results, shown)
    columns |= rules
    # Beside one judge copying alone follows where there is no room; beside several the rules have a block of their own.
    beside_several = len(together) > 1
    together.append(tuple(rules) if beside_several else ("Scored", "Rule score"))
    notes.append(
        f"Rule score: 0-100 by rules alone ({results.policy}), never part of a judge's score; the reference "
        "observation scores 100, Copy-last is what copying the observation before scores. Skill: 0 is copying, 1 the "
        "reference, below 0 worse than copying."
    )
    rows = [*map(domain_name, results.predictions.samples), *_AVERAGES]
    return Table(
        title=f"Scores of {results.model} — {scope(results)}",
        columns=("Domain", *columns),
        rows=tuple((row, *(column.get(row, DASH) for column in columns.values())) for row in rows),
        left=("Domain",),
        strong=(len(rows) - 2,),
        lead=1 + list(columns).index("Scored" if beside_several else "Copy-last"),
        together=tuple(together),
        notes=(
            *notes,
            *_skill_notes(results),
            *interval_notes(shown),
            *check_notes(results),
            *_rerun_notes(results),
        ),
    )


def judge_letters(count: int) -> list[str]:
    """What the columns of a judge end in."""
    return [f" {letter}".rstrip() for letter in letters(count)]


def _reading_columns(
    reading: Reading, policy: str, names: tuple[str, str], shown: _Shown
) -> dict[str, _Column]:
    """How many samples are scored, and the scores."""
    macro: Scores = getattr(reading, f"macro_{policy}")
    totals = [
        *(
            (domain_name(domain), block, getattr(block, policy)["total"], block.intervals)
            for domain, block in reading.domains.items()
        ),
        (_AVERAGES[0], reading.micro, macro["total"], reading.macro_intervals),
        (_AVERAGES[1], reading.micro, getattr(reading.micro, policy)["total"], reading.micro.intervals),
    ]
    judged, scores = _Column(), _Column()
    for row, block, total, intervals in totals:
        interval = getattr(intervals, policy)
        shown.append((row, in_points(interval)))
        judged[row] = f"{block.scored}/{block.samples}"
        scores[row] = score_cell(total, interval)
    return {names[0]: judged, names[1]: scores}


def _rule_columns(results: Results, shown: _Shown) -> dict[str, _Column]:
    policy = results.policy
    scored, scores, skills, copied = _Column(), _Column(), _Column(), _Column()
    for row, score, intervals, skill in _rule_rows(results):
        interval = getattr(intervals, policy)
        shown.append((row, in_points(interval, 100)))
        scored[row] = f"{score.scored}/{score.n}"
        scores[row] = score_cell(getattr(score, policy), interval, scale=100)
        if skill is not None:
            shown.append((row, getattr(skill.intervals, policy)))
            skills[row] = skill_cell(skill, policy)
            baseline = getattr(skill, f"baseline_{policy}")
            copied[row] = points(None if baseline is None else 100 * baseline)
    return {"Scored": scored, "Rule score": scores, "Skill": skills, "Copy-last": copied}


def _rule_rows(results: Results) -> list[tuple[str, MetricMean, Intervals, Skill | None]]:
    """Name, rule score, its intervals and skill of each row; skill has no micro average."""
    rules = results.rules
    return [
        *(
            (domain_name(domain), score, rules.intervals.get(domain, Intervals()), rules.skill.get(domain))
            for domain, score in rules.score.items()
        ),
        (_AVERAGES[0], rules.macro[RULE_SCORE], rules.macro_intervals, rules.overall_skill),
        (_AVERAGES[1], rules.micro[RULE_SCORE], rules.micro_intervals, None),
    ]


def _rerun_notes(results: Results) -> tuple[str, ...]:
    """How far another run over the same samples may lie, where there were several answers or verdicts."""
    if results.epochs == 1:
        if not results.repeats:
            return ("Interval re-run: not available (one epoch, one repeat); --epochs 2 gives it.",)
        return (
            "Interval re-run: not available with one epoch; repeats of a judge say nothing of another answer.",
        )
    found = []
    for letter, judge in zip(judge_letters(len(results.judges)), results.judges, strict=True):
        interval = getattr(judge.headline.macro_rerun, PROTOCOLS[judge.judge.protocol].policy)
        found.append(f"Judge{letter} ± {_half(interval, 1)}")
    if panel := results.panel:
        interval = getattr(panel.reading.macro_rerun, PROTOCOLS[panel.protocol].policy)
        found.append(f"Panel ± {_half(interval, 1)}")
    found.append(f"Rule score ± {_half(getattr(results.rules.macro_rerun, results.policy), 100)}")
    return (
        f"{results.epochs} epochs, averaged in each sample. Interval re-run (the same samples answered and judged again "
        f"as often), macro: {', '.join(found)}.",
    )


def _half(interval: Interval | None, scale: float) -> str:
    shown = in_points(interval, scale)
    if shown is not None and "no_spread" in shown.flags:
        return f"{DASH} (every epoch scored alike)"
    if shown is not None and "whole_scale" in shown.flags:
        return f"{DASH} (as wide as the scale)"
    return DASH if shown is None or shown.half is None else points(shown.half)


def _skill_notes(results: Results) -> tuple[str, ...]:
    missing = [
        domain_name(domain)
        for domain, one in results.rules.skill.items()
        if getattr(one, results.policy) is None
        and getattr(one, f"baseline_{results.policy}") is not None
        and getattr(results.rules.score[domain], results.policy) is not None
    ]
    if not missing:
        return ()
    return (f"Skill {DASH}: copying leaves less than {100 * ROOM:.0f} % open ({', '.join(missing)}).",)
