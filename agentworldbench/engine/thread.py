"""The event loop's own thread, and what an interrupt does to it.

In: a coroutine. Out: nothing, or what it raised. Because the loop has a thread of its own, a run works
inside Jupyter too; because interrupts are told and not raised in the middle of waiting, a second one
breaks nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, Final

from agentworldbench.errors import Interrupted

LOOK_UP: Final = 0.1
"""Seconds after which the waiting thread looks up: a signal that the system gave to another thread of the
process wakes nobody, and only the main thread may handle it."""
OBJECTS: Final = 10_000
"""New containers (lists, records) after which garbage is looked for while the loop runs."""
_LOCK: Final = threading.Lock()
_before: list[tuple[int, ...]] = []
"""For each loop that runs in this process, when garbage was looked for before the first of them began."""


@contextlib.contextmanager
def _interrupts_told(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in place of raising KeyboardInterrupt, whatever signal would raise it.

    Raised in the middle of waiting for a thread, a second one leaves locks in a state that cannot be.
    """
    before: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before[number](number, frame)
        except KeyboardInterrupt:
            stop()

    if threading.current_thread() is threading.main_thread():
        known = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
        before = {number: signal.getsignal(number) for number in known if number is not None}
        before = {number: old for number, old in before.items() if callable(old)}
    try:
        for number in before:
            signal.signal(number, handle)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextlib.contextmanager
def _cycles_sought_seldom() -> Iterator[None]:
    """Let Python look for cycles of garbage after `OBJECTS` new ones in place of 700: the many texts under way are gone
    through each time, which took a twentieth of the loop's time, and hardly anything of them is in a cycle."""
    with _LOCK:
        _before.append(_before[0] if _before else gc.get_threshold())
        first, *others = _before[0]
        gc.set_threshold(max(first, OBJECTS) if first else 0, *others)
    try:
        yield
    finally:
        with _LOCK:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)


def run_in_thread(
    work: Callable[[], Coroutine[Any, Any, None]], meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Run a coroutine on a new event loop in a thread of its own and wait for it; `meanwhile` is called again and again
    by the thread that waits; what it raises ends the work too.

    An interrupt (KeyboardInterrupt in the calling thread) cancels the coroutine and is raised as
    `Interrupted` once it has ended.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work())  # made before the thread: an interrupt always finds it
    failure: list[BaseException] = []
    ended = threading.Event()

    async def main() -> None:
        await task

    def target() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                try:
                    runner.run(main())
                finally:
                    if interrupted:
                        ended.set()  # closing the loop waits for look-ups of host names, for minutes maybe
        except BaseException as problem:  # noqa: BLE001 - handed over to the calling thread
            failure.append(problem)
        finally:
            ended.set()

    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        with contextlib.suppress(RuntimeError):  # the loop may close at this moment
            loop.call_soon_threadsafe(task.cancel)

    with _interrupts_told(stop), _cycles_sought_seldom():
        threading.Thread(target=target, name="awb-engine", daemon=True).start()
        try:
            while not ended.wait(LOOK_UP):
                meanwhile()
        except BaseException:
            stop()  # nobody would wait for what goes on
            ended.wait()
            raise
    if interrupted:
        raise Interrupted(
            "interrupted; what is done stays, the same command continues, and `awb score` shows the numbers so far"
        )
    if failure:
        raise failure[0]
