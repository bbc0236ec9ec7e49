"""The bundled terminal and swe rows: sizes, actions, and that recording again gives the same.

In: `agentworldbench/data/mini/{terminal,swe}_test.jsonl` and the recorders under `tools/record`. The
recorders run as commands, as a developer runs them, one trajectory a run. Where other programs than those
in `provenance.json` would answer in other words (not GNU coreutils, a later major pytest), or one that a
script needs is missing or later, that trajectory is skipped, with the reason.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tools.record.common import load_scripts, row_id
from tools.record.compare import difference

ROOT = Path(__file__).resolve().parents[1]
MINI = ROOT / "agentworldbench" / "data" / "mini"
DOMAINS = ("terminal", "swe")
QUICK = 2
"""Scripts a domain that are recorded again in the quick step; all of them are in the slow one."""
SCRIPTS = [
    pytest.param(domain, script["name"], marks=[] if number < QUICK else pytest.mark.slow)
    for domain in DOMAINS
    for number, script in enumerate(load_scripts(domain))
]
MARKER = "**Environment Observation:**\n"


def load(domain: str) -> list[dict[str, Any]]:
    text = (MINI / f"{domain}_test.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n") and "\r" not in text
    return [json.loads(line) for line in text[:-1].split("\n")]


def trajectories(domain: str) -> list[list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in load(domain):
        groups[row["id"]].append(row)
    return list(groups.values())


def provenance(domain: str) -> dict[str, Any]:
    document = json.loads((MINI / "provenance.json").read_text(encoding="utf-8"))
    entry: dict[str, Any] = document["domains"][domain]
    return entry


def row_text(row: dict[str, Any]) -> str:
    return "\n".join([row["system_str"], *row["prompt"], *row["response"]])


@pytest.mark.parametrize("domain", DOMAINS)
def test_sizes(domain: str) -> None:
    for row in load(domain):
        assert len(row_text(row)) < 16_000
        for response in row["response"]:
            assert response.startswith(MARKER)
            observation = response.removeprefix(MARKER)
            assert 30 <= len(observation) <= 2_500
            assert observation == observation.rstrip()


def test_actions_are_json_of_the_domain() -> None:
    styles = set()
    for domain in DOMAINS:
        for row in load(domain):
            action = json.loads(row["current_prompt"].split("```\n")[-1].removesuffix("\n```"))
            if domain == "terminal":
                assert isinstance(action, list) and all(isinstance(key, str) for key in action)
                continue
            styles.add("name" if "name" in action else "tool")
            assert "tool" in action or isinstance(json.loads(action["arguments"]), dict)
    assert styles == {"name", "tool"}


def test_provenance_names_what_was_used() -> None:
    for domain in DOMAINS:
        entry = provenance(domain)
        assert entry["kind"] == "real"
        assert entry["licence"] == "Apache-2.0"
        assert entry["programs"]["python"] and entry["programs"]["bash"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["recorded"])
        assert len(entry["trajectories"]) == len(trajectories(domain))


def numbers(text: str, count: int) -> tuple[int, ...]:
    """The first `count` parts of the first version number in `text`."""
    match = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")[:count]) if match else ()


def version_here(domain: str, program: str) -> str | None:
    """What a program (swe: a Python package) of this machine says of its version, None when it is missing."""
    try:
        if domain == "swe":
            return version(program)
        return subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    except (PackageNotFoundError, FileNotFoundError):
        return None


def reason_to_skip(domain: str, needs: list[str]) -> str | None:
    """Why this machine cannot give the recorded words. Of ruff, still at 0, the minor version counts."""
    recorded = provenance(domain)["programs"]
    if domain == "terminal" and "GNU coreutils" not in (version_here(domain, "ls") or ""):
        return "recorded with GNU coreutils, here are others"
    for program in ["pytest", *needs] if domain == "swe" else needs:
        here, count = version_here(domain, program), 2 if program == "ruff" else 1
        if here is None:
            return f"{program} is not installed"
        if not numbers(here, count) or numbers(here, count) > numbers(recorded[program], count):
            return f"recorded with {recorded[program]} of {program}, here is {here.splitlines()[:1]}"
    return None


def run_module(*command: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", *command]
    return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("domain", "name"), SCRIPTS)
def test_recording_again_gives_the_same(domain: str, name: str, tmp_path: Path) -> None:
    (script,) = [script for script in load_scripts(domain) if script["name"] == name]
    if reason := reason_to_skip(domain, script.get("needs", [])):
        pytest.skip(reason)
    recorded = run_module(f"tools.record.{domain}", "--output", str(tmp_path), "--only", name)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    committed = [row for row in load(domain) if row["id"] == row_id(domain, name)]
    bundled = tmp_path / "bundled.jsonl"
    bundled.write_text("".join(json.dumps(row) + "\n" for row in committed), encoding="utf-8")
    assert difference(bundled, tmp_path / f"{domain}_test.jsonl") == []


def test_bundled_rows_cannot_be_dropped_by_a_partial_recording() -> None:
    before = (MINI / "terminal_test.jsonl").read_bytes()
    done = run_module("tools.record.terminal", "--only", "garden_beds")
    assert done.returncode == 2 and "--output" in done.stderr
    assert (MINI / "terminal_test.jsonl").read_bytes() == before


def test_comparison_masks_only_volatile_text(tmp_path: Path) -> None:
    text = (MINI / "terminal_test.jsonl").read_text(encoding="utf-8")
    copy = tmp_path / "terminal_test.jsonl"
    for old, new, code in [(r"(\[1\]) \d+", r"\1 77", 0), ("690.70", "690.71", 1), ("renamed", "moved", 1)]:
        changed, count = re.subn(old, new, text)
        assert count
        copy.write_text(changed, encoding="utf-8")
        assert run_module("tools.record.compare", str(tmp_path), str(MINI)).returncode == code
