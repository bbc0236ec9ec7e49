"""Tests of `task.py` and `yamlfile.py`: the bundled tasks, a user's own, and what is refused.

What is refused is data: `tests/cases/tasks/refused.yaml`. The observation kinds below are those of
the benchmark's description.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench.errors import TaskError
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.resources import asset
from agentworldbench.task import is_bundled, load_task, load_tasks
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import SUFFIX, make_official_folder

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "tasks" / "refused.yaml").read_text("utf-8"))
SNAPSHOTS = {"android", "web", "os"}


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a copy of the bundled prompts, for task files of one's own."""
    folder = tmp_path / "own"
    shutil.copytree(asset("tasks", "prompts"), folder / "prompts")
    return folder


def test_the_seven_bundled_tasks() -> None:
    tasks = load_tasks()
    assert tuple(tasks) == OFFICIAL_DOMAINS
    for domain, task in tasks.items():
        assert task.data_file == f"{domain}_test.jsonl"
        assert task.observation == ("snapshot" if domain in SNAPSHOTS else "stream")
        assert ("change_f1" in task.metrics) == (domain in SNAPSHOTS)
        assert set(task.primary) <= set(task.metrics)
        assert "length_ratio" not in task.primary
        assert task.prediction_tag == "predicted_observation"
        assert task.markers.observation == "**Environment Observation:**"
        assert "**Current State:**" in task.markers.state
        assert (task.generation.temperature, task.generation.max_tokens) == (0.6, 32768)
        assert task.judge_system_prompt.strip()
    assert "**Current Phone State:**" in tasks["android"].markers.state


@pytest.mark.parametrize("domain", sorted(SNAPSHOTS))
def test_dates_are_answers_in_snapshots(domain: str) -> None:
    assert not {"date", "time", "duration"} & set(load_tasks((domain,))[domain].volatile)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_refused(folder: Path, case: dict[str, Any]) -> None:
    text = asset("tasks", "web.yaml").read_text(encoding="utf-8")
    for old, new in case.get("replace", {}).items():
        assert text.count(old) == 1, f"the case does not fit web.yaml any more: {old!r}"
        text = text.replace(old, new)
    path = folder / "mine.yaml"
    path.write_text(case.get("text", text), encoding="utf-8")
    with pytest.raises(TaskError) as caught:
        load_task(path)
    message = str(caught.value)
    assert case["message"].replace("FILE", str(path)) in message
    assert message.startswith(str(path))
    assert "\n" not in message


def test_not_utf8(folder: Path) -> None:
    path = folder / "mine.yaml"
    path.write_bytes(b"domain: \xff\n")
    with pytest.raises(TaskError, match=r"mine\.yaml: cannot be read"):
        load_task(path)
    shutil.copy(asset("tasks", "web.yaml"), path)
    (folder / "prompts" / "builtin" / "web.md").write_bytes(b"\xff")
    with pytest.raises(TaskError, match=r"judge_prompt 'prompts/builtin/web\.md' cannot be read"):
        load_task(path)


def test_names_files_folders_and_commas(folder: Path) -> None:
    shutil.copy(asset("tasks", "web.yaml"), folder / "web.yaml")
    assert list(load_tasks(("os, terminal", "mcp"))) == ["mcp", "terminal", "os"]
    assert list(load_tasks((f"{folder / 'web.yaml'},os",))) == ["web", "os"]
    assert load_tasks((str(folder),))["web"].path == folder / "web.yaml"
    assert list(load_tasks(("os", "os"))) == ["os"]
    with pytest.raises(TaskError, match=r"domain 'web' is already defined by"):
        load_tasks((str(folder), "web"))
    with pytest.raises(
        TaskError, match=r"unknown domain 'terminl'; did you mean 'terminal'\? \(known: mcp, "
    ):
        load_tasks(("terminl",))
    with pytest.raises(TaskError, match=r"no task file"):
        load_tasks((str(folder / "prompts"),))
    with pytest.raises(TaskError, match=r"gone\.yaml: cannot be read"):
        load_tasks((str(folder / "gone.yaml"),))


def test_the_judge_prompt_is_read_once(folder: Path) -> None:
    shutil.copy(asset("tasks", "web.yaml"), folder / "web.yaml")
    prompt = folder / "prompts" / "builtin" / "web.md"
    prompt.write_text("Judge kindly.\n", encoding="utf-8")
    task = load_task(folder / "web.yaml")
    prompt.write_text("Judge harshly.\n", encoding="utf-8")
    assert task.judge_system_prompt == "Judge kindly.\n", "a run's judge is told the same from begin to end"
    again = load_task(folder / "web.yaml")
    assert again.judge_system_prompt == "Judge harshly.\n"
    assert again.predict_digest() == task.predict_digest(), "it changes no prediction"
    assert "judge_system_prompt" not in again.model_dump(), "the text is not copied into records"


