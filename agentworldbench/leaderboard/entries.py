"""Entries: what stands in `leaderboards/entries/<slug>.json`, and which of them may share a ranking.

An entry is `measured` (by a run), `verified` (replayed by a maintainer) or `reported` (taken from a
publication). Entries are compared only inside a group: same kind of score, data, protocol, prompts,
judge and samples. A rank needs the whole data and at least 99 % coverage in every domain; anchors have none. A reported row
whose coverage is not published is listed by its score and has no rank. What must hold beyond the schema: `check.py`.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterable
from math import fsum
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, ValidationError

from agentworldbench.errors import DataError
from agentworldbench.leaderboard.provenance import (
    Bundle,
    Costs,
    EntryJudge,
    Provenance,
    Submitter,
    Verification,
)
from agentworldbench.protocol import Parse
from agentworldbench.records import OFFICIAL_DOMAINS, Record
from agentworldbench.resources import asset
from agentworldbench.run_record import ContextPolicy, Grown, PanelRule
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import Reading
from agentworldbench.texts import count_text, digest
from agentworldbench.yamlfile import json_lines

RANK_COVERAGE: Final = 0.99
WHOLE: Final = "whole"
"""Selection of a run over all samples of its data."""
SCHEMA_VERSION: Final = 2
SAID: Final = frozenset({"status", "note", "source", "slug", "submitter", "bundle", "verification"})
"""Fields that people say or that follow from others; the rest comes from the results of a run, or is the name to show."""
MOST_BYTES: Final = 4 << 20
"""Size of the file of an entry; those of a run over seven domains have some 0.1 MB for each judge."""
LINE: Final = 260
"""Characters up to which an object of an entry's file stands on one line: an interval does."""


class EntrySource(Record):
    """Where a reported row stands."""

    title: str
    identifier: str
    location: str
    url: str


class Group(Grown):
    """What must be equal for two entries to stand in one table.

    `data_sha256` is a digest over the hashes of the data files, `prompts_sha256` one over those of all prompts,
    the model's and the judge's; they and the judge's digest are None where a publication does not state them.
    A panel of judges is one judge with a name and digest of its own. `selection` is `whole`, or says which
    samples: a subset shares a table only with the same subset. `domains` says which, where they are not exactly the
    seven of the benchmark (empty). `context_policy` is None where it is not stated.
    """

    score: Literal["judge", "rules"]
    data: str
    data_revision: str | None
    data_sha256: str | None = None
    protocol: str
    prompts_sha256: str | None = None
    judge: str | None
    judge_digest: str | None = None
    selection: str = WHOLE
    context_policy: ContextPolicy | None = None
    gui_diagnostics: bool = False
    domains: tuple[str, ...] = ()

    LATER: ClassVar = ("domains",)

    @property
    def about(self) -> tuple[str, ...]:
        """The domains that every number of the group is about."""
        return self.domains or OFFICIAL_DOMAINS

    @property
    def departures(self) -> tuple[str, ...]:
        """What sets the group apart from an ordinary run over the whole data; with any of it there are no ranks."""
        found = [] if self.selection == WHOLE else [f"a subset: {self.selection}"]
        if self.context_policy == "drop-oldest":
            found.append("histories shortened (drop-oldest)")
        if self.gui_diagnostics:
            found.append("GUI diagnostics added to the judge's prompts")
        return tuple(found)


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
    intervals: dict[str, Interval] = Field(default_factory=dict)


class Entry(Record):
    """One row of a leaderboard. Scores are 0-100 by domain; `coverage` is None where undisclosed.

    `stated_overall` is printed in the source, `computed_overall` the plain mean of the domains.
    `intervals` are those of `scores`, `overall_interval` that of `computed_overall`; a publication
    states none. All four are read by `policy` and `parse`; `readings` holds both parses with both policies, macro and
    micro, dimensions, counts and failures. `panel` says how the verdicts of several `judges` were combined. `rules` holds what the rules say of the same predictions. `model` is the
    name to show; the model string as it was asked stands in `provenance`.
    """

    schema_version: Literal[2] = SCHEMA_VERSION
    slug: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,199}$")
    model: str = Field(min_length=1, max_length=300)
    status: Literal["measured", "reported", "verified"]
    group: Group
    scores: dict[str, float] = Field(min_length=1)
    coverage: dict[str, float] | None
    stated_overall: float | None
    computed_overall: float
    policy: Literal["exclude", "floor"] | None = None
    parse: Parse | None = None
    intervals: dict[str, Interval] = Field(default_factory=dict)
    overall_interval: Interval | None = None
    readings: dict[Parse, Reading] = Field(default_factory=dict)
    rules: RuleScores | None = None
    costs: Costs | None = None
    judges: tuple[EntryJudge, ...] = ()
    panel: PanelRule | None = None
    provenance: Provenance | None = None
    submitter: Submitter | None = None
    bundle: Bundle | None = None
    verification: Verification | None = None
    note: str | None = None
    source: EntrySource | None = None

    @property
    def overall(self) -> float:
        """The number to sort by: as stated where a source states one."""
        return self.computed_overall if self.stated_overall is None else self.stated_overall

    @property
    def anchor(self) -> bool:
        """Whether it is a baseline of the harness, such as the reference itself: a mark to compare with, no model."""
        return self.provenance is not None and self.provenance.predict.model.get("backend") == "baseline"

    @property
    def rankable(self) -> bool:
        """Whether the entry may carry a rank."""
        coverage = self.coverage or {}
        covered = all(coverage.get(domain, 0) >= RANK_COVERAGE for domain in self.scores)
        return covered and not self.anchor and not self.group.departures

    @property
    def mean_of_domains(self) -> float:
        """What `computed_overall` must be."""
        return fsum(self.scores.values()) / len(self.scores)

    @property
    def least_coverage(self) -> float | None:
        """The coverage of the domain that has the least; None where it is not disclosed."""
        return min(self.coverage.values()) if self.coverage else None


