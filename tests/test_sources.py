"""Tests of `sources.py`: the bundled set, folders, and a hub that is played on the loopback.

The hub is asked in subprocesses, because huggingface_hub reads HF_ENDPOINT and its cache folder at
import. `main` of the played repository holds other files than the pinned revision does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentworldbench.errors import DataError, TaskError
from agentworldbench.hub import commit_of
from agentworldbench.resources import mini_folder
from agentworldbench.sources import OFFICIAL_REPOSITORY, OFFICIAL_REVISION, resolve_source
from tests.helpers.awb_command import Done, run_awb_in_turn
from tests.helpers.loopback_hub import COMMIT, LoopbackHub
from tests.helpers.official_folder import DOMAINS, Manifest, make_official_folder
from tests.helpers.played_hub import IMPATIENT, sha256_of

RUN = ("run", "--model", "baseline/copy-last", "--limit", "2")
PUBLISHED = "judge gpt-5.2-2025-12-11"


def test_mini_is_bundled() -> None:
    source = resolve_source("mini")
    assert (source.name, source.repository, source.revision) == ("mini", None, None)
    assert set(source.files.values()) == set(mini_folder().glob("*_test.jsonl"))
    assert {"terminal", "swe"} <= set(source.files)
    assert list(source.tasks) == list(source.files)


def test_a_domain_that_a_folder_does_not_have(tmp_path: Path) -> None:
    make_official_folder(tmp_path, domains=("swe",))
    with pytest.raises(DataError, match=r"no file web_test.jsonl for domain 'web' .*swe_test.jsonl"):
        resolve_source(str(tmp_path), ("web",))


def test_a_folder_gives_the_domains_it_has(tmp_path: Path) -> None:
    make_official_folder(tmp_path, domains=("os", "search"))
    source = resolve_source(str(tmp_path))
    assert (source.name, list(source.files)) == (f"folder {tmp_path.name}", ["search", "os"])
    assert list(resolve_source(str(tmp_path), ("os",)).files) == ["os"]


def test_an_unknown_file_in_a_folder_is_named(tmp_path: Path) -> None:
    make_official_folder(tmp_path, domains=("swe",))
    (tmp_path / "termnal_test.jsonl").write_text("{}\n")
    with pytest.raises(
        DataError, match=r"termnal_test.jsonl: unknown domain 'termnal'; did you mean 'terminal'\?"
    ):
        resolve_source(str(tmp_path))
    assert list(resolve_source(str(tmp_path), ("swe",)).files) == ["swe"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nowhere", "--data nowhere: no such folder (mini, official, hf:OWNER/NAME or a folder)"),
        ("minni", "did you mean 'mini'?"),
        ("oficial", "did you mean 'official'?"),
        ("hf:", "expected hf:OWNER/NAME"),
        ("hf:name", "expected hf:OWNER/NAME"),
        ("hf:a/b/c", "expected hf:OWNER/NAME"),
        ("hf:name@main", "expected hf:OWNER/NAME"),
        ("n" * 300, "no such folder"),
        ("~nobody-of-this-name/data", "no such folder"),
    ],
)
def test_words_that_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        resolve_source(data)
    assert message in str(caught.value)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no \{domain\}_test\.jsonl file in this folder"):
        resolve_source(str(tmp_path))


def test_an_unknown_domain_is_a_task_error() -> None:
    with pytest.raises(TaskError, match=r"unknown domain 'mpc'; did you mean 'mcp'\?"):
        resolve_source("mini", ("mpc",))


@pytest.mark.parametrize(
    ("path", "commit"),
    [
        ("/home/u/hub/datasets--a--b/snapshots/c0ffee/os_test.jsonl", "c0ffee"),
        ("/data/snapshots/2026-01-01/hub/datasets--a--b/snapshots/c0ffee/os_test.jsonl", "c0ffee"),
        ("/snapshots/snapshots/c0ffee/os_test.jsonl", "c0ffee"),
        ("/home/u/hub/datasets--a--b/snapshots/c0ffee/os/test.jsonl", "c0ffee"),
        ("/home/u/hub/snapshots", None),
        ("/home/u/os_test.jsonl", None),
    ],
)
def test_the_commit_is_that_of_the_nearest_snapshot_folder(path: str, commit: str | None) -> None:
    assert commit_of(Path(path)) == commit


@dataclass(frozen=True)
class Played:
    """A hub with a cache of its own; `pinned` and `main` are what its two commits hold."""

    hub: LoopbackHub
    pinned: Manifest
    main: Manifest
    home: Path
    cwd: Path

    def awb(self, *words: str, offline: bool = False) -> Done:
        return self.in_turn(words, offline=offline)[0]

    def in_turn(self, *commands: Sequence[str], offline: bool = False, before: str = "") -> list[Done]:
        """Several commands in one process."""
        env = self.hub.environment(self.home) | {"HF_HUB_OFFLINE": "1" if offline else "0"}
        return run_awb_in_turn(*commands, cwd=self.cwd, env=env, before=before)

    def row_counts(self, done: Done) -> dict[str, int]:
        """Rows by domain as `awb data info` prints them."""
        words = [line.split() for line in done.out.splitlines()]
        return {some[0]: int(some[1]) for some in words if some and some[0] in DOMAINS}


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    pinned = make_official_folder(tmp_path / "pinned", seed=1)
    main = make_official_folder(tmp_path / "main", seed=2, trajectories=1)
    assert pinned.row_counts != main.row_counts
    with LoopbackHub(tmp_path / "main", other_commits={OFFICIAL_REVISION: tmp_path / "pinned"}) as hub:
        (tmp_path / "work").mkdir()
        # The cache lies below another folder of the name that the hub's library gives to commits.
        yield Played(hub, pinned, main, tmp_path / "snapshots" / "monday" / "home", tmp_path / "work")


def test_official_is_the_pinned_revision_and_is_fetched_once(played: Played) -> None:
    first = played.awb("data", "info", "official")
    assert (first.code, first.err) == (0, "")
    assert f"Data official ({OFFICIAL_REPOSITORY} at {OFFICIAL_REVISION})" in first.out
    assert played.row_counts(first) == played.pinned.row_counts
    asked = {request.path for request in played.hub.requests}
    assert asked == {
        f"/datasets/{OFFICIAL_REPOSITORY}/resolve/{OFFICIAL_REVISION}/{domain}_test.jsonl"
        for domain in DOMAINS
    }
    count = len(played.hub.requests)

    words = (("data", "info", "official"), (*RUN, "--data", "official"))
    again, run = played.in_turn(*words, offline=True)
    assert (again.code, again.out) == (0, first.out)
    assert run.code == 0, run.err
    assert f"Data: official at {OFFICIAL_REVISION}." in run.err
    ours, _, published = run.out.partition("Judge scores — data official")
    assert "Rule metrics of baseline/copy-last" in ours
    assert PUBLISHED not in ours
    assert PUBLISHED in published.splitlines()[0]
    assert "no ranking together" in run.err
    assert len(played.hub.requests) == count


def test_one_domain_is_one_download(played: Played) -> None:
    done = played.awb("data", "info", "official", "--tasks", "os")
    assert played.row_counts(done) == {"os": played.pinned.row_counts["os"]}
    assert {request.path.rpartition("/")[2] for request in played.hub.requests} == {"os_test.jsonl"}


def test_another_repository_is_resolved_to_a_commit(tmp_path: Path, played: Played) -> None:
    done = played.awb(*RUN, "--data", f"hf:{OFFICIAL_REPOSITORY}")
    assert done.code == 0, done.err
    assert f"Data: hf:{OFFICIAL_REPOSITORY}@{COMMIT} at {COMMIT}." in done.err
    assert PUBLISHED not in done.out
    # `main` is asked once: should it move meanwhile, all files are still those of one commit.
    assert json.loads(next((played.cwd / "runs").glob("*/run.json")).read_text())["predict"]["data"] == {
        "name": f"hf:{OFFICIAL_REPOSITORY}@{COMMIT}",
        "repository": OFFICIAL_REPOSITORY,
        "revision": COMMIT,
        "files": {domain: sha256_of(tmp_path / "main" / f"{domain}_test.jsonl") for domain in DOMAINS},
        "simulated": [],
    }
    moving = {request.path for request in played.hub.requests if "/resolve/main/" in request.path}
    assert {path.rpartition("/")[2] for path in moving} == {"mcp_test.jsonl"}


def test_offline_the_revision_asked_for_is_the_one_given(played: Played) -> None:
    """DS-06: two revisions lie in the cache; the newer one is never taken for the pinned one, nor the reverse."""
    words = [
        ("data", "info", f"hf:{OFFICIAL_REPOSITORY}@{revision}")
        for revision in (OFFICIAL_REVISION, COMMIT, "9" * 40)
    ]
    assert [done.code for done in played.in_turn(*words[:2])] == [0, 0]
    count = len(played.hub.requests)
    pinned, main, other = played.in_turn(*words, offline=True)
    for done, revision, manifest in (
        (pinned, OFFICIAL_REVISION, played.pinned),
        (main, COMMIT, played.main),
    ):
        assert f"at {revision})" in " ".join(done.out.split())
        assert played.row_counts(done) == manifest.row_counts
    assert len(played.hub.requests) == count
    assert other.code == 2, "a revision that is not there is not another one"


def test_offline_with_an_empty_cache_fails_at_once(played: Played) -> None:
    done = played.awb("data", "info", "official", offline=True)
    assert done.code == 2
    assert "mcp_test.jsonl: not in the local cache" in done.only_complaint
    assert "HF_HUB_OFFLINE" in done.complaint
    assert played.hub.requests == ()


MISSING = {
    f"hf:{OFFICIAL_REPOSITORY}@{'a' * 40}": "the repository has no such revision",
    f"hf:{OFFICIAL_REPOSITORY}@nightly": "the repository has no such revision",
    "hf:nobody/nothing": "no such dataset repository",
    "hf:no body/!": "Repo id must use",
}


def test_what_the_hub_does_not_have(played: Played) -> None:
    found = played.in_turn(*(("data", "info", data) for data in MISSING))
    for done, (data, message) in zip(found, MISSING.items(), strict=True):
        assert done.code == 2
        assert message in done.only_complaint
        assert data.removeprefix("hf:").partition("@")[0] in done.only_complaint


def test_a_missing_file_is_named(played: Played, tmp_path: Path) -> None:
    make_official_folder(tmp_path / "small", domains=("swe",))
    with LoopbackHub(tmp_path / "small") as hub:
        small = Played(hub, played.pinned, played.main, tmp_path / "other", played.cwd)
        words = ("data", "info", f"hf:{OFFICIAL_REPOSITORY}")
        done, swe = small.in_turn(words, (*words, "-t", "swe"))
        assert done.code == 2
        assert (
            "mcp_test.jsonl: the repository has no such file; choose domains with --tasks"
            in done.only_complaint
        )
        assert swe.code == 0


@pytest.mark.parametrize("status", [401, 429, 503])
def test_a_hub_that_refuses(played: Played, status: int) -> None:
    played.hub.fail_with = status
    (done,) = played.in_turn(("data", "info", "official"), before=IMPATIENT)
    assert done.code == 2
    assert "mcp_test.jsonl: " in done.complaint
    assert str(status) in done.complaint


def test_a_hub_that_is_down(played: Played) -> None:
    played.hub.__exit__(None, None, None)
    (done,) = played.in_turn(("data", "info", "official"), before=IMPATIENT)
    assert done.code == 2
    assert "the hub cannot be reached" in done.complaint


def test_published_scores_stand_beside_official_results_only(tmp_path: Path) -> None:
    make_official_folder(tmp_path / "folder")
    for done in run_awb_in_turn(
        *((*RUN, "--data", data) for data in ("mini", tmp_path / "folder")), cwd=tmp_path
    ):
        assert done.code == 0, done.err
        assert "Rule metrics of baseline/copy-last" in done.out
        assert "gpt-5.2" not in done.out + done.err
