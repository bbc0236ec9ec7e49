"""Public reports DS-…: a table written as CSV and read again, the library `datasets`, call ids that repeat.

What each case asks of an importer of trajectories is asked here of what stands in its place: rows and
stored answers are what this harness reads, and whatever pairs things by an id must survive ids that repeat.
"""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path
from typing import Any

import pandas
import pytest

from agentworldbench.errors import DataError
from agentworldbench.run import Run, evaluate
from agentworldbench.sources import OFFICIAL_REPOSITORY, resolve_source
from tests.helpers.awb_command import run_awb_in_turn
from tests.helpers.loopback_hub import LoopbackHub
from tests.helpers.official_folder import make_official_folder

ROOT = Path(__file__).resolve().parents[1]
MARKER = "**Environment Observation:**\n"
CALLS = Path(__file__).parent / "cases" / "foreign" / "repeated_calls.jsonl"


def row(row_id: int | str, observation: str, turn: int = 1, earlier: tuple[str, ...] = ()) -> dict[str, Any]:
    turns = [f"### Turn {number}\n\n**Action:**\n```\nls\n```" for number in range(1, turn + 1)]
    return {
        "task": "terminal", "id": row_id, "prompt": turns, "response": [MARKER + text for text in (*earlier, observation)],
        "current_prompt": turns[-1], "system_str": "s", "turn_idx": turn, "total_turns": turn,
    }  # fmt: skip


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows)
    (folder / "terminal_test.jsonl").write_text(text, encoding="utf-8")
    return folder


# --- DS-03: values of other kinds, through CSV ---------------------------------------------------

IDS: list[int | str] = [
    "2024-01-02T03:04:05", "2024-01-02", "007", 7, "7", "1e5", "NA", "nan", "null", "True", "1.0", "", " ", "=1+1", "+1",
    "-1", "@A1", "a,b", 'a"b', 'a""b', "a;b", "a\tb", "a\nb", "a\r\nb", "'", "目录", "\U0001f600", 2**53 + 1, 2**53,
]  # fmt: skip
ENCODINGS = {"plain": "utf-8", "with the mark that Excel looks for": "utf-8-sig"}


