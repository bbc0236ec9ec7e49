"""Runs whose files somebody has edited: every command does its work, or says in one line which field it cannot take."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from agentworldbench import evaluate, load_run
from agentworldbench.errors import StoreError
from agentworldbench.report.activity import Counts
from agentworldbench.run_record import JudgeRecord
from tests.helpers.awb_command import HereAwb

CASES: Final = yaml.safe_load((Path(__file__).parent / "cases/edited_runs.yaml").read_text(encoding="utf-8"))
COMMANDS: Final = {
    "score": "score run",
    "report": "report run -o pages",
    "verify": "verify run",
    "list": "runs list .",
    "compare": "compare run other",
    "conflicts": "runs conflicts run",
    "estimate": "estimate --pilot run",
    "merge": "runs merge run other -o merged",
    "submit": "submit run -o bundle",
    "enter": "leaderboard add run --entries entries --subset",
    **{name: f"export {name} run -o {name}" for name in ("official", "lm-eval", "inspect", "eee", "parquet")},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`run` and `other`, a baseline on two samples each."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("run", "other"):
        evaluate("baseline/copy-last", tasks=["terminal", "swe"], limit=1, output=folder / name)
    return folder


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def edit(path: Path, place: list[str | int], value: Any) -> None:
    """Set one field: of the only JSON in a file, or of the first line."""
    first, *rest = (
        path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    )
    record = inner = json.loads(first)
    for part in place[:-1]:
        inner = inner[part]
    assert inner[place[-1]] != value
    inner[place[-1]] = value
    path.write_text("\n".join([json.dumps(record), *rest]) + "\n", encoding="utf-8")


def commands(name: str, kind: str, parquet: bool) -> list[str]:
    """Of a case those of one kind, without those that want pyarrow or these alone: it is an extra."""
    return [one for one in CASES[name].get(kind, ()) if (one == "parquet") == parquet]


def heed(name: str, made: Path, folder: Path, awb: HereAwb, parquet: bool) -> None:
    case = CASES[name]
    shutil.copytree(made, folder, dirs_exist_ok=True)
    edit(folder / "run" / case.get("file", "run.json"), case["place"], case["value"])
    for command in commands(name, "refused", parquet):
        done = awb(*COMMANDS[command].split())
        assert case["told"] in done.complaint, command
    for command in commands(name, "fine", parquet):
        done = awb(*COMMANDS[command].split())
        assert (done.code, "Traceback" in done.err) == (0, False), (command, done.err)


def concerned(parquet: bool) -> list[str]:
    return [name for name in CASES if any(commands(name, kind, parquet) for kind in ("refused", "fine"))]


@pytest.mark.parametrize("name", concerned(parquet=False))
def test_an_edited_run(made: Path, tmp_path: Path, awb: HereAwb, name: str) -> None:
    heed(name, made, tmp_path, awb, parquet=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", concerned(parquet=True))
def test_an_edited_run_as_parquet(made: Path, tmp_path: Path, awb: HereAwb, name: str) -> None:
    heed(name, made, tmp_path, awb, parquet=True)


def test_a_run_without_sessions_is_watched_from_when_it_was_made(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "run", tmp_path, dirs_exist_ok=True)
    edit(tmp_path / "run.json", ["sessions"], [])
    run = load_run(tmp_path)
    counts = Counts(run.record)
    for prediction in run.predictions():
        counts.add(prediction)
    found = counts.activity(tmp_path)
    assert (found.state, found.started_at) == ("finished", run.record.created_at)


def test_a_judge_stands_in_a_run_once(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "run", tmp_path, dirs_exist_ok=True)
    judge = JudgeRecord(
        digest="ab", model="openai-api/judge", identity={}, protocol="builtin", protocol_version=1, sampling={},
        schema_sha256=None, prompts={}, system_prompts={}, parse="strict", attempts=1, min_output=1, max_context=None,
    )  # fmt: skip
    edit(tmp_path / "run.json", ["judges"], [judge.model_dump(mode="json")] * 2)
    with pytest.raises(StoreError, match=r"not the record of a run \(field 'judges'\)"):
        load_run(tmp_path)
