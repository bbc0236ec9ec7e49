"""Shows the progress of a run: a live block on a terminal, plain lines in a log, or nothing.

Reads `Progress` from the engine's thread; never slows it. Everything goes to standard error, so that tables on
standard output stay clean. A log gets a line after 10 seconds, then ever more rarely, also while nothing changes:
who reads it sees that a run waits and does not hang. Lines of a log hold no control character.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from agentworldbench.cli.output import say
from agentworldbench.engine.progress import Progress, Watcher
from agentworldbench.render.progress import has_counts, live_lines, new_notices, opening, status

FIRST_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 300.0
GROWTH: Final = 0.05
"""Between two lines of a log: 10 seconds, 5 % of the time that the run has taken, 5 minutes at most."""
TICK: Final = 1.0
REDRAWN: Final = 0.25
"""Seconds between two drawings of a block."""
_CANNOT_REDRAW: Final = frozenset({"", "dumb", "unknown"})


@contextmanager
def display(mode: str) -> Iterator[Watcher]:
    """A watcher to hand to `run.execute`; `mode` is auto, live, plain or none."""
    if mode == "none":
        yield lambda progress: None
    elif is_live(mode):
        yield from _live()
    else:
        yield from _plain()


def is_live(mode: str) -> bool:
    """Whether a block is drawn over: never where standard error is no terminal that can do so, whatever is wished, and
    unasked not in a build, whose terminal is recorded."""
    dumb = os.name != "nt" and os.environ.get("TERM", "") in _CANNOT_REDRAW
    if mode == "plain" or dumb or not sys.stderr.isatty():
        return False
    return mode == "live" or os.environ.get("CI", "").lower() in ("", "0", "false")


class LogLines:
    """Which lines of a log are due: at the beginning, with every notice, and from time to time.

    `say` takes a line; `clock` gives seconds. May be told of progress from several threads.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._told: list[str] = []
        self._begun = self._last = clock()

    def heed(self, progress: Progress) -> None:
        """Something changed."""
        with self._lock:
            if self._progress is None:
                self._progress = progress
                if progress.begun:
                    self._say(opening(progress))
                self._told.extend(progress.notices)
            for line in new_notices(progress, self._told):
                self._say(line)
            self._tell()

    def tick(self) -> None:
        """Time went on."""
        with self._lock:
            self._tell()

    def _tell(self) -> None:
        progress, now = self._progress, self._clock()
        if progress is None or not (progress.begun or progress.is_scoring):
            return
        between = min(LONGEST_SECONDS, max(FIRST_SECONDS, GROWTH * (now - self._begun)))
        if now - self._last >= between:
            self._last = now
            self._say(status(progress))

    def close(self) -> None:
        """The last line."""
        with self._lock:
            if self._progress is not None and has_counts(self._progress):
                self._say(status(self._progress))


def _plain() -> Iterator[Watcher]:
    lines = LogLines(say, time.monotonic)
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TICK):
            lines.tick()

    clock = threading.Thread(target=tick, name="awb-log", daemon=True)
    clock.start()
    try:
        yield lines.heed
    finally:
        ended.set()
        clock.join()
        lines.close()


def _live() -> Iterator[Watcher]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    latest: list[Progress] = []
    told: list[str] = []
    console = Console(stderr=True)
    encoding = sys.stderr.encoding  # of the stream itself: what stands in its place meanwhile has none
    drawing = (
        threading.Lock()
    )  # lines said while the block is drawn would be drawn over, or leave parts of it
    ended = threading.Event()

    def block() -> Text:
        lines = live_lines(latest[0], *console.size, encoding) if latest else ["starting ..."]
        return Text("\n".join(lines))

    def draw() -> None:
        while not ended.wait(REDRAWN):
            with drawing:
                live.refresh()

    def watch(progress: Progress) -> None:
        if latest and len(told) == len(progress.notices):
            return  # without the lock: a terminal that takes nothing (Ctrl-S) stops no request
        with drawing:
            if not latest:
                if progress.begun:
                    say(opening(progress))
                latest.append(progress)
                told.extend(progress.notices)
            for line in new_notices(progress, told):
                say(line)

    thread = threading.Thread(target=draw, name="awb-display", daemon=True)
    try:
        with Live(get_renderable=block, console=console, auto_refresh=False, transient=True) as live:
            thread.start()
            try:
                yield watch
            finally:
                ended.set()
                thread.join()
    finally:
        if latest and has_counts(latest[0]):
            say(status(latest[0]))
