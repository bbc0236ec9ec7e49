"""Fetches the official files: the judge prompts of the repository, the data set of the hub; all checked by hash.

In: what to fetch, and `tell`, which takes a line of progress. Out: a `Pulled`: the files, where they lie,
and what was done for each. Prompt files go to the cache folder of `official_files.py` and are compared
with its manifest. Data files go through `huggingface_hub` to its cache; their SHA-256 is compared with
the one that the hub states for the pinned revision, and noted beside them for later runs. What is there
and right is not fetched again; a wrong hash is refused, and the file does not stay. One process fetches
at a time, another one says that it waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from filelock import FileLock, Timeout

from agentworldbench.download import download, http_client, is_http, shown
from agentworldbench.errors import ConfigError, DataError, StoreError
from agentworldbench.hub import (
    DataNote,
    KnownHash,
    NotedFile,
    ask,
    cache_folder,
    cached_file,
    discard,
    known_hash,
    write_note,
)
from agentworldbench.official_files import (
    OFFICIAL,
    OfficialFile,
    OfficialManifest,
    OfficialPrompts,
    existing_folder,
    find_file,
    missing_files,
    named,
    official_prompts,
    prompts_folder,
    read_file,
)
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.sources import OFFICIAL_REPOSITORY, OFFICIAL_REVISION, resolve_source
from agentworldbench.task import load_tasks
from agentworldbench.texts import count_text, sha256_file

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
        place = existing_folder(origin)
        if place is None:
            raise DataError(f"--prompts-from {origin}: no such folder")
        official_prompts(place, manifest)  # all of them, or none
        with _writing(folder, tell):
            _copy(place, folder, manifest)
        copied = True
    elif _lacking(folder, manifest):
        with _writing(folder, tell):
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
        tell(
            f"Official prompts: fetching {count_text(len(lacking), 'file')} ({size}) from {shown(base)} to {folder}"
        )
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
    if not is_http(own) or "?" in own or "#" in own:
        raise ConfigError(
            f"{BASE_VARIABLE}: expected the address that stands before /prompts/mcp/…, beginning with "
            "http:// or https:// and without ? and #"
        )
    return own


@contextmanager
def _writing(folder: Path, tell: Tell) -> Iterator[None]:
    """One process at a time; what the disk refuses becomes a StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(f"{folder.name}.lock"), tell):
            yield
    except (OSError, NotImplementedError) as problem:  # the latter: a file system without locks
        reason = getattr(problem, "strerror", None) or problem
        where = getattr(problem, "filename", None) or folder
        raise StoreError(
            f"{where}: cannot be written ({reason}); make room or give the right to write there, or set AWB_CACHE to "
            "another folder"
        ) from problem


@contextmanager
def _alone(lock: Path, tell: Tell) -> Iterator[None]:
    """Hold a lock file; wait, after saying so, while another process holds it."""
    held = FileLock(lock)
    try:
        held.acquire(timeout=0)
    except Timeout:
        tell(f"another awb is fetching these files (it holds {lock}); waiting for it")
        held.acquire()
    try:
        yield
    finally:
        held.release()


def pull_data(tell: Tell, wait: Wait = time.sleep) -> Pulled:
    """Bring the seven files of the official data set to the hub's cache, and note their hashes there.

    Raises DataError for a wrong hash, and when the hub or a file of it cannot be had; StoreError when the
    hub's cache cannot be written; ConfigError for settings of the environment that cannot be used.
    """
    with _alone_in_cache(tell):
        files = tuple(_pull_file(domain, tell, wait) for domain in OFFICIAL_DOMAINS)
        note = DataNote(
            repository=OFFICIAL_REPOSITORY,
            revision=OFFICIAL_REVISION,
            files={
                file.name: NotedFile(sha256=file.sha256, size=file.size, stated=file.checked)
                for file in files
            },
        )
        folder = files[0].path.parent
        try:
            write_note(files[0].path, note)
        except OSError as problem:  # a cache that many share may be read-only; the files are there and right
            tell(f"{folder}: the hashes cannot be noted there ({problem.strerror or problem})")
    return Pulled(f"{OFFICIAL_REPOSITORY} at {OFFICIAL_REVISION}", folder, files)


@contextmanager
def _alone_in_cache(tell: Tell) -> Iterator[None]:
    folder = cache_folder(OFFICIAL_REPOSITORY)
    with ExitStack() as held:
        # Where this cannot be written, or has no locks: the hub's library locks each file as well as it can.
        with suppress(OSError, NotImplementedError):
            lock = folder.parent / ".locks" / folder.name / "agentworldbench.lock"
            lock.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(_alone(lock, tell))
        yield


def _pull_file(domain: str, tell: Tell, wait: Wait) -> PulledFile:
    name = load_tasks((domain,))[domain].data_file

    def announce(name: str, size: int | None) -> None:
        tell(f"{name}: fetching" + (f" {size_text(size)}" if size else ""))

    there = cached_file(OFFICIAL_REPOSITORY, name, OFFICIAL_REVISION) is not None
    again = False
    while True:
        path = resolve_source("official", (domain,), announce=announce).files[domain]
        known = _known(path, name, tell, wait)
        found = data_sha256(path)
        if known is None or known.sha256 == found:
            state: Literal["fetched", "already there"] = "already there" if there and not again else "fetched"
            checked = known is not None and known.by_hub
            return PulledFile(name, path, path.stat().st_size, found, state, checked)
        discard(path)
        says = "the hub states" if known.by_hub else "an earlier pull noted"
        if again or not there:
            raise DataError(
                f"{path}: SHA-256 is {found}, {says} {known.sha256} for revision {OFFICIAL_REVISION[:12]}; the file "
                "was removed: run the same command again, and if that fails too, do not use this hub or proxy"
            )
        tell(f"{name}: what lay in the cache is not what {says}; removed")
        again = True


def _known(path: Path, name: str, tell: Tell, wait: Wait) -> KnownHash | None:
    """What the file must be: by the cache where that has it from the hub, else by asking the hub."""
    known = known_hash(path, OFFICIAL_REPOSITORY)
    if known and known.by_hub:
        return known
    try:
        stated = ask(OFFICIAL_REPOSITORY, name, OFFICIAL_REVISION, wait).sha256
        reason = "the hub states no SHA-256 for it"
    except DataError as problem:
        stated, reason = None, str(problem)
    if stated:
        return KnownHash(stated, by_hub=True)
    tell(f"{name}: not checked, {reason}")
    return known


def data_sha256(path: Path) -> str:
    """Hex SHA-256 of a file. Raises DataError when it cannot be read."""
    try:
        return sha256_file(path)
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from problem


def size_text(size: int) -> str:
    """A number of bytes as people read it."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
