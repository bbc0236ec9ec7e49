"""The way of a sample through a run: predict → judge, overlapped, journaled, resumable.

In: a data set, the chosen samples, a model (or none) and judges, and a store. Out: records in the
store's journals. Workers take whole trajectories in the order of `order.py`; each trajectory has
one prediction request in flight, and a prediction is handed to the judges as soon as it is
journaled. Only sample references wait in the queue; texts are read again when due, so memory stays
flat. Records that exist already are not asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentworldbench.dataset import Dataset
from agentworldbench.engine.limiter import Limiters
from agentworldbench.engine.order import in_order
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.engine.steps import Predictor, judge, predict
from agentworldbench.errors import AwbError
from agentworldbench.models import Model
from agentworldbench.records import TRANSIENT, Failure, Prediction, Request, SampleRef, Verdict
from agentworldbench.scoring.judge import Judge
from agentworldbench.store import Store


@dataclass(frozen=True)
class Patience:
    """How many requests at once, how many further attempts, and whether old failures are asked again."""

    max_connections: int = 16
    max_retries: int = 6
    retry_failed: bool = False


@dataclass(frozen=True)
class Unit:
    """One prediction to make: a sample in one epoch (counted from 1)."""

    ref: SampleRef
    epoch: int = 1


@dataclass(frozen=True)
class Question:
    """One verdict to ask for: a judge on a unit's prediction, `repeat` counted from 1."""

    unit: Unit
    judge: Judge
    repeat: int = 1


