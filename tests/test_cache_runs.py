"""Whole runs with `--cache`: what is asked again and what is not, counted at the server.

The server gives another answer to every request, so that two records can only agree by sharing a draw.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench import evaluate
from agentworldbench.dataset import open_dataset
from agentworldbench.engine.fitting import Room
from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.recall import FROM_CACHE
from agentworldbench.engine.steps import Predictor
from agentworldbench.errors import QuotaError
from agentworldbench.records import Completion, Prediction, Request, Sampling, Usage, Verdict
from agentworldbench.response_cache import NAME, ResponseCache
from agentworldbench.run import Run, judge_run
from agentworldbench.store import locked_store
from tests.helpers.asking import KEY, TASKS
from tests.helpers.awb_command import HereAwb
from tests.helpers.caching import by_key, entries, one_of_many
from tests.helpers.engine_work import judge_of
from tests.helpers.fake_model import FakeModel, says
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import (
    ChatCall,
    Reply,
    ScriptedServer,
    every_nth,
    hash_scores,
    verdict_text,
)
from tests.helpers.whole_runs import all_text, asked, good, options, read_results

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("data")
    return make_official_folder(
        folder, domains=("terminal", "web"), trajectories=2, observation_chars=80, special=False
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(one_of_many) as running:
        yield running


@pytest.fixture
def opts(server: ScriptedServer, data: Manifest, tmp_path: Path) -> dict[str, Any]:
    return options(server, tmp_path / "first", data.folder, cache=tmp_path / "cache")


# --- a second run ----------------------------------------------------------------------------


def test_a_second_run_asks_nothing_and_says_so(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    first = evaluate(**opts)
    count, since = len(data.rows), len(server.calls)
    assert asked(server) == {"world": count, "judge": count}
    second = evaluate(**opts | {"output": tmp_path / "second"})
    assert asked(server, since) == {"world": 0, "judge": 0}
    for here, there in (
        (by_key(first.predictions()), by_key(second.predictions())),
        (by_key(first.verdicts()), by_key(second.verdicts())),
    ):
        assert here.keys() == there.keys()
        for key, record in here.items():
            assert_same_draw(record, there[key])
        assert len({record.draw for record in here.values()}) == len(here)
    assert_said(first, second, count)


def assert_same_draw(asked_for: Prediction | Verdict, recalled: Prediction | Verdict) -> None:
    """The same answer; only who paid for it differs."""
    assert asked_for.draw
    assert asked_for.draw == recalled.draw
    assert (asked_for.cached_usage, FROM_CACHE in asked_for.notes) == (None, False)
    assert recalled.cached_usage == asked_for.usage
    assert (recalled.usage, recalled.cost_usd, recalled.attempts) == (Usage(), 0.0, ())
    assert recalled.notes == (*asked_for.notes, FROM_CACHE)
    differs = {"notes", "usage", "cost_usd", "cached_usage", "seconds", "started_at"}
    assert asked_for.model_dump(exclude=differs) == recalled.model_dump(exclude=differs)


def assert_said(first: Run, second: Run, count: int) -> None:
    assert first.results is not None
    assert second.results is not None
    for results, taken in ((first.results, 0), (second.results, count)):
        judge = results.judges[0]
        assert results.predictions.from_cache.answers == judge.from_cache.answers == taken
        assert results.predictions.notes.get(FROM_CACHE, 0) == judge.notes.get(FROM_CACHE, 0) == taken
    taken_from, spent = second.results.predictions.from_cache, second.results.predictions.spent
    assert taken_from.usage == first.results.predictions.spent.usage
    assert taken_from.cost_usd is None, "a server of one's own has no price"
    assert (spent.usage, spent.cost_usd) == (Usage(), 0.0)
    assert first.results.judges[0].domains == second.results.judges[0].domains


def test_the_table_and_the_display_say_it(
    opts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    words = ("run", "--model", "openai-api/world", "--base-url", opts["base_url"], "--data", opts["data"])
    words = (*words, "--limit", "3", "--cache", "cache")
    assert FROM_CACHE not in awb(*words, "-o", "first").out
    done = awb(*words, "-o", "second")
    assert f"predictions  {FROM_CACHE}" in done.out
    assert "predictions 6/6 (6 from the cache)" in done.err


# --- with a run of its own ----------------------------------------------------------------------


def test_a_stopped_run_resumes_with_its_cache(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    quota = Reply(status=429, error={"message": "no", "code": "insufficient_quota"})
    server.script = every_nth(9, quota, one_of_many)
    with pytest.raises(QuotaError):
        evaluate(**opts, max_connections=2)
    server.script = one_of_many
    other = evaluate(**opts | {"output": tmp_path / "other"})
    since = len(server.calls)
    run = evaluate(**opts)
    assert asked(server, since) == {"world": 0, "judge": 0}, "the other run has asked for the rest"
    here, there = by_key(run.predictions()), by_key(other.predictions())
    assert {key: one.draw for key, one in here.items()} == {key: one.draw for key, one in there.items()}
    assert run.results is not None
    taken = run.results.predictions.from_cache.answers
    assert 0 < taken < len(data.rows), "its own answers are not told as taken from the cache"


def test_a_judge_of_later_takes_verdicts_too(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    from agentworldbench.config import make_config

    evaluate(**opts)
    evaluate(**opts | {"output": tmp_path / "second"}, no_judge=True)
    since = len(server.calls)
    names = ("judge", "judge_base_url", "cache")
    run = judge_run(tmp_path / "second", make_config({name: opts[name] for name in names}))
    assert len(server.calls) == since
    assert run.results is not None
    assert run.results.judges[0].from_cache.answers == len(data.rows)


def test_it_is_off_unless_it_is_given_and_what_costs_nothing_is_not_stored(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    run = evaluate("baseline/copy-last", data=str(data.folder), output=tmp_path / "b", cache=opts["cache"])
    assert entries(opts["cache"]) == []
    assert {record.draw for record in run.predictions()} == {None}
    without = evaluate(**{**opts, "cache": None, "output": tmp_path / "without"})
    assert {record.draw for record in without.predictions()} == {None}
    assert entries(opts["cache"]) == []


def test_epochs_and_repeats_are_draws_of_their_own(data: Manifest, tmp_path: Path) -> None:
    """RM-05: a cached second run has the same answers in the same places, and no two of one run agree."""
    tasks = {domain: TASKS[domain] for domain in ("terminal", "web")}
    dataset = open_dataset({name: data.folder / task.data_file for name, task in tasks.items()}, tasks)
    numbers = iter(range(10**6))

    def world(request: Request, number: int) -> Completion:
        return says(f"<predicted_observation>{next(numbers)}</predicted_observation>", usage=Usage())

    def verdict(request: Request, number: int) -> Completion:
        return says(verdict_text(hash_scores(str(next(numbers)))), usage=Usage())

    async def session(output: Path) -> tuple[int, dict[Any, Any], dict[Any, Any]]:
        model, judging = FakeModel(world), FakeModel(verdict, name="fake/judge")
        cache = ResponseCache(tmp_path / "cache", pytest.fail)
        await cache.open()
        predictor = Predictor(model, TASKS, lambda ref, epoch: Sampling(max_tokens=64), Room(16))
        with locked_store(output) as store:
            judges, patience = [judge_of(judging)], Patience(max_connections=4)
            pipeline = Pipeline(
                dataset, store, predictor, judges, patience, Progress(), epochs=3, repeats=2, cache=cache
            )
            await asyncio.wait_for(pipeline.run(dataset.refs[:4], 1), 30)
            texts = {one.key: one.text for one in store.predictions}
            replies = {one.key: one.draw for one in store.verdicts}
        await cache.close()
        return len(model.requests) + len(judging.requests), texts, replies

    asked_first, texts, draws = asyncio.run(session(tmp_path / "one"))
    assert asked_first == 4 * 3 + 4 * 3 * 2
    assert len(texts) == len(set(texts.values())) == 12
    assert len(draws) == len(set(draws.values())) == 24
    assert asyncio.run(session(tmp_path / "two")) == (0, texts, draws)


def test_a_damaged_cache_is_said_and_the_run_goes_on(
    opts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / NAME).write_bytes(b"not a database" * 99)
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    words = ("run", "--model", "openai-api/world", "--base-url", opts["base_url"], "--data", opts["data"])
    done = awb(*words, "--limit", "1", "--cache", "cache", "-o", "out")
    assert done.code == 0
    assert f"cache/{NAME}: damaged (file is not a database); set aside as {NAME}.damaged-" in done.err
    assert len(entries(tmp_path / "cache")) == 2
    (tmp_path / "file").write_text("")
    refused = awb(*words, "--limit", "1", "--cache", "file", "-o", "other")
    assert (refused.code, "--cache file: cannot be used" in refused.complaint) == (2, True)
    assert not (tmp_path / "other").exists()


def test_the_cache_holds_no_secret(server: ScriptedServer, opts: dict[str, Any], tmp_path: Path) -> None:
    def leaking(call: ChatCall) -> Reply:
        said = good(call)
        return Reply(content=said.content, model=f"served for {call.headers['authorization']}")

    server.script = leaking
    evaluate(**opts)
    held = json.dumps(entries(opts["cache"])) + all_text(opts["cache"])
    assert "served for Bearer ***" in held
    assert KEY not in held
    assert read_results(opts["output"])["predictions"]["served"] == ["served for Bearer ***"]
