"""Leaderboard tables: one a group, under a heading that names data, protocol and judge."""

from __future__ import annotations

from collections.abc import Sequence

from agentworldbench.leaderboard.entries import Entry, Group, grouped, ranks
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.render.results import domain_name
from agentworldbench.render.table import DASH, Table, points


def leaderboard_tables(entries: Sequence[Entry]) -> list[Table]:
    """One table for each group of entries."""
    return [group_table(group, some) for group, some in grouped(entries)]


def group_table(group: Group, entries: list[Entry]) -> Table:
    """The table of one group, best first."""
    domains = [domain for domain in OFFICIAL_DOMAINS if any(domain in entry.scores for entry in entries)]
    domains += sorted({domain for entry in entries for domain in entry.scores} - set(domains))
    rows = []
    for rank, entry in zip(ranks(entries), entries, strict=True):
        cells = [points(entry.scores.get(domain)) for domain in domains]
        computed = points(entry.computed_overall)
        stated = computed if entry.stated_overall is None else points(entry.stated_overall)
        mark = "*" if entry.note else ""
        rows.append(
            (DASH if rank is None else str(rank), entry.model + mark, entry.status, stated, computed, *cells)
        )
    notes = [f"* {entry.model}: {entry.note}" for entry in entries if entry.note]
    if any(not entry.rankable for entry in entries):
        notes.append(
            "No rank where coverage is not disclosed or below 99 % in a domain; ordered by overall score."
        )
    sources = dict.fromkeys(
        f"{e.source.title}, {e.source.location} ({e.source.identifier})" for e in entries if e.source
    )
    notes += [f"Source: {source}" for source in sources]
    return Table(
        title=_heading(group),
        columns=("Rank", "Model", "Status", "Overall", "Computed", *map(domain_name, domains)),
        rows=tuple(rows),
        left=("Model", "Status"),
        notes=tuple(notes),
    )


def _heading(group: Group) -> str:
    digest = f" ({group.judge_digest[:8]})" if group.judge_digest else ""
    what = f"judge {group.judge}{digest}" if group.score == "judge" else "rule checks, no judge"
    kind = "Judge scores" if group.score == "judge" else "Rule accuracy"
    revision = f" at {group.data_revision[:8]}" if group.data_revision else ""
    files = f" (files {group.data_sha256[:8]})" if group.data_sha256 else ""
    return f"{kind} — data {group.data}{revision}{files} · protocol {group.protocol} · {what}"