def test_a_bundled_name_is_one_whatever_lies_in_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(asset("tasks", "web.yaml"), folder / "web.yaml")
    (folder / "terminal").mkdir()
    monkeypatch.chdir(folder)
    assert all(is_bundled(domain) for domain in OFFICIAL_DOMAINS)
    assert not any(is_bundled(word) for word in ("./terminal", "web.yaml", str(folder), "terminl", ""))
    assert load_tasks(("terminal",))["terminal"].path == asset("tasks", "terminal.yaml")


def test_digests_tell_what_changes_a_prediction(folder: Path) -> None:
    text = asset("tasks", "web.yaml").read_text(encoding="utf-8")
    path = folder / "web.yaml"

    def digests(old: str, new: str) -> tuple[str, str]:
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        task = load_task(path)
        return task.predict_digest(), task.file_sha256()

    same = digests("domain: web", "domain: web")
    assert digests("primary: [line_f1, change_f1", "primary: [change_f1")[0] == same[0]
    assert digests("primary: [line_f1, change_f1", "primary: [change_f1")[1] != same[1]
    assert digests("version: 1", "version: 2")[0] != same[0]
    assert digests("prediction_tag: predicted_observation", "prediction_tag: answer")[0] != same[0]
    assert digests('  action: "**Action:**"', '  action: "**Do:**"')[0] != same[0]


def kitchen(folder: Path) -> Path:
    """A user's own domain: a task file beside a data folder; returns the data folder."""
    text = asset("tasks", "terminal.yaml").read_text(encoding="utf-8")
    for old, new in {
        "domain: terminal": "domain: kitchen",
        "data_file: terminal_test.jsonl": "data_file: kitchen_test.jsonl",
        "prediction_tag: predicted_observation": "prediction_tag: dish",
    }.items():
        text = text.replace(old, new)
    (folder / "kitchen.yaml").write_text(text, encoding="utf-8")
    data = folder.parent / "data"
    make_official_folder(data, domains=("terminal",), special=False)
    lines = (data / "terminal_test.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [json.loads(line) | {"task": "kitchen"} for line in lines]
    assert all(SUFFIX in row["prompt"][-1] for row in rows)
    (data / "terminal_test.jsonl").unlink()
    (data / "kitchen_test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return data


def test_a_new_domain_works_from_end_to_end(folder: Path, awb: HereAwb) -> None:
    data = kitchen(folder)
    rows = len((data / "kitchen_test.jsonl").read_text(encoding="utf-8").splitlines())

    listed = awb("tasks", "list", folder)
    assert (listed.code, listed.err) == (0, "")
    assert "kitchen" in listed.out
    assert "output_line_f1" in listed.out

    shown = awb("tasks", "show", folder)
    text = (folder / "kitchen.yaml").read_text(encoding="utf-8")
    assert shown.out == (
        f"# {folder / 'kitchen.yaml'}  sha256 {load_task(folder / 'kitchen.yaml').file_sha256()}\n{text}"
    )

    # Without the task file the data is refused: nobody would know how to evaluate it.
    refused = awb("data", "info", data)
    assert refused.code == 2
    assert "unknown domain 'kitchen'" in refused.only_complaint

    info = awb("data", "info", data, "-t", folder)
    assert (info.code, info.err) == (0, "")
    assert [line.split()[:2] for line in info.out.splitlines() if "kitchen" in line] == [
        ["kitchen", str(rows)]
    ]

    run = awb("run", "--model", "baseline/reference", "-t", folder, "--data", data, "-o", "out")
    assert run.code == 0, run.err
    results = json.loads(Path("out/results.json").read_text(encoding="utf-8"))
    assert results["predictions"]["samples"] == {"kitchen": rows}
    assert results["rules"]["score"]["kitchen"]["floor"] == 1.0
    assert "Kitchen" in run.out


def test_validate_scores_the_references(folder: Path, awb: HereAwb) -> None:
    data = kitchen(folder)
    done = awb("tasks", "validate", folder, "--data", data, "--tasks-are-not-an-option")
    assert done.code == 2
    done = awb("tasks", "validate")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", domain] for domain in OFFICIAL_DOMAINS]
    assert sum("references score 1" in line for line in lines) == len(OFFICIAL_DOMAINS)
    done = awb("tasks", "validate", folder, "--data", data)
    assert done.code == 0, done.err
    assert "15 references score 1" in done.out


def test_one_wrong_file_in_a_folder_is_named(folder: Path, awb: HereAwb) -> None:
    kitchen(folder)
    (folder / "zoo.yaml").write_text("domain: zoo\n", encoding="utf-8")
    for command in ("list", "validate", "show"):
        done = awb("tasks", command, folder)
        assert done.code == 2
        assert f"{folder / 'zoo.yaml'}:1: required key 'version' is missing" in done.only_complaint
