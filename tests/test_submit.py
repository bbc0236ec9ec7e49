"""`awb submit` as a submitter meets it: the preview, the question, files, and a branch in a real repository of git."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentworldbench.leaderboard.entries import load_entries
from agentworldbench.submission.pack import prepare
from agentworldbench.submission.unpack import unpack
from tests.helpers.awb_command import HereAwb
from tests.helpers.bundles import PUBLIC, make_run

GIT = (
    "-c",
    "user.name=Ann",
    "-c",
    "user.email=ann@example.org",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "commit.gpgsign=false",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWB_API_KEY", "EMPTY")
        return make_run(tmp_path_factory.mktemp("run") / "world", limit="1", tasks="swe,os")


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *GIT, "-C", str(folder), *words], capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a leaderboard's repository, with a remote on this machine."""
    for name, value in (("AUTHOR", "Ann"), ("COMMITTER", "Ann")):
        monkeypatch.setenv(f"GIT_{name}_NAME", value)
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    git(tmp_path, "clone", "-q", "origin.git", "board")
    clone = tmp_path / "board"
    (clone / "entries").mkdir()
    (clone / "entries" / "README.md").write_text("Entries.\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "begin")
    git(clone, "push", "-q", "origin", "HEAD:main")
    return clone


def test_the_preview_shows_what_would_be_public(awb: HereAwb, run: Path, tmp_path: Path) -> None:
    done = awb("submit", run, "--submitter", "Ann", "--submitter-url", "https://ann.example.org", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "b"
    folder.mkdir()
    prepared = prepare(run, folder, PUBLIC)
    for name in prepared.manifest.files:
        assert re.search(
            rf"^{re.escape(name)} +{(folder / name).stat().st_size:,} ", done.out, re.MULTILINE
        ), name
    for part in (
        "openai-api/world",
        "Judge openai-api/judge",
        "Ann, https://ann.example.org",
        "http://endpoint-1.invalid/v1",
        "Left out: reasoning",
        "First record of predictions.jsonl",
        "First record of verdicts.jsonl",
        "<predicted_observation>",
        "Goes to the file world.awb.zip.",
    ):
        assert part in done.out, part
    assert "I think of" not in done.out and "127.0.0.1" not in done.out


def test_a_file_is_written_and_never_over_another(awb: HereAwb, run: Path, tmp_path: Path) -> None:
    done = awb("submit", run)
    bundle = tmp_path / "world.awb.zip"
    assert done.out.splitlines()[-1].startswith(f"world.awb.zip: {bundle.stat().st_size:,} bytes, bundle ")
    unpack(bundle, tmp_path / "unpacked")
    assert awb("submit", run).code == 0, "the same bytes again"
    other = awb("submit", run, "--reasoning")
    assert (other.code, other.complaint) == (
        2, "awb: world.awb.zip: exists with other contents; remove it or choose another --output",
    )  # fmt: skip
    assert awb("submit", run, "--reasoning", "-o", "sub/other.zip").code == 0
    assert (
        awb("submit", run, "-o", ".").complaint == "awb: --output .: is a directory; name the file to write"
    )
    again = awb("submit", tmp_path / "unpacked", "-o", "again.zip")
    assert (again.code, again.err) == (0, ""), "a bundle is a run"


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("n", False), ("", False)])
def test_on_a_terminal_the_submitter_is_asked(
    awb: HereAwb, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, written: bool
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *words, **more: answer == "y")
    done = awb("submit", run)
    assert (done.code == 0) is (tmp_path / "world.awb.zip").exists() is written
    said = done.out.splitlines()[-1] if written else done.complaint
    assert ("world.awb.zip: " if written else "nothing was written") in said


