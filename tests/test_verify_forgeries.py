"""Forged bundles are refused with the right reason, each made from one honest bundle as a forger would make it.

A forger who edits files writes the manifest anew (`seal`); one who is careful computes the results anew, too, so that
nothing but the forgery itself is wrong. Models that cheat run through the ordinary engine.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.judge import digest_of
from agentworldbench.verification.verify import verify
from tests.helpers.honest_bundle import (
    Lines,
    bundle_folder,
    edit_json,
    edit_lines,
    made_run,
    packed,
    read_lines,
    refused,
    rescored,
    seal,
    told,
    write_lines,
)
from tests.helpers.scripted_server import verdict_text

pytestmark = pytest.mark.usefixtures("quick_retries")
PERFECT = {"format": 5, "factuality": 5, "consistency": 5, "realism": 5, "quality": 5}


@pytest.fixture(scope="module")
def home(quick_retries: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `rows`, the honest `run` and its `bundle`."""
    folder = tmp_path_factory.mktemp("honest")
    bundle_folder(made_run(folder), folder / "bundle", folder / "rows")
    return folder


def good(lines: Lines) -> Iterator[dict[str, Any]]:
    return (line for line in lines if not line.get("failure"))


# --- forgers who edit files -------------------------------------------------------------------------------------


def changed_score(folder: Path) -> None:
    def raise_it(results: dict[str, Any]) -> None:
        results["judges"][0]["strict"]["macro_floor"]["total"] += 5.0

    edit_json(folder, "results.json", raise_it)
    seal(folder, lambda fields: fields["claims"][0].update(overall=fields["claims"][0]["overall"] + 5.0))


def changed_rule_score(folder: Path) -> None:
    edit_lines(folder, "metrics.jsonl", lambda lines: lines[0]["values"].update(line_f1=1.0))
    seal(folder)


def claim_beyond_results(folder: Path) -> None:
    seal(folder, lambda fields: fields["claims"][0].update(overall=99.0))


def grades_raised(folder: Path) -> None:
    edit_lines(folder, "verdicts.jsonl", lambda lines: next(good(lines)).update(scores=PERFECT))
    rescored(folder, folder.parent / "rows")


def failures_dropped(folder: Path) -> None:
    edit_lines(folder, "predictions.jsonl", lambda lines: list(good(lines)))
    rescored(folder, folder.parent / "rows")


def failures_not_selected(folder: Path) -> None:
    lines = read_lines(folder / "predictions.jsonl")
    names = [line["sample_id"] for line in good(lines)]
    write_lines(folder / "predictions.jsonl", list(good(lines)))
    counts = {domain: sum(name.startswith(domain) for name in names) for domain in ("mcp", "terminal")}
    edit_json(folder, "run.json", lambda run: run["selection"].update(sample_id=names, samples=counts))
    rescored(folder, folder.parent / "rows")
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    seal(folder, lambda fields: fields.update(selection=run["selection"]))


def reply_edited(folder: Path) -> None:
    def edit(lines: Lines) -> None:
        next(good(lines))["reply"] = "On reflection:\n" + verdict_text(PERFECT)

    edit_lines(folder, "verdicts.jsonl", edit)
    seal(folder)


def reply_without_verdict(folder: Path) -> None:
    edit_lines(folder, "verdicts.jsonl", lambda lines: next(good(lines)).update(reply="All is well."))
    seal(folder)


def reply_removed(folder: Path) -> None:
    edit_lines(folder, "verdicts.jsonl", lambda lines: [line for line in lines if line.pop("reply", 1)])
    seal(folder)


def other_judge(folder: Path) -> None:
    for name in ("run.json", "results.json"):
        edit_json(folder, name, _better_judge)
    seal(folder, lambda fields: fields["judges"][0].update(model="openai/gpt-5.2-2025-12-11"))


def _better_judge(value: dict[str, Any]) -> None:
    for one in value["judges"]:
        judge = one.get("judge", one)
        judge["model"] = "openai/gpt-5.2-2025-12-11"
        judge["identity"] = {**judge["identity"], "name": "gpt-5.2-2025-12-11"}


