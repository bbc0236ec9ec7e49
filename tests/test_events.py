"""Tests of `--json`: every line of real runs is read, as a program would read it.

Standard output holds events and nothing else; the last one is `end` with the exit code of the process.
"""

from __future__ import annotations

import errno
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentworldbench import evaluate
from agentworldbench.cli import events as events_module
from agentworldbench.cli.events import Begin, End, Failed, ProgressEvent, ResultsEvent, Warned, events
from agentworldbench.engine.progress import Progress
from agentworldbench.errors import StoreError
from agentworldbench.models.baseline import BaselineModel
from agentworldbench.records import CallFailure, Completion, Failure, FailureKind, Request, Usage
from agentworldbench.run import load_run
from tests.helpers.awb_command import Done, HereAwb, clean_environment
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, kind_of_call

KINDS = {
    kind.model_fields["event"].default: kind
    for kind in (Begin, ProgressEvent, Warned, ResultsEvent, Failed, End)
}
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(
        tmp_path_factory.mktemp("data"), domains=("terminal", "web"), trajectories=2, observation_chars=80
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(good) as running:
        yield running


@pytest.fixture
def words(server: ScriptedServer, data: Manifest) -> tuple[str, ...]:
    model = (
        "--model",
        "openai-api/world",
        "--base-url",
        server.base_url,
        "--data",
        str(data.folder),
        "-o",
        "out",
    )
    return (*model, "--judge", "openai-api/judge", "--judge-base-url", server.base_url, "--json")


WHY = {0: "done", 3: "done", 4: "cost_limit", 130: "interrupted"}


def read(done: Done) -> Lines:
    """All events, each checked against its documented form; the last one tells the exit code."""
    assert done.out.isascii()
    assert done.out.endswith("\n")
    found: Lines = [json.loads(line) for line in done.out.splitlines()]
    for event in found:
        assert KINDS[event["event"]].model_validate_json(json.dumps(event)).model_dump(mode="json") == event
        assert event["schema_version"] == 1
        assert event["time"].endswith("Z")
    times = [datetime.fromisoformat(event["time"]) for event in found]
    assert times == sorted(times)
    assert [event["event"] for event in found].count("end") == 1
    stopped = WHY.get(done.code, "error")
    assert found[-1] == found[-1] | {"event": "end", "exit_code": done.code, "stopped": stopped}
    return found


def kinds(found: Lines) -> list[str]:
    return [event["event"] for event in found]


def only(found: Lines, kind: str) -> dict[str, Any]:
    (one,) = [event for event in found if event["event"] == kind]
    return one


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def test_every_line_of_a_run(
    tmp_path: Path, awb: HereAwb, server: ScriptedServer, data: Manifest, words: tuple[str, ...]
) -> None:
    def failing(call: ChatCall) -> Reply:
        return Reply(content=None) if kind_of_call(call) == 0 else good(call)

    server.script = failing
    done = awb("run", *words)
    assert done.code == 0, done.err
    found = read(done)
    count = len(data.rows)
    begin = only(found, "begin")
    expected = {
        "run": "out",
        "model": "openai-api/world",
        "judges": ["openai-api/judge"],
        "protocol": "builtin",
        "shard": None,
        "samples": dict(data.row_counts),
        "due_predictions": count,
        "due_verdicts": count,
    }
    assert begin == begin | expected
    last = [event for event in found if event["event"] == "progress"][-1]
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    failed = sum(some["empty"] for some in stored["predictions"]["failures"].values() if "empty" in some)
    assert failed > 0
    predictions, verdicts = last["predictions"], last["verdicts"]
    assert (predictions["total"], predictions["finished"], predictions["earlier"]) == (count, count, 0)
    assert predictions["failures"] == {"empty": failed}
    assert verdicts["finished"] == verdicts["total"] == count - failed
    assert last["cost_usd"] is None, "a server of one's own has no price"
    assert last["in_flight"] == 0
    assert (
        predictions["usage"]["completion_tokens"]
        == stored["predictions"]["spent"]["usage"]["completion_tokens"]
    )
    results = only(found, "results")
    assert (results["path"], results["results"]) == ("out/results.json", stored)
    assert {event["message"] for event in found if event["event"] == "warning"} >= set(stored["warnings"])
    assert kinds(found)[0] == "begin"
    assert kinds(found)[-2:] == ["results", "end"]
    assert "Judge scores of openai-api/world" in done.err, "people read on standard error"
    again = read(awb("run", *words))
    assert only(again, "begin")["due_predictions"] == 0
    assert [one for one in again if one["event"] == "progress"][-1]["predictions"]["earlier"] == count


def test_the_stages_alone(
    awb: HereAwb, words: tuple[str, ...], server: ScriptedServer, data: Manifest
) -> None:
    model, judge = words[:8], words[8:]
    inferred = read(awb("infer", *model, "--json"))
    assert (only(inferred, "begin")["due_verdicts"], only(inferred, "results")["results"]["judges"]) == (
        0,
        [],
    )
    judged = read(awb("judge", "out", *judge))
    begin = only(judged, "begin")
    assert (begin["due_predictions"], begin["due_verdicts"]) == (0, len(data.rows))
    done = awb("score", "out", "--json", "--explain")
    scored = read(done)
    assert kinds(scored)[-2:] == ["results", "end"]
    here, there = (only(found, "results")["results"] | {"made_at": ""} for found in (judged, scored))
    assert here == there
    assert "Where the two readings differ" in done.err


ERRORS: dict[str, tuple[tuple[str, ...], int, str, str]] = {
    "configuration": (("--limit", "1", "--judge-max-tokens", "0"), 2, "ConfigError", "--judge-max-tokens: "),
    "no server": (("--base-url", "http://127.0.0.1:9/v1"), 2, "EndpointError", "cannot be reached"),
    "data": (("--data", "nowhere"), 2, "DataError", "nowhere"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_told_to_programs_too(
    awb: HereAwb, words: tuple[str, ...], server: ScriptedServer, name: str
) -> None:
    more, code, kind, said = ERRORS[name]
    done = awb("run", *words, *more)
    error = only(read(done), "error")
    assert (done.code, error["error"]) == (code, kind)
    assert said in error["message"]
    assert done.complaint == f"awb: {error['message']}"


def test_a_fatal_answer_and_too_many_failures(
    awb: HereAwb, words: tuple[str, ...], server: ScriptedServer, data: Manifest
) -> None:
    server.script = lambda call: Reply(content=None)
    done = awb("run", *words, "--fail-on-error", "0.5", "--limit", "1")
    assert done.code == 3
    assert kinds(read(done))[-2:] == ["results", "end"]
    server.script = lambda call: Reply(status=429, error={"message": "no", "code": "insufficient_quota"})
    done = awb("run", *words)
    found = read(done)
    assert (done.code, only(found, "error")["error"]) == (5, "QuotaError")
    assert kinds(found)[-3:] == ["progress", "error", "end"]


def test_a_budget_that_is_reached(awb: HereAwb, words: tuple[str, ...]) -> None:
    prices = ("--price", "openai-api/world=1,1", "--price", "openai-api/judge=1,1")
    done = awb("run", *words, *prices, "--max-cost", "0.000001", "--output-tokens", "1-9")
    found = read(done)
    assert (done.code, found[-1]["stopped"]) == (4, "cost_limit")
    assert "budget reached" in [event["message"] for event in found if event["event"] == "warning"][-1]


def test_a_dry_run_and_a_configuration_file(awb: HereAwb, words: tuple[str, ...], tmp_path: Path) -> None:
    assert kinds(read(awb("run", *words, "--dry-run"))) == ["end"]
    (tmp_path / "run.yaml").write_text("json_events: true\nmodel: baseline/empty\nlimit: 1\ntasks: swe\n")
    assert kinds(read(awb("run", "-C", "run.yaml", "-o", "other")))[0] == "begin"
    assert '"event"' not in awb("run", "--model", "baseline/empty", "--limit", "1", "-o", "third").out


@pytest.mark.parametrize("in_file", [False, True])
def test_what_libraries_print_is_no_event(
    awb: HereAwb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_file: bool
) -> None:
    answer = BaselineModel.generate

    async def noisy(self: BaselineModel, request: Request) -> Completion | CallFailure:
        print("Give Feedback / Get Help")
        return await answer(self, request)

    monkeypatch.setattr(BaselineModel, "generate", noisy)
    (tmp_path / "run.yaml").write_text(f"json_events: {str(in_file).lower()}\n")
    flag = () if in_file else ("--json",)
    done = awb("run", "-C", "run.yaml", "--model", "baseline/empty", "--limit", "1", "-t", "swe", *flag)
    assert kinds(read(done))[0] == "begin"
    assert "Give Feedback" in done.err
    assert "Give Feedback" in awb("run", "--model", "baseline/empty", "--limit", "1", "-t", "web").out


def test_an_interrupt(tmp_path: Path, words: tuple[str, ...], server: ScriptedServer) -> None:
    server.script = lambda call: Reply(content="late", delay_s=60.0)
    command = [sys.executable, "-m", "agentworldbench", "run", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(
        command, cwd=tmp_path, env=clean_environment(), encoding="utf-8", **pipes
    ) as process:
        server.wait_for_calls(1, 60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    found = read(Done(process.returncode, out, err))
    assert process.returncode == 130
    assert only(found, "error")["error"] == "Interrupted"


def test_a_reader_that_goes_away_does_not_stop_the_run(
    tmp_path: Path, words: tuple[str, ...], data: Manifest
) -> None:
    command = [sys.executable, "-m", "agentworldbench", "run", *words]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "begin"
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(timeout=60) == 0, err
    assert "Traceback" not in err
    run = load_run(tmp_path / "out")
    assert run.results is not None
    assert sum(run.results.predictions.predicted.values()) == len(data.rows)


def test_events_that_cannot_be_written_are_an_error_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    done = []
    with pytest.raises(StoreError, match="standard output: No space left on device"), events(True) as stream:
        stream.warn("this is lost")
        done.append("the work goes on")
    assert done


def test_progress_comes_once_a_second_at_most(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out, now = io.StringIO(), [100.0]
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(events_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(events_module, "_begin", lambda plan, progress: Warned(message="begin"))
    shown: list[Progress] = []
    plan: Any = None
    with events(True) as stream:
        watch = stream.watcher(plan, shown.append)
        progress = Progress(watch)
        for step in range(100):
            now[0] = 100.0 + step / 10
            if step == 50:
                progress.notices.append("late")
            failure = Failure(kind=FailureKind.EMPTY, message="no text") if step % 2 else None
            progress.predictions.add("swe", Usage(), 0.5, failure)
            progress.update()
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    counted = [one["predictions"]["finished"] for one in found if one["event"] == "progress"]
    assert counted == [11, 21, 31, 41, 51, 61, 71, 81, 91, 100]
    assert [one["message"] for one in found if one["event"] == "warning"] == ["begin", "late"]
    last = found[-2]
    assert (last["cost_usd"], last["predictions"]["failures"]) == (50.0, {"empty": 50})
    assert len(shown) == 100


def test_a_bug_is_an_end_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(ZeroDivisionError), events(True):
        raise ZeroDivisionError
    assert json.loads(out.getvalue())["exit_code"] == 1


def test_odd_names_stay_on_one_line(awb: HereAwb, tmp_path: Path) -> None:
    name = "out\u2028of\u0085line\t\u202e"
    evaluate("baseline/empty", data="mini", tasks="swe", limit=1, output=tmp_path / name)
    found = read(awb("score", name, "--json"))
    assert only(found, "results")["path"] == f"{name}/results.json"
