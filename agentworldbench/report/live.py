"""One run under `awb view`: its counts at this moment, and a thread that brings all else up to date behind them.

In: a run directory. Out: an `Activity` on demand, and what pages are made of. The journals are read on from where they
were read to, whole lines alone. Lines, numbers and plots of a run under way are made again when there is something new
and somebody asks, and never for more than a small share of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentworldbench.errors import AwbError, DataError
from agentworldbench.journal import Journal
from agentworldbench.outcome import read_results
from agentworldbench.records import Prediction, SampleRef, Verdict
from agentworldbench.report.activity import Activity, Counts
from agentworldbench.report.gather import Gathered, Numbers
from agentworldbench.report.snapshot import Looks, marks_of
from agentworldbench.run_record import RunRecord
from agentworldbench.store import open_store

REST: Final = 4.0
"""Seconds between two looks at least, and as many times what the last one took."""
_FILES: Final = ("run.json", "results.json", "predictions.jsonl", "verdicts.jsonl")
Mark = tuple[int, int, int] | None
"""Inode, size and time of change of a file; None where there is none."""


class LiveRun:
    """A run that is looked at; all members may be used from any thread. Raises ConfigError where there is no run."""

    def __init__(
        self, path: Path, data: str | None = None, allow_code: bool = False, rest: float = REST
    ) -> None:
        self.path, self._rest = path, rest
        self.looks = Looks(path, data, allow_code)
        self._lock = threading.Lock()
        self._reading = _Reading(path)
        self._changed = threading.Condition()
        self._wanted, self._looked, self._closed = True, False, False
        self._seen: tuple[Mark, ...] = ()
        threading.Thread(target=self._work, name=f"awb view {path.name}", daemon=True).start()

    @property
    def run(self) -> RunRecord:
        """`run.json` as it was read last."""
        return self._reading.counts.run

    @property
    def looked(self) -> bool:
        """Whether the first look has ended: what there is then is all there is for now."""
        return self._looked

    def close(self) -> None:
        """End the thread when its look is done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def activity(self) -> Activity:
        """The counts of this moment; what is new is looked at soon. Raises an `AwbError` where the run has gone."""
        if self._seen and self._seen != file_marks(self.path):
            with self._changed:
                self._wanted = True
                self._changed.notify_all()
        reading = self._read_on()
        with self._lock:
            return reading.counts.activity(self.path, reading.unread)

    def numbers(self) -> Numbers | None:
        """Numbers of the last look; before there are some those that are stored, or None."""
        if self.looks.snapshot is not None:
            return self.looks.snapshot.opened.numbers
        with suppress(AwbError):
            reading = self._read_on()
            results = read_results(reading.store)
            return None if results is None else Numbers(reading.counts.run, results)
        return None

    def wait(self, seconds: float) -> None:
        """Wait for the end of the first look, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: self._looked, seconds)

    def gathered(self, refs: Sequence[SampleRef] = ()) -> Gathered:
        """What pages of samples are made of, with the metrics of these. Waits while the data are read.

        Raises DataError where they are not there.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.looks.samples is not None or self._looked)
        reading = self._read_on()
        found = self.looks.gathered(reading.store, reading.counts.run, refs)
        if found is None:
            raise DataError(self.looks.problem or f"{self.path}: the data could not be read")
        return found

    def marks(self, ref: SampleRef, epoch: int) -> str:
        """Changes when a record of this prediction does."""
        reading = self._read_on()
        return str(marks_of(reading.store, reading.counts.run, (ref.id, epoch)))

    def _read_on(self) -> _Reading:
        with self._lock:
            before, now = self._reading, file_marks(self.path)
            if before.exchanged(now):
                self.looks.forget()
            if before.exchanged(now) or before.marks[0] != now[0]:
                self._reading = _Reading(self.path)
            self._reading.read_on()
            return self._reading

    def _work(self) -> None:
        """Look whenever something is wanted, with rests between."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted or self._closed)
                if self._closed:
                    self._looked = True
                    self._changed.notify_all()
                    return
                self._wanted = False
            marks, begun = file_marks(self.path), time.monotonic()
            try:
                self.looks.look(self._tell)
            except BaseException:
                self.looks.problem = "an error of the harness, which stands in the terminal"
                raise
            finally:
                self._seen = marks
                self._tell(looked=True)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, self._rest * max(1.0, time.monotonic() - begun))

    def _tell(self, looked: bool = False) -> None:
        with self._changed:
            self._looked = self._looked or looked
            self._changed.notify_all()


class _Reading:
    """The files of a run as far as they have been read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.marks = file_marks(path)
        self.store = open_store(path)
        run = self.store.read_run()
        assert run is not None, "open_store has found it"
        self.counts = Counts(run)
        for journal in self._journals:
            for record in journal.every_line():
                self.counts.add(record)

    @property
    def _journals(self) -> tuple[Journal[Prediction], Journal[Verdict]]:
        return self.store.predictions, self.store.verdicts

    @property
    def unread(self) -> int:
        """Lines that are no records."""
        return sum(len(journal.bad_lines) for journal in self._journals)

    def exchanged(self, now: tuple[Mark, ...]) -> bool:
        """Whether other journals stand there, not the same ones longer."""
        sizes = [journal.size for journal in self._journals]
        return not all(_grown(*some) for some in zip(self.marks[2:], now[2:], sizes, strict=True))

    def read_on(self) -> None:
        """Count what came since."""
        self.marks = file_marks(self._path)
        for journal in self._journals:
            for record in journal.news():
                self.counts.add(record)


def _grown(before: Mark, now: Mark, size: int) -> bool:
    """Whether the first `size` bytes of a journal are those that were read."""
    if not size:
        return True
    return before is not None and now is not None and before[0] == now[0] and now[1] >= size


def file_marks(path: Path) -> tuple[Mark, ...]:
    """Changes when a file of a run does."""
    found: list[Mark] = []
    for name in _FILES:
        try:
            stat = (path / name).stat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)
