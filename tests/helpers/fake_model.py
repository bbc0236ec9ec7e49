"""A model inside the process whose outcomes a test scripts: for the engine, where no wire is needed.

`FakeModel` takes a function from (request, number of the call) to a completion or failure, or a
coroutine function; it counts what is in flight, as a whole and by trajectory. `VirtualTime` replaces
the clock and the sleep of the engine's waits: nothing waits, every wait is recorded.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from agentworldbench.engine import limiter, retry
from agentworldbench.models.base import LocalAnswers
from agentworldbench.records import CallFailure, Completion, Failure, FailureKind, Request, Usage

Answerer = Callable[[Request, int], Any]
USAGE = Usage(prompt_tokens=10, completion_tokens=2)


def says(text: str | None, **fields: Any) -> Completion:
    """A completion with usage and a cost."""
    return Completion(text=text, **{"finish_reason": "stop", "usage": USAGE, "cost_usd": 0.25} | fields)


def fails(
    kind: str,
    retry_after: float | None = None,
    status: int | None = None,
    message: str | None = None,
    **fields: Any,
) -> CallFailure:
    """A failure of a call; `fields` are further ones of the record."""
    words = "The model `fake` does not exist" if kind == "model_missing" else f"scripted {kind}"
    failure = Failure(kind=FailureKind(kind), message=message or words, status=status)
    return CallFailure(failure=failure, retry_after=retry_after, **fields)


TURNS = 40
"""Of the event loop, which an answer takes: workers begin their requests in turns of their own."""


class FakeModel(LocalAnswers):
    """A `Model`. `requests` are those that arrived, in order; `tokens` counts a prompt (None: unknown)."""

    def __init__(
        self, answer: Answerer, name: str = "fake/model", endpoint: str | None = "here", local: bool = False
    ) -> None:
        super().__init__(name)
        self.endpoint = endpoint
        self.local = local
        self.tokens: Callable[[Request], int | None] = lambda request: None
        self.requests: list[Request] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.max_in_trajectory = 0
        self.closed = False
        self._answer = answer
        self._trajectories: Counter[str] = Counter()

    def identity(self) -> dict[str, Any]:
        """The name."""
        return {"backend": "fake", "name": self.name}

    def price(self) -> None:
        """Unknown."""
        return

    async def count(self, request: Request) -> int | None:
        """As `tokens` says."""
        return self.tokens(request)

    async def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True

    async def generate(self, request: Request) -> Completion | CallFailure:
        """The scripted outcome, some turns of the loop later."""
        self.requests.append(request)
        number = len(self.requests)
        cluster = request.sample.ref.cluster
        self.in_flight += 1
        self._trajectories[cluster] += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.max_in_trajectory = max(self.max_in_trajectory, self._trajectories[cluster])
        try:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            outcome = self._answer(request, number)
            if inspect.isawaitable(outcome):
                outcome = await outcome
        finally:
            self.in_flight -= 1
            self._trajectories[cluster] -= 1
        assert isinstance(outcome, (Completion, CallFailure))
        return outcome


class VirtualTime:
    """The engine's clock and sleep: a sleep takes no time, moves the clock on, and is noted: in `waits`
    what requests waited for their next attempt, in `pauses` what an endpoint made everybody wait."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        self.pauses: list[float] = []
        clock = SimpleNamespace(monotonic=lambda: self.now)
        for module, notes in ((retry, self.waits), (limiter, self.pauses)):
            patch.setattr(module, "time", clock)
            waits = {"sleep": partial(self._sleep, notes), "timeout": partial(self._timeout, notes)}
            patch.setattr(module, "asyncio", SimpleNamespace(**vars(asyncio) | waits))

    async def _sleep(self, notes: list[float], seconds: float) -> None:
        notes.append(seconds)
        wake = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, wake)

    @asynccontextmanager
    async def _timeout(self, notes: list[float], seconds: float | None) -> AsyncIterator[None]:
        """Passes at once."""
        if seconds is not None:
            await self._sleep(notes, seconds)
            raise TimeoutError
        yield
