"""A terminal and the page of `awb view` name the same pace and the same time left of a run under way.

The terminal counts as records are made, the page from when the journals say that they were. Here one session is told
to both, on one clock.
"""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentworldbench.engine import progress as progress_module
from agentworldbench.engine.pace import LEAST, Speed
from agentworldbench.engine.progress import Progress
from agentworldbench.records import Failure, FailureKind, Prediction, Verdict
from agentworldbench.report import activity as activity_module
from agentworldbench.report.activity import Activity, Counts
from agentworldbench.run import Run
from agentworldbench.run_record import RunRecord
from agentworldbench.texts import time_text
from tests.helpers.viewing import small_run

BEGAN = 1_790_000_000.0
TOTAL = 400


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("played"))


class Both:
    """A session of two judges, told to a terminal's `Progress` and written as a page's `Counts` read it."""

    def __init__(self, run: Run, path: Path, clock: list[float]) -> None:
        self._path, self._clock = path, clock
        (path / "run.owner").write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        verdict = next(one for one in run.verdicts() if one.failure is None)
        self._verdict: Verdict = verdict
        self._prediction: Prediction = next(
            one for one in run.predictions() if one.key == (verdict.sample_id, verdict.epoch)
        )
        self.counts = Counts(self._record(run))
        self.progress = Progress()
        self.progress.predictions.totals.update(terminal=TOTAL)
        self.progress.verdicts.totals.update(terminal=2 * TOTAL)

    def _record(self, run: Run) -> RunRecord:
        first = run.record.judges[0]
        prompts = dict.fromkeys(["terminal"], self._verdict.system_sha256)
        judges = tuple(
            first.model_copy(update={"digest": name, "system_prompts": prompts}) for name in ("one", "two")
        )
        session = run.record.sessions[-1].model_copy(update={"started_at": moment(BEGAN)})
        selection = run.record.selection.model_copy(update={"samples": {"terminal": TOTAL}})
        changed: dict[str, Any] = {"judges": judges, "sessions": (session,), "selection": selection}
        return run.record.model_copy(update=changed | {"repeats": {}, "epochs": 1})

    def predict(self, number: int, took: float = 0.5, kind: FailureKind | None = None) -> None:
        """A prediction of this moment."""
        failure = None if kind is None else Failure(kind=kind, message="no")
        self.progress.predictions.add("terminal", self._prediction.usage, 0.0, failure)
        unfit = {} if kind is None else {"observation": None, "official_sha256": None}
        self.counts.add(self._made(self._prediction, number, took, failure=failure, **unfit))

    def judge(self, number: int, judge: str) -> None:
        """A verdict of this moment."""
        self.progress.verdicts.add("terminal", self._verdict.usage, 0.0, None)
        self.counts.add(self._made(self._verdict, number, 0.25, judge=judge))

    def left_before(self, number: int, kind: FailureKind) -> None:
        """A failure of an earlier session; the terminal does not count those that are asked again."""
        failure = Failure(kind=kind, message="no")
        self.counts.add(self._made(self._prediction, number, -BEGAN / 2, failure=failure))

    def _made(self, record: Any, number: int, took: float, **more: Any) -> Any:
        times = {"started_at": moment(self._clock[0] - abs(took)), "seconds": max(took, 0.0)}
        return record.model_copy(update={"sample_id": f"terminal/x/{number}"} | times | more)

    @property
    def page(self) -> Activity:
        return self.counts.activity(self._path)


def moment(seconds: float) -> str:
    return time_text(datetime.fromtimestamp(seconds, UTC), "milliseconds")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [BEGAN]
    fake = SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0])
    monkeypatch.setattr(progress_module, "time", fake)
    monkeypatch.setattr(activity_module, "time", fake)
    return now


@pytest.mark.parametrize("again", [0, 7])
def test_terminal_and_page_agree(again: int, run: Run, tmp_path: Path, clock: list[float]) -> None:
    both = Both(run, tmp_path, clock)
    for number in range(again):
        both.left_before(number, FailureKind.RATE_LIMIT)
    both.progress.begin(TOTAL, 2 * TOTAL)
    assert both.page.seconds_left is None
    for number in range(300):
        clock[0] += 0.25 if number < 100 else 1.5
        both.predict(number, kind=FailureKind.EMPTY if number % 9 == 8 else None)
        if number % 9 != 8:
            both.judge(number, "one")
            if number % 2:
                both.judge(number, "two")
    for pause in (0.0, 40.0):
        clock[0] += pause
        page, stages = both.page, (both.progress.predictions, both.progress.verdicts)
        speeds = [stage.speed.rate(clock[0]) for stage in stages]
        assert None not in speeds
        rates = [stage.per_minute or 0.0 for stage in page.stages]
        assert (rates[0], rates[1] + rates[2]) == pytest.approx(
            tuple(60 * (one or 0) for one in speeds), rel=0.03
        )
        # No verdict is due on a prediction that failed, which the pipeline tells the terminal.
        both.progress.verdicts.totals["terminal"] = 2 * (TOTAL - page.stages[0].failed)
        assert page.seconds_left == pytest.approx(both.progress.seconds_left, rel=0.01)


def test_failures_that_are_asked_again_are_left(run: Run, tmp_path: Path, clock: list[float]) -> None:
    both = Both(run, tmp_path, clock)
    for number in range(TOTAL):
        both.left_before(number, FailureKind.TIMEOUT if number < 20 else FailureKind.REFUSED)
    both.progress.begin(20, 0)
    both.progress.verdicts.totals.clear()
    for number in range(10):
        clock[0] += 2.0
        both.predict(number)
    page = both.page
    assert page.stages[0].done == TOTAL
    assert page.stages[0].per_minute == pytest.approx(30.0)
    assert both.progress.predictions.seconds_left == pytest.approx(20.0)


def test_a_moment_before_the_last_one_is_the_last_one() -> None:
    """A record that waited between attempts says when its last one began too early: what stands before it was earlier."""
    speed, straight = Speed(), Speed()
    for one in (speed, straight):
        one.begin(0.0)
    for now in (5.0, 9.0, 2.0, 10.0):
        speed.note(now)
    for now in (5.0, 9.0, 9.0, 10.0):
        straight.note(now)
    assert LEAST <= 4
    assert speed.rate(12.0) == straight.rate(12.0) == pytest.approx(4 / 12)


def test_times_that_are_none_and_clocks_that_run_ahead_stop_nothing(
    run: Run, tmp_path: Path, clock: list[float]
) -> None:
    both = Both(run, tmp_path, clock)
    prediction = next(iter(run.predictions()))
    for number, text in enumerate(("never", moment(BEGAN + 9e6), moment(BEGAN + 1), moment(BEGAN + 2))):
        clock[0] += 1.0
        times = {"sample_id": f"terminal/x/{number}", "started_at": text, "seconds": 0.5}
        both.counts.add(prediction.model_copy(update=times))
    assert both.page.stages[0].per_minute == pytest.approx(60 * 3 / 4)
