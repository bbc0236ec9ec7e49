"""`awb run` killed, interrupted, doubled and torn, as real processes against a scripted server.

What stands in the journals after a kill is the truth: none of it may ever be asked again. Each
session has a key of its own, so every request tells which session sent it. Nothing waits for a
clock: a process is stopped when the server has seen a number of requests.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from agentworldbench.engine.thread import run_in_thread
from agentworldbench.errors import Interrupted
from agentworldbench.run import evaluate, load_run
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, late
from tests.helpers.whole_runs import asked, good, options, prompt_hash, read_results

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 60.0
CONNECTIONS = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("data")
    names = ("search", "swe", "os")
    return make_official_folder(folder, domains=names, trajectories=2, observation_chars=80, special=False)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(late(0.05, good)) as running:
        yield running


def key_of(session: int) -> str:
    return f"sk-session-{session:08d}"


def _default_interrupt() -> None:
    # A test run in the background of a shell may have SIGINT ignored, which children inherit.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(
    server: ScriptedServer, run: Path, data: Manifest, session: int = 0, *flags: str
) -> subprocess.Popen[str]:
    """`awb run` with model and judge on `server`; standard error goes to a file beside the run."""
    words = [
        *("--model", "openai-api/world", "--base-url", server.base_url),
        *("--judge", "openai-api/judge", "--judge-base-url", server.base_url),
        *("--data", str(data.folder), "--output", str(run), "--max-connections", str(CONNECTIONS)),
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWB_")}
    with (run.parent / f"stderr-{session}.txt").open("w") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "agentworldbench", "run", *words, *flags],
            cwd=run.parent,
            env={**kept, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": key_of(session)},
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            text=True,
            preexec_fn=_default_interrupt,
        )


def said(run: Path, session: int = 0) -> str:
    return (run.parent / f"stderr-{session}.txt").read_text()


def finish(process: subprocess.Popen[str], run: Path, session: int = 0) -> None:
    try:
        code = process.wait(LIMIT_S)
    finally:
        process.kill()
    assert code == 0, said(run, session)


def journaled(run: Path) -> set[str]:
    """Prompts that have a whole record in a journal."""
    loaded = load_run(run)
    return {record.prompt_sha256 for record in (*loaded.predictions(), *loaded.verdicts())}


def of_session(server: ScriptedServer, session: int) -> Counter[str]:
    """How often each prompt was asked by one session."""
    header = f"Bearer {key_of(session)}"
    return Counter(prompt_hash(call) for call in server.calls if call.headers["authorization"] == header)


@pytest.mark.parametrize("times", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_asks_nothing_twice_and_ends_the_same(
    times: int, server: ScriptedServer, data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rng = tmp_path / "run", Random(20260720)
    done: set[str] = set()
    for session in range(times):
        process = start(server, run, data, session)
        try:
            server.wait_for_calls(len(server.calls) + rng.randint(3, 9), LIMIT_S)
        finally:
            process.kill()
        assert process.wait(LIMIT_S) == -signal.SIGKILL
        asked_now = of_session(server, session)
        assert not asked_now.keys() & done, "a journaled answer was asked again"
        assert set(asked_now.values()) <= {1}
        before, done = done, journaled(run)
        assert before <= done
        assert len(asked_now.keys() - done) <= CONNECTIONS, "only what was in flight may be lost"
    assert 0 < len(done) < 2 * len(data.rows)
    finish(start(server, run, data, times), run, times)
    last = of_session(server, times)
    assert not last.keys() & done
    assert set(last.values()) == {1}
    assert done | last.keys() == journaled(run)
    assert len(journaled(run)) == 2 * len(data.rows)

    calls, checks = len(server.calls), server.model_requests
    finish(start(server, run, data, times + 1), run, times + 1)
    assert (len(server.calls), server.model_requests) == (calls, checks)
    assert "Nothing to ask" in said(run, times + 1)

    monkeypatch.setenv("OPENAI_API_KEY", key_of(times + 2))
    evaluate(**options(server, tmp_path / "clean", data.folder))
    assert read_results(run) == read_results(tmp_path / "clean")
    assert sum(of_session(server, times + 2).values()) == 2 * len(data.rows)


def three_then_silence(call: ChatCall) -> Reply:
    return good(call) if call.index <= 3 else replace(good(call), delay_s=600.0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_ends_at_once_and_another_session_does_the_rest(
    number: signal.Signals, server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    server.script = three_then_silence
    process = start(server, run, data, 0, "--no-judge", "--max-connections", "2")
    try:
        # A worker journals its answer before it asks again: five requests mean three records.
        server.wait_for_calls(5, LIMIT_S)
        process.send_signal(number)
        assert process.wait(10) == 130
    finally:
        process.kill()
    assert "interrupted" in said(run)
    assert "Traceback" not in said(run)
    stored = list(load_run(run).predictions())
    assert len(stored) == 3
    assert all(record.failure is None for record in stored), "what was in flight is no failure"
    assert not (run / "results.json").exists()
    server.script = good
    evaluate(**options(server, run, data.folder, no_judge=True, max_connections=CONNECTIONS))
    assert asked(server, 5) == {"world": len(data.rows) - 3, "judge": 0}
    finished = load_run(run).results
    assert finished is not None
    assert finished.complete


def test_a_second_process_on_one_directory_is_refused(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    server.script = three_then_silence
    first = start(server, run, data, 0)
    try:
        server.wait_for_calls(4, LIMIT_S)
        second = start(server, run, data, 1)
        assert second.wait(LIMIT_S) == 2
        assert f"in use by process {first.pid} " in said(run, 1)
        assert not of_session(server, 1)
        assert first.poll() is None
    finally:
        first.kill()
        first.wait(LIMIT_S)
    server.script = good
    finished = evaluate(**options(server, run, data.folder, max_connections=CONNECTIONS)).results
    assert finished is not None
    assert finished.complete


def test_an_interrupt_waits_until_the_work_has_ended() -> None:
    cleaned: list[int] = []

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(2000):
                await asyncio.sleep(0)
            cleaned.append(1)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(Interrupted, match="what is done stays"):
            run_in_thread(work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert cleaned == [1]


@pytest.mark.parametrize("first", [0, 700, 50_000])
def test_the_callers_garbage_collection_is_as_before_whatever_happened(first: int) -> None:
    """Seldom while requests fly, never where somebody has switched it off."""
    seen: list[int] = []

    async def work() -> None:
        seen.append(gc.get_threshold()[0])
        raise OSError("no room")

    before = gc.get_threshold()
    gc.set_threshold(first, 7, 9)
    try:
        with pytest.raises(OSError, match="no room"):
            run_in_thread(work)
        assert gc.get_threshold() == (first, 7, 9)
    finally:
        gc.set_threshold(*before)
    assert seen == [max(first, 10_000) if first else 0]


def test_of_several_loops_the_last_to_end_leaves_garbage_collection_as_it_was() -> None:
    """They need not end in the order in which they began."""
    begun, ended = threading.Event(), threading.Event()

    async def first() -> None:
        begun.set()
        assert await asyncio.to_thread(ended.wait, LIMIT_S)

    async def second() -> None:
        outer.start()
        assert await asyncio.to_thread(begun.wait, LIMIT_S)

    before = gc.get_threshold()
    outer = threading.Thread(target=run_in_thread, args=(first,))
    run_in_thread(second)
    assert gc.get_threshold()[0] == 10_000, "the other one is still at work"
    ended.set()
    outer.join(LIMIT_S)
    assert gc.get_threshold() == before


TAILS = {
    # how the last line of predictions.jsonl is left: bytes to keep of it, what is asked again
    "cut in the middle": (-40, 1),
    "one byte": (1, 1),
    "whole but for its newline": (-1, 0),
}


@pytest.mark.parametrize("name", TAILS)
def test_a_torn_last_line_is_kept_aside_and_asked_again(
    name: str, server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    server.script = good
    run, (keep, again) = tmp_path / "run", TAILS[name]
    opts = options(server, run, data.folder, limit="2")
    evaluate(**opts)
    results = read_results(run)
    journal, aside = run / "predictions.jsonl", run / "predictions.jsonl.torn"
    lines = journal.read_bytes().splitlines(keepends=True)
    torn = lines[-1][:keep]
    journal.write_bytes(b"".join(lines[:-1]) + torn)
    since = len(server.calls)
    evaluate(**opts)
    assert asked(server, since) == {"world": again, "judge": 0}
    assert (aside.read_bytes() if aside.exists() else b"") == (torn + b"\n" if again else b"")
    assert read_results(run) == results
    assert journal.read_bytes().startswith(b"".join(lines[:-1]))
