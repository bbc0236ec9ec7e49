"""Tests of a run directory as a whole: one writer at a time, and what is refused as damaged.

Locks are held by real processes, which say when they hold one and keep it until their input ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.records import Prediction
from agentworldbench.run import evaluate, judge_run, load_run, score_run
from agentworldbench.store import locked_store, open_store
from tests.helpers.awb_command import run_awb

RUN: dict[str, Any] = {"predict": {}, "selection": {}, "judges": []}
PREDICTION = Prediction(
    sample_id="swe/1/1", row_hash="r", prompt_sha256="p", started_at="2026-01-01T00:00:00Z"
)
HOLDER = """
import sys
from pathlib import Path
from agentworldbench.store import locked_store
with locked_store(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def finished(folder: Path) -> Path:
    """A small finished run."""
    return evaluate("baseline/empty", limit=1, output=folder / "run").path


def test_nothing_is_made_where_no_run_is(tmp_path: Path) -> None:
    for action in (load_run, score_run, lambda path: judge_run(path, RunConfig(judge=("openai/gpt-4o",)))):
        with pytest.raises(ConfigError, match=r"no run\.json there"):
            action(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of `path` until its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_run_in_use_is_refused_with_the_process_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with holder(run) as process:
        assert process.stdin is not None
        with (
            pytest.raises(ConfigError, match=rf"run: in use by process {process.pid} on \S+; "),
            locked_store(run),
        ):
            pytest.fail("two writers")
        done = run_awb("run", "--model", "baseline/empty", "--limit", "1", "-o", run, cwd=tmp_path)
        assert done.code == 2
        assert f"in use by process {process.pid} on" in done.complaint
        process.stdin.close()
        assert process.wait(60) == 0
    with locked_store(run) as store:
        store.write_json("run.json", RUN)
    assert not (run / "run.owner").exists()


def test_the_lock_of_a_killed_process_does_not_block(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
    assert (tmp_path / "run.owner").exists()
    with locked_store(tmp_path) as store:
        store.predictions.append(PREDICTION)
        owner = (tmp_path / "run.owner").read_text()
        assert owner.startswith(f"process {os.getpid()} on ")


def test_the_lock_is_released_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked_store(tmp_path):
        raise ZeroDivisionError
    with locked_store(tmp_path):
        pass


def test_one_process_cannot_write_twice_either(tmp_path: Path) -> None:
    busy = pytest.raises(ConfigError, match=f"in use by process {os.getpid()}")
    with locked_store(tmp_path), busy, locked_store(tmp_path):
        pytest.fail("two writers")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ConfigError, match="not empty and not a run directory"), locked_store(tmp_path):
        pytest.fail("a stranger's folder")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    for missing in (tmp_path, tmp_path / "gone", tmp_path / "thesis.tex"):
        with pytest.raises(ConfigError, match=r"no run\.json there"):
            open_store(missing)
    with (
        pytest.raises(StoreError, match="cannot be used as a run directory"),
        locked_store(tmp_path / "thesis.tex"),
    ):
        pytest.fail("a file")


DAMAGED = {
    "cut": b'{"predict": {',
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "no sections": b"{}",
    "not UTF-8": b'{"predict": "\xff"}',
    "nested": b"[" * 100_000,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_run_file_is_named(tmp_path: Path, name: str) -> None:
    run = finished(tmp_path)
    (run / "run.json").write_bytes(DAMAGED[name])
    for action in (
        lambda: load_run(run),
        lambda: score_run(run),
        lambda: open_store(run).read_json("run.json"),
    ):
        with pytest.raises(StoreError, match=r"run\.json: .*move it away to start anew"):
            action()
    assert (run / "run.json").read_bytes() == DAMAGED[name]


def test_a_damaged_run_file_on_the_command_line(tmp_path: Path) -> None:
    run = finished(tmp_path)
    (run / "run.json").write_text("{}")
    done = run_awb("run", "--model", "baseline/empty", "--limit", "1", "-o", run, cwd=tmp_path)
    assert (done.code, "run.json: not a run.json of a run" in done.complaint) == (1, True)


def test_damaged_results_are_named(tmp_path: Path) -> None:
    run = finished(tmp_path)
    assert load_run(run).results is not None
    (run / "results.json").write_text('{"model": 3}')
    with pytest.raises(StoreError, match=r"results\.json: damaged"):
        load_run(run)
    (run / "results.json").unlink()
    assert load_run(run).results is None
