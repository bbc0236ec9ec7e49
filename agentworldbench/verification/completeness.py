"""Whether every sample of the selection is there, once an epoch, and nothing else.

In: the record, the journals, the data. Out: hits for samples without a record, records of strangers, rows that are
not those of the data, samples chosen by hand, and good answers that replaced other good ones. A journal keeps what it
was told; what a submitter deleted from it before, nobody can see, so a run that left failures out and says so nowhere
shows as samples without a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from agentworldbench.journal import Journal, R
from agentworldbench.records import Verdict
from agentworldbench.texts import count_text
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case, Material

MISSING: Final = "a sample of the selection has no prediction; the command that made the run goes on with it"
NO_VERDICT: Final = "a prediction that can be judged has no verdict; the command that made the run, or `awb judge`, goes on with it"
CHOSEN: Final = "the samples were chosen by name (--sample-id): what was left out is not known"
OTHER_ROW: Final = "the record is about another row than the one of this id"
BEYOND: Final = "more verdicts of a judge on one answer than the run has; they count nowhere"
STRANGER: Final = "a record of a sample that the selection does not have"


def check_case(case: Case, material: Material) -> Iterator[Hit]:
    """Hits of one case: missing records, and rows that differ from the data's."""
    prediction = case.prediction
    if prediction is None:
        yield Hit("completeness", "refused", MISSING, case.where)
        return
    if material.samples is not None and prediction.row_hash != case.ref.row_hash:
        yield Hit("completeness", "refused", OTHER_ROW, case.where)
    for judge, verdict in case.verdicts:
        if material.samples is not None and verdict.row_hash != case.ref.row_hash:
            yield Hit("completeness", "refused", OTHER_ROW, f"{case.where} by {judge.model}")
    for judge in material.record.judges:
        shown = prediction.official_sha256 if judge.parse == "official" else prediction.observation
        system = judge.system_prompts.get(case.ref.domain)
        wanted = material.record.repeats.get(judge.digest, 1)
        # A verdict on another text, or under another prompt, counts nowhere: it is none on this prediction.
        given = [
            material.store.verdict_on(prediction, judge.digest, judge.parse, system, repeat)
            for repeat in range(1, wanted + 1)
        ]
        if shown is not None and None in given:
            yield Hit("completeness", "refused", NO_VERDICT, f"{case.where} by {judge.model}")


def check_selection(material: Material) -> Iterator[Hit]:
    """Whether the selection says how its samples came to be chosen, and how many there are."""
    record = material.record
    selection = record.selection
    if selection.sample_id:
        yield Hit("selection", "refused", CHOSEN, f"{count_text(len(selection.sample_id), 'sample')}")
    parts = [
        name for name in ("limit", "limit_trajectories", "shard") if getattr(selection, name) is not None
    ]
    if parts:
        told = ", ".join(f"{name} {getattr(selection, name)}" for name in parts)
        message = "the run is about a part of its data; a part can be chosen by its outcome"
        whole = "; `awb runs merge` puts the parts together" if selection.shard else ""
        yield Hit("selection", "warning", message, f"{told}, seed {selection.seed}{whole}")
    if material.samples is None:
        for domain, count in selection.samples.items():
            found = sum(ref.domain == domain for ref in material.refs())
            if domain in material.tasks and found < count:
                yield Hit("completeness", "refused", MISSING, f"{domain}: {count - found} of {count}")
        return
    there = Counter(ref.domain for ref in material.samples.refs)
    for domain in material.tasks:
        if there[domain] != selection.samples[domain]:
            message = "the selection has another number of samples than it says"
            yield Hit(
                "selection",
                "refused",
                message,
                f"{domain}: {selection.samples[domain]}, should be {there[domain]}",
            )


def check_journals(material: Material) -> Iterator[Hit]:
    """Strangers, lines that cannot be read, and good answers that replaced other good ones."""
    known = {(ref.id, epoch) for ref in material.refs() for epoch in range(1, material.record.epochs + 1)}
    judges = {judge.digest for judge in material.record.judges}
    for journal in (material.store.predictions, material.store.verdicts):
        name = journal.path.name
        for number in journal.bad_lines:
            yield Hit("journals", "refused", "a line that is no record", f"{name}:{number}")
        if material.samples is not None:
            for key in journal.keys():  # noqa: SIM118 - a journal is no mapping
                if (
                    isinstance(key, tuple)
                    and key[:2] not in known
                    and key[0].partition("/")[0] in material.tasks
                ):
                    yield Hit("completeness", "refused", STRANGER, f"{name}: {key[0]} (epoch {key[1]})")
    repeats = {judge.digest: material.record.repeats.get(judge.digest, 1) for judge in material.record.judges}
    beyond = Counter(
        one.judge for one in material.store.verdicts if one.repeat > repeats.get(one.judge, one.repeat)
    )
    for judge, count in beyond.items():
        yield Hit("journals", "warning", BEYOND, f"{judge}: {count}, the run has {repeats[judge]} each")
    for verdict_judge, count in Counter(one.judge for one in material.store.verdicts).items():
        if verdict_judge not in judges:
            message = "verdicts of a judge that the run does not name; they count nowhere"
            yield Hit("journals", "warning", message, f"{verdict_judge}: {count}")
    yield from _replaced(material.store.predictions)
    yield from _replaced(material.store.verdicts)


def _replaced(journal: Journal[R]) -> Iterator[Hit]:
    """A good answer behind another good one on the same question: it may have been drawn until it pleased."""
    good: dict[object, tuple[str | None, str | None]] = {}
    for record in journal.every_line():
        if record.failure is not None:
            continue
        told = record.reply if isinstance(record, Verdict) else record.text
        asked = f"{record.observation_sha256}{record.system_sha256}" if isinstance(record, Verdict) else None
        before = good.get(record.key)
        if before is not None and before[0] == asked and before[1] != told:
            message = "a good answer was replaced by another one; only the last counts"
            yield Hit(
                "journals",
                "warning",
                message,
                f"{journal.path.name}: {record.sample_id} (epoch {record.epoch})",
            )
        good[record.key] = (asked, told)
