"""Tests of what a network, a disk and a user can do to a pull of the official prompts: one line, and what to do.

A page of HTML is never taken for a file, a redirect that leaves HTTP is refused at once, and whatever
ends a pull, no half file stands under a final name.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from agentworldbench.download import LONGEST_PAUSE, is_http, is_page, unreached
from agentworldbench.errors import DataError, StoreError
from agentworldbench.official_files import official_prompts
from agentworldbench.pull import BASE_VARIABLE, Pulled, PulledFile, pull_prompts
from tests.helpers.awb_command import HereAwb, clean_environment
from tests.helpers.file_server import LOGIN_PAGE
from tests.helpers.loopback_repository import LoopbackRepository, write_checkout
from tests.helpers.played_hub import finished
from tests.helpers.prompt_pulls import MADE, MCP, Pulls, pulls_into

LIMIT_S = 60.0
PAGE = "a web page came in place of the file: a login page or a proxy answered"


@pytest.fixture
def pulls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pulls]:
    with LoopbackRepository(MADE.files) as repository:
        yield pulls_into(tmp_path / "cache", monkeypatch, repository)


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        ("text/html; charset=utf-8", LOGIN_PAGE),
        ("", LOGIN_PAGE),
        ("text/plain", b"\xef\xbb\xbf \n<HTML lang=en>" + LOGIN_PAGE),
        ("text/html", b"<head><title>Log in</title></head>"),
        ("text/html", LOGIN_PAGE.ljust(len(MADE.files[MCP]))),
    ],
    ids=["called and is", "is", "is, after blanks", "called", "as long as the file"],
)
@pytest.mark.parametrize("kept", [b"", MADE.files[MCP][:100]], ids=["anew", "to go on"])
def test_a_page_in_place_of_a_file(pulls: Pulls, kind: str, page: bytes, kept: bytes) -> None:
    before = {f"{MCP}.part": kept} if kept else {}
    write_checkout(pulls.folder, before)
    pulls.repository.script.pages[MCP] = (kind, page)
    message = pulls.refused("a web page came")
    assert message.startswith(f"official prompts: {pulls.repository.base}/{MCP}: {PAGE}; open the address")
    assert "set HTTPS_PROXY and NO_PROXY" in message
    assert "--prompts DIR" in message
    assert (pulls.files(), pulls.waits, len(pulls.asked())) == (before, [], 1)
    pulls.repository.script.pages.clear()
    pulls()
    assert pulls.files() == MADE.files


def test_a_login_page_elsewhere_is_named(pulls: Pulls) -> None:
    pulls.repository.files["login"] = LOGIN_PAGE
    pulls.repository.script.redirects[MCP] = "/mirror/login"
    pulls.refused(f"official prompts: {pulls.repository.base}/login: {PAGE}")
    assert pulls.files() == {}


@pytest.mark.parametrize(
    ("data", "kind", "page"),
    [
        (b"<!doctype html>", "", True),
        (b"<!-- x --><p>", "text/html", True),
        (b"<!-- x --><p>", "", False),
        (b"Judge <html>", "text/html", False),
        (b"<final_evaluation>", "text/plain", False),
        (b"", "text/html", False),
    ],
)
def test_what_a_page_is(data: bytes, kind: str, page: bool) -> None:
    assert is_page(data, kind) is page


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
        "data:text/plain,a",
        "http://127.0.0.1:99999/a",
        "http://[a/",
    ],
)
def test_a_redirect_that_leaves_http_is_refused_at_once(pulls: Pulls, target: str) -> None:
    pulls.repository.script.redirects[MCP] = target
    message = pulls.refused("redirected to ")
    assert f"{pulls.repository.base}/{MCP}: redirected to '{target}', which is no http or https" in message
    assert (pulls.files(), pulls.waits, len(pulls.asked())) == ({}, [], 1)


def test_other_redirects_are_followed(pulls: Pulls) -> None:
    pulls.repository.files["moved"] = MADE.files[MCP]
    pulls.repository.script.redirects[MCP] = "/mirror/moved"
    pulls()
    assert pulls.files() == MADE.files


def test_a_redirect_to_itself_ends(pulls: Pulls) -> None:
    pulls.repository.script.redirects[MCP] = f"/mirror/{MCP}"
    pulls.refused("maximum allowed redirects")
    assert pulls.waits == []


@pytest.mark.parametrize(
    ("url", "usable"),
    [
        ("http://a/b", True),
        ("https://user:key@a:8080", True),
        ("HTTP://a", True),
        ("http:///b", False),
        ("http://a:x/", False),
        ("file:///b", False),
        ("a/b", False),
        ("", False),
    ],
)
def test_what_can_be_asked(url: str, usable: bool) -> None:
    assert is_http(url) is usable


@pytest.mark.parametrize(("status", "advice"), [(407, "HTTPS_PROXY=http://USER"), (511, "log in there")])
def test_a_login_that_is_asked_for(pulls: Pulls, status: int, advice: str) -> None:
    pulls.repository.script.statuses[MCP] = [status]
    assert advice in pulls.refused(f"{MCP}: HTTP {status}, the ")
    assert pulls.waits == []


def test_the_server_says_when_to_come_again(pulls: Pulls) -> None:
    pulls.repository.script.statuses[MCP] = [429, 503, 503]
    pulls.repository.script.retry_after = "2"
    pulls()
    assert pulls.waits == [2.0, 2.0, 3.0]
    (pulls.folder / MCP).unlink()
    pulls.waits.clear()
    pulls.repository.script.statuses[MCP] = [429, 429]
    pulls.repository.script.retry_after = "86400"
    pulls()
    assert pulls.waits == [LONGEST_PAUSE, LONGEST_PAUSE]
    (pulls.folder / MCP).unlink()
    pulls.waits.clear()
    pulls.repository.script.statuses[MCP] = [503]
    pulls.repository.script.retry_after = "Mon, 30 Nov 2026 00:00:00 GMT"
    pulls()
    assert pulls.waits == [1.0]


def test_a_proxy_that_is_not_there_is_named(pulls: Pulls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
    message = pulls.refused("by the proxy http://127.0.0.1:1 of the environment; bring")
    assert "secret" not in message
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert unreached(pulls.repository.base, OSError("gone")) == "gone"


def test_a_file_that_changes_between_its_parts(pulls: Pulls) -> None:
    pulls.repository.script.versions[MCP] = [MADE.files[MCP].replace(b"e", b"E")]
    pulls.repository.script.cuts[MCP] = [100]
    pulls()
    assert pulls.asked() == [None, "bytes=100-", None]
    assert pulls.files() == MADE.files


@pytest.fixture
def little_room() -> Iterator[int]:
    """The system refuses to write more than this many bytes to a file of this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = len(MADE.files[MCP]) // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    yield size
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk(pulls: Pulls, little_room: int) -> None:
    with pytest.raises(StoreError, match=r"cannot be written \(File too large\); make room .*AWB_CACHE"):
        pulls()
    assert pulls.files() == {f"{MCP}.part": MADE.files[MCP][:little_room]}
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    pulls()
    assert pulls.asked() == [None, f"bytes={little_room}-"]
    assert pulls.files() == MADE.files


