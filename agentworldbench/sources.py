"""Where data files come from: the bundled set, a folder, or a dataset repository on a hub.

In: the word after `--data` and the tasks wanted. Out: a `Source` with one local file per domain, a
name, and for hubs the resolved commit. The official set is pinned to one revision; `hub.py` fetches. Where
the SHA-256 of a file is known (noted by `awb data pull`, or the name that the hub's cache gave it), the source
states it, and `check` compares it with the one that indexing the file has found anyway.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from agentworldbench.errors import DataError
from agentworldbench.foreign import described
from agentworldbench.hub import Announce, commit_of, fetch, known_hash
from agentworldbench.official_files import existing_folder
from agentworldbench.provenance import Origin, read_origins
from agentworldbench.resources import mini_folder
from agentworldbench.task import Task, load_tasks
from agentworldbench.yamlfile import did_you_mean

OFFICIAL_REPOSITORY: Final = "Qwen/AgentWorldBench"
OFFICIAL_REVISION: Final = "6b8d28437042434dcdd168434227ca0de408c5ba"


@dataclass(frozen=True)
class Source:
    """Local files by domain, and what they are called in results.

    `name` is `mini`, `official`, `hf:REPO@REVISION` or `folder NAME`; only `official` may stand beside
    published scores. `stated` holds the SHA-256 that a file must have, where that is known, `origins`
    what a folder says about how its files came to be.
    """

    name: str
    files: Mapping[str, Path]
    tasks: Mapping[str, Task]
    repository: str | None = None
    revision: str | None = None
    stated: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)

    @property
    def simulated(self) -> tuple[str, ...]:
        """Domains whose environment was imitated, not run."""
        return tuple(
            domain
            for domain in self.files
            if domain in self.origins and self.origins[domain].kind == "simulated"
        )

    def check(self, found: Mapping[str, str]) -> None:
        """Compare the SHA-256 found in the files, by domain. Raises DataError for a file with another one."""
        for domain, sha256 in found.items():
            expected = self.stated.get(domain, sha256)
            if sha256 != expected:
                raise DataError(
                    f"{self.files[domain]}: SHA-256 is {sha256}, the hub states {expected}: the file is damaged or "
                    "was changed; `awb data pull official-data` fetches the official files anew, others come back "
                    "when this file is removed"
                )


def is_folder(data: str) -> bool:
    """Whether `--data` names a folder of one's own, and no data that this harness finds by their name."""
    return data not in ("mini", "official") and not data.startswith("hf:")


def misnamed(name: str, repository: str | None, revision: str | None, files: Mapping[str, str]) -> str | None:
    """Why data cannot be what `name` calls them, by where they are said to come from and the SHA-256 of their files; None
    where nothing speaks against it. What the official files hash to, only the hub knows: that they are not the bundled
    ones is known here."""
    if name != "official":
        return None
    if (repository, revision) != (OFFICIAL_REPOSITORY, OFFICIAL_REVISION):
        return (
            f"are called official, but come from {repository} at {revision}; official is {OFFICIAL_REPOSITORY} at "
            f"{OFFICIAL_REVISION}"
        )
    bundled = next((domain for domain, sha256 in files.items() if sha256 in _mini_hashes()), None)
    return bundled and f"are called official, but the file of {bundled} is that of the bundled data (mini)"


@cache
def _mini_hashes() -> frozenset[str]:
    """SHA-256 of every file of the bundled data."""
    paths = mini_folder().glob("*_test.jsonl")
    return frozenset(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)


