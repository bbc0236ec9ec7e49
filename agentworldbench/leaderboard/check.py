"""What must hold for leaderboard entries beyond their schema: checks on one entry, on a folder, on its README.

In: entries, or a folder of their files. Out: `Problem`s, each with file, field, kind and a sentence that says what is
wrong; none where all is well. Nothing is asked and nothing written. What only the data or the raw replies can
show (that a score follows from the replies) is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from agentworldbench.errors import DataError
from agentworldbench.leaderboard.build import README_FILE, readme_text
from agentworldbench.leaderboard.consistency import EXACT, against_run
from agentworldbench.leaderboard.entries import Entry, entry_digest, entry_paths, read_entry
from agentworldbench.leaderboard.provenance import VerifiedAudit
from agentworldbench.leaderboard.together import together
from agentworldbench.records import Record
from agentworldbench.render.table import printable, unseen
from agentworldbench.stats.intervals import Interval
from agentworldbench.texts import moment, repeated_name

VERIFY_AGAIN: Final = "`awb verify BUNDLE --entry FILE --verified-by NAME` verifies it again"
ROUNDED: Final = 0.011
"""How far a mean of numbers printed with two decimals may lie from the mean that is printed."""

Kind = Literal[
    "schema",
    "range",
    "interval",
    "coverage",
    "mean",
    "source",
    "missing",
    "readings",
    "group",
    "time",
    "verification",
    "text",
    "duplicate",
    "stale",
]
Found = Iterator[tuple[Kind, str, str]]
"""Kind, field and sentence of each problem of one entry."""


class Problem(Record):
    """One thing that is wrong: in which file, at which field (empty: the whole), and in words."""

    file: str
    field: str
    kind: Kind
    message: str


class CheckReport(Record):
    """What a check of a folder found; `entries` counts the files."""

    schema_version: Literal[1] = 1
    folder: str
    entries: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def check_folder(folder: Path, readme: bool = True) -> CheckReport:
    """Check every file of a folder, all together, and with `readme` the README.md beside the folder where there is one.

    Raises DataError where the folder cannot be looked into.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder of leaderboard entries")
    problems: list[Problem] = []
    entries: list[Entry] = []
    paths = entry_paths(folder)
    for path in paths:
        try:
            entry = read_entry(path)
            _refuse_repeated_keys(path)
        except DataError as problem:
            problems.append(Problem(file=str(path), field="", kind="schema", message=str(problem)))
            continue
        entries.append(entry)
        problems += check_entry(entry, path)
    for entry, kind, field, message in together(entries):
        file = str(folder / f"{entry.slug}.json")
        problems.append(Problem(file=file, field=field, kind=kind, message=message))
    problems += _unread(folder, paths)
    made = folder.parent / README_FILE
    if readme and made.is_file() and not problems and made.read_bytes() != readme_text(entries).encode():
        message = f"is not what the entries give; `awb leaderboard build {folder}` makes it anew"
        problems.append(Problem(file=str(made), field="", kind="stale", message=message))
    return CheckReport(folder=str(folder), entries=len(paths), problems=tuple(problems))


def _unread(folder: Path, paths: Sequence[Path]) -> Iterator[Problem]:
    """Files that somebody may take for entries and that no table has."""
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() == ".json" and path not in paths:
            message = f"{path}: is read by nothing; the name of an entry ends in .json, in small letters"
            yield Problem(file=str(path), field="", kind="schema", message=message)


def check_entry(entry: Entry, path: Path | None = None) -> list[Problem]:
    """What is wrong with one entry by itself."""
    file = str(path) if path else f"{entry.slug}.json"
    parts = (
        _texts,
        _ranges,
        _intervals,
        _coverage,
        _domains,
        _overall,
        _standing,
        _times,
        _verification,
        against_run,
    )
    found = [one for part in parts for one in part(entry)]
    return [Problem(file=file, field=field, kind=kind, message=message) for kind, field, message in found]


def _refuse_repeated_keys(path: Path) -> None:
    """JSON keeps the last of two equal keys and says nothing."""
    twice = repeated_name(path.read_bytes())
    if twice is not None:
        raise DataError(f"{path}: key '{twice}' stands twice; keep one of them")


def _texts(entry: Entry) -> Found:
    """What people read of an entry, without characters that hide something or turn a line around."""
    shown = {"model", "note", "group", "scores", "source", "submitter", "bundle", "verification"}
    served = {"judges": [{"served": list(one.served)} for one in entry.judges]}
    for field, text in _strings("", entry.model_dump(mode="json", include=shown) | served):
        if char := unseen(text):
            yield "text", printable(field), f"holds {char}, which is not shown as it stands: take it out"


