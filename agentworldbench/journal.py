"""An append-only file of records, one JSON object a line, safe against kill -9.

Reading is binary and splits on `\n` alone; the last record of a key counts. Before appending, a torn
last line (the process died while writing) is moved to a `.torn` file beside the journal. A record is
written and flushed at once, so it survives the process; it is forced to the disk at most once a
second, in a thread of its own (a slow disk holds nobody up), so it survives the machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from agentworldbench.errors import StoreError
from agentworldbench.records import Asked, FailureKind, Prediction, Verdict

R = TypeVar("R", Prediction, Verdict)
Place = tuple[int, int]
"""Where a record stands in its file: byte offset and length."""
SYNC_SECONDS = 1.0


class Journal(Generic[R]):
    """Append-only records of one kind with an index of the last record of each key.

    The index holds byte offsets, not records, so memory stays flat. `bad_lines` lists the line
    numbers that could not be read; they are left in the file and reported, never dropped from it.
    """

    def __init__(self, path: Path, record: type[R]) -> None:
        self.path = path
        self._record: type[R] = record
        self._index: dict[Hashable, Place] = {}
        self.bad_lines: list[int] = []
        self._end = self._lines = 0
        self._file: Any = None
        self._syncer: ThreadPoolExecutor | None = None
        self._syncing: Future[None] | None = None
        self._synced = 0.0
        for _ in self.news():
            pass

    def news(self) -> Iterator[R]:
        """Index what was appended since the file was read last, by whatever process, and give each record.

        What follows the last newline and is no record yet is left for the next time: its writer is not done with it.
        """
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._end)
            for line in file:
                body, whole = line.rstrip(b"\n"), line.endswith(b"\n")
                record: R | None = None
                try:
                    record = self._record.model_validate_json(body)
                except ValidationError as problem:
                    self._refuse_other_version(self._lines + 1, body, problem)
                    if not whole:
                        return
                    if body.strip():
                        self.bad_lines.append(self._lines + 1)
                else:
                    self._note(record, len(body))
                self._end += len(line)
                self._lines += whole
                if record is not None:
                    yield record

    def _refuse_other_version(self, number: int, body: bytes, problem: ValidationError) -> None:
        """A record of another version is a good answer that we cannot read: never ask for it again."""
        kinds = {(detail["type"], detail["loc"][:1]) for detail in problem.errors(include_input=False)}
        if any(kind == "extra_forbidden" or place == ("schema_version",) for kind, place in kinds):
            raise StoreError(
                f"{self.path}:{number}: written by another version of awb; use that one, or choose another --output"
            )

    def __contains__(self, key: Hashable) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: Hashable) -> R | None:
        """The last record of `key`, read from the file, or None."""
        place = self.place(key)
        return None if place is None else record_at(self.path, self._record, place)

    def place(self, key: Hashable) -> Place | None:
        """Where the last record of `key` stands, or None."""
        return self._index.get(key)

    def lines(self, keys: Iterable[Hashable]) -> dict[Hashable, int]:
        """The line, counted from 1, of the last record of each key that has one; the file is read once."""
        wanted = {self._index[key][0]: key for key in keys if key in self._index}
        found: dict[Hashable, int] = {}
        if wanted:
            with self.path.open("rb") as file:
                offset = 0
                for number, line in enumerate(file, start=1):
                    if offset in wanted:
                        found[wanted[offset]] = number
                    offset += len(line)
        return found

    def __iter__(self) -> Iterator[R]:
        """The last record of each key, in file order, read one at a time."""
        if not self._index:
            return
        with self.path.open("rb") as file:
            for offset, length in sorted(self._index.values()):
                file.seek(offset)
                yield self._record.model_validate_json(file.read(length))

    def every_line(self) -> Iterator[R]:
        """All readable records that the index knows of, superseded ones too: what was asked and paid in all."""
        if self.path.exists():
            with self.path.open("rb") as file:
                left = self._end
                for line in file:
                    left -= len(line)
                    if left < 0:
                        return  # another process has written since
                    with suppress(ValidationError):
                        yield self._record.model_validate_json(line.rstrip(b"\n"))

    @property
    def size(self) -> int:
        """How many bytes of the file the index knows."""
        return self._end

    def keys(self) -> Iterable[Hashable]:
        """Keys of all records."""
        return self._index.keys()

    def append(self, record: R) -> None:
        """Write, flush and index one record. Raises StoreError when the disk refuses."""
        body = record.model_dump_json(exclude_none=True).encode("utf-8")
        try:
            if self._file is None:
                self._open()
            self._file.write(body + b"\n")
            self._file.flush()
            self._sync_behind()
        except OSError as problem:
            self._abandon()
            raise StoreError(
                f"{self.path}: cannot be written ({problem.strerror}); what was written stays"
            ) from problem
        self._note(record, len(body))
        self._end += len(body) + 1

    def _note(self, record: R, length: int) -> None:
        if not is_unfinished(record):
            self._index[record.key] = (self._end, length)

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
                self._end_syncing()
            with suppress(OSError):
                file.close()

    def _is_record(self, body: bytes) -> bool:
        try:
            self._record.model_validate_json(body)
        except ValidationError:
            return False
        return True

    def _sync_behind(self) -> None:
        """Begin to force to the disk what was written, once a second; raise what the last time brought."""
        if self._syncing is not None and self._syncing.done():
            done, self._syncing = self._syncing, None
            done.result()
        if self._syncing is None and time.monotonic() - self._synced >= SYNC_SECONDS:
            self._synced = time.monotonic()
            self._syncer = self._syncer or ThreadPoolExecutor(1, thread_name_prefix="awb-journal")
            self._syncing = self._syncer.submit(os.fsync, self._file.fileno())

    def _end_syncing(self) -> None:
        """Wait for the thread, which holds the file's number. Raises OSError when the disk refused."""
        syncer, syncing = self._syncer, self._syncing
        self._syncer = self._syncing = None
        if syncer is not None:
            syncer.shutdown()
        if syncing is not None:
            syncing.result()

    def close(self) -> None:
        """Force all to the disk and close; reading stays possible. Raises StoreError when the disk refuses."""
        file = self._file
        if file is None:
            return
        try:
            self._end_syncing()
            os.fsync(file.fileno())
        except OSError as problem:
            self._abandon()
            raise StoreError(
                f"{self.path}: cannot be written ({problem.strerror}); what was written stays"
            ) from problem
        self._file = None
        file.close()


def is_unfinished(record: Asked) -> bool:
    """Whether a record only says what attempts have cost before a run was stopped: it is no record of its key."""
    return record.failure is not None and record.failure.kind is FailureKind.NOT_RUN


def record_at(path: Path, record: type[R], place: Place) -> R:
    """The record that stands at a place of a journal; several processes may read one."""
    with path.open("rb") as file:
        file.seek(place[0])
        return record.model_validate_json(file.read(place[1]))


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
