"""The leaderboard as one static page: a table a group, a chart of score against cost, a view of every model.

In: entries. Out: HTML made by `render/shell.py` from `page_files/`. The tables stand in the HTML, so the page can be read
without its script; the script sorts, filters, and draws the view of a model from the JSON that is embedded.
Names, notes and settings come from anyone: they are escaped here and set as text there, never as HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from typing import Any, Final

from agentworldbench.leaderboard.entries import Entry, Group, grouped, ranks
from agentworldbench.leaderboard.page_data import entry_data, group_data, pooled
from agentworldbench.leaderboard.tables import domains_of, group_notes, kind_name
from agentworldbench.render.chart import Point, scatter
from agentworldbench.render.names import domain_name, partial_domains
from agentworldbench.render.numbers import in_points, score_cell
from agentworldbench.render.sample import shown
from agentworldbench.render.shell import embedded_json, page
from agentworldbench.render.table import DASH, percent, points, share

PAGE_FILE: Final = "index.html"
FOLDER: Final = Path(__file__).parent / "page_files"


@dataclass(frozen=True)
class _Row:
    entry: Entry
    rank: str
    name: str
    overall: str
    domains: tuple[str, ...]
    beside: tuple[str, ...]


@dataclass(frozen=True)
class _Section:
    anchor: str
    title: str
    label: str
    """What no other section is called."""
    scale: tuple[int, int]
    """What the ends of the bars stand for that the script draws."""
    facts: tuple[tuple[str, str], ...]
    domains: tuple[str, ...]
    beside: tuple[str, ...]
    rows: tuple[_Row, ...]
    notes: tuple[str, ...]
    chart: Any


def page_text(entries: Sequence[Entry], title: str = "AgentWorldBench leaderboard") -> str:
    """The whole page."""
    groups = grouped(entries)
    sections = [_section(number, group, some) for number, (group, some) in enumerate(groups, start=1)]
    shown_entries = {
        entry.slug: entry_data(entry, number, rank, domains_of(some))
        for number, (_, some) in enumerate(groups)
        for rank, entry in zip(ranks(some), some, strict=True)
    }
    texts = pooled(shown_entries)
    data = {
        "groups": [group_data(group, some) | {"scale": _scale(some)} for group, some in groups],
        "texts": texts,
        "entries": shown_entries,
    }
    dates = [entry.provenance.date[:10] for entry in entries if entry.provenance]
    return page(
        FOLDER,
        "board",
        title,
        sections=sections,
        count=len(entries),
        statuses=[
            one for one in ("measured", "verified", "reported") if any(e.status == one for e in entries)
        ],
        newest=max(dates, default=None),
        data=embedded_json(data),
    )


def _section(number: int, group: Group, entries: list[Entry]) -> _Section:
    domains, beside = domains_of(entries), _columns(group, entries)
    part, judge = partial_domains(group.about), ""
    title = f"{kind_name(group)} on {group.data}" + (f", {part}" if part else "")
    if group.score == "judge":
        title, judge = f"{title}, protocol {group.protocol}", f", judge {group.judge}"
    return _Section(
        anchor=f"g{number}",
        title=shown(title),
        label=shown(f"{number}. {title}{judge}"),
        scale=_scale(entries),
        facts=tuple(group_data(group, entries)["facts"]),
        domains=tuple(map(domain_name, domains)),
        beside=beside,
        rows=tuple(
            _row(entry, rank, domains, beside) for rank, entry in zip(ranks(entries), entries, strict=True)
        ),
        notes=group_notes(group, entries),
        chart=_chart(entries),
    )


def _bounds(entry: Entry) -> tuple[float, float]:
    """Where the overall score may lie; where no interval is known, the score itself."""
    whole = in_points(entry.overall_interval)
    if whole is None or whole.low is None or whole.high is None:
        return entry.overall, entry.overall
    return whole.low, whole.high


def _scale(entries: Sequence[Entry]) -> tuple[int, int]:
    """Tens around all overall scores of a group: what the ends of its bars stand for."""
    low = 10 * floor(min(_bounds(entry)[0] for entry in entries) / 10)
    high = 10 * ceil(max(_bounds(entry)[1] for entry in entries) / 10)
    first = min(90, max(0, low))
    return first, max(min(100, high), first + 10)


def _columns(group: Group, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The columns behind the domains, where an entry has something to stand in them."""
    known = {
        "Coverage": any(entry.coverage for entry in entries),
        "Rule score": group.score == "judge" and any(entry.rules for entry in entries),
        "Skill": any(entry.rules for entry in entries),
        "USD / 1,000": any(entry.costs and entry.costs.usd_per_thousand is not None for entry in entries),
    }
    return tuple(name for name, there in known.items() if there)


def _row(entry: Entry, rank: int | None, domains: Sequence[str], beside: Sequence[str]) -> _Row:
    rules, stated = entry.rules, entry.stated_overall
    cells = {
        "Coverage": percent(entry.least_coverage),
        "Rule score": _one_decimal(rules.overall if rules else None),
        "Skill": share(rules.overall_skill) if rules else DASH,
        "USD / 1,000": _usd(entry),
    }
    return _Row(
        entry=entry,
        rank=DASH if rank is None else str(rank),
        name=shown(entry.model),
        overall=points(stated)
        if stated is not None
        else score_cell(entry.computed_overall, entry.overall_interval),
        domains=tuple(_one_decimal(entry.scores.get(domain)) for domain in domains),
        beside=tuple(cells[name] for name in beside),
    )


def _one_decimal(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f}"


def _usd(entry: Entry) -> str:
    cost = entry.costs.usd_per_thousand if entry.costs else None
    return DASH if cost is None else f"{cost:.2f}"


def _chart(entries: Sequence[Entry]) -> Any:
    """Score against what a thousand predictions cost; None where no entry has a cost above 0."""
    found = []
    for entry in entries:
        cost, whole = entry.costs.usd_per_thousand if entry.costs else None, in_points(entry.overall_interval)
        if cost:
            bounds = (None, None) if whole is None else (whole.low, whole.high)
            found.append(Point(cost, entry.overall, *bounds, shown(entry.model), f"#model={entry.slug}"))
    if not found:
        return None
    return scatter(found, "USD for 1,000 predictions (logarithmic)", "Overall score")
