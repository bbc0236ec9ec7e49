"""Asking a dataset hub for a file, and what its cache on this machine says about one.

In: repository, file name, revision. Out: the local file, or one line on what was wrong and what to do.
All of it goes through `huggingface_hub`, imported when a hub is asked, so `HF_ENDPOINT`, `HF_HUB_OFFLINE`,
`HF_HOME` and `HF_TOKEN` mean what they mean everywhere. That library tries a hub that nobody can reach for
24 seconds, and for minutes where packets are dropped. So a file that is not in the cache is asked for here
first: no connection and a stranger's answer are said at once, a fault that may pass is asked again. `awb data
pull` notes the hashes that it found in the cache; else the cache's own names for files tell them.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeGuard, TypeVar

from pydantic import ValidationError

from agentworldbench.download import (
    ATTEMPTS,
    BUSY,
    PAGE,
    check_target,
    first_line,
    is_http,
    is_page,
    pause,
    shown,
    unreached,
)
from agentworldbench.errors import AwbError, ConfigError, DataError, StoreError
from agentworldbench.records import Record

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
# Classes by name, because the library's HTTP client is another one in each major version.
_UNREACHED: Final = frozenset({"ConnectError", "ConnectTimeout", "ProxyError", "ConnectionError"})
_RESET: Final = frozenset({"ReadError", "WriteError", "ChunkedEncodingError"})
_DROPPED: Final = _RESET | {"TimeoutException", "Timeout", "RemoteProtocolError"}
Announce = Callable[[str, int | None], None]
Wait = Callable[[float], None]
Answer = TypeVar("Answer")


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
class HubFacts:
    """What the hub states about a file: SHA-256 (for files in large file storage) and size in bytes."""

    sha256: str | None
    size: int | None


@dataclass(frozen=True)
class KnownHash:
    """The SHA-256 that a cached file must have; `by_hub` is False where it was only found, not stated."""

    sha256: str
    by_hub: bool


class _Stranger(ConnectionError):
    """Something answered that is no hub."""


def fetch(
    repository: str,
    name: str,
    revision: str | None,
    announce: Announce | None = None,
    wait: Wait = time.sleep,
) -> Path:
    """The file from the cache, else from the hub; `announce` takes name and size before it is fetched.

    Raises DataError when it cannot be had, StoreError when the cache cannot be written, ConfigError for
    settings of the environment that cannot be used.
    """
    with _explained(repository, name, revision):
        from huggingface_hub import hf_hub_download

        new = _cached(repository, name, revision) is None
        if new:
            facts = _facts(repository, name, revision, wait)
            if announce:
                announce(name, facts.size)
        get = partial(hf_hub_download, repository, name, repo_type="dataset", revision=revision)
        # The library asks again by itself, and resumes, after other faults than these.
        path = Path(_patiently(get, wait, _RESET, BUSY - {408, 429}))
        if new and _begins_as_page(path):
            discard(path)
            raise _Stranger(PAGE)
        return path


def ask(repository: str, name: str, revision: str | None, wait: Wait = time.sleep) -> HubFacts:
    """What the hub states about a file. Raises as `fetch` does."""
    with _explained(repository, name, revision):
        return _facts(repository, name, revision, wait)


def cached_file(repository: str, name: str, revision: str | None) -> Path | None:
    """Where the hub's cache has this file, or None. Nothing is contacted. Raises ConfigError as `fetch`."""
    with _explained(repository, name, revision):
        return _cached(repository, name, revision)


def cache_folder(repository: str) -> Path:
    """Where the hub's cache keeps a dataset repository. Raises ConfigError as `fetch`."""
    check_endpoint()
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"datasets--{repository.replace('/', '--')}"


