"""Predictions that a metric could not read: counted at every mean, told below the table, kept in the frame.

The counts below are by hand; a whole run has a metric of its own that reads JSON alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agentworldbench.records import FailureKind, SampleMetrics
from agentworldbench.render.unread import unread_notes
from agentworldbench.run import evaluate
from agentworldbench.stats.aggregate import RULE_SCORE, rule_results
from agentworldbench.stats.results import Unread
from agentworldbench.stats.unread import with_unread
from tests.helpers.awb_command import HereAwb
from tests.helpers.own_task import own_task
from tests.test_metrics import made

NO_JSON = "not JSON: it begins with no bracket"
CODE = '''
from agentworldbench.scoring.metrics.base import Unparsable

def seen(facts, prediction):
    """Right where the reference is, unread where the prediction has no digit."""
    if prediction == facts.reference:
        return 1.0
    return 0.5 if any(map(str.isdigit, prediction)) else Unparsable("no digit in it")
'''


def record(number: int, reasons: dict[str, str], failed: FailureKind | None = None) -> SampleMetrics:
    names = ("status_match", "value_f1", "rouge_l")
    values = {} if failed else {name: 0.0 if name in reasons else 0.5 for name in names}
    return SampleMetrics(
        sample_id=f"mcp/{number}/1", applicable=names, values=values, reasons=reasons, failed=failed
    )


def test_counts() -> None:
    records = [
        record(1, {}),
        record(2, {"status_match": NO_JSON, "value_f1": NO_JSON}),
        record(3, {"value_f1": "not JSON: it ends too early"}),
        record(4, {"rouge_l": "another"}),
        record(5, {}, failed=FailureKind.EMPTY),
        record(6, {"status_match": NO_JSON}),
    ]
    refs = [
        made("mcp", "x").ref.model_copy(update={"id": one.sample_id, "cluster": one.sample_id})
        for one in records
    ]
    refs.append(refs[0].model_copy(update={"id": "mcp/7/1"}))  # not asked yet: it has no record
    groups = {"mcp": refs, "swe": [made("swe", "x").ref]}
    metrics = {one.sample_id: one for one in records}
    primary = {"mcp": ("status_match", "value_f1"), "swe": ("line_f1",)}
    before = rule_results(groups, metrics, primary)
    after = with_unread(before, groups, metrics, primary)
    assert {name: mean.unparsed for name, mean in after.metrics["mcp"].items()} == {
        "status_match": 2,
        "value_f1": 2,
        "rouge_l": 1,
    }
    assert (after.score["mcp"].unparsed, after.score["swe"].unparsed) == (3, 0)
    assert (after.macro[RULE_SCORE].unparsed, after.micro["value_f1"].unparsed) == (3, 2)
    assert after.unread == {"mcp": Unread(predictions=5, unread=4, reason=NO_JSON)}
    assert after.score["mcp"].exclude == before.score["mcp"].exclude, "the means are as they were"
    assert unread_notes(after) == (
        f"Predictions that a metric could not read and counts 0: MCP 4 of 5 (20.0 % read; mostly: {NO_JSON}).",
    )
    assert unread_notes(before) == ()


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def test_a_run_tells_them(awb: HereAwb, tmp_path: Path) -> None:
    task = own_task(tmp_path / "own", CODE)
    opts = {"tasks": str(task), "output": tmp_path / "run", "allow_code": True}
    run = evaluate(model="baseline/empty", **opts)
    assert run.results is not None
    mean = run.results.rules.metrics["terminal"]["seen"]
    assert (mean.n, mean.unparsed, mean.exclude) == (40, 40, 0)
    assert run.frame()["seen.unparsed"].tolist() == ["no digit in it"] * 40
    done = awb("score", run.path, "--allow-code")
    assert done.code == 0
    assert "Terminal 40 of 40 (0.0 % read; mostly: no digit in it" in " ".join(done.out.split())
