"""A run that is stopped has paid for attempts of samples that it did not finish: they stand in the accounts.

The server keeps the bill (`Meter`), and the harness's sums are held against it: after the stop, after the same
command went on, after a merge, and in the limit of --max-cost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.dataset import open_dataset
from agentworldbench.engine.fitting import Room
from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.steps import Predictor
from agentworldbench.engine.turns import Turns
from agentworldbench.errors import AwbError, CredentialsError, QuotaError, StoreError
from agentworldbench.journal import Journal, is_unfinished
from agentworldbench.merge import merge_runs
from agentworldbench.records import Request, Sampling
from agentworldbench.run import Run, evaluate, load_run, score_run
from agentworldbench.store import Store, locked_store, open_store
from tests.helpers.asking import TASKS
from tests.helpers.engine_work import judge_of, verdict, work, world
from tests.helpers.fake_model import FakeModel, fails, says
from tests.helpers.metered import PRICE_FLAGS, Meter
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, Script, ScriptedServer
from tests.helpers.whole_runs import good, options, read_results

pytestmark = pytest.mark.usefixtures("quick_retries")
EMPTY = Reply(content="", finish_reason="stop")
NO_VERDICT = Reply(content="It looks fine to me.")


def model_fails(call: ChatCall) -> Reply:
    """The sixth prediction is paid and lost on the way; then the key is refused."""
    if call.model == "judge" or call.index < 11:
        return good(call)
    return EMPTY if call.attempt == 1 else Reply(status=401, error={"message": "No."})


def judge_fails(call: ChatCall) -> Reply:
    """A judge that gives no verdict twice, and then has no money left."""
    if call.model != "judge" or call.index < 8:
        return good(call)
    return NO_VERDICT if call.attempt < 3 else Reply(status=429, error={"code": "insufficient_quota"})


STOPS: dict[str, tuple[Script, type[AwbError], str]] = {
    "model": (model_fails, CredentialsError, "predictions"),
    "judge": (judge_fails, QuotaError, "verdicts"),
}


@pytest.fixture(scope="module", name="data")
def some_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_official_folder(folder, domains=["terminal"], trajectories=3, observation_chars=60, special=False)
    return folder


def spent(run: Run) -> float:
    assert run.results is not None
    stages = [run.results.predictions.spent, *(judge.spent for judge in run.results.judges)]
    assert not any(stage.unknown for stage in stages)
    return sum(stage.known_usd for stage in stages)


def unfinished(path: Path, name: str) -> list[Any]:
    return [record for record in getattr(open_store(path), name).every_line() if is_unfinished(record)]


@pytest.mark.parametrize("name", STOPS)
def test_what_was_paid_before_a_stop_is_in_the_accounts_for_good(
    name: str, data: Path, tmp_path: Path
) -> None:
    script, error, journal = STOPS[name]
    meter, run = Meter(script), tmp_path / "run"
    with ScriptedServer(meter) as server:
        session = options(server, run, data, price=PRICE_FLAGS, max_connections=1)
        with pytest.raises(error):
            evaluate(**session)
        assert spent(score_run(run)) == pytest.approx(meter.usd)
        (record,) = unfinished(run, journal)
        assert record.cost_usd > 0
        assert [attempt.outcome for attempt in record.attempts][-1] != "ok" or name == "judge"
        server.script = meter = Meter(good)
        before = spent(load_run(run))
        done = evaluate(**session)
    assert spent(done) == pytest.approx(before + meter.usd)
    assert done.results is not None
    assert done.results.complete, "what was given up was asked again"
    assert unfinished(run, journal) == [record]
    lines = (run / f"{journal}.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum(json.loads(line).get("failure") is not None for line in lines) == 1


def test_what_was_given_up_is_no_result(data: Path, tmp_path: Path) -> None:
    """The numbers are those of a run that stopped without having tried."""
    found = []
    for name, script in (("tried", judge_fails), ("not", lambda call: _without_tries(call))):
        with ScriptedServer(Meter(script)) as server:
            session = options(server, tmp_path / name, data, price=PRICE_FLAGS, max_connections=1)
            with pytest.raises(QuotaError):
                evaluate(**session)
        score_run(tmp_path / name)
        results = read_results(tmp_path / name)
        for judge in results["judges"]:
            del judge["spent"], judge["spent_by_domain"]
        found.append((results["judges"], results["complete"], results["predictions"]["failures"]))
    assert found[0] == found[1]


def _without_tries(call: ChatCall) -> Reply:
    reply = judge_fails(call)
    return replace(reply, status=429, error={"code": "insufficient_quota"}) if reply == NO_VERDICT else reply


def test_a_merged_run_has_the_accounts_of_its_parts(data: Path, tmp_path: Path) -> None:
    meter = Meter(judge_fails)
    with ScriptedServer(meter) as server:
        for part in (1, 2):
            session = options(server, tmp_path / f"part-{part}", data, price=PRICE_FLAGS, shard=f"{part}/2")
            try:
                evaluate(**session | {"max_connections": 1})
            except QuotaError:
                score_run(tmp_path / f"part-{part}")
        assert any(unfinished(tmp_path / f"part-{part}", "verdicts") for part in (1, 2))
    merged = merge_runs([tmp_path / "part-1", tmp_path / "part-2"], tmp_path / "whole")
    assert spent(load_run(tmp_path / "whole")) == pytest.approx(meter.usd)
    again = merge_runs([tmp_path / "part-2", tmp_path / "whole", tmp_path / "part-1"], tmp_path / "whole")
    assert again.verdicts.records == merged.verdicts.records
    assert spent(load_run(tmp_path / "whole")) == pytest.approx(meter.usd)


def test_it_counts_in_the_limit_of_the_next_session(data: Path, tmp_path: Path) -> None:
    meter, run = Meter(judge_fails), tmp_path / "run"
    with ScriptedServer(meter) as server:
        session = options(server, run, data, price=PRICE_FLAGS, max_connections=1, output_tokens="50-450")
        with pytest.raises(QuotaError):
            evaluate(**session)
        asked = len(server.calls)
        stopped = evaluate(**session | {"max_cost": round(meter.usd, 4)})
        assert len(server.calls) == asked, "there is nothing left of the limit"
    assert stopped.stopped is not None
    assert "budget reached" in stopped.stopped


# --- interrupts ------------------------------------------------------------------------------------


def interrupted(
    store: Store, folder: Path, answer: Callable[[Request, int], Any], judge: FakeModel, at: asyncio.Event
) -> None:
    """A session that is cancelled, as Ctrl-C does it, once `at` is set."""
    dataset = open_dataset(
        {"terminal": folder / TASKS["terminal"].data_file}, {"terminal": TASKS["terminal"]}
    )
    predictor = Predictor(FakeModel(answer), TASKS, lambda ref, epoch: Sampling(max_tokens=64), Room(16))
    patience = Patience(max_connections=2)
    pipeline = Pipeline(dataset, store, predictor, [judge_of(judge)], patience, Progress())

    async def run() -> None:
        working = asyncio.create_task(pipeline.run(dataset.refs, 1))
        await asyncio.wait_for(at.wait(), 20)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(run())


def test_an_interrupt_loses_no_attempt_that_had_ended(data: Path, tmp_path: Path) -> None:
    """Of what is under way then nobody has told the cost; what had ended before is written down."""
    reached = asyncio.Event()

    async def never(request: Request, number: int) -> Any:
        if number == 1:
            return says("no verdict")
        reached.set()
        return await asyncio.Event().wait()

    with locked_store(tmp_path / "run") as store:
        interrupted(store, data, world, FakeModel(never, "judge", "there"), reached)
        (record,) = store.verdicts.every_line()
        assert is_unfinished(record)
        assert (record.cost_usd, len(record.attempts), len(store.verdicts)) == (0.25, 1, 0)
        assert all(not is_unfinished(one) for one in store.predictions.every_line())


def test_an_interrupt_loses_no_answer_that_is_there(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are written down when nobody has a request to send, or when the run is stopped."""
    reached = asyncio.Event()

    async def not_yet(self: Turns) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Turns, "later", not_yet)
    judge = FakeModel(lambda request, number: pytest.fail("asked after the stop"), "judge", "there")
    with locked_store(tmp_path / "run") as store:
        interrupted(store, data, world, judge, reached)
        records = list(store.predictions.every_line())
        assert records
        assert all(one.failure is None and one.observation for one in records)