def resolve_source(
    data: str,
    task_names: tuple[str, ...] = (),
    missing_ok: bool = False,
    announce: Announce | None = None,
) -> Source:
    """Find or fetch the files that `--data` names, for the tasks named or for all that it has.

    With `missing_ok` a folder may lack files of tasks that are named; they are left out. `announce` takes
    name and size of a file before a hub sends it. Raises DataError when a folder, file, repository or
    revision is missing, TaskError for tasks, StoreError when the hub's cache cannot be written.
    """
    tasks = load_tasks(task_names)
    if data == "official":
        return _from_hub(data, OFFICIAL_REPOSITORY, OFFICIAL_REVISION, tasks, announce)
    if data.startswith("hf:"):
        repository, _, revision = data.removeprefix("hf:").partition("@")
        if repository.count("/") != 1:
            raise DataError(f"--data {data}: expected hf:OWNER/NAME, with @REVISION if it shall be pinned")
        return _from_hub(data, repository, revision or None, tasks, announce)
    if data == "mini":
        return _from_folder("mini", mini_folder(), tasks, bool(task_names), missing_ok)
    folder = existing_folder(Path(data))
    if folder is None:
        raise DataError(f"--data {data}: {_no_folder(data, tasks)}")
    return _from_folder(f"folder {folder.resolve().name}", folder, tasks, bool(task_names), missing_ok)


def _no_folder(data: str, tasks: Mapping[str, Task]) -> str:
    """Why `data` names no folder, and what to give instead."""
    try:
        path = Path(data).expanduser()
        is_file = path.is_file()
    except (OSError, RuntimeError, ValueError):
        is_file = False
    if not is_file:
        hint = did_you_mean(data, ("mini", "official"))
        if data.casefold().rpartition("/")[2] == OFFICIAL_REPOSITORY.casefold().rpartition("/")[2]:
            hint = "; the benchmark is --data official"
        elif re.fullmatch(r"[\w.-]+/[\w.-]+", data):
            hint = f"; a repository of the hub is --data hf:{data}"
        return f"no such folder{hint} (mini, official, hf:OWNER/NAME or a folder)"
    for domain, task in tasks.items():
        if path.name == task.data_file:
            return f"is a file; name its folder: --data {path.parent} --tasks {domain}"
    return f"is a file; a folder of {{domain}}_test.jsonl files is wanted{described(path)}"


def _from_folder(name: str, folder: Path, tasks: dict[str, Task], chosen: bool, missing_ok: bool) -> Source:
    present = {path.name for path in folder.glob("*_test.jsonl")}
    known = {task.data_file for task in tasks.values()}
    if chosen and not missing_ok:
        for domain, task in tasks.items():
            if not (folder / task.data_file).is_file():
                has = ", ".join(sorted(present)) or "no {domain}_test.jsonl file"
                raise DataError(
                    f"{folder}: no file {task.data_file} for domain '{domain}' (the folder has {has})"
                )
    elif not chosen:
        for stray in sorted(present - known):
            domain = stray.removesuffix("_test.jsonl")
            raise DataError(
                f"{folder / stray}: unknown domain '{domain}'{did_you_mean(domain, tasks)}; name the domains to use "
                "with --tasks, or give its task file too (--tasks FOLDER,terminal)"
            )
    tasks = {domain: task for domain, task in tasks.items() if (folder / task.data_file).is_file()}
    if not tasks and not missing_ok:
        raise DataError(f"{folder}: no {{domain}}_test.jsonl file in this folder{_found_instead(folder)}")
    files = {domain: folder / task.data_file for domain, task in tasks.items()}
    return Source(name, files, tasks, origins=read_origins(folder))


def _found_instead(folder: Path) -> str:
    """Of the first files of a folder, one that another program wrote."""
    try:
        files = [path for path in sorted(folder.iterdir())[:20] if path.is_file()]
    except OSError:
        return ""
    return next((f" ({path.name}: {told[2:]})" for path in files if (told := described(path))), "")


def _from_hub(
    name: str, repository: str, revision: str | None, tasks: dict[str, Task], announce: Announce | None
) -> Source:
    files: dict[str, Path] = {}
    stated: dict[str, str] = {}
    commit: str | None = None  # of the first file: `main` may move while the others are fetched
    for domain, task in tasks.items():
        files[domain] = fetch(repository, task.data_file, commit or revision, announce)
        commit = commit or commit_of(files[domain])
        if known := known_hash(files[domain], repository):
            stated[domain] = known.sha256
    label = name if name == "official" else f"hf:{repository}@{commit or revision or 'main'}"
    return Source(label, files, tasks, repository, commit or revision, stated)
