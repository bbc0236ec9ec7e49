"""Workers and slots: what is begun is finished first, texts are read when a slot is there, limits are shared.

The pipeline runs with models inside the process, and whole runs against a loopback server show what
is recorded and that a refusing server is lived with.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.cli.display import live_lines
from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.engine.limiter import MOST, START
from agentworldbench.engine.pipeline import Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.records import Completion, Request, Sample, SampleRef
from agentworldbench.run import evaluate
from agentworldbench.store import Store, locked_store
from tests.helpers.asking import TASKS
from tests.helpers.engine_work import judge_of, verdict, work, world
from tests.helpers.fake_model import FakeModel, VirtualTime, fails
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ScriptedServer, together, world_and_judge
from tests.helpers.whole_runs import options

DOMAINS = ("terminal", "android")


@pytest.fixture(scope="module", name="dataset")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data")
    make_official_folder(folder, domains=DOMAINS, trajectories=40, observation_chars=80)
    tasks = {domain: TASKS[domain] for domain in DOMAINS}
    return open_dataset({domain: folder / task.data_file for domain, task in tasks.items()}, tasks)


@pytest.fixture(name="store")
def run_directory(tmp_path: Path) -> Iterator[Store]:
    with locked_store(tmp_path / "run") as store:
        yield store


def asked_clusters(model: FakeModel) -> list[tuple[str, str]]:
    return [(one.sample.ref.domain, one.sample.ref.cluster) for one in model.requests]


@pytest.mark.parametrize("connections", [None, 3])
def test_no_more_trajectories_are_begun_than_there_are_slots(
    connections: int | None, dataset: Dataset, store: Store
) -> None:
    """Else hundreds of workers would take turns, and no prefix cache would hold."""
    model = FakeModel(world)
    (limiter,) = work(dataset, store, model, max_connections=connections).limiters
    turns = Counter((ref.domain, ref.cluster) for ref in dataset.refs)
    assert len(turns) > limiter.limit, "nothing is shown"
    begun: Counter[tuple[str, str]] = Counter()
    for cluster in asked_clusters(model):
        begun[cluster] += 1
        unfinished = sum(count < turns[one] for one, count in begun.items())
        assert unfinished <= 1.25 * limiter.limit, "a few may change places, not all take turns"
    assert begun == turns


def test_texts_are_read_when_a_slot_is_there(
    dataset: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, most, model = 0, 0, FakeModel(world)
    load = Dataset.load

    def noted(self: Dataset, ref: SampleRef) -> Sample:
        nonlocal loaded, most
        loaded += 1
        most = max(most, loaded - answered)
        return load(self, ref)

    answered = 0

    def answer(request: Request, number: int) -> Completion:
        nonlocal answered
        answered += 1
        return world(request, number)

    monkeypatch.setattr(Dataset, "load", noted)
    model = FakeModel(answer)
    work(dataset, store, model, max_connections=3)
    assert loaded == len(dataset.refs)
    assert most <= 3


def test_a_prediction_is_judged_before_new_trajectories_begin(dataset: Dataset, store: Store) -> None:
    behind: list[int] = []
    model = FakeModel(world)
    judging = FakeModel(verdict, name="judge")

    def answer(request: Request, number: int) -> Completion:
        behind.append(len(model.requests) - len(judging.requests))
        return world(request, number)

    model = FakeModel(answer)
    work(dataset, store, model, judge_of(judging), max_connections=2)
    assert len(judging.requests) == len(dataset.refs)
    assert max(behind) <= 6, "verdicts fell behind"


def test_a_limit_shrinks_in_a_run_and_every_sample_is_answered(
    dataset: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    VirtualTime(monkeypatch)
    model = FakeModel(
        lambda request, number: fails("rate_limit") if model.in_flight > 2 else world(request, 1)
    )
    progress = work(dataset, store, model, max_connections=8, max_retries=30)
    assert progress.predictions.failures == {}
    (limiter,) = progress.limiters
    assert limiter.limit < 8
    assert any(f"0/{limiter.limit} in flight (limited by 429s)" in line for line in live_lines(progress))


def test_ceilings_of_model_and_judge_hold_together_where_the_endpoint_is_one(
    dataset: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    new = Pipeline._new_limiter

    def noted(self: Pipeline, model: Any) -> Any:
        made.append(new(self, model))
        return made[-1]

    monkeypatch.setattr(Pipeline, "_new_limiter", noted)
    VirtualTime(monkeypatch)
    from agentworldbench.engine.rates import Ceilings

    ceilings = {"model_ceilings": Ceilings(600), "judge_ceilings": Ceilings(300, 10**9)}
    judging = FakeModel(verdict, name="judge")
    work(dataset, store, FakeModel(world), judge_of(judging), refs=dataset.refs[:4], **ceilings)
    (limiter,) = made
    assert [rate.per_minute for rate in limiter._ceilings] == [300, 10**9]


def test_a_run_without_a_number_grows_and_says_what_was_in_force(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make_official_folder(folder, domains=DOMAINS, trajectories=20, observation_chars=80)
    seen: list[int] = []

    def watch(progress: Progress) -> None:
        seen.extend(limiter.limit for limiter in progress.limiters)

    with ScriptedServer(together(START, world_and_judge)) as server:
        run = evaluate(**options(server, tmp_path / "run", folder), watch=watch, requests_per_minute=10**6)
    assert run.results is not None
    assert START < max(seen) <= MOST
    (session,) = json.loads((tmp_path / "run" / "run.json").read_text())["sessions"]
    assert session["limits"]["max_connections"] is None
    assert session["limits"]["requests_per_minute"] == 10**6
    assert session["limits"]["judge_requests_per_minute"] is None