@pytest.fixture(scope="module")
def odd_ids(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run over rows with odd ids; a third of the answers is missing, so that reasons stand in the table too."""
    folder = tmp_path_factory.mktemp("csv")
    texts = [str(one) for one in IDS]
    texts[-1] = "x" * 200_000
    data = write_rows(folder / "data", [row(one, text) for one, text in zip(IDS, texts, strict=True)])
    whole = evaluate("baseline/reference", data=str(data), output=folder / "whole")
    answers = folder / "answers.jsonl"
    stored = [{"sample_id": one.sample_id, "observation": one.observation} for one in whole.predictions()]
    answers.write_text("".join(json.dumps(one) + "\n" for at, one in enumerate(stored) if at % 3))
    return evaluate(f"replay/{answers}", data=str(data), output=folder / "run")


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_table_comes_back_from_csv_as_it_was(name: str, odd_ids: Run, tmp_path: Path) -> None:
    frame = odd_ids.frame()
    assert len(frame) == len(IDS)
    assert frame["failure"].notna().sum() > 5
    frame.to_csv(tmp_path / "run.csv", encoding=ENCODINGS[name])
    back = pandas.read_csv(tmp_path / "run.csv", index_col=["sample_id", "epoch"], encoding=ENCODINGS[name])
    pandas.testing.assert_frame_equal(back, frame, check_dtype=False)
    assert set(back.index.get_level_values("sample_id")) == {one.sample_id for one in odd_ids.predictions()}


def test_no_cell_of_a_table_is_a_formula_or_too_long_for_a_reader(odd_ids: Run) -> None:
    """Spreadsheets compute what begins so, whatever a quote in CSV stands around it."""
    frame = odd_ids.frame().reset_index()
    cells = [cell for name in frame for cell in (name, *frame[name]) if isinstance(cell, str)]
    assert 'terminal/"=1+1"/1' in cells
    assert max(map(len, cells)) < 1000, "TX-13: no text of a sample stands in it"
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []


# --- DS-04: the library `datasets` ---------------------------------------------------------------

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "datasets":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
ANOTHER = """
import sys, types
class Strange(types.ModuleType):
    def __getattr__(self, name):
        raise AssertionError(f"datasets.{name} was looked at")
sys.modules["datasets"] = Strange("datasets")
"""
"""In place of any version of it: whatever it can or cannot do, nobody asks."""


@pytest.mark.parametrize("before", [WITHOUT, ANOTHER], ids=["not installed", "of any version"])
def test_folders_and_hubs_need_no_library_for_data_sets(before: str, tmp_path: Path) -> None:
    """And a repository with a loading script, which that library ran once: the script is not even fetched."""
    made = make_official_folder(tmp_path / "data", domains=("swe",), trajectories=1)
    (tmp_path / "data" / "AgentWorldBench.py").write_text("raise SystemExit('run')\n")
    (tmp_path / "data" / "data.py").write_text("raise SystemExit('run')\n")
    run = ("run", "--model", "baseline/copy-last", "-t", "swe", "--data")
    with LoopbackHub(tmp_path / "data") as hub:
        env = hub.environment(tmp_path / "home")
        found = run_awb_in_turn(
            (*run, tmp_path / "data", "-o", "folder"),
            (*run, f"hf:{OFFICIAL_REPOSITORY}", "-o", "hub"),
            cwd=tmp_path,
            env=env,
            before=before,
        )
        asked = {request.path.rpartition("/")[2] for request in hub.requests}
    assert [done.code for done in found] == [0, 0], found
    assert asked == {"swe_test.jsonl"}
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("folder", "hub")]
    assert metrics[0] == metrics[1]
    assert metrics[0].count(b"\n") == len(made.rows)


def test_no_module_imports_the_library_for_data_sets() -> None:
    """Also not inside a function, where a test might never come by; and no extra has to be installed for data."""
    trees = [ast.parse(path.read_bytes()) for path in (ROOT / "agentworldbench").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    tops = {name.partition(".")[0] for name in names}
    assert "huggingface_hub" in tops
    assert "datasets" not in tops
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(one for some in project["optional-dependencies"].values() for one in some),
    ]
    assert not [one for one in wanted if one.startswith("datasets")]


# --- DS-11: ids that repeat ----------------------------------------------------------------------


def test_a_chat_whose_call_ids_repeat_is_not_paired_by_guess(tmp_path: Path) -> None:
    """Two turns with one call id, results in another order, a result without a call: none of it becomes a row."""
    chat = [json.loads(line) for line in CALLS.read_text(encoding="utf-8").splitlines()]
    ids = [
        call["id"] for one in chat for message in one["messages"] for call in message.get("tool_calls", [])
    ]
    told = [
        message["tool_call_id"] for one in chat for message in one["messages"] if message["role"] == "tool"
    ]
    assert len(ids) > len(set(ids))
    assert set(told) - set(ids)
    with pytest.raises(
        DataError, match=r"it looks like a chat log with tool calls .* a row is made from each turn$"
    ):
        resolve_source(str(CALLS))
    (tmp_path / "mcp_test.jsonl").write_bytes(CALLS.read_bytes())
    with pytest.raises(
        DataError, match=r"mcp_test\.jsonl:1: field 'task': is missing; it looks like a chat log"
    ):
        evaluate("baseline/reference", data=str(tmp_path), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_rows_whose_ids_repeat_keep_their_own_answers(tmp_path: Path) -> None:
    """The pairs that there are here: an answer and its row, by place where the ids are the same."""
    first = ("one", "two")
    rows = [
        row("call_1", "one"),
        row("call_1", "two", 2, first[:1]),
        row("call_1", "three"),
        row("call_1", "one"),
    ]
    data = write_rows(tmp_path / "data", rows)
    names = ["terminal/call_1/1", "terminal/call_1/2", "terminal/call_1/1#2", "terminal/call_1/1#3"]
    answers = tmp_path / "answers.jsonl"
    stored = [{"sample_id": name, "observation": f"of {name}"} for name in reversed(names)]
    stored.append({"sample_id": "terminal/call_2/1", "observation": "of nothing"})
    answers.write_text("".join(json.dumps(one) + "\n" for one in stored))
    run = evaluate(f"replay/{answers}", data=str(data), output=tmp_path / "run")
    assert {one.sample_id: one.observation for one in run.predictions()} == {
        name: f"of {name}" for name in names
    }
    whole = evaluate("baseline/reference", data=str(data), output=tmp_path / "whole")
    assert [one.observation for one in sorted(whole.predictions(), key=lambda one: names.index(one.sample_id))] == [
        "one", "two", "three", "one",
    ]  # fmt: skip
