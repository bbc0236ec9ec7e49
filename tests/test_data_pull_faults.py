"""Tests of what hub, network, disk and user can do to `awb data pull official-data`: one line, and what to do.

A fault that may pass is tried again, any other is said at once; no half file ever stands under a final
name, and the next pull goes on.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.sources import OFFICIAL_REPOSITORY, OFFICIAL_REVISION
from tests.helpers.file_server import LOGIN_PAGE
from tests.helpers.official_folder import make_official_folder
from tests.helpers.played_hub import (
    AT_ONCE,
    NAMES,
    SMALL_DISK,
    Played,
    finished,
    playing,
    sha256_of,
)

pytestmark = pytest.mark.slow

PULL = ("data", "pull", "official-data")
MCP = NAMES[0]
PLACE = f"{OFFICIAL_REPOSITORY}@{OFFICIAL_REVISION}/{MCP}"
AGAIN = "then run the same command again"


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    make_official_folder(tmp_path / "served")
    with playing(tmp_path / "served", tmp_path) as hub:
        yield hub


def whole(played: Played) -> bool:
    """Whether the next pull brings everything, and nothing else lies in the cache."""
    done = played.awb(*PULL)
    right = all(sha256_of(played.cached(name)) == sha256_of(played.served / name) for name in NAMES)
    return done.code == 0 and right and played.in_the_way() == set()


@pytest.mark.parametrize("words", [PULL, ("data", "info", "official")], ids=["pull", "before a run"])
@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, r"Connection refused.*\); with network, run the same command again; "),
        (
            {"HTTP_PROXY": "http://user:secret@127.0.0.1:1", "NO_PROXY": "", "no_proxy": ""},
            r"Connection refused.*, by the proxy http://127\.0\.0\.1:1 of the environment\)",
        ),
    ],
    ids=["nobody listens", "no proxy there"],
)
def test_without_a_way_it_is_said_at_once(
    played: Played, words: tuple[str, ...], variables: dict[str, str], reason: str
) -> None:
    played.hub.__exit__(None, None, None)
    done = played.awb(*words, before=AT_ONCE, **variables)
    assert done.code == 2
    why = f"{PLACE}: not in the local cache and the hub cannot be reached ({played.hub.endpoint}: "
    assert why in done.only_complaint
    assert re.search(reason, done.complaint), done.complaint
    assert "secret" not in done.complaint
    assert f"copy {played.cache} from a machine that has it, name a mirror with HF_ENDPOINT" in done.complaint


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"HF_ENDPOINT": "huggingface.co"}, "HF_ENDPOINT: expected a hub's address"),
        ({"HF_ENDPOINT": "http://[bad"}, "HF_ENDPOINT: expected a hub's address"),
        ({"HF_ENDPOINT": "http://127.0.0.1:99999"}, "HF_ENDPOINT: expected a hub's address"),
        ({"HF_ENDPOINT": "ftp://127.0.0.1/x"}, "HF_ENDPOINT: expected a hub's address"),
        ({"HTTP_PROXY": "gopher://127.0.0.1", "NO_PROXY": ""}, f"{PLACE}: Unknown scheme for proxy URL"),
    ],
)
def test_settings_that_cannot_be_used(played: Played, variables: dict[str, str], message: str) -> None:
    done = played.awb(*PULL, before=AT_ONCE, **variables)
    assert done.code == 2
    assert message in done.only_complaint
    assert played.hub.requests == ()


def test_the_proxy_of_the_environment_is_used(played: Played) -> None:
    proxy = {"HF_ENDPOINT": "http://hub.example", "HTTP_PROXY": played.hub.origin}
    done = played.awb(*PULL, NO_PROXY="", no_proxy="", **proxy)
    assert done.code == 0, done.err
    assert {asked.host for asked in played.hub.asked} == {"hub.example"}


@pytest.mark.parametrize(
    ("asked", "strange", "message"),
    [
        ("page", False, f"what answered is no hub: a login page or a proxy, .*{AGAIN}"),
        ("http://login.example/?", True, r"what answered, from http://login\.example/\S* is no hub: a login"),
        ("file:///etc/passwd", False, "(redirected to|unsupported protocol) 'file://"),
        ("gopher://127.0.0.1/", False, "(redirected to|unsupported protocol) 'gopher://"),
    ],
)
def test_a_stranger_that_answers_for_the_hub(played: Played, asked: str, strange: bool, message: str) -> None:
    if asked == "page":
        played.hub.head.pages[MCP] = ("text/html", LOGIN_PAGE)
    else:
        played.hub.head.redirects[MCP] = asked
        played.hub.head.strange = strange
    done = played.awb(*PULL, before=AT_ONCE)
    assert done.code == 2
    assert re.search(message, done.only_complaint), done.complaint
    assert played.asked("GET") == []
    played.hub.head.pages.clear()
    played.hub.head.redirects.clear()
    assert whole(played)


@pytest.mark.parametrize("lfs", [(".jsonl",), ()], ids=["hash stated", "no hash stated"])
@pytest.mark.parametrize("padded", [False, True], ids=["short", "as long as the file"])
def test_a_page_in_place_of_the_file(tmp_path: Path, lfs: tuple[str, ...], padded: bool) -> None:
    served = tmp_path / "served"
    make_official_folder(served)
    length = (served / MCP).stat().st_size
    page = LOGIN_PAGE.ljust(length) if padded else LOGIN_PAGE
    with playing(served, tmp_path, lfs_suffixes=lfs) as played:
        played.hub.script.pages[MCP] = ("text/html", page)
        done = played.awb(*PULL, before=AT_ONCE)
        assert done.code == 2
        assert "a web page came in place of the file: a login page or a proxy answered" in done.complaint
        assert AGAIN in done.complaint
        assert not played.cached(MCP).exists()
        assert played.in_the_way() == set()
        assert not list(played.cache.glob("blobs/*"))
        played.hub.script.pages.clear()
        assert whole(played)


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_busy_hub_is_asked_again(played: Played, method: str) -> None:
    script = played.hub.head if method == "HEAD" else played.hub.script
    script.statuses[MCP] = [503, 502, 500]
    assert whole(played)
    assert script.statuses[MCP] == []


def test_a_hub_that_stays_busy(played: Played) -> None:
    played.hub.head.statuses[MCP] = [503] * 9
    done = played.awb(*PULL)
    assert done.code == 2
    assert f"{PLACE}: {played.hub.endpoint} answered HTTP 503; " in done.only_complaint
    assert played.asked("HEAD") == [MCP] * 4


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_hub_that_refuses_is_asked_once(played: Played, status: int) -> None:
    played.hub.fail_with = status
    done = played.awb(*PULL, before=AT_ONCE)
    assert done.code == 2
    assert f"{PLACE}: {played.hub.endpoint} answered HTTP {status}; " in done.only_complaint
    assert len(played.hub.requests) == 1


def test_a_connection_that_is_reset(played: Played) -> None:
    played.hub.script.cuts[MCP] = [100, 200]
    played.hub.script.reset = True
    assert whole(played)
    assert played.hub.script.cuts[MCP] == []


def test_a_file_that_changes_between_its_parts(tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    for name in NAMES:
        (served / name).write_bytes(b"a" * (21 * 2**20 if name == MCP else 99))
    with playing(served, tmp_path) as played:
        played.hub.script.versions[MCP] = [b"b" * 21 * 2**20]
        played.hub.script.cuts[MCP] = [21 * 2**20 - 5]
        done = played.awb(*PULL)
        assert done.code == 2
        assert f"{MCP}: SHA-256 is " in done.complaint
        assert not played.cached(MCP).exists()
        assert whole(played)


def test_a_full_disk(played: Played) -> None:
    done = played.awb(*PULL, before=SMALL_DISK)
    assert done.code == 1
    assert f"{played.cache}: cannot be read or written (File too large); " in done.complaint
    assert "set HF_HOME to another folder" in done.complaint
    assert played.in_the_way() == set()
    assert not played.cached(MCP).exists()
    assert whole(played)


def test_a_cache_that_cannot_be_written(played: Played) -> None:
    played.home.write_text("a file in its place")
    done = played.awb(*PULL)
    assert done.code == 1
    assert "cannot be read or written (Not a directory); " in done.complaint
    assert str(played.home) in done.complaint


def test_an_interrupted_pull_leaves_no_half_file(played: Played) -> None:
    played.hub.script.stalls[NAMES[2]] = 1000
    process = played.start(*PULL)
    played.wait_for_stall()
    process.send_signal(signal.SIGINT)
    done = finished(process)
    assert done.code == 130, done.err
    assert "Traceback" not in done.err
    assert [name for name in NAMES if played.cached(name).exists()] == NAMES[:2]
    assert played.in_the_way() == set()
    played.hub.script.stalls.clear()
    assert whole(played)
    assert played.asked("GET").count(MCP) == 1


def test_two_pulls_at_once(played: Played) -> None:
    """The second says that it waits, goes on when the first is stopped, and fetches nothing twice."""
    played.hub.script.stalls[NAMES[2]] = 1000
    first = played.start(*PULL)
    played.wait_for_stall()
    second = played.start(*PULL)
    assert second.stderr
    assert second.stderr.readline().startswith("another awb is fetching these files (it holds ")
    played.hub.script.stalls.clear()
    first.send_signal(signal.SIGINT)
    assert finished(first).code == 130
    done = finished(second)
    assert done.code == 0, done.err
    assert (done.out.count(" already there"), done.out.count(" fetched")) == (2, 5)
    assert sorted(played.asked("GET")) == sorted([*NAMES, NAMES[2]])


def test_what_one_host_sends_is_kept_when_the_other_is_down(played: Played) -> None:
    done = played.awb("data", "pull", "all", AWB_OFFICIAL_PROMPTS_URL="http://127.0.0.1:1")
    assert done.code == 2
    assert "official prompts: http://127.0.0.1:1/prompts/mcp/judge_system_prompt.txt: " in done.complaint
    assert "Official data (" in done.out
    assert done.out.count(" fetched") == 7
    assert whole(played)


def test_a_wrong_folder_is_said_before_anything_is_fetched(played: Played) -> None:
    done = played.awb("data", "pull", "all", "--prompts-from", "nowhere")
    assert done.code == 2
    assert "--prompts-from nowhere: no such folder" in done.only_complaint
    assert played.hub.requests == ()
