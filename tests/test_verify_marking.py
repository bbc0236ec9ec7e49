"""`awb verify --verified-by`: an entry is called verified after its bundle was accepted, and for nothing less.

The bundle is that of a baseline on rows of our own, so that all of it is made without a server.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.leaderboard.adding import write_entry
from agentworldbench.leaderboard.check import check_folder
from agentworldbench.leaderboard.entries import Entry, entry_digest, load_entries, read_entry
from agentworldbench.leaderboard.measured import renamed
from agentworldbench.run import evaluate
from agentworldbench.version import __version__
from tests.helpers.awb_command import HereAwb
from tests.helpers.honest_bundle import bundle_folder, edit_json, make_rows, packed


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `rows`, a `run` and its `bundle.awb.zip`."""
    folder = tmp_path_factory.mktemp("marking")
    rows = make_rows(folder / "rows")
    evaluate(model="baseline/copy-last", data=str(rows), output=folder / "run")
    bundle_folder(folder / "run", folder / "bundle", rows)
    packed(folder / "bundle", folder / "bundle.awb.zip")
    return folder


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.fixture
def entry(home: Path, tmp_path: Path, awb: HereAwb) -> Path:
    """The run's entry, as its submitter made it."""
    awb("leaderboard", "add", home / "run", "--entries", "e", "--submitter", "Ann")
    (path,) = (tmp_path / "e").iterdir()
    return path


def test_an_accepted_bundle_makes_a_verified_entry(home: Path, entry: Path, awb: HereAwb) -> None:
    before = read_entry(entry)
    words = ("verify", home / "bundle.awb.zip", "--data", home / "rows", "--entry", entry)
    done = awb(*words, "--verified-by", "Grace Maintainer", "--json")
    report = json.loads(done.out)
    after = read_entry(entry)
    assert (done.code, report["verdict"], before.status, after.status) == (
        0,
        "accepted",
        "measured",
        "verified",
    )
    found = after.verification
    assert found is not None and after.bundle is not None
    assert (found.by, found.harness, found.verdict) == ("Grace Maintainer", __version__, "accepted")
    assert found.bundle_sha256 == after.bundle.sha256 == report["bundle_sha256"]
    assert found.entry_sha256 == entry_digest(after)
    assert (found.audit, after.submitter) == (None, before.submitter)
    assert found.warnings == sum(one["severity"] == "warning" for one in report["findings"])
    assert f"Verified: {entry} (baseline/copy-last; Grace Maintainer, " in done.err
    assert check_folder(entry.parent).ok
    shown = awb("leaderboard", "show", entry.parent, "-f", "md").out
    assert f"verified by Grace Maintainer, {found.date[:10]}, awb {__version__}, no audit" in shown

    again = awb(*words)
    assert (again.code, "only a maintainer says that" in again.out) == (0, True)
    assert awb("leaderboard", "add", home / "run", "--entries", "e").out.startswith("unchanged:")
    edit_json(entry.parent, entry.name, lambda value: value["costs"].update(answers=7))
    told = awb("leaderboard", "check", entry.parent).out
    assert "was changed after it was verified; `awb verify BUNDLE --entry FILE --verified-by NAME`" in told


EDITS: dict[str, Any] = {
    "submitter": {"name": "Somebody Else"},
    "submitter.url": "https://elsewhere.example.org",
    "submitter.contact": "else@example.org",
    "note": "The best of all models.",
    "source": {"title": "A paper", "identifier": "1", "location": "p. 1", "url": "https://example.org/paper"},
    "bundle.url": "https://elsewhere.example.org/bundle.awb.zip",
    "verification.by": "Somebody Else",
    "verification.date": "2099-01-01T00:00:00Z",
    "verification.warnings": 7,
    "verification.harness": "9.9.9",
    "costs.answers": 7,
}


def test_every_edit_of_a_verified_entry_is_found(home: Path, entry: Path, awb: HereAwb) -> None:
    words = ("verify", home / "bundle.awb.zip", "--data", home / "rows", "--entry", entry)
    awb(*words, "--verified-by", "Grace Maintainer")
    whole = entry.read_text(encoding="utf-8")
    for place, value in EDITS.items():
        edited = json.loads(whole)
        *way, last = place.split(".")
        inner = edited
        for step in way:
            inner = inner[step]
        inner[last] = value
        entry.write_text(json.dumps(edited), encoding="utf-8")
        assert "was changed after it was verified" in awb("leaderboard", "check", entry.parent).out, place
    named = renamed(Entry.model_validate_json(whole), "A Better Name")
    entry.unlink()
    entry = entry.with_name(f"{named.slug}.json")
    write_entry(entry, named)
    assert "was changed after it was verified" in awb("leaderboard", "check", entry.parent).out
    value = json.loads(whole)
    value["verification"]["numbers_sha256"] = value["verification"].pop("entry_sha256")
    entry.unlink()
    older = entry.with_name(f"{value['slug']}.json")
    older.write_text(json.dumps(value), encoding="utf-8")
    assert awb("leaderboard", "show", entry.parent).code == 0, "an older verification is read"
    assert "an older version verified this entry" in awb("leaderboard", "check", entry.parent).out
    words = (*words[:-1], older, "--verified-by", "Grace Maintainer")
    assert awb(*words).code == 0
    assert check_folder(entry.parent).ok, "and the command that check names mends it"


def test_what_could_not_be_checked_is_not_verified(home: Path, entry: Path, awb: HereAwb) -> None:
    before = entry.read_bytes()
    done = awb("verify", home / "bundle.awb.zip", "--entry", entry, "--verified-by", "Grace")
    assert (done.code, entry.read_bytes()) == (7, before)
    assert f"{entry}: stays as it is: not everything could be checked" in done.err
    assert "--data FOLDER names them" in done.err


def test_what_is_refused_is_not_verified(home: Path, entry: Path, tmp_path: Path, awb: HereAwb) -> None:
    edit_json(entry.parent, entry.name, lambda value: value["rules"].update(overall_skill=0.5))
    before = entry.read_bytes()
    words = ("--data", home / "rows", "--entry", entry, "--verified-by", "Grace")
    done = awb("verify", home / "bundle.awb.zip", *words)
    assert (done.code, entry.read_bytes()) == (6, before)
    assert "stays as it is: the bundle is refused" in done.err


def test_what_no_verdict_could_mend_is_told_at_once(home: Path, entry: Path, awb: HereAwb) -> None:
    bundle, mark = home / "bundle.awb.zip", ("--entry", entry, "--verified-by")
    for words, message in (
        ((bundle, "--verified-by", "Grace"), "--verified-by needs --entry FILE"),
        ((home / "run", *mark, "Grace"), "is a run directory, which has no hash"),
        ((bundle, *mark, " "), "--verified-by: expected 1 to 200 characters"),
        ((bundle, *mark, "Gra\u202ece"), "holds U+202E"),
        ((bundle, "--entry", "nowhere.json", "--verified-by", "G"), "nowhere.json: cannot be read"),
    ):
        done = awb("verify", *words)
        assert (done.code, message in done.complaint) == (2, True), done.complaint
    reported = entry.with_name(f"{load_entries()[0].slug}.json")
    reported.write_text(load_entries()[0].model_dump_json(), encoding="utf-8")
    done = awb("verify", bundle, "--entry", reported, "--verified-by", "Grace")
    assert (done.code, "copied from a publication" in done.complaint) == (2, True)
