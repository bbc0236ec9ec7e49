"""Exports opened by the programs that they are made for, in an environment of their own (`.ci/readers`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentworldbench.run import Run
from tests.helpers.awb_command import clean_environment
from tests.helpers.export_runs import make_runs

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".demo" / "readers" / "bin" / "python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON.exists(),
        reason="readers of exports (inspect-ai, every_eval_ever, …) are not installed: bash .ci/readers",
    ),
    pytest.mark.usefixtures("quick_retries"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, quick_retries: None) -> Run:
    """Several judges, epochs and failures of each kind."""
    return make_runs(tmp_path_factory, "many")["many"]


def test_every_reader_opens_its_export(run: Run) -> None:
    done = subprocess.run(
        [PYTHON, "tools/check_exports.py", run.path],
        cwd=ROOT,
        env=clean_environment({"PYTHONPATH": str(ROOT)}),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert "every_eval_ever validate: no error, no warning" in told["eee"]
    assert told["inspect"].startswith("inspect-ai ") and "status success" in told["inspect"]
    for name in ("parquet", "parquet, polars", "parquet, DuckDB"):
        assert "not looked at" not in told[name], told
