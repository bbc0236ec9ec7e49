"""Answers that runs share: one SQLite file of completions by the hash of what was asked.

In: a key (hex digits; what makes it is decided above) and a `Completion` that was found good. Out: the
same completion with the id of its draw. The file keeps the rollback journal and never uses WAL, which
needs memory shared between processes and so does not work on network file systems; writers wait for
each other. It is a convenience and never a reason to stop: a file that is damaged is set aside and told
of, one that cannot be read or written any more is told of once and left alone. All of it happens in a thread of its
own; what arrives while one transaction is being written goes into the next one together.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import queue
import sqlite3
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import ValidationError

from agentworldbench.errors import ConfigError
from agentworldbench.records import Completion, Record

NAME: Final = "responses.sqlite"
FORMAT: Final = 1
"""To be raised, and put into NAME, when a record changes so that entries of before or after cannot be read:
two versions that share a folder would else set each other's file aside."""
MARK: Final = 0x41574243
"""SQLite's application id of such a file."""
BUSY_SECONDS: Final = 30.0
LOCKED_SECONDS: Final = 0.25
"""One wait for another process, of those that make up BUSY_SECONDS."""
Answered = TypeVar("Answered")
Use = Literal["read", "write"]
Row = tuple[str, Literal["IGNORE", "REPLACE"], tuple[str, bytes, bytes]]
"""An answer's draw, what becomes of it where one stands already, and the row."""


class CachedAnswer(Record):
    """A completion as it was given once: `draw` names it in every record made from it, `asked_at` is UTC."""

    schema_version: Literal[1] = 1
    draw: str
    asked_at: str
    seconds: float
    completion: Completion


class _OtherFormatError(sqlite3.DatabaseError):
    """The file was written by another version; says in which format."""


