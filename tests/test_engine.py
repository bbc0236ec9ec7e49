"""The pipeline: order of work, typed failures, what stops a run, what a resumed run asks again.

Models inside the process answer, so nothing waits; the data is a folder in the official layout.
That a number of requests really is in flight at a server is shown in `test_runs`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.engine.order import in_order
from agentworldbench.errors import AwbError, CredentialsError, EndpointError, QuotaError
from agentworldbench.records import (
    Completion,
    Prediction,
    Request,
    SampleRef,
)
from agentworldbench.store import Store, locked_store
from tests.helpers.asking import TASKS
from tests.helpers.engine_work import judge_of, verdict, work, world
from tests.helpers.fake_model import FakeModel, VirtualTime, fails, says
from tests.helpers.official_folder import DOMAINS, make_official_folder

TWO = ("terminal", "android")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data")
    make_official_folder(folder, domains=TWO, trajectories=4, observation_chars=80)
    tasks = {domain: TASKS[domain] for domain in TWO}
    return open_dataset({domain: folder / task.data_file for domain, task in tasks.items()}, tasks)


@pytest.fixture(name="store")
def run_directory(tmp_path: Path) -> Iterator[Store]:
    with locked_store(tmp_path / "run") as store:
        yield store


# --- order -----------------------------------------------------------------------------------


def ref(domain: str, cluster: str, turn: int, line: int = 1) -> SampleRef:
    return SampleRef(
        id=f"{domain}/{cluster}/{turn}/{line}",
        domain=domain,
        row_id=cluster,
        turn_idx=turn,
        total_turns=99,
        cluster=cluster,
        task_key="t",
        row_hash="h",
        line=line,
        offset=0,
        length=1,
        context_chars=1,
    )


@st.composite
def references(draw: st.DrawFn) -> list[SampleRef]:
    clusters = draw(
        st.lists(st.tuples(st.sampled_from(DOMAINS), st.integers(0, 30)), unique=True, max_size=60)
    )
    refs = [
        ref(domain, f"c{number}", turn)
        for domain, number in clusters
        for turn in draw(st.sets(st.integers(1, 40), min_size=1, max_size=4))
    ]
    return draw(st.permutations(refs))


@given(references(), st.integers(0, 99))
def test_trajectories_stay_whole_with_turns_ascending(refs: list[SampleRef], seed: int) -> None:
    ordered = in_order(refs, seed)
    assert Counter(one for turns in ordered for one in turns) == Counter(refs)
    assert len(ordered) == len({(one.domain, one.cluster) for one in refs})
    for turns in ordered:
        assert len({(one.domain, one.cluster) for one in turns}) == 1
        assert [one.turn_idx for one in turns] == sorted(one.turn_idx for one in turns)
    assert in_order(sorted(refs, key=lambda one: one.id), seed) == ordered, "the order of the file shows"


@given(references(), st.integers(0, 99))
def test_every_prefix_is_balanced_over_domains(refs: list[SampleRef], seed: int) -> None:
    ordered = [turns[0].domain for turns in in_order(refs, seed)]
    totals = Counter(ordered)
    for length in range(1, len(ordered) + 1):
        shares = {domain: Counter(ordered[:length])[domain] / total for domain, total in totals.items()}
        for domain, share in shares.items():
            for other, its_share in shares.items():
                assert share <= its_share + 0.5 / totals[domain] + 0.5 / totals[other] + 1e-9


def test_the_seed_decides_the_order_and_none_is_zero() -> None:
    refs = [ref(domain, f"c{number}", 1) for domain in TWO for number in range(12)]
    orders = {seed: [turns[0] for turns in in_order(refs, seed)] for seed in (None, 0, 1, 2)}
    assert orders[None] == orders[0]
    for domain in TWO:
        by_seed = [tuple(one.id for one in orders[seed] if one.domain == domain) for seed in (0, 1, 2)]
        assert len(set(by_seed)) == 3


def test_equal_turns_of_a_trajectory_go_in_file_order() -> None:
    refs = [ref("os", "c", 2, line=9), ref("os", "c", 2, line=3), ref("os", "c", 1, line=7)]
    assert [(one.turn_idx, one.line) for one in in_order(refs, 5)[0]] == [(1, 7), (2, 3), (2, 9)]


def test_the_pipeline_follows_the_order_with_one_request_per_trajectory(
    dataset: Dataset, store: Store
) -> None:
    model = FakeModel(world)
    work(dataset, store, model, max_connections=5)
    assert model.max_in_flight == 5
    assert model.max_in_trajectory == 1
    asked = [request.sample.ref for request in model.requests]
    by_trajectory: dict[Any, list[int]] = defaultdict(list)
    for one in asked:
        by_trajectory[one.domain, one.cluster].append(one.turn_idx)
    assert all(turns == sorted(turns) for turns in by_trajectory.values())
    order = [turns[0].cluster for turns in in_order(dataset.refs, 1)]
    assert list(dict.fromkeys(one.cluster for one in asked))[:5] == list(dict.fromkeys(order))[:5]


def test_one_connection_asks_exactly_in_order(dataset: Dataset, store: Store) -> None:
    model = FakeModel(world)
    work(dataset, store, model, max_connections=1)
    assert [request.sample.id for request in model.requests] == [
        one.id for turns in in_order(dataset.refs, 1) for one in turns
    ]
    assert [record.sample_id for record in store.predictions] == [
        request.sample.id for request in model.requests
    ]


# --- failures --------------------------------------------------------------------------------

REPLIES: dict[str, Any] = {
    "empty": says(" "),
    "truncated": says("cut", finish_reason="length"),
    "refused": says(None, refusal="no"),
    "content_filter": says("x", finish_reason="content_filter"),
    "tool_call": says(None, tool_calls=True),
    "context_overflow": fails("context_overflow", status=400),
    "bad_request": fails("bad_request", status=400),
    "provider_error": fails("provider_error", status=500),
    "timeout": fails("timeout"),
    "network": fails("network"),
    "malformed_response": fails("malformed_response"),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_every_failure_is_a_typed_record_that_no_judge_sees(
    kind: str, dataset: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    VirtualTime(monkeypatch)
    judge = FakeModel(verdict)
    bad = dataset.refs[0]
    model = FakeModel(
        lambda request, number: REPLIES[kind] if request.sample.ref == bad else world(request, number)
    )
    progress = work(dataset, store, model, judge_of(judge), refs=dataset.refs[:3], max_retries=1)
    stored = store.predictions.get((bad.id, 1))
    assert isinstance(stored, Prediction)
    assert stored.failure is not None
    assert stored.failure.kind == kind
    assert stored.observation is None
    assert len(store.predictions) == 3
    assert {request.sample.id for request in judge.requests} == {one.id for one in dataset.refs[1:3]}
    assert progress.predictions.failures == {kind: 1}
    assert (progress.verdicts.finished, progress.verdicts.total) == (2, 2)


STOPS: dict[str, type[AwbError]] = {
    "authentication": CredentialsError,
    "model_missing": EndpointError,
    "quota": QuotaError,
    "unreachable": EndpointError,
}


@pytest.mark.parametrize("stage", ["predict", "judge"])
@pytest.mark.parametrize("kind", STOPS)
def test_a_fatal_failure_stops_the_run_and_keeps_what_is_done(
    kind: str, stage: str, dataset: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    VirtualTime(monkeypatch)

    def until_nine(answer: Callable[[Request, int], Completion]) -> Callable[[Request, int], Any]:
        return lambda request, number: answer(request, number) if number < 9 else fails(kind)

    model = FakeModel(until_nine(world) if stage == "predict" else world)
    judge = FakeModel(until_nine(verdict) if stage == "judge" else verdict)
    with pytest.raises(STOPS[kind]):
        work(dataset, store, model, judge_of(judge), max_connections=1, max_retries=2)
    journal: Any = store.predictions if stage == "predict" else store.verdicts
    asked = model if stage == "predict" else judge
    assert len(journal) == 8
    assert all(record.failure is None for record in journal), "a fatal failure is no record"
    assert len(asked.requests) == (11 if kind == "unreachable" else 9)
    work(dataset, store, FakeModel(world), judge_of(FakeModel(verdict)))
    assert len(store.predictions) == len(store.verdicts) == len(dataset.refs)


def test_a_model_that_swallows_its_cancellation_does_not_hold_the_run(dataset: Dataset, store: Store) -> None:
    async def swallows(request: Request, number: int) -> Any:
        if number == 3:
            return fails("quota")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return fails("provider_error")

    judge = judge_of(FakeModel(verdict))
    with pytest.raises(QuotaError):
        work(dataset, store, FakeModel(swallows), judge, max_connections=3, max_retries=0)
    assert len(store.predictions) == 0, "what was given up is no failure"


def test_a_prompt_without_room_is_not_sent(dataset: Dataset, store: Store) -> None:
    model, judge = FakeModel(world), FakeModel(verdict)
    model.limits.context = 100
    work(dataset, store, model, judge_of(judge), refs=dataset.refs[:2])
    assert model.requests == judge.requests == []
    assert [record.failure.kind for record in store.predictions if record.failure] == ["context_overflow"] * 2
    judge.limits.context = 100
    work(dataset, store, FakeModel(world), judge_of(judge), refs=dataset.refs[2:4])
    assert [record.failure.kind for record in store.verdicts if record.failure] == ["context_overflow"] * 2
    assert judge.requests == []


# --- resuming --------------------------------------------------------------------------------


def test_only_transient_failures_are_asked_again_unless_told(
    dataset: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    VirtualTime(monkeypatch)
    refs = dataset.refs[: len(REPLIES)]
    wanted = dict(zip((one.id for one in refs), REPLIES, strict=True))
    work(
        dataset,
        store,
        FakeModel(lambda request, number: REPLIES[wanted[request.sample.id]]),
        refs=refs,
        max_retries=0,
    )
    assert {
        record.sample_id: record.failure and record.failure.kind for record in store.predictions
    } == wanted
    transient = {"provider_error", "timeout", "network", "malformed_response"}
    second = FakeModel(world)
    work(dataset, store, second, refs=refs)
    assert {wanted[request.sample.id] for request in second.requests} == transient
    third = FakeModel(world)
    work(dataset, store, third, refs=refs, retry_failed=True)
    assert {wanted[request.sample.id] for request in third.requests} == set(REPLIES) - transient
    assert all(record.failure is None for record in store.predictions)
