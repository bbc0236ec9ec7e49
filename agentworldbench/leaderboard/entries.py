"""Entries: what stands in `leaderboards/entries/<slug>.json`, and which of them may share a ranking.

An entry is `measured` (by a run), `verified` (replayed by a maintainer) or `reported` (taken from a
publication). Entries are compared only inside a group: same kind of score, data, protocol and
judge. A rank needs at least 99 % coverage in every domain; a reported row whose coverage is not
published is listed by its score and has no rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from agentworldbench.errors import DataError
from agentworldbench.records import Record
from agentworldbench.resources import asset
from agentworldbench.stats.intervals import Interval

RANK_COVERAGE: Final = 0.99


class EntrySource(Record):
    """Where a reported row stands."""

    title: str
    identifier: str
    location: str
    url: str


class Group(Record):
    """What must be equal for two entries to stand in one table.

    `data_sha256` is a digest over the hashes of the data files; it and the judge's digest are None
    where a publication does not state them.
    """

    score: Literal["judge", "rules"]
    data: str
    data_revision: str | None
    data_sha256: str | None = None
    protocol: str
    judge: str | None
    judge_digest: str | None = None


class RuleScores(Record):
    """Rule scores (0-100) and skill of the same predictions: beside a judge's scores, never part of them.

    `definition` is a digest of the task files (and of users' own metrics) by which they were computed:
    those of unlike definitions do not compare. None where a number or an interval is not available.
    """

    definition: str
    policy: Literal["exclude", "floor"]
    scores: dict[str, float]
    overall: float | None
    skill: dict[str, float | None]
    overall_skill: float | None
    interval: Interval | None = None
    skill_interval: Interval | None = None


class Entry(Record):
    """One row of a leaderboard. Scores are 0-100 by domain; `coverage` is None where undisclosed.

    `stated_overall` is printed in the source, `computed_overall` the plain mean of the domains.
    `intervals` are those of `scores`, `overall_interval` that of `computed_overall`; a publication
    states none. `rules` holds what the rules say of the same predictions.
    """

    schema_version: Literal[1] = 1
    slug: str
    model: str
    status: Literal["measured", "reported", "verified"]
    group: Group
    scores: dict[str, float]
    coverage: dict[str, float] | None
    stated_overall: float | None
    computed_overall: float
    intervals: dict[str, Interval] = Field(default_factory=dict)
    overall_interval: Interval | None = None
    rules: RuleScores | None = None
    note: str | None = None
    source: EntrySource | None = None

    @property
    def overall(self) -> float:
        """The number to sort by: as stated where a source states one."""
        return self.computed_overall if self.stated_overall is None else self.stated_overall

    @property
    def rankable(self) -> bool:
        """Whether the entry may carry a rank."""
        coverage = self.coverage or {}
        return bool(self.scores) and all(coverage.get(domain, 0) >= RANK_COVERAGE for domain in self.scores)


def load_entries(folder: Path | None = None) -> list[Entry]:
    """All entries of a folder (default: the bundled ones). Raises DataError naming the file."""
    entries = []
    for path in sorted((folder or asset("leaderboards", "entries")).glob("*.json")):
        try:
            entry = Entry.model_validate_json(path.read_text(encoding="utf-8"))
        except ValidationError as problem:
            detail = problem.errors()[0]
            field = ".".join(str(part) for part in detail["loc"])
            where = f"field '{field}': " if field else ""
            raise DataError(f"{path}: not a leaderboard entry: {where}{detail['msg']}") from problem
        except (OSError, UnicodeDecodeError) as problem:
            raise DataError(f"{path}: cannot be read ({problem})") from problem
        if entry.slug != path.stem:
            raise DataError(f"{path}: slug '{entry.slug}' is not the file's name")
        entries.append(entry)
    return entries


def grouped(entries: Iterable[Entry]) -> list[tuple[Group, list[Entry]]]:
    """Groups with their entries, best first, equal scores by name."""
    groups: dict[str, tuple[Group, list[Entry]]] = {}
    for entry in entries:
        groups.setdefault(entry.group.model_dump_json(), (entry.group, []))[1].append(entry)
    return [
        (group, sorted(some, key=lambda entry: (-entry.overall, entry.model, entry.slug)))
        for group, some in sorted(groups.values(), key=lambda item: item[0].model_dump_json())
    ]


def ranks(entries: list[Entry]) -> list[int | None]:
    """Rank of each entry of one group: 1 + number of rankable entries with a higher score."""
    scores = [entry.overall for entry in entries if entry.rankable]
    return [
        1 + sum(score > entry.overall for score in scores) if entry.rankable else None for entry in entries
    ]
