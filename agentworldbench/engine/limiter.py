"""How many requests an endpoint gets at once, shared by model and judge when they are the same.

One `Limiter` per endpoint: at most `connections` requests in flight, and none at all while the
endpoint has asked everybody to wait. It also remembers what the endpoint has done so far, because
the same failure means another thing before the first answer: a server that was never reached is a
wrong address, and one that vanished may come back; a request refused by a model that answers others
is one bad request, and a model that refuses all is asked wrongly.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Limiter:
    """Limits of one endpoint, `connections` >= 1, and what it has done so far.

    `reached`: it sent an HTTP response. By model name, as one endpoint may serve several:
    `answered` had a completion, `refused` counts requests that ended as `bad_request`.
    """

    def __init__(self, connections: int) -> None:
        self._slots = asyncio.Semaphore(connections)
        self._closed_until = 0.0
        self.reached = False
        self.answered: set[str] = set()
        self.refused: Counter[str] = Counter()

    def pause(self, seconds: float) -> None:
        """Let no request start for the next `seconds`."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free connection and for the end of a pause."""
        async with self._slots:
            while (wait := self._closed_until - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            yield


class Limiters:
    """One `Limiter` per endpoint, made when first asked for."""

    def __init__(self) -> None:
        self._by_endpoint: dict[str, Limiter] = {}

    def of(self, endpoint: str | None, connections: int) -> Limiter:
        """The endpoint's limiter, made for `connections` at once; models without an endpoint share one."""
        return self._by_endpoint.setdefault(endpoint or "", Limiter(connections))
