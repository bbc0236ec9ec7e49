"""How far the computing of metrics is, on a terminal and in a log; `awb score` asks nothing and says nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentworldbench.cli import display
from agentworldbench.engine import progress as progress_module
from agentworldbench.engine.progress import Progress
from agentworldbench.render.progress import live_lines, status
from agentworldbench.run import evaluate
from tests.helpers.awb_command import HereAwb


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time on the monotonic clock, to be moved by the test."""
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    return now


def test_what_is_shown_while_metrics_are_computed(at: list[float]) -> None:
    progress = Progress()
    progress.scoring(0, 400)
    at[0] += 5
    assert status(progress) == "metrics 0/400 · 5 s"
    progress.scoring(100, 400)
    assert status(progress) == "metrics 100/400 · 5 s · about 15 s left"
    assert live_lines(progress) == [
        "  metrics      " + "█" * 6 + "░" * 18 + "  100/400   25 %",
        "  time         5 s, about 15 s left",
    ]
    progress.scoring(400, 400)
    assert not progress.is_scoring


def test_after_a_session_of_asking_they_are_one_more_line(at: list[float]) -> None:
    progress = Progress()
    progress.begin(3, 0)
    progress.predictions.totals["swe"] = progress.predictions.done = 3
    at[0] += 60
    progress.scoring(0, 3)
    at[0] += 2
    progress.scoring(1, 3)
    assert status(progress) == "predictions 3/3 · metrics 1/3 · 62 s · about 4 s left"
    assert [line.split()[0] for line in live_lines(progress)] == ["predictions", "metrics", "time"]
    progress.scoring(3, 3)
    assert status(progress) == "predictions 3/3 · 62 s"


def test_a_log_of_scoring_tells_of_metrics_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = evaluate(model="baseline/empty", tasks="swe", limit=3, output=tmp_path / "run").path
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    monkeypatch.setattr(display, "FIRST_SECONDS", 0)
    monkeypatch.setattr(display, "GROWTH", 0)
    lines = awb("score", run).err.splitlines()
    assert [line.split(" ·")[0] for line in lines[:-1]] == [f"metrics {done}/3" for done in range(3)]
    monkeypatch.setattr(display, "FIRST_SECONDS", 60)
    assert awb("score", run).err == f"Results: {run / 'results.json'}\n"
