"""Bundles whose records contradict their run's settings or each other: each kind is refused, or told where honest clocks and
bills may do the same.

One honest bundle over rows of our own; every forger computes results and hashes anew, so that numbers hold together.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.leaderboard.entries import read_entry
from agentworldbench.prompts import messages_sha256, predict_messages
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.judge import digest_of
from agentworldbench.texts import repeated_name
from agentworldbench.verification.findings import Report
from agentworldbench.verification.material import open_material
from agentworldbench.verification.rendering import without_turns
from agentworldbench.verification.verify import verify
from tests.helpers.awb_command import HereAwb
from tests.helpers.honest_bundle import (
    Lines,
    bundle_folder,
    edit_json,
    edit_lines,
    made_run,
    refused,
    rescored,
    seal,
    told,
)

HOSTED = "openai/gpt-5.2-2025-12-11"
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `rows`, the honest `run` of one domain and its `bundle`."""
    folder = tmp_path_factory.mktemp("honest")
    bundle_folder(made_run(folder, tasks="terminal"), folder / "bundle", folder / "rows")
    return folder


def good(lines: Lines) -> Iterator[dict[str, Any]]:
    return (line for line in lines if not line.get("failure"))


def settled(folder: Path, change: Callable[[dict[str, Any]], None] = lambda fields: None) -> None:
    """All numbers anew, and what `change` makes of the manifest."""
    rescored(folder, folder.parent / "rows")
    seal(folder, change)


def everywhere(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    for name in ("run.json", "results.json"):
        edit_json(folder, name, edit)


def unnamed(folder: Path, name: str) -> None:
    edit_lines(folder, name, lambda lines: [line for line in lines if line.pop("model_served", 1)])


def nameless_judge(folder: Path) -> None:
    """A famous judge in every place, its digest made anew, and no word of who answered."""
    old = JudgeRecord.model_validate(json.loads((folder / "run.json").read_bytes())["judges"][0])
    identity = {"backend": "litellm", "name": HOSTED}
    new = digest_of(old.model_copy(update={"identity": identity}))

    def rename(value: dict[str, Any]) -> None:
        for one in value["judges"]:
            one.get("judge", one).update(model=HOSTED, identity=identity)

    everywhere(folder, rename)
    edit_json(folder, "run.json", lambda run: run["sessions"][0].update(judge_urls={old.digest: None}))
    for path in folder.iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace(old.digest, new), encoding="utf-8")
    unnamed(folder, "verdicts.jsonl")
    settled(folder, lambda fields: fields["judges"][0].update(model=HOSTED, served=[]))


def renamed_model(folder: Path, **asked: str) -> None:
    everywhere(folder, lambda value: value["predict"]["model"].update(model=HOSTED, **asked))
    edit_json(folder, "run.json", lambda run: run["sessions"][0].update(model_url=None))
    unnamed(folder, "predictions.jsonl")
    settled(folder, lambda fields: fields.update(model=HOSTED))


def nameless_model(folder: Path) -> None:
    renamed_model(folder, backend="litellm", name=HOSTED)


def asked_for_another(folder: Path) -> None:
    renamed_model(folder)


def histories_shortened(folder: Path) -> None:
    """Histories as `--context-policy drop-oldest` leaves them, hashes and all, in a run that says `error`."""
    material = open_material(folder, str(folder.parent / "rows"))
    shorter = {
        case.ref.id: messages_sha256(without_turns(predict_messages(case.sample), 1) or ())
        for case in material.cases()
        if case.ref.turn_idx == 2 and case.sample is not None
    }

    def shorten(lines: Lines) -> None:
        for line in lines:
            if line["sample_id"] in shorter:
                line |= {"dropped_turns": 1, "prompt_sha256": shorter[line["sample_id"]]}

    edit_lines(folder, "predictions.jsonl", shorten)
    settled(folder)


def bad_answer_called_too_long(folder: Path) -> None:
    gone: list[str] = []

    def fail(lines: Lines) -> None:
        line = next(good(lines))
        gone.append(line["sample_id"])
        for name in ("text", "finish_reason", "observation", "official_sha256", "response_id"):
            line.pop(name, None)
        line["failure"] = {"kind": "context_overflow", "message": "the prompt has 90,000 tokens"}

    edit_lines(folder, "predictions.jsonl", fail)
    edit_lines(
        folder, "verdicts.jsonl", lambda lines: [line for line in lines if line["sample_id"] not in gone]
    )


def too_long_for_its_context(folder: Path) -> None:
    bad_answer_called_too_long(folder)
    edit_json(folder, "run.json", lambda run: run["sessions"][0]["model_facts"].update(context=262_144))
    settled(folder)


def too_long_beside_a_longer_one(folder: Path) -> None:
    bad_answer_called_too_long(folder)
    edit_lines(
        folder,
        "predictions.jsonl",
        lambda lines: next(good(lines[::-1]))["usage"].update(prompt_tokens=9_000),
    )
    settled(folder)


def smaller_settings(folder: Path) -> None:
    """A run of 32,768 tokens an answer that calls itself one of 16."""
    everywhere(folder, lambda value: value["predict"]["sampling"]["terminal"].update(max_tokens=16))
    settled(folder)


