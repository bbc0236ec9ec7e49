"""Models in this process, on an engine that a test scripts: pooling, batches, failures, cancellation.

No torch and no weights: what is tested is everything between a request and the engine, and between
the engine's tokens and a completion. The real engines have slow tests of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from agentworldbench.errors import EndpointError
from agentworldbench.models.generation import EngineFailed, Generated, Job, OutOfMemory
from agentworldbench.records import CallFailure, Completion, FailureKind, Sampling
from tests.helpers.asking import make_request
from tests.helpers.fake_engine import LIMIT_S, FakeEngine, ask_all, bounded, echo, model_of

Outcomes = Iterator[tuple[Job, Generated | EngineFailed]]


def texts(outcomes: Sequence[Completion | CallFailure]) -> list[str | None]:
    return [one.text if isinstance(one, Completion) else one.failure.kind for one in outcomes]


def words(count: int) -> list[str]:
    """Words of all lengths, not in the order of their length."""
    return [f"w{number}" + "x" * (number * 7 % count) for number in range(count)]


# --- batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_each_request_gets_its_own_answer_whatever_the_batches(size: int) -> None:
    engine = FakeEngine(lambda jobs: ((job, echo(job)) for job in reversed(jobs)))
    asked = words(20)
    outcomes = ask_all(model_of(engine, batch_size=size), asked)
    assert texts(outcomes) == [word.upper() for word in asked]
    assert max(len(batch) for batch in engine.batches) == min(size, 20)
    assert sum(len(batch) for batch in engine.batches) == 20


def test_a_pool_is_sorted_longest_first() -> None:
    engine = FakeEngine()
    asked = words(12)
    ask_all(model_of(engine, batch_size=4), asked)
    assert engine.batches == [sorted(asked, key=len, reverse=True)[start : start + 4] for start in (0, 4, 8)]


def test_workers_that_ask_again_fill_whole_batches() -> None:
    """As the pipeline does: sixteen at once, each asks for the next sample when it has its answer."""
    engine = FakeEngine()
    model = model_of(engine, batch_size=4)
    assert model.batch == 16

    async def worker(number: int) -> None:
        for turn in range(3):
            await model.generate(make_request(text=f"worker{number}turn{turn}"))
            await asyncio.sleep(0)

    async def work() -> None:
        await model.check()
        await asyncio.gather(*(worker(number) for number in range(16)))
        await model.close()

    bounded(work)
    assert [len(batch) for batch in engine.batches] == [4] * 12


def test_requests_of_different_sampling_never_share_a_batch() -> None:
    engine = FakeEngine()
    model = model_of(engine, batch_size=8)
    samplings = [Sampling(temperature=0.0), Sampling(temperature=1.0), Sampling(extra={"stop": "x"})]

    async def work() -> None:
        await model.check()
        await asyncio.gather(
            *(
                model.generate(make_request(samplings[number % 3], text=f"{number % 3}"))
                for number in range(9)
            )
        )
        await model.close()

    bounded(work)
    assert sorted(map(tuple, engine.batches)) == [("0",) * 3, ("1",) * 3, ("2",) * 3]


def test_a_request_keeps_its_own_budget_and_seed() -> None:
    engine = FakeEngine()
    model = model_of(engine, batch_size=8)

    async def work() -> None:
        await model.check()
        await asyncio.gather(
            *(model.generate(make_request(Sampling(max_tokens=5 + n, seed=n), text=f"{n}")) for n in range(4))
        )
        await model.close()

    bounded(work)
    assert len(engine.batches) == 1, "budgets and seeds do not part a batch"
    assert sorted((job.seed, job.room) for job in engine.jobs) == [(n, 5 + n) for n in range(4)]


def test_auto_asks_the_engine_how_much_fits() -> None:
    engine = FakeEngine(rows=450)
    ask_all(model_of(engine), ["x"] * 11, Sampling(max_tokens=50))
    prompt = len(engine.jobs[0].prompt)
    fit = 450 // (prompt + 50)
    assert fit == 5
    assert [len(batch) for batch in engine.batches] == [5, 5, 1]


def test_a_rolling_engine_gets_all_at_once_and_what_comes_in_meanwhile() -> None:
    """The second request is made while the engine works on the first, and joins."""
    first_runs, second_came = threading.Event(), threading.Event()

    def script(jobs: Sequence[Job]) -> Outcomes:
        first_runs.set()
        if len(engine.batches) == 1:
            assert second_came.wait(LIMIT_S)
        yield from ((job, echo(job)) for job in jobs)

    engine = FakeEngine(script, rolling=True)
    model = model_of(engine, "vllm")

    async def work() -> list[Completion | CallFailure]:
        await model.check()
        first = [asyncio.create_task(model.generate(make_request(text=f"a{n}"))) for n in range(20)]
        await asyncio.to_thread(first_runs.wait, LIMIT_S)
        second = asyncio.create_task(model.generate(make_request(text="b")))
        for _ in range(100):  # turns of the loop, until it has settled
            await asyncio.sleep(0)
        second_came.set()
        outcomes = await asyncio.gather(*first, second)
        await model.close()
        return outcomes

    outcomes = bounded(work)
    assert [len(batch) for batch in engine.batches] == [20, 1]
    assert texts(outcomes)[-1] == "B"


# --- what goes wrong -------------------------------------------------------------------------


def test_a_batch_that_is_too_large_is_halved_and_the_size_is_kept() -> None:
    def script(jobs: Sequence[Job]) -> Outcomes:
        if len(jobs) > 3:
            raise OutOfMemory("scripted")
        yield from ((job, echo(job)) for job in jobs)

    engine = FakeEngine(script)
    asked = words(10)
    outcomes = ask_all(model_of(engine, batch_size=8), asked)
    assert texts(outcomes) == [word.upper() for word in asked]
    assert [len(batch) for batch in engine.batches] == [8, 4, 2, 2, 2, 2, 2]


def test_what_does_not_fit_alone_fails_alone() -> None:
    def script(jobs: Sequence[Job]) -> Outcomes:
        if any(len(job.prompt) > 60 for job in jobs):
            raise OutOfMemory("scripted")
        yield from ((job, echo(job)) for job in jobs)

    outcomes = ask_all(model_of(FakeEngine(script), batch_size=4), ["a", "b" * 50, "c"])
    assert texts(outcomes) == ["A", FailureKind.PROVIDER_ERROR, "C"]
    failure = outcomes[1]
    assert isinstance(failure, CallFailure)
    assert "out of memory" in failure.failure.message


def test_an_exception_of_the_engine_is_the_failure_of_its_batch() -> None:
    def script(jobs: Sequence[Job]) -> Outcomes:
        if len(engine.batches) == 1:
            raise RuntimeError("a kernel\nbroke")
        yield from ((job, echo(job)) for job in jobs)

    engine = FakeEngine(script)
    outcomes = ask_all(model_of(engine, batch_size=2), ["aaa", "bbb", "c", "d"])
    assert texts(outcomes) == [FailureKind.PROVIDER_ERROR] * 2 + ["C", "D"]
    failure = outcomes[0]
    assert isinstance(failure, CallFailure)
    assert failure.failure.message == "RuntimeError: a kernel broke"


def test_an_engine_that_fails_again_and_again_stops_the_run() -> None:
    def script(jobs: Sequence[Job]) -> Outcomes:
        raise RuntimeError("CUDA error: device-side assert")

    model = model_of(FakeEngine(script), batch_size=1)
    with pytest.raises(EndpointError, match=r"again and again.*device-side assert"):
        ask_all(model, ["a", "b", "c", "d"])


def test_an_engine_that_leaves_out_a_request_does_not_leave_it_waiting() -> None:
    engine = FakeEngine(lambda jobs: ((job, echo(job)) for job in jobs[1:]))
    outcomes = ask_all(model_of(engine, batch_size=4), ["longest", "b"])
    assert texts(outcomes) == [FailureKind.PROVIDER_ERROR, "B"]


def test_a_failure_of_one_request_is_told_as_it_is() -> None:
    engine = FakeEngine(lambda jobs: ((job, EngineFailed("refused: too long")) for job in jobs), rolling=True)
    (outcome,) = ask_all(model_of(engine, "vllm"), ["a"])
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.kind, outcome.failure.message) == (
        FailureKind.PROVIDER_ERROR,
        "refused: too long",
    )


def test_a_cancelled_run_stops_the_batch_and_begins_no_other() -> None:
    running = threading.Event()

    def script(jobs: Sequence[Job]) -> Outcomes:
        running.set()
        while not all(job.cancelled for job in jobs):
            pass  # as an engine that looks between two tokens
        yield from ()

    engine = FakeEngine(script)
    model = model_of(engine, batch_size=2)

    async def work() -> None:
        await model.check()
        tasks = [asyncio.create_task(model.generate(make_request(text=f"{n}"))) for n in range(6)]
        await asyncio.to_thread(running.wait, LIMIT_S)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        await model.close()

    bounded(work)
    assert engine.closed.is_set(), "close waits for the worker, which frees the engine"
    assert len(engine.batches) == 1


def test_a_run_that_is_cancelled_while_it_loads_frees_what_was_loaded() -> None:
    engine = FakeEngine()
    engine.may_load.clear()
    model = model_of(engine)

    async def work() -> None:
        loading = asyncio.create_task(model.check())
        await asyncio.to_thread(engine.loading.wait, LIMIT_S)
        loading.cancel()
        engine.may_load.set()
        await asyncio.wait([loading])
        assert loading.cancelled()
        await model.close()

    bounded(work)
    assert engine.closed.is_set()
