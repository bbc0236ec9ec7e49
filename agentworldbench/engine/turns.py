"""Lets workers go on one at a time, each in a turn of the event loop of its own; spare time goes to what can wait.

Replies that come together wake their workers together. Did all of them prepare their next requests in one
turn of the loop, the first request would leave only when the last is prepared: HTTP clients write in the
next turn. Then all wait together for the server again, and preparing and waiting take turns instead of
overlapping, which costs as much time as the preparing of all of them, once a round.

What can wait is done while no worker waits for a turn, one thing at a time, with a pause as long as it took:
a reply that comes in between is held up by one such thing at most, and gets half of the loop's time.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

PAUSE: Final = 0.001
"""Seconds at least before and between things that can wait: a worker that had its turn sends its request in them."""


class Turns:
    """`await turns.next()` returns in a turn of the loop in which it returns to nobody else."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._calling = False
        self._spare: deque[Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def next(self) -> None:
        """Wait for a turn; first come, first served."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if not self._calling:
            self._calling = True
            loop.call_soon(self._call, loop)
        await mine

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

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()  # given up meanwhile
        self._calling = bool(self._waiting)
        if self._calling:
            self._waiting.popleft().set_result(None)
            loop.call_soon(self._call, loop)
        else:
            self._rest(PAUSE)

    def _rest(self, seconds: float) -> None:
        if self._spare and self._timer is None and not self._calling:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._use_spare_time)

    def _use_spare_time(self) -> None:
        self._timer = None
        if not self._calling:  # else the last of the waiting workers is followed by it
            began = time.monotonic()
            self._spare.popleft()()
            self._rest(max(PAUSE, time.monotonic() - began))
