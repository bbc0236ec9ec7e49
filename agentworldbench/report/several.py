"""The page above the reports of several runs: side by side what may be compared, and nothing else.

In: results with the folders of their reports. Out: `index.html` with a table for each set of runs of equal data, samples, tasks and
judge (or rules), in the order in which the runs were named, without ranks: whether two runs differ is a question to the samples that they
share, which `awb compare` asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentworldbench.protocol import PROTOCOLS
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.names import domain_name, scope
from agentworldbench.render.numbers import PLUS_MINUS, score_cell
from agentworldbench.render.plots import Plot, Series, Value, intervals
from agentworldbench.render.shell import Site
from agentworldbench.render.table import percent
from agentworldbench.report.contents import RunGroup, RunLine
from agentworldbench.resources import asset
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.intervals import Interval, Intervals
from agentworldbench.stats.results import Results
from agentworldbench.texts import digest

RUNS_FILES: Final = ("index.html", "style.css", "theme.js", "script.js")
"""What stands beside the folders of the runs."""
_DRAWN: Final = 4
"""Runs that a plot tells apart."""


@dataclass(frozen=True)
class _Side:
    """One run by one measure: scores 0-100 with intervals by domain, the macro mean last."""

    folder: str
    results: Results
    values: tuple[tuple[float | None, Interval | None], ...]
    coverage: float


def write_runs_page(folder: Path, runs: Sequence[tuple[str, Results]]) -> None:
    """Write the page and its files."""
    site = Site(asset("reports", "templates"), ["plots"])
    title = f"Reports of {len(runs)} runs"
    text = site.page("runs", title, groups=run_groups(runs), count=len(runs), note=PLUS_MINUS, canary=CANARY)
    for name, content in {"index.html": text, **site.files}.items():
        (folder / name).write_text(content, encoding="utf-8", errors="replace", newline="\n")


def run_groups(runs: Sequence[tuple[str, Results]]) -> list[RunGroup]:
    """The tables: by each judge, then by rules. A run stands in as many as it has judges, and in one of rules."""
    found: dict[str, list[_Side]] = {}
    names: dict[str, tuple[str, str, str]] = {}
    for folder, results in runs:
        for name, judge, key, side in _sides(folder, results):
            names.setdefault(key, (name, judge, scope(results)))
            found.setdefault(key, []).append(side)
    order = sorted(
        found, key=lambda key: names[key][0] == "Rule score"
    )  # judges first; sorting keeps the order else
    return [_group(number, *names[key], found[key]) for number, key in enumerate(order, start=1)]


def _sides(folder: str, results: Results) -> list[tuple[str, str, str, _Side]]:
    """Name of the measure, what it is, what must be equal to compare, and the run's numbers."""
    shared = _shared(results)
    domains = list(results.predictions.samples)
    found = []
    for judge in results.judges:
        policy = PROTOCOLS[judge.judge.protocol].policy
        values = [
            (getattr(judge.domains[one], policy)["total"], judge.domains[one].intervals) for one in domains
        ]
        values.append((getattr(judge, f"macro_{policy}")["total"], judge.macro_intervals))
        what = f"protocol {judge.judge.protocol}, {policy}, digest {judge.judge.digest}"
        key = digest({**shared, "judge": judge.judge.digest, "prompts": judge.judge.system_prompts})
        side = _Side(folder, results, _picked(values, policy, 1), judge.micro.coverage)
        found.append((f"Judge {judge.judge.model}", what, key, side))
    rules, policy = results.rules, results.policy
    scores = [(getattr(rules.score[one], policy), rules.intervals.get(one, Intervals())) for one in domains]
    scores.append((getattr(rules.macro[RULE_SCORE], policy), rules.macro_intervals))
    micro = rules.micro[RULE_SCORE]
    key = digest({**shared, "rules": results.task_files, "own": results.own_metrics, "policy": policy})
    side = _Side(folder, results, _picked(scores, policy, 100), micro.scored / micro.n if micro.n else 0.0)
    found.append(("Rule score", f"policy {policy}", key, side))
    return found


def _shared(results: Results) -> dict[str, Any]:
    """What must be equal whatever the measure: files, samples, tasks, what becomes of long histories."""
    chosen = results.selection.model_dump(mode="json", exclude={"data", "tasks"})
    return {
        "files": {name: results.predict.data.files.get(name) for name in results.predictions.samples},
        "chosen": chosen,
        "tasks": {name: results.predict.tasks.get(name) for name in results.predictions.samples},
        "context": results.predict.context_policy,
        "complete": results.complete,
    }


def _picked(
    values: Sequence[tuple[float | None, Intervals]], policy: str, scale: float
) -> tuple[tuple[float | None, Interval | None], ...]:
    return tuple(
        (None if value is None else value * scale, _scaled(getattr(of, policy), scale))
        for value, of in values
    )


def _scaled(interval: Interval | None, scale: float) -> Interval | None:
    if interval is None or interval.low is None or interval.high is None or interval.half is None:
        return interval
    change: Mapping[str, float] = {name: getattr(interval, name) * scale for name in ("low", "high", "half")}
    return interval.model_copy(update=change)


def _group(number: int, name: str, what: str, about: str, sides: Sequence[_Side]) -> RunGroup:
    domains = [domain_name(one) for one in sides[0].results.predictions.samples]
    return RunGroup(
        title=name,
        what=what,
        scope=about,
        domains=tuple(domains),
        lines=tuple(
            RunLine(
                folder=one.folder,
                model=one.results.model,
                overall=score_cell(*one.values[-1]),
                domains=tuple(score_cell(*value) for value in one.values[:-1]),
                coverage=percent(one.coverage),
            )
            for one in sides
        ),
        plot=_plot(number, name, domains, sides) if len(sides) > 1 else None,
        left_out=max(0, len(sides) - _DRAWN) if len(sides) > 1 else 0,
    )


def _plot(number: int, name: str, domains: Sequence[str], sides: Sequence[_Side]) -> Plot:
    series = [Series(one.folder, tuple(_value(*value) for value in one.values)) for one in sides[:_DRAWN]]
    note = (
        "95 % intervals of each run alone; two that overlap may still differ on the samples that both share."
    )
    return intervals(f"runs-{number}", name, note, [*domains, "Overall, macro"], series)


def _value(value: float | None, interval: Interval | None) -> Value | None:
    if value is None:
        return None
    return Value(value, interval.low, interval.high) if interval else Value(value)
