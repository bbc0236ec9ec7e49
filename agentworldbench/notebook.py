"""The progress of a run below a notebook's cell.

In: `Progress`, as every watcher is told of it. Out: one output that is drawn over, by the thread that runs the cell
alone: others may not publish. IPython is used where it is there and runs a kernel, and is never imported for it.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from agentworldbench.engine.progress import Progress, Watcher
from agentworldbench.render.cells import pre_html
from agentworldbench.render.progress import duration, has_counts, live_lines, opening, status

Look = Callable[[], None]

SECONDS: Final = 0.5
"""Between two drawings."""


def kernel_shell() -> Any:
    """The IPython shell of this process where it is that of a notebook's kernel, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


class CellProgress:
    """Draws over one output. `publish` shows lines and gives a function that replaces them; `clock` gives seconds."""

    def __init__(
        self, publish: Callable[[list[str]], Callable[[list[str]], None]], clock: Callable[[], float]
    ) -> None:
        self._publish = publish
        self._clock = clock
        self._owner = threading.get_ident()
        self._progress: Progress | None = None
        self._replace: Callable[[list[str]], None] | None = None
        self._last = clock() - SECONDS

    def watch(self, progress: Progress) -> None:
        """Something changed; told by any thread, drawn by the cell's own."""
        self._progress = progress
        if threading.get_ident() == self._owner:
            self.look()

    def look(self) -> None:
        """Draw, where it is time to; called by the cell's thread while it waits."""
        progress, now = self._progress, self._clock()
        if progress is not None and (progress.begun or progress.is_scoring) and now - self._last >= SECONDS:
            self._last = now
            self._show([*_said(progress), *live_lines(progress, height=100)])

    def close(self) -> None:
        """What it came to, in place of the block; nothing where nothing was shown."""
        progress = self._progress
        if progress is None or self._replace is None:
            return
        counts = [status(progress)] if has_counts(progress) else []
        if not progress.begun:
            counts = ["metrics {}/{}".format(*progress.scored) + f" · {duration(progress.elapsed)}"]
        self._show([*_said(progress), *counts])

    def _show(self, lines: list[str]) -> None:
        if self._replace is None:
            self._replace = self._publish(lines)
        else:
            self._replace(lines)


def _said(progress: Progress) -> list[str]:
    """What stands above the counts: notices, and what is asked."""
    return opening(progress).split("\n") if progress.begun else []


def _publish(lines: list[str]) -> Callable[[list[str]], None]:
    """Show lines below the running cell."""
    handle = importlib.import_module("IPython.display").display(_formats(lines), raw=True, display_id=True)
    return lambda more: handle.update(_formats(more), raw=True)


def _formats(lines: list[str]) -> dict[str, str]:
    return {"text/plain": "\n".join(lines), "text/html": pre_html(lines)}


def nothing() -> None:
    """What a thread does while it waits, where nobody looks."""


@contextmanager
def watching(watch: Watcher | None) -> Iterator[tuple[Watcher | None, Look]]:
    """Who is told of the progress meanwhile, and what the waiting thread does: the user's `watch`, else in a notebook
    the output of the cell, else nobody, because a script says nothing unasked."""
    if watch is not None or kernel_shell() is None:
        yield watch, nothing
        return
    cell = CellProgress(_publish, time.monotonic)
    try:
        yield cell.watch, cell.look
    finally:
        cell.close()
