"""What a session has still to ask for: of each sample the predictions and verdicts that no usable record holds.

In: the store, the model (or none), judges, epochs and repeats. Out: units and questions, and for a sample the record
that need not be made again. Failures of a moment are asked again, others on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentworldbench.engine.accounts import Job
from agentworldbench.engine.steps import Predictor
from agentworldbench.engine.units import Question, Unit
from agentworldbench.records import TRANSIENT, Failure, Prediction, SampleRef, Verdict
from agentworldbench.scoring.judge import Judge
from agentworldbench.store import Store


class Due:
    """`epochs` answers to each sample, on each `repeats` verdicts of every judge (one number for all, or by digest)."""

    def __init__(
        self,
        store: Store,
        predictor: Predictor | None,
        judges: Sequence[Judge],
        epochs: int = 1,
        repeats: int | Mapping[str, int] = 1,
        retry_failed: bool = False,
    ) -> None:
        self._store = store
        self._predictor = predictor
        self._judges = judges
        self._retry_failed = retry_failed
        self.epochs = range(1, epochs + 1)
        wanted = repeats if isinstance(repeats, Mapping) else {one.digest(): repeats for one in judges}
        self.repeats = {digest: range(1, number + 1) for digest, number in wanted.items()}

    def all(self, refs: Sequence[SampleRef]) -> tuple[list[Unit], list[Question]]:
        """What a session would ask for, before it is started.

        Questions include those about predictions that would be made.
        """
        units: list[Unit] = []
        questions: list[Question] = []
        for unit in self.units(refs):
            stored = self.prediction(unit)
            if stored is None and self._predictor is not None:
                units.append(unit)
            questions += [one for one in self.questions(unit) if self.is_due(one, stored)]
        return units, questions

    def units(self, refs: Iterable[SampleRef]) -> Iterator[Unit]:
        """Sample after sample, its epochs in a row: they have one prompt."""
        return (Unit(ref, epoch) for ref in refs for epoch in self.epochs)

    def questions(self, unit: Unit, place: int = 0) -> Iterator[Question]:
        """All verdicts that there are to be on a unit, made already or not."""
        for one in self._judges:
            yield from (Question(unit, one, n, place) for n in self.repeats[one.digest()])

    def jobs(self, unit: Unit, prediction: Prediction | None) -> list[Job]:
        """What is to be paid for a unit: its prediction where there is none yet, and its verdicts."""
        first = [unit.job] if prediction is None and self._predictor is not None else []
        return first + [one.job for one in self.questions(unit) if self.is_due(one, prediction)]

    def prediction(self, unit: Unit) -> Prediction | None:
        """The prediction that need not be made again, or None."""
        stored = self._store.predictions.get((unit.ref.id, unit.epoch))
        if stored is None or self._predictor is None:
            return stored
        return None if self._ask_again(self._predictor.failed(stored)) else stored

    def verdict(self, question: Question, prediction: Prediction) -> Verdict | None:
        """The verdict that is stored on a prediction, also a failed one, or None."""
        judge = question.judge
        system = judge.system_sha256(question.unit.ref.domain)
        return self._store.verdict_on(
            prediction, judge.digest(), judge.protocol.parse, system, question.repeat
        )

    def is_due(self, question: Question, prediction: Prediction | None) -> bool:
        """Whether a verdict is to be asked for, on a prediction or (None) on one that would be made."""
        if prediction is None:
            return self._predictor is not None
        if question.judge.shown(prediction) is None:
            return False
        stored = self.verdict(question, prediction)
        return stored is None or self._ask_again(question.judge.failed(stored))

    def _ask_again(self, failure: Failure | None) -> bool:
        """Whether a stored failure is asked again: transient ones always, others on request."""
        return failure is not None and (self._retry_failed or failure.kind in TRANSIENT)
