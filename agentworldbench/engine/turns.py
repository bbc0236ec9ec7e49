"""Lets workers go on one at a time, each in a turn of the event loop of its own.

Replies that come together wake their workers together. Did all of them prepare their next requests in one
turn of the loop, the first request would leave only when the last is prepared: HTTP clients write in the
next turn. Then all wait together for the server again, and preparing and waiting take turns instead of
overlapping, which costs as much time as the preparing of all of them, once a round.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """`await turns.next()` returns in a turn of the loop in which it returns to nobody else."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._calling = False

    async def next(self) -> None:
        """Wait for a turn; first come, first served."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if not self._calling:
            self._calling = True
            loop.call_soon(self._call, loop)
        await mine

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()  # given up meanwhile
        self._calling = bool(self._waiting)
        if self._calling:
            self._waiting.popleft().set_result(None)
            loop.call_soon(self._call, loop)