def other_prompts(folder: Path) -> None:
    edit_lines(folder, "predictions.jsonl", lambda lines: lines[0].update(prompt_sha256="a" * 64))
    seal(folder)


def other_judge_prompt(folder: Path) -> None:
    edit_lines(folder, "verdicts.jsonl", lambda lines: lines[0].update(prompt_sha256="b" * 64))
    seal(folder)


def other_judge_rules(folder: Path) -> None:
    def soften(value: dict[str, Any]) -> None:
        for one in value["judges"]:
            one.get("judge", one)["system_prompts"]["mcp"] = "c" * 64

    def under_them(lines: Lines) -> None:
        for line in lines:
            if line["sample_id"].startswith("mcp"):
                line["system_sha256"] = "c" * 64

    for name in ("run.json", "results.json"):
        edit_json(folder, name, soften)
    edit_lines(folder, "verdicts.jsonl", under_them)
    seal(folder, lambda fields: fields["judges"][0]["system_prompts"].update(mcp="c" * 64))


def reply_hidden(folder: Path) -> None:
    """Nothing is left of the answer but what was read in it, so that nothing can be read again."""

    def edit(lines: Lines) -> None:
        line = next(good(lines))
        del line["text"], line["finish_reason"]

    edit_lines(folder, "predictions.jsonl", edit)
    rescored(folder, folder.parent / "rows")


def verdict_disowned(folder: Path) -> None:
    """A bad verdict that is about no stored text counts nowhere, and under `exclude` it lowers nothing."""
    edit_lines(folder, "verdicts.jsonl", lambda lines: next(good(lines)).update(observation_sha256="a" * 64))
    rescored(folder, folder.parent / "rows")


def tokens_without_number(folder: Path) -> None:
    """More tokens than a float can hold."""
    edit_lines(folder, "predictions.jsonl", lambda lines: lines[0]["usage"].update(prompt_tokens=10**400))
    seal(folder)


def notice_without_canary(folder: Path) -> None:
    (folder / "NOTICE").write_text("Take all of it.\n", encoding="utf-8")
    seal(folder)


def prediction_swapped(folder: Path) -> None:
    edit_lines(folder, "predictions.jsonl", lambda lines: next(good(lines)).update(observation="better"))
    seal(folder)


def other_row(folder: Path) -> None:
    edit_lines(folder, "predictions.jsonl", lambda lines: lines[0].update(row_hash="d" * 64))
    seal(folder)


def stranger(folder: Path) -> None:
    edit_lines(folder, "predictions.jsonl", lambda lines: [*lines, lines[0] | {"sample_id": "mcp/999/1"}])
    seal(folder)


def one_draw_for_many(folder: Path) -> None:
    def edit(lines: Lines) -> None:
        for line in list(good(lines))[:2]:
            line["draw"] = "e" * 16

    edit_lines(folder, "predictions.jsonl", edit)
    seal(folder)


def other_references(folder: Path) -> None:
    edit_lines(folder, "references.jsonl", lambda lines: lines[3].update(observation="easier"))
    seal(folder)


def secret_inside(folder: Path) -> None:
    key = "sk-" + "Zq8Lw3Vn5Xt2Rb7Kd9Mf4Hs6"
    edit_lines(folder, "predictions.jsonl", lambda lines: lines[0].update(notes=[f"sent with {key}"]))
    rescored(folder, folder.parent / "rows")


def other_tasks(folder: Path) -> None:
    for name in ("run.json", "results.json"):
        edit_json(folder, name, lambda value: value["predict"]["tasks"].update(mcp="f" * 64))
    seal(folder, lambda fields: fields["tasks"].update(mcp="f" * 64))


def renamed_judge(folder: Path) -> None:
    """Another judge's name in every place, with the digest that goes with it, at a hosted service's address."""
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    old = JudgeRecord.model_validate(record["judges"][0])
    identity = {**old.identity, "name": "gpt-5.2-2025-12-11"}
    new = digest_of(old.model_copy(update={"identity": identity}))
    for name in ("run.json", "results.json"):
        edit_json(folder, name, _better_judge)
    edit_json(folder, "run.json", lambda run: run["sessions"][0].update(judge_urls={old.digest: None}))
    for path in folder.iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace(old.digest, new), encoding="utf-8")
    seal(folder, lambda fields: fields["judges"][0].update(model="openai/gpt-5.2-2025-12-11"))


