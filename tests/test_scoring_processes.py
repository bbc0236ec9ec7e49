"""Metrics of stored predictions in one process or several: the same bytes, and what can go wrong between them.

Workers are real child processes. What they shall suffer, a metric of the test's own does to them: it kills its
process, leaves it, raises, or waits at a named pipe until the test has seen that it has begun.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.errors import AwbError, DataError, Interrupted, ScoringError, TaskError
from agentworldbench.outcome import own_code
from agentworldbench.plan import open_samples
from agentworldbench.records import SampleMetrics, SampleRef
from agentworldbench.run import evaluate, score_run
from agentworldbench.scoring import parallel, worker
from agentworldbench.scoring.parallel import score_all
from agentworldbench.scoring.worker import Bug, Item, Job
from agentworldbench.store import open_store
from tests.helpers.awb_command import clean_environment
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_task import own_task

DERIVED = ("metrics.jsonl", "results.json")
SUFFERING = """
import os

def seen(facts, prediction):
    at, what = os.environ["AWB_TEST_AT"].split(" ", 1)
    if facts.sample.id == at:
        exec(what)
    return float(prediction == facts.reference)
"""


RAISED = r"^CODE:7: ZeroDivisionError: division by zero \(metric 'seen', sample ID\)$"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven domains, five rows each."""
    folder = tmp_path_factory.mktemp("data")
    return make_official_folder(folder, trajectories=1, observation_chars=300, special=False).folder


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run"
    return evaluate(model="baseline/nearest", data=str(data), output=path).path


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over one domain, two chunks, whose metric does what the environment says."""
    folder = tmp_path_factory.mktemp("own")
    task = own_task(folder, SUFFERING)
    rows = make_official_folder(folder / "data", domains=("terminal",), trajectories=3, special=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWB_TEST_AT", "nowhere pass")
        opts = {"data": str(rows.folder), "tasks": str(task), "output": folder / "run", "allow_code": True}
        made = evaluate(model="baseline/nearest", **opts)
    return made.path


def derived(path: Path) -> dict[str, Any]:
    """What scoring writes, without the time it was made at."""
    found: dict[str, Any] = {"metrics.jsonl": (path / "metrics.jsonl").read_bytes()}
    found["results.json"] = json.loads((path / "results.json").read_bytes()) | {"made_at": ""}
    return found


def ids(path: Path) -> list[str]:
    return [record.sample_id for record in open_store(path).read_metrics()]


# --- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_bytes_do_not_depend_on_the_number(
    run: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    score_run(run, processes=1)
    before = derived(run)
    counts: list[tuple[int, int]] = []
    monkeypatch.setenv("PYTHONHASHSEED", str(processes))  # of the workers: no order may hang on it
    score_run(run, processes=processes, watch=lambda progress: counts.append(progress.scored))
    assert derived(run) == before
    total = len(ids(run))
    assert counts == [(done, total) for done in range(total + 1)]
    assert total > 3 * parallel.CHUNK


def test_a_small_run_starts_no_process(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel.subprocess, "Popen", None)
    monkeypatch.setattr(parallel, "cores", lambda: 64)
    assert score_run(run).results is not None


def items_of(rows: int, size: int) -> list[Item]:
    ref = SampleRef(
        id="web/1/1", domain="web", row_id=1, turn_idx=1, total_turns=1, cluster="c", task_key="k",
        row_hash="0", line=1, offset=0, length=size, context_chars=1,
    )  # fmt: skip
    return [Item(ref, (0, 1))] * rows


@pytest.mark.parametrize(
    ("asked", "rows", "size", "cores", "expected"),
    [
        (None, 2170, 185_000, 2, 2),
        (None, 2170, 185_000, 64, 33),  # 402 MB: a process for each 12 MB
        (None, 230, 25_000, 64, 0),
        (None, 0, 1, 64, 0),
        (7, 2170, 10, 2, 7),
        (7, 17, 10, 2, 3),  # no more than there are chunks
        (1, 2170, 185_000, 64, 1),
    ],
)
def test_how_many_processes(
    asked: int | None, rows: int, size: int, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: cores)
    assert parallel._number(asked, items_of(rows, size)) == expected
    monkeypatch.setattr(sys, "executable", "")
    assert parallel._number(asked, items_of(rows, size)) == 1


@pytest.mark.parametrize(
    ("text", "expected"), [("max 100000", 6), ("250000 100000", 3), ("50000 100000", 1), ("", 6), (None, 6)]
)
def test_a_container_may_have_fewer_cores(
    text: str | None, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = tmp_path / "cpu.max"
    if text is not None:
        quota.write_text(text + "\n")
    monkeypatch.setattr(parallel, "QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    assert parallel.cores() == expected


@pytest.mark.parametrize("program", ["/nonexistent/python", "/bin/false"])
def test_where_no_worker_can_be_started_this_process_scores(
    run: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    score_run(run, processes=1)
    before = derived(run)
    monkeypatch.setattr(sys, "executable", program)
    score_run(run, processes=2)
    assert derived(run) == before


NO_GUARD = """
import sys
print("once")
from agentworldbench import evaluate
run = evaluate(model="baseline/nearest", data=sys.argv[1], output=sys.argv[2], processes=2)
print(sum(1 for record in run.metrics()))
"""


@pytest.mark.parametrize("how", ["script", pytest.param("stdin", marks=pytest.mark.slow)])
def test_a_script_without_a_guard_runs_once(run: Path, data: Path, tmp_path: Path, how: str) -> None:
    """`multiprocessing` would run it again in each worker; a notebook's main module has no file at all."""
    script = tmp_path / "script.py"
    script.write_text(NO_GUARD)
    # A neighbour called like a module of the standard library must not come before it.
    (tmp_path / "pickle.py").write_text("raise RuntimeError('imported')\n")
    done = subprocess.run(
        [sys.executable, "-P", str(script) if how == "script" else "-", str(data), str(tmp_path / "out")],
        input=NO_GUARD if how == "stdin" else "",
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (f"once\n{len(ids(run))}\n", "")
    assert (tmp_path / "out" / "metrics.jsonl").read_bytes() == (run / "metrics.jsonl").read_bytes()


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "processes", "error", "message"),
    [
        ("os.kill(os.getpid(), 9)", 2, ScoringError, r"^ID: .* ended \(signal 9, Killed; .*--processes 1"),
        pytest.param(
            "os._exit(3)", 2, ScoringError, r"^ID: .* ended \(exit code 3\)", marks=pytest.mark.slow
        ),
        pytest.param("1 / 0", 2, TaskError, RAISED, marks=pytest.mark.slow),
        ("1 / 0", 1, TaskError, RAISED),
    ],
)
def test_a_worker_that_dies_and_a_metric_that_raises_name_the_sample(
    own: Path, what: str, processes: int, error: type[AwbError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = ids(own)[parallel.CHUNK + 2]
    monkeypatch.setenv("AWB_TEST_AT", f"{sample} {what}")
    before = {name: (own / name).read_bytes() for name in DERIVED}
    expected = message.replace("ID", sample).replace("CODE", str(own.parent / "metrics.py"))
    with pytest.raises(error, match=expected):
        score_run(own, allow_code=True, processes=processes)
    assert {name: (own / name).read_bytes() for name in DERIVED} == before
    assert not list(own.glob(".*"))


def job_of(run: Path, data: Path) -> tuple[Job, list[Item]]:
    store = open_store(run)
    samples = open_samples(make_config({"data": str(data)}))
    places = [(ref, store.predictions.place((ref.id, 1))) for ref in samples.refs]
    job = Job(samples.tasks, samples.dataset.files, store.predictions.path, own_code(samples, True))
    return job, [Item(ref, place) for ref, place in places if place is not None]


@pytest.mark.parametrize("processes", [1, 2])
def test_the_first_error_in_order_is_raised_and_what_stands_before_it_comes(
    run: Path, data: Path, processes: int
) -> None:
    """The second chunk fails at once; the first fails at its end, and is what is told."""
    job, items = job_of(run, data)
    # rows of a file that was left alone since are not hashed again
    job = replace(job, files={domain: replace(file, stamp=None) for domain, file in job.files.items()})
    for at in (parallel.CHUNK - 1, parallel.CHUNK):
        items[at] = replace(items[at], ref=items[at].ref.model_copy(update={"row_hash": str(at)}))
    came: list[str] = []
    with pytest.raises(DataError, match=rf":{items[parallel.CHUNK - 1].ref.line}: the file changed"):
        came.extend(one.sample_id for one in score_all(job, items, processes, lambda done, total: None))
    assert came == [item.ref.id for item in items[: parallel.CHUNK - 1]]


def test_an_exception_that_nobody_expected_comes_with_its_traceback() -> None:
    class Broken:
        def score(self, item: Item) -> SampleMetrics:
            raise ZeroDivisionError("in a metric")

    item = items_of(1, 1)[0]
    answer = worker._answer(Broken(), item)  # type: ignore[arg-type]
    assert isinstance(answer, Bug)
    with pytest.raises(RuntimeError, match=r"(?s)while web/1/1 was scored:\nTraceback .*in a metric"):
        parallel._checked(item, answer)


def test_an_interrupted_write_leaves_nothing_behind(run: Path) -> None:
    before = derived(run)

    def interrupted() -> Iterator[SampleMetrics]:
        yield from open_store(run).read_metrics()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(run).write_metrics(interrupted())
    assert derived(run) == before
    assert not list(run.glob(".*"))


# --- stopped by the user -------------------------------------------------------------------------

WAITING = """
import os

with open(os.environ["AWB_TEST_BEGUN"], "w") as begun:
    print(os.getpid(), file=begun)
open(os.environ["AWB_TEST_GO"]).read()
os.environ["AWB_TEST_AT"] = "nowhere pass"
"""
"""Tells the test which process is at work, and waits until the test lets it go on."""


def start_waiting(own: Path, tmp_path: Path, processes: int) -> tuple[subprocess.Popen[str], int]:
    """`awb score` and the process that is at the second sample, once it is there."""
    begun, go = tmp_path / "begun", tmp_path / "go"
    os.mkfifo(begun)
    os.mkfifo(go)
    once = f"{ids(own)[1]} exec({WAITING!r})"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agentworldbench",
            "score",
            own,
            "--allow-code",
            "--processes",
            str(processes),
        ],
        env=clean_environment({"AWB_TEST_AT": once, "AWB_TEST_BEGUN": str(begun), "AWB_TEST_GO": str(go)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    return process, int(begun.read_text())


@pytest.mark.parametrize(
    ("processes", "number"),
    [
        (2, signal.SIGINT),
        pytest.param(1, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(1, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(2, signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_stops_at_once_and_leaves_the_results(
    own: Path, tmp_path: Path, processes: int, number: signal.Signals
) -> None:
    before = {name: (own / name).read_bytes() for name in DERIVED}
    process, at_work = start_waiting(own, tmp_path, processes)
    assert (at_work == process.pid) == (processes == 1)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (Interrupted.exit_code, "")
    assert err == (
        "awb: interrupted while metrics were computed; nothing was changed, `awb score` computes them anew\n"
    )
    with pytest.raises(ProcessLookupError):
        os.kill(at_work, 0)
    assert {name: (own / name).read_bytes() for name in DERIVED} == before
    assert not list(own.glob(".*"))


@pytest.mark.slow
def test_workers_do_not_outlive_who_asked_them(own: Path, tmp_path: Path) -> None:
    process, _ = start_waiting(own, tmp_path, 2)
    process.kill()
    process.wait()
    (tmp_path / "go").write_text("")  # its sample is done; nobody takes the answer
    # Ends when the workers, too, have let go of these pipes; they fail the test by holding on to them.
    assert process.communicate(timeout=20) == ("", "")
