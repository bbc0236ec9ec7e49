"""The page above the reports of several runs: side by side what may be compared, and nothing else.

In: results with the folders of their reports, and where the runs are. Out: `index.html` with a table for each set of runs of
equal data, samples, tasks and judge, panel or rules, in the order in which the runs were named. Below it their ranks and
the difference of every two, as `awb compare` computes them; for what stands alone, what keeps it apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from agentworldbench.protocol import PROTOCOLS, Policy
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.drawing import SHAPES
from agentworldbench.render.names import domain_name, scope
from agentworldbench.render.numbers import Shown, in_points, interval_notes, score_cell
from agentworldbench.render.plot_files import png_file, svg_file
from agentworldbench.render.plot_parts import load_altair
from agentworldbench.render.plot_values import Series, with_ends, without_bars
from agentworldbench.render.plots import Plot, intervals
from agentworldbench.render.shell import Site
from agentworldbench.render.table import percent
from agentworldbench.report.contents import RunGroup, RunLine
from agentworldbench.report.names import PLOTS
from agentworldbench.report.ranks import Ranks, RanksOfRuns
from agentworldbench.resources import asset
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.intervals import Intervals
from agentworldbench.stats.results import Reading, Results
from agentworldbench.texts import digest

RUNS_FILES: Final = ("index.html", "style.css", "theme.js", "script.js", PLOTS)
"""What stands beside the folders of the runs."""
_DRAWN: Final = len(SHAPES)
"""Runs that a plot tells apart: each has a form of its own."""
_NAMED: Final = 4
"""Runs of another table that are named where something keeps a run apart from them."""


Kind = Literal["judge", "panel", "rules"]
_Values = tuple[tuple[float | None, Shown | None], ...]


@dataclass(frozen=True)
class Listed:
    """A run of the page: the folder of its report, where it is, and its results."""

    folder: str
    path: Path
    results: Results


@dataclass(frozen=True)
class _Side:
    """One run by one measure: scores 0-100 with intervals by domain, the macro mean last. `title` and `what` say which
    measure, `digest` is that of the judge or panel, `equal` must be equal to compare: by what a reader calls it."""

    run: Listed
    kind: Kind
    title: str
    what: str
    digest: str | None
    equal: Mapping[str, Any]
    values: _Values
    coverage: float

    @property
    def folder(self) -> str:
        """The folder of its report."""
        return self.run.folder


def write_runs_page(folder: Path, runs: Sequence[Listed], data: str | None = None) -> None:
    """Write the page and its files; `data` says where the runs' data are now, when they have moved."""
    site = Site(asset("reports", "templates"), ["plots", "texts"])
    title = f"Reports of {len(runs)} runs"
    groups = run_groups(runs, data)
    text = site.page("runs", title, groups=groups, count=len(runs), canary=CANARY)
    drawn = [group.plot for group in groups if group.plot is not None]
    pictures = {f"{PLOTS}/{one.name}.svg": svg_file(one) for one in drawn}
    if drawn:
        (folder / PLOTS).mkdir(exist_ok=True)
    for name, content in {"index.html": text, **site.files, **pictures}.items():
        (folder / name).write_text(content, encoding="utf-8", errors="replace", newline="\n")
    for one in drawn:
        (folder / PLOTS / f"{one.name}.png").write_bytes(png_file(one))


def run_groups(runs: Sequence[Listed], data: str | None = None) -> list[RunGroup]:
    """The tables: by each judge, by panels, then by rules. A run stands in as many as it has judges, and in one of rules."""
    found: dict[tuple[str, str], list[_Side]] = {}
    for run in runs:
        for side in _sides(run):
            found.setdefault((side.kind, digest(dict(side.equal))), []).append(side)
    kinds = get_args(Kind)
    groups = sorted(found.values(), key=lambda sides: kinds.index(sides[0].kind))
    ranks = RanksOfRuns({run.folder: run.path for run in runs}, data)
    return [_group(number, sides, groups, ranks) for number, sides in enumerate(groups, start=1)]


def _sides(run: Listed) -> list[_Side]:
    """The run by each judge, by its panel, and by rules."""
    results, shared = run.results, _shared(run.results)
    prompts = {one.judge.digest: one.judge.system_prompts for one in results.judges}
    found = []
    for judge in results.judges:
        used, policy = judge.judge, PROTOCOLS[judge.judge.protocol].policy
        equal = {**shared, "the judge": used.digest, "the judge's prompts": used.system_prompts}
        what = f"protocol {used.protocol}, {policy}, digest {used.digest}"
        title = f"Judge {used.model}"
        values, coverage = _read(judge.headline, policy), judge.micro.coverage
        found.append(_Side(run, "judge", title, what, used.digest, equal, values, coverage))
    if (panel := results.panel) is not None:
        policy = PROTOCOLS[panel.protocol].policy
        equal = {**shared, "the panel": panel.digest, "the judges' prompts": prompts}
        what = f"protocol {panel.protocol}, {policy}, digest {panel.digest}"
        title, values = f"Panel, {panel.rule}", _read(panel.reading, policy)
        found.append(
            _Side(run, "panel", title, what, panel.digest, equal, values, panel.reading.micro.coverage)
        )
    rules, policy = results.rules, results.policy
    domains = list(results.predictions.samples)
    scores = [(getattr(rules.score[one], policy), rules.intervals.get(one, Intervals())) for one in domains]
    scores.append((getattr(rules.macro[RULE_SCORE], policy), rules.macro_intervals))
    micro = rules.micro[RULE_SCORE]
    own = {"the task files": results.task_files, "a user's own metrics": results.own_metrics}
    equal = {**shared, **own, "the failure policy": policy}
    values, coverage = _picked(scores, policy, 100), micro.scored / micro.n if micro.n else 0.0
    found.append(_Side(run, "rules", "Rule score", f"policy {policy}", None, equal, values, coverage))
    return found


