"""Whether what a measured entry says of itself agrees with the run that it carries: group, scores, readings.

In: one entry. Out: kind, field and sentence of each contradiction. The group's digests must be those of the data
files, prompts and judge that stand in the entry, and scores and coverage those of the reading that heads it: an edited
number that leaves the rest alone is found here. That the readings follow from replies only a replay shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Final, Literal

from agentworldbench.leaderboard.entries import Entry, partial
from agentworldbench.leaderboard.measured import prompts_digest, slug_of
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.sources import misnamed
from agentworldbench.stats.results import Reading
from agentworldbench.texts import digest

Contradiction = tuple[Literal["group", "readings"], str, str]
EXACT: Final = 1e-6
"""How far computed numbers may lie from each other: rounding in another order."""


def against_run(entry: Entry) -> Iterator[Contradiction]:
    """The contradictions of one entry; nothing for a reported one, which carries no run."""
    if entry.provenance is not None:
        slug = slug_of(entry.model, entry.group)
        if entry.slug != slug:
            yield "group", "slug", f"is not that of this name and group, which is {slug}"
        yield from _data(entry)
        yield from _judge(entry)
    reading = entry.readings.get(entry.parse) if entry.parse else None
    if reading is not None and entry.policy is not None:
        yield from _headline(entry, reading)


def _data(entry: Entry) -> Iterator[Contradiction]:
    assert entry.provenance is not None
    predict, group = entry.provenance.predict, entry.group
    stated = {
        "data": (group.data, predict.data.name),
        "data_revision": (group.data_revision, predict.data.revision),
        "data_sha256": (group.data_sha256, digest(predict.data.files)),
        "context_policy": (group.context_policy, predict.context_policy),
        "domains": (group.domains, partial(predict.data.files)),
    }
    for field, (mine, theirs) in stated.items():
        if mine != theirs:
            yield "group", f"group.{field}", f"is {mine}, but {theirs} by the run in provenance"
    data = predict.data
    if why := misnamed(data.name, data.repository, data.revision, data.files):
        yield "group", "provenance.predict.data", why


def _judge(entry: Entry) -> Iterator[Contradiction]:
    """A panel has a name and digest of its own; protocol and prompts are its judges'."""
    assert entry.provenance is not None
    group, judges = entry.group, [one.judge for one in entry.judges]
    if (len(judges) > 1) != (entry.panel is not None):
        yield "group", "panel", "is there exactly where judges has more than one"
    stated: dict[str, tuple[object, object]] = {
        "prompts_sha256": (group.prompts_sha256, prompts_digest(entry.provenance.predict, judges))
    }
    for judge in judges:
        stated["protocol"] = (group.protocol, judge.protocol)
        stated["gui_diagnostics"] = (group.gui_diagnostics, "diagnostics" in judge.prompts)
        if len(judges) == 1:
            stated |= {
                "judge": (group.judge, judge.model),
                "judge_digest": (group.judge_digest, judge.digest),
            }
        known = PROTOCOLS.get(judge.protocol)
        if known is not None and (entry.policy, entry.parse) != (known.policy, known.parse):
            yield "group", "policy", f"and parse are not those that protocol {judge.protocol} is headed by"
    for field, (mine, theirs) in stated.items():
        if mine != theirs:
            yield (
                "group",
                f"group.{field}",
                f"is {mine}, but {theirs} by what stands in judges and provenance",
            )


def _headline(entry: Entry, reading: Reading) -> Iterator[Contradiction]:
    for domain in sorted(entry.scores.keys() ^ reading.domains.keys()):
        yield "readings", f"scores.{domain}", "stands in only one of scores and readings"
    for domain in entry.scores.keys() & reading.domains.keys():
        block = reading.domains[domain]
        total = getattr(block, str(entry.policy))["total"]
        if not _same(entry.scores[domain], total):
            yield "readings", f"scores.{domain}", f"is {entry.scores[domain]:g}, but {total} in readings"
        covered = (entry.coverage or {}).get(domain)
        if not _same(covered, block.coverage):
            yield "readings", f"coverage.{domain}", f"is {covered}, but {block.coverage:g} in readings"
    overall = getattr(reading, f"macro_{entry.policy}")["total"]
    if not _same(entry.computed_overall, overall):
        yield "readings", "computed_overall", f"is {entry.computed_overall:g}, but {overall} in readings"


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=0, abs_tol=EXACT)