def test_folders_that_cannot_be_looked_into(pulls: Pulls, monkeypatch: pytest.MonkeyPatch) -> None:
    long = Path("n" * 300)
    with pytest.raises(DataError, match=r"--prompts n+: no such folder"):
        official_prompts(long, MADE.manifest)
    with pytest.raises(DataError, match=r"--prompts-from n+: no such folder"):
        pulls(long)
    with pytest.raises(DataError, match="--prompts ~nobody-of-this-name: no such folder"):
        official_prompts(Path("~nobody-of-this-name"), MADE.manifest)
    monkeypatch.setenv("AWB_CACHE", str(long))
    with pytest.raises(DataError, match="cannot be read"):
        official_prompts(None, MADE.manifest)
    with pytest.raises(StoreError, match=r"cannot be written \(File name too long\)"):
        pulls()


def test_a_pull_that_waits_for_another_says_so(pulls: Pulls) -> None:
    told = threading.Event()
    lock = pulls.folder.with_name(f"{pulls.folder.name}.lock")
    lock.parent.mkdir(parents=True)

    def tell(line: str) -> None:
        pulls.told.append(line)
        told.set()

    with ThreadPoolExecutor(1) as pool:
        with FileLock(lock):
            waiting = pool.submit(pull_prompts, tell, MADE.manifest)
            assert told.wait(LIMIT_S)
            assert pulls.told == [f"another awb is fetching these files (it holds {lock}); waiting for it"]
            assert pulls.repository.asked == []
        assert len(waiting.result(LIMIT_S).files) == 8
    assert pulls.files() == MADE.files


