"""Workers that wake together go on one at a time, and what each of them hands to the loop runs in between."""

from __future__ import annotations

import asyncio

import pytest

from agentworldbench.engine.turns import Turns


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