def praise_added(folder: Path) -> None:
    edit_lines(folder, "verdicts.jsonl", lambda lines: next(good(lines)).update(strengths=["flawless"]))
    seal(folder)


def other_environment(folder: Path) -> None:
    edit_json(folder, "environment.json", lambda value: value["sessions"][0].update(harness="9.9.9"))
    seal(folder)


@dataclass(frozen=True)
class Forgery:
    """How it is made, which check must refuse it, and words of its reason."""

    make: Callable[[Path], None]
    check: str
    reason: str


FORGERIES = [
    Forgery(changed_score, "numbers", "judges[0].strict.macro_floor.total is"),
    Forgery(changed_rule_score, "numbers", "line_f1 is 1, should be 0"),
    Forgery(claim_beyond_results, "manifest", "claims[0].overall is 99, should be 37.8"),
    Forgery(grades_raised, "judge replies", "not those in the judge's raw reply"),
    Forgery(failures_dropped, "completeness", "has no prediction"),
    Forgery(failures_not_selected, "selection", "chosen by name"),
    Forgery(reply_edited, "judge replies", "not those in the judge's raw reply"),
    Forgery(reply_without_verdict, "judge replies", "not those in the judge's raw reply"),
    Forgery(reply_removed, "judge replies", "grades without the judge's reply"),
    Forgery(other_judge, "judges", "another judge gave these verdicts"),
    Forgery(renamed_judge, "served names", "the judge answered under another name"),
    Forgery(praise_added, "judge replies", "not those in the judge's raw reply"),
    Forgery(other_environment, "manifest", "harness is 9.9.9"),
    Forgery(other_prompts, "prompts", "asked another prompt"),
    Forgery(other_judge_prompt, "judge prompts", "asked another prompt"),
    Forgery(other_judge_rules, "judge prompts", "system prompt of mcp"),
    Forgery(notice_without_canary, "manifest", "NOTICE"),
    Forgery(reply_hidden, "predictions", "without the reply that it was taken from"),
    Forgery(verdict_disowned, "completeness", "has no verdict"),
    Forgery(tokens_without_number, "numbers", "usage.prompt_tokens is 4006, should be 1000"),
    Forgery(prediction_swapped, "predictions", "not what its raw reply says"),
    Forgery(other_row, "completeness", "another row"),
    Forgery(stranger, "completeness", "mcp/999/1"),
    Forgery(one_draw_for_many, "duplicates", "one draw of the response cache"),
    Forgery(other_references, "manifest", "references.jsonl:4"),
    Forgery(secret_inside, "secrets", "API key sk-Z"),
    Forgery(other_tasks, "tasks", "not this harness' own"),
]


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.make.__name__)
def test_an_edited_bundle_is_refused(home: Path, tmp_path: Path, forgery: Forgery) -> None:
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    (tmp_path / "rows").symlink_to(home / "rows")
    forgery.make(tmp_path / "bundle")
    report = verify(packed(tmp_path / "bundle", tmp_path / "forged.awb.zip"), data=str(home / "rows"))
    assert report.verdict == "refused"
    assert forgery.reason in told(refused(report, forgery.check)), told(list(report.findings))
    read_otherwise = refused(report, "predictions") or refused(report, "judge replies")
    assert not (read_otherwise and ".spent" in told(refused(report, "numbers")))


def test_counts_below_zero_are_told(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    edit_lines(tmp_path / "bundle", "predictions.jsonl", lambda lines: lines[0].update(cost_usd=-5.0))
    rescored(tmp_path / "bundle", home / "rows")
    report = verify(tmp_path / "bundle", data=str(home / "rows"))
    assert report.verdict == "accepted"
    assert [one.severity for one in report.findings if "below zero" in one.message] == ["warning"]
