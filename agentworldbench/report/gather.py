"""A run directory read for its report: one prediction after the other, with all that is known of it.

In: the directory, and where its data are now. Out: an `Opened` run, and `Item`s, one for each sample and epoch, made
when they are asked for and forgotten afterwards: journals and rows are read again, so memory does not grow with a run.
Nothing is asked of any model and nothing in the run directory is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentworldbench.errors import ConfigError
from agentworldbench.official import official_observation
from agentworldbench.plan import Samples
from agentworldbench.readings import BothReadings, Outcome, both_readings
from agentworldbench.records import Prediction, Sample, SampleMetrics, SampleRef, Verdict
from agentworldbench.resume import reopen_samples
from agentworldbench.run import load_run
from agentworldbench.run_record import JudgeRecord, RunRecord, judge_names
from agentworldbench.stats.aggregate import score_of, value_of
from agentworldbench.stats.conflicts import Conflict, compare
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, open_store
from agentworldbench.task import Task


@dataclass(frozen=True)
class Given:
    """One verdict, or none: how its judge's own rules read it (`head`), and how the others do."""

    judge: JudgeRecord
    repeat: int
    verdict: Verdict | None
    head: Outcome
    other: Outcome

    @property
    def score(self) -> float | None:
        """0-100, or None where there is no value."""
        total = (self.head.values or {}).get("total")
        return None if total is None else score_of([total])


@dataclass(frozen=True)
class Item:
    """One sample in one epoch."""

    sample: Sample
    task: Task
    epoch: int
    prediction: Prediction | None
    metrics: SampleMetrics | None
    given: tuple[Given, ...]

    @property
    def ref(self) -> SampleRef:
        """The sample's place."""
        return self.sample.ref

    @cached_property
    def shown(self) -> tuple[str | None, str]:
        """The predicted observation, and by which rules: the strict ones, or the official ones where those find none."""
        if self.prediction is None:
            return None, "strict"
        if self.prediction.observation is not None or self.prediction.official_sha256 is None:
            return self.prediction.observation, "strict"
        tag, marker = self.task.prediction_tag, self.task.markers.observation
        return official_observation(self.prediction.text, None, tag, marker), "official"

    @property
    def rule(self) -> float | None:
        """The rule score, 0-100; None where the prediction failed or no primary metric applies."""
        value = None if self.metrics is None else value_of(self.metrics, self.task.primary)
        return None if value is None else 100 * value

    def of_judge(self, judge: JudgeRecord) -> tuple[Given, ...]:
        """The verdicts of one judge, repeat after repeat."""
        return tuple(one for one in self.given if one.judge.digest == judge.digest)

    def conflict(self, one: Given) -> Conflict | None:
        """The conflict of this verdict with the rules, if it is one."""
        factuality = (one.head.values or {}).get("factuality")
        if factuality is None or self.metrics is None or self.metrics.failed is not None:
            return None
        found = compare(self.ref, factuality, self.metrics, self.task.primary)
        return found.conflict if found else None


@dataclass(frozen=True)
class Numbers:
    """What came out of a run: headlines and tables need neither its data nor its journals."""

    run: RunRecord
    results: Results

    @property
    def judge_names(self) -> tuple[str, ...]:
        """What each judge is called, in the order of the results: while a run is watched it may have more by now."""
        return _judge_names([one.judge for one in self.results.judges])


@dataclass(frozen=True)
class Gathered:
    """A run and the data it was made on: what the pages of single predictions need."""

    path: Path
    run: RunRecord
    store: Store
    samples: Samples
    metrics: Mapping[tuple[str, int], SampleMetrics]

    @property
    def model(self) -> str:
        """The model string as the user wrote it."""
        return str(self.run.predict.model["model"])

    @property
    def judge_names(self) -> tuple[str, ...]:
        """What each judge is called, in the order of the run."""
        return _judge_names(self.run.judges)

    def items(self, refs: Sequence[SampleRef]) -> Iterator[Item]:
        """All epochs of each of these samples, one after the other."""
        for ref in refs:
            sample, task = self.samples.dataset.load(ref), self.samples.tasks[ref.domain]
            given = [self._given(ref, judge) for judge in self.run.judges]
            for epoch in range(1, self.run.epochs + 1):
                yield Item(
                    sample,
                    task,
                    epoch,
                    self.store.predictions.get((ref.id, epoch)),
                    self.metrics.get((ref.id, epoch)),
                    tuple(one for some in given for at, one in some if at == epoch),
                )

    def _given(self, ref: SampleRef, judge: JudgeRecord) -> list[tuple[int, Given]]:
        repeats = self.run.repeats.get(judge.digest, 1)
        found = both_readings(self.store, {ref.domain: [ref]}, judge, self.run.epochs, repeats)
        return [(both.epoch, _of_reading(judge, both)) for both in found]


@dataclass(frozen=True)
class Opened(Gathered):
    """A run with results."""

    results: Results

    @property
    def numbers(self) -> Numbers:
        """Its numbers alone."""
        return Numbers(self.run, self.results)


def _judge_names(judges: Sequence[JudgeRecord]) -> tuple[str, ...]:
    names = judge_names(judges)
    return tuple(names[one.digest] for one in judges)


def _of_reading(judge: JudgeRecord, both: BothReadings) -> Given:
    pair = (both.official, both.strict) if judge.parse == "official" else (both.strict, both.official)
    return Given(judge, both.repeat, both.verdict, *pair)


def open_run(path: Path, data: str | None = None) -> Opened:
    """Open a run for its report; `data` says where its data are now, when they have moved.

    Raises ConfigError where it has no results, DataError where its data are not there or others.
    """
    found = load_run(path)
    if found.results is None:
        raise ConfigError(f"{path}: has no results yet; `awb score {path}` makes them")
    store = open_store(path)
    samples = reopen_samples(path, found.record, data)
    metrics = {(one.sample_id, one.epoch): one for one in store.read_metrics()}
    return Opened(path, found.record, store, samples, metrics, found.results)
