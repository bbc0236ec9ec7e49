"""Who gets which trajectory when: those of one task after its first answer, judges one at a time on each."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.engine.order import Taken, Trajectory, Work, in_order
from agentworldbench.records import Request
from agentworldbench.store import locked_store
from tests.helpers.asking import TASKS, make_sample
from tests.helpers.engine_work import judge_of, verdict, work, world
from tests.helpers.fake_model import FakeModel
from tests.helpers.official_folder import make_official_folder


def trajectory(cluster: str, task: str, turns: int = 2) -> Trajectory:
    base = make_sample().ref
    return tuple(
        base.model_copy(
            update={"id": f"{cluster}/{turn}", "cluster": cluster, "task_key": task, "turn_idx": turn}
        )
        for turn in range(1, turns + 1)
    )


TASKS_OF = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


def taking(tasks: Sequence[str], workers: int, seed: int, apart: bool = False) -> list[tuple[str, str, int]]:
    """(what, task, place) of every begin and first answer, with workers that take random turns of the loop."""
    events: list[tuple[str, str, int]] = []
    random = Random(seed)

    async def worker(work: Work) -> None:
        while (taken := await work.take()) is not None:
            task = taken.turns[0].task_key
            events.append(("begins", task, taken.place))
            for _ in range(random.randint(0, 5)):
                await asyncio.sleep(0)
            events.append(("answered", task, taken.place))
            work.answered(taken.turns)
            for _ in range(random.randint(0, 5)):
                await asyncio.sleep(0)

    async def run() -> None:
        made = Work([trajectory(f"c{number}", task) for number, task in enumerate(tasks)], apart)
        await asyncio.wait_for(asyncio.gather(*(worker(made) for _ in range(workers))), 20)

    asyncio.run(run())
    return events


@given(TASKS_OF, st.integers(1, 15), st.integers(0, 99))
def test_a_task_waits_for_its_first_answer_and_everything_is_taken_once(
    tasks: list[str], workers: int, seed: int
) -> None:
    events = taking(tasks, workers, seed)
    assert sorted(place for what, _, place in events if what == "begins") == list(range(len(tasks)))
    begun: dict[str, int] = defaultdict(int)
    answered: set[str] = set()
    for what, task, _ in events:
        if what == "begins":
            assert begun[task] == 0 or task in answered
            begun[task] += 1
        else:
            answered.add(task)


@given(TASKS_OF, st.integers(1, 15))
def test_what_comes_next_is_told_before(tasks: list[str], others: int) -> None:
    async def run() -> None:
        made = Work([trajectory(f"c{number}", task) for number, task in enumerate(tasks)])
        while told := list(made.coming(others)):
            assert len(told) <= others
            for turns in told:  # nothing is answered meanwhile, so nothing comes before it
                taken = await asyncio.wait_for(made.take(), 20)
                assert taken is not None
                assert taken.turns == turns
            made.answered(told[-1])

    asyncio.run(run())


@given(TASKS_OF, st.integers(0, 99))
def test_one_worker_goes_by_the_order(tasks: list[str], seed: int) -> None:
    places = [place for what, _, place in taking(tasks, 1, seed) if what == "begins"]
    assert places == sorted(places)


def test_nobody_is_idle_while_another_task_is_left() -> None:
    assert [one[1:] for one in taking("aab", 2, 0)[:2]] == [("a", 0), ("b", 2)]


def test_apart_nothing_waits() -> None:
    assert [one[2] for one in taking("aaa", 3, 0, apart=True)[:3]] == [0, 1, 2]


def test_whether_others_of_the_task_follow_is_told() -> None:
    async def run() -> list[Taken | None]:
        work = Work([trajectory("x", "a"), trajectory("y", "b"), trajectory("z", "a")])
        taken = [await work.take(), await work.take()]
        work.answered(trajectory("x", "a"))
        return [*taken, await work.take(), await work.take()]

    first, second, third, end = asyncio.run(run())
    assert end is None
    assert [one and one.more for one in (first, second, third)] == [True, False, False]


def test_trajectories_of_one_task_are_neighbours_in_their_domain() -> None:
    made = [trajectory(f"c{number}", f"t{number % 4}") for number in range(12)]
    for seed in range(5):
        tasks = [turns[0].task_key for turns in in_order([ref for turns in made for ref in turns], seed)]
        assert [tasks[start : start + 3] for start in (0, 3, 6, 9)] == [
            [tasks[start]] * 3 for start in (0, 3, 6, 9)
        ]


# --- judges -------------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    make_official_folder(tmp_path / "data", domains=["terminal"], trajectories=6, special=False)
    return open_dataset({"terminal": tmp_path / "data/terminal_test.jsonl"}, {"terminal": TASKS["terminal"]})


def test_predictions_that_are_there_are_judged_one_at_a_time_in_each_trajectory(
    dataset: Dataset, tmp_path: Path
) -> None:
    model, first, second = FakeModel(world), FakeModel(verdict), FakeModel(verdict, name="other")
    with locked_store(tmp_path / "run") as store:
        work(dataset, store, model)
        work(dataset, store, None, judge_of(first), judge_of(second), max_connections=6)
        assert len(store.verdicts) == 2 * len(dataset.refs)
    for judge in (first, second):
        assert judge.max_in_trajectory == 1
        turns: dict[str, list[int]] = defaultdict(list)
        for request in judge.requests:
            turns[request.sample.ref.cluster].append(request.sample.ref.turn_idx)
        assert all(some == sorted(some) for some in turns.values())
    assert max(first.max_in_flight, second.max_in_flight) >= 3, "of several trajectories at once"


def test_the_last_question_of_a_domain_says_that_nobody_reads_again(dataset: Dataset, tmp_path: Path) -> None:
    judge = FakeModel(verdict)
    with locked_store(tmp_path / "run") as store:
        work(dataset, store, FakeModel(world), judge_of(judge), max_connections=1)
    *others, last = [request.read_again for request in judge.requests]
    assert set(others) == {(1,)}
    assert last == ()


def test_a_question_asked_before_is_not_one_to_come(dataset: Dataset, tmp_path: Path) -> None:
    again = FakeModel(verdict)
    with locked_store(tmp_path / "run") as store:
        work(dataset, store, FakeModel(world), judge_of(FakeModel(verdict)), refs=dataset.refs[1:])
        work(dataset, store, FakeModel(world), judge_of(again), max_connections=1)
    assert [request.sample.ref for request in again.requests] == [dataset.refs[0]]


def test_each_turn_but_the_last_says_that_the_next_begins_alike(dataset: Dataset, tmp_path: Path) -> None:
    model = FakeModel(world)
    with locked_store(tmp_path / "run") as store:
        work(dataset, store, model, max_connections=3)
    asked: dict[str, list[Request]] = defaultdict(list)
    for request in model.requests:
        asked[request.sample.ref.cluster].append(request)
    for requests in asked.values():
        for request in requests[:-1]:
            assert len(request.messages) - 1 in request.read_again
        assert requests[-1].read_again == ()
