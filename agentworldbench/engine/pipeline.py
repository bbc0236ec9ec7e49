"""The way of a sample through a run: predict → judge, overlapped, journaled, resumable.

In: a data set, the chosen samples, a model (or none) and judges, and a store. Out: records in the
store's journals. Workers take whole trajectories in the order of `order.py`; each trajectory has
one prediction request in flight, and a prediction is handed to the judges as soon as it is
journaled. Records that exist already are not asked for again.

There are as many workers as there may ever be connections; most of them wait for a slot of the
endpoint's limiter, which goes to the earliest trajectory first. So what was begun is finished (and
judged) before more is begun. Only sample references wait; texts are read when the slot is there and
let go with the record, so memory stays flat.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product

from agentworldbench.dataset import Dataset
from agentworldbench.engine.accounts import Job
from agentworldbench.engine.ahead import LONG, Ahead
from agentworldbench.engine.limiter import MOST, START, Limiter, Limiters, Slot
from agentworldbench.engine.order import Reads, Taken, Trajectory, Work, in_order, reads
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.rates import UNLIMITED, Ceilings
from agentworldbench.engine.recall import remembered
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.engine.spending import Ledger
from agentworldbench.engine.steps import Predictor, judge, predict
from agentworldbench.engine.turns import Turns
from agentworldbench.engine.units import (
    Question,
    Unit,
    accounted,
    unfinished_prediction,
    unfinished_verdict,
)
from agentworldbench.errors import AwbError
from agentworldbench.models import Model
from agentworldbench.records import TRANSIENT, Attempt, Failure, Prediction, Request, SampleRef, Verdict
from agentworldbench.response_cache import ResponseCache
from agentworldbench.scoring.judge import Judge
from agentworldbench.store import Store


@dataclass(frozen=True)
class Patience:
    """How many requests at once (None: as many as an endpoint turns out to carry) and a minute, how many
    further attempts, whether old failures are asked again, and how many connections an endpoint can have."""

    max_connections: int | None = None
    max_retries: int = 6
    retry_failed: bool = False
    model_ceilings: Ceilings = UNLIMITED
    judge_ceilings: Ceilings = UNLIMITED
    most: int = MOST


class Pipeline:
    """One session of work on a run directory: `epochs` answers to each sample, on each `repeats` verdicts of
    every judge (one number for all, or by digest)."""

    def __init__(
        self,
        dataset: Dataset,
        store: Store,
        predictor: Predictor | None,
        judges: Sequence[Judge],
        patience: Patience,
        progress: Progress,
        epochs: int = 1,
        repeats: int | Mapping[str, int] = 1,
        cache: ResponseCache | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self._dataset = dataset
        self._store = store
        self._predictor = predictor
        self._judges = judges
        self._patience = patience
        self._progress = progress
        self._cache = cache
        self._ledger = ledger or Ledger()
        self._epochs = range(1, epochs + 1)
        wanted = repeats if isinstance(repeats, Mapping) else {one.digest(): repeats for one in judges}
        self._repeats = {digest: range(1, number + 1) for digest, number in wanted.items()}
        self._limiters = Limiters()
        self._turns = Turns()
        self._ahead = Ahead(dataset, self._turns)
        self._queue: asyncio.Queue[deque[Question] | None] = asyncio.Queue()
        self._lanes: dict[tuple[int, str], deque[Question]] = {}
        self._to_judge: Counter[tuple[str, str]] = Counter()

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
        verdicts = sum(map(len, self._repeats.values()))
        samples = Counter(ref.domain for ref in refs)
        totals = {domain: count * len(self._epochs) for domain, count in samples.items()}
        self._progress.predictions.totals = Counter(totals)
        self._progress.verdicts.totals = Counter(
            {domain: count * verdicts for domain, count in totals.items()}
        )
        # In an engine of this process nothing is read twice, and batches are filled from all samples.
        apart = self._predictor is not None and self._predictor.model.batch is not None
        work = Work(self._in_hand(in_order(refs, seed), apart), apart)
        for (digest, repeats), ref in product(self._repeats.items(), refs):
            self._to_judge[digest, ref.domain] += len(self._epochs) * len(repeats)
        self._progress.limiters = self._limiters
        judging = sum(self._workers(judge.model) for judge in self._judges)  # each may have its own endpoint
        model = self._predictor.model if self._predictor else None
        try:
            if self._predictor is not None:
                self._predictor.make_ready()
            if model is not None and model.endpoint is not None:
                await self._ahead.fill(self._first_ones(work, self._at_first(model)))
            async with asyncio.TaskGroup() as group:
                for _ in range(judging):
                    group.create_task(self._judge_worker())
                async with asyncio.TaskGroup() as predicting:
                    for _ in range(self._workers(model)):
                        predicting.create_task(self._predict_worker(work))
                for _ in range(judging):
                    self._queue.put_nowait(None)
        except BaseExceptionGroup as problems:
            raise _first_error(problems) from problems
        finally:
            self._turns.close()

    def _workers(self, model: Model | None) -> int:
        """Requests that may be under way: as many as connections at most, or as an engine here works on."""
        patience = self._patience
        return (model.batch if model else None) or min(patience.max_connections or MOST, patience.most)

    def _at_first(self, model: Model) -> int:
        """Requests under way at the beginning."""
        return min(self._patience.max_connections or START, self._workers(model))

    def _in_hand(self, trajectories: Iterable[Trajectory], apart: bool) -> Iterator[Trajectory]:
        """What one worker does in a row: a trajectory, or `apart` each of its samples."""
        for turns in trajectories:
            yield from ((ref,) for ref in turns) if apart else (turns,)

    def _units(self, refs: Iterable[SampleRef]) -> Iterator[Unit]:
        """Sample after sample, its epochs in a row: they have one prompt."""
        return (Unit(ref, epoch) for ref in refs for epoch in self._epochs)

    def _questions(self, unit: Unit, place: int = 0) -> Iterator[Question]:
        for one in self._judges:
            yield from (Question(unit, one, n, place) for n in self._repeats[one.digest()])

    async def _predict_worker(self, work: Work) -> None:
        while (taken := await work.take()) is not None:
            units = list(self._units(taken.turns))
            limiter = self._limiter(self._predictor.model) if self._predictor else Limiter(1)
            async with limiter.slot(taken.place) as slot:
                for index, unit in enumerate(units):
                    await self._predict(unit, taken, units[index + 1 :], slot, work)
                    work.answered(taken.turns)
                    self._progress.update()

    async def _predict(self, unit: Unit, taken: Taken, rest: Sequence[Unit], slot: Slot, work: Work) -> None:
        """Make sure of a prediction, and hand it over to the judges. No text outlives this call."""
        stage, place = self._progress.predictions, taken.place
        prediction = self._stored_prediction(unit)
        if self._ledger.limit is not None:
            slot.give_back()  # what this waits for may need it
        if not await self._ledger.admit(self._jobs(unit, prediction), place):
            return  # left for a session with a higher --max-cost
        if prediction is not None:
            stage.reuse(unit.ref.domain, prediction.failure)
            await asyncio.sleep(0)  # others and an interrupt are heard; who asks waits for a turn anyway
        elif self._predictor is not None:
            await slot.take()
            await self._turns.next()
            prompt = self._ahead.take(unit.ref)
            later = [one.ref for one in rest if self._stored_prediction(one) is None]
            self._prepare(later, work)
            again = reads(taken, unit.ref, later, self._predictor.model.limits.context)
            make = partial(predict, self._predictor, prompt, unit.epoch, read_again=again)
            with accounted(self._store.predictions, partial(unfinished_prediction, unit)) as attempts:
                prediction = await remembered(self._cache, partial(self._ask, slot, attempts), make)
            self._store.predictions.append(prediction)
            self._ledger.settle(unit.job, prediction)
            stage.add(unit.ref.domain, prediction.usage, prediction.cost_usd, prediction.failure)
            stage.recalled += prediction.cached_usage is not None
        self._hand_over(unit, prediction, place)

    def _prepare(self, later: Sequence[SampleRef], work: Work) -> None:
        """Have a prompt made ready meanwhile: the next one of this trajectory, or of one that is begun soon."""
        if self._predictor is None or self._predictor.model.endpoint is None:
            return
        turns = later or work.next_but(len(self._ahead))
        ref = turns[0] if turns else None
        if ref is not None and ref.length >= LONG and (ref.id, 1) not in self._store.predictions:
            self._ahead.want(ref)

    def _first_ones(self, work: Work, count: int) -> Iterator[SampleRef]:
        """The samples with which the first trajectories begin, as far as they have no record yet."""
        for turns in filter(None, map(work.next_but, range(count))):
            if (turns[0].id, 1) not in self._store.predictions:
                yield turns[0]

    def _jobs(self, unit: Unit, prediction: Prediction | None) -> list[Job]:
        """What is to be paid for a unit: its prediction where there is none yet, and its verdicts."""
        first = [unit.job] if prediction is None and self._predictor is not None else []
        return first + [one.job for one in self._questions(unit) if self._is_due(one, prediction)]

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

    def _hand_over(self, unit: Unit, prediction: Prediction | None, place: int) -> None:
        """Queue the judging of a prediction, where it can be judged and is not yet."""
        stage = self._progress.verdicts
        for question in self._questions(unit, place):
            if prediction is not None and self._is_due(question, prediction):
                self._line_up(question)
                continue
            self._to_judge[question.judge.digest(), unit.ref.domain] -= 1
            self._ledger.release(question.job)
            if prediction is None or question.judge.shown(prediction) is None:
                stage.totals[unit.ref.domain] -= 1
            else:
                stored = self._stored_verdict(question, prediction)
                stage.reuse(unit.ref.domain, question.judge.failed(stored) if stored else None)

    def _line_up(self, question: Question) -> None:
        """Queue a question behind those of its judge about the same trajectory: they begin alike too."""
        lane = deque[Question]()
        if question.judge.model.batch is None:
            lane = self._lanes.setdefault((question.place, question.judge.digest()), lane)
        lane.append(question)
        if len(lane) == 1:
            self._queue.put_nowait(lane)

    async def _judge_worker(self) -> None:
        while (lane := await self._queue.get()) is not None:
            while lane:  # the one that is asked stays in its lane, which so is nobody else's
                await self._judge(lane[0], list(islice(lane, 1, None)))
                self._progress.update()
                lane.popleft()

    async def _judge(self, question: Question, rest: Sequence[Question]) -> None:
        """Ask for a verdict and write it down."""
        unit, judging = question.unit, question.judge
        self._to_judge[judging.digest(), unit.ref.domain] -= 1
        async with self._limiter(judging.model).slot(question.place) as slot:
            await slot.take()
            await self._turns.next()
            prediction = self._store.predictions.get((unit.ref.id, unit.epoch))
            assert prediction is not None, "queued only when predicted"
            sample = self._dataset.load(unit.ref)
            more = self._to_judge[judging.digest(), unit.ref.domain] > 0
            again = Reads(first=more, whole=any(one.unit == unit for one in rest))
            make = partial(judge, judging, prediction, sample, question.repeat, read_again=again)
            observation = judging.shown(prediction)
            assert observation is not None, "queued only when it can be judged"
            unfinished = partial(unfinished_verdict, question, observation)
            with accounted(self._store.verdicts, unfinished) as attempts:
                verdict = await remembered(
                    self._cache, partial(self._ask, slot, attempts), make, judging.failed
                )
        self._store.verdicts.append(verdict)
        self._ledger.settle(question.job, verdict)
        stage = self._progress.verdicts
        stage.add(unit.ref.domain, verdict.usage, verdict.cost_usd, judging.failed(verdict))
        stage.recalled += verdict.cached_usage is not None

    async def _ask(self, slot: Slot, attempts: list[Attempt], model: Model, request: Request) -> Answer:
        return await ask(model, request, slot, self._patience.max_retries, self._progress, attempts)

    def _limiter(self, model: Model) -> Limiter:
        """The limiter of a model's endpoint; ceilings of all who share the endpoint hold for it."""
        return self._limiters.of(model.endpoint, lambda: self._new_limiter(model))

    def _new_limiter(self, model: Model) -> Limiter:
        most = self._workers(model)
        if model.batch or model.local:
            return Limiter(most)
        start = self._at_first(model)
        patience = self._patience
        roles = [(self._predictor.model, patience.model_ceilings)] if self._predictor else []
        roles += [(one.model, patience.judge_ceilings) for one in self._judges]
        ceilings = [mine for other, mine in roles if other.endpoint == model.endpoint]
        return Limiter(start, most, Ceilings.lowest(ceilings))


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
