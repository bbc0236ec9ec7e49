"""Fetches the official files: the judge prompts of the repository, the data set of the hub; all checked by hash.

In: what to fetch, and `tell`, which takes a line of progress. Out: a `Pulled`: the files, where they lie,
and what was done for each. Prompt files go to the cache folder of `official_files.py` and are compared
with its manifest. Data files go through `huggingface_hub` to its cache; their SHA-256 is compared with
the one that the hub states for the pinned revision, and noted beside them for later runs. What is there
and right is not fetched again; a wrong hash is refused, and the file does not stay.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from filelock import FileLock

from agentworldbench.download import download, http_client, shown
from agentworldbench.errors import ConfigError, DataError, StoreError
from agentworldbench.official_files import (
    OFFICIAL,
    OfficialFile,
    OfficialManifest,
    OfficialPrompts,
    find_file,
    missing_files,
    named,
    official_prompts,
    prompts_folder,
    read_file,
)
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.sources import (
    OFFICIAL_REPOSITORY,
    OFFICIAL_REVISION,
    DataNote,
    NotedFile,
    cached_file,
    resolve_source,
    stated_by_hub,
    write_note,
)
from agentworldbench.task import load_tasks

BASE_VARIABLE: Final = "AWB_OFFICIAL_PROMPTS_URL"
"""Names a mirror: the address of the repository's files at the pinned commit, without the files' paths."""
_OFFLINE: Final = frozenset({"1", "ON", "YES", "TRUE"})
Tell = Callable[[str], None]
Wait = Callable[[float], None]


@dataclass(frozen=True)
class PulledFile:
    """One file that is there now and has the hash shown; `checked` is False where nothing states a hash."""

    name: str
    path: Path
    size: int
    sha256: str
    state: Literal["fetched", "copied", "already there"]
    checked: bool = True


@dataclass(frozen=True)
class Pulled:
    """What a pull left. `origin` names the repository and its commit, `folder` where the files lie."""

    origin: str
    folder: Path
    files: tuple[PulledFile, ...]


def prompts_for_run(
    folder: Path | None, tell: Tell, manifest: OfficialManifest = OFFICIAL, wait: Wait = time.sleep
) -> OfficialPrompts:
    """The official prompts from `folder`, else from the cache, fetched first if files are missing there.

    Raises DataError as `official_prompts` and `pull_prompts` do.
    """
    if folder is None and missing_files(prompts_folder(manifest), manifest):
        pull_prompts(tell, manifest, wait=wait)
    return official_prompts(folder, manifest)


def pull_prompts(
    tell: Tell,
    manifest: OfficialManifest = OFFICIAL,
    origin: Path | None = None,
    wait: Wait = time.sleep,
) -> Pulled:
    """Bring the prompt files to the cache: those that are missing or wrong there, from the network, or
    all from the folder `origin`.

    Raises DataError for a wrong hash, and when the files cannot be had; StoreError when the cache folder
    cannot be written; ConfigError for settings of the environment that cannot be used.
    """
    folder = prompts_folder(manifest)
    fetched: set[str] = set()
    copied = False
    if origin is not None:
        if not origin.expanduser().is_dir():
            raise DataError(f"--prompts-from {origin}: no such folder")
        official_prompts(origin, manifest)  # all of them, or none
        with _writing(folder):
            _copy(origin.expanduser(), folder, manifest)
        copied = True
    elif _lacking(folder, manifest):
        with _writing(folder):
            # Asked again: another process may have fetched them while this one waited.
            lacking = _lacking(folder, manifest)
            _fetch(lacking, folder, manifest, tell, wait)
            fetched = {file.path for file in lacking}
    official_prompts(folder, manifest)
    files = []
    for file in manifest.files:
        entry = _entry(folder, file, manifest)
        path = find_file(folder, entry)
        assert path is not None
        state: Literal["fetched", "copied", "already there"] = "copied" if copied else "already there"
        state = "fetched" if file.path in fetched else state
        files.append(PulledFile(entry.path, path, entry.size, entry.sha256, state))
    return Pulled(f"{manifest.repository} at {manifest.commit}", folder, tuple(files))


def _entry(folder: Path, file: OfficialFile, manifest: OfficialManifest) -> OfficialFile:
    """`file`, or the template's text where a folder has that in place of the Python file."""
    instead = file is manifest.code and find_file(folder, file) is None
    return manifest.template if instead and find_file(folder, manifest.template) else file


def _lacking(folder: Path, manifest: OfficialManifest) -> list[OfficialFile]:
    """The files that are missing in the cache, or not what they should be."""
    lacking = []
    for file in manifest.files:
        try:
            read_file(folder, _entry(folder, file, manifest), manifest)
        except DataError:
            lacking.append(file)
    return lacking


