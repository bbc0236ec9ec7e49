"""Learns once per endpoint which parameters it does not take, and asks the way it wants.

In: a request body and, after a refusal, the server's message. Out: the body that this endpoint
accepts, and what was changed in it. `max_tokens` becomes `max_completion_tokens` with the same
value, or as much as the endpoint allows; a sampling parameter that the model does not take is left
out. Each lesson is learned at most once per endpoint and is recorded with every answer whose
request it changed: nothing is dropped unseen.

The first request of an endpoint goes alone (others wait for its outcome, as long as a refusal may take),
so that a refusal is met once and not by every request in flight.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from agentworldbench.models.lengths import output_limit

FIRST_REQUEST_HEAD_START: Final = 5.0
"""Seconds that other requests wait for the outcome of the first; a refusal comes at once."""
AT_ONCE: Final = 2
"""A refusal takes no more than so many times what the endpoint's quickest answer to a small question took."""
LEAST_HEAD_START: Final = 0.02
"""Seconds that are waited in any case: near servers answer faster than a busy machine notices."""

_SAID: Final = 200
"""Characters of a refusal that are its own words; behind them it may quote the prompt."""
_OPTIONAL: Final = ("temperature", "top_p", "seed", "response_format", "stream_options")
_LENGTH: Final = ("max_tokens", "max_completion_tokens")
_REFUSAL = re.compile(
    r"unsupported|not supported|does(n't| not) support|unrecognized|unexpected|not permitted|only the default|"
    r"unknown (parameter|field|name)|deprecated|not allowed|extra inputs|don't support|isn't supported|"
    r"may only be set|must be (set to )?1\b|only (temperature=)?1 is",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Adapted:
    """A body as an endpoint wants it. `changes` says by parameter what was sent in its place:

    None: it was left out; a string: it was sent under that name; a number: it was lowered to that
    (a parameter that was renamed and lowered stands twice, the number beside its new name).
    """

    body: dict[str, Any]
    changes: dict[str, Any]

    @property
    def notes(self) -> tuple[str, ...]:
        """One line per change."""
        return tuple(_note(name, instead) for name, instead in self.changes.items())


def _note(name: str, instead: Any) -> str:
    if instead is None:
        return f"{name} not accepted by the endpoint: sent without"
    if isinstance(instead, str):
        return f"{name} sent as {instead}"
    if name == "thinking.budget_tokens":
        return f"{name} lowered to {instead}, half of the longest answer"
    return f"{name} lowered to {instead}, the most that the endpoint takes"


class Adaptation:
    """What one endpoint has taught us."""

    def __init__(self) -> None:
        self._renamed = False
        self._most: int | None = None
        self._dropped: dict[str, None] = {}  # a set that keeps the order of the lessons
        self._first = asyncio.Lock()
        self._settled = asyncio.Event()
        self._quickest = float("inf")

    def answered_within(self, seconds: float) -> None:
        """Note how long the endpoint took for a small question: what it refuses, it refuses as quickly."""
        self._quickest = min(self._quickest, seconds)

    def apply(self, body: dict[str, Any]) -> Adapted:
        """The body as this endpoint wants it."""
        if not (self._renamed or self._most or self._dropped or "thinking" in body):
            return Adapted(body, {})
        dropped = [name for name in self._dropped if name in body]
        adapted = {name: value for name, value in body.items() if name not in dropped}
        changes: dict[str, Any] = {}
        if self._renamed and "max_tokens" in adapted:
            adapted["max_completion_tokens"] = adapted.pop("max_tokens")
            changes["max_tokens"] = "max_completion_tokens"
        for name in _LENGTH:
            if self._most is not None and _number(adapted.get(name)) > self._most:
                adapted[name] = changes[name] = self._most
        changes |= _shorter_thinking(adapted)
        return Adapted(adapted, changes | dict.fromkeys(dropped))

    def learn(self, sent: dict[str, Any], message: str) -> bool:
        """Take one lesson from a refusal (HTTP 400 or 422) of `sent`; False when there is none.

        A lesson that another request has learned meanwhile counts: the body is then sent again.
        """
        message = message[:_SAID]
        most, asked = output_limit(message), max(_number(sent.get(name)) for name in _LENGTH)
        if most is not None and most < asked:
            self._most = self._most or most
            return asked > self._most
        if "max_tokens" in sent and ("max_completion_tokens" in message or _names(message, "max_tokens")):
            if self._renamed or "max_completion_tokens" in message or _REFUSAL.search(message):
                self._renamed = True
                return True
            return False
        for name in _OPTIONAL:
            if name in sent and _names(message, name) and _REFUSAL.search(message):
                self._dropped[name] = None
                return True
        return False

    def first_alone(self) -> AbstractAsyncContextManager[None]:
        """Let the endpoint's first request pass alone; afterwards this costs nothing."""
        return nullcontext() if self._settled.is_set() else self._in_turn()

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        if not self._first.locked():
            async with self._first:
                try:
                    yield
                finally:
                    self._settled.set()
        else:
            try:
                wait = min(FIRST_REQUEST_HEAD_START, max(LEAST_HEAD_START, AT_ONCE * self._quickest))
                async with asyncio.timeout(wait):  # `wait_for` of Python 3.11 can lose a cancellation
                    await self._settled.wait()
            except TimeoutError:
                self._settled.set()
            await asyncio.sleep(0)  # a failure of the first one that stops the run stops this one unsent
            yield


def _shorter_thinking(body: dict[str, Any]) -> dict[str, Any]:
    """Halve the answer's room where a thinking budget would not fit in it, which providers refuse."""
    thinking, room = body.get("thinking"), max(_number(body.get(name)) for name in _LENGTH)
    if not isinstance(thinking, dict) or not 0 < room <= _number(thinking.get("budget_tokens")):
        return {}
    body["thinking"] = {**thinking, "budget_tokens": room // 2}
    return {"thinking.budget_tokens": room // 2}


def _names(message: str, parameter: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(parameter)}(?!\w)", message) is not None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