def _cached(repository: str, name: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(repository, name, revision=revision, repo_type="dataset")
    return Path(path) if isinstance(path, str) else None


def _facts(repository: str, name: str, revision: str | None, wait: Wait) -> HubFacts:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(repository, name, repo_type="dataset", revision=revision)
    ask_once = partial(get_hf_file_metadata, url, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    facts = _patiently(ask_once, wait, _DROPPED, BUSY)
    check_target(url, facts.location)
    if facts.commit_hash is None:
        elsewhere = "" if facts.location == url else f", from {shown(facts.location)}"
        raise _Stranger(
            f"{shown(url)}: what answered{elsewhere} is no hub: a login page or a proxy, or HF_ENDPOINT names something "
            "else; open the address in a browser and log in there, or set HTTPS_PROXY, NO_PROXY or HF_ENDPOINT, then "
            "run the same command again"
        )
    sha256 = facts.etag if facts.etag and _SHA256.fullmatch(facts.etag) else None
    return HubFacts(sha256, facts.size)


def _patiently(
    action: Callable[[], Answer], wait: Wait, passing: frozenset[str], statuses: frozenset[int]
) -> Answer:
    """What `action` returns, tried again after these exceptions and statuses: they may pass."""
    for attempt in range(1, ATTEMPTS):
        try:
            return action()
        except faults() as problem:
            names = class_names(problem)
            if http_status(problem) not in statuses and (names & _UNREACHED or not names & passing):
                raise
            wait(pause(attempt, getattr(getattr(problem, "response", None), "headers", None)))
    return action()


def faults() -> tuple[type[Exception], ...]:
    """What the hub's library raises when something fails that it has no class of its own for.

    Its HTTP client is another one in each major version: the base of all errors of the one in use is
    the base of its own HTTP error. Its transfer in chunks (hf_xet) raises plain RuntimeErrors; a SOCKS
    proxy without the package for it is an ImportError.
    """
    from huggingface_hub.errors import HfHubHTTPError

    client_error: type[Exception] = HfHubHTTPError.__bases__[0]
    return client_error, OSError, ValueError, RuntimeError, ImportError


def class_names(problem: BaseException) -> set[str]:
    """The names of an exception's class and its bases, Python's own left out."""
    return {kind.__name__ for kind in type(problem).__mro__ if kind.__module__ != "builtins"}


def http_status(problem: BaseException) -> int | None:
    status = getattr(getattr(problem, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def check_endpoint() -> None:
    # Some versions of the library cannot even be imported with an address that is none.
    endpoint = os.environ.get("HF_ENDPOINT", "").strip()
    if endpoint and not is_http(endpoint):
        raise ConfigError("HF_ENDPOINT: expected a hub's address, beginning with http:// or https://")


@contextmanager
def _explained(repository: str, name: str, revision: str | None) -> Iterator[None]:
    """Turn what the library raises into an error of ours."""
    check_endpoint()
    try:
        yield
    except faults() as problem:
        cause = problem.__cause__
        # The library's own error for "not in the cache" says nothing about the reason.
        within = cause if "LocalEntryNotFoundError" in class_names(problem) and cause else problem
        raise _explanation(repository, name, revision, within) from problem


def _explanation(repository: str, name: str, revision: str | None, problem: BaseException) -> AwbError:
    from huggingface_hub import constants

    place = f"{repository}@{revision or 'main'}/{name}"
    names = class_names(problem)
    if known := next((text for kind, text in _ABSENT.items() if kind in names), None):
        return DataError(f"{place}: {known}")
    if _of_the_disk(problem):
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "make room" if full else "give the right to write there"
        return StoreError(
            f"{problem.filename or cache_folder(repository)}: cannot be read or written ({problem.strerror}); {advice}, or "
            "set HF_HOME to another folder; files that came whole are kept"
        )
    offline = "OfflineModeIsEnabled" in names
    if offline or names & _UNREACHED:
        why = f"{shown(constants.ENDPOINT)}: {unreached(constants.ENDPOINT, problem)}"
        return DataError(
            f"{place}: not in the local cache and the hub cannot be reached "
            f"({'HF_HUB_OFFLINE is set' if offline else why}); with network, run the same command again"
            f"{' without HF_HUB_OFFLINE' if offline else ''}; without, copy {cache_folder(repository)} from a machine "
            "that has it, name a mirror with HF_ENDPOINT, or run with --data DIR, a folder with the files"
        )
    if isinstance(problem, _Stranger):
        return DataError(f"{place}: {problem}")
    reason = first_line(problem)
    if status := http_status(problem):
        reason = f"{shown(constants.ENDPOINT)} answered HTTP {status}"
    elif reason.startswith("Consistency check failed"):
        reason = f"what came has another size than the hub states: the connection broke, or {PAGE}"
    return DataError(f"{place}: {reason}; files that came whole are kept for the next try")


_ABSENT: Final[Mapping[str, str]] = {
    "RevisionNotFoundError": "the repository has no such revision",
    "RepositoryNotFoundError": "the hub has no such dataset repository, or HF_TOKEN may not read it",
    "EntryNotFoundError": "the repository has no such file; choose domains with --tasks",
}


def _of_the_disk(problem: BaseException) -> TypeGuard[OSError]:
    """Whether the file system refused something; network clients derive classes of their own."""
    if type(problem).__module__ != "builtins" or isinstance(problem, ConnectionError | TimeoutError):
        return False
    return isinstance(problem, OSError) and bool(problem.errno)


def _begins_as_page(path: Path) -> bool:
    with path.open("rb") as file:
        return is_page(file.read(512))


def discard(path: Path) -> None:
    """Remove a file of the hub's cache and what it points to, so that the hub's library fetches it anew.

    Raises DataError when it cannot be removed.
    """
    try:
        while path.is_symlink():
            target = path.parent / path.readlink()
            path.unlink()
            path = target
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise DataError(
            f"{path}: is not the right file and cannot be removed ({problem.strerror}); remove it by hand"
        ) from problem


def write_note(path: Path, note: DataNote) -> None:
    """Note the hashes beside the snapshots that the file `path` belongs to. Raises OSError."""
    place = _note_path(path)
    if place:
        part = place.with_name(f"{place.name}.{os.getpid()}.part")
        try:
            part.write_text(json.dumps(note.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)


def known_hash(path: Path, repository: str) -> KnownHash | None:
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
        return KnownHash(noted.sha256, noted.stated)
    blob = path.readlink() if path.is_symlink() else path
    named = blob.parent.name == "blobs" and _SHA256.fullmatch(blob.name)
    return KnownHash(blob.name, True) if named else None


def commit_of(path: Path) -> str | None:
    """The commit that a cached file belongs to: its snapshot folder's name."""
    parts = path.parts
    for place in range(len(parts) - 2, 0, -1):
        if parts[place - 1] == "snapshots":
            return parts[place]
    return None


def _note_path(path: Path) -> Path | None:
    commit = commit_of(path)
    if commit is None:
        return None
    return next(folder for folder in path.parents if folder.name == commit).parent.with_name(
        f"agentworldbench-{commit}.json"
    )
