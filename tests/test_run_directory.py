"""Tests of a run directory as a whole: one writer at a time, what is refused as damaged or foreign.

Locks are held by real processes, which say when they hold one and keep it until their input ends.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.records import Prediction
from agentworldbench.run import evaluate, judge_run, load_run, score_run
from agentworldbench.store import Store, locked_store, open_store
from tests.helpers.awb_command import HereAwb

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


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


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


def test_a_run_in_use_is_refused_with_the_process_named(tmp_path: Path, awb: HereAwb) -> None:
    run = tmp_path / "run"
    with holder(run) as process:
        assert process.stdin is not None
        with (
            pytest.raises(ConfigError, match=rf"run: in use by process {process.pid} on \S+; "),
            locked_store(run),
        ):
            pytest.fail("two writers")
        done = awb("run", "--model", "baseline/empty", "--limit", "1", "-o", run)
        assert done.code == 2
        assert f"in use by process {process.pid} on" in done.complaint
        process.stdin.close()
        assert process.wait(60) == 0
    with locked_store(run) as store:
        store.predictions.append(PREDICTION)
    assert not (run / "run.owner").exists()
    assert list(Store(run).predictions) == [PREDICTION]


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
        pytest.raises(ConfigError, match=r"cannot be a run directory \(it is a file\)"),
        locked_store(tmp_path / "thesis.tex"),
    ):
        pytest.fail("a file")


def test_a_directory_in_which_nothing_was_begun_is_removed_if_it_was_made_here(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    for name in ("given", "made"):
        with pytest.raises(KeyError), locked_store(tmp_path / name):
            raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


NO_RECORD = r"run\.json: not the record of a run"
DAMAGED = {
    # name: (the file, what is said of it)
    "cut": (b'{"predict": {', r"run\.json: cannot be read"),
    "empty": (b"", r"run\.json: cannot be read"),
    "not UTF-8": (b'{"predict": "\xff"}', r"run\.json: cannot be read"),
    "nested": (b"[" * 100_000, r"run\.json: cannot be read"),
    "null": (b"null", NO_RECORD + ";"),
    "a list": (b"[]", NO_RECORD + ";"),
    "no sections": (b"{}", NO_RECORD + r" \(field 'created_at'\)"),
}
CHANGED: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    # name: (place in run.json, value there, field named)
    "a section is null": (("predict",), None, "predict"),
    "a field more": (("more",), 1, "more"),
    "a field more inside": (("sessions", 0, "more"), 1, "sessions.0.more"),
    "words for a number": (("selection", "samples", "swe"), "many", "selection.samples.swe"),
    "a selection that no flag can say": (("selection", "limit"), "half", "selection.limit"),
    "a model without a name": (("predict", "model"), {"backend": "baseline"}, "predict.model.model"),
    "a selection of nothing": (("selection", "samples"), {}, "selection.samples"),
    "fewer samples than none": (("selection", "samples", "swe"), -1, "selection.samples.swe"),
    "no epoch": (("epochs",), 0, "epochs"),
    "a panel of nobody": (("panel",), {"combine": "median", "least": 0}, "panel.least"),
    "a judge without a record": (("judges",), ["0123456789abcdef"], "judges.0"),
}


def assert_refused(run: Path, message: str) -> None:
    """Nobody reads the file as a run, and nobody replaces it."""
    content = (run / "run.json").read_bytes()
    again: list[Callable[[], object]] = [
        lambda: load_run(run),
        lambda: score_run(run),
        lambda: open_store(run).read_run(),
        lambda: finished(run.parent),
    ]
    for action in again:
        with pytest.raises(StoreError, match=message):
            action()
    assert (run / "run.json").read_bytes() == content


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_run_file_is_named(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED[name]
    run = finished(tmp_path)
    (run / "run.json").write_bytes(content)
    assert_refused(run, message + ".*move it away to start anew")


@pytest.mark.parametrize("name", CHANGED)
def test_a_run_file_of_another_shape_is_named_with_its_field(tmp_path: Path, name: str) -> None:
    place, value, field = CHANGED[name]
    run = finished(tmp_path)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    inner = record
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert_refused(run, rf"{NO_RECORD} \(field '{field}'\); move it away to start anew")


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_a_run_file_of_another_version_is_not_called_damaged(tmp_path: Path, version: Any) -> None:
    run = finished(tmp_path)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert record["schema_version"] == 1
    (run / "run.json").write_text(json.dumps({"schema_version": version, "later": "more"}), encoding="utf-8")
    assert_refused(run, r"run\.json: written by another version of awb; use that one$")


def test_a_damaged_run_file_on_the_command_line(tmp_path: Path, awb: HereAwb) -> None:
    run = finished(tmp_path)
    (run / "run.json").write_text("{}")
    done = awb("run", "--model", "baseline/empty", "--limit", "1", "-o", run)
    assert (done.code, "run.json: not the record of a run (field 'created_at')" in done.complaint) == (
        1,
        True,
    )


def test_an_answer_of_another_version_is_never_asked_for_again(tmp_path: Path) -> None:
    run = finished(tmp_path)
    journal = run / "predictions.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"schema_version":1', b'"schema_version":2')
    journal.write_bytes(b"".join(lines))
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    actions: list[Callable[[], object]] = [
        lambda: score_run(run),
        lambda: load_run(run),
        lambda: finished(tmp_path),
    ]
    for action in actions:
        with pytest.raises(StoreError, match=r"predictions\.jsonl:2: written by another version of awb"):
            action()
    assert {path.name: path.read_bytes() for path in run.iterdir()} == files


def test_damaged_results_are_named_and_made_again(tmp_path: Path) -> None:
    run = finished(tmp_path)
    before = load_run(run).results
    assert before is not None
    for content in ('{"model": 3}', "{"):
        (run / "results.json").write_text(content)
        with pytest.raises(StoreError, match=r"results\.json: (damaged; `awb score` makes|cannot be read)"):
            load_run(run)
    (run / "results.json").unlink()
    assert load_run(run).results is None
    (run / "results.json").write_text('{"model": 3}')
    again = score_run(run).results
    assert again is not None
    assert again.model_copy(update={"made_at": before.made_at}) == before


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_results_of_another_version_say_so_and_are_made_again(
    tmp_path: Path, awb: HereAwb, version: Any
) -> None:
    run = finished(tmp_path)
    text = (run / "results.json").read_text(encoding="utf-8")
    (run / "results.json").write_text(json.dumps(json.loads(text) | {"schema_version": version, "later": 1}))
    said = f"results.json: written by another version of awb (schema {version!r}, this one reads 1)"
    with pytest.raises(StoreError, match=re.escape(f"{said}; `awb score` makes it again")):
        load_run(run)
    assert said in " ".join(awb("runs", "list", run).out.split())
    assert awb("score", run).code == 0
    assert load_run(run).results is not None
