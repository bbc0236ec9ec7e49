"""A path that is no run, and a run whose data have moved: every command says what is there, and what to give instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentworldbench.run import evaluate
from tests.helpers.awb_command import HereAwb
from tests.helpers.honest_bundle import bundle_folder, make_rows, packed

COMMANDS = (
    "score SUBJECT",
    "report SUBJECT -o page",
    "submit SUBJECT --dry-run",
    "compare SUBJECT SUBJECT",
    "judge SUBJECT --judge openai-api/j --judge-base-url http://127.0.0.1:1/v1",
    *(f"export {form} SUBJECT -o exported" for form in ("official", "lm-eval", "inspect", "eee", "parquet")),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `run`, its `bundle` and `bundle.awb.zip`; its data have moved from `rows` to `moved`."""
    folder = tmp_path_factory.mktemp("places")
    rows = make_rows(folder / "rows")
    evaluate(model="baseline/copy-last", data=str(rows), tasks=["mcp"], output=folder / "run")
    bundle_folder(folder / "run", folder / "bundle", rows)
    packed(folder / "bundle", folder / "bundle.awb.zip")
    rows.rename(folder / "moved")
    return folder


@pytest.fixture
def awb(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(home, monkeypatch, capsys)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.split()[:2]))
def test_data_that_have_moved_are_asked_for_by_their_flag(home: Path, awb: HereAwb, command: str) -> None:
    done = awb(*command.replace("SUBJECT", "run").split())
    told = f"its data were in the folder {home / 'rows'}, which is not there (any more); --data FOLDER says where"
    assert (done.code, told in done.complaint) == (2, True), done.complaint


@pytest.mark.parametrize(
    "command", ["score SUBJECT", "export inspect SUBJECT -o x", "submit SUBJECT --dry-run"]
)
def test_and_found_there(home: Path, tmp_path: Path, awb: HereAwb, command: str) -> None:
    shutil.copytree(home / "run", tmp_path / "run")
    words = command.replace("SUBJECT", str(tmp_path / "run")).replace("-o x", f"-o {tmp_path / 'x'}").split()
    done = awb(*words, "--data", "moved")
    assert done.code == 0, done.err
    other = awb(*words, "--data", "mini")
    assert (other.code, "is not the one this run was made with (looked for in mini)" in other.complaint) == (
        2,
        True,
    )


@pytest.mark.parametrize("subject", ["run", "bundle", "bundle.awb.zip"])
def test_a_verification_says_the_flag_that_it_needs(awb: HereAwb, subject: str) -> None:
    done = awb("verify", subject)
    told = (
        "the data are a folder of whoever made the run (folder rows), and no path out of a record is opened"
    )
    assert (done.code, f"{told}; --data FOLDER names them" in done.out) == (7, True)
    assert awb("verify", subject, "--data", "moved").code == 0
    other = awb("verify", subject, "--data", "mini")
    assert (other.code, "--data mini: the file of 'mcp' is not the one that the run names" in other.out) == (
        7,
        True,
    )


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        ("nowhere", "nowhere: no run.json there (no such folder); give the directory of a run"),
        ("moved", "moved: no run.json there; give the directory of a run"),
        (".", ".: no run.json there (runs in it: bundle, run); give"),
        ("run/predictions.jsonl", "run/predictions.jsonl: no run.json there (its folder, run, is one); give"),
        (
            "bundle.awb.zip",
            "no run.json there (a bundle or another archive: `awb verify` takes a bundle as it is",
        ),
    ],
)
def test_what_is_no_run_is_named(awb: HereAwb, subject: str, told: str) -> None:
    done = awb("export", "parquet", subject, "-o", "exported")
    assert (done.code, told in done.only_complaint) == (2, True), done.err
    assert awb("report", subject).only_complaint == done.only_complaint
    if subject not in ("nowhere", "bundle.awb.zip"):
        assert awb("verify", subject).only_complaint == done.only_complaint
