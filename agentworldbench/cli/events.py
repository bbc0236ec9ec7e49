"""What a run tells programs: one JSON object a line on standard output (`--json`).

In: a plan, `Progress` from the engine's thread, results, errors. Out: `begin`, `progress` (at most one a
second, and one at the end), `warning`, `results`, `error`, and always last `end` with the exit code.
Every line is ASCII, ends in one line feed and carries `event`, `schema_version` and `time` (UTC). A reader
that goes away ends the events and not the run: what it costs is being spent.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Literal

import typer

from agentworldbench.engine.progress import Progress, Stage
from agentworldbench.errors import AwbError, Interrupted
from agentworldbench.plan import Plan
from agentworldbench.records import Record, Usage
from agentworldbench.run import Run, Watcher
from agentworldbench.stats.results import Results
from agentworldbench.texts import scrub

SECONDS: Final = 1.0
"""Between two events of progress."""


class Event(Record):
    """What every line holds; `time` is UTC, RFC 3339."""

    event: str
    schema_version: Literal[1] = 1
    time: str = ""


class StageCounts(Record):
    """Predictions, or the verdicts of all judges: records there will be, and those that exist. Of these
    `earlier` were there before this session, and `cached` were taken from the response cache in it."""

    total: int
    finished: int
    earlier: int
    cached: int
    failures: dict[str, int]
    usage: Usage
    cost_usd: float | None
    """USD of this session; None where a part of it is not known."""


class Begin(Event):
    """A session begins: which run, what it selects by domain, how many requests are due."""

    event: Literal["begin"] = "begin"
    run: str
    model: str
    judges: tuple[str, ...]
    data: str
    protocol: str
    shard: str | None
    samples: dict[str, int]
    due_predictions: int
    due_verdicts: int


class ProgressEvent(Event):
    """Counts so far. `seconds` since the session began; `seconds_left` is rough, None while unknown."""

    event: Literal["progress"] = "progress"
    predictions: StageCounts
    verdicts: StageCounts
    cost_usd: float | None
    in_flight: int
    retries: int
    seconds: float
    seconds_left: float | None


class Warned(Event):
    """Something a user should know: a record that cannot be read, a server that changed."""

    event: Literal["warning"] = "warning"
    message: str


class ResultsEvent(Event):
    """All numbers, as they stand in the file `path`."""

    event: Literal["results"] = "results"
    path: str
    results: Results


class Failed(Event):
    """Why the command ends without doing all it was asked: the class of `errors.py`, and its one line."""

    event: Literal["error"] = "error"
    error: str
    message: str


class End(Event):
    """The last line."""

    event: Literal["end"] = "end"
    exit_code: int


class Events:
    """Writes events; silent unless `wanted`."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self._lock = threading.Lock()
        self._last = 0.0
        self._latest: Progress | None = None
        self._told: set[str] = set()

    def write(self, event: Event) -> None:
        """One line."""
        if not self.wanted:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = _line(event.model_copy(update={"time": now}))
        with self._lock:
            try:
                sys.stdout.write(line)
                sys.stdout.flush()
            except (OSError, ValueError):
                self.wanted = False
                with contextlib.suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def warn(self, message: str) -> None:
        """A warning, once."""
        if message not in self._told:
            self._told.add(message)
            self.write(Warned(message=message))

    def watcher(self, plan: Plan, shown: Watcher) -> Watcher:
        """A watcher that writes events and hands progress on to what is shown to people."""

        def watch(progress: Progress) -> None:
            shown(progress)
            if self._latest is None:
                self._latest = progress
                self._last = time.monotonic()
                self.write(_begin(plan, progress))
            for message in list(progress.notices):
                self.warn(message)
            if time.monotonic() - self._last >= SECONDS:
                self._last = time.monotonic()
                self.write(_progress(progress))

        return watch if self.wanted else shown

    def last_progress(self) -> None:
        """The counts as they are in the end."""
        if self._latest is not None:
            self.write(_progress(self._latest))
            self._latest = None

    def results(self, finished: Run) -> None:
        """Warnings of the results, then the results."""
        if finished.results is not None:
            for message in finished.results.warnings:
                self.warn(message)
            self.write(ResultsEvent(path=str(finished.path / "results.json"), results=finished.results))


@contextmanager
def events(wanted: bool) -> Iterator[Events]:
    """Events of one command; whatever ends it is told before `end`."""
    stream = Events(wanted)
    code = 1  # what nobody expected: a bug
    try:
        yield stream
        code = 0
    except typer.Exit as problem:
        code = problem.exit_code
        raise
    except (AwbError, KeyboardInterrupt, typer.Abort) as problem:
        expected = problem if isinstance(problem, AwbError) else Interrupted("interrupted")
        code = expected.exit_code
        stream.last_progress()
        stream.write(Failed(error=type(expected).__name__, message=str(expected)))
        raise
    finally:
        stream.last_progress()
        stream.write(End(exit_code=code))


def _line(event: Event) -> str:
    """An event as ASCII. A path may hold bytes that are no text: they become U+FFFD."""
    text = json.dumps(event.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)
    return json.dumps(json.loads(scrub(text)), separators=(",", ":")) + "\n"


def _begin(plan: Plan, progress: Progress) -> Begin:
    return Begin(
        run=str(plan.path),
        model=str(plan.predict.model["model"]),
        judges=tuple(judge.model.name for judge in plan.judges),
        data=plan.predict.data.name,
        protocol=plan.protocol.name,
        shard=plan.selection.shard,
        samples=plan.selection.samples,
        due_predictions=progress.due[0],
        due_verdicts=progress.due[1],
    )


def _progress(progress: Progress) -> ProgressEvent:
    stages = (progress.predictions, progress.verdicts)
    left = progress.seconds_left
    return ProgressEvent(
        predictions=_counts(progress.predictions),
        verdicts=_counts(progress.verdicts),
        cost_usd=sum(stage.cost_usd for stage in stages)
        if all(stage.cost_known for stage in stages)
        else None,
        in_flight=progress.in_flight,
        retries=progress.retries,
        seconds=round(progress.elapsed, 3),
        seconds_left=None if left is None else round(left, 1),
    )


def _counts(stage: Stage) -> StageCounts:
    failures: dict[str, Any] = dict(sorted(stage.failures.items()))
    return StageCounts(
        total=stage.total,
        finished=stage.finished,
        earlier=stage.reused,
        cached=stage.recalled,
        failures=failures,
        usage=stage.usage,
        cost_usd=stage.cost_usd if stage.cost_known else None,
    )
