"""An `Activity` as people read it: the texts and bars of the pages of `awb view`.

In: an `Activity`. Out: a `Shown`: the page is written with it, and its script puts in what came since, by the same
names. So nothing is put into words twice, and the script makes no text of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentworldbench.records import Record
from agentworldbench.render.names import domain_name
from agentworldbench.render.progress import cost_text, duration
from agentworldbench.render.sample import shown
from agentworldbench.render.table import DASH
from agentworldbench.report.activity import LAST_FAILURES, Activity, StageCounts
from agentworldbench.texts import count_text

_STATES = {
    "running": "Running",
    "elsewhere": "Perhaps running",
    "stopped": "Not running",
    "finished": "Finished",
}


class Shown(Record):
    """Texts by place, and bars by place as (done, total)."""

    texts: dict[str, str]
    bars: dict[str, tuple[int, int]]


def shown_activity(one: Activity) -> Shown:
    """The texts of the page. Places are `state`, `now`, `stage.0` …, `domain.mcp.0` …, `facts.rate` …, `last.0` …."""
    texts = {"state": _STATES[one.state], "now": " · ".join(_now(one))}
    bars = {}
    for number, stage in enumerate(one.stages):
        texts[f"stage.{number}"] = _stage(stage)
        texts[f"failures.{number}"] = _kinds(stage.failures)
        bars[f"stage.{number}"] = (stage.done, stage.total)
    for domain in one.domains:
        cells = [f"{domain.done:,} of {domain.total:,}", f"{domain.failed:,}" if domain.failed else DASH]
        cells += [f"{count:,}" for count in domain.verdicts]
        texts |= {f"domain.{domain.domain}.{number}": cell for number, cell in enumerate(cells)}
        bars[f"domain.{domain.domain}"] = (domain.done, domain.total)
    texts |= {f"facts.{name}": text for name, text in _facts(one).items()}
    for number in range(LAST_FAILURES):
        texts[f"last.{number}"] = _last(one, number)
    return Shown(texts=texts, bars=bars)


def stage_names(one: Activity) -> list[str]:
    """What the bars are called."""
    return [shown(stage.name) for stage in one.stages]


def domain_names(one: Activity) -> list[tuple[str, str]]:
    """Domains of the run, and as people write them."""
    return [(domain.domain, domain_name(domain.domain)) for domain in one.domains]


def _now(one: Activity) -> Iterator[str]:
    """What stands beside the state: who works, since when nothing came, how long it may take."""
    if one.state == "running" and one.worker:
        yield shown(one.worker)
    if one.state == "elsewhere" and one.worker:
        yield f"signed by {shown(one.worker)}, which cannot be seen from here"
    if not one.stages[0].done:
        yield "no prediction yet"
    if one.state == "finished":
        yield f"{count_text(one.stages[0].done, 'prediction')}, {one.stages[0].failed:,} failed"
        yield duration(one.seconds)
        yield _cost(one)
    if one.seconds_left is not None:
        yield f"about {duration(one.seconds_left)} left"
    if one.state == "stopped":
        yield "nobody works on it; the command that began it goes on with it"


def _stage(stage: StageCounts) -> str:
    failed = f", {stage.failed:,} failed" if stage.failed else ""
    share = f" ({100 * stage.done // stage.total} %)" if 0 < stage.done < stage.total else ""
    return f"{stage.done:,} of {stage.total:,}{share}{failed}"


def _facts(one: Activity) -> Mapping[str, str]:
    rates = [f"{_rate(stage.per_minute)} {'predictions' if not number else 'verdicts'} a minute" for number, stage in
             enumerate(one.stages) if stage.per_minute is not None]  # fmt: skip
    tokens = f"{count_text(one.prompt_tokens or 0, 'token')} in, {one.completion_tokens or 0:,} out"
    session = f"since {one.started_at[:16].replace('T', ' ')} UTC" if one.state == "running" else "of work"
    return {
        "rate": ", ".join(rates) or DASH,
        "time": f"{duration(one.seconds)} {session}" if one.stages[0].done else DASH,
        "cost": f"{_cost(one).removeprefix('cost ')} ({tokens})",
        "attempts": _kinds(one.attempts) or "none",
        "last": DASH if one.last_record_at is None else one.last_record_at.replace("T", " ").replace("Z", " UTC"),
        "unread": f"{count_text(one.unread, 'line of the journals is no record and', 'lines of the journals are no records and')} left out" if one.unread else "",
    }  # fmt: skip


def _cost(one: Activity) -> str:
    return cost_text(one.known_usd, one.cost_usd is not None)


def _rate(per_minute: float | None) -> str:
    if per_minute is None:
        return DASH
    return f"{per_minute:.0f}" if per_minute >= 10 else f"{per_minute:.1f}"


def _kinds(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in counts.items())


def _last(one: Activity, number: int) -> str:
    if number >= len(one.last_failures):
        return ""
    failure = one.last_failures[number]
    text = f"{failure.sample_id}, {failure.stage}: {failure.kind.replace('_', ' ')}. {failure.message}"
    return shown(text)
