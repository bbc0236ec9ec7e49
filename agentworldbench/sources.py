"""Where data files come from: the bundled set, a folder, or a dataset repository on a hub.

In: the word after `--data` and the tasks wanted. Out: a `Source` with one local file per domain, a
name, and for hubs the resolved commit. The official set is pinned to one revision. Downloads go
through `huggingface_hub`, so `HF_ENDPOINT`, `HF_HUB_OFFLINE`, `HF_HOME` and `HF_TOKEN` mean what
they mean everywhere; the library is imported only when a hub is asked. Where the SHA-256 of a file is known
(noted by `awb data pull`, or the name that the hub's cache gave it), the source states it, and `check`
compares it with the one that indexing the file has found anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from agentworldbench.errors import DataError
from agentworldbench.records import Record
from agentworldbench.resources import mini_folder
from agentworldbench.task import Task, load_tasks
from agentworldbench.yamlfile import did_you_mean

OFFICIAL_REPOSITORY: Final = "Qwen/AgentWorldBench"
OFFICIAL_REVISION: Final = "6b8d28437042434dcdd168434227ca0de408c5ba"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SECONDS: Final = 20.0
"""Longest wait for what the hub states about a file."""


class NotedFile(Record):
    """One file as it was pulled: size in bytes; `stated` tells whether the hub had stated the same hash."""

    sha256: str
    size: int
    stated: bool


class DataNote(Record):
    """What `awb data pull` notes in the hub's cache: the files of one revision, by name."""

    schema_version: Literal[1] = 1
    repository: str
    revision: str
    files: dict[str, NotedFile]


@dataclass(frozen=True)
class Source:
    """Local files by domain, and what they are called in results.

    `name` is `mini`, `official`, `hf:REPO@REVISION` or `folder NAME`; only `official` may stand beside
    published scores. `stated` holds the SHA-256 that a file must have, where that is known.
    """

    name: str
    files: Mapping[str, Path]
    tasks: Mapping[str, Task]
    repository: str | None = None
    revision: str | None = None
    stated: Mapping[str, str] = field(default_factory=dict)

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


def resolve_source(data: str, task_names: tuple[str, ...] = (), missing_ok: bool = False) -> Source:
    """Find or fetch the files that `--data` names, for the tasks named or for all that it has.

    With `missing_ok` a folder may lack files of tasks that are named; they are left out.
    Raises DataError when a folder, file, repository or revision is missing, TaskError for tasks.
    """
    tasks = load_tasks(task_names)
    if data == "official":
        return _from_hub(data, OFFICIAL_REPOSITORY, OFFICIAL_REVISION, tasks)
    if data.startswith("hf:"):
        repository, _, revision = data.removeprefix("hf:").partition("@")
        if repository.count("/") != 1:
            raise DataError(f"--data {data}: expected hf:OWNER/NAME, with @REVISION if it shall be pinned")
        return _from_hub(data, repository, revision or None, tasks)
    if data == "mini":
        return _from_folder("mini", mini_folder(), tasks, bool(task_names), missing_ok)
    folder = Path(data).expanduser()
    if not folder.is_dir():
        hint = did_you_mean(data, ("mini", "official"))
        raise DataError(f"--data {data}: no such folder{hint} (mini, official, hf:OWNER/NAME or a folder)")
    return _from_folder(f"folder {folder.resolve().name}", folder, tasks, bool(task_names), missing_ok)


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
        raise DataError(f"{folder}: no {{domain}}_test.jsonl file in this folder")
    return Source(
        name=name, files={domain: folder / task.data_file for domain, task in tasks.items()}, tasks=tasks
    )


