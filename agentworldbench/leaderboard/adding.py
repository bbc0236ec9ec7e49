"""Puts the entries of a run into a folder of entries: all of them or none, and the same run twice changes nothing.

In: entries as `measured.py` makes them, what a person says of them, the folder. Out: files, and for each what became of
it. An entry of another run under the same name is never overwritten unasked; one of the same run is renewed
and keeps what people said of it (submitter, bundle, note) unless they now say something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentworldbench.errors import DataError, StoreError
from agentworldbench.leaderboard.check import check_entry
from agentworldbench.leaderboard.entries import Entry, entry_text, read_entry
from agentworldbench.leaderboard.measured import renamed
from agentworldbench.leaderboard.provenance import Bundle, Submitter

Became = Literal["added", "renewed", "replaced", "unchanged"]


@dataclass(frozen=True)
class Said:
    """What a person says of the entries of a run: the name to show, who submits, where the bundle is. None: nothing."""

    name: str | None = None
    submitter: Submitter | None = None
    bundle: Bundle | None = None


@dataclass(frozen=True)
class Added:
    """One file, and what became of it."""

    path: Path
    entry: Entry
    became: Became


def add_entries(folder: Path, entries: Sequence[Entry], said: Said, force: bool = False) -> list[Added]:
    """Write entries into a folder, which is made where it is missing.

    Raises DataError where one of them is not fit to be entered, or stands in the way of another run's; StoreError where
    the folder cannot be written. Nothing is written then.
    """
    due = [_due(folder, entry, said, force) for entry in entries]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in due:
            if one.became != "unchanged":
                write_entry(one.path, one.entry)
    except OSError as problem:
        raise StoreError(f"{problem.filename or folder}: cannot be written ({problem.strerror})") from problem
    return due


def write_entry(path: Path, entry: Entry) -> None:
    """Write the file of an entry, the old one being there until the new one is whole. Raises OSError."""
    part = path.with_suffix(".json.part")
    part.write_text(entry_text(entry), encoding="utf-8")
    part.replace(path)


def _due(folder: Path, entry: Entry, said: Said, force: bool) -> Added:
    """What is to be written for one entry."""
    if said.name is not None:
        entry = renamed(entry, said.name)
    entry = entry.model_copy(update={"submitter": said.submitter, "bundle": said.bundle})
    path = folder / f"{entry.slug}.json"
    became: Became = "added"
    if path.exists():
        try:
            old = read_entry(path)
        except DataError:
            if not force:
                raise
            became = "replaced"
        else:
            became, entry = _beside(path, old, entry, force)
    if problems := check_entry(entry, path):
        first = problems[0]
        raise DataError(f"{path}: {first.field} {first.message}; the entry was not written")
    return Added(path, entry, became)


def _beside(path: Path, old: Entry, new: Entry, force: bool) -> tuple[Became, Entry]:
    """What becomes of the entry that lies there already."""
    if not _same_run(old, new):
        if not force:
            raise DataError(
                f"{path}: holds the entry of another run ({_told(old)}; this one: {_told(new)}); --force replaces it, --name "
                "enters this one under another name"
            )
        return "replaced", new
    kept = new.model_copy(
        update={
            "submitter": new.submitter or old.submitter,
            "bundle": new.bundle or old.bundle,
            "note": old.note,
        }
    )
    # A verification holds for the numbers and the bundle that were verified, not for later ones.
    verified = kept.model_copy(update={"status": old.status, "verification": old.verification})
    if verified == old:
        return "unchanged", old
    return "renewed", kept


def _same_run(old: Entry, new: Entry) -> bool:
    if old.provenance is None or new.provenance is None:
        return False
    return (old.provenance.begun, old.provenance.predict) == (new.provenance.begun, new.provenance.predict)


def _told(entry: Entry) -> str:
    begun = entry.provenance.begun if entry.provenance else "unknown"
    return f"begun {begun}, overall {entry.overall:.2f}"
