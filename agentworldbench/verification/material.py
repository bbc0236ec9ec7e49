"""What is verified, opened: a run directory with what it claims, and the data and prompts it must be checked with.

In: a run directory (a bundle is one, once it is unpacked), where the data are, where the official prompt files are.
Out: `Material`. Tasks are always the harness' own, so that a bundle brings neither prompts nor code. Data are found by
name (bundled, or where this machine keeps what it pulled) and taken only if their hashes are the recorded ones; nothing
is fetched, and a path is opened only if the caller names it, never because the record does. What is missing is said as
`Unchecked`, what contradicts the record as a hit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from agentworldbench.config import RunConfig
from agentworldbench.errors import AwbError, DataError
from agentworldbench.hub import cached_file
from agentworldbench.official_files import OfficialPrompts, official_prompts
from agentworldbench.plan import SELECTION_FIELDS, Samples, open_samples
from agentworldbench.records import Prediction, Sample, SampleRef, Verdict
from agentworldbench.run import Run, load_run
from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.sources import OFFICIAL_REPOSITORY, OFFICIAL_REVISION, misnamed
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, open_store
from agentworldbench.task import Task, is_bundled, load_tasks
from agentworldbench.texts import count_text
from agentworldbench.verification.findings import Hit, Unchecked

_HUB: Final = r"hf:([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)"
_PINNED_HUB: Final = re.compile(rf"{_HUB}@([0-9a-f]{{40}})", re.ASCII)
"""Of other data on a hub only a fixed commit: of a branch, the hub would be asked what it is now."""
PINNED: Final = ("mini", "official")
"""Names of data whose files this harness knows: other files under such a name are refused."""
MOST_ANSWERS: Final = 1000
"""Predictions of a sample, or verdicts on all of them, that are verified."""
MISSING_ANSWERS: Final = 10_000
MISSING_VERDICTS: Final = 100_000
"""So many that are not there are looked for and named, beside three times as many as there are; a record that claims more
is refused before any work: looking for them would take as long as it likes."""


@dataclass(frozen=True)
class Case:
    """One sample in one epoch with all that is claimed about it; `sample` is None without the data."""

    ref: SampleRef
    task: Task
    sample: Sample | None
    epoch: int
    prediction: Prediction | None
    verdicts: tuple[tuple[JudgeRecord, Verdict], ...]

    @property
    def where(self) -> str:
        """The sample, and its epoch unless that is the first."""
        return self.ref.id + (f" (epoch {self.epoch})" if self.epoch > 1 else "")


@dataclass(frozen=True)
class Material:
    """A run as it claims to be. `samples` and `prompts` are None where they are not at hand; `given_reasoning` tells
    whether the models' reasoning is part of what is verified."""

    path: Path
    store: Store
    run: Run
    tasks: Mapping[str, Task]
    samples: Samples | None
    prompts: OfficialPrompts | None
    given_reasoning: bool = True
    hits: list[Hit] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)

    @property
    def record(self) -> RunRecord:
        """`run.json`."""
        return self.run.record

    @property
    def results(self) -> Results | None:
        """`results.json`."""
        return self.run.results

    @cached_property
    def longest_answered(self) -> int:
        """Tokens of the longest prompt that was answered with its whole history, as its provider counted them."""
        counted = (
            one.usage.prompt_tokens for one in self.store.predictions if one.text and not one.dropped_turns
        )
        return max((one for one in counted if one is not None), default=0)

    def refs(self) -> list[SampleRef]:
        """The samples of the selection; without the data, those that have a prediction."""
        if self.samples is not None:
            return list(self.samples.refs)
        known = {one.sample_id: one for one in self.store.predictions if one.epoch == 1}
        return [_bare_ref(one) for one in known.values() if _domain(one.sample_id) in self.tasks]

    def cases(self) -> Iterator[Case]:
        """Every sample in every epoch, one at a time; a row is read once."""
        record = self.record
        for ref in self.refs():
            sample = None if self.samples is None else self.samples.dataset.load(ref)
            for epoch in range(1, record.epochs + 1):
                prediction = self.store.predictions.get((ref.id, epoch))
                yield Case(
                    ref, self.tasks[ref.domain], sample, epoch, prediction, self._verdicts(ref.id, epoch)
                )

    def _verdicts(self, name: str, epoch: int) -> tuple[tuple[JudgeRecord, Verdict], ...]:
        found = []
        for judge in self.record.judges:
            for repeat in range(1, self.record.repeats.get(judge.digest, 1) + 1):
                verdict = self.store.verdicts.get((name, epoch, judge.digest, repeat))
                if verdict is not None:
                    found.append((judge, verdict))
        return tuple(found)


def open_material(
    path: Path, data: str | None = None, prompts: Path | None = None, given_reasoning: bool = True
) -> Material:
    """Open a run directory for verification. Raises ConfigError or StoreError when it cannot be read as one."""
    run = load_run(path)
    _check_claimed(run)
    hits: list[Hit] = []
    unchecked: list[Unchecked] = []
    wanted = [domain for domain, count in run.record.selection.samples.items() if count]
    known = [domain for domain in wanted if is_bundled(domain)]
    for domain in set(wanted) - set(known):
        unchecked.append(Unchecked(check="tasks", why=f"domain '{domain}' has no task of this harness"))
    tasks = load_tasks(known) if known else {}
    samples = _samples(run.record, tasks, data, hits, unchecked) if tasks else None
    material = Material(
        path=path,
        store=open_store(path),
        run=run,
        tasks=tasks,
        samples=samples,
        prompts=_prompts(run.record, prompts, unchecked),
        given_reasoning=given_reasoning,
        hits=hits,
        unchecked=unchecked,
    )
    _check_amount(material)
    return material