def _from_hub(name: str, repository: str, revision: str | None, tasks: dict[str, Task]) -> Source:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    files: dict[str, Path] = {}
    stated: dict[str, str] = {}
    commit: str | None = None  # of the first file: `main` may move while the others are fetched
    for domain, task in tasks.items():
        place = f"{repository}@{revision or 'main'}/{task.data_file}"
        try:
            path = hf_hub_download(
                repository, task.data_file, repo_type="dataset", revision=commit or revision
            )
        except LocalEntryNotFoundError as problem:
            cause = f" ({str(problem.__cause__).splitlines()[0]})" if str(problem.__cause__ or "") else ""
            raise DataError(
                f"{place}: not in the local cache and the hub cannot be reached{cause}; run once with network (and "
                "without HF_HUB_OFFLINE), or give a folder with --data PATH"
            ) from problem
        except RevisionNotFoundError as problem:
            raise DataError(f"{place}: the repository has no such revision") from problem
        except RepositoryNotFoundError as problem:
            raise DataError(
                f"{place}: the hub has no such dataset repository, or HF_TOKEN may not read it"
            ) from problem
        except EntryNotFoundError as problem:
            raise DataError(
                f"{place}: the repository has no such file; choose domains with --tasks"
            ) from problem
        except _broken() as problem:
            reason = (str(problem).splitlines() or [type(problem).__name__])[0]
            raise DataError(
                f"{place}: {reason}; files that came whole are kept for the next try"
            ) from problem
        files[domain] = Path(path)
        commit = commit or _commit_of(files[domain])
        if sha256 := _stated(files[domain], repository):
            stated[domain] = sha256
    label = name if name == "official" else f"hf:{repository}@{commit or revision or 'main'}"
    return Source(label, files, tasks, repository, commit or revision, stated)


def _broken() -> tuple[type[Exception], ...]:
    """What the hub's library raises when something fails that it has no class of its own for.

    Its HTTP client is another one in each major version: the base of all errors of the one in use is
    the base of its own HTTP error. Its transfer in chunks (hf_xet) raises plain RuntimeErrors.
    """
    from huggingface_hub.errors import HfHubHTTPError

    client_error: type[Exception] = HfHubHTTPError.__bases__[0]
    return client_error, OSError, ValueError, RuntimeError


def _commit_of(path: Path) -> str | None:
    """The commit that a cached file belongs to: its snapshot folder's name."""
    parts = path.parts
    for place in range(len(parts) - 2, 0, -1):
        if parts[place - 1] == "snapshots":
            return parts[place]
    return None


def cached_file(name: str) -> Path | None:
    """Where the hub's cache has this file of the official data set, or None. Nothing is contacted."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(OFFICIAL_REPOSITORY, name, revision=OFFICIAL_REVISION, repo_type="dataset")
    return Path(path) if isinstance(path, str) else None


def stated_by_hub(name: str) -> tuple[str | None, int | None]:
    """(SHA-256, size in bytes) that the hub states for a file of the official data set.

    None where it states none (it does for files in large file storage), or cannot be asked.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(OFFICIAL_REPOSITORY, name, repo_type="dataset", revision=OFFICIAL_REVISION)
    try:
        facts = get_hf_file_metadata(url, timeout=_SECONDS)
    except _broken():
        return None, None
    sha256 = facts.etag if facts.etag and _SHA256.fullmatch(facts.etag) else None
    return sha256, facts.size


def write_note(path: Path, note: DataNote) -> None:
    """Note the hashes beside the snapshots that the file `path` belongs to. Raises OSError."""
    place = _note_path(path)
    if place:
        part = place.with_name(f"{place.name}.part")
        part.write_text(json.dumps(note.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
        part.replace(place)


def _stated(path: Path, repository: str) -> str | None:
    """The SHA-256 of a file of the hub's cache: as noted by a pull, else as its blob is named.

    The cache names a blob by what the hub states when it is fetched: the SHA-256 of files in large file
    storage, something shorter for others. Without links in the cache there are no names.
    """
    place = _note_path(path)
    try:
        note = DataNote.model_validate_json(place.read_bytes()) if place else None
    except (OSError, ValidationError):
        note = None
    if note and note.repository == repository and (noted := note.files.get(path.name)):
        return noted.sha256
    blob = path.readlink() if path.is_symlink() else path
    return blob.name if blob.parent.name == "blobs" and _SHA256.fullmatch(blob.name) else None


def _note_path(path: Path) -> Path | None:
    commit = _commit_of(path)
    if commit is None:
        return None
    return next(folder for folder in path.parents if folder.name == commit).parent.with_name(
        f"agentworldbench-{commit}.json"
    )
