"""The mcp recorder: worlds, paths, system texts and the rows' envelopes; slow: recording again.

In: `tests/cases/record_mcp/*.yaml`, `tools/record/servers` and the bundled mcp rows. The servers are not
needed in the normal run. The slow test asks them again; it is skipped where they are not installed.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.record import mcp
from tools.record.common import HERE, MINI, load_scripts
from tools.record.servers.world import World, graph_nodes

CASES = Path(__file__).parent / "cases" / "record_mcp"
MARKER = "**Environment Observation:**\n"
GRAPH = {
    "entities": {
        "Mühle": {"type": "place", "observations": ["on the brook"]},
        "Ada": {"type": "person", "observations": []},
    },
    "relations": [["Ada", "works at", "Mühle"]],
}
COMMITS = [
    {"date": "2026-01-05T10:00:00 +0000", "message": "First page", "files": {"a.md": "one\n"}},
    {
        "date": "2026-01-06T10:00:00 +0000",
        "message": "More\n\nDetails.",
        "files": {"a.md": "two\n", "b.md": "b\n"},
    },
]


def cases(name: str) -> list[Any]:
    loaded: list[dict[str, Any]] = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["name"]) for case in loaded]


def rows() -> list[dict[str, Any]]:
    text = (MINI / "mcp_test.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text[:-1].split("\n")]


def world(tmp_path: Path, **script: Any) -> World:
    return World({"root": "/data/shop", **script}, tmp_path)


@pytest.mark.parametrize("case", cases("sentences"))
def test_first_sentence(case: dict[str, Any]) -> None:
    assert mcp.first_sentence(case["text"]) == case["first"]


@pytest.mark.parametrize("case", cases("schemas"))
def test_lean_schema(case: dict[str, Any]) -> None:
    assert mcp.lean_schema(case["schema"]) == case["lean"]


@pytest.mark.parametrize("case", cases("arguments"))
def test_paths_go_in_and_come_out(case: dict[str, Any], tmp_path: Path) -> None:
    shop = world(tmp_path)
    expected = json.loads(json.dumps(case["private"]).replace("BASE", str(shop.base)))
    assert shop.private(case["arguments"]) == expected
    assert shop.public(json.dumps(expected)) == json.dumps(case["arguments"])


def test_tool_list_shows_the_chosen_tools_in_the_order_of_the_server() -> None:
    listed = [{"name": name, "description": f"Do {name}. Well.", "inputSchema": {}} for name in "abc"]
    lines = mcp.tool_list(listed, ["c", "a"]).split("\n")
    assert [json.loads(line) for line in lines] == [
        {"name": name, "description": f"Do {name}", "inputSchema": {}} for name in "ac"
    ]


def test_a_tool_that_no_server_has_ends_the_recording() -> None:
    with pytest.raises(SystemExit, match="shop: no server has the tools brew, sing"):
        mcp.system_text({"name": "shop", "root": "/data/shop", "tools": ["sing", "brew"]}, "", {"git": []})


def test_what_is_not_installed_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mcp, "PROGRAMS", tmp_path / "bin")
    with pytest.raises(
        SystemExit, match=r"^The MCP servers are not installed, .* Run \S*setup/mcp\.sh first\.$"
    ):
        mcp.record({})


def test_graph_is_laid_out_and_described(tmp_path: Path) -> None:
    shop = world(tmp_path, graph=GRAPH)
    lines = (shop.state / "memory.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines] == graph_nodes(GRAPH)
    assert graph_nodes(GRAPH)[-1] == {
        "type": "relation",
        "from": "Ada",
        "to": "Mühle",
        "relationType": "works at",
    }
    assert shop.description().split("\n")[1:] == lines


def test_tables_are_laid_out_and_described(tmp_path: Path) -> None:
    statements = "CREATE TABLE jars (id INTEGER);\nINSERT INTO jars VALUES (4), (9);\n"
    shop = world(tmp_path, tables=statements)
    with closing(sqlite3.connect(shop.state / "tables.db")) as database:
        assert database.execute("SELECT id FROM jars").fetchall() == [(4,), (9,)]
    assert shop.description().endswith(statements.strip())


def test_files_are_laid_out_and_described(tmp_path: Path) -> None:
    shop = world(tmp_path, files={"b/notes.txt": "größer\nkleiner\n", "a.txt": ""})
    assert (tmp_path / "data/shop/b/notes.txt").read_text(encoding="utf-8") == "größer\nkleiner\n"
    text = shop.description()
    assert "- a.txt (0 lines, 0 bytes)\n- b/notes.txt (2 lines, 17 bytes)\n" in text
    assert text.endswith("Text of b/notes.txt:\ngrößer\nkleiner") and str(tmp_path) not in text


def test_workbooks_are_made_by_calls_and_described(tmp_path: Path) -> None:
    shop = world(tmp_path, workbooks={"/data/shop/w.xlsx": {"One": [["a", 1]], "Two": [["b", None]]}})
    calls = shop.workbook_calls()
    assert [call["name"] for call in calls] == [
        "create_workbook", "rename_worksheet", "write_data_to_excel", "create_worksheet", "write_data_to_excel",
    ]  # fmt: skip
    assert {call["arguments"]["filepath"] for call in calls} == {f"{shop.base}/data/shop/w.xlsx"}
    assert calls[1]["arguments"]["new_name"] == "One" and calls[4]["arguments"]["data"] == [["b", None]]
    head = "Workbook /data/shop/w.xlsx, sheet {}, rows from A1 on:\n{}"
    assert shop.description() == "\n\n".join(
        [head.format("One", '["a", 1]'), head.format("Two", '["b", null]')]
    )


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_commits_are_the_same_everywhere(tmp_path: Path) -> None:
    first = world(tmp_path / "first", repository={"commits": COMMITS}, files={"a.md": "three\n"})
    second = world(tmp_path / "second", repository={"commits": COMMITS}, files={"a.md": "three\n"})
    assert first.commits == second.commits and len(set(first.commits)) == 2
    text = first.description()
    assert f"- {first.commits[1]} 2026-01-06T10:00:00 +0000 More (a.md, b.md)" in text
    assert "Text of a.md:\nthree" in text and ".git/" not in text


def test_observations_are_json_in_json() -> None:
    for row in rows():
        for response in row["response"]:
            text = response.removeprefix(MARKER)
            outer = json.loads(text)
            assert list(outer) == ["type", "text", "annotations", "meta"] and json.dumps(outer) == text
            inner = json.loads(outer["text"])
            assert list(inner) == ["meta", "content", "structuredContent", "isError"]
            assert json.dumps(inner) == outer["text"]
            for block in inner["content"]:
                assert list(block) == ["type", "text", "annotations", "meta"]


def test_actions_are_the_calls_of_the_scripts() -> None:
    recorded = {}
    for row in rows():  # the last row of a trajectory has all turns
        fenced = [re.search(r"```\n(.+)\n```", prompt) for prompt in row["prompt"]]
        recorded[row["id"]] = [found[1] for found in fenced if found]
    scripts = load_scripts(mcp.DOMAIN)
    assert list(recorded.values()) == [[mcp.action_text(turn) for turn in one["turns"]] for one in scripts]


def test_answers_are_of_every_kind() -> None:
    """Errors, refusals without the flag, both kinds of payload, empty answers, text that is not ASCII."""
    responses = {response for row in rows() for response in row["response"]}
    results = [json.loads(json.loads(text.removeprefix(MARKER))["text"]) for text in responses]
    texts = [block["text"] for result in results for block in result["content"]]
    assert sum(result["isError"] for result in results) >= 8
    assert sum(result["structuredContent"] is not None for result in results) >= 25
    assert sum(result["structuredContent"] is None and not result["isError"] for result in results) >= 15
    for part in (
        "Database error: ",
        "Error: ",
        "Access denied",
        "ENOENT",
        "Unknown tool: ",
        "nput validation error",
    ):
        assert any(part in text for text in texts), part
    assert "[]" in texts and any(not text.isascii() for text in texts)


def test_tools_called_are_described() -> None:
    for script in load_scripts(mcp.DOMAIN):
        undescribed = {turn["name"] for turn in script["turns"]} - set(script["tools"])
        assert undescribed <= {"git_stage"}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_recording_again_gives_the_same(tmp_path: Path) -> None:
    if reason := mcp.missing():
        pytest.skip(reason)
    recorded = run_module("tools.record.mcp", "--output", str(tmp_path))
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    compared = run_module("tools.record.compare", str(MINI), str(tmp_path), "--domain", "mcp")
    assert compared.returncode == 0, compared.stdout + compared.stderr


def run_module(*command: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", *command]
    return subprocess.run(call, cwd=HERE.parents[1], capture_output=True, text=True, timeout=300)
