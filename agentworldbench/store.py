"""A run directory: everything one evaluation produced, safe against kill -9.

    run.json            what was asked of whom (see `run.py`); replaced atomically
    predictions.jsonl   append-only journal of `Prediction` records
    verdicts.jsonl      append-only journal of `Verdict` records
    metrics.jsonl       derived: `SampleMetrics`, made again by `awb score`
    results.json        derived: what leaderboards read
    run.lock            held by the one process that writes, which `run.owner` names

Journals hold one JSON record a line, are read as bytes and split on `\\n` alone; the last record of a key
counts. Before appending, a torn last line (the process died while writing) is moved to a `.torn` file.
A record is flushed at once, so it survives the process, and synced each second, so it survives the machine.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.records import Prediction, SampleMetrics, Verdict

R = TypeVar("R", Prediction, Verdict)
SYNC_SECONDS = 1.0
RUN_SECTIONS = ("predict", "selection", "judges")


class Journal(Generic[R]):
    """Append-only records of one kind with an index of the last record of each key.

    The index holds byte offsets, not records, so memory stays flat. `bad_lines` lists the line
    numbers that could not be read; they are left in the file and reported, never dropped from it.
    """

    def __init__(self, path: Path, record: type[R]) -> None:
        self.path = path
        self._record: type[R] = record
        self._index: dict[Hashable, tuple[int, int]] = {}
        self.bad_lines: list[int] = []
        self._end = 0
        self._file: Any = None
        self._synced = 0.0
        if path.exists():
            self._scan()

    def _scan(self) -> None:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                body = line.rstrip(b"\n")
                try:
                    record = self._record.model_validate_json(body)
                except ValidationError:
                    if body.strip() and line.endswith(b"\n"):
                        self.bad_lines.append(number)
                else:
                    self._index[record.key] = (self._end, len(body))
                self._end += len(line)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: Hashable) -> R | None:
        """The last record of `key`, read from the file, or None."""
        place = self._index.get(key)
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place[0])
            return self._record.model_validate_json(file.read(place[1]))

    def __iter__(self) -> Iterator[R]:
        """The last record of each key, in file order, read one at a time."""
        if not self._index:
            return
        with self.path.open("rb") as file:
            for offset, length in sorted(self._index.values()):
                file.seek(offset)
                yield self._record.model_validate_json(file.read(length))

    def append(self, record: R) -> None:
        """Write, flush and index one record. Raises StoreError when the disk refuses."""
        body = record.model_dump_json(exclude_defaults=True).encode("utf-8")
        body = _with_version(body, record)
        try:
            if self._file is None:
                self._open()
            self._file.write(body + b"\n")
            self._file.flush()
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self.sync()
        except OSError as problem:
            self._abandon()
            raise StoreError(
                f"{self.path}: cannot be written ({problem.strerror}); what was written stays"
            ) from problem
        self._index[record.key] = (self._end, len(body))
        self._end += len(body) + 1

    def _open(self) -> None:
        self.path.touch()
        data_end = _mend_tail(self.path, self._is_record)
        self._end = data_end
        self._file = self.path.open("ab")

    def _abandon(self) -> None:
        """Let go of a file that refused a record; the next append mends its tail."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # closing tries once more to write what could not be written
                file.close()

    def _is_record(self, body: bytes) -> bool:
        try:
            self._record.model_validate_json(body)
        except ValidationError:
            return False
        return True

    def sync(self) -> None:
        """Force what was written to the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and close; reading stays possible."""
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None


def _with_version(body: bytes, record: Prediction | Verdict) -> bytes:
    """Defaults are left out to keep lines short, but the version always stands first."""
    return b'{"schema_version":%d,' % record.schema_version + body[1:]


