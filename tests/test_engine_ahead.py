"""Prompts that are made before they are due: each row is read once, in spare time, within bounds.

The stock alone with generated wishes, then whole sessions of the pipeline with a model inside the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.engine import ahead as ahead_module
from agentworldbench.engine import pipeline as pipeline_module
from agentworldbench.engine.ahead import Ahead, Prompt, prompt_of
from agentworldbench.engine.fitting import estimate_tokens, estimated, without_oldest
from agentworldbench.engine.turns import Turns
from agentworldbench.errors import DataError
from agentworldbench.prompts import messages_sha256, predict_messages
from agentworldbench.records import CallFailure, Completion, Request, Sample, SampleRef, Sampling
from agentworldbench.store import Store, locked_store
from tests.helpers.asking import TASKS
from tests.helpers.engine_work import judge_of, verdict, work, world
from tests.helpers.fake_model import FakeModel
from tests.helpers.official_folder import make_official_folder


@pytest.fixture(scope="module", name="dataset")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data")
    make_official_folder(folder, domains=["terminal"], trajectories=6, observation_chars=80)
    return open_dataset({"terminal": folder / TASKS["terminal"].data_file}, {"terminal": TASKS["terminal"]})


@pytest.fixture(name="store")
def run_directory(tmp_path: Path) -> Iterator[Store]:
    with locked_store(tmp_path / "run") as store:
        yield store


@pytest.fixture(name="loads")
def counted_loads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each row was read."""
    counts: Counter[str] = Counter()
    load: Callable[[Dataset, SampleRef], Sample] = Dataset.load

    def counting(self: Dataset, ref: SampleRef) -> Sample:
        counts[ref.id] += 1
        return load(self, ref)

    monkeypatch.setattr(Dataset, "load", counting)
    return counts


def test_a_prompt_is_written_as_it_is_hashed_and_sent(dataset: Dataset) -> None:
    for ref in dataset.refs:
        prompt = prompt_of(dataset.load(ref))
        assert prompt.messages == predict_messages(prompt.sample)
        assert json.loads(prompt.written.json_text) == [one.model_dump() for one in prompt.messages]
        assert prompt.written.sha256 == hashlib.sha256(prompt.written.json_text).hexdigest()
        assert prompt.written.sha256 == messages_sha256(prompt.messages)
        assert prompt.written.tokens == estimate_tokens(prompt.messages)


def test_a_shortened_history_is_not_what_was_written(dataset: Dataset) -> None:
    """Else the whole prompt would be sent, and be hashed, in place of the shorter one."""
    ref = max(dataset.refs, key=lambda one: one.turn_idx)
    prompt = prompt_of(dataset.load(ref))
    request = prompt.written.into(
        Request(sample=prompt.sample, messages=prompt.messages, sampling=Sampling())
    )
    shorter = without_oldest(request, 1)
    assert shorter is not None
    assert shorter.json_text is shorter.prompt_sha256 is None
    assert estimated(shorter) == estimate_tokens(shorter.messages) < estimated(request)


@given(st.integers(0, 10**6), st.integers(1, 60_000))
def test_what_is_taken_is_what_was_asked_for_however_little_room_there_is(
    dataset: Dataset, seed: int, room: int
) -> None:
    random = Random(seed)

    async def session() -> None:
        turns = Turns()
        stock = Ahead(dataset, turns)
        for _ in range(30):
            ref = random.choice(dataset.refs)
            what = random.choice(["want", "take", "fill", "wait"])
            if what == "want":
                stock.want(ref)
            elif what == "take":
                assert stock.take(ref).sample.ref == ref
                assert ref not in stock
            elif what == "fill":
                await stock.fill(random.sample(dataset.refs, 3))
            else:
                await asyncio.sleep(0)
            assert sum(one.length for one in dataset.refs if one in stock) <= room
        turns.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead_module, "ROOM", room)
        asyncio.run(session())