class ResponseCache:
    """The cache in one folder. `tell` is given lines for the user, from any thread."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self.path = folder / NAME
        self._tell = tell
        self._told: set[str] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="awb-cache")
        self._file: sqlite3.Connection | None = None
        self._inode = 0
        self._waiting: queue.SimpleQueue[tuple[str, CachedAnswer, bool]] = queue.SimpleQueue()
        self._stored: set[str] = set()
        self._given_up: set[Use] = set()
        self._closing = False

    async def open(self) -> None:
        """Open the file, making it where there is none. Raises ConfigError for a folder that cannot hold it."""
        await self._apart(self._open_first)

    async def find(self, key: str) -> CachedAnswer | None:
        """The answer stored under `key`, or None."""
        return await self._apart(lambda: self._safely("read", lambda file: self._read(file, key), None))

    async def keep(self, key: str, answer: CachedAnswer, replace: bool = False) -> bool:
        """Store an answer; returns whether it now stands there.

        Where another process was first its answer stays, unless it is to be replaced.
        """
        self._waiting.put((key, answer, replace))
        await self._apart(self._write_waiting)
        stored = answer.draw in self._stored
        self._stored.discard(answer.draw)
        return stored

    async def close(self) -> None:
        """Close the file; whoever waits for another process stops waiting."""
        self._closing = True
        await self._apart(self._close)
        self._thread.shutdown()

    async def _apart(self, work: Callable[[], Answered]) -> Answered:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # --- in the thread -------------------------------------------------------------------------

    def _open_first(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Never opened here: closing it would drop the locks of another connection of this process.
            self.path.touch()
            usable = self.path.is_file() and os.access(self.path, os.R_OK | os.W_OK)
        except OSError as problem:
            raise ConfigError(f"--cache {self.path.parent}: cannot be used ({problem.strerror})") from problem
        if not usable:
            raise ConfigError(f"--cache {self.path.parent}: {NAME} in it cannot be read and written")
        self._safely("read", lambda file: None, None)

    def _safely(
        self, use: Use, work: Callable[[sqlite3.Connection], Answered], otherwise: Answered
    ) -> Answered:
        """`work` on the open file, or `otherwise` where it cannot be used. A damaged file is set aside first."""
        damaged = 0
        deadline = time.monotonic() + BUSY_SECONDS
        while use not in self._given_up and damaged < 2:
            try:
                return work(self._open())
            except sqlite3.OperationalError as problem:
                busy = problem.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not (busy and time.monotonic() < deadline and not self._closing):
                    self._give_up(use, str(problem))
            except sqlite3.DatabaseError as problem:
                damaged += 1
                self._set_aside(problem)
            except OSError as problem:
                self._give_up(use, str(problem.strerror))
        return otherwise

    def _give_up(self, use: Use, why: str) -> None:
        """Not tried again: each further request would wait as long as this one did."""
        self._given_up |= {use, "write"}
        what = "not be read or written" if use == "read" else "not be written"
        if not self._closing:
            self._tell(
                f"{self.path}: the response cache can {what} any more ({why}); the run goes on without it"
            )

    def _open(self) -> sqlite3.Connection:
        if self._file is None:
            self.path.touch()
            self._inode = self.path.stat().st_ino
            file = sqlite3.connect(self.path, timeout=LOCKED_SECONDS, isolation_level=None)
            try:
                self._prepare(file)
            except BaseException:
                file.close()
                raise
            self._file = file
        return self._file

    def _prepare(self, file: sqlite3.Connection) -> None:
        file.execute("PRAGMA journal_mode = DELETE")
        # One more entry lost with the machine is one more request; an fsync less is felt by every run.
        file.execute("PRAGMA synchronous = NORMAL")
        file.execute("BEGIN IMMEDIATE")
        mark, made = (
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if (mark, made) == (0, 0) and not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            file.execute(f"PRAGMA application_id = {MARK}")
            file.execute(f"PRAGMA user_version = {FORMAT}")
            file.execute(
                "CREATE TABLE answers (key TEXT PRIMARY KEY, sha256 BLOB NOT NULL, body BLOB NOT NULL)"
            )
        elif mark == MARK and made != FORMAT:
            raise _OtherFormatError(made)
        elif mark != MARK:
            raise sqlite3.DatabaseError("no response cache")
        file.execute("COMMIT")

    def _read(self, file: sqlite3.Connection, key: str) -> CachedAnswer | None:
        row = file.execute("SELECT sha256, body FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        sha256, body = row
        try:
            if hashlib.sha256(key.encode() + body).digest() == sha256:
                return CachedAnswer.model_validate_json(zlib.decompress(body))
        except (ValidationError, zlib.error, TypeError):
            pass
        self._tell_once(f"{self.path}: an entry is damaged; it is asked for again")
        file.execute("DELETE FROM answers WHERE key = ?", (key,))
        return None

    def _write_waiting(self) -> None:
        rows: list[Row] = []
        while not self._waiting.empty():
            key, answer, replace = self._waiting.get()
            body = zlib.compress(answer.model_dump_json(exclude_none=True).encode("utf-8"))
            verb: Literal["IGNORE", "REPLACE"] = "REPLACE" if replace else "IGNORE"
            rows.append((answer.draw, verb, (key, hashlib.sha256(key.encode() + body).digest(), body)))
        if rows:
            self._stored |= self._safely("write", lambda file: self._write(file, rows), set())

    def _write(self, file: sqlite3.Connection, rows: list[Row]) -> set[str]:
        """Store rows in one transaction; the draws that now stand there."""
        file.execute("BEGIN IMMEDIATE")
        try:
            stored = {
                draw
                for draw, verb, row in rows
                if file.execute(f"INSERT OR {verb} INTO answers VALUES (?, ?, ?)", row).rowcount > 0
            }
            file.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                file.execute("ROLLBACK")
            raise
        return stored

    def _set_aside(self, problem: sqlite3.DatabaseError) -> None:
        """Move a file that is no cache, or is broken, out of the way; its bytes stay.

        Another process may have done so already: then there is a new file, and it is the one to open.
        """
        inode = self._inode
        self._close()
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        other = isinstance(problem, _OtherFormatError)
        kind = f"format-{problem}" if other else "damaged"
        aside = self.path.with_name(f"{NAME}.{kind}-{now}")
        try:
            if inode != self.path.stat().st_ino:
                return
            with suppress(FileNotFoundError):  # first: left behind, it would be played into the new file
                self.path.with_name(f"{NAME}-journal").rename(aside.with_name(f"{aside.name}-journal"))
            self.path.rename(aside)
        except FileNotFoundError:
            return
        except OSError as refused:
            self._tell_once(f"{self.path}: damaged ({problem}), and cannot be moved ({refused.strerror})")
            return
        why = f"damaged ({problem})"
        if other:
            why = (
                f"of another version of awb (it has format {problem}, this version reads and writes {FORMAT})"
            )
        self._tell(f"{self.path}: {why}; set aside as {aside.name}, and a new one begun")

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._tell(line)

    def _close(self) -> None:
        file, self._file, self._inode = self._file, None, 0
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()