def _strings(field: str, value: Any) -> Iterator[tuple[str, str]]:
    """Field and text of every string of a JSON value, names too."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, dict):
        for name, one in value.items():
            place = f"{field}.{name}" if field else name
            yield place, name
            yield from _strings(place, one)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _strings(f"{field}.{number}", one)


def _domains(entry: Entry) -> Found:
    if entry.scores.keys() != set(entry.group.about):
        told = f"says {', '.join(entry.group.about)}, but the scores are of {', '.join(entry.scores)}"
        yield "group", "group.domains", told


def _ranges(entry: Entry) -> Found:
    scores: dict[str, float | None] = {f"scores.{domain}": score for domain, score in entry.scores.items()}
    scores |= {"stated_overall": entry.stated_overall, "computed_overall": entry.computed_overall}
    if entry.rules:
        scores |= {f"rules.scores.{domain}": score for domain, score in entry.rules.scores.items()}
        scores["rules.overall"] = entry.rules.overall
        skills = {f"rules.skill.{domain}": value for domain, value in entry.rules.skill.items()}
        for field, skill in {**skills, "rules.overall_skill": entry.rules.overall_skill}.items():
            if skill is not None and skill > 1 + EXACT:
                yield "range", field, f"is {skill:g}, but the reference's skill is 1, and nothing has more"
    for field, score in scores.items():
        if score is not None and not -EXACT <= score <= 100 + EXACT:
            yield "range", field, f"is {score:g}, but a score lies from 0 to 100"


def _intervals(entry: Entry) -> Found:
    yield from _around("intervals", entry.intervals, entry.scores)
    overall = {"overall_interval": entry.computed_overall}
    yield from _around("", _present(overall_interval=entry.overall_interval), overall)
    if entry.rules:
        yield from _around("rules.intervals", entry.rules.intervals, entry.rules.scores)
        known = _present(interval=entry.rules.interval, skill_interval=entry.rules.skill_interval)
        values = {"interval": entry.rules.overall, "skill_interval": entry.rules.overall_skill}
        yield from _around("rules", known, values)


def _present(**intervals: Interval | None) -> dict[str, Interval]:
    return {name: one for name, one in intervals.items() if one is not None}


def _around(field: str, intervals: Mapping[str, Interval], values: Mapping[str, float | None]) -> Found:
    for name, one in intervals.items():
        place, value = ".".join(filter(None, (field, name))), values.get(name)
        if value is None:
            yield "interval", place, "has no number that it belongs to"
        elif one.low is None or one.high is None:
            if not one.flags:
                yield "interval", place, "has neither bounds nor a flag that says why"
        elif not one.low - EXACT <= value <= one.high + EXACT:
            yield "interval", place, f"({one.low:g} to {one.high:g}) does not contain its number {value:g}"


def _coverage(entry: Entry) -> Found:
    if entry.coverage is None:
        if entry.status != "reported":
            yield "coverage", "coverage", "is missing: only a reported entry may leave it undisclosed"
        return
    if entry.coverage.keys() != entry.scores.keys():
        yield "coverage", "coverage", "must name the same domains as scores"
    for domain, share in entry.coverage.items():
        if not 0 <= share <= 1:
            yield "coverage", f"coverage.{domain}", f"is {share:g}, but a share lies from 0 to 1"


def _overall(entry: Entry) -> Found:
    mean = entry.mean_of_domains
    near = ROUNDED if entry.status == "reported" else EXACT
    if abs(entry.computed_overall - mean) > near:
        yield (
            "mean",
            "computed_overall",
            f"is {entry.computed_overall:g}, but the mean of the domains is {mean:g}",
        )
    if entry.stated_overall is None:
        return
    if entry.status != "reported":
        yield "mean", "stated_overall", "belongs to reported entries; a run's overall score is computed"
    elif abs(entry.stated_overall - mean) > ROUNDED and not entry.note:
        yield (
            "mean",
            "note",
            f"must explain why {entry.stated_overall:g} is stated where the domains' mean is {mean:g}",
        )


def _standing(entry: Entry) -> Found:
    """What each status must bring along."""
    if entry.status == "reported":
        if entry.source is None:
            yield "source", "source", "is missing: a reported number says where it stands"
        elif not entry.source.url.startswith(("https://", "http://")):
            yield "source", "source.url", "is no web address (https://…)"
        return
    for field in ("provenance", "costs", "policy"):
        if getattr(entry, field) is None:
            yield (
                "missing",
                field,
                f"is missing from a {entry.status} entry; `awb leaderboard add RUN` fills it in",
            )
    if entry.group.score == "judge" and not entry.judges:
        yield "missing", "judges", f"is empty in a {entry.status} entry of judge scores"


def _times(entry: Entry) -> Found:
    """Times that are none, or in the wrong order. What the time is now is not asked: an entry is right or wrong for good."""
    run = entry.provenance
    named = {} if run is None else {"provenance.begun": run.begun, "provenance.date": run.date}
    if entry.verification is not None:
        named["verification.date"] = entry.verification.date
    for field, text in named.items():
        if moment(text) is None:
            yield "time", field, f"is {text}, which is no time"
    if run is not None and run.begun > run.date:
        yield "time", "provenance.begun", f"is {run.begun}, after the run was last worked on ({run.date})"


def _verification(entry: Entry) -> Found:
    if entry.status != "verified":
        if entry.verification is not None:
            yield "missing", "status", "must be verified where a verification is given"
        return
    for field in ("bundle", "verification"):
        if getattr(entry, field) is None:
            yield "missing", field, "is missing: a verified entry names its bundle, and who replayed it"
    found, bundle = entry.verification, entry.bundle
    if found is None:
        return
    if bundle is not None and found.bundle_sha256 != bundle.sha256:
        told = f"is {found.bundle_sha256}, but the entry's bundle is {bundle.sha256}; {VERIFY_AGAIN}"
        yield "verification", "verification.bundle_sha256", told
    if found.entry_sha256 != entry_digest(entry):
        told = "is not the digest of this entry, which was changed after it was verified"
        if found.entry_sha256 is None:
            told = "is missing: an older version verified this entry, and vouched for its numbers alone"
        yield "verification", "verification.entry_sha256", f"{told}; {VERIFY_AGAIN}"
    if entry.provenance is not None and found.date < entry.provenance.date[:19]:
        told = f"is {found.date}, before the run was done ({entry.provenance.date})"
        yield "verification", "verification.date", told
    yield from _audit(entry, found.audit)


def _audit(entry: Entry, audit: VerifiedAudit | None) -> Found:
    judges = [one.judge.digest for one in entry.judges]
    if audit is not None and audit.judge not in judges:
        told = f"is {audit.judge}, but the entry's judge is {' or '.join(judges) or 'nobody'}"
        yield "verification", "verification.audit.judge", told