def _mend_tail(path: Path, is_record: Callable[[bytes], bool]) -> int:
    """Make the file end in a whole line and return its size.

    A last line without newline that is a whole record gets its newline; anything else is moved to
    `<name>.torn`.
    """
    data = path.read_bytes() if path.stat().st_size < 1 << 20 else _tail(path)
    size = path.stat().st_size
    if size == 0 or data.endswith(b"\n"):
        return size
    last = data.rpartition(b"\n")[2]
    if is_record(last):
        with path.open("ab") as file:
            file.write(b"\n")
        return size + 1
    with path.with_name(path.name + ".torn").open("ab") as file:
        file.write(last + b"\n")
    os.truncate(path, size - len(last))
    return size - len(last)


def _tail(path: Path) -> bytes:
    """The end of a large file, at least back to its last newline."""
    size = path.stat().st_size
    reach = 1 << 20
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - reach))
            data = file.read()
            if b"\n" in data[:-1] or reach >= size:
                return data
            reach *= 4


class Store:
    """The files of one run directory, as `open_store` (reading) or `locked_store` (writing) gave it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.predictions: Journal[Prediction] = Journal(path / "predictions.jsonl", Prediction)
        self.verdicts: Journal[Verdict] = Journal(path / "verdicts.jsonl", Verdict)

    def read_json(self, name: str) -> Any:
        """Content of `run.json` or `results.json`, or None when it does not exist.

        Raises StoreError naming the file when it is not what this harness writes.
        """
        path = self.path / name
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError, RecursionError) as problem:
            raise StoreError(f"{path}: cannot be read ({problem}); move it away to start anew") from problem
        needed = RUN_SECTIONS if name == "run.json" else ()
        if not isinstance(value, dict) or not all(section in value for section in needed):
            raise StoreError(f"{path}: not a {name} of a run; move it away to start anew")
        return value

    def write_json(self, name: str, value: Any) -> None:
        """Replace a small file atomically: unique temporary file, fsync, rename."""
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        self._replace(name, [text.encode("utf-8")])

    def write_metrics(self, records: Iterable[SampleMetrics]) -> None:
        """Replace `metrics.jsonl` atomically."""
        self._replace(
            "metrics.jsonl", (record.model_dump_json().encode("utf-8") + b"\n" for record in records)
        )

    def read_metrics(self) -> Iterator[SampleMetrics]:
        """The derived metrics, in sample order."""
        path = self.path / "metrics.jsonl"
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    yield SampleMetrics.model_validate_json(line)

    def _replace(self, name: str, chunks: Iterable[bytes]) -> None:
        temporary = self.path / f".{name}.{os.getpid()}.tmp"
        try:
            with temporary.open("wb") as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)
        except OSError as problem:
            temporary.unlink(missing_ok=True)
            raise StoreError(f"{self.path / name}: cannot be written ({problem.strerror})") from problem

    def close(self) -> None:
        """Force the journals to the disk and close them; reading stays possible."""
        self.predictions.close()
        self.verdicts.close()


def open_store(path: Path) -> Store:
    """Open a run directory for reading. Raises ConfigError when it is none."""
    if not (path / "run.json").is_file():
        raise ConfigError(f"{path}: no run.json there; give the directory of a run")
    return Store(path)


@contextmanager
def locked_store(path: Path) -> Iterator[Store]:
    """Open a run directory as its one writer, making it when it does not exist.

    The journals are read after the lock is held. Raises ConfigError when another process holds it
    or when the folder is something else, StoreError when it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        ours = {"run.json", "run.lock"} & {entry.name for entry in path.iterdir()}
        if not ours and any(path.iterdir()):
            raise ConfigError(f"{path}: not empty and not a run directory; choose another --output")
        lock = FileLock(path / "run.lock")
        lock.acquire(timeout=0)
    except Timeout:
        owner = path / "run.owner"
        who = owner.read_text(encoding="utf-8").strip() if owner.exists() else "another process"
        raise ConfigError(f"{path}: in use by {who}; wait for it or choose another --output") from None
    except OSError as problem:
        raise StoreError(f"{path}: cannot be used as a run directory ({problem.strerror})") from problem
    try:
        owner = path / "run.owner"
        owner.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")
        store = Store(path)
        try:
            yield store
        finally:
            store.close()
            owner.unlink(missing_ok=True)
    finally:
        lock.release()
