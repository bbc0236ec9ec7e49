"""A bundle's entries as a branch with one commit in a clone of a leaderboard's repository, and as a patch file.

In: a prepared bundle, the clone. Out: the branch, the patch, and with `push` the branch at the clone's remote. Git does the
work, as whoever calls it: name, signature, hooks and credentials are those that git is set up with, and none of them is
read here. The commit is made in a working tree of its own, so whatever is checked out in the clone stays as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.leaderboard.adding import Said, add_entries
from agentworldbench.leaderboard.entries import Entry
from agentworldbench.leaderboard.measured import measured_entries, renamed
from agentworldbench.leaderboard.provenance import Bundle
from agentworldbench.submission.deliver import check_address, check_words
from agentworldbench.submission.pack import SUFFIX, Prepared, write_zip
from agentworldbench.texts import count_text

ENTRY_FOLDERS: Final = ("leaderboards/entries", "entries")
"""Where a repository may keep its entries; the first that it has is used."""
BUNDLES: Final = "bundles"
LARGEST: Final = 95 << 20
"""Bytes of a bundle that is committed; hosts refuse files from 100 MB on."""
_PATCH: Final = ("--stdout", "--binary", "--no-attach", "--src-prefix=a/", "--dst-prefix=b/")
"""As `git am` reads it, whatever git is set up with."""
_SECONDS: Final = 600.0


@dataclass(frozen=True)
class RepositoryTarget:
    """A clone of a leaderboard's repository. `patch` is the file to write, `bundle_url` where the bundle is public already
    (None: it is committed beside the entry), `name` the model's name to show, `remote` where `push` goes to."""

    clone: Path
    patch: Path | None = None
    push: bool = False
    remote: str = "origin"
    bundle_url: str | None = None
    name: str | None = None
    subset: bool = False

    @property
    def leaves(self) -> bool:
        """A branch stays here until it is pushed."""
        return self.push

    def check(self) -> None:
        """Refuse what is no clone, or has no entries, and what no entry can hold."""
        check_address("--bundle-url", self.bundle_url)
        check_words("--name", self.name, 300)
        if not self.clone.is_dir():
            raise ConfigError(
                f"--repository {self.clone}: no such directory; clone the leaderboard's repository first"
            )
        self._git("rev-parse", "--verify", "HEAD^{commit}")
        self._folder()
        if self.push and self.remote not in self._git("remote").split():
            raise ConfigError(f"--push: {self.clone} has no remote '{self.remote}'")

    def told(self, prepared: Prepared) -> list[str]:
        """Branch and files."""
        entries = self._entries(prepared)
        files = [f"{self._folder()}/{entry.slug}.json ({entry.computed_overall:.2f})" for entry in entries]
        if self.bundle_url is None:
            files.append(_place(prepared))
        to = f"pushed to {self.remote}" if self.push else "not pushed"
        return [
            f"Goes to {self.clone}, branch {self.branch(prepared)} ({to}), and as a patch to {self._patch(prepared)}:",
            *(f"  {file}" for file in files),
        ]

    def deliver(self, prepared: Prepared) -> list[str]:
        """Commit, write the patch, push. Raises ConfigError with git's own words where it refuses."""
        branch = self.branch(prepared)
        if self._git("branch", "--list", branch).strip():
            raise ConfigError(
                f"{self.clone}: has the branch {branch} already; to make it anew: git -C {self.clone} branch -D {branch}"
            )
        patch = self._patch(prepared)
        with self._tree(branch) as tree:
            self._write(prepared, tree)
            self._git("add", "--all", tree=tree)
            if not self._git("status", "--porcelain", tree=tree):
                raise ConfigError(f"{self.clone}: has these entries already; there is nothing to submit")
            self._git("commit", "--quiet", "-m", self._message(prepared), tree=tree)
            text = self._git("format-patch", *_PATCH, "-1", tree=tree)
            commit = self._git("rev-parse", "HEAD", tree=tree).strip()
        try:
            patch.parent.mkdir(parents=True, exist_ok=True)
            patch.write_text(text, encoding="utf-8", newline="\n")
        except OSError as problem:
            raise StoreError(f"{patch}: cannot be written ({problem.strerror})") from problem
        done = [
            f"{self.clone}: branch {branch}, commit {commit[:12]}",
            f"{patch}: the same as a patch (`git am`)",
        ]
        if self.push:
            try:
                self._git("push", "--quiet", self.remote, f"refs/heads/{branch}:refs/heads/{branch}")
            except ConfigError as problem:
                again = f"git -C {self.clone} push {self.remote} {branch}"
                raise ConfigError(f"{problem}; the branch is made, to push it later: {again}") from problem
            done.append(f"{self.remote}: branch {branch} pushed; open a pull request from it")
        else:
            done.append(f"To send it: git -C {self.clone} push {self.remote} {branch}")
        return done

    def branch(self, prepared: Prepared) -> str:
        """The branch of a bundle, named after the model that is shown."""
        shown = re.sub(r"[^a-z0-9]+", "-", (self.name or prepared.results.model).lower()).strip("-")
        return f"submit/{shown[:60]}-{prepared.sha256[:12]}"

    def _entries(self, prepared: Prepared) -> list[Entry]:
        entries = measured_entries(prepared.results, prepared.record, subset=self.subset)
        return entries if self.name is None else [renamed(entry, self.name) for entry in entries]

    def _write(self, prepared: Prepared, tree: Path) -> None:
        said = Said(
            name=self.name,
            submitter=prepared.manifest.submitter,
            bundle=Bundle(sha256=prepared.sha256, url=self.bundle_url),
        )
        add_entries(tree / self._folder(), self._entries(prepared), said)
        if self.bundle_url is None:
            path = tree / _place(prepared)
            write_zip(prepared.folder, path)
            if path.stat().st_size > LARGEST:
                raise ConfigError(
                    f"the bundle has {count_text(path.stat().st_size, 'byte')}, more than hosts of git take; publish it first (--to hub) "
                    "and name its address with --bundle-url"
                )

    def _message(self, prepared: Prepared) -> str:
        entries = self._entries(prepared)
        lines = [f"Entry: {entries[0].model} on {prepared.manifest.data.name}", ""]
        lines += [f"{entry.slug}: {entry.computed_overall:.2f}" for entry in entries]
        where = self.bundle_url or _place(prepared)
        return "\n".join([*lines, "", f"Bundle {prepared.sha256}", where])

    def _patch(self, prepared: Prepared) -> Path:
        return self.patch or Path(self.branch(prepared).replace("/", "-") + ".patch")

    def _folder(self) -> str:
        for folder in ENTRY_FOLDERS:
            if self._git("ls-tree", "-d", "--name-only", "HEAD", folder).strip():
                return folder
        raise ConfigError(f"--repository {self.clone}: no folder {' or '.join(ENTRY_FOLDERS)} in its HEAD")

    @contextmanager
    def _tree(self, branch: str) -> Iterator[Path]:
        """A working tree of the new branch, at the clone's HEAD. The branch goes again when nothing was committed."""
        with tempfile.TemporaryDirectory(prefix="awb-submit-") as scratch:
            tree = Path(scratch) / "tree"
            self._git("worktree", "add", "--quiet", "-b", branch, str(tree), "HEAD")
            kept = False
            try:
                yield tree
                kept = True
            finally:
                self._git("worktree", "remove", "--force", str(tree))
                if not kept:
                    self._git("branch", "--quiet", "-D", branch)

    def _git(self, *words: str, tree: Path | None = None) -> str:
        """What git prints. Raises ConfigError with its complaint."""
        command = ["git", "-C", str(tree or self.clone), *words]
        # Of another repository that this process may run in (a hook), git must not think that it is meant.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env=environment,
                timeout=_SECONDS,
            )
        except FileNotFoundError:
            raise ConfigError("git is not installed; --to leaderboard needs it") from None
        except subprocess.TimeoutExpired:
            raise ConfigError(f"git {words[0]}: no answer within {_SECONDS:.0f} s") from None
        if done.returncode:
            complaint = " ".join((done.stderr or done.stdout).split())[-400:]
            raise ConfigError(f"{self.clone}: git {words[0]}: {complaint}")
        return done.stdout


def _place(prepared: Prepared) -> str:
    return f"{BUNDLES}/{prepared.sha256[:12]}{SUFFIX}"