class Pipeline:
    """One session of work on a run directory. `epochs` and `repeats` count from 1."""

    def __init__(
        self,
        dataset: Dataset,
        store: Store,
        predictor: Predictor | None,
        judges: Sequence[Judge],
        patience: Patience,
        progress: Progress,
        epochs: int = 1,
        repeats: int = 1,
    ) -> None:
        self._dataset = dataset
        self._store = store
        self._predictor = predictor
        self._judges = judges
        self._patience = patience
        self._progress = progress
        self._epochs = range(1, epochs + 1)
        self._repeats = range(1, repeats + 1)
        self._limiters = Limiters()
        self._queue: asyncio.Queue[Question | None] = asyncio.Queue()

    def due(self, refs: Sequence[SampleRef]) -> tuple[list[Unit], list[Question]]:
        """What a session would ask for, before it is started.

        Questions include those about predictions that would be made.
        """
        units: list[Unit] = []
        questions: list[Question] = []
        for unit in self._units(refs):
            stored = self._stored_prediction(unit)
            if stored is None and self._predictor is not None:
                units.append(unit)
            questions += [one for one in self._questions(unit) if self._is_due(one, stored)]
        return units, questions

    async def run(self, refs: Sequence[SampleRef], seed: int | None) -> None:
        """Do all that is due. Raises the AwbError of a fatal failure; finished records stay."""
        predictions = len(refs) * len(self._epochs)
        self._progress.predictions.total = predictions
        self._progress.verdicts.total = predictions * len(self._judges) * len(self._repeats)
        trajectories = iter(self._in_hand(in_order(refs, seed)))
        judging = max((self._workers(judge.model) for judge in self._judges), default=0)
        model = self._predictor.model if self._predictor else None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(judging):
                    group.create_task(self._judge_worker())
                async with asyncio.TaskGroup() as predicting:
                    for _ in range(self._workers(model)):
                        predicting.create_task(self._predict_worker(trajectories))
                for _ in range(judging):
                    self._queue.put_nowait(None)
        except BaseExceptionGroup as problems:
            raise _first_error(problems) from problems

    def _workers(self, model: Model | None) -> int:
        """Requests to have under way: as many as there are connections, or as an engine here works on."""
        return (model.batch if model else None) or self._patience.max_connections

    def _in_hand(self, trajectories: Iterable[tuple[SampleRef, ...]]) -> Iterator[tuple[SampleRef, ...]]:
        """What one worker does in a row: a trajectory; for an engine in this process, which fills its
        batches from all samples and profits from no turn before, a single sample."""
        single = self._predictor is not None and self._predictor.model.batch is not None
        for turns in trajectories:
            yield from ((ref,) for ref in turns) if single else (turns,)

    def _units(self, refs: Iterable[SampleRef]) -> Iterator[Unit]:
        """Epoch after epoch of the given samples."""
        return (Unit(ref, epoch) for epoch in self._epochs for ref in refs)

    def _questions(self, unit: Unit) -> Iterator[Question]:
        return (Question(unit, one, repeat) for one in self._judges for repeat in self._repeats)

    async def _predict_worker(self, trajectories: Iterator[tuple[SampleRef, ...]]) -> None:
        stage = self._progress.predictions
        for turns in trajectories:
            for unit in self._units(turns):
                prediction = self._stored_prediction(unit)
                if prediction is not None:
                    stage.reuse(prediction.failure)
                elif self._predictor is not None:
                    sample = self._dataset.load(unit.ref)
                    prediction = await predict(self._predictor, sample, unit.epoch, self._ask)
                    self._store.predictions.append(prediction)
                    stage.add(prediction.usage, prediction.cost_usd, prediction.failure)
                self._hand_over(unit, prediction)
                self._progress.update()
                await asyncio.sleep(0)

    def _stored_prediction(self, unit: Unit) -> Prediction | None:
        """The prediction that need not be made again, or None."""
        stored = self._store.predictions.get((unit.ref.id, unit.epoch))
        if stored is None or self._predictor is None:
            return stored
        return None if self._ask_again(self._predictor.failed(stored)) else stored

    def _ask_again(self, failure: Failure | None) -> bool:
        """Whether a stored failure is asked again: transient ones always, others on request."""
        return failure is not None and (self._patience.retry_failed or failure.kind in TRANSIENT)

    def _stored_verdict(self, question: Question, prediction: Prediction) -> Verdict | None:
        judge = question.judge
        system = judge.system_sha256(question.unit.ref.domain)
        return self._store.verdict_on(
            prediction, judge.digest(), judge.protocol.parse, system, question.repeat
        )

    def _is_due(self, question: Question, prediction: Prediction | None) -> bool:
        if prediction is None:
            return self._predictor is not None
        if question.judge.shown(prediction) is None:
            return False
        stored = self._stored_verdict(question, prediction)
        return stored is None or self._ask_again(question.judge.failed(stored))

    def _hand_over(self, unit: Unit, prediction: Prediction | None) -> None:
        """Queue the judging of a prediction, where it can be judged and is not yet."""
        stage = self._progress.verdicts
        for question in self._questions(unit):
            if prediction is None or question.judge.shown(prediction) is None:
                stage.total -= 1
            elif self._is_due(question, prediction):
                self._queue.put_nowait(question)
            else:
                stored = self._stored_verdict(question, prediction)
                stage.reuse(question.judge.failed(stored) if stored else None)

    async def _judge_worker(self) -> None:
        while (question := await self._queue.get()) is not None:
            unit = question.unit
            prediction = self._store.predictions.get((unit.ref.id, unit.epoch))
            assert prediction is not None, "queued only when predicted"
            sample = self._dataset.load(unit.ref)
            verdict = await judge(question.judge, prediction, sample, question.repeat, self._ask)
            self._store.verdicts.append(verdict)
            self._progress.verdicts.add(verdict.usage, verdict.cost_usd, question.judge.failed(verdict))
            self._progress.update()
            await asyncio.sleep(0)

    async def _ask(self, model: Model, request: Request) -> Answer:
        limiter = self._limiters.of(model.endpoint, self._workers(model))
        return await ask(model, request, limiter, self._patience.max_retries, self._progress)


def _first_error(problems: BaseExceptionGroup) -> BaseException:
    """The expected error inside a group, else the first of all: a group says little to a person."""
    leaves: list[BaseException] = []
    stack: list[BaseException] = [problems]
    while stack:
        problem = stack.pop()
        if isinstance(problem, BaseExceptionGroup):
            stack.extend(problem.exceptions)
        else:
            leaves.append(problem)
    return next((problem for problem in leaves if isinstance(problem, AwbError)), leaves[0])
