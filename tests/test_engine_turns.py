"""Workers that wake together go on one at a time, and what each of them hands to the loop runs in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import pytest

from agentworldbench.engine import turns as turns_module
from agentworldbench.engine.turns import Row, Turns


def test_what_one_begins_runs_before_the_next_goes_on() -> None:
    """As an HTTP client does that writes a request in a task of its own."""
    seen: list[str] = []

    async def write(name: int) -> None:
        seen.append(f"written {name}")

    async def worker(turns: Turns, name: int) -> None:
        await turns.next()
        seen.append(f"prepared {name}")
        await asyncio.create_task(write(name))

    async def work() -> None:
        turns = Turns()
        for _ in range(2):  # it starts anew after nobody waited
            await asyncio.gather(*(worker(turns, name) for name in range(4)))

    asyncio.run(work())
    assert seen == 2 * [f"{what} {name}" for name in range(4) for what in ("prepared", "written")]


@pytest.mark.parametrize("given_up", [0, 1, 3])
def test_who_gives_up_holds_nobody_up(given_up: int) -> None:
    async def work() -> list[bool]:
        turns = Turns()
        tasks = [asyncio.create_task(turns.next()) for _ in range(4)]
        await asyncio.sleep(0)
        tasks[given_up].cancel()
        await asyncio.wait(tasks)
        return [task.cancelled() for task in tasks]

    assert asyncio.run(asyncio.wait_for(work(), 5)) == [name == given_up for name in range(4)]


def test_what_can_wait_is_done_while_no_worker_waits_for_a_turn() -> None:
    seen: list[str] = []

    async def worker(turns: Turns, name: int) -> None:
        await turns.next()
        seen.append(f"worker {name}")

    async def work() -> None:
        turns = Turns()
        done = asyncio.Event()
        for name in range(2):
            turns.spare(lambda name=name: seen.append(f"spare {name}"))
        turns.spare(done.set)
        await asyncio.gather(*(worker(turns, name) for name in range(5)))
        assert not done.is_set()
        await asyncio.wait_for(done.wait(), 5)

    asyncio.run(work())
    assert seen == [*(f"worker {name}" for name in range(5)), "spare 0", "spare 1"]


def test_closed_turns_do_nothing_that_could_wait() -> None:
    async def work() -> None:
        turns = Turns()
        turns.spare(lambda: pytest.fail("done after the end"))
        turns.close()
        await turns.next()  # a turn alone does not wake it
        marked = asyncio.Event()
        turns.spare(marked.set)
        await asyncio.wait_for(marked.wait(), 5)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("longest", "order"),
    [(60.0, ["sent 0", "sent 1", "sent 2", "written 0", "written 1"]),
     (0.0, ["written 0", "sent 0", "written 1", "sent 1", "sent 2"])],
)  # fmt: skip
def test_who_has_a_request_to_send_goes_before_who_writes_down_but_not_for_ever(
    longest: float, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "LONGEST", longest)
    seen: list[str] = []

    async def one(wait: Callable[[], Awaitable[None]], name: str) -> None:
        await wait()
        seen.append(name)

    async def work() -> None:
        turns = Turns()
        writing = [asyncio.create_task(one(turns.later, f"written {name}")) for name in range(2)]
        sending = [asyncio.create_task(one(turns.next, f"sent {name}")) for name in range(3)]
        await asyncio.wait_for(asyncio.gather(*writing, *sending), 5)

    asyncio.run(work())
    assert seen == order


def test_the_next_is_asked_before_the_last_is_written_and_two_are_never_unwritten() -> None:
    seen: list[str] = []
    answers, writes = ([asyncio.Event() for _ in range(3)] for _ in range(2))

    async def work(number: int, answered: Callable[[], None]) -> None:
        seen.append(f"asked {number}")
        await answers[number].wait()
        answered()
        await writes[number].wait()
        seen.append(f"written {number}")

    async def worker(group: asyncio.TaskGroup) -> None:
        row = Row(group)
        for number in range(3):
            await row.ask(partial(work, number))

    async def until(events: list[str]) -> None:
        while seen != events:
            await asyncio.sleep(0)

    async def session() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker(group))
            answers[0].set()
            await until(["asked 0", "asked 1"])
            answers[1].set()
            for _ in range(10):
                await asyncio.sleep(0)
            assert seen == ["asked 0", "asked 1"]
            writes[0].set()
            await until(["asked 0", "asked 1", "written 0", "asked 2"])
            for event in (*answers, *writes):
                event.set()

    asyncio.run(asyncio.wait_for(session(), 5))
    assert sorted(seen[4:]) == ["written 1", "written 2"]


@pytest.mark.parametrize("early", [False, True])
def test_what_fails_while_it_is_written_stops_all(early: bool) -> None:
    async def work(answered: Callable[[], None]) -> None:
        if early:
            answered()
            await asyncio.sleep(0)
        raise OSError("no room")

    async def worker(group: asyncio.TaskGroup) -> None:
        row = Row(group)
        await row.ask(work)
        await row.ask(lambda answered: asyncio.sleep(60))
        pytest.fail("it went on")

    async def session() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker(group))

    with pytest.raises(ExceptionGroup) as problems:
        asyncio.run(asyncio.wait_for(session(), 5))
    assert [str(one) for one in problems.value.exceptions if isinstance(one, OSError)] == ["no room"]


@pytest.mark.parametrize("problem", [ValueError("the error"), asyncio.CancelledError()])
def test_a_worker_that_waits_for_what_is_written_ends_with_the_others(problem: BaseException) -> None:
    """What is written is written, nothing else begins, and only the error itself is told."""
    written: list[int] = []

    async def work(number: int, answered: Callable[[], None]) -> None:
        answered()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        written.append(number)

    async def worker(group: asyncio.TaskGroup) -> None:
        row = Row(group)
        for number in range(3):
            await row.ask(partial(work, number))

    async def session() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker(group))
            for _ in range(10):
                await asyncio.sleep(0)
            raise problem

    with pytest.raises(
        type(problem) if isinstance(problem, asyncio.CancelledError) else ExceptionGroup
    ) as told:
        asyncio.run(asyncio.wait_for(session(), 5))
    assert sorted(written) == [0, 1]
    assert getattr(told.value, "exceptions", (problem,)) == (problem,)
