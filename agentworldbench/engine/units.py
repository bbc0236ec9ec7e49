"""What a session asks for, piece by piece: predictions and verdicts to be made, and what of them is left unfinished.

A stopped run gives up what is under way. Attempts that have ended by then were paid for: they are written down as
a record that counts money and nothing else (`journal.is_unfinished`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from agentworldbench.engine.accounts import Job
from agentworldbench.engine.progress import spent
from agentworldbench.errors import StoreError
from agentworldbench.journal import Journal, R
from agentworldbench.records import Attempt, Failure, FailureKind, Prediction, SampleRef, Verdict
from agentworldbench.scoring.judge import Judge
from agentworldbench.texts import sha256_text

GIVEN_UP: Final = "given up when the run was stopped, after these attempts"


@dataclass(frozen=True)
class Unit:
    """One prediction to make: a sample in one epoch (counted from 1)."""

    ref: SampleRef
    epoch: int = 1

    @property
    def job(self) -> Job:
        """The prediction as it is paid for."""
        return Job.of(self.ref, self.epoch)


@dataclass(frozen=True)
class Question:
    """One verdict to ask for: a judge on a unit's prediction, `repeat` counted from 1.

    `place` is that of the trajectory in the order of work.
    """

    unit: Unit
    judge: Judge
    repeat: int = 1
    place: int = 0

    @property
    def job(self) -> Job:
        """The verdict as it is paid for."""
        return Job.of(self.unit.ref, self.unit.epoch, self.judge.digest(), self.repeat)


def unfinished_prediction(unit: Unit, attempts: Sequence[Attempt]) -> Prediction:
    """What a prediction that was given up has cost."""
    return Prediction(**_spent(unit, attempts))


def unfinished_verdict(question: Question, observation: str, attempts: Sequence[Attempt]) -> Verdict:
    """What a verdict on `observation` that was given up has cost."""
    judge = question.judge
    return Verdict(
        **_spent(question.unit, attempts),
        judge=judge.digest(),
        repeat=question.repeat,
        observation_sha256=sha256_text(observation),
        system_sha256=judge.system_sha256(question.unit.ref.domain),
    )


def _spent(unit: Unit, attempts: Sequence[Attempt]) -> dict[str, Any]:
    usage, cost = spent(tuple(attempts))
    return {
        "sample_id": unit.ref.id,
        "row_hash": unit.ref.row_hash,
        "epoch": unit.epoch,
        "failure": Failure(kind=FailureKind.NOT_RUN, message=GIVEN_UP),
        "usage": usage,
        "cost_usd": cost,
        "attempts": tuple(attempts),
    }


@contextmanager
def accounted(journal: Journal[R], unfinished: Callable[[Sequence[Attempt]], R]) -> Iterator[list[Attempt]]:
    """A list for the attempts of one record. Where that never comes, for whatever reason, those that may have
    cost something are written to the journal."""
    attempts: list[Attempt] = []
    try:
        yield attempts
    except BaseException:
        if any(attempt.cost_usd != 0 for attempt in attempts):
            with suppress(StoreError):  # what stopped the run is told
                journal.append(unfinished(attempts))
        raise
