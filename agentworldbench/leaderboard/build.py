"""The files made of a folder of entries: README.md for people, the JSON schema for programs, CSV and JSON for both.

In: entries. Out: texts that depend on nothing but the entries and this code, so that a test can tell when a committed
one is stale. The page is `page.py`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any, Final

from agentworldbench.leaderboard.entries import Entry, grouped, ranks
from agentworldbench.leaderboard.tables import domains_of, kind_name, leaderboard_tables
from agentworldbench.records import DIMENSIONS
from agentworldbench.render.numbers import in_points
from agentworldbench.render.table import csv_cell

SCHEMA_FILE: Final = "entry.schema.json"
README_FILE: Final = "README.md"
_HEAD: Final = """\
<!-- Made by `awb leaderboard build`; what is written here by hand is lost. -->

# Leaderboards of AgentWorldBench

Each table holds what may be compared: equal data, protocol, prompts, judge and samples. There is no ranking across
tables. A rank needs the whole data and at least 99 % coverage in every domain.

- **measured**: the submitter ran it with this harness; the entry carries settings, hashes and cost.
- **verified**: a maintainer replayed the submitted replies to the same numbers.
- **reported**: copied from a publication, with its source; coverage and settings are not known, so there is no rank.
"""


def readme_text(entries: Sequence[Entry]) -> str:
    """README.md: every group's table in Markdown."""
    tables = [table.to_markdown() for table in leaderboard_tables(entries)]
    return "\n".join([_HEAD, *tables])


def schema_text() -> str:
    """The JSON schema of an entry's file, for editors and for other programs."""
    schema = Entry.model_json_schema(mode="validation")
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def as_json(entries: Sequence[Entry]) -> dict[str, Any]:
    """Groups with their entries and ranks, for programs."""
    groups = [
        {
            "group": group.model_dump(mode="json"),
            "domains": group.about,
            "entries": [
                {"rank": rank, **entry.model_dump(mode="json")}
                for rank, entry in zip(ranks(some), some, strict=True)
            ],
        }
        for group, some in grouped(entries)
    ]
    return {"schema_version": 2, "groups": groups}


def visible_json(text: str) -> str:
    """The same JSON with characters that nobody sees written as escapes, so that a terminal shows what is there."""

    def escaped(char: str) -> str:
        return json.dumps(char)[1:-1]

    return "".join(char if char.isprintable() or char == "\n" else escaped(char) for char in text)


def csv_text(entries: Sequence[Entry]) -> str:
    """One row an entry, numbers in full. A group has a number, because ranks hold only inside it."""
    domains = domains_of(entries)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        (
            *("group", "kind", "data", "data_revision", "data_sha256", "protocol", "prompts_sha256", "judge"),
            *("judge_digest", "domains", "selection", "rank", "model", "slug", "status", "policy", "parse"),
            *("overall", "overall_low", "overall_high", "computed_overall"),
            *(
                name
                for domain in domains
                for name in (domain, f"{domain}_low", f"{domain}_high", f"{domain}_coverage")
            ),
            *(f"macro_{name}" for name in DIMENSIONS),
            *("rule_score", "skill", "usd_per_1000", "date", "harness", "git_commit", "submitter", "source"),
        )
    )
    for number, (_, some) in enumerate(grouped(entries), start=1):
        for rank, entry in zip(ranks(some), some, strict=True):
            writer.writerow([_csv_cell(value) for value in _row(number, rank, entry, domains)])
    return text.getvalue()


def dimension_means(entry: Entry) -> dict[str, float | None]:
    """The macro mean of each dimension as the entry is headed; empty where there is no reading."""
    reading = entry.readings.get(entry.parse) if entry.parse else None
    if reading is None:
        return {}
    scores = reading.macro_exclude if entry.policy == "exclude" else reading.macro_floor
    return {name: scores.get(name) for name in DIMENSIONS}


def _row(number: int, rank: int | None, entry: Entry, domains: Sequence[str]) -> list[object]:
    group, rules, origin = entry.group, entry.rules, entry.provenance
    whole, dimensions = in_points(entry.overall_interval), dimension_means(entry)
    row: list[object] = [number, kind_name(group), group.data, group.data_revision, group.data_sha256]
    row += [
        group.protocol,
        group.prompts_sha256,
        group.judge,
        group.judge_digest,
        " ".join(group.about),
        group.selection,
    ]
    row += [rank, entry.model, entry.slug, entry.status, entry.policy, entry.parse]
    row += [entry.overall, whole and whole.low, whole and whole.high, entry.computed_overall]
    for domain in domains:
        interval, coverage = in_points(entry.intervals.get(domain)), entry.coverage or {}
        row += [
            entry.scores.get(domain),
            interval and interval.low,
            interval and interval.high,
            coverage.get(domain),
        ]
    row += [dimensions.get(name) for name in DIMENSIONS]
    row += [rules and rules.overall, rules and rules.overall_skill]
    row += [entry.costs and entry.costs.usd_per_thousand]
    row += [origin and origin.date, origin and origin.harness, origin and origin.git_commit]
    row += [entry.submitter and entry.submitter.name, entry.source and entry.source.identifier]
    return row


def _csv_cell(value: object) -> object:
    """Nothing where there is nothing."""
    if isinstance(value, str):
        return csv_cell(value)
    return "" if value is None else value
