"""Tests of `pull.py` for the official prompts, and of `awb data pull official-prompts`: a look-alike repository on
the loopback.

Downloads are broken, refused, offline, sent through a proxy and tampered with; what a network can answer in
place of the files is in test_prompts_pull_faults.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentworldbench.errors import ConfigError, DataError, StoreError
from agentworldbench.official_files import official_prompts
from agentworldbench.pull import BASE_VARIABLE, prompts_for_run, size_text
from tests.helpers.awb_command import HereAwb
from tests.helpers.loopback_repository import (
    CODE,
    DOMAINS,
    TEMPLATE,
    TRACE,
    LoopbackRepository,
    write_checkout,
    write_flat,
)
from tests.helpers.prompt_pulls import MADE, MCP, Pulls, pulls_into

SIZE = len(MADE.files[MCP])


@pytest.fixture
def pulls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pulls]:
    with LoopbackRepository(MADE.files) as repository:
        yield pulls_into(tmp_path / "cache", monkeypatch, repository)


def test_all_files_are_fetched_once(pulls: Pulls, tmp_path: Path) -> None:
    pulled = pulls()
    assert pulls.files() == MADE.files
    assert {file.state for file in pulled.files} == {"fetched"}
    assert {file.name: file.path for file in pulled.files} == {
        name: pulls.folder / name for name in MADE.files
    }
    assert [asked.path for asked in pulls.repository.asked] == list(MADE.files)
    assert pulls.told[0] == (
        f"Official prompts: fetching 8 files ({size_text(sum(map(len, MADE.files.values())))}) "
        f"from {pulls.repository.base} to {pulls.folder}"
    )
    assert pulls.told[1] == f"  1/8 {MCP}, {size_text(len(MADE.files[MCP]))}"
    assert len(pulls.told) == 9
    pulls.told.clear()
    assert {file.state for file in pulls().files} == {"already there"}
    assert (len(pulls.repository.asked), pulls.told) == (8, [])
    assert official_prompts(None, MADE.manifest).user == TEMPLATE
    assert not (tmp_path / TRACE).exists()


def test_only_what_is_missing_or_damaged_is_fetched(pulls: Pulls) -> None:
    write_checkout(pulls.folder, MADE.files)
    (pulls.folder / CODE).unlink()
    (pulls.folder / MCP).write_bytes(b"damaged")
    states = {file.name: file.state for file in pulls().files}
    assert {name for name, state in states.items() if state == "fetched"} == {CODE, MCP}
    assert {asked.path for asked in pulls.repository.asked} == {CODE, MCP}
    assert pulls.files() == MADE.files


def test_a_cache_that_is_whole_is_not_written_to(pulls: Pulls) -> None:
    write_flat(pulls.folder, MADE)
    before = pulls.files()
    assert {file.state for file in pulls().files} == {"already there"}
    assert pulls.files() == before
    assert [path.name for path in pulls.folder.parent.iterdir()] == [pulls.folder.name]
    assert pulls.repository.asked == []


def test_two_at_once_fetch_once(pulls: Pulls) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: pulls(), range(2)))
    assert [len(pulled.files) for pulled in done] == [8, 8]
    assert [asked.path for asked in pulls.repository.asked] == list(MADE.files)


@pytest.mark.parametrize("path", [MCP, CODE])
@pytest.mark.parametrize("change", ["other", "longer", "shorter", "empty", "endless"])
def test_a_wrong_hash_is_refused_and_nothing_stays(pulls: Pulls, path: str, change: str) -> None:
    right = MADE.files[path]
    pulls.repository.files[path] = {
        "other": right.replace(b"e", b"E"),
        "longer": right + b"\n",
        "shorter": right[:-1],
        "empty": b"",
        "endless": right,
    }[change]
    pulls.repository.script.endless = {path} if change == "endless" else set()
    message = pulls.refused("SHA-256 is ")
    expected = next(file.sha256 for file in MADE.manifest.files if file.path == path)
    assert message.startswith(f"{pulls.repository.base}/{path}: SHA-256 is ")
    assert f"expected {expected} ({len(right)} bytes); nothing was kept" in message
    assert set(pulls.files()) == set(list(MADE.files)[: list(MADE.files).index(path)])
    assert ("more than" in message) == (change in ("longer", "endless"))
    pulls.repository.files[path] = right
    pulls.repository.script.endless.clear()
    pulls()
    assert pulls.files() == MADE.files


def test_a_broken_download_goes_on_where_it_broke(pulls: Pulls) -> None:
    pulls.repository.script.cuts[MCP] = [100, 50]
    pulls()
    assert pulls.asked() == [
        None,
        "bytes=100-",
        "bytes=150-",
    ]
    assert pulls.waits == [1.0, 2.0]
    assert pulls.files() == MADE.files


def test_without_range_it_begins_again(pulls: Pulls) -> None:
    pulls.repository.script.ranges = False
    pulls.repository.script.cuts[MCP] = [100]
    pulls()
    assert pulls.asked() == [None, "bytes=100-"]
    assert pulls.files() == MADE.files


def test_another_range_than_asked_for_is_not_taken(pulls: Pulls) -> None:
    pulls.repository.script.shifted = True
    pulls.repository.script.cuts[MCP] = [100]
    pulls()
    assert pulls.asked() == [
        None,
        "bytes=100-",
        None,
    ]
    assert pulls.files() == MADE.files


def test_another_day_goes_on_too(pulls: Pulls) -> None:
    pulls.repository.script.cuts[MCP] = [100, 1, 1, 1]
    pulls.refused(f"{MCP}: .*, 4 times; bring these files")
    assert pulls.files() == {f"{MCP}.part": MADE.files[MCP][:103]}
    assert {file.state for file in pulls().files} == {"fetched"}
    assert pulls.repository.asked[4].range == "bytes=103-"
    assert pulls.files() == MADE.files


@pytest.mark.parametrize(
    ("kept", "ranges"),
    [
        (MADE.files[MCP], []),
        (b"of another file", ["bytes=15-", None]),
        (MADE.files[MCP] + b"more", [f"bytes={SIZE + 4}-", None]),
        (b"x" * SIZE, [f"bytes={SIZE}-", None]),
        (b"", [None]),
    ],
    ids=["whole", "of another file", "too long", "as long", "empty"],
)
def test_what_was_kept_may_be_anything(pulls: Pulls, kept: bytes, ranges: list[str | None]) -> None:
    write_checkout(pulls.folder, {f"{MCP}.part": kept})
    pulls()
    assert pulls.asked() == ranges
    assert pulls.files() == MADE.files


def test_a_busy_server_is_asked_again(pulls: Pulls) -> None:
    pulls.repository.script.statuses[MCP] = [503, 429, 500]
    pulls()
    assert pulls.files() == MADE.files
    pulls.repository.script.statuses[MCP] = [502] * 9
    (pulls.folder / MCP).unlink()
    pulls.refused(f"{MCP}: HTTP 502, 4 times; bring")


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_server_without_the_file_is_asked_once(pulls: Pulls, status: int) -> None:
    pulls.repository.script.statuses[CODE] = [status]
    message = pulls.refused(f"HTTP {status}")
    assert len([asked for asked in pulls.repository.asked if asked.path == CODE]) == 1
    assert (
        f"official prompts: {pulls.repository.base}/{CODE}: HTTP {status}; bring these files of " in message
    )
    assert f"{MADE.manifest.repository} at commit {MADE.manifest.commit}" in message
    assert "--prompts DIR" in message
    assert "awb data pull official-prompts --prompts-from DIR" in message
    assert CODE not in pulls.files()


def test_nobody_listens(pulls: Pulls) -> None:
    pulls.repository.__exit__(None, None, None)
    message = pulls.refused("bring these files")
    assert f"official prompts: {pulls.repository.base}/{MCP}: " in message
    names = "prompts/{mcp,search,terminal,swe,android,web,os}/judge_system_prompt.txt"
    assert f"from elsewhere: {names}, {CODE}; then name their folder with --prompts DIR" in message
    assert pulls.waits == []


@pytest.mark.parametrize("word", ["1", "true", "ON"])
def test_offline_nobody_is_asked(pulls: Pulls, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", word)
    assert "HF_HUB_OFFLINE is set; bring these files" in pulls.refused("HF_HUB_OFFLINE")
    assert pulls.repository.asked == []
    write_checkout(pulls.folder, MADE.files)
    assert {file.state for file in pulls().files} == {"already there"}


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_the_proxy_of_the_environment_is_used(
    pulls: Pulls, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv(BASE_VARIABLE, "http://prompts.example/mirror")
    monkeypatch.setenv(variable, pulls.repository.origin)
    pulls()
    assert {asked.host for asked in pulls.repository.asked} == {"prompts.example"}
    assert pulls.files() == MADE.files


def test_exceptions_to_the_proxy_count(pulls: Pulls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    pulls()
    assert pulls.files() == MADE.files


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (BASE_VARIABLE, "ftp://a/b", "expected the address"),
        (BASE_VARIABLE, "somewhere", "expected the address"),
        (BASE_VARIABLE, "http://a/b?token=hidden", "expected the address"),
        ("HTTP_PROXY", "gopher://a", "proxy or certificate settings of the environment"),
        ("SSL_CERT_FILE", "missing.pem", "SSL_CERT_FILE: no usable file of certificates"),
        ("REQUESTS_CA_BUNDLE", "broken.pem", "REQUESTS_CA_BUNDLE: no usable file of certificates"),
    ],
)
def test_settings_that_cannot_be_used(
    pulls: Pulls, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    Path("broken.pem").write_text("no certificate")
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=message) as refusal:
        pulls()
    assert "hidden" not in str(refusal.value)


def test_a_password_in_the_address_is_not_shown(pulls: Pulls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BASE_VARIABLE, pulls.repository.base.replace("//", "//user:secret@"))
    pulls.repository.script.statuses[CODE] = [404]
    told = [pulls.refused("HTTP 404"), *pulls.told]
    assert len(told) == 9
    assert not [line for line in told if "secret" in line or "user" in line]


def test_a_cache_that_cannot_be_written(pulls: Pulls) -> None:
    pulls.folder.parent.parent.write_text("a file in its place")
    with pytest.raises(StoreError, match=r"cannot be written .*set AWB_CACHE"):
        pulls()


@pytest.mark.parametrize("flat", [False, True], ids=["checkout", "flat"])
def test_from_a_folder(pulls: Pulls, tmp_path: Path, flat: bool) -> None:
    origin = tmp_path / "origin"
    write_flat(origin, MADE) if flat else write_checkout(origin, MADE.files)
    write_checkout(pulls.folder, {CODE: b"an older one"})
    assert {file.state for file in pulls(origin).files} == {"copied"}
    assert pulls.repository.asked == []
    prompts = official_prompts(None, MADE.manifest)
    assert (set(prompts.systems), prompts.user) == (set(DOMAINS), TEMPLATE)
    assert {file.state for file in pulls().files} == {"already there"}


def test_from_a_folder_all_or_nothing(pulls: Pulls, tmp_path: Path) -> None:
    origin = write_checkout(tmp_path / "origin", MADE.files)
    (origin / CODE).write_bytes(b"JUDGE_USER_PROMPT = 'other'\n")
    with pytest.raises(DataError, match=r"task_configs\.py: SHA-256 is"):
        pulls(origin)
    assert not pulls.folder.exists()


def test_a_run_pulls_what_is_missing_after_saying_so(pulls: Pulls, tmp_path: Path) -> None:
    tell = pulls.told.append
    origin = write_flat(tmp_path / "origin", MADE)
    assert prompts_for_run(origin, tell, MADE.manifest).folder == origin
    assert (pulls.told, pulls.repository.asked) == ([], [])
    assert prompts_for_run(None, tell, MADE.manifest).user == TEMPLATE
    assert pulls.told[0].startswith("Official prompts: fetching 8 files")
    (pulls.folder / MCP).write_bytes(b"damaged")
    with pytest.raises(DataError, match="SHA-256 is"):
        prompts_for_run(None, tell, MADE.manifest)


@pytest.fixture
def awb(pulls: Pulls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    monkeypatch.setattr("agentworldbench.official_files.OFFICIAL", MADE.manifest)
    kept = {name: os.environ[name] for name in ("AWB_CACHE", BASE_VARIABLE)}
    here = HereAwb(Path.cwd(), monkeypatch, capsys)
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    return here


def test_the_command_shows_what_was_done(awb: HereAwb, pulls: Pulls) -> None:
    done = awb("data", "pull", "official-prompts")
    assert done.code == 0
    assert "Official prompts: fetching 8 files" in done.err
    assert f"Official prompts ({MADE.manifest.repository} at {MADE.manifest.commit})" in done.out
    assert f"{MCP} " in done.out
    assert f"in{pulls.folder}" in "".join(done.out.split())
    again = awb("data", "pull", "official_prompts".replace("_", "-"))
    assert (again.code, again.err) == (0, "")
    assert again.out.count("already there") == 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("official",), "'official' is not one of 'official-data', 'official-prompts', 'all'"),
        ((), "Missing argument 'WHAT'"),
        (("official-data", "--prompts-from", "."), "goes with official-prompts and all"),
        (("official-prompts", "--prompts-from", "nowhere"), "nowhere: no such folder"),
        (("all", "--prompts-from", "."), "official files are missing"),
    ],
)
def test_wrong_words(awb: HereAwb, words: tuple[str, ...], message: str) -> None:
    done = awb("data", "pull", *words)
    assert done.code == 2
    assert message in done.only_complaint
