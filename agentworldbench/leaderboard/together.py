"""What is wrong with entries only in company: alone, each of them may be in order.

In: the entries of a folder. Out: for each problem the entry, its field, the kind and a sentence. One model stands once in a
table, and one run too, whatever it is called; a bundle is that of one run; a group's entries have the same samples
and are headed alike; one revision of data has one set of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from agentworldbench.leaderboard.entries import Entry, grouped
from agentworldbench.leaderboard.provenance import Provenance

Told = tuple[Entry, Literal["duplicate", "group"], str, str]
"""The entry, kind, field, and a sentence."""


def together(entries: Sequence[Entry]) -> Iterator[Told]:
    """All problems of entries in company."""
    ordered = sorted(entries, key=lambda one: one.slug)
    for _, some in grouped(ordered):
        of_group = sorted(some, key=lambda one: one.slug)
        yield from _twice(of_group)
        yield from _unlike(of_group)
    yield from _bundles(ordered)
    yield from _revisions(ordered)


def _twice(entries: Sequence[Entry]) -> Iterator[Told]:
    models: dict[str, Entry] = {}
    runs: dict[str, Entry] = {}
    for entry in entries:
        if other := models.get(entry.model):
            told = f"'{entry.model}' stands in this group already ({other.slug}.json); give one another name, or remove it"
            yield entry, "duplicate", "model", told
        elif entry.provenance and (other := runs.get(_run(entry.provenance))):
            told = f"is of the run that stands in this group already as '{other.model}' ({other.slug}.json); remove one"
            yield entry, "duplicate", "provenance", told
        models.setdefault(entry.model, entry)
        if entry.provenance:
            runs.setdefault(_run(entry.provenance), entry)


def _run(provenance: Provenance) -> str:
    """What tells a run from all others."""
    return f"{provenance.begun} {provenance.predict.model_dump_json()}"


def _bundles(entries: Sequence[Entry]) -> Iterator[Told]:
    """A bundle holds one run, which may have an entry for each of its judges."""
    first: dict[str, Entry] = {}
    for entry in entries:
        if entry.bundle is None or entry.provenance is None:
            continue
        other = first.setdefault(entry.bundle.sha256, entry)
        if other.provenance and _run(other.provenance) != _run(entry.provenance):
            told = f"is the bundle of another run ({other.slug}.json); a bundle holds one"
            yield entry, "duplicate", "bundle.sha256", told


def _revisions(entries: Sequence[Entry]) -> Iterator[Told]:
    """Of one revision of a repository a file has one hash."""
    first: dict[tuple[str, str, str], tuple[str, Entry]] = {}
    for entry in entries:
        data = entry.provenance and entry.provenance.predict.data
        if not data or data.repository is None or data.revision is None:
            continue
        for domain, sha256 in data.files.items():
            before, other = first.setdefault((data.repository, data.revision, domain), (sha256, entry))
            if before != sha256:
                told = f"is {sha256}, but {before} in {other.slug}.json of the same revision"
                yield entry, "group", f"provenance.predict.data.files.{domain}", told


def _unlike(entries: Sequence[Entry]) -> Iterator[Told]:
    measured = [entry for entry in entries if entry.status != "reported"]
    counts = [(entry, entry.provenance.samples) for entry in measured if entry.provenance]
    for entry, samples in counts[1:]:
        if samples != counts[0][1]:
            told = f"are {samples}, but {counts[0][1]} in {counts[0][0].slug}.json of the same group"
            yield entry, "group", "provenance.samples", told
    for entry in measured[1:]:
        for field in ("policy", "parse"):
            mine, theirs = getattr(entry, field), getattr(measured[0], field)
            if mine != theirs:
                told = f"is {mine}, but {theirs} in {measured[0].slug}.json of the same group"
                yield entry, "group", field, told
