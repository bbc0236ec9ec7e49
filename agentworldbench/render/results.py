"""The tables of one run, from its `Results`.

Scores with their intervals (`scores.py`), then the details: judge tables (one a judge), panel and agreement
(`panel.py`), the table of rule metrics (`rules.py`), failures by class. Coverage stands beside every mean; a partial run says so in its
title; a subset of the seven domains says how many.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import FailureKind
from agentworldbench.render.by_domain import by_domain_table
from agentworldbench.render.names import domain_name, scope
from agentworldbench.render.panel import agreement_table, panel_table
from agentworldbench.render.rules import rule_table
from agentworldbench.render.scores import scores_table
from agentworldbench.render.table import DASH, Table, percent, points
from agentworldbench.stats.results import JudgeResults, Results
from agentworldbench.texts import count_text, digest


def run_tables(results: Results) -> list[Table]:
    """All tables of a run, in reading order."""
    tables = [scores_table(results)]
    for judge in results.judges:
        tables += [judge_table(results, judge), readings_table(results, judge)]
    tables += filter(None, (panel_table(results), agreement_table(results)))
    tables.append(rule_table(results))
    return [*tables, *filter(None, (failure_table(results), notes_table(results)))]


def judge_table(results: Results, judge: JudgeResults) -> Table:
    """Scores by domain and dimension under one judge, by the reading and policy of its protocol."""
    served = (
        f" (served as {', '.join(judge.served)})"
        if judge.served and judge.served != (judge.judge.model,)
        else ""
    )
    notes = [
        f"Judge {judge.judge.model}{served}, protocol {judge.judge.protocol}, digest {judge.judge.digest}, "
        f"temperature {judge.judge.sampling.get('temperature', DASH)}, prompts {_prompts(judge)}.",
    ]
    if "diagnostics" in judge.judge.prompts:
        notes.append("With GUI diagnostics: these are not numbers of the official protocol.")
    name = results.judge_names[judge.judge.digest]
    return by_domain_table(
        f"Judge scores of {results.model} by {name} — {scope(results)}",
        judge.headline,
        PROTOCOLS[judge.judge.protocol].policy,
        notes,
    )


def _prompts(judge: JudgeResults) -> str:
    """A short hash of the judge's prompts, those of its domains included."""
    return digest([judge.judge.prompts, judge.judge.system_prompts])[:8]


def readings_table(results: Results, judge: JudgeResults) -> Table:
    """The overall score of one judge under both readings, both failure policies and both averages."""
    rows = []
    for name, reading in (("official", judge.official), ("strict", judge.strict)):
        micro = reading.micro
        means = (reading.macro_exclude, reading.macro_floor, micro.exclude, micro.floor)
        scored = f"{micro.scored}/{micro.samples}"
        rows.append((name, scored, percent(micro.coverage), *(points(mean["total"]) for mean in means)))
    return Table(
        title=f"The same replies, read both ways, by {results.judge_names[judge.judge.digest]}",
        columns=(
            "Reading",
            "Scored",
            "Coverage",
            "Macro exclude",
            "Macro floor",
            "Micro exclude",
            "Micro floor",
        ),
        rows=tuple(rows),
        left=("Reading",),
        together=(("Scored", "Coverage"), ("Macro exclude", "Macro floor"), ("Micro exclude", "Micro floor")),
        strong=(0 if judge.judge.parse == "official" else 1,),
        notes=(
            f"{_differing(judge.differing)} "
            f"Protocol {judge.judge.protocol} is headed by the {judge.judge.parse} reading, macro, "
            f"{PROTOCOLS[judge.judge.protocol].policy}.",
        ),
    )


def _differing(count: int) -> str:
    if not count:
        return "All samples are scored alike."
    return f"{count_text(count, 'sample is', 'samples are')} not scored alike; `awb score RUN --explain` lists them."


def failure_table(results: Results) -> Table | None:
    """Failures by stage and class, a column a domain; None when there is none."""
    rows = _failure_rows("prediction", results.predictions.failures)
    notes = [f"{kind}, for example: {text}" for kind, text in results.predictions.examples.items()]
    for judge in results.judges:
        of_judge = {domain: counts["judge"] for domain, counts in judge.failures.items()}
        name = f"judge {results.judge_names[judge.judge.digest]}"
        rows += _failure_rows(name, of_judge)
        notes += [f"{name}, {kind}, for example: {text}" for kind, text in judge.examples.items()]
    if results.panel:
        of_panel = {domain: counts["judge"] for domain, counts in results.panel.reading.failures.items()}
        rows += _failure_rows("panel", of_panel)
    if any(judge.judge.parse == "official" for judge in results.judges):
        notes.append(
            "Predictions failed by the strict rules; by the official ones only a reply without content does."
        )
    if not rows:
        return None
    domains = tuple(results.predictions.samples)
    return Table(
        title="Failures",
        columns=("Stage", "Class", *(domain_name(domain) for domain in domains), "All"),
        rows=tuple(rows),
        left=("Stage", "Class"),
        notes=tuple(notes),
    )


def notes_table(results: Results) -> Table | None:
    """Warnings, then how often each note stands on a record; None when there is neither."""
    rows = [("warning", text, DASH) for text in results.warnings]
    rows += [("predictions", note, str(count)) for note, count in results.predictions.notes.items()]
    for judge in results.judges:
        name = f"judge {results.judge_names[judge.judge.digest]}"
        rows += [(name, note, str(count)) for note, count in judge.notes.items()]
    if not rows:
        return None
    return Table(
        title="Warnings and notes",
        columns=("About", "Note", "Records"),
        rows=tuple(rows),
        left=("About", "Note"),
        fold=("Note",),
    )


def _failure_rows(stage: str, failures: Mapping[str, Mapping[str, int]]) -> list[tuple[str, ...]]:
    kinds = sorted({kind for counts in failures.values() for kind in counts} - {FailureKind.NOT_RUN.value})
    rows = []
    for kind in kinds:
        counts = [some.get(kind, 0) for some in failures.values()]
        rows.append((stage, kind, *(str(count) for count in counts), str(sum(counts))))
    return rows
