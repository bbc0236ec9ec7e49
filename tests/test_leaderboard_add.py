"""`awb leaderboard add`: which runs become entries, under which names, and what is never overwritten unasked."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from agentworldbench.leaderboard.check import check_folder
from agentworldbench.leaderboard.entries import Entry, load_entries, read_entry, sealed
from agentworldbench.leaderboard.provenance import Verification
from agentworldbench.run import evaluate
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, echo_world, hash_verdict
from tests.helpers.whole_runs import options

HASH = "ab" * 32


def two_judges(call: ChatCall) -> Reply:
    """Every model and both judges answer."""
    return hash_verdict(call) if call.model.startswith("judge") else echo_world(call)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`judged` (by two judges), `copied` and `again` (a baseline twice), `part` (a subset)."""
    folder = tmp_path_factory.mktemp("runs")
    data = make_official_folder(folder / "data", domains=("swe", "os"), trajectories=6).folder
    with ScriptedServer(two_judges) as server:
        evaluate(**options(server, folder / "judged", data, judge=["openai-api/judge", "openai-api/judge2"]))
    for name in ("copied", "again"):
        evaluate(model="baseline/copy-last", data=str(data), output=folder / name)
    evaluate(model="baseline/copy-last", data=str(data), output=folder / "part", limit="3")
    return folder


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def entries_of(folder: Path) -> dict[str, Entry]:
    return {one.slug: one for one in load_entries(folder)}


def test_a_judged_run_is_an_entry_a_judge(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    done = awb("leaderboard", "add", runs / "judged")
    assert (done.code, done.err) == (0, "")
    folder = tmp_path / "leaderboards" / "entries"
    found = entries_of(folder)
    assert {one.group.judge for one in found.values()} == {"openai-api/judge", "openai-api/judge2"}
    assert done.out.splitlines() == [
        f"added: leaderboards/entries/{one.slug}.json ({one.model}, {one.overall:.2f})"
        for one in sorted(found.values(), key=lambda one: str(one.group.judge))
    ]
    assert check_folder(folder).problems == ()
    run = json.loads((runs / "judged" / "run.json").read_text(encoding="utf-8"))
    results = json.loads((runs / "judged" / "results.json").read_text(encoding="utf-8"))
    for one in found.values():
        (judge,) = [some for some in results["judges"] if some["judge"]["model"] == one.group.judge]
        stored = one.model_dump(mode="json")
        assert stored["readings"] == {"strict": judge["strict"], "official": judge["official"]}
        assert stored["costs"]["predictions"] == results["predictions"]["spent"]
        assert stored["costs"]["verdicts"] == judge["spent"]
        assert stored["costs"]["answers"] == sum(results["predictions"]["samples"].values())
        assert stored["judges"][0]["judge"] == judge["judge"]
        assert stored["provenance"]["predict"] == run["predict"]
        assert stored["provenance"]["begun"] == run["created_at"]
        assert stored["provenance"]["git_commit"] == run["sessions"][-1]["git_commit"]
        assert stored["provenance"]["samples"] == run["selection"]["samples"]
        assert (one.group.selection, one.group.context_policy, one.group.gui_diagnostics) == (
            "whole",
            "error",
            False,
        )
    assert str(runs) not in "".join(path.read_text(encoding="utf-8") for path in folder.iterdir()), (
        "no path of this machine"
    )
    assert "127.0.0.1" not in "".join(path.read_text(encoding="utf-8") for path in folder.iterdir()), (
        "and no address"
    )


def test_twice_is_the_same_as_once(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    awb("leaderboard", "add", runs / "judged", "--entries", "e")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "e").iterdir()}
    done = awb("leaderboard", "add", runs / "judged", "--entries", "e")
    assert [line.partition(":")[0] for line in done.out.splitlines()] == ["unchanged", "unchanged"]
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "e").iterdir()
    } == before