def test_what_looks_like_a_secret_stops_it(awb: HereAwb, run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    key = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    text = (copy / "verdicts.jsonl").read_text()
    (copy / "verdicts.jsonl").write_text(text.replace("Both texts are", f"Both ({key}) are", 1))
    done = awb("submit", copy, "--yes", "-o", "x.zip")
    assert done.code == 2 and not (tmp_path / "x.zip").exists()
    found = re.search(r"^([0-9a-f]{10}) +GitHub token +ghp_…I6 \(40", done.out, re.MULTILINE)
    assert found and "verdicts.jsonl:" in done.out and key not in done.out + done.err
    assert done.complaint.endswith(f"or publish it with --allow {found[1]}")
    allowed = awb("submit", copy, "--yes", "-o", "x.zip", "--allow", found[1])
    assert allowed.code == 0 and "allowed" in allowed.out
    assert unpack(tmp_path / "x.zip", tmp_path / "u").allowed[0].kind == "GitHub token"


REFUSED = {
    "no run": ("submit nowhere", "nowhere: no run.json there"),
    "unknown target": ("submit RUN --to mars", "'mars' is not one of"),
    "leaderboard without a clone": ("submit RUN --to leaderboard", "--repository is missing: the directory"),
    "leaderboard of no clone": ("submit RUN --to leaderboard --repository none", "no such directory; clone"),
    "leaderboard of a folder": ("submit RUN --to leaderboard --repository .", ".: git rev-parse: fatal: not a git"),
    "hub without a repository": ("submit RUN --to hub", "--repository is missing: the dataset repository"),
    "hub with a file": ("submit RUN --to hub --repository a/b -o x", "--output belongs to targets on this machine"),
    "a flag of another target": ("submit RUN --push", "--push belongs to --to leaderboard, not to --to file"),
    "a flag of two others": ("submit RUN --repository a/b", "belongs to --to leaderboard, --to hub, not to --to file"),
    "an address without a name": ("submit RUN --submitter-url https://x", "--submitter is missing"),
    "an address that is none": ("submit RUN --submitter A --submitter-url x", "--submitter-url x: expected an address"),
    "an address with a password": ("submit RUN --submitter A --submitter-url https://a:b@c/", "--submitter-url: the address holds"),
    "a name without end": (f"submit RUN --submitter {'x' * 201}", "--submitter: expected 1 to 200 characters"),
    "a bundle at no address": ("submit RUN --to leaderboard --repository . --bundle-url here", "--bundle-url here: expected"),
    "a model with a name without end": (f"submit RUN --to leaderboard --repository . --name {'x' * 301}", "--name: expected 1 to 300"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_words_are_one_line(awb: HereAwb, run: Path, tmp_path: Path, name: str) -> None:
    words, said = REFUSED[name]
    done = awb(*(run if word == "RUN" else word for word in words.split()))
    assert done.code == 2 and said in done.only_complaint
    assert list(tmp_path.iterdir()) == []


def test_a_branch_with_one_commit_and_the_same_as_a_patch(
    awb: HereAwb, run: Path, board: Path, tmp_path: Path
) -> None:
    (board / "entries" / "README.md").write_text("my own change\n")
    words = ("submit", run, "--to", "leaderboard", "--repository", "board", "--subset", "--submitter", "Ann")
    done = awb(*words)
    assert (done.code, done.err) == (0, "")
    (branch,) = git(board, "branch", "--list", "submit/*", "--format=%(refname:short)").split()
    assert re.fullmatch(r"submit/openai-api-world-[0-9a-f]{12}", branch)
    assert git(
        board, "log", "--format=%an %s", f"main..{branch}" if "main" in git(board, "branch") else branch, "-1"
    ) == ("Ann Entry: openai-api/world on mini\n")
    added = git(board, "diff", "--name-status", f"{branch}~1", branch).split()
    assert added[::2] == ["A", "A"]
    bundle, entry_file = sorted(added[1::2])
    assert git(board, "status", "--porcelain") == " M entries/README.md\n", (
        "what is checked out stays as it is"
    )
    assert git(board, "worktree", "list").count("\n") == 1

    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", "origin.git", "other")
    (patch,) = tmp_path.glob("*.patch")
    git(other, "am", "-q", str(patch))
    (entry,) = load_entries(other / "entries")
    assert (f"entries/{entry.slug}.json", entry.status) == (entry_file, "measured")
    assert entry.submitter is not None and entry.submitter.name == "Ann"
    assert entry.bundle is not None and bundle == f"bundles/{entry.bundle.sha256[:12]}.awb.zip"
    manifest = unpack(other / bundle, tmp_path / "unpacked")
    assert manifest.claims[0].overall == entry.computed_overall
    assert git(tmp_path / "origin.git", "branch", "--format=%(refname:short)").split() == ["main"], (
        "not pushed"
    )

    again = awb(*words)
    assert again.code == 2 and f"has the branch {branch} already" in again.complaint


def test_pushed_with_the_bundle_elsewhere(awb: HereAwb, run: Path, board: Path, tmp_path: Path) -> None:
    words = ("submit", run, "--to", "leaderboard", "--repository", board, "--subset", "--push", "--name", "World 1",
             "--bundle-url", "https://hub.example/datasets/ann/run", "-o", "out/x.patch")  # fmt: skip
    unasked = awb(*words)
    assert unasked.complaint == "awb: nobody can be asked here; look at the preview, then give --yes"
    assert git(board, "branch", "--list", "submit/*") == ""
    done = awb(*words, "--yes")
    assert (done.code, done.err) == (0, "")
    (branch,) = git(
        tmp_path / "origin.git", "branch", "--list", "submit/*", "--format=%(refname:short)"
    ).split()
    assert branch.startswith("submit/world-1-")
    (path,) = git(tmp_path / "origin.git", "diff", "--name-only", "main", branch).split()
    entry = json.loads(git(tmp_path / "origin.git", "show", f"{branch}:{path}"))
    assert (entry["model"], entry["bundle"]["url"]) == ("World 1", "https://hub.example/datasets/ann/run")
    assert (tmp_path / "out" / "x.patch").read_text().startswith("From ")


def test_a_part_of_the_data_and_lost_remotes_leave_no_branch(awb: HereAwb, run: Path, board: Path) -> None:
    words = ("submit", run, "--to", "leaderboard", "--repository", board)
    assert "--subset enters it nevertheless" in awb(*words).complaint
    assert awb(*words, "--push", "--remote", "fork").complaint == f"awb: --push: {board} has no remote 'fork'"
    shutil.move(board.parent / "origin.git", board.parent / "moved.git")
    lost = awb(*words, "--subset", "--push", "--yes")
    branch = git(board, "branch", "--list", "submit/*", "--format=%(refname:short)").strip()
    assert "git push: fatal" in lost.complaint
    assert lost.complaint.endswith(
        f"the branch is made, to push it later: git -C {board} push origin {branch}"
    )
    git(board, "branch", "-D", branch)
    hook = board / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    assert awb(*words, "--subset").complaint == f"awb: {board}: git commit: not today"
    assert git(board, "branch", "--list", "submit/*") == ""
    assert git(board, "worktree", "list").count("\n") == 1


@pytest.mark.parametrize(("form", "name"), [("eee", "data/*/*/*/*.json"), ("lm-eval", "*/results_*.json")])
def test_files_of_other_programs_are_made_from_what_is_public(
    awb: HereAwb, run: Path, tmp_path: Path, form: str, name: str
) -> None:
    done = awb("submit", run, "--to", form, "--submitter", "Ann")
    assert (done.code, done.err) == (0, "")
    folder = tmp_path / f"world-{form}"
    (results,) = folder.glob(name)
    assert str(results.relative_to(tmp_path)) in done.out.splitlines()
    for path in folder.rglob("*.json*"):
        text = path.read_text(encoding="utf-8")
        assert f"  {path.relative_to(folder)}: {path.stat().st_size:,} bytes" in done.out.splitlines()
        assert "127.0.0.1" not in text and "I think of" not in text and str(tmp_path) not in text
    assert awb("submit", run, "--to", form, "-o", run).code == 2
    assert awb("export", form, run, "-o", "again").code == 0
    (again,) = (tmp_path / "again").glob(name)
    if form == "eee":
        assert again.name == results.name, "one run has one UUID"
