"""Tests of `awb data pull official-data`, and of the hash check behind it: a hub that is played on the loopback.

What hub and network can do wrong is in test_data_pull_faults.py. The files need not be rows where only
pulling is tested.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.errors import DataError
from agentworldbench.hub import KnownHash, known_hash
from agentworldbench.sources import OFFICIAL_REPOSITORY, OFFICIAL_REVISION, Source
from tests.helpers.official_folder import make_official_folder
from tests.helpers.played_hub import NAMES, NOTE, Played, playing, sha256_of

pytestmark = pytest.mark.slow

BIG = 21 * 2**20
"""The library writes to disk in blocks of 10 MiB: a download that breaks behind two of them is resumed."""
PULL = ("data", "pull", "official-data")


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    served = tmp_path / "served"
    make_official_folder(served)
    with playing(served, tmp_path) as hub:
        yield hub


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
    with playing(served, tmp_path) as played:
        played.hub.script.cuts["mcp_test.jsonl"] = [BIG - 5]
        done = played.awb(*PULL)
        assert done.code == 0, done.err
        assert "mcp_test.jsonl: fetching 22.0 MB" in done.err
        gets = [request.range for request in played.hub.requests if request.method == "GET"]
        assert gets == [None, f"bytes={20 * 2**20}-", *[None] * 6]
    assert sha256_of(played.cached("mcp_test.jsonl")) == sha256_of(served / "mcp_test.jsonl")


def test_a_pull_that_failed_goes_on_with_the_file_that_failed(played: Played) -> None:
    played.hub.script.cuts["terminal_test.jsonl"] = [100] * 20
    failed = played.awb(*PULL)
    assert failed.code == 2
    assert "/terminal_test.jsonl: " in failed.complaint
    assert "files that came whole are kept for the next try" in failed.complaint
    assert len(played.hub.script.cuts["terminal_test.jsonl"]) > 0
    played.hub.script.cuts.clear()
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


def test_a_hub_that_states_no_hash(tmp_path: Path) -> None:
    make_official_folder(tmp_path / "served")
    with playing(tmp_path / "served", tmp_path, lfs_suffixes=()) as played:
        for state in (
            "fetched",
            "already there",
        ):  # a second pull does not take the first one's note for more
            done = played.awb(*PULL)
            assert done.code == 0, done.err
            assert done.err.count("not checked, the hub states no SHA-256 for it") == 7
            assert done.out.count(f" {state}") == 7
            assert "mcp_test.jsonl: no stated hash to check it by" in done.out
            noted = json.loads((played.cache / NOTE).read_text())["files"]
            assert {file["stated"] for file in noted.values()} == {False}
        assert played.awb("data", "info", "official").code == 0
        found = played.tamper("mcp_test.jsonl")
        done = played.awb(*PULL, HF_HUB_OFFLINE="1")
        assert done.code == 2
        assert "mcp_test.jsonl: not checked, " in done.err
        assert "HF_HUB_OFFLINE is set" in done.complaint
        assert not played.cached("mcp_test.jsonl").exists(), found


def test_offline_and_nothing_there(played: Played) -> None:
    done = played.awb(*PULL, HF_HUB_OFFLINE="1")
    assert done.code == 2
    assert "mcp_test.jsonl: not in the local cache and the hub cannot be reached" in done.only_complaint
    assert "HF_HUB_OFFLINE is set" in done.complaint
    assert f"copy {played.cache} from a machine that has it" in done.complaint
    assert played.hub.requests == ()


@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
def test_a_cache_that_was_copied_from_another_machine(played: Played, tmp_path: Path, links: bool) -> None:
    """What the advice for machines without network promises."""
    assert played.awb(*PULL).code == 0
    here = Played(played.hub, played.served, tmp_path / "here", played.cwd)
    shutil.copytree(played.cache, here.cache, symlinks=links)
    count = len(played.hub.requests)
    done = here.awb(*PULL, HF_HUB_OFFLINE="1")
    assert (done.code, done.err) == (0, "")
    assert done.out.count(" already there") == 7
    assert "no stated hash" not in done.out
    assert here.awb("data", "info", "official", HF_HUB_OFFLINE="1").code == 0
    assert len(played.hub.requests) == count


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
    assert known_hash(pointer, "a/b") == KnownHash(expected, by_hub=True)


def test_names_that_are_no_hash(tmp_path: Path) -> None:
    pointer = tmp_path / "snapshots" / "rev" / "f.jsonl"
    pointer.parent.mkdir(parents=True)
    pointer.symlink_to(Path("../../blobs") / ("b" * 40))
    assert known_hash(pointer, "a/b") is None
    elsewhere = pointer.with_name("h.jsonl")
    elsewhere.symlink_to(Path("../../../store") / ("b" * 64))
    assert known_hash(elsewhere, "a/b") is None
    plain = pointer.with_name("g.jsonl")
    plain.touch()
    assert known_hash(plain, "a/b") is None
    assert known_hash(tmp_path / "blobs" / ("b" * 64), "a/b") == KnownHash("b" * 64, by_hub=True)
