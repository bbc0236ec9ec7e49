"""`awb verify` on honest bundles: accepted wherever they are checked, incomplete where something is missing.

What cannot be opened safely is refused with its kind; a report is for programs as well as for people.
"""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.run import evaluate, load_run
from agentworldbench.verification.duplicates import SAME_RESPONSE
from agentworldbench.verification.findings import Report
from agentworldbench.verification.verify import verify
from tests.helpers.awb_command import HereAwb, run_awb
from tests.helpers.honest_bundle import bundle_folder, made_run, make_rows, packed, script, seal
from tests.helpers.own_prompts import own_prompts, use_prompts
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import options

pytestmark = pytest.mark.usefixtures("quick_retries", "few_draws")


@pytest.fixture(scope="module")
def home(quick_retries: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `rows`, the honest `run` and `honest.awb.zip`."""
    folder = tmp_path_factory.mktemp("honest")
    bundle_folder(made_run(folder), folder / "bundle", folder / "rows")
    packed(folder / "bundle", folder / "honest.awb.zip")
    return folder


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def problems(report: Report) -> list[str]:
    """All findings but those about times: a loopback server answers faster than any model."""
    return [
        f"{one.severity} {one.check}: {one.message}"
        for one in report.findings
        if one.check != "times and tokens"
    ]


def test_an_honest_bundle_is_accepted(home: Path) -> None:
    report = verify(home / "honest.awb.zip", data=str(home / "rows"))
    assert (report.verdict, problems(report), report.unchecked) == ("accepted", [], ())
    assert {"archive", "manifest", "numbers", "prompts", "judge prompts", "leaked text", "secrets"} <= set(
        report.checked
    )
    results = load_run(home / "run").results
    assert results is not None
    (judge,) = report.judges
    assert judge.macro == results.judges[0].macro_floor["total"]
    assert report.rules is not None and report.rules.skill == results.rules.overall_skill.floor


@pytest.mark.parametrize("subject", ["bundle", "run"])
def test_so_are_its_folder_and_the_run_itself(home: Path, subject: str) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in (home / subject).iterdir()}
    report = verify(home / subject, data=str(home / "rows"))
    assert (report.verdict, problems(report)) == ("accepted", [])
    assert before == {path.name: path.stat().st_mtime_ns for path in (home / subject).iterdir()}, (
        "nothing is written"
    )
    assert (report.bundle_sha256 is None) == (subject == "run")


def test_it_is_accepted_anywhere(home: Path, tmp_path: Path) -> None:
    """Another home directory, time zone, locale and place, in a process of its own, and the same report."""
    place = tmp_path / "elsewhere with spaces"
    place.mkdir()
    shutil.copy(home / "honest.awb.zip", place)
    shutil.copytree(home / "rows", place / "rows")
    env = {"HOME": str(place), "TZ": "Pacific/Chatham", "LC_ALL": "C", "XDG_CACHE_HOME": str(place)}
    done = run_awb("verify", "honest.awb.zip", "--data", "rows", "--json", cwd=place, env=env)
    assert done.code == 0, done.err
    here = verify(home / "honest.awb.zip", data=str(home / "rows"))
    assert Report.model_validate_json(done.out) == here
    assert "Accepted" in done.err


def test_without_the_data_it_is_incomplete(home: Path, awb: HereAwb) -> None:
    done = awb("verify", home / "honest.awb.zip")
    assert done.code == 7
    assert "--data FOLDER names them" in done.out
    assert "Incomplete" in done.out
    report = verify(home / "honest.awb.zip")
    assert [one.check for one in report.unchecked] == ["data"]
    assert {"prompts", "leaked text", "data", "secrets"}.isdisjoint(report.checked)


def test_without_the_data_changed_scores_are_refused_all_the_same(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    results = json.loads((tmp_path / "bundle/results.json").read_text(encoding="utf-8"))
    results["judges"][0]["strict"]["domains"]["mcp"]["floor"]["total"] += 1
    (tmp_path / "bundle/results.json").write_text(json.dumps(results), encoding="utf-8")
    seal(tmp_path / "bundle")
    report = verify(tmp_path / "bundle")
    assert report.verdict == "refused"
    assert any("domains.mcp.floor.total is" in place for one in report.findings for place in one.where)


@pytest.mark.slow
def test_other_data_are_said_to_be_other_data(home: Path, tmp_path: Path) -> None:
    make_rows(tmp_path / "rows")
    (tmp_path / "rows/mcp_test.jsonl").write_bytes((tmp_path / "rows/mcp_test.jsonl").read_bytes() + b"\n")
    report = verify(home / "honest.awb.zip", data=str(tmp_path / "rows"))
    assert report.verdict == "incomplete"
    assert "the file of 'mcp' is not the one" in report.unchecked[0].why


def test_a_bundle_that_calls_other_files_mini_is_refused(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    for name in ("run.json", "results.json"):
        value = json.loads((tmp_path / "bundle" / name).read_text(encoding="utf-8"))
        value["predict"]["data"]["name"] = "mini"
        (tmp_path / "bundle" / name).write_text(json.dumps(value), encoding="utf-8")
    seal(tmp_path / "bundle", lambda fields: fields["data"].update(name="mini"))
    report = verify(tmp_path / "bundle")
    assert report.verdict == "refused"
    assert any(one.check == "data" and "called 'mini'" in one.message for one in report.findings)


def test_bundled_data_are_found_by_their_name(tmp_path: Path) -> None:
    run = evaluate(model="baseline/copy-last", data="mini", output=tmp_path / "run", limit="3")
    report = verify(run.path)
    assert (report.verdict, report.unchecked) == ("accepted", ())
    assert problems(report) == [
        "warning selection: the run is about a part of its data; a part can be chosen by its outcome"
    ]


@pytest.mark.slow
def test_a_baseline_must_say_what_it_says(tmp_path: Path) -> None:
    """It has no reply to be read again; the sample decides what it answers."""
    run = evaluate(model="baseline/reference", data="mini", output=tmp_path / "run", tasks=["mcp"])
    text = (run.path / "run.json").read_text(encoding="utf-8")
    changed = text.replace("baseline/reference", "baseline/copy-last").replace(
        '"name": "reference"', '"name": "copy-last"'
    )
    (run.path / "run.json").write_text(changed, encoding="utf-8")
    found = {one.message for one in verify(run.path).findings if one.check == "predictions"}
    assert found == {"the observation is not the one that this baseline gives"}
    (run.path / "run.json").write_text(text.replace("baseline/reference", "openai/gpt-5.4"), encoding="utf-8")
    found = {one.message for one in verify(run.path).findings if one.check == "predictions"}
    assert found == {"an observation without the reply that it was taken from"}


def test_the_official_protocol_needs_its_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_prompts(monkeypatch)
    run = made_run(tmp_path, protocol="official")
    report = verify(run, prompts=tmp_path / "none")
    assert "judge prompts" in [one.check for one in report.unchecked]
    assert any("other prompt files" in one.message for one in report.findings), (
        "these are not the official ones"
    )
    monkeypatch.setattr(
        "agentworldbench.verification.material.official_prompts", lambda folder: own_prompts()
    )
    report = verify(run, data=str(tmp_path / "rows"))
    assert (report.verdict, problems(report)) == ("accepted", [])
    assert report.judges[0].policy == "exclude"


@pytest.mark.slow
def test_other_official_prompts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_prompts(monkeypatch, own_prompts(word="kind rules"))
    run = made_run(tmp_path, protocol="official")
    monkeypatch.setattr(
        "agentworldbench.verification.material.official_prompts", lambda folder: own_prompts()
    )
    report = verify(run, data=str(tmp_path / "rows"))
    found = {(one.check, one.message) for one in report.findings if one.severity == "refused"}
    assert {check for check, _ in found} == {"judge prompts"}


def _thinks(call: ChatCall) -> Reply:
    """Reasoning apart for half of the prompts, in the text for the others; some of it quotes a closing tag."""
    reply = script(call)
    if call.model == "judge" or not reply.content:
        return reply
    if int(call.key[:2], 16) % 2:
        quoted = str(reply.content).replace("nothing else", "</think> nothing else")
        return Reply(content=quoted, reasoning_content="It should print what it did.")
    return Reply(content=f"<think>It should print what it did.</think>{reply.content}")


@pytest.mark.slow
@pytest.mark.parametrize("reasoning", [True, False])
def test_reasoning_may_be_left_out(tmp_path: Path, reasoning: bool) -> None:
    run = made_run(tmp_path, _thinks)
    bundle_folder(run, tmp_path / "bundle", tmp_path / "rows", reasoning=reasoning, references=False)
    report = verify(tmp_path / "bundle", data=str(tmp_path / "rows"))
    assert (report.verdict, problems(report)) == ("accepted", [])


@pytest.mark.slow
def test_epochs_and_repeats(tmp_path: Path) -> None:
    run = made_run(tmp_path, epochs=2, judge_repeats=2, tasks=["mcp"])
    report = verify(run, data=str(tmp_path / "rows"))
    assert (report.verdict, report.samples) == ("accepted", 48)
    assert [one for one in problems(report) if "duplicates" not in one] == []


@pytest.mark.slow
def test_a_run_that_asked_again_is_honest(tmp_path: Path) -> None:
    """Failures that were asked for again leave their first records in the journal."""
    run = made_run(tmp_path)

    def second(call: ChatCall) -> Reply:
        return script(call) if call.model == "judge" else Reply(content=f"late answer {call.key}")

    with ScriptedServer(second) as server:
        evaluate(**options(server, run, tmp_path / "rows", max_retries=0, retry_failed=True))
    report = verify(run, data=str(tmp_path / "rows"))
    # The second server counts its answers from 1 again.
    assert (report.verdict, problems(report)) == ("accepted", [f"warning duplicates: {SAME_RESPONSE}"])


@pytest.mark.slow
def test_a_judge_that_is_named_by_a_path(tmp_path: Path) -> None:
    """The path is private, so the bundle tells its last part, and its digest is that of what it tells."""
    names = {"model": "openai-api//home/ann/models/world", "judge": "openai-api//home/ann/models/judge"}

    def by_path(call: ChatCall) -> Reply:
        body = {**call.body, "model": call.model.rpartition("/")[2]}
        return replace(script(replace(call, body=body)), model=call.model)

    rows = make_rows(tmp_path / "rows")
    with ScriptedServer(by_path) as server:
        run = evaluate(**options(server, tmp_path / "run", rows, max_retries=0) | names)
    bundle_folder(run.path, tmp_path / "bundle", rows)
    assert "/home/ann" not in "".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "bundle").iterdir()
    )
    report = verify(tmp_path / "bundle", data=str(rows))
    assert (report.verdict, problems(report)) == ("accepted", [])


def test_an_entry_must_be_that_of_the_bundle(home: Path, tmp_path: Path, awb: HereAwb) -> None:
    run = load_run(home / "bundle")
    assert run.results is not None
    (entry,) = measured_entries(run.results, run.record)
    path = tmp_path / f"{entry.slug}.json"
    path.write_text(entry.model_dump_json(), encoding="utf-8")
    words: list[Any] = ["verify", home / "honest.awb.zip", "--data", home / "rows", "--entry", path, "--json"]
    assert awb(*words).code == 0
    raised = entry.model_copy(update={"computed_overall": entry.computed_overall + 2})
    path.write_text(raised.model_dump_json(), encoding="utf-8")
    done = awb(*words)
    assert done.code == 6
    assert "computed_overall is 39.8125, should be 37.8125" in done.out
    said = {"by": "A. Tester", "date": "2026-12-01T09:00:00Z", "harness": "0.1.0", "warnings": 0}
    said |= dict.fromkeys(("bundle_sha256", "entry_sha256"), "0" * 64)
    named = {"status": "verified", "verification": said}
    path.write_text(json.dumps(entry.model_dump(mode="json") | named), encoding="utf-8")
    done = awb(*words)
    assert (done.code, "only a maintainer says that" in done.out) == (0, True)
    other = entry.model_copy(update={"group": entry.group.model_copy(update={"judge": "gpt-5.2"})})
    path.write_text(other.model_dump_json(), encoding="utf-8")
    assert "other data, another protocol or another judge" in awb(*words).out
    path.write_text("{}", encoding="utf-8")
    assert "not a leaderboard entry" in awb(*words).complaint


def append_zeros(path: Path, name: str, size: int) -> None:
    """One more file of `size` zeros, packed as often as it takes of one packed mebibyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed_zeros = block * (size >> 20) + packer.flush()
    info = zipfile.ZipInfo(name)
    info.compress_type, info.file_size, info.compress_size = zipfile.ZIP_DEFLATED, size, len(packed_zeros)
    info.CRC = 0
    with zipfile.ZipFile(path, "a") as archive:
        assert archive.fp is not None
        archive.fp.seek(archive.start_dir)
        info.header_offset = archive.start_dir
        archive.fp.write(info.FileHeader(zip64=True) + packed_zeros)
        archive.filelist.append(info)
        archive.start_dir = archive.fp.tell()
        archive._didModify = True


def test_an_archive_is_refused_with_its_reason(home: Path, tmp_path: Path, awb: HereAwb) -> None:
    link = tmp_path / "link.awb.zip"
    shutil.copy(home / "honest.awb.zip", link)
    with zipfile.ZipFile(link, "a") as archive:
        info = zipfile.ZipInfo("passwd")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    bomb = tmp_path / "bomb.awb.zip"
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    (tmp_path / "bundle/references.jsonl").unlink()
    packed(tmp_path / "bundle", bomb)
    append_zeros(bomb, "references.jsonl", 10 << 30)
    assert bomb.stat().st_size < 32 << 20
    for path, kind in ((link, "link"), (bomb, "too_large")):
        done = awb("verify", path, "--json")
        assert done.code == 6
        report = Report.model_validate_json(done.out)
        assert [one.check for one in report.findings] == ["archive"]
        assert report.findings[0].message.startswith(f"{kind}: "), report.findings[0].message


@pytest.mark.parametrize("name", ["run.json", "results.json", "predictions.jsonl"])
def test_a_bundle_whose_files_are_no_run_is_refused(home: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    (tmp_path / "bundle" / name).write_text('{"schema_version": 1}\n', encoding="utf-8")
    seal(tmp_path / "bundle")
    report = verify(tmp_path / "bundle", data=str(home / "rows"))
    assert report.verdict == "refused"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"protocol": "kind"}, "protocol 'kind' is none of this harness"),
        ({"epochs": 10**9}, "at most 1,000 are verified of a sample"),
        ({"epochs": 1000, "judges": 2}, "1,000 epochs with 2 verdicts each"),
    ],
)
def test_what_no_run_has(home: Path, tmp_path: Path, change: dict[str, Any], told: str) -> None:
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    run = json.loads((tmp_path / "bundle/run.json").read_text(encoding="utf-8"))
    (judge,) = run["judges"]
    judges = [judge | {"digest": f"{number}{judge['digest']}"} for number in range(change.get("judges", 1))]
    changed = run | change | {"judges": judges}
    (tmp_path / "bundle/run.json").write_text(json.dumps(changed), encoding="utf-8")
    seal(tmp_path / "bundle")
    (finding,) = verify(tmp_path / "bundle", data=str(home / "rows")).findings
    assert (finding.check, finding.severity, told in finding.message) == ("archive", "refused", True)


def test_what_is_neither_bundle_nor_run(tmp_path: Path, awb: HereAwb) -> None:
    with pytest.raises(ConfigError, match="no such bundle"):
        verify(tmp_path / "nothing")
    done = awb("verify", tmp_path)
    assert (done.code, "no run.json there" in done.complaint) == (2, True)
    for flag, value in (
        ("--judge", "openai/gpt-5.4"),
        ("--price", "openai/gpt-5.4=1,2"),
        ("--max-cost", "1"),
    ):
        assert "belong to --audit N" in awb("verify", tmp_path, flag, value).complaint
