"""A run directory used again: resumed, grown, judged later, refused when it would mean something else.

What is asked again is counted at the server. Whatever a second session may not change must be
refused with the fields named and the directory left as it was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError, CredentialsError, DataError, EndpointError, QuotaError
from agentworldbench.run import evaluate, judge_run, load_run, score_run
from agentworldbench.store import locked_store
from tests.helpers.asking import KEY
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, every_nth
from tests.helpers.whole_runs import all_text, asked, good, kind_of_call, options, read_results

PAIR = {"tasks": "terminal,web"}


pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("data")
    names = ("terminal", "web")
    return make_official_folder(folder, domains=names, trajectories=3, observation_chars=80, special=False)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(good) as running:
        yield running


def snapshot(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir() if path.name != "run.lock"}


# --- resuming --------------------------------------------------------------------------------


def test_a_finished_run_asks_nothing_more(server: ScriptedServer, data: Manifest, tmp_path: Path) -> None:
    opts = options(server, tmp_path / "run", data.folder)
    evaluate(**opts)
    before, calls, checks = snapshot(tmp_path / "run"), len(server.calls), server.model_requests
    evaluate(**opts)
    after = snapshot(tmp_path / "run")
    assert (len(server.calls), server.model_requests) == (calls, checks)
    assert {name for name in before if before[name] != after[name]} <= {"results.json"}
    assert json.loads(before["results.json"]) | {"made_at": ""} == json.loads(after["results.json"]) | {
        "made_at": ""
    }


def test_only_transient_failures_are_asked_again(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    def failing(call: ChatCall) -> Reply:
        kind = kind_of_call(call)
        if kind in (0, 1):
            return Reply(status=503)
        if kind in (2, 3):
            return Reply(content=None)
        return good(call)

    opts = options(server, tmp_path / "run", data.folder, max_retries=0, judge_attempts=1)
    server.script = failing
    first = evaluate(**opts)
    transient = {
        "world": [
            one.sample_id
            for one in first.predictions()
            if one.failure and one.failure.kind == "provider_error"
        ],
        "judge": [
            one.sample_id for one in first.verdicts() if one.failure and one.failure.kind == "provider_error"
        ],
    }
    final = [one.sample_id for one in first.predictions() if one.failure and one.failure.kind == "empty"]
    unread = [one.sample_id for one in first.verdicts() if one.failure and one.failure.kind == "empty"]
    assert all((transient["world"], transient["judge"], final, unread)), "all four occur in this data"
    server.script, since = good, len(server.calls)
    second = evaluate(**opts)
    new = len(transient["world"])
    assert asked(server, since) == {"world": new, "judge": new + len(transient["judge"])}
    assert [one.sample_id for one in second.predictions() if one.failure] == final
    since = len(server.calls)
    third = evaluate(**opts, retry_failed=True)
    assert asked(server, since) == {"world": len(final), "judge": len(final) + len(unread)}
    assert third.results is not None
    assert third.results.judges[0].micro.coverage == 1.0
    clean = evaluate(**opts | {"output": tmp_path / "clean"})
    assert clean.results is not None
    assert third.results.judges[0].domains == clean.results.judges[0].domains


STOPS: dict[str, tuple[Reply, type[Exception]]] = {
    "quota": (Reply(status=429, error={"message": "no", "code": "insufficient_quota"}), QuotaError),
    "key": (Reply(status=401, error={"message": f"Incorrect API key provided: {KEY}"}), CredentialsError),
    "model": (Reply(status=404, error={"message": "The model does not exist"}), EndpointError),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_fatal_error_stops_in_the_middle_and_the_same_call_continues(
    name: str, server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    reply, error = STOPS[name]
    opts = options(server, tmp_path / "run", data.folder, max_connections=2)
    server.script = every_nth(15, reply, good)
    with pytest.raises(error) as caught:
        evaluate(**opts)
    assert KEY not in str(caught.value)
    assert KEY not in all_text(tmp_path / "run")
    stopped = load_run(tmp_path / "run")
    done = list(stopped.predictions())
    assert stopped.results is None
    assert 0 < len(done) <= 14
    assert all(record.failure is None for record in done)
    server.script, since = good, len(server.calls)
    finished = evaluate(**opts)
    assert asked(server, since)["world"] == len(data.rows) - len(done)
    assert finished.results is not None
    assert finished.results.judges[0].micro.coverage == 1.0


def test_an_endpoint_that_vanishes_stops_the_run_and_keeps_it(data: Manifest, tmp_path: Path) -> None:
    server = ScriptedServer(good)
    server.start()
    gone: list[int] = []

    def vanish(progress: Any) -> None:
        if progress.predictions.done >= 5 and not gone:
            gone.append(progress.predictions.done)
            server.stop()

    opts = options(server, tmp_path / "run", data.folder, max_connections=1, max_retries=2)
    with pytest.raises(EndpointError, match="is the server running"):
        evaluate(**opts, watch=vanish)
    stored = list(load_run(tmp_path / "run").predictions())
    assert len(stored) >= 5
    assert all(record.failure is None for record in stored)


def test_an_endpoint_that_was_never_there_is_told_before_anything(data: Manifest, tmp_path: Path) -> None:
    server = ScriptedServer(good)
    server.start()
    server.stop()
    with pytest.raises(EndpointError, match="cannot be reached"):
        evaluate(**options(server, tmp_path / "run", data.folder))
    assert not (tmp_path / "run" / "predictions.jsonl").exists()


# --- what may not change ---------------------------------------------------------------------

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "temperature": ({"temperature": 0.1}, "predict.sampling.*.temperature was 0.6, now 0.1"),
    "max_tokens": ({"max_tokens": 64}, "predict.sampling.*.max_tokens was 32768, now 64"),
    "seed": ({"seed": 5}, "predict.sampling.*.seed was server default, now derived from 5"),
    "gen_kwargs": ({"gen_kwargs": {"top_k": 4}}, "predict.sampling.*.top_k was server default, now 4"),
    "extra_body": ({"extra_body": {"top_k": 4}}, "predict.sampling.*.top_k was server default, now 4"),
    "model": (
        {"model": "openai-api/other"},
        "predict.model.name was world, now other",
    ),
    "context": ({"max_context": 9999}, "predict.max_context was None, now 9999"),
    "min_output": ({"min_output": 9}, "predict.min_output was 512, now 9"),
}


@pytest.fixture(scope="module")
def finished(
    data: Manifest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, ScriptedServer]]:
    output = tmp_path_factory.mktemp("finished") / "run"
    with ScriptedServer(good) as running:
        evaluate(**options(running, output, data.folder, limit="3"))
        yield output, running


@pytest.mark.parametrize("name", CHANGES)
def test_another_configuration_is_refused_with_its_fields_named(
    name: str, finished: tuple[Path, ScriptedServer], data: Manifest
) -> None:
    output, server = finished
    change, words = CHANGES[name]
    before, calls = snapshot(output), len(server.calls)
    with pytest.raises(ConfigError) as caught:
        evaluate(**options(server, output, data.folder, limit="3") | change)
    assert words in str(caught.value)
    assert (snapshot(output), len(server.calls)) == (before, calls)


FREE: dict[str, dict[str, Any]] = {
    "patience": {"max_connections": 2, "max_retries": 1, "timeout": 5.0, "retry_failed": True},
    "no judge": {"no_judge": True},
    "display": {"display": "none", "yes": True},
}


@pytest.mark.parametrize("name", FREE)
def test_what_changes_no_answer_may_change(
    name: str, finished: tuple[Path, ScriptedServer], data: Manifest
) -> None:
    output, server = finished
    calls = len(server.calls)
    evaluate(**options(server, output, data.folder, limit="3") | FREE[name])
    assert len(server.calls) == calls


SMALLER: dict[str, dict[str, Any]] = {
    "fewer": {"limit": "2"},
    "other rows": {"limit": "1-3"},
    "a domain less": {"limit": "3", "tasks": "web"},
    "one sample": {"limit_trajectories": 1},
}


@pytest.mark.parametrize("name", SMALLER)
def test_a_smaller_selection_is_refused(
    name: str, finished: tuple[Path, ScriptedServer], data: Manifest
) -> None:
    output, server = finished
    before = snapshot(output)
    with pytest.raises(ConfigError, match="larger selection"):
        evaluate(**options(server, output, data.folder, **SMALLER[name]))
    assert snapshot(output) == before


def test_a_grown_selection_asks_only_what_is_new(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    steps: list[dict[str, Any]] = [
        {"limit": "2", "tasks": "terminal"},
        {"limit": "4", "tasks": "terminal"},
        {"limit": "4", **PAIR},
        {},
    ]
    wanted = [2, 4, 8, len(data.rows)]
    for step, total in zip(steps, wanted, strict=True):
        run = evaluate(**options(server, tmp_path / "run", data.folder, **step))
        assert asked(server) == {"world": total, "judge": total}
        assert run.results is not None
        assert sum(run.results.predictions.samples.values()) == total
    whole = evaluate(**options(server, tmp_path / "whole", data.folder))
    assert run.results.judges[0].domains == (whole.results and whole.results.judges[0].domains)


def test_changed_data_is_refused(server: ScriptedServer, data: Manifest, tmp_path: Path) -> None:
    folder, output = tmp_path / "data", tmp_path / "run"
    shutil.copytree(data.folder, folder)
    evaluate(**options(server, output, folder, limit="2"))
    file = folder / "web_test.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(ConfigError, match=r"predict\.data\.files\.web was"):
        evaluate(**options(server, output, folder, limit="2"))
    judge = make_config({"judge": "openai-api/other", "judge_base_url": server.base_url})
    with pytest.raises(DataError, match="'web' is not the one this run was made with"):
        judge_run(output, judge)
    with pytest.raises(DataError, match="'web' is not the one this run was made with"):
        score_run(output)


def test_moved_data_can_be_scored_where_it_is_now(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    folder, output = tmp_path / "data", tmp_path / "run"
    shutil.copytree(data.folder, folder)
    evaluate(**options(server, output, folder, limit="2"))
    before = read_results(output)
    folder.rename(tmp_path / "moved")
    with pytest.raises(DataError, match="its data were in the folder"):
        score_run(output)
    score_run(output, data=str(tmp_path / "moved"))
    assert read_results(output) == before


def test_rows_of_other_samples_and_broken_lines_are_not_counted(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    evaluate(**options(server, output, data.folder, limit="2"))
    before, calls = read_results(output), len(server.calls)
    for name in ("predictions.jsonl", "verdicts.jsonl"):
        file = output / name
        last = json.loads(file.read_bytes().splitlines()[-1])
        stray = json.dumps(last | {"sample_id": "terminal/0/99"}).encode()
        file.write_bytes(file.read_bytes() + b"null\n[1]\n{}\n" + stray + b"\n")
    evaluate(**options(server, output, data.folder, limit="2"))
    assert read_results(output) == before
    assert len(server.calls) == calls


def test_a_later_record_of_a_sample_counts(server: ScriptedServer, data: Manifest, tmp_path: Path) -> None:
    output = tmp_path / "run"
    evaluate(**options(server, output, data.folder, limit="1", tasks="web"))
    with locked_store(output) as store:
        (verdict,) = store.verdicts
        scores = dict.fromkeys(verdict.scores or {}, 5)
        store.verdicts.append(verdict.model_copy(update={"scores": scores}))
    run = score_run(output)
    assert run.results is not None
    assert run.results.judges[0].macro_floor["total"] == 100.0


def test_two_writers_are_refused(server: ScriptedServer, data: Manifest, tmp_path: Path) -> None:
    output = tmp_path / "run"
    evaluate(**options(server, output, data.folder, limit="1"))
    with locked_store(output), pytest.raises(ConfigError, match="in use by process"):
        evaluate(**options(server, output, data.folder, limit="1"))


def test_judging_needs_a_judge_and_a_run(finished: tuple[Path, ScriptedServer], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--judge is missing"):
        judge_run(finished[0], make_config({}))
    with pytest.raises(ConfigError, match=r"no run\.json"):
        judge_run(
            tmp_path / "nowhere",
            make_config({"judge": "openai-api/j", "judge_base_url": "http://127.0.0.1:9/v1"}),
        )
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(ConfigError, match="given twice"):
        evaluate("baseline/empty", judge=["openai/a", "openai/a"], data="mini", output=tmp_path / "x")
    with pytest.raises(ConfigError, match="a judge must be a model"):
        evaluate("baseline/empty", judge="baseline/reference", data="mini", output=tmp_path / "x")