def load_entries(folder: Path | None = None) -> list[Entry]:
    """All entries of a folder (default: the bundled ones). Raises DataError naming file, line and field."""
    return [read_entry(path) for path in entry_paths(folder)]


def entry_paths(folder: Path | None = None) -> list[Path]:
    """The files of a folder that should be entries, by name."""
    return sorted((folder or asset("leaderboards", "entries")).glob("*.json"))


def read_entry(path: Path) -> Entry:
    """One entry. Raises DataError naming file, line and field, and what to do where that is known."""
    text = _text(path)
    try:
        entry = Entry.model_validate_json(text)
    except ValidationError as problem:
        raise DataError(_explained(path, text, problem)) from None
    if entry.slug != path.stem:
        raise DataError(
            f"{path}: slug '{entry.slug}' is not the file's name; rename the file to {entry.slug}.json"
        )
    return entry


def _text(path: Path) -> str:
    """What the file of an entry holds. A link is not followed: entries come from whoever opens a pull request."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise DataError(f"{path}: a link, folder or device; an entry is a plain file")
        if found.st_size > MOST_BYTES:
            raise DataError(f"{path}: {count_text(found.st_size, 'byte')}; an entry has at most {MOST_BYTES}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{path}: cannot be read ({problem})") from problem


def entry_digest(entry: Entry) -> str:
    """A digest of all that an entry says, its verification included, but for the digest itself that stands in there.

    Fields at their defaults are left out, so that fields which entries get later leave the digest as it is.
    """
    left_out: dict[str, Any] = {"verification": {"entry_sha256"}}
    return digest(entry.model_dump(mode="json", exclude=left_out, exclude_defaults=True))


def sealed(entry: Entry, verification: Verification) -> Entry:
    """The entry as a verified one, with the digest in its verification by which `check` finds a later edit."""
    marked = entry.model_copy(update={"status": "verified", "verification": verification})
    found = verification.model_copy(update={"entry_sha256": entry_digest(marked)})
    return marked.model_copy(update={"verification": found})


def entry_text(entry: Entry) -> str:
    """What an entry's file holds: JSON in which what fits stands on one line, so that a difference can be read."""
    return _laid_out(entry.model_dump(mode="json"), "") + "\n"


def _laid_out(value: Any, margin: str) -> str:
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not value or not isinstance(value, dict | list) or len(margin) + len(flat) <= LINE:
        return flat
    inner = margin + "  "
    if isinstance(value, dict):
        items = [
            f"{json.dumps(name, ensure_ascii=False)}: {_laid_out(one, inner)}" for name, one in value.items()
        ]
        begin, end = "{", "}"
    else:
        items, begin, end = [_laid_out(one, inner) for one in value], "[", "]"
    return f"{begin}\n" + ",\n".join(inner + item for item in items) + f"\n{margin}{end}"


def _explained(path: Path, text: str, problem: ValidationError) -> str:
    """The first thing that does not fit, with its line and field. An entry of another schema says only that."""
    errors = problem.errors()
    detail = next((one for one in errors if one["loc"] == ("schema_version",)), errors[0])
    if detail["type"] == "json_invalid":
        place = re.search(r" at line (\d+) column \d+", detail["msg"])
        line = f":{place[1]}" if place else ""
        return f"{path}{line}: not a leaderboard entry: {detail['msg']}"
    field = ".".join(str(part) for part in detail["loc"])
    number = json_lines(text).get(detail["loc"])
    where = f"field '{field}': " if field else ""
    told = f"{path}:{number}" if number else str(path)
    done = "; `awb leaderboard add RUN --force` makes it anew" if field == "schema_version" else ""
    if field.startswith("verification."):
        done = "; `awb verify BUNDLE --entry FILE --verified-by NAME` writes a verification"
    return f"{told}: not a leaderboard entry: {where}{detail['msg']}{done}"


def in_order(domains: Iterable[str]) -> tuple[str, ...]:
    """Domains in the paper's order, users' own behind by name."""
    every = set(domains)
    return (*(name for name in OFFICIAL_DOMAINS if name in every), *sorted(every - set(OFFICIAL_DOMAINS)))


def partial(domains: Iterable[str]) -> tuple[str, ...]:
    """`Group.domains` of a run over these domains."""
    ordered = in_order(domains)
    return () if ordered == OFFICIAL_DOMAINS else ordered


def grouped(entries: Iterable[Entry]) -> list[tuple[Group, list[Entry]]]:
    """Groups with their entries, best first, equal scores by name. Of judge scores, and of rules, tables over the whole data
    and all domains come first."""
    groups: dict[str, tuple[Group, list[Entry]]] = {}
    for entry in entries:
        groups.setdefault(entry.group.model_dump_json(), (entry.group, []))[1].append(entry)
    return [
        (group, sorted(some, key=lambda entry: (-entry.overall, entry.model, entry.slug)))
        for group, some in sorted(groups.values(), key=lambda item: _place(item[0]))
    ]


def _place(group: Group) -> tuple[str, bool, bool, str]:
    return group.score, bool(group.departures), bool(group.domains), group.model_dump_json()


def ranks(entries: list[Entry]) -> list[int | None]:
    """Rank of each entry of one group: 1 + number of rankable entries with a higher score."""
    scores = [entry.overall for entry in entries if entry.rankable]
    return [
        1 + sum(score > entry.overall for score in scores) if entry.rankable else None for entry in entries
    ]
