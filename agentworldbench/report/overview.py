"""The first page: what came out, how sure it is, what it rests on, and what it cost; the same in Markdown.

In: the numbers of a run. Out: an `Overview`, and one page of Markdown made of it. The tables
are those that `awb run` prints, so that page and terminal never say different things.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agentworldbench.prices import dollars
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.render.cost import cost_tables
from agentworldbench.render.names import scope
from agentworldbench.render.numbers import in_points
from agentworldbench.render.plots import Plot
from agentworldbench.render.progress import duration
from agentworldbench.render.results import run_tables
from agentworldbench.render.sample import shown
from agentworldbench.render.table import DASH, markdown_cell, percent, points, share
from agentworldbench.report.contents import Headline, Overview
from agentworldbench.report.gather import Numbers
from agentworldbench.run_record import Session
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.costs import Spending
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import Reading, Scores
from agentworldbench.texts import count_text, moment

NOT_THE_BENCHMARK: Final = (
    "the bundled set, not the benchmark; its numbers do not compare with published ones"
)


def overview(opened: Numbers, samples: int, drawn: Sequence[Plot] | None) -> Overview:
    """The first page of a run of so many predictions; None: its plots are still to be drawn."""
    results = opened.results
    first, *details = [*run_tables(results), *cost_tables(results)]
    return Overview(
        model=results.model,
        scope=scope(results),
        headlines=tuple(_headlines(opened)),
        warnings=results.warnings,
        facts=tuple(_facts(opened)),
        plots=None if drawn is None else tuple(drawn),
        scores=(first,),
        details=tuple(details),
        samples=samples,
    )


def summary(view: Overview, remark: str = "") -> str:
    """The first page as Markdown for notes, issues and pull requests: headlines, warnings, scores, and folded what they rest on."""
    parts = [[f"## {_plain(view.model)}"]]
    if remark:
        parts.append([f"> {_plain(remark)}"])
    parts.append([_plain(view.scope)])
    rows = [(one.name, f"**{one.number}**", one.interval, one.rests_on) for one in view.headlines]
    parts.append(
        ["| Score | 0-100 | Interval | Rests on |", "|---|---:|---|---|"]
        + [
            f"| {_plain(name)} | {number} | {interval} | {_plain(about)} |"
            for name, number, interval, about in rows
        ]
    )
    if view.warnings:
        parts.append(["**What may have changed the numbers**"])
        parts.append([f"- {_plain(one)}" for one in view.warnings])
    parts += [[table.to_markdown().rstrip()] for table in view.scores]
    parts.append(["<details><summary>How it was made</summary>"])
    parts.append([f"- {_plain(name)}: {_plain(text)}" for name, text in view.facts])
    parts.append(["</details>"])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _plain(text: str) -> str:
    return markdown_cell(shown(text))


def _headlines(opened: Numbers) -> Iterator[Headline]:
    for name, judge in zip(opened.judge_names, opened.results.judges, strict=True):
        yield Headline(f"Judge {name}", *_of_reading(judge.headline, judge.judge.protocol))
    if panel := opened.results.panel:
        yield Headline("Panel", *_of_reading(panel.reading, panel.protocol, panel.rule))
    rules, policy = opened.results.rules, opened.results.policy
    score, skill = rules.macro[RULE_SCORE], getattr(rules.overall_skill, policy)
    value = getattr(score, policy)
    interval: Interval | None = getattr(rules.macro_intervals, policy)
    yield Headline(
        name="Rule score",
        number=points(None if value is None else 100 * value),
        interval=_bounds(interval, 100),
        rests_on=f"{score.scored:,} of {count_text(score.n, 'prediction')}, policy {policy}; skill {share(skill)} (0 is copying, 1 the reference)",
    )


def _of_reading(reading: Reading, protocol: str, rule: str = "") -> tuple[str, str, str]:
    """Number, interval and what they rest on, of a judge or a panel."""
    policy = PROTOCOLS[protocol].policy
    macro: Scores = getattr(reading, f"macro_{policy}")
    rests_on = (
        f"{rule and rule + ', '}protocol {protocol}, macro, {policy}; {reading.micro.scored} of {reading.micro.samples} "
        f"samples scored, coverage {percent(reading.micro.coverage)}"
    )
    return points(macro["total"]), _bounds(getattr(reading.macro_intervals, policy), 1), rests_on


def _bounds(interval: Interval | None, scale: float) -> str:
    shown = in_points(interval, scale)
    if shown is None or shown.low is None or shown.high is None:
        whole = shown is not None and "whole_scale" in shown.flags
        return "95 %: 0 to 100, too few trajectories" if whole else "no interval"
    return f"95 %: {shown.low:z.1f} to {shown.high:z.1f}"


def _facts(opened: Numbers) -> Iterator[tuple[str, str]]:
    run, results = opened.run, opened.results
    data = results.predict.data
    asked = sum(results.predictions.samples.values())
    named = " ".join(filter(None, (data.name, data.repository, data.revision)))
    yield "Data", f"{named}: {NOT_THE_BENCHMARK}" if data.name == "mini" else named
    yield (
        "Predictions",
        f"{sum(results.predictions.predicted.values()):,} of {asked:,}, coverage {_coverage(opened)}",
    )
    yield "Failures", _counted(opened.results.predictions.failures.values())
    if run.epochs > 1:
        yield "Epochs", str(run.epochs)
    for name, judge in zip(opened.judge_names, results.judges, strict=True):
        sampling = ", ".join(
            f"{key} {value}" for key, value in judge.judge.sampling.items() if value != "server default"
        )
        yield (
            f"Judge {name}",
            f"protocol {judge.judge.protocol}, {judge.judge.parse} reading; {sampling}; digest {judge.judge.digest}",
        )
        yield f"Failures of {name}", _counted(stages["judge"] for stages in judge.failures.values())
    yield "Cost", _cost(opened)
    yield "Time", _time(opened)
    made = f"results made by awb {results.made_by} at {results.made_at}"
    yield "Harness", "; ".join([*map(_harness, run.sessions[-1:]), made])


def _harness(session: Session) -> str:
    """What a session was carried out with."""
    changed = " (changed)" if session.git_dirty else ""
    commit = f", commit {session.git_commit[:12]}{changed}" if session.git_commit else ""
    return f"awb {session.harness}{commit}"


def _coverage(opened: Numbers) -> str:
    asked = sum(opened.results.predictions.samples.values())
    return percent(sum(opened.results.predictions.predicted.values()) / asked) if asked else DASH


def _counted(by_domain: Iterable[Mapping[str, int]]) -> str:
    """How often which class of failure, over all domains."""
    counts: dict[str, int] = {}
    for kinds in by_domain:
        for kind, count in kinds.items():
            counts[kind] = counts.get(kind, 0) + count
    said = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(counts.items()))
    return said or "none"


def _cost(opened: Numbers) -> str:
    stages = [("predictions", opened.results.predictions.spent)]
    stages += [
        (f"verdicts of {name}", one.spent)
        for name, one in zip(opened.judge_names, opened.results.judges, strict=True)
    ]
    return "; ".join(f"{name} {_usd(spent)}" for name, spent in stages)


def _usd(spent: Spending) -> str:
    usage = spent.usage
    tokens = f"{count_text(usage.prompt_tokens or 0, 'token')} in, {usage.completion_tokens or 0:,} out"
    if spent.cost_usd is None:
        known = f"at least {dollars(spent.known_usd)} USD" if spent.known_usd else "cost unknown"
        return f"{known} ({tokens})"
    return f"{dollars(spent.cost_usd)} USD ({tokens})"


def _time(opened: Numbers) -> str:
    """When the run was worked on: between the first session's start and the results."""
    started = [one.started_at for one in opened.run.sessions]
    if not started:
        return "unknown: run.json names no session"
    if len(started) > 1:
        return f"{count_text(len(started), 'session')}, the first from {_clock(started[0])}, the last from {_clock(started[-1])}"
    begun, ended = moment(started[0]), moment(opened.results.made_at)
    if begun is None or ended is None:
        return f"1 session from {_clock(started[0])}"
    seconds = max(0.0, (ended - begun).total_seconds())  # results know whole seconds
    return f"1 session from {_clock(started[0])}, {duration(seconds)} until the results"


def _clock(stored: str) -> str:
    """A stored time to the minute; what is none stays as it is."""
    return stored if moment(stored) is None else f"{stored[:16].replace('T', ' ')} UTC"
