"""The way of a sample through a run: predict → judge, overlapped, journaled, resumable.

In: a data set, the chosen samples, a model (or none) and judges, and a store. Out: records in the
store's journals. Workers take whole trajectories in the order of `order.py`; each trajectory has
one prediction request in flight, and a prediction is handed to the judges as soon as it is
journaled. Only sample references wait in the queue; texts are read again when due, so memory stays
flat. Records that exist already are not asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentworldbench.dataset import Dataset
from agentworldbench.engine.limiter import Limiters
from agentworldbench.engine.order import in_order
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.engine.steps import Predictor, judge, predict
from agentworldbench.errors import AwbError
from agentworldbench.models import Model
from agentworldbench.records import TRANSIENT, Failure, Prediction, Request, SampleRef, sha256_text
from agentworldbench.scoring.judge import Judge
from agentworldbench.store import Store


@dataclass(frozen=True)
class Patience:
    """How many requests at once, how many further attempts, and whether old failures are asked again."""

    max_connections: int = 16
    max_retries: int = 6
    retry_failed: bool = False


@dataclass(frozen=True)
class _Due:
    """A prediction that a judge is to be asked about."""

    ref: SampleRef
    judge: Judge
    judge_digest: str


class Pipeline:
    """One session of work on a run directory."""

    def __init__(
        self,
        dataset: Dataset,
        store: Store,
        predictor: Predictor | None,
        judges: Sequence[Judge],
        patience: Patience,
        progress: Progress,
    ) -> None:
        self._dataset = dataset
        self._store = store
        self._predictor = predictor
        self._judges = [(one, one.digest()) for one in judges]
        self._patience = patience
        self._progress = progress
        self._limiters = Limiters(patience.max_connections)
        self._queue: asyncio.Queue[_Due | None] = asyncio.Queue()

    def due(self, refs: Sequence[SampleRef]) -> tuple[int, int]:
        """(predictions, verdicts) that a session would ask for, before it is started.

        Verdicts count one per judge and prediction that exists or would be made.
        """
        predictions = verdicts = 0
        for ref in refs:
            stored = self._stored_prediction(ref)
            predictions += stored is None and self._predictor is not None
            verdicts += sum(self._judge_is_due(ref, stored, digest) for _, digest in self._judges)
        return predictions, verdicts

    async def run(self, refs: Sequence[SampleRef], seed: int | None) -> None:
        """Do all that is due. Raises the AwbError of a fatal failure; finished records stay."""
        self._progress.predictions.total = len(refs)
        self._progress.verdicts.total = len(refs) * len(self._judges)
        trajectories = iter(in_order(refs, seed))
        judging = self._patience.max_connections if self._judges else 0
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(judging):
                    group.create_task(self._judge_worker())
                async with asyncio.TaskGroup() as predicting:
                    for _ in range(self._patience.max_connections):
                        predicting.create_task(self._predict_worker(trajectories))
                for _ in range(judging):
                    self._queue.put_nowait(None)
        except BaseExceptionGroup as problems:
            raise _first_error(problems) from problems

    async def _predict_worker(self, trajectories: Iterator[tuple[SampleRef, ...]]) -> None:
        stage = self._progress.predictions
        for turns in trajectories:
            for ref in turns:
                prediction = self._stored_prediction(ref)
                if prediction is not None:
                    stage.reuse(prediction.failure)
                elif self._predictor is not None:
                    prediction = await predict(self._predictor, self._dataset.load(ref), self._ask)
                    self._store.predictions.append(prediction)
                    stage.add(prediction.usage, prediction.cost_usd, prediction.failure)
                self._hand_over(ref, prediction)
                self._progress.update()
                await asyncio.sleep(0)

    def _stored_prediction(self, ref: SampleRef) -> Prediction | None:
        """The prediction that need not be made again, or None."""
        stored = self._store.predictions.get((ref.id, 1))
        again = stored is not None and self._predictor is not None and self._ask_again(stored.failure)
        return None if again else stored

    def _ask_again(self, failure: Failure | None) -> bool:
        """Whether a stored failure is asked again: transient ones always, others on request."""
        return failure is not None and (self._patience.retry_failed or failure.kind in TRANSIENT)

    def _judge_is_due(self, ref: SampleRef, prediction: Prediction | None, judge_digest: str) -> bool:
        if prediction is None:
            return self._predictor is not None
        if prediction.observation is None:
            return False
        stored = self._store.verdicts.get((ref.id, 1, judge_digest, 1))
        if stored is None or stored.observation_sha256 != sha256_text(prediction.observation):
            return True
        return self._ask_again(stored.failure)

    def _hand_over(self, ref: SampleRef, prediction: Prediction | None) -> None:
        """Queue the judging of a prediction, where it can be judged and is not yet."""
        stage = self._progress.verdicts
        for one, judge_digest in self._judges:
            if prediction is None or prediction.observation is None:
                stage.total -= 1
            elif self._judge_is_due(ref, prediction, judge_digest):
                self._queue.put_nowait(_Due(ref, one, judge_digest))
            else:
                stored = self._store.verdicts.get((ref.id, 1, judge_digest, 1))
                stage.reuse(stored.failure if stored else None)

    async def _judge_worker(self) -> None:
        while (due := await self._queue.get()) is not None:
            prediction = self._store.predictions.get((due.ref.id, 1))
            assert prediction is not None and prediction.observation is not None, "queued only when predicted"
            sample = self._dataset.load(due.ref)
            verdict = await judge(due.judge, due.judge_digest, sample, prediction.observation, self._ask)
            self._store.verdicts.append(verdict)
            self._progress.verdicts.add(verdict.usage, verdict.cost_usd, verdict.failure)
            self._progress.update()
            await asyncio.sleep(0)

    async def _ask(self, model: Model, request: Request) -> Answer:
        limiter = self._limiters.of(model.endpoint)
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
