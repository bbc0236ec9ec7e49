"""Public reports RM-…: runs that are stopped, cut off from their streams, or short of disk and files.

Real processes against a scripted server. What is done stays, the same command does the rest, and the
results are those of a run that nothing happened to. Nothing waits for a clock: a process is stopped when
the server has seen a number of requests.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.engine import descriptors, recall, retry, steps
from agentworldbench.engine.descriptors import SPARE, connections_that_fit
from agentworldbench.run import evaluate, load_run
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.processes import LIMIT_S, ended, few_files, flags, small_disk, start
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, every_nth, late
from tests.helpers.whole_runs import asked, good, kind_of_call, options, read_results

pytestmark = pytest.mark.slow

PROMPTLY_S = 15.0
"""A bound that a busy machine keeps too: measured are 0.1 s from the signal to the end."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("data")
    return make_official_folder(
        folder, domains=("search", "os"), trajectories=5, observation_chars=80, special=False
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(good) as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(data: Manifest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The results of a run that nothing happens to."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    with ScriptedServer(good) as server:
        evaluate(**options(server, run, data.folder))
    return read_results(run)


# --- stopped (RM-09) ---------------------------------------------------------------------------


def six_then_silence(call: ChatCall) -> Reply:
    return good(call) if call.index <= 6 else replace(good(call), delay_s=600.0)


STOPPED: dict[str, tuple[str, list[signal.Signals]]] = {
    # how: (scheme of the models, the signals)
    "Ctrl-C": ("openai-api", [signal.SIGINT]),
    "Ctrl-C twice": ("openai-api", [signal.SIGINT, signal.SIGINT]),
    "a closed terminal": ("openai-api", [signal.SIGHUP]),
    "a scheduler that has no patience": ("openai-api", [signal.SIGTERM, signal.SIGINT, signal.SIGTERM]),
    "Ctrl-C through LiteLLM": ("openai", [signal.SIGINT]),
}


@pytest.mark.parametrize("how", STOPPED)
def test_a_stopped_run_ends_promptly_and_loses_nothing(
    how: str, server: ScriptedServer, data: Manifest, tmp_path: Path, undisturbed: dict[str, object]
) -> None:
    scheme, signals = STOPPED[how]
    run = tmp_path / "run"
    server.script = six_then_silence
    words = [*flags(server, data.folder, run, scheme), "--max-connections", "64"]
    process = start(words, tmp_path)
    try:
        server.wait_for_calls(12, LIMIT_S)
        server.wait_for_answers(6, LIMIT_S)
        journals = run / "predictions.jsonl", run / "verdicts.jsonl"
        begun = time.monotonic()
        for number in signals:
            process.send_signal(number)
        done = ended(process, PROMPTLY_S)
    finally:
        process.kill()
    assert time.monotonic() - begun < PROMPTLY_S
    assert done.code == 130, done.err
    assert "Traceback" not in done.err
    assert not (run / "run.owner").exists()
    assert not (run / "results.json").exists()
    lines = [journal.read_bytes() if journal.exists() else b"" for journal in journals]
    assert all(text.endswith(b"\n") or not text for text in lines), "no torn line"
    stored = sum(text.count(b"\n") for text in lines)
    assert 0 < stored <= 6
    records = [*load_run(run).predictions(), *load_run(run).verdicts()]
    assert len(records) == stored
    assert all(record.failure is None for record in records), "what was in flight is no failure"

    server.script = good
    since = len(server.calls)
    again = ended(start(flags(server, data.folder, run, scheme), tmp_path))
    assert again.code == 0, again.err
    assert sum(asked(server, since).values()) == 2 * len(data.rows) - stored
    if scheme == "openai-api":
        assert read_results(run)["judges"] == undisturbed["judges"]


NO_ANSWER_FROM_DNS = """
import socket, threading
real = socket.getaddrinfo
def silent(host, *more, **named):
    if host == "server.example":
        print("asked", flush=True)
        threading.Event().wait(60)
    return real(host, *more, **named)
socket.getaddrinfo = silent
"""


def test_a_look_up_of_a_name_that_hangs_does_not_hold_up_an_interrupt(tmp_path: Path, data: Manifest) -> None:
    words = ["--model", "openai-api/m", "--base-url", "http://server.example/v1", "--output", "run"]
    process = start([*words, "--data", str(data.folder)], tmp_path, program=NO_ANSWER_FROM_DNS)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        done = ended(process, PROMPTLY_S)
    finally:
        process.kill()
    assert done.code == 130, done.err
    assert not (tmp_path / "run").exists(), "nothing was begun"


def ignore_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_under_nohup_a_closed_terminal_stops_nothing(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    words = [*flags(server, data.folder, tmp_path / "run"), "--no-judge"]
    process = start(words, tmp_path, prepare=ignore_hangup)
    try:
        server.wait_for_calls(1, LIMIT_S)
        process.send_signal(signal.SIGHUP)
        assert ended(process).code == 0
    finally:
        process.kill()


# --- streams that go away ----------------------------------------------------------------------

STREAMS = {
    # name: (what stands in for the streams 1 and 2, exit code)
    "the reader of standard output leaves": ("left", "kept", 0),
    "the reader of standard error leaves": ("kept", "left", 0),
    "both readers leave": ("left", "left", 0),
    "standard output is closed": ("closed", "kept", 0),
    "standard error is closed": ("kept", "closed", 0),
    "both are closed": ("closed", "closed", 0),
    "a log on a full disk": ("kept", "full", 0),
    "results to a full disk": ("full", "kept", 1),
}


@pytest.mark.parametrize("name", STREAMS)
def test_what_it_says_is_worth_less_than_the_run(name: str, data: Manifest, tmp_path: Path) -> None:
    *kinds, code = STREAMS[name]
    given: dict[str, Any] = {}
    for stream, kind in zip(("stdout", "stderr"), kinds, strict=True):
        if kind == "left":
            reading, given[stream] = os.pipe()
            os.close(reading)
        elif kind == "full":
            given[stream] = os.open("/dev/full", os.O_WRONLY)

    def close_streams() -> None:
        for number, kind in enumerate(kinds, 1):
            if kind == "closed":
                os.close(number)

    words = ["--model", "baseline/copy-last", "--data", str(data.folder), "--output", "run"]
    done = ended(start(words, tmp_path, prepare=close_streams, **given))
    for descriptor in given.values():
        os.close(descriptor)
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    results = load_run(tmp_path / "run").results
    assert results is not None
    assert results.complete
    for line in (tmp_path / "run" / "predictions.jsonl").read_bytes().splitlines():
        assert line.startswith(b"{"), "no other program's words in a file of ours"
    if code:
        assert done.err.splitlines()[-1].startswith("awb: "), done.err
        assert "No space left on device" in done.err


def test_a_closed_pipe_does_not_hide_what_the_run_came_to(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    filtered = Reply(status=400, error={"message": "no", "code": "content_filter"})
    server.script = lambda call: filtered if kind_of_call(call) < 5 else good(call)
    reading, writing = os.pipe()
    os.close(reading)
    words = [*flags(server, data.folder, tmp_path / "run"), "--no-judge", "--fail-on-error", "0.1"]
    done = ended(start(words, tmp_path, stdout=writing))
    os.close(writing)
    assert done.code == 3, done.err


# --- disk and files (RM-15, RM-18) ---------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 200, 9_000, 30_000])
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    size: int, data: Manifest, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ["--model", "baseline/copy-last", "--data", str(data.folder), "--output", str(run)]
    done = ended(start(words, tmp_path, prepare=small_disk(size)))
    assert done.code == 1, done.err
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith(f"awb: {run}/"), done.err
    assert "cannot be written (File too large)" in done.err
    assert not (run / "run.json").exists() or (run / "run.json").read_bytes().endswith(b"}\n"), "whole or not"
    whole = []
    if (run / "predictions.jsonl").exists():
        whole = [
            line for line in (run / "predictions.jsonl").read_bytes().splitlines(True) if line[-1:] == b"\n"
        ]
    again = evaluate("baseline/copy-last", data=str(data.folder), output=run)
    assert (run / "predictions.jsonl").read_bytes().startswith(b"".join(whole))
    clean = evaluate("baseline/copy-last", data=str(data.folder), output=tmp_path / "clean")
    assert read_results(again.path)["predictions"] == read_results(clean.path)["predictions"]
    assert read_results(again.path)["rules"] == read_results(clean.path)["rules"]


FEW = {
    # name: (soft limit, hard limit, said, most in flight)
    "40 files, no more": (40, 40, True, 12),
    "64 files, no more": (64, 64, True, 24),
    "40 files, more for the asking": (40, 4096, False, 200),
}


@pytest.mark.parametrize("name", FEW)
def test_few_open_files_are_few_connections(
    name: str, server: ScriptedServer, data: Manifest, tmp_path: Path, undisturbed: dict[str, object]
) -> None:
    soft, hard, said, most = FEW[name]
    server.script = late(0.1, every_nth(5, Reply(status=503, headers={"Retry-After": "0.01"}), good))
    words = [*flags(server, data.folder, tmp_path / "run"), "--max-connections", "200"]
    done = ended(start(words, tmp_path, prepare=few_files(soft, hard)))
    assert done.code == 0, done.err
    assert ("open few files" in done.err) is said
    assert "Too many open files" not in done.err
    assert 1 < server.max_in_flight <= most
    assert read_results(tmp_path / "run")["judges"] == undisturbed["judges"]


@pytest.mark.parametrize(("soft", "hard"), [(64, 64), (64, 4096), (4096, 4096), (1, 1)])
def test_how_many_connections_fit(soft: int, hard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [soft, hard]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, new: limits.__setitem__(0, new[0]))
    monkeypatch.setattr(descriptors, "_open_files", lambda: 10)
    fit = connections_that_fit(100)
    assert fit == max(1, min(100, hard - 10 - SPARE))
    assert limits[0] == max(soft, min(hard, 110 + SPARE))


def test_where_no_more_may_be_asked_for_fewer_connections_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, new: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (50, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    monkeypatch.setattr(descriptors, "_open_files", lambda: 10)
    assert connections_that_fit(100) == 50 - 10 - SPARE


# --- clocks, and records of others ---------------------------------------------------------------


class JumpingClock(datetime):
    """A wall clock that somebody sets ten years forward and back all the time."""

    jumps = 0

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        cls.jumps += 1
        return datetime.now(UTC) + timedelta(days=3650 * (-1) ** cls.jumps)


def test_a_clock_that_jumps_changes_no_duration(
    server: ScriptedServer,
    data: Manifest,
    tmp_path: Path,
    undisturbed: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.001)
    for module in (steps, recall):
        monkeypatch.setattr(module, "datetime", JumpingClock)
    server.script = every_nth(9, Reply(status=429), good)
    left: list[float | None] = []
    begun = time.monotonic()
    run = evaluate(
        **options(server, tmp_path / "run", data.folder), watch=lambda seen: left.append(seen.elapsed)
    )
    took = time.monotonic() - begun
    assert JumpingClock.jumps >= 2 * len(data.rows)
    years = {str(record.started_at)[:4] for record in (*run.predictions(), *run.verdicts())}
    assert len(years) == 2, "the clock did jump"
    records = [*run.predictions(), *run.verdicts()]
    assert all(record.seconds is not None and 0 <= record.seconds <= took for record in records)
    seen = [seconds for seconds in left if seconds is not None]
    assert seen == sorted(seen)
    assert read_results(run.path)["judges"] == undisturbed["judges"]


def test_records_of_other_samples_are_told_of(server: ScriptedServer, data: Manifest, tmp_path: Path) -> None:
    """RM-03: they are no part of any number (see test_runs_again.py)."""
    opts = options(server, tmp_path / "run", data.folder, limit="2", no_judge=True)
    evaluate(**opts)
    journal = tmp_path / "run" / "predictions.jsonl"
    line = journal.read_bytes().splitlines()[0].replace(b'"sample_id":"search/', b'"sample_id":"nowhere/')
    journal.write_bytes(
        journal.read_bytes() + line.replace(b'"sample_id":"os/', b'"sample_id":"nowhere/') + b"\n"
    )
    notices: list[str] = []
    evaluate(**opts, watch=lambda progress: notices.extend(progress.notices))
    assert any("1 record is of a sample that this run does not have" in line for line in notices)