def _check_claimed(run: Run) -> None:
    """Raises DataError for so many answers as no run of this harness has: verification would never end."""
    record = run.record
    repeats = sum(record.repeats.get(judge.digest, 1) for judge in record.judges)
    if record.epochs * max(1, repeats) > MOST_ANSWERS:
        told = f"{count_text(record.epochs, 'epoch')} with {count_text(repeats, 'verdict')} each"
        raise DataError(f"run.json: {told}, where at most {MOST_ANSWERS:,} are verified of a sample")


def _check_amount(material: Material) -> None:
    """Raises DataError for a record that claims far more answers than its journals hold."""
    record, store = material.record, material.store
    repeats = sum(record.repeats.get(judge.digest, 1) for judge in record.judges)
    claimed = len(material.refs()) * record.epochs
    for name, wanted, found, missing in (
        ("predictions.jsonl", claimed, len(store.predictions), MISSING_ANSWERS),
        ("verdicts.jsonl", claimed * repeats, len(store.verdicts), MISSING_VERDICTS),
    ):
        if wanted > missing + 4 * found:
            told = count_text(record.epochs, "epoch") + (
                f" with {repeats} verdicts each" if repeats > 1 else ""
            )
            raise DataError(f"run.json: {told} want {count_text(wanted, 'record')}, {name} holds {found:,}")


def _samples(
    record: RunRecord,
    tasks: Mapping[str, Task],
    data: str | None,
    hits: list[Hit],
    unchecked: list[Unchecked],
) -> Samples | None:
    claimed_data = record.predict.data
    name, files = claimed_data.name, claimed_data.files
    if why := misnamed(name, claimed_data.repository, claimed_data.revision, files):
        hits.append(Hit("data", "refused", "the data are not what they are called", f"they {why}"))
    place = data or _place_of(record, tasks)
    if place is None:
        unchecked.append(Unchecked(check="data", why=_how_to_find(name)))
        return None
    fields = {one: getattr(record.selection, one) for one in SELECTION_FIELDS}
    try:
        samples = open_samples(RunConfig.model_validate(fields | {"data": place, "tasks": tuple(tasks)}))
    except (AwbError, ValueError) as problem:
        unchecked.append(Unchecked(check="data", why=f"--data {place} cannot be read: {problem}"))
        return None
    for domain in tasks:
        found, claimed = samples.dataset.files[domain].sha256, files.get(domain)
        if found == claimed:
            continue
        if samples.source.name in PINNED and name == samples.source.name:
            message = f"the data are called '{name}', but the recorded hash of a file is another one"
            hits.append(Hit("data", "refused", message, f"{domain}: {claimed}, should be {found}"))
        else:
            why = f"--data {place}: the file of '{domain}' is not the one that the run names ({claimed})"
            unchecked.append(Unchecked(check="data", why=why))
        return None
    return samples


def _place_of(record: RunRecord, tasks: Mapping[str, Task]) -> str | None:
    """Where on this machine the data of a run lie, by the name that it gives them."""
    name = record.predict.data.name
    if name == "mini":
        return name
    if name == "official":
        files = (
            cached_file(OFFICIAL_REPOSITORY, task.data_file, OFFICIAL_REVISION) for task in tasks.values()
        )
        return name if all(files) else None
    if (pinned := _PINNED_HUB.fullmatch(name)) is not None:
        files = (cached_file(pinned[1], task.data_file, pinned[2]) for task in tasks.values())
        return name if all(files) else None
    return None


def _how_to_find(name: str) -> str:
    """Why data of this name were not found, and what finds them."""
    if name == "official":
        return "the data (official) are not on this machine; `awb data pull official-data` fetches them"
    if _PINNED_HUB.fullmatch(name):
        return f"the data ({name}) are not on this machine; --data {name} fetches them"
    if re.fullmatch(rf"{_HUB}(@[\w.-]+)?", name, re.ASCII):
        return (
            f"the data ({name}) are not pinned to a commit, so that the hub would have to be asked what they are now; "
            f"--data {name.partition('@')[0]}@COMMIT names them"
        )
    return (
        f"the data are a folder of whoever made the run ({name}), and no path out of a record is opened; --data FOLDER "
        "names them, wherever they are on this machine"
    )


def _prompts(record: RunRecord, folder: Path | None, unchecked: list[Unchecked]) -> OfficialPrompts | None:
    """The official prompt files where a judge was asked with them."""
    if all(judge.protocol != "official" for judge in record.judges):
        return None
    try:
        return official_prompts(folder)
    except AwbError as problem:
        unchecked.append(
            Unchecked(check="judge prompts", why=f"the official prompts cannot be read: {problem}")
        )
        return None


def _domain(sample_id: str) -> str:
    return sample_id.partition("/")[0]


def _bare_ref(prediction: Prediction) -> SampleRef:
    """A sample of which nothing is known but its name; each is a trajectory of its own."""
    name = prediction.sample_id
    return SampleRef(
        id=name,
        domain=_domain(name),
        row_id=name,
        turn_idx=1,
        total_turns=1,
        cluster=name,
        task_key=name,
        row_hash=prediction.row_hash,
        line=0,
        offset=0,
        length=0,
        context_chars=0,
    )
