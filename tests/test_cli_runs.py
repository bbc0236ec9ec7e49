"""Tests of the command line over several sessions: keys in `.env`, moved data, and who may go on.

The same command resumes its run; another configuration, a smaller selection and other data are refused.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench import evaluate
from agentworldbench.errors import ConfigError
from tests.helpers.asking import KEY
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.whole_runs import asked, good

COPY = ("run", "--model", "baseline/copy-last", "--limit", "1")


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(good) as running:
        yield running


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("run", "--model", "replay/~nobody-here/run"), "model 'replay/~nobody-here/run'"),
        ((*COPY, "-o", "out", "--cache", "~nobody-here/cache"), "--cache"),
        ((*COPY, "-o", "~nobody-here/out"), "--output"),
        (("doctor", "--model", "baseline/empty", "-o", "~nobody-here/out"), "--output"),
        (("infer", "--model", "baseline/empty", "--data-dir", "~nobody-here/rows"), "--data-dir"),
    ],
    ids=["replay", "cache", "run", "doctor", "data-dir"],
)
def test_a_home_that_nobody_has_is_named(
    words: tuple[str, ...], given: str, awb: HereAwb, tmp_path: Path
) -> None:
    done = awb(*words)
    assert done.code == 2
    assert f"{given}: ~nobody-here" in done.err
    assert "no home directory is known for '~nobody-here'; write the path without it" in done.err
    assert not list(tmp_path.iterdir())


def test_keys_may_stand_in_dotenv_and_the_environment_wins(
    tmp_path: Path, awb: HereAwb, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-from-dotenv-0123456789\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "forgotten after the test, whatever is loaded meanwhile")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_API_BASE", f"http://127.0.0.1:{closed_port}")
    words = ("run", "--model", "anthropic/claude-opus-4-6", "--limit", "1", "--max-retries", "0", "-o", "out")
    done = awb(*words)
    assert done.code == 2
    assert "no credentials" not in done.err
    assert "sk-from-dotenv" not in done.err + done.out
    assert not any(b"sk-from-dotenv" in path.read_bytes() for path in (tmp_path / "out").iterdir())


def test_evaluate_reads_dotenv_too_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ScriptedServer, awb: HereAwb
) -> None:
    (tmp_path / ".env").write_text(f"AWB_API_KEY={KEY}\n")
    monkeypatch.setenv("AWB_API_KEY", "forgotten after the test, whatever is loaded meanwhile")
    monkeypatch.delenv("AWB_API_KEY")
    evaluate("openai-api/world", base_url=server.base_url, tasks="swe", limit=1, output=tmp_path / "first")
    monkeypatch.setenv("AWB_API_KEY", "sk-of-the-environment-01234567")
    evaluate("openai-api/world", base_url=server.base_url, tasks="swe", limit=1, output=tmp_path / "second")
    assert [call.headers["authorization"] for call in server.calls] == [
        f"Bearer {KEY}",
        "Bearer sk-of-the-environment-01234567",
    ]
    (tmp_path / ".env").write_bytes(b"AWB_API_KEY=\xff\n")
    with pytest.raises(ConfigError, match=r"^\.env: cannot be read"):
        evaluate("baseline/empty", limit=1, output=tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_a_dotenv_that_is_no_text(tmp_path: Path, awb: HereAwb) -> None:
    (tmp_path / ".env").write_bytes(b"OPENAI_API_KEY=\xff\n")
    done = awb("leaderboard", "show")
    assert (done.code, ".env: cannot be read" in done.only_complaint) == (2, True)


def test_a_run_is_found_again_from_elsewhere_and_with_moved_data(tmp_path: Path, awb: HereAwb) -> None:
    make_official_folder(tmp_path / "data", domains=("swe", "os"))
    first = awb("run", "--model", "baseline/copy-last", "--data", "data", "-o", "out")
    assert first.code == 0
    (tmp_path / "data").rename(tmp_path / "moved")
    lost = awb("score", "out")
    assert (
        lost.code,
        f"its data were in the folder {tmp_path / 'data'}, which is not there" in lost.only_complaint,
    ) == (2, True)
    again = awb("score", "out", "--data", "moved")
    assert (again.code, again.out) == (0, first.out)
    other = awb("score", "out", "--data", "mini")
    assert (other.code, "is not the one this run was made with" in other.only_complaint) == (2, True)
    make_official_folder(tmp_path / "data", domains=("swe", "os"), seed=1)
    changed = awb("score", "out")
    assert (changed.code, "out: the data of domain " in changed.only_complaint) == (2, True)


def test_moved_data_are_judged_where_they_are(tmp_path: Path, awb: HereAwb, server: ScriptedServer) -> None:
    make_official_folder(tmp_path / "data", domains=("swe",), trajectories=1)
    assert awb("run", "--model", "baseline/copy-last", "--data", "data", "-o", "out").code == 0
    (tmp_path / "data").rename(tmp_path / "moved")
    words = ("judge", "out", "--judge", "openai-api/judge", "--judge-base-url", server.base_url)
    lost = awb(*words)
    assert (lost.code, "its data were in the folder" in lost.only_complaint) == (2, True)
    make_official_folder(tmp_path / "other", domains=("swe",), seed=1)
    other = awb(*words, "--data", "other")
    assert (other.code, "out: the data of domain 'swe' is not" in other.only_complaint) == (2, True)
    assert asked(server)["judge"] == 0
    done = awb(*words, "--data", "moved")
    assert (done.code, "Judge scores of baseline/copy-last" in done.out) == (0, True)
    assert asked(server)["judge"] > 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_folders_named_like_domains_do_not_hide_the_bundled_tasks(
    tmp_path: Path, awb: HereAwb, when: str
) -> None:
    def make_folders() -> None:
        for domain in ("terminal", "swe"):
            (tmp_path / domain).mkdir()

    words = ("run", "--model", "baseline/copy-last", "--limit", "2", "-o", "out", "-t", "terminal,swe")
    if when == "before":
        make_folders()
    first = awb(*words)
    assert first.code == 0, first.err
    assert json.loads((tmp_path / "out" / "run.json").read_text())["selection"]["tasks"] == [
        "terminal",
        "swe",
    ]
    if when == "after":
        make_folders()
    scored = awb("score", "out")
    assert (scored.code, scored.out) == (0, first.out)
    again = awb(*words)
    assert (again.code, again.out, "Nothing to ask" in again.err) == (0, first.out, True)


def test_a_line_that_cannot_be_read_is_told_and_asked_again(tmp_path: Path, awb: HereAwb) -> None:
    first = awb(*COPY, "-o", "out")
    journal = tmp_path / "out" / "predictions.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"junk\n", *lines[2:]]))
    again = awb(*COPY, "-o", "out")
    assert (again.code, again.out) == (0, first.out)
    told = [line for line in again.err.splitlines() if "cannot be read" in line]
    assert told == ["out/predictions.jsonl: line 2 cannot be read and is left out"]
    assert "Asking for 1 prediction and 0 verdicts" in again.err


def test_another_predict_configuration_is_refused_with_the_fields_named(tmp_path: Path, awb: HereAwb) -> None:
    assert awb(*COPY, "-o", "out", "--temperature", "0").code == 0
    kept = (tmp_path / "out" / "run.json").read_bytes()
    done = awb("run", "--model", "baseline/empty", "--limit", "1", "-o", "out", "--temperature", "0.5")
    assert done.code == 2
    assert "out: made with another configuration: " in done.complaint
    assert "predict.model.name was copy-last, now empty" in done.complaint
    assert "predict.sampling.*.temperature was 0.0, now 0.5" in done.complaint
    assert done.complaint.endswith("choose another --output")
    assert (tmp_path / "out" / "run.json").read_bytes() == kept


def test_a_smaller_selection_is_refused_and_a_larger_one_grows(tmp_path: Path, awb: HereAwb) -> None:
    words = ("run", "--model", "baseline/copy-last", "-o", "out")
    assert awb(*words, "--limit", "2").code == 0
    done = awb(*words, "--limit", "1")
    assert (done.code, "made for a larger selection (7 samples" in done.complaint) == (2, True)
    done = awb(*words, "--limit", "2", "-t", "swe")
    assert (done.code, "made for a larger selection (6 samples or domains" in done.complaint) == (2, True)
    assert awb(*words, "--limit", "3").code == 0
    lines = (tmp_path / "out" / "predictions.jsonl").read_bytes().splitlines()
    assert len({json.loads(line)["sample_id"] for line in lines}) == len(lines) == 21


def test_the_same_command_finds_its_run_again(tmp_path: Path, awb: HereAwb) -> None:
    first = awb(*COPY)
    again = awb(*COPY)
    assert (first.code, again.code, first.out) == (0, 0, again.out)
    assert "Nothing to ask" in again.err
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_dry_run_and_display_none_leave_nothing_behind(tmp_path: Path, awb: HereAwb) -> None:
    done = awb(*COPY, "--dry-run")
    assert (done.code, done.out, list(tmp_path.iterdir())) == (0, "", [])
    assert "Dry run: nothing was asked." in done.err
    assert "Asking" not in awb(*COPY, "--display", "none").err


def test_domains_without_samples_are_not_listed(awb: HereAwb) -> None:
    told = awb(
        "run",
        "--model",
        "baseline/copy-last",
        "--sample-id",
        "swe/973404335328519/1",
        "--dry-run",
        "-o",
        "out",
    )
    (line,) = [line for line in told.err.splitlines() if line.startswith("Data: ")]
    assert line.endswith("Samples: swe 1.")
