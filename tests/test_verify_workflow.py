"""The workflows in `docs/workflows`: what they may do, and the commands of `verify.yml` run on a repository of our own.

The step that verifies is taken from the file as it stands and run by bash in a clone with a base branch, as a pull
request of one honest entry, of a forged one and of one without a bundle.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.leaderboard.provenance import Bundle
from agentworldbench.run import evaluate
from agentworldbench.verification.findings import Report
from agentworldbench.version import __version__
from tests.helpers.awb_command import clean_environment
from tests.helpers.honest_bundle import bundle_folder, packed

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    name: (ROOT / f"docs/workflows/{name}.yml").read_text(encoding="utf-8") for name in ("verify", "audit")
}
WORKFLOWS: dict[str, dict[Any, Any]] = {name: yaml.safe_load(text) for name, text in FILES.items()}
WORKFLOW = WORKFLOWS["verify"]
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["verify"]["steps"]


def test_a_stranger_gets_no_rights() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    triggers = WORKFLOW[True]  # YAML 1.1 reads the key `on` as a truth value
    assert list(triggers) == ["pull_request"], (
        "not pull_request_target, which would hand out the repository's secrets"
    )
    assert "secrets." not in FILES["verify"]


def test_keys_wait_for_a_maintainer() -> None:
    audit = WORKFLOWS["audit"]
    assert (audit["permissions"], list(audit[True])) == ({"contents": "read"}, ["workflow_dispatch"])
    assert audit["jobs"]["audit"]["environment"] == "audit", "whose reviewers agree before the key is at hand"
    with_keys = [step["name"] for step in audit["jobs"]["audit"]["steps"] if "secrets." in str(step)]
    assert with_keys == ["Audit"]


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_a_pull_request_becomes_a_command(name: str) -> None:
    steps = WORKFLOWS[name]["jobs"][name]["steps"]
    (checkout,) = [step for step in steps if "checkout" in step.get("uses", "")]
    assert checkout["with"]["persist-credentials"] is False
    for step in steps:
        assert "${{" not in step.get("run", "")
    (told,) = [step["run"] for step in steps if "awb verify" in step.get("run", "")]
    assert told.index("::stop-commands::") < told.index("awb verify"), "what awb prints is no command either"
    used = re.findall(r"uses: (.+)", FILES[name])
    assert used and all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[0-9.]+", one) for one in used)
    assert WORKFLOWS[name]["env"]["AWB_VERSION"] == __version__


def git(place: Path, *words: str) -> None:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(place), *identity, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The bundle of a baseline on the bundled data, and its entry."""
    folder = tmp_path_factory.mktemp("submitted")
    run = evaluate(model="baseline/copy-last", data="mini", output=folder / "run")
    prepared = bundle_folder(run.path, folder / "bundle", Path("mini"))
    (entry,) = measured_entries(prepared.results, run.record)
    entry = entry.model_copy(update={"bundle": Bundle(sha256=prepared.sha256)})
    path = packed(folder / "bundle", folder / f"{prepared.sha256[:12]}.awb.zip")
    return path, entry.model_dump(mode="json")


def pull_request(
    place: Path, bundle: tuple[Path, dict[str, Any]], change: Callable[[dict[str, Any]], None]
) -> Path:
    """A clone of a leaderboard with a branch that adds an entry, changed by `change`, and its bundle."""
    board = place / "board"
    (board / "leaderboards/entries").mkdir(parents=True)
    (board / "leaderboards/entries/README").write_text("entries\n", encoding="utf-8")
    git(board, "init", "--quiet")
    git(board, "add", "--all")
    git(board, "commit", "--quiet", "-m", "board")
    git(board, "checkout", "--quiet", "-b", "submit")
    path, entry = bundle[0], json.loads(json.dumps(bundle[1]))
    change(entry)
    (board / "bundles").mkdir()
    (board / "bundles" / path.name).write_bytes(path.read_bytes())
    (board / "leaderboards/entries" / f"{entry['slug']}.json").write_text(json.dumps(entry), encoding="utf-8")
    git(board, "add", "--all")
    git(board, "commit", "--quiet", "-m", "entry")
    return board


def raised(entry: dict[str, Any]) -> None:
    entry["computed_overall"] += 1
    entry["scores"]["mcp"] += 7


def verified(board: Path, base: str) -> subprocess.CompletedProcess[str]:
    """The step "Verify" as GitHub runs it, `bash -e`, with `awb` of this checkout."""
    programs = board.parent / "bin"
    programs.mkdir()
    (programs / "awb").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m agentworldbench "$@"\n', encoding="utf-8"
    )
    (programs / "awb").chmod(0o755)
    (programs / "python").symlink_to(sys.executable)
    (step,) = [step for step in STEPS if step.get("name") == "Verify"]
    env = clean_environment(
        {"BASE": base, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    )
    command = ["bash", "-e", "-c", step["run"]]
    return subprocess.run(command, cwd=board, env=env, capture_output=True, encoding="utf-8", timeout=100)


@pytest.mark.slow
def test_a_base_that_is_not_there_is_no_success(tmp_path: Path, bundle: tuple[Path, dict[str, Any]]) -> None:
    assert verified(pull_request(tmp_path, bundle, lambda entry: None), "elsewhere").returncode != 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        (lambda entry: None, 0, "exit code 0"),
        (raised, 6, "exit code 6"),
        (lambda entry: entry.update(bundle=None), 6, "names no bundle"),
        (lambda entry: entry.update(bundle={"sha256": "0" * 64}), 2, "exit code 2"),
        (lambda entry: entry.update(bundle={"sha256": "$(touch owned)"}), 6, "names no bundle"),
        (lambda entry: entry.update(note="one\n::error::two"), 2, "note holds U+000A"),
        (lambda entry: entry.update(status="verified"), 2, "merge it only if you, a maintainer, wrote that"),
    ],
    ids=["honest", "forged", "without", "elsewhere", "hostile", "two lines", "verified"],
)
def test_its_commands(
    tmp_path: Path,
    bundle: tuple[Path, dict[str, Any]],
    change: Callable[[dict[str, Any]], None],
    code: int,
    told: str,
) -> None:
    board = pull_request(tmp_path, bundle, change)
    done = verified(board, "main")
    assert (done.returncode, told in done.stdout) == (code, True), done.stdout + done.stderr
    assert not (board / "owned").exists()
    assert done.stdout.startswith("::stop-commands::")
    if code == 0:
        (report,) = (tmp_path / "reports").iterdir()
        assert Report.model_validate_json(report.read_text(encoding="utf-8")).verdict == "accepted"


@pytest.mark.slow
def test_a_link_is_no_entry(tmp_path: Path, bundle: tuple[Path, dict[str, Any]]) -> None:
    board = pull_request(tmp_path, bundle, lambda entry: None)
    (path,) = (board / "leaderboards/entries").glob("*.json")
    path.rename(board / "other.json")
    path.symlink_to("../../other.json")
    git(board, "add", "--all")
    git(board, "commit", "--quiet", "-m", "link")
    done = verified(board, "main")
    assert (done.returncode, "no file of an entry" in done.stdout) == (6, True), done.stdout + done.stderr
