"""Metrics of a user's own: what they may be, what is refused with which words, and that results say which code ran.

What is refused is data (`cases/own_metrics/refused.yaml`); the example of docs/tasks.md is run as it stands.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench.config import make_config
from agentworldbench.errors import AwbError, ConfigError, TaskError
from agentworldbench.merge import merge_runs
from agentworldbench.records import Sample
from agentworldbench.run import evaluate, load_run, score_run
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.own import read_own
from agentworldbench.task import load_task
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_task import own_task
from tests.helpers.whole_runs import all_text
from tests.test_metrics import made

CASES = Path(__file__).parent / "cases" / "own_metrics"
ROOT = Path(__file__).parent.parent
EQUAL = "def seen(facts, prediction):\n    return float(prediction == facts.reference)\n"


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    return make_official_folder(folder, domains=("terminal",), trajectories=3, special=False).folder


def scored(task_file: Path, sample: Sample, prediction: str) -> dict[str, float]:
    task = load_task(task_file)
    return score_observation(sample, task, prediction, own=read_own(task, True).metrics()).values


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return prediction == facts.reference", 0.0),
        ("return 1 if prediction == facts.reference else 0.25", 0.25),
        ("import numpy; return numpy.float32(1 if prediction == facts.reference else 0.5)", 0.5),
        (
            "from fractions import Fraction; return Fraction(1 if prediction == facts.reference else '1/8')",
            0.125,
        ),
        ("return None", None),
        ("return None if facts.previous is None else 1.0", None),
        ("return float(facts.previous is None and facts.action == 'go 0' or 'go 0' in facts.action)", 1.0),
        ("return float(facts.lines(prediction).total() == 1 and facts.sample.ref.turn_idx == 1)", 1.0),
    ],
)
def test_what_a_function_may_give(tmp_path: Path, body: str, expected: float | None) -> None:
    path = own_task(tmp_path / "own", f"def seen(facts, prediction):\n    {body}\n")
    assert scored(path, made("terminal", "right"), "wrong").get("seen") == expected


def test_a_prediction_that_cannot_be_read_is_0_and_says_why(tmp_path: Path) -> None:
    code = (
        "from agentworldbench.scoring.metrics.base import Unparsable\n"
        "def seen(facts, prediction):\n"
        "    return 1.0 if prediction == facts.reference else Unparsable('odd \\ud800' + 'x' * 500)\n"
    )
    task = load_task(own_task(tmp_path / "own", code))
    record = score_observation(made("terminal", "a"), task, "b", own=read_own(task, True).metrics())
    assert record.values["seen"] == 0
    assert record.reasons["seen"] == "odd \ufffd" + "x" * 195
    assert json.loads(record.model_dump_json())["reasons"] == dict(record.reasons)


@pytest.mark.parametrize(
    "case", yaml.safe_load((CASES / "refused.yaml").read_text("utf-8")), ids=lambda c: c["name"]
)
def test_refused(tmp_path: Path, case: dict[str, Any]) -> None:
    path = own_task(tmp_path / "own", case["code"])
    code = path.with_name("metrics.py")
    if case.get("missing"):
        code.unlink()
    with pytest.raises(TaskError) as caught:
        scored(path, made("terminal", "right"), "wrong")
    assert str(caught.value) == case["message"].replace("CODE", str(code))


def test_not_a_line_runs_unasked(awb: HereAwb, tmp_path: Path, data: Path) -> None:
    marker = tmp_path / "it ran"
    path = own_task(tmp_path / "own", f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n{EQUAL}")
    words = ["--model", "baseline/copy-last", "--data", data, "--tasks", path, "--output", tmp_path / "run"]
    refusal = (
        f"awb: {path}: metric 'metrics.py:seen' is Python code that stands beside this file; read it, then give "
        "--allow-code (in Python: allow_code=True) to let it run"
    )
    for command in (
        ["run", *words],
        ["run", *words, "--dry-run"],
        ["tasks", "validate", path, "--data", data],
    ):
        done = awb(*command)
        assert (done.code, done.complaint) == (2, refusal)
    assert not marker.exists()
    assert not (tmp_path / "run").exists()
    for command in (["tasks", "list", path], ["estimate", *words], ["data", "show", data, "--tasks", path]):
        assert awb(*command).code == 0
    assert not marker.exists(), "looking at a task runs nothing"
    assert awb("run", *words, "--allow-code").code == 0
    assert marker.exists()
    done = awb("score", tmp_path / "run")
    assert (done.code, done.complaint) == (2, refusal)
    with pytest.raises(ConfigError, match="--allow-code"):
        merge_runs([tmp_path / "run"], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    assert awb("runs", "merge", tmp_path / "run", "-o", tmp_path / "merged", "--allow-code").code == 0


def test_no_file_gives_the_permission(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("allow_code: true\n")
    with pytest.raises(
        ConfigError, match=r"config\.yaml: allow_code cannot be given by a file; .* --allow-code"
    ):
        make_config({"model": "baseline/empty", "allow_code": True}, path)


def test_what_is_wrong_with_a_metric_shows_before_anything_is_asked(tmp_path: Path, data: Path) -> None:
    path = own_task(tmp_path / "own", EQUAL.replace("facts.reference", "facts.refrence"))
    with pytest.raises(TaskError, match=r"metrics\.py:2: AttributeError.*refrence.*sample terminal/"):
        evaluate(
            model="baseline/copy-last",
            data=str(data),
            tasks=str(path),
            output=tmp_path / "run",
            allow_code=True,
        )
    assert not (tmp_path / "run").exists()


def test_results_name_the_code_that_ran(tmp_path: Path, data: Path) -> None:
    path = own_task(tmp_path / "own", EQUAL)
    opts: dict[str, Any] = {"data": str(data), "tasks": str(path), "allow_code": True}
    run = evaluate(model="baseline/reference", output=tmp_path / "run", **opts)
    assert run.results is not None
    digest = hashlib.sha256(EQUAL.encode()).hexdigest()
    assert run.results.own_metrics == {"terminal": {"metrics.py": digest}}
    assert run.results.rules.score["terminal"].exclude == 1
    assert {"seen", "line_f1"} <= run.results.rules.metrics["terminal"].keys()
    assert run.frame()["seen"].tolist() == [1.0] * 15
    assert "allow" not in all_text(run.path).replace("--allow", ""), (
        "a run gives nobody the permission to run code"
    )
    half = EQUAL.replace("float(", "0.5 + 0.5 * float(")
    path.with_name("metrics.py").write_text(half)
    changed = score_run(run.path, allow_code=True)
    assert changed.results is not None
    assert changed.results.own_metrics["terminal"]["metrics.py"] == hashlib.sha256(half.encode()).hexdigest()
    assert load_run(run.path).results == changed.results


def test_what_code_prints_is_kept_away_from_standard_output(awb: HereAwb, tmp_path: Path, data: Path) -> None:
    path = own_task(
        tmp_path / "own", "print('loaded')\n" + EQUAL.replace("return", "print('called'); return")
    )
    words = [
        "--model",
        "baseline/reference",
        "--data",
        data,
        "--tasks",
        path,
        "-o",
        tmp_path / "run",
        "--json",
    ]
    done = awb("run", *words, "--allow-code")
    assert done.code == 0
    assert [json.loads(line)["event"] for line in done.out.splitlines()][-1] == "end"
    assert "loaded\n" in done.err and "called\n" in done.err


def test_the_example_of_the_docs(awb: HereAwb, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = re.findall(r"^def (\w+)\(facts, prediction", code, re.MULTILINE)
    path = own_task(tmp_path / "own", code, names, domain="terminal")
    done = awb("tasks", "validate", path, "--allow-code")
    assert (done.code, done.err) == (0, "")
    assert "40 references score 1" in done.out
    for name in names:
        assert f"metrics.py:{name}" in text, "the example says how the YAML names it"


def test_the_errors_are_of_one_tree() -> None:
    assert issubclass(TaskError, AwbError) and TaskError.exit_code == 2