@pytest.mark.parametrize("after", [0, 3])
def test_a_full_disk_while_answers_wait_is_what_is_told(
    after: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tried = Journal.append, list[str]()

    def append(self: Journal[Any], record: Any) -> None:
        tried.append(record.sample_id)
        if len(tried) > after:
            raise StoreError("no room")
        real(self, record)

    monkeypatch.setattr(Journal, "append", append)
    dataset = open_dataset({"terminal": data / TASKS["terminal"].data_file}, {"terminal": TASKS["terminal"]})
    with locked_store(tmp_path / "run") as store:
        with pytest.raises(StoreError, match="no room"):
            work(dataset, store, FakeModel(world), max_connections=8)
        assert len(tried) == len(set(tried)) > after, "nothing is written twice"
        assert set(store.predictions.keys()) == {(one, 1) for one in tried[:after]}


def test_what_stops_a_run_is_told_and_nothing_that_follows_from_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where workers wait for their last answers to be written; and these are written."""

    async def never(self: Turns) -> None:
        await asyncio.Event().wait()

    async def answer(request: Request, number: int) -> Any:
        if number < 6:
            return world(request, number)
        for _ in range(100):
            await asyncio.sleep(0)
        raise ValueError("the fault itself")

    monkeypatch.setattr(Turns, "later", never)
    dataset = open_dataset({"terminal": data / TASKS["terminal"].data_file}, {"terminal": TASKS["terminal"]})
    with locked_store(tmp_path / "run") as store:
        with pytest.raises(ValueError, match="the fault itself"):
            work(dataset, store, FakeModel(answer), max_connections=3)
        assert len(store.predictions) == 5


@pytest.mark.parametrize("outcome", [fails("rate_limit", cost_usd=0.0), fails("unreachable", cost_usd=0.0)])
def test_what_cost_nothing_leaves_no_line(outcome: Any, data: Path, tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def never(request: Request, number: int) -> Any:
        if number > 2:
            reached.set()
            await asyncio.Event().wait()
        return says("<predicted_observation>x</predicted_observation>") if number == 1 else outcome

    with locked_store(tmp_path / "run") as store:
        interrupted(store, data, never, FakeModel(verdict, "judge", "there"), reached)
        assert [one.failure for one in store.predictions.every_line()] == [None]
