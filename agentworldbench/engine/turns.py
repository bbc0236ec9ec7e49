"""Lets workers go on one at a time, each in a turn of the event loop of its own; what can wait comes after them.

Replies that come together wake their workers together. Did all of them prepare their next requests in one
turn of the loop, the first request would leave only when the last is prepared: HTTP clients write in the
next turn. Then all wait together for the server again, and preparing and waiting take turns instead of
overlapping, which costs as much time as the preparing of all of them, once a round.

Answers are written down while nobody has a request to send, or after a while all the same (`later`, and `Row` for
a worker that so asks on before its last answer is written). What can wait still longer is done in spare time, one
thing at a time, with a pause between them: a reply that comes meanwhile is held up by one such thing at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

_Waiting = tuple[float, asyncio.Future[None]]
"""Since when, on the loop's clock, and what is set when it goes on."""
PAUSE: Final = 0.001
"""Seconds at least before and between things that can wait: a worker that had its turn sends its request in them."""
LONGEST: Final = 0.25
"""Seconds for which who writes down lets others go first; then they take turns, however many requests there are to send."""


class Turns:
    """`await turns.next()` returns in a turn of the loop in which it returns to nobody else; `later` lets `next` go first."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._after: deque[_Waiting] = deque()
        self._calling = self._went_after = False
        self._spare: deque[Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def next(self) -> None:
        """Wait for a turn; first come, first served."""
        await self._turn(self._waiting)

    async def later(self) -> None:
        """Wait for a turn that nobody wants who waits for the next one; but not for longer than `LONGEST` and those before."""
        await self._turn(self._after)

    def spare(self, work: Callable[[], None]) -> None:
        """Have something done that can wait; it must not raise."""
        self._spare.append(work)
        self._rest(PAUSE)

    def close(self) -> None:
        """Forget what could wait."""
        self._spare.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _turn(self, queue: deque[_Waiting]) -> None:
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        queue.append((loop.time(), mine))
        if not self._calling:
            self._calling = True
            loop.call_soon(self._call, loop)
        await mine

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        queues = [self._waiting, self._after]
        if self._after and not self._went_after and loop.time() - self._after[0][0] >= LONGEST:
            queues.reverse()
        for queue in queues:
            while queue:
                _, mine = queue.popleft()
                if not mine.done():  # else it was given up meanwhile
                    self._went_after = queue is self._after
                    mine.set_result(None)
                    loop.call_soon(self._call, loop)
                    return
        self._calling = False
        self._rest(PAUSE)

    def _rest(self, seconds: float) -> None:
        if self._spare and self._timer is None and not self._calling:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._use_spare_time)

    def _use_spare_time(self) -> None:
        self._timer = None
        if not self._calling:  # else the last of the waiting workers is followed by it
            self._spare.popleft()()
            self._rest(PAUSE)


class Row:
    """What one worker asks, one thing after another: the next one as soon as there is an answer, before it is written down.

    At most one answer is still to be written when the next one comes.
    """

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._writing: asyncio.Task[None] | None = None

    async def ask(self, work: Callable[[Callable[[], None]], Coroutine[Any, Any, None]]) -> None:
        """Begin `work(answered)` as a task of the group; returns when it calls `answered`, or has ended without."""
        answered = asyncio.Event()
        task = self._group.create_task(work(answered.set))
        task.add_done_callback(lambda _: answered.set())
        await answered.wait()
        if self._writing is not None:  # where this is given up, that is not; the group tells what fails
            await asyncio.wait((self._writing,))
        self._writing = task