def test_one_judge_alone(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    assert (
        awb("leaderboard", "add", runs / "judged", "--entries", "e", "--judge", "openai-api/judge2").code == 0
    )
    (one,) = load_entries(tmp_path / "e")
    assert one.group.judge == "openai-api/judge2"
    results = json.loads((runs / "judged" / "results.json").read_text(encoding="utf-8"))
    for reading in ("strict", "official"):
        results["judges"][0][reading]["macro_floor"]["total"] = None
    shutil.copytree(runs / "judged", tmp_path / "half")
    (tmp_path / "half" / "results.json").write_text(json.dumps(results), encoding="utf-8")
    assert (
        "scored no sample of a domain" in awb("leaderboard", "add", "half", "--entries", "f").only_complaint
    )
    assert awb("leaderboard", "add", "half", "--entries", "f", "--judge", "openai-api/judge2").code == 0
    done = awb("leaderboard", "add", runs / "judged", "--judge", "nobody")
    assert done.code == 2
    assert "the run has no such judge; it has openai-api/judge (" in done.only_complaint


def test_what_people_say_stays_until_they_say_something_else(
    runs: Path, tmp_path: Path, awb: HereAwb
) -> None:
    words = ("leaderboard", "add", runs / "copied", "--entries", "e")
    told = (
        "--submitter",
        "Ada",
        "--submitter-url",
        "https://example.org/ada",
        "--contact",
        "ada@example.org",
    )
    assert awb(
        *words, *told, "--bundle", HASH.upper(), "--bundle-url", "https://example.org/b.zip"
    ).out.startswith("added:")
    assert awb(*words).out.startswith("unchanged:")
    (one,) = load_entries(tmp_path / "e")
    assert one.submitter is not None and one.bundle is not None
    assert (one.submitter.name, one.submitter.contact, one.bundle.sha256) == ("Ada", "ada@example.org", HASH)
    assert awb(*words, "--submitter", "Grace").out.startswith("renewed:")
    (one,) = load_entries(tmp_path / "e")
    assert one.submitter is not None and one.bundle is not None
    assert (one.submitter.name, one.submitter.url) == ("Grace", None)


def test_a_verification_ends_with_the_numbers_it_was_of(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    words = ("leaderboard", "add", runs / "copied", "--entries", "e")
    awb(*words, "--bundle", HASH)
    (path,) = (tmp_path / "e").iterdir()
    old = read_entry(path)
    verification = Verification(
        by="a maintainer",
        date="2030-11-30T00:00:00Z",
        bundle_sha256=HASH,
        harness="0.1.0",
        warnings=0,
    )
    verified = sealed(old, verification)
    path.write_text(verified.model_dump_json(indent=2), encoding="utf-8")
    assert awb(*words).out.startswith("unchanged:")
    assert read_entry(path) == verified
    assert awb(*words, "--bundle", "cd" * 32).out.startswith("renewed:")
    assert (read_entry(path).status, read_entry(path).verification) == ("measured", None)


def test_another_run_is_not_overwritten_unasked(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    awb("leaderboard", "add", runs / "copied", "--entries", "e")
    (path,) = (tmp_path / "e").iterdir()
    before = path.read_bytes()
    done = awb("leaderboard", "add", runs / "again", "--entries", "e")
    assert done.code == 2
    assert f"e/{path.name}: holds the entry of another run (begun 20" in done.only_complaint
    assert "--force replaces it, --name enters this one" in done.only_complaint
    assert path.read_bytes() == before
    assert awb("leaderboard", "add", runs / "again", "--entries", "e", "--name", "Copy (again)").code == 0
    assert sorted(one.model for one in load_entries(tmp_path / "e")) == ["Copy (again)", "baseline/copy-last"]
    assert check_folder(tmp_path / "e").ok
    assert awb("leaderboard", "add", runs / "again", "--entries", "e", "--force").out.startswith("replaced:")
    assert path.read_bytes() != before


def test_nothing_is_written_when_one_entry_cannot_be(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    awb("leaderboard", "add", runs / "judged", "--entries", "e")
    first, second = sorted((tmp_path / "e").iterdir())
    first.unlink()
    second.write_text("{", encoding="utf-8")
    done = awb("leaderboard", "add", runs / "judged", "--entries", "e")
    assert (done.code, "not a leaderboard entry" in done.only_complaint) == (2, True)
    assert sorted((tmp_path / "e").iterdir()) == [second]
    assert awb("leaderboard", "add", runs / "judged", "--entries", "e", "--force").code == 0
    assert sorted((tmp_path / "e").iterdir()) == sorted([first, second])


@pytest.mark.parametrize("words", [["leaderboard", "add"], ["submit", "--submitter", "Ann", "--dry-run"]])
def test_a_run_whose_times_are_none_does_not_become_public(
    runs: Path, tmp_path: Path, awb: HereAwb, words: list[str]
) -> None:
    shutil.copytree(runs / "copied", tmp_path / "odd")
    record = json.loads((tmp_path / "odd/run.json").read_bytes())
    record["sessions"][0]["started_at"] = "yesterday"
    (tmp_path / "odd/run.json").write_text(json.dumps(record), encoding="utf-8")
    done = awb(*words, "odd")
    assert done.code == 2
    assert "odd/run.json: sessions[0].started_at: 'yesterday' is no time such as" in done.only_complaint


def test_a_subset_is_refused_or_marked(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    done = awb("leaderboard", "add", runs / "part", "--entries", "e")
    assert done.code == 2
    assert re.search(r"the run is a subset \(6 of \d+ samples, limit 3 \(", done.only_complaint)
    assert not (tmp_path / "e").exists()
    assert awb("leaderboard", "add", runs / "part", "--entries", "e", "--subset").code == 0
    awb("leaderboard", "add", runs / "copied", "--entries", "e")
    shown = awb("leaderboard", "show", "e", "-f", "md").out
    assert re.search(r"a subset: 6 of \d+ samples, limit 3 \(", shown)
    assert [line for line in shown.splitlines() if line.startswith("| – |")] != []
    assert shown.count("### Rule scores") == 2, "never beside whole runs"
    assert check_folder(tmp_path / "e").ok


def test_a_run_over_some_domains_says_so_everywhere(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    awb("leaderboard", "add", runs / "copied", "--entries", "e")
    told = "2 of 7 domains: SWE, OS"
    for form in ("table", "md", "latex", "html"):
        assert told in awb("leaderboard", "show", "e", "-f", form).out, form
    (group,) = json.loads(awb("leaderboard", "show", "e", "-f", "json").out)["groups"]
    assert group["domains"] == group["group"]["domains"] == ["swe", "os"]
    (row,) = csv.DictReader(io.StringIO(awb("leaderboard", "show", "e", "-f", "csv").out))
    assert row["domains"] == "swe os"
    awb("leaderboard", "build", "e", "-o", "site")
    assert told in (tmp_path / "site/README.md").read_text(encoding="utf-8")
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert f", {told}</h2>" in page and f"<dt>Domains</dt><dd>{told}</dd>" in page


def test_baselines_are_anchors_without_a_rank(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    awb("leaderboard", "add", runs / "copied", "--entries", "e")
    shown = awb("leaderboard", "show", "e", "-f", "json").out
    assert [one["rank"] for one in json.loads(shown)["groups"][0]["entries"]] == [None]
    assert "Baselines of the harness are anchors" in awb("leaderboard", "show", "e").out


def test_what_is_unfinished_is_refused_with_what_to_do(runs: Path, tmp_path: Path, awb: HereAwb) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "copied", run)
    (run / "results.json").unlink()
    done = awb("leaderboard", "add", run)
    assert (done.code, f"`awb score {run}` makes them" in done.only_complaint) == (2, True)
    shutil.copytree(runs / "copied", tmp_path / "cut")
    results = json.loads((runs / "copied" / "results.json").read_text(encoding="utf-8"))
    (tmp_path / "cut" / "results.json").write_text(
        json.dumps(results | {"complete": False}), encoding="utf-8"
    )
    done = awb("leaderboard", "add", "cut")
    assert (done.code, "not all samples of the run have been asked" in done.only_complaint) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--contact", "a@b"], "--submitter-url and --contact need --submitter NAME"),
        (["--bundle-url", "https://a"], "--bundle-url needs --bundle SHA256"),
        (["--bundle", "abc"], "--bundle abc: no SHA-256, which has 64 hex digits"),
        (
            ["--bundle", HASH, "--bundle-url", "file:///x"],
            "--bundle-url file:///x: expected an address beginning",
        ),
        (["--submitter", "A", "--submitter-url", "javascript:alert(1)"], "expected an address beginning"),
        (
            ["--bundle", HASH, "--bundle-url", "https://ann:word@a.org"],
            "--bundle-url: the address holds a user name",
        ),
        (
            ["--name", "GPT-5\u202e4"],
            "--name: holds U+202E RIGHT-TO-LEFT OVERRIDE, which is not shown as it stands",
        ),
        (["--submitter", "Ann\nBest"], "--submitter: holds U+000A a control character"),
        (["--submitter", "A", "--contact", "\x1b[2Ja@b"], "--contact: holds U+001B"),
        (["--name", "x" * 301], "--name: expected 1 to 300 characters"),
        (["--submitter", ""], "--submitter: expected 1 to 200 characters"),
    ],
)
def test_flags_that_do_not_fit(runs: Path, awb: HereAwb, words: list[str], message: str) -> None:
    done = awb("leaderboard", "add", runs / "copied", *words)
    assert (done.code, message in done.only_complaint) == (2, True)
