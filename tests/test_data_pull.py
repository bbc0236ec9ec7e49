"""Tests of `awb data pull official-data`, and of the hash check behind it: a hub that is played on the loopback.

The hub is asked in subprocesses, because huggingface_hub reads HF_ENDPOINT and its cache folder at import.
The files need not be rows where only pulling is tested.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from agentworldbench.errors import DataError
from agentworldbench.sources import (
    OFFICIAL_REPOSITORY,
    OFFICIAL_REVISION,
    Source,
    _stated,
)
from tests.helpers.awb_command import Done, clean_environment
from tests.helpers.loopback_hub import LoopbackHub
from tests.helpers.official_folder import DOMAINS, make_official_folder

NAMES = [f"{domain}_test.jsonl" for domain in DOMAINS]
BIG = 21 * 2**20
"""The library writes to disk in blocks of 10 MiB: a download that breaks behind two of them is resumed."""
IMPATIENT = (
    "import time; time.sleep = lambda seconds: None; from agentworldbench.cli.main import main; main()"
)
PULL = ("data", "pull", "official-data")
NOTE = f"agentworldbench-{OFFICIAL_REVISION}.json"


class BreakingHub(LoopbackHub):
    """Drops the connection while it sends a file: `cuts` holds, by file, the bytes that still get through."""

    def __init__(self, folder: Path, lfs_suffixes: tuple[str, ...] = (".jsonl",)) -> None:
        self.cuts: dict[str, list[int]] = {}
        super().__init__(folder, commit=OFFICIAL_REVISION, lfs_suffixes=lfs_suffixes)

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["path"]
        if request.method != "GET" or not self.cuts.get(name):
            return await super()._resolve(request)
        data = self._trees[OFFICIAL_REVISION][name].source.read_bytes()
        response = web.StreamResponse()
        response.content_length = len(data)
        await response.prepare(request)
        await response.write(data[: self.cuts[name].pop(0)])
        assert request.transport
        request.transport.close()
        return response


@dataclass(frozen=True)
class Played:
    """A hub, what it holds, and a cache of its own."""

    hub: BreakingHub
    served: Path
    home: Path
    cwd: Path

    def awb(self, *words: str, **variables: str) -> Done:
        env = self.hub.environment(self.home) | {"AWB_CACHE": str(self.home / "awb")} | variables
        done = subprocess.run(
            [sys.executable, "-c", IMPATIENT, *words],
            cwd=self.cwd,
            env=clean_environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=100,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    @property
    def cache(self) -> Path:
        return self.home / "hub" / f"datasets--{OFFICIAL_REPOSITORY.replace('/', '--')}"

    def cached(self, name: str) -> Path:
        return self.cache / "snapshots" / OFFICIAL_REVISION / name

    def tamper(self, name: str) -> str:
        """Change a byte of what the cache holds; the SHA-256 of what it holds now."""
        blob = self.cached(name).resolve()
        blob.write_bytes(blob.read_bytes()[:-1] + b" ")
        return sha256_of(blob)

    def asked(self, method: str) -> list[str]:
        return [request.path.rpartition("/")[2] for request in self.hub.requests if request.method == method]


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    served = tmp_path / "served"
    make_official_folder(served)
    (tmp_path / "cwd").mkdir()
    with BreakingHub(served) as hub:
        yield Played(hub, served, tmp_path / "home", tmp_path / "cwd")


def test_all_files_are_fetched_once_and_noted(played: Played) -> None:
    done = played.awb(*PULL)
    assert done.code == 0, done.err
    assert [line.partition(":")[0] for line in done.err.splitlines()] == NAMES
    assert done.err.startswith("mcp_test.jsonl: fetching ")
    assert f"Official data ({OFFICIAL_REPOSITORY} at {OFFICIAL_REVISION})" in done.out
    assert done.out.count(" fetched") == 7
    assert str(played.cached(NAMES[0]).parent) in done.out.replace("\n", "")
    assert played.asked("GET") == NAMES
    hashes = {name: sha256_of(played.served / name) for name in NAMES}
    assert {name: sha256_of(played.cached(name)) for name in NAMES} == hashes
    assert json.loads((played.cache / NOTE).read_text()) == {
        "schema_version": 1,
        "repository": OFFICIAL_REPOSITORY,
        "revision": OFFICIAL_REVISION,
        "files": {
            name: {"sha256": hashes[name], "size": (played.served / name).stat().st_size, "stated": True}
            for name in NAMES
        },
    }
    count = len(played.hub.requests)
    for variables in ({}, {"HF_HUB_OFFLINE": "1"}):
        again = played.awb(*PULL, **variables)
        assert (again.code, again.err) == (0, "")
        assert again.out.count(" already there") == 7
    assert len(played.hub.requests) == count
    info = played.awb("data", "info", "official", HF_HUB_OFFLINE="1")
    assert info.code == 0, info.err


def test_a_broken_download_goes_on_where_it_broke(tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    for number, name in enumerate(NAMES):
        (served / name).write_bytes(bytes([number]) * (BIG if name == "mcp_test.jsonl" else 99))
    with BreakingHub(served) as hub:
        played = Played(hub, served, tmp_path / "home", tmp_path)
        hub.cuts["mcp_test.jsonl"] = [BIG - 5]
        done = played.awb(*PULL)
        assert done.code == 0, done.err
        assert "mcp_test.jsonl: fetching 22.0 MB" in done.err
        gets = [request.range for request in hub.requests if request.method == "GET"]
        assert gets == [None, f"bytes={20 * 2**20}-", *[None] * 6]
    assert sha256_of(played.cached("mcp_test.jsonl")) == sha256_of(served / "mcp_test.jsonl")


def test_a_pull_that_failed_goes_on_with_the_file_that_failed(played: Played) -> None:
    played.hub.cuts["terminal_test.jsonl"] = [100] * 20
    failed = played.awb(*PULL)
    assert failed.code == 2
    assert "terminal_test.jsonl: peer closed connection" in failed.complaint
    assert "files that came whole are kept for the next try" in failed.complaint
    assert len(played.hub.cuts["terminal_test.jsonl"]) > 0
    played.hub.cuts.clear()
    done = played.awb(*PULL)
    assert done.code == 0, done.err
    assert done.out.count(" already there") == 2
    assert done.out.count(" fetched") == 5


def test_a_hub_that_sends_something_else_is_refused(played: Played) -> None:
    name = "search_test.jsonl"
    right = (played.served / name).read_bytes()
    (played.served / name).write_bytes(right.replace(b"e", b"E"))  # the hub goes on stating the old hash
    for command in (PULL, PULL):
        done = played.awb(*command)
        assert done.code == 2
        assert f"{name}: SHA-256 is {sha256_of(played.served / name)}, the hub states " in done.complaint
        assert hashlib.sha256(right).hexdigest() in done.complaint
        assert not played.cached(name).exists()
        assert not (played.cache / NOTE).exists()
    (played.served / name).write_bytes(right)
    assert played.awb(*PULL).code == 0


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
def test_a_damaged_cache_is_refused_and_pulled_anew(played: Played, noted: bool) -> None:
    name = "os_test.jsonl"
    assert played.awb(*PULL).code == 0
    if not noted:
        (played.cache / NOTE).unlink()
    found = played.tamper(name)
    info = played.awb("data", "info", "official", "-t", "os")
    assert info.code == 2
    expected = sha256_of(played.served / name)
    assert f"{name}: SHA-256 is {found}, the hub states {expected}: " in info.only_complaint
    assert "awb data pull official-data" in info.complaint
    assert played.awb("data", "info", "official", "-t", "web").code == 0
    done = played.awb(*PULL)
    assert done.code == 0, done.err
    assert f"{name}: what lay in the cache is not what the hub states; removed" in done.err
    assert f"{name}: fetching" in done.err
    assert sha256_of(played.cached(name)) == expected
    assert played.awb("data", "info", "official", "-t", "os").code == 0


def test_a_cache_without_links_is_checked_by_asking(played: Played) -> None:
    for name in NAMES:
        played.cached(name).parent.mkdir(parents=True, exist_ok=True)
        played.cached(name).write_bytes((played.served / name).read_bytes())
    played.cached("web_test.jsonl").write_bytes(b"something else")
    done = played.awb(*PULL)
    assert done.code == 0, done.err
    assert played.asked("GET") == ["web_test.jsonl"]
    assert json.loads((played.cache / NOTE).read_text())["files"]["mcp_test.jsonl"]["stated"] is True
    # From now on the note tells what such a cache must hold.
    played.cached("mcp_test.jsonl").write_bytes((played.served / "mcp_test.jsonl").read_bytes() + b"\n")
    assert played.awb("data", "info", "official", "-t", "mcp").code == 2


def test_a_hub_that_states_no_hash(tmp_path: Path, played: Played) -> None:
    with BreakingHub(played.served, lfs_suffixes=()) as hub:
        plain = Played(hub, played.served, tmp_path / "other", tmp_path)
        done = plain.awb(*PULL)
        assert done.code == 0, done.err
        assert done.err.count("not checked, the hub states no SHA-256 for it") == 7
        assert "mcp_test.jsonl: no stated hash to check it by" in done.out
        assert plain.awb("data", "info", "official").code == 0


def test_offline_and_nothing_there(played: Played) -> None:
    done = played.awb(*PULL, HF_HUB_OFFLINE="1")
    assert done.code == 2
    assert "mcp_test.jsonl: not in the local cache and the hub cannot be reached" in done.complaint
    assert played.hub.requests == ()


def test_a_hub_that_is_down_and_nothing_there(played: Played) -> None:
    played.hub.__exit__(None, None, None)
    done = played.awb(*PULL)
    assert done.code == 2
    assert "the hub cannot be reached" in done.complaint


@pytest.mark.parametrize("status", [401, 503])
def test_a_hub_that_refuses(played: Played, status: int) -> None:
    played.hub.fail_with = status
    done = played.awb(*PULL)
    assert done.code == 2
    assert str(status) in done.complaint


def test_all_begins_with_the_prompts(played: Played) -> None:
    done = played.awb("data", "pull", "all", HF_HUB_OFFLINE="1")
    assert done.code == 2
    assert "official prompts: HF_HUB_OFFLINE is set" in done.only_complaint


def test_a_source_checks_what_is_stated() -> None:
    source = Source("hf:a/b@c", {"os": Path("o"), "web": Path("w")}, {}, "a/b", "c", {"os": "1" * 64})
    source.check({"os": "1" * 64, "web": "2" * 64})
    with pytest.raises(DataError, match=f"o: SHA-256 is {'2' * 64}, the hub states {'1' * 64}"):
        source.check({"os": "2" * 64})


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        (None, "b" * 64),
        ("not JSON", "b" * 64),
        ('{"repository": "a/b"}', "b" * 64),
        ('{"repository": "c/d", "revision": "REV", "files": FILES}', "b" * 64),
        ('{"repository": "a/b", "revision": "REV", "files": {}}', "b" * 64),
        ('{"repository": "a/b", "revision": "REV", "files": FILES}', "a" * 64),
    ],
)
def test_where_a_stated_hash_comes_from(tmp_path: Path, note: str | None, expected: str) -> None:
    folder = tmp_path / "datasets--a--b"
    pointer = folder / "snapshots" / "rev" / "f.jsonl"
    pointer.parent.mkdir(parents=True)
    pointer.symlink_to(Path("../../blobs") / ("b" * 64))
    # A blob may be a link itself, into a store that repositories share under another kind of hash.
    (folder / "blobs").mkdir()
    (folder / "blobs" / ("b" * 64)).symlink_to(Path("../../blobs/cc") / ("c" * 64))
    if note:
        files = json.dumps({"f.jsonl": {"sha256": "a" * 64, "size": 1, "stated": True}})
        (folder / "agentworldbench-rev.json").write_text(note.replace("FILES", files).replace("REV", "rev"))
    assert _stated(pointer, "a/b") == expected


def test_names_that_are_no_hash(tmp_path: Path) -> None:
    pointer = tmp_path / "snapshots" / "rev" / "f.jsonl"
    pointer.parent.mkdir(parents=True)
    pointer.symlink_to(Path("../../blobs") / ("b" * 40))
    assert _stated(pointer, "a/b") is None
    elsewhere = pointer.with_name("h.jsonl")
    elsewhere.symlink_to(Path("../../../store") / ("b" * 64))
    assert _stated(elsewhere, "a/b") is None
    plain = pointer.with_name("g.jsonl")
    plain.touch()
    assert _stated(plain, "a/b") is None
    assert _stated(tmp_path / "blobs" / ("b" * 64), "a/b") == "b" * 64