def test_what_is_wanted_is_made_in_spare_time_and_once(dataset: Dataset, loads: Counter[str]) -> None:
    wanted = dataset.refs[:4]

    async def session() -> None:
        turns = Turns()
        stock = Ahead(dataset, turns)
        for ref in (*wanted, *wanted):
            stock.want(ref)
        assert not loads
        early = stock.take(wanted[0])  # before there was time: made now
        done = asyncio.Event()
        turns.spare(done.set)
        await asyncio.wait_for(done.wait(), 10)
        assert loads == Counter(ref.id for ref in wanted)
        assert [early, *map(stock.take, wanted[1:])] == [
            prompt_of(Dataset.load(dataset, ref)) for ref in wanted
        ]

    asyncio.run(session())


def test_a_row_that_cannot_be_read_any_more_is_told_of_when_it_is_due(tmp_path: Path) -> None:
    make_official_folder(tmp_path, domains=["terminal"], trajectories=2, observation_chars=40)
    path = tmp_path / TASKS["terminal"].data_file
    dataset = open_dataset({"terminal": path}, {"terminal": TASKS["terminal"]})
    ref = dataset.refs[0]
    path.write_bytes(b"x" + path.read_bytes()[1:])

    async def session() -> None:
        turns = Turns()
        stock = Ahead(dataset, turns)
        await stock.fill([ref])
        with pytest.raises(DataError, match="changed while it was in use"):
            stock.take(ref)
        stock.want(ref)
        done = asyncio.Event()
        turns.spare(done.set)
        await asyncio.wait_for(done.wait(), 10)
        with pytest.raises(DataError, match="changed while it was in use"):
            stock.take(ref)

    asyncio.run(session())


@pytest.mark.parametrize("connections", [1, 4, None])
@pytest.mark.parametrize("long", [0, 10**9])
def test_a_session_reads_each_row_once_for_its_prompt(
    connections: int | None,
    long: int,
    dataset: Dataset,
    store: Store,
    loads: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline_module, "LONG", long)
    model = FakeModel(world)
    work(dataset, store, model, max_connections=connections)
    assert loads == Counter(ref.id for ref in dataset.refs)
    assert sorted(one.sample.id for one in model.requests) == sorted(loads)


def test_the_first_prompts_are_ready_before_anything_is_sent(
    dataset: Dataset, store: Store, loads: Counter[str]
) -> None:
    """As many as go out at first: none of these connections waits for texts."""
    ready: list[int] = []

    class Looking(FakeModel):
        async def generate(self, request: Request) -> Completion | CallFailure:
            ready.append(loads.total())
            return await super().generate(request)

    work(dataset, store, Looking(world), max_connections=3)
    assert ready[0] == 3


def test_trajectories_of_one_turn_find_their_prompts_ready(
    store: Store, tmp_path: Path, loads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each that is sent the next one is made that nobody has made yet, not one further behind."""
    monkeypatch.setattr(pipeline_module, "LONG", 0)
    make_official_folder(tmp_path / "data", domains=["terminal"], trajectories=40, special=False)
    path = tmp_path / "data" / TASKS["terminal"].data_file
    dataset = open_dataset({"terminal": path}, {"terminal": TASKS["terminal"]})
    firsts = [ref for ref in dataset.refs if ref.turn_idx == 1]
    stocks: list[Ahead] = []
    ready: list[bool] = []
    take: Callable[[Ahead, SampleRef], Prompt] = Ahead.take

    def looking(self: Ahead, ref: SampleRef) -> Prompt:
        stocks.append(self)
        ready.append(bool(loads[ref.id]))
        return take(self, ref)

    async def when_all_are_made(request: Request, number: int) -> Completion:
        while any(not loads[ref.id] for ref in firsts if ref in stocks[0]):
            await asyncio.sleep(0)
        return world(request, number)

    monkeypatch.setattr(Ahead, "take", looking)
    work(dataset, store, FakeModel(when_all_are_made), refs=firsts, max_connections=8)
    assert ready == [True] * 40


def test_stored_answers_are_read_for_nobody(dataset: Dataset, store: Store, loads: Counter[str]) -> None:
    work(dataset, store, FakeModel(world))
    loads.clear()
    work(dataset, store, FakeModel(world))
    assert not loads
    work(dataset, store, None, judge_of(FakeModel(verdict, "judge", "there")))
    assert loads == Counter(ref.id for ref in dataset.refs)
