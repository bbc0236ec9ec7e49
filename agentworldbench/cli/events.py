"""What a run tells programs: one JSON object a line on standard output (`--json`).

In: a plan, `Progress` from the engine's thread, results, errors. Out: `begin`, `progress` (at most one a
second, and one at the end), `warning`, `results`, `error`, and always last `end` with the exit code.
Every line is ASCII, ends in one line feed and carries `event`, `schema_version` and `time` (UTC). What
libraries print meanwhile goes to standard error. A reader that goes away ends the events and not the run:
what it costs is being spent.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Literal

import typer

from agentworldbench.cli.streams import let_go
from agentworldbench.engine.progress import Progress, Stage, Watcher
from agentworldbench.errors import AwbError, Interrupted, StoreError
from agentworldbench.plan import Plan
from agentworldbench.records import Record, Usage
from agentworldbench.run import Run
from agentworldbench.stats.results import Results
from agentworldbench.texts import scrub, time_text

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
    """Counts so far. `waiting`: requests between two attempts; `retried`: further attempts by the class of failure before
    them. `seconds` since the session began; `seconds_left` is rough, None while unknown."""

    event: Literal["progress"] = "progress"
    predictions: StageCounts
    verdicts: StageCounts
    cost_usd: float | None
    in_flight: int
    waiting: int
    retries: int
    retried: dict[str, int]
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


Stopped = Literal["done", "cost_limit", "interrupted", "error"]
"""Why a session ended: all was done that could be, the money was spent, the user stopped it, or it could not go on."""


class End(Event):
    """The last line."""

    event: Literal["end"] = "end"
    exit_code: int
    stopped: Stopped


class Events:
    """Writes events; silent until somebody wants them."""

    def __init__(self) -> None:
        self.wanted = False
        self.others = contextlib.ExitStack()
        """Holds what others print to standard output away from it; to be closed at the end."""
        self.lost: StoreError | None = None
        """Why events could not be written, where that is not because nobody reads them any more."""
        self._out = sys.stdout
        self._lock = threading.Lock()
        self._last = 0.0
        self._latest: Progress | None = None
        self._told: set[str] = set()

    def want(self, wanted: bool) -> None:
        """From now on standard output is for events alone, where they are `wanted`."""
        if wanted and not self.wanted:
            self.wanted = True
            self.others.enter_context(contextlib.redirect_stdout(sys.stderr))

    def write(self, event: Event) -> None:
        """One line."""
        if not self.wanted:
            return
        now = time_text(datetime.now(UTC), "milliseconds")
        line = _line(event.model_copy(update={"time": now}))
        with self._lock:
            try:
                self._out.write(line)
                self._out.flush()
            except (OSError, ValueError) as problem:
                self.wanted = False
                let_go(self._out)
                if isinstance(problem, OSError) and not isinstance(problem, BrokenPipeError):
                    self.lost = StoreError(f"standard output: {problem.strerror}; events are missing")

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
    stream = Events()
    stream.want(wanted)
    code = 1  # what nobody expected: a bug
    try:
        yield stream
        if stream.lost:
            raise stream.lost
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
        stream.write(End(exit_code=code, stopped=_BY_CODE.get(code, "error")))
        stream.others.close()


_BY_CODE: Final[dict[int, Stopped]] = {0: "done", 3: "done", 4: "cost_limit", 130: "interrupted"}
"""With too few samples scored (3) nothing is left to be done either."""


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
        waiting=len(progress.waits),
        retries=progress.retries,
        retried=dict(sorted(progress.retried.items())),
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
