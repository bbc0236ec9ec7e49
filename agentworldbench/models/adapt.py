"""Learns once per endpoint which parameters it does not take, and asks the way it wants.

In: a request body and, after a refusal, the server's message. Out: the body that this endpoint
accepts, and notes that say what was changed. `max_tokens` becomes `max_completion_tokens` with the
same value; a sampling parameter that the model does not take is left out. Each change is made at
most once per endpoint and is recorded with every answer made under it: nothing is dropped unseen.

The first request of an endpoint goes alone (others wait a few seconds for its outcome), so that a
refusal is met once and not by every request in flight.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

FIRST_REQUEST_HEAD_START: Final = 5.0
"""Seconds that other requests wait for the outcome of the first; a refusal comes at once."""

_OPTIONAL: Final = ("temperature", "top_p", "seed", "response_format")
_REFUSAL = re.compile(
    r"unsupported|not supported|does(n't| not) support|unrecognized|unexpected|not permitted|only the default|"
    r"unknown (parameter|field|name)|deprecated|not allowed|extra inputs|don't support|isn't supported",
    re.IGNORECASE,
)


class Adaptation:
    """What one endpoint has taught us. `notes` go into the records of its answers."""

    def __init__(self) -> None:
        self.rename_max_tokens = False
        self.dropped: dict[str, Any] = {}
        self._first = asyncio.Lock()
        self._settled = asyncio.Event()

    @property
    def notes(self) -> tuple[str, ...]:
        """One line per change in force."""
        renamed = ("max_tokens sent as max_completion_tokens",) if self.rename_max_tokens else ()
        return renamed + tuple(f"{name} not accepted by the endpoint: sent without" for name in self.dropped)

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body as this endpoint wants it."""
        adapted = {name: value for name, value in body.items() if name not in self.dropped}
        if self.rename_max_tokens and "max_tokens" in adapted:
            adapted["max_completion_tokens"] = adapted.pop("max_tokens")
        return adapted

    def learn(self, sent: dict[str, Any], message: str) -> bool:
        """Take one lesson from a refusal (HTTP 400 or 422) of `sent`; False when there is none.

        A lesson that another request has learned meanwhile counts: the body is then sent again.
        """
        if "max_tokens" in sent and ("max_completion_tokens" in message or _names(message, "max_tokens")):
            if self.rename_max_tokens or "max_completion_tokens" in message or _REFUSAL.search(message):
                self.rename_max_tokens = True
                return True
            return False
        for name in _OPTIONAL:
            if name in sent and _names(message, name) and _REFUSAL.search(message):
                self.dropped[name] = sent[name]
                return True
        return False

    @asynccontextmanager
    async def first_alone(self) -> AsyncIterator[None]:
        """Let the endpoint's first request pass alone; afterwards this costs nothing."""
        if self._settled.is_set():
            yield
        elif not self._first.locked():
            async with self._first:
                try:
                    yield
                finally:
                    self._settled.set()
        else:
            try:
                await asyncio.wait_for(self._settled.wait(), FIRST_REQUEST_HEAD_START)
            except TimeoutError:
                self._settled.set()
            yield


def _names(message: str, parameter: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(parameter)}(?!\w)", message) is not None
