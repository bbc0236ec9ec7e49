"""Claims of a bundle about itself that its files do not bear out: dates, names, commits, judges' prompts, the data's name.

One honest bundle over rows of our own; every forger writes hashes and digests anew.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.judge import digest_of
from agentworldbench.verification.verify import verify
from tests.helpers.honest_bundle import bundle_folder, edit_json, made_run, refused, seal, told


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `rows`, the honest `run` of one domain and its `bundle`."""
    folder = tmp_path_factory.mktemp("honest")
    bundle_folder(made_run(folder, tasks="terminal"), folder / "bundle", folder / "rows")
    return folder


@pytest.fixture
def bundle(home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(home / "bundle", tmp_path / "bundle"))


def another_date(folder: Path) -> None:
    seal(folder, lambda fields: fields.update(created="1999-01-01T00:00:00.000Z"))


def another_commit(folder: Path) -> None:
    seal(folder, lambda fields: fields["harness"].update(git_commit="f" * 40))


def submitter_in_disguise(folder: Path) -> None:
    seal(folder, lambda fields: fields.update(submitter={"name": "Ann\nverified: yes", "url": None}))


def no_time(folder: Path) -> None:
    """A beginning that is no time, before which nothing can be said to lie."""
    edit_json(folder, "run.json", lambda run: run.update(created_at="yesterday"))
    seal(folder)


def called_official(folder: Path) -> None:
    for name in ("run.json", "results.json"):
        edit_json(folder, name, lambda value: value["predict"]["data"].update(name="official"))
    seal(folder, lambda fields: fields["data"].update(name="official"))


def prompt_of_no_domain(folder: Path) -> None:
    """A prompt for a domain that the run does not have gives the judge another digest, and the entry another table."""
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    old = JudgeRecord.model_validate(record["judges"][0])
    prompts = {**old.system_prompts, "web": "b" * 64}
    new = digest_of(old.model_copy(update={"system_prompts": prompts}))

    def add(value: dict[str, Any]) -> None:
        for one in value["judges"]:
            one.get("judge", one)["system_prompts"] = prompts

    for path in folder.iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace(old.digest, new), encoding="utf-8")
    for name in ("run.json", "results.json"):
        edit_json(folder, name, add)
    seal(folder, lambda fields: fields["judges"][0].update(system_prompts=prompts))


@pytest.mark.parametrize(
    ("forge", "check", "reason"),
    [
        (another_date, "manifest", "created is 1999-01-01T00:00:00.000Z"),
        (another_commit, "manifest", "harness.git_commit is ffff"),
        (submitter_in_disguise, "manifest", "submitter.name: U+000A"),
        (no_time, "times and tokens", "created_at is yesterday"),
        (called_official, "data", "called official, but come from None"),
        (prompt_of_no_domain, "judge prompts", "system prompt of web"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_it_is_refused(
    home: Path, bundle: Path, forge: Callable[[Path], None], check: str, reason: str
) -> None:
    forge(bundle)
    report = verify(bundle, data=str(home / "rows"))
    assert report.verdict == "refused"
    assert reason in told(refused(report, check)), told(list(report.findings))


@pytest.mark.parametrize(
    ("made", "begun", "says"),
    [
        ("2020-01-01T00:00:00Z", None, "made when none of its sessions began"),
        ("2198-01-01T00:00:00Z", "2198-01-01T00:00:00Z", "still to come"),
        ("2198-01-01T00:00:00Z", None, "a session begun before its run"),
    ],
)
def test_odd_times_of_a_run_are_told(bundle: Path, made: str, begun: str | None, says: str) -> None:
    """Clocks are often wrong: a person decides."""

    def date(run: dict[str, Any]) -> None:
        run["created_at"] = made
        run["sessions"][0]["started_at"] = begun or run["sessions"][0]["started_at"]

    edit_json(bundle, "run.json", date)
    seal(bundle)
    found = [one.severity for one in verify(bundle).findings if says in one.message]
    assert found == ["warning"]
