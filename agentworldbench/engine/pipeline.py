"""The way of a sample through a run: predict → judge, overlapped, journaled, resumable.

In: a data set, the chosen samples, a model (or none) and judges, and a store. Out: records in the
store's journals. Workers take whole trajectories in the order of `order.py`; each trajectory has
one prediction request in flight, and a prediction is handed to the judges as soon as it is
journaled. Where answers come together, the next requests are sent before these are written down.

There are as many workers as there may ever be connections; most of them wait for a slot of the
endpoint's limiter, which goes to the earliest trajectory first. So what was begun is finished (and
judged) before more is begun. Only sample references wait; texts are read when the slot is there and
let go with the record, so memory stays flat.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Final

from agentworldbench.dataset import Dataset
from agentworldbench.engine.ahead import LONG, Ahead
from agentworldbench.engine.budget import Asker
from agentworldbench.engine.due import Due
from agentworldbench.engine.lanes import Lanes
from agentworldbench.engine.limiter import MOST, START, Limiter, Limiters, Slot
from agentworldbench.engine.order import Reads, Taken, Trajectory, Work, in_order, reads
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.rates import UNLIMITED, Ceilings
from agentworldbench.engine.recall import remembered
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.engine.spending import Ledger
from agentworldbench.engine.steps import Predictor, judge, predict
from agentworldbench.engine.turns import Row, Turns
from agentworldbench.engine.units import (
    Question,
    Unit,
    accounted,
    unfinished_prediction,
    unfinished_verdict,
)
from agentworldbench.errors import AwbError
from agentworldbench.models import Model
from agentworldbench.records import Attempt, Completion, Prediction, Request, SampleRef
from agentworldbench.response_cache import ResponseCache
from agentworldbench.scoring.judge import Judge
from agentworldbench.store import Store

FULL: Final = 0.75
"""Share of the connections for which prompts are in stock, above which no more are looked for."""


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
        self._due = Due(store, predictor, judges, epochs, repeats, patience.retry_failed)
        self._limiters = Limiters()
        self._turns = Turns()
        self._ahead = Ahead(dataset, self._turns)
        self._lanes = Lanes()
        self._to_judge: Counter[tuple[str, str]] = Counter()

    def due(self, refs: Sequence[SampleRef]) -> tuple[list[Unit], list[Question]]:
        """What a session would ask for, before it is started."""
        return self._due.all(refs)

    async def run(self, refs: Sequence[SampleRef], seed: int | None) -> None:
        """Do all that is due. Raises the AwbError of a fatal failure; finished records stay."""
        verdicts = sum(map(len, self._due.repeats.values()))
        samples = Counter(ref.domain for ref in refs)
        totals = {domain: count * len(self._due.epochs) for domain, count in samples.items()}
        self._progress.predictions.totals = Counter(totals)
        self._progress.verdicts.totals = Counter(
            {domain: count * verdicts for domain, count in totals.items()}
        )
        # In an engine of this process nothing is read twice, and batches are filled from all samples.
        apart = self._predictor is not None and self._predictor.model.batch is not None
        work = Work(self._in_hand(in_order(refs, seed), apart), apart)
        for (digest, repeats), ref in product(self._due.repeats.items(), refs):
            self._to_judge[digest, ref.domain] += len(self._due.epochs) * len(repeats)
        self._progress.limiters = self._limiters
        judging = sum(self._workers(judge.model) for judge in self._judges)  # each may have its own endpoint
        model = self._predictor.model if self._predictor else None
        try:
            if self._predictor is not None:
                self._predictor.make_ready()
            if model is not None and model.endpoint is not None:
                await self._ahead.fill(self._to_begin(work, self._at_first(model)))
            async with asyncio.TaskGroup() as group:
                for _ in range(judging):
                    group.create_task(self._judge_worker())
                async with asyncio.TaskGroup() as predicting:
                    for _ in range(self._workers(model)):
                        predicting.create_task(self._predict_worker(work, Row(predicting)))
                self._lanes.end(judging)
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

    async def _predict_worker(self, work: Work, row: Row) -> None:
        while (taken := await work.take()) is not None:
            units = list(self._due.units(taken.turns))
            limiter = self._limiter(self._predictor.model) if self._predictor else Limiter(1)
            async with limiter.slot(taken.place) as slot:
                for index, unit in enumerate(units):
                    await row.ask(partial(self._predict, unit, taken, units[index + 1 :], slot, work))
                    work.answered(taken.turns)
                    self._progress.update()

    async def _predict(
        self,
        unit: Unit,
        taken: Taken,
        rest: Sequence[Unit],
        slot: Slot,
        work: Work,
        answered: Callable[[], None],
    ) -> None:
        """Make sure of a prediction, and hand it over to the judges. No text outlives this call."""
        stage, place = self._progress.predictions, taken.place
        prediction = self._due.prediction(unit)
        if self._ledger.limit is not None:
            slot.give_back()  # what this waits for may need it
        if not await self._ledger.admit(self._due.jobs(unit, prediction), place):
            return  # left for a session with a higher --max-cost
        if prediction is not None:
            stage.reuse(unit.ref.domain, prediction.failure)
            await asyncio.sleep(0)  # others and an interrupt are heard; who asks waits for a turn anyway
        elif self._predictor is not None:
            await slot.take()
            await self._turns.next()
            prompt = self._ahead.take(unit.ref)
            later = [one.ref for one in rest if self._due.prediction(one) is None]
            self._prepare(later, work)
            again = reads(taken, unit.ref, later, self._predictor.model.limits.context)
            make = partial(predict, self._predictor, prompt, unit.epoch, read_again=again)
            with accounted(self._store.predictions, partial(unfinished_prediction, unit)) as attempts:
                asker = partial(self._ask_and_yield, answered, partial(self._ask, slot, attempts))
                prediction = await remembered(self._cache, asker, make)
            self._store.predictions.append(prediction)
            self._ledger.settle(unit.job, prediction)
            stage.add(unit.ref.domain, prediction.usage, prediction.cost_usd, prediction.failure)
            stage.recalled += prediction.cached_usage is not None
        self._hand_over(unit, prediction, place)

    def _prepare(self, later: Sequence[SampleRef], work: Work) -> None:
        """Have prompts made ready meanwhile: the next one of this trajectory, or those with which others begin soon."""
        if self._predictor is None or self._predictor.model.endpoint is None:
            return
        most = self._limiter(self._predictor.model).limit
        many = len(self._ahead) > FULL * most
        for ref in later[:1] or (() if many else self._to_begin(work, most)):
            if ref.length >= LONG:
                self._ahead.want(ref)

    def _to_begin(self, work: Work, most: int) -> Iterator[SampleRef]:
        """The samples with which the next trajectories begin, as far as they have no record yet."""
        firsts = (turns[0] for turns in work.coming(most))
        return (ref for ref in firsts if (ref.id, 1) not in self._store.predictions)

    def _hand_over(self, unit: Unit, prediction: Prediction | None, place: int) -> None:
        """Queue the judging of a prediction, where it can be judged and is not yet."""
        stage = self._progress.verdicts
        for question in self._due.questions(unit, place):
            if prediction is not None and self._due.is_due(question, prediction):
                self._lanes.put(question)
                continue
            self._to_judge[question.judge.digest(), unit.ref.domain] -= 1
            self._ledger.release(question.job)
            if prediction is None or question.judge.shown(prediction) is None:
                stage.totals[unit.ref.domain] -= 1
            else:
                stored = self._due.verdict(question, prediction)
                stage.reuse(unit.ref.domain, question.judge.failed(stored) if stored else None)

    async def _judge_worker(self) -> None:
        while (lane := await self._lanes.take()) is not None:
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
                asker = partial(self._ask, slot, attempts)
                verdict = await remembered(self._cache, asker, make, judging.failed)
        self._store.verdicts.append(verdict)
        self._ledger.settle(question.job, verdict)
        stage = self._progress.verdicts
        stage.add(unit.ref.domain, verdict.usage, verdict.cost_usd, judging.failed(verdict))
        stage.recalled += verdict.cached_usage is not None

    async def _ask(self, slot: Slot, attempts: list[Attempt], model: Model, request: Request) -> Answer:
        return await ask(model, request, slot, self._patience.max_retries, self._progress, attempts)

    async def _ask_and_yield(
        self, answered: Callable[[], None], asker: Asker, model: Model, request: Request
    ) -> Answer:
        """The answer, once nobody has a request to send: first the server has work again, then it is written down.
        A baseline has it at once, and would only gather what is to be written."""
        answer = await asker(model, request)
        if isinstance(answer.outcome, Completion) and (model.batch or not model.local):
            answered()
            with suppress(asyncio.CancelledError):  # it is written down, also where a run is stopped
                await self._turns.later()
        return answer

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
            stack.extend(reversed(problem.exceptions))
        else:
            leaves.append(problem)
    return next((problem for problem in leaves if isinstance(problem, AwbError)), leaves[0])
