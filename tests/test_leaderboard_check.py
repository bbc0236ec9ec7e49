"""What `awb leaderboard check` finds: cases as data, each one change to an entry that was good, with the problem it makes.

The good entries are generated (`helpers/board_entries.py`) and the bundled ones.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from agentworldbench.leaderboard.build import README_FILE, SCHEMA_FILE, readme_text, schema_text
from agentworldbench.leaderboard.check import check_entry, check_folder
from agentworldbench.leaderboard.entries import MOST_BYTES, Entry, entry_text, load_entries
from agentworldbench.leaderboard.measured import renamed
from agentworldbench.resources import asset, mini_folder
from agentworldbench.texts import digest
from tests.helpers.awb_command import HereAwb
from tests.helpers.board_entries import board, measured, predict_section

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "leaderboard" / "problems.yaml").read_text("utf-8"))
REPORTED = next(one for one in load_entries() if one.slug == "reported-judge-glm-5-1")
GOOD = {"judged": measured(3), "rules": measured(3, "rules"), "reported": REPORTED}


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def saved(folder: Path, *entries: Entry) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    for one in entries:
        (folder / f"{one.slug}.json").write_text(entry_text(one), encoding="utf-8")
    return folder


def changed(entry: Entry, changes: dict[str, Any]) -> Entry:
    """The entry with values at dotted places replaced; a place that is not there is made."""
    value = json.loads(entry.model_dump_json())
    for place, new in changes.items():
        *way, last = place.split(".")
        inner = value
        for step in way:
            inner = inner[int(step)] if isinstance(inner, list) else inner.setdefault(step, {})
        inner[last] = new
    return Entry.model_validate_json(json.dumps(value))


def test_good_entries_have_no_problems() -> None:
    for one in [*board(12), *GOOD.values()]:
        assert check_entry(one) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_change_is_found(case: dict[str, Any]) -> None:
    found = check_entry(changed(GOOD[case["entry"]], case["change"]))
    assert (case["kind"], case["field"]) in [(one.kind, one.field) for one in found]
    told = " ".join(one.message for one in found if one.field == case["field"])
    assert case["says"] in told


def test_the_bundled_entries_are_in_order(awb: HereAwb) -> None:
    done = awb("leaderboard", "check")
    assert (done.code, done.out, done.err) == (0, "31 entries, no problems\n", "")


def test_the_readme_is_what_the_entries_give() -> None:
    stored = asset("leaderboards", README_FILE).read_text(encoding="utf-8")
    assert stored == readme_text(load_entries()), "run: awb leaderboard build leaderboards/entries"


def test_the_schema_is_what_the_code_says() -> None:
    stored = asset("leaderboards", SCHEMA_FILE).read_text(encoding="utf-8")
    assert stored == schema_text(), "run: awb leaderboard build leaderboards/entries"
    schema = json.loads(stored)
    assert set(schema["required"]) >= {"slug", "model", "status", "group", "scores", "computed_overall"}
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(Entry.model_fields)
    validator = jsonschema.Draft202012Validator(schema)
    for one in [*board(8), *GOOD.values()]:
        assert list(validator.iter_errors(json.loads(entry_text(one)))) == []
    wrong = json.loads(entry_text(REPORTED)) | {"schema_version": 1, "more": 0, "slug": "A/b"}
    assert len(list(validator.iter_errors(wrong))) == 3


def test_a_stale_readme_is_found(tmp_path: Path, awb: HereAwb) -> None:
    folder = saved(tmp_path / "board" / "entries", *board(3))
    assert awb("leaderboard", "build", folder).code == 0
    assert awb("leaderboard", "check", folder).code == 0
    saved(folder, measured(40))
    done = awb("leaderboard", "check", folder)
    assert (done.code, done.err) == (2, "")
    first, last = done.out.splitlines()
    assert first.startswith(
        f"{folder.parent / 'README.md'}: is not what the entries give; `awb leaderboard build "
    )
    assert last == "4 entries, 1 problem"


def test_every_problem_is_listed_and_machines_can_read_it(tmp_path: Path, awb: HereAwb) -> None:
    broken = changed(measured(1), {"scores.mcp": 101.0})
    folder = saved(tmp_path / "entries", broken, measured(2))
    (folder / "cut.json").write_text('{"slug": "cut",\n  "model"', encoding="utf-8")
    text = entry_text(measured(5)).replace(
        '"status": "measured",', '"status": "reported",\n  "status": "measured",', 1
    )
    (folder / f"{measured(5).slug}.json").write_text(text, encoding="utf-8")
    plain = awb("leaderboard", "check", folder)
    done = awb("leaderboard", "check", folder, "--json")
    assert (plain.code, done.code, plain.err, done.err) == (2, 2, "", "")
    report = json.loads(done.out)
    assert (report["schema_version"], report["entries"], report["folder"]) == (1, 4, str(folder))
    kinds = {(Path(one["file"]).name, one["kind"]) for one in report["problems"]}
    assert ("cut.json", "schema") in kinds
    assert (f"{measured(5).slug}.json", "schema") in kinds
    assert {kind for name, kind in kinds if name == f"{broken.slug}.json"} >= {"range", "mean", "readings"}
    assert not [name for name, _ in kinds if name == f"{measured(2).slug}.json"]
    assert f"{folder / 'cut.json'}:2: not a leaderboard entry" in plain.out
    assert "key 'status' stands twice" in plain.out
    assert plain.out.splitlines()[-1] == f"4 entries, {len(report['problems'])} problems"


def test_a_model_twice_in_a_group(tmp_path: Path) -> None:
    twice = REPORTED.model_copy(update={"slug": "reported-judge-glm-5-1-again"})
    report = check_folder(saved(tmp_path / "entries", REPORTED, twice))
    (problem,) = report.problems
    assert (problem.kind, problem.field, Path(problem.file).stem) == ("duplicate", "model", twice.slug)
    other = twice.model_copy(update={"group": REPORTED.group.model_copy(update={"data": "other"})})
    assert check_folder(saved(tmp_path / "apart", REPORTED, other)).ok


def test_members_of_a_group_are_headed_alike(tmp_path: Path) -> None:
    one, two = measured(1, "rules"), measured(2, "rules")
    folder = saved(tmp_path / "entries", one, two.model_copy(update={"policy": "exclude"}))
    kinds = {(problem.kind, problem.field) for problem in check_folder(folder).problems}
    assert kinds == {("group", "policy")}


def test_members_of_a_group_have_the_same_samples(tmp_path: Path) -> None:
    fewer = changed(measured(2), {"provenance.samples.mcp": 10})
    (problem,) = check_folder(saved(tmp_path / "entries", measured(1), fewer)).problems
    assert (problem.kind, problem.field) == ("group", "provenance.samples")


def test_one_run_under_two_names(tmp_path: Path) -> None:
    report = check_folder(saved(tmp_path / "entries", measured(1), renamed(measured(1), "Another")))
    (problem,) = report.problems
    assert (problem.kind, problem.field) == ("duplicate", "provenance")
    assert "stands in this group already" in problem.message


def test_one_bundle_of_two_runs(tmp_path: Path) -> None:
    other = measured(2).model_copy(update={"bundle": measured(1).bundle})
    (problem,) = check_folder(saved(tmp_path / "entries", measured(1), other)).problems
    assert (problem.kind, problem.field) == ("duplicate", "bundle.sha256")
    judged_twice = [measured(1), measured(1, "official").model_copy(update={"bundle": measured(1).bundle})]
    assert check_folder(saved(tmp_path / "judges", *judged_twice)).ok


def test_one_revision_has_one_set_of_files(tmp_path: Path) -> None:
    files = predict_section("x").data.files | {"mcp": "00"}
    other = changed(measured(2), {"provenance.predict.data.files": files, "group.data_sha256": digest(files)})
    other = renamed(other, other.model)
    (problem,) = check_folder(saved(tmp_path / "entries", measured(1), other)).problems
    assert (problem.kind, problem.field) == ("group", "provenance.predict.data.files.mcp")


def test_the_bundled_data_are_not_official(tmp_path: Path) -> None:
    path = mini_folder() / "mcp_test.jsonl"
    mini = hashlib.sha256(path.read_bytes()).hexdigest()
    found = check_entry(changed(measured(1), {"provenance.predict.data.files.mcp": mini}))
    assert "the file of mcp is that of the bundled data" in " ".join(one.message for one in found)


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    """A pull request can hold a link to anything, such as a device that never ends."""
    folder = saved(tmp_path / "entries", measured(1))
    one = folder / f"{measured(1).slug}.json"
    (folder / "endless.json").symlink_to("/dev/zero")
    (folder / "inside.json").symlink_to(one)
    (folder / "folder.json").mkdir()
    (folder / "large.json").write_bytes(b" " * (MOST_BYTES + 1))
    (folder / "CAPITALS.JSON").write_bytes(one.read_bytes())
    found = {Path(one.file).name: (one.kind, one.message) for one in check_folder(folder).problems}
    assert {name: kind for name, (kind, _) in found.items()} == dict.fromkeys(
        ("endless.json", "inside.json", "folder.json", "large.json", "CAPITALS.JSON"), "schema"
    )
    assert "an entry is a plain file" in found["endless.json"][1]
    assert "read by nothing" in found["CAPITALS.JSON"][1]


def test_no_folder(awb: HereAwb) -> None:
    done = awb("leaderboard", "check", "nowhere")
    assert (done.code, "no such folder" in done.only_complaint) == (2, True)