def _read(reading: Reading, policy: Policy) -> _Values:
    """Scores of judges, domain by domain, then macro."""
    blocks = reading.domains.values()
    values = [(getattr(block, policy)["total"], block.intervals) for block in blocks]
    values.append((getattr(reading, f"macro_{policy}")["total"], reading.macro_intervals))
    return _picked(values, policy, 1)


def _shared(results: Results) -> dict[str, Any]:
    """What must be equal whatever the measure: files, samples, tasks, what becomes of long histories."""
    domains = list(results.predictions.samples)
    chosen = results.selection.model_dump(mode="json", exclude={"data", "tasks"})
    return {
        "the domains": sorted(domains),
        "the data": {name: results.predict.data.files.get(name) for name in domains},
        "which samples": chosen,
        "how predictions are asked for and read": {name: results.predict.tasks.get(name) for name in domains},
        "the context policy": results.predict.context_policy,
        "whether all samples have been asked": results.complete,
    }


def _apart(sides: Sequence[_Side], groups: Sequence[Sequence[_Side]]) -> str | None:
    """What keeps these runs from those of an earlier table of the same kind; None where they stand there too, or there is none."""
    first = next(some for some in groups if some[0].kind == sides[0].kind)
    names = [one.folder for one in first]
    if {one.folder for one in sides} <= set(names):
        return None
    one, other = first[0].equal, sides[0].equal
    differing = [words for words in one if _differ(one[words], other[words])]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Not ranked beside {', '.join(names[:_NAMED])}{more}: they differ in {', '.join(differing)}"


def _differ(one: Any, other: Any) -> bool:
    """Whether two facts differ; of facts by domain, in a domain that both have."""
    if isinstance(one, dict) and isinstance(other, dict):
        return any(_differ(one[name], other[name]) for name in one if name in other)
    return bool(one != other)


def _picked(values: Sequence[tuple[float | None, Intervals]], policy: str, scale: float) -> _Values:
    return tuple(
        (None if value is None else value * scale, in_points(getattr(of, policy), scale))
        for value, of in values
    )


def _group(
    number: int, sides: Sequence[_Side], groups: Sequence[Sequence[_Side]], ranks: RanksOfRuns
) -> RunGroup:
    first, several = sides[0], len(sides) > 1
    domains = [domain_name(one) for one in first.run.results.predictions.samples]
    ranked = ranks.of([one.folder for one in sides], first.digest) if several else Ranks()
    return RunGroup(
        title=first.title,
        what=first.what,
        scope=scope(first.run.results),
        domains=tuple(domains),
        lines=tuple(
            RunLine(
                folder=one.folder,
                model=one.run.results.model,
                overall=score_cell(*one.values[-1]),
                domains=tuple(score_cell(*value) for value in one.values[:-1]),
                coverage=percent(one.coverage),
            )
            for one in sides
        ),
        plot=_plot(number, first.title, domains, sides) if several else None,
        notes=_interval_notes(sides),
        apart=_apart(sides, groups),
        ranks=ranked.tables,
        unranked=ranked.without,
    )


def _plot(number: int, name: str, domains: Sequence[str], sides: Sequence[_Side]) -> Plot:
    series = [
        Series(
            one.folder,
            tuple(None if value is None else with_ends(value, interval) for value, interval in one.values),
        )
        for one in sides[:_DRAWN]
    ]
    note = (
        "95 % intervals of each run alone; two that overlap may still differ on the samples that both share."
    )
    load_altair()
    note += without_bars(series)
    beyond = [one.folder for one in sides[_DRAWN:]]
    foot = f"Left out: {', '.join(beyond)}; more than {_DRAWN} runs cannot be told apart in one plot."
    return intervals(
        f"runs-{number}", name, note, [*domains, "Overall, macro"], series, foot if beyond else ""
    )


def _interval_notes(sides: Sequence[_Side]) -> tuple[str, ...]:
    """What ± means, and for which runs an interval is missing or weak."""
    return interval_notes([(one.folder, interval) for one in sides for _, interval in one.values])