def _copy(origin: Path, folder: Path, manifest: OfficialManifest) -> None:
    for file in manifest.files:
        entry = _entry(origin, file, manifest)
        _, text = read_file(origin, entry, manifest)
        target = folder / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        part.write_bytes(text.encode("utf-8"))
        part.replace(target)
        if entry is manifest.template:  # else an older Python file would be read in its place
            (folder / manifest.code.path).unlink(missing_ok=True)


def _fetch(
    lacking: list[OfficialFile], folder: Path, manifest: OfficialManifest, tell: Tell, wait: Wait
) -> None:
    if not lacking:
        return
    base = _base(manifest)
    try:
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in _OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE is set")
        size = size_text(sum(file.size for file in lacking))
        tell(f"Official prompts: fetching {len(lacking)} files ({size}) from {shown(base)} to {folder}")
        with http_client() as client:
            for number, file in enumerate(lacking, start=1):
                download(client, f"{base}/{file.path}", folder / file.path, file.size, file.sha256, wait)
                tell(f"  {number}/{len(lacking)} {file.path}, {size_text(file.size)}")
    except ConnectionError as problem:
        raise DataError(
            f"official prompts: {problem}; bring these files of {manifest.repository} at commit {manifest.commit} "
            f"from elsewhere: {named(lacking)}; then name their folder with --prompts DIR, or keep them with "
            "`awb data pull official-prompts --prompts-from DIR`"
        ) from problem


def _base(manifest: OfficialManifest) -> str:
    own = os.environ.get(BASE_VARIABLE, "").strip().rstrip("/")
    if not own:
        raw = manifest.repository.replace("https://github.com/", "https://raw.githubusercontent.com/")
        return f"{raw}/{manifest.commit}"
    if not own.startswith(("http://", "https://")) or "?" in own or "#" in own:
        raise ConfigError(
            f"{BASE_VARIABLE}: expected the address that stands before /prompts/mcp/…, beginning with "
            "http:// or https:// and without ? and #"
        )
    return own


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """One process at a time; what the disk refuses becomes a StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            yield
    except OSError as problem:
        raise StoreError(
            f"{folder}: cannot be written ({problem.strerror or problem}); set AWB_CACHE to another folder"
        ) from problem


def pull_data(tell: Tell) -> Pulled:
    """Bring the seven files of the official data set to the hub's cache, and note their hashes there.

    Raises DataError for a wrong hash, and when the hub or a file of it cannot be had.
    """
    files = tuple(_pull_file(domain, tell) for domain in OFFICIAL_DOMAINS)
    note = DataNote(
        repository=OFFICIAL_REPOSITORY,
        revision=OFFICIAL_REVISION,
        files={
            file.name: NotedFile(sha256=file.sha256, size=file.size, stated=file.checked) for file in files
        },
    )
    folder = files[0].path.parent
    try:
        write_note(files[0].path, note)
    except OSError as problem:  # a cache that many share may be read-only; the files are there and right
        tell(f"{folder}: the hashes cannot be noted there ({problem.strerror or problem})")
    return Pulled(f"{OFFICIAL_REPOSITORY} at {OFFICIAL_REVISION}", folder, files)


def _pull_file(domain: str, tell: Tell) -> PulledFile:
    name = load_tasks((domain,))[domain].data_file
    there = cached_file(name) is not None
    for again in (False, True):
        stated = None
        if cached_file(name) is None:
            stated, size = stated_by_hub(name)
            tell(f"{name}: fetching" + (f" {size_text(size)}" if size else ""))
        source = resolve_source("official", (domain,))
        path = source.files[domain]
        stated = stated or source.stated.get(domain) or stated_by_hub(name)[0]
        found = _sha256(path)
        if stated in (None, found):
            if stated is None:
                tell(f"{name}: not checked, the hub states no SHA-256 for it")
            state: Literal["fetched", "already there"] = "already there" if there and not again else "fetched"
            return PulledFile(name, path, path.stat().st_size, found, state, checked=stated is not None)
        _discard(path)
        if not there:
            break
        tell(f"{name}: what lay in the cache is not what the hub states; removed")
    raise DataError(
        f"{path}: SHA-256 is {found}, the hub states {stated} for revision {OFFICIAL_REVISION[:12]}; the file was "
        "removed: run the same command again, and if that fails too, do not use this hub or proxy"
    )


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from problem


def _discard(path: Path) -> None:
    """Remove a file of the hub's cache and what it points to, so that the hub library fetches it anew."""
    try:
        while path.is_symlink():
            target = path.parent / path.readlink()
            path.unlink()
            path = target
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise DataError(
            f"{path}: has a wrong SHA-256 and cannot be removed ({problem.strerror}); remove it by hand"
        ) from problem


def size_text(size: int) -> str:
    """A number of bytes as people read it."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