def answers_for_nothing(folder: Path) -> None:
    prices = {"openai-api/world": {"prompt": 5e-6, "completion": 1e-5, "source": "--price"}}
    edit_json(folder, "run.json", lambda run: run["sessions"][0].update(prices=prices))
    edit_lines(folder, "predictions.jsonl", lambda lines: [line | {"cost_usd": 1e-9} for line in lines])
    settled(folder)


def results_of_two_readings(folder: Path) -> None:
    """Who keeps the first of two equal names reads 99; who keeps the last reads what was computed."""
    path = folder / "results.json"
    path.write_text('{"judges": [99], ' + path.read_text(encoding="utf-8").lstrip()[1:], encoding="utf-8")
    seal(folder)


def record_of_two_readings(folder: Path) -> None:
    path = folder / "predictions.jsonl"
    path.write_text('{"text": "better", ' + path.read_text(encoding="utf-8")[1:], encoding="utf-8")
    seal(folder)


def references_cut(folder: Path) -> None:
    edit_lines(folder, "references.jsonl", lambda lines: lines[:3])
    seal(folder)


def more_verdicts_than_repeats(folder: Path) -> None:
    edit_lines(folder, "verdicts.jsonl", lambda lines: lines + [line | {"repeat": 2} for line in lines])
    settled(folder)


REFUSED = [
    (nameless_judge, "served names", "the judge is a hosted one, which names itself in every answer"),
    (nameless_model, "served names", "the model is a hosted one, which names itself in every answer"),
    (
        asked_for_another,
        "served names",
        f"was asked for under another name than the one claimed: {HOSTED}: world",
    ),
    (histories_shortened, "prompts", "the run says that none are"),
    (too_long_for_its_context, "prompts", "fits the context is called too long"),
    (smaller_settings, "predictions", "32768, at most 16"),
    (results_of_two_readings, "journals", "results.json: judges"),
    (record_of_two_readings, "journals", "predictions.jsonl:1: text"),
    (references_cut, "manifest", "is missing"),
]
TOLD = [
    (too_long_beside_a_longer_one, "called too long, and a longer one was answered"),
    (answers_for_nothing, "cost far less than its tokens do"),
    (more_verdicts_than_repeats, "more verdicts of a judge on one answer than the run has"),
]


@pytest.fixture
def forged(home: Path, tmp_path: Path) -> Callable[[Callable[[Path], None]], Report]:
    def report_on(forge: Callable[[Path], None]) -> Report:
        (tmp_path / "rows").symlink_to(home / "rows")
        forge(Path(shutil.copytree(home / "bundle", tmp_path / "bundle")))
        return verify(tmp_path / "bundle", data=str(home / "rows"))

    return report_on


@slow
def test_the_honest_bundle_has_none_of_it(home: Path) -> None:
    report = verify(home / "bundle", data=str(home / "rows"))
    assert report.verdict == "accepted"
    assert {one.check for one in report.findings} <= {"times and tokens"}, "a loopback server is fast"


@slow
@pytest.mark.parametrize(("forge", "check", "reason"), REFUSED, ids=lambda one: getattr(one, "__name__", ""))
def test_it_is_refused(
    forged: Callable[[Callable[[Path], None]], Report], forge: Callable[[Path], None], check: str, reason: str
) -> None:
    report = forged(forge)
    assert report.verdict == "refused"
    assert reason in told(refused(report, check)), told(list(report.findings))
    assert {one.check for one in report.findings if one.severity == "refused"} == {check}


@slow
@pytest.mark.parametrize(("forge", "reason"), TOLD, ids=lambda one: getattr(one, "__name__", ""))
def test_it_is_told(
    forged: Callable[[Callable[[Path], None]], Report], forge: Callable[[Path], None], reason: str
) -> None:
    report = forged(forge)
    assert report.verdict == "accepted", told(list(report.findings))
    assert [one.severity for one in report.findings if reason in one.message] == ["warning"]


@slow
def test_anothers_bundle_under_ones_own_name_is_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    add = ("leaderboard", "add", home / "bundle", "--entries", "e", "--name", "GPT-6")
    awb(*add, "--submitter", "Somebody Else")
    (path,) = (tmp_path / "e").iterdir()
    words = ("verify", home / "bundle", "--data", home / "rows", "--entry", path)
    done = awb(*words)
    assert "warning, entry: the entry names another submitter than the bundle" in done.out
    assert f"{path.name}: Somebody Else, the bundle: A. Tester" in done.out
    assert f"{path.name}: GPT-6, model string openai-api/world" in done.out
    awb(*add, "--submitter", "A. Tester")
    assert "another submitter" not in awb(*words, "--verified-by", "Grace").out
    assert read_entry(path).status == "verified"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a": 1, "b": 2}', None),
        ('{"a": 1, "a": 1}', "a"),
        ('[{"x": {"b": 1, "c": 2, "b": 3}}]', "b"),
        ('[{"a": 1}, {"a": 2}]', None),
        ("no JSON", None),
        ("[" * 100_000, None),
    ],
)
def test_names_that_stand_twice(text: str, name: str | None) -> None:
    assert repeated_name(text) == name
    assert repeated_name(text.encode()) == name