def test_an_interrupted_pull_goes_on(pulls: Pulls) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    pulls.repository.script.cuts[MCP] = [100]
    with pytest.raises(KeyboardInterrupt):
        pull_prompts(pulls.told.append, MADE.manifest, wait=interrupt)
    assert pulls.files() == {f"{MCP}.part": MADE.files[MCP][:100]}
    pulls()
    assert pulls.asked() == [None, "bytes=100-"]
    assert pulls.files() == MADE.files


def test_ctrl_c_in_the_middle_of_a_file(pulls: Pulls) -> None:
    pulls.repository.script.stalls[MCP] = 100
    env = {name: os.environ[name] for name in ("AWB_CACHE", BASE_VARIABLE)}
    process = subprocess.Popen(
        [sys.executable, "-m", "agentworldbench", "data", "pull", "official-prompts"],
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert pulls.repository.script.stalled.wait(LIMIT_S)
    process.send_signal(signal.SIGINT)
    done = finished(process)
    assert done.code == 130, done.err
    assert "Traceback" not in done.err
    assert not list((Path(env["AWB_CACHE"]) / "official").rglob("*.txt"))


def pulled_data(*_: object) -> Pulled:
    return Pulled("a/b at c", Path("d"), (PulledFile("f", Path("d/f"), 1, "0" * 64, "fetched"),))


def no_data(*_: object) -> Pulled:
    raise DataError("the data cannot be had")


@pytest.mark.parametrize(
    ("prompts", "data", "code", "shown"),
    [
        (True, True, 0, ["Official prompts (", "\nOfficial data ("]),
        (True, False, 2, ["Official prompts ("]),
        (False, True, 2, ["Official data ("]),
        (False, False, 2, []),
    ],
)
def test_each_part_is_tried(
    pulls: Pulls,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prompts: bool,
    data: bool,
    code: int,
    shown: list[str],
) -> None:
    monkeypatch.setattr("agentworldbench.official_files.OFFICIAL", MADE.manifest)
    monkeypatch.setattr("agentworldbench.pull.pull_data", pulled_data if data else no_data)
    kept = {name: os.environ[name] for name in ("AWB_CACHE", BASE_VARIABLE)}
    awb = HereAwb(Path.cwd(), monkeypatch, capsys)
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    if not prompts:
        pulls.repository.script.statuses[MCP] = [404]
    done = awb("data", "pull", "all")
    assert done.code == code
    titles = ["Official prompts (", "Official data ("]
    assert [title for title in titles if title in done.out] == [title.strip() for title in shown]
    assert all(title in done.out for title in shown)
    if code:
        assert ("official prompts: " in done.complaint) == (not prompts)
        assert ("the data cannot be had" in done.complaint) == (not data)
        assert done.complaint.startswith("awb: neither part came whole: ") == (not prompts and not data)
