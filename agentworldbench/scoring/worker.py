"""Scores stored predictions one by one: in this process, or as a worker process that is told which.

In: a `Job` (tasks, data files, journal: small, whatever the data's size) and `Item`s that say where a sample
and its prediction stand. Out: `SampleMetrics`. A worker is a new interpreter that runs `main`: it gets the job
and then lists of items as pickles on standard input and answers each item on standard output. It reads the
texts from the files itself, one sample at a time, and ends when its input does.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agentworldbench.dataset import DataFile, Dataset
from agentworldbench.errors import AwbError
from agentworldbench.journal import Place, record_at
from agentworldbench.records import Prediction, SampleMetrics, SampleRef
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.own import OwnCode
from agentworldbench.task import Task


@dataclass(frozen=True)
class Job:
    """What all items share: tasks and data files by domain, the journal of predictions, users' own metrics."""

    tasks: Mapping[str, Task]
    files: Mapping[str, DataFile]
    journal: Path
    own: Mapping[str, OwnCode]


@dataclass(frozen=True)
class Item:
    """One sample, and where its prediction stands in the journal."""

    ref: SampleRef
    place: Place


@dataclass(frozen=True)
class Bug:
    """An exception that nobody expected, as text: its traceback."""

    text: str


Answer = SampleMetrics | AwbError | Bug
READY = "ready"


class Scorer:
    """Scores the items of one job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._dataset = Dataset(job.files, ())
        self._own = {domain: code.metrics() for domain, code in job.own.items()}

    def score(self, item: Item) -> SampleMetrics:
        """Raises DataError when the data have changed, TaskError for an error in a metric of the user's own."""
        domain = item.ref.domain
        prediction = record_at(self._job.journal, Prediction, item.place)
        failed = prediction.failure.kind if prediction.failure else None
        sample = self._dataset.load(item.ref)
        return score_observation(
            sample,
            self._job.tasks[domain],
            prediction.observation,
            failed,
            epoch=prediction.epoch,
            own=self._own.get(domain),
        )


def main() -> None:
    """Answer until the input ends. Standard streams are the asking process's: metrics shall not touch them."""
    asked, told = _protocol_streams()
    try:
        scorer = _made(pickle.load(asked))
        _tell(told, READY if isinstance(scorer, Scorer) else scorer)
        while isinstance(scorer, Scorer):
            for item in pickle.load(asked):
                _tell(told, _answer(scorer, item))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # nobody asks any more


def _made(job: Job) -> Scorer | AwbError:
    try:
        return Scorer(job)
    except AwbError as problem:
        return problem


def _answer(scorer: Scorer, item: Item) -> Answer:
    try:
        return scorer.score(item)
    except AwbError as problem:
        return problem
    except Exception:  # noqa: BLE001 - told to the asking process, which raises it
        return Bug(traceback.format_exc())


def _tell(told: IO[bytes], what: Any) -> None:
    pickle.dump(what, told)
    told.flush()


def _protocol_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Input and output for the asking process alone; what others read is empty, what they print is an error."""
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing if sys.stderr is None else 2, 1)
    os.close(nothing)
    return asked, told
