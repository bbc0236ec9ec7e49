"""Where a prompt is marked for a provider that caches prompts only up to such marks (Claude, wherever it is hosted).

In: requests that say with which of their first messages a later one begins too (`read_again`), and what
the provider counted. Out: lengths, in messages, at which a breakpoint (`cache_control`) is put. What a
breakpoint puts into the cache is paid 1.25 times, what is read there 0.1 times, and it is forgotten 5
minutes after its last use. So one is put for writing only where a second read is certain and will come in
time; and one for reading at the longest beginning that an answer has shown to lie in the cache: there
nothing is written anew. The last request of a trajectory so has none but for reading. Beginnings below the
model's least size (512 to 4,096 tokens) are not cached, and cost nothing more.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentworldbench.records import Message, Request, Usage

LIFETIME: Final = 300.0
MARGIN: Final = 60.0
"""Seconds for which a provider keeps what was put into its cache, and how many of them are not counted on."""
MOST: Final = 4
"""Breakpoints that a request may have."""
_ABOUT_CACHING: Final = re.compile(r"cache_control|(prompt|context|explicit) caching", re.IGNORECASE)
_SAID: Final = 300
"""How a refusal names them, and characters of it that are its own words."""
PROVIDERS: Final = frozenset({"anthropic", "azure_ai", "bedrock", "openrouter", "vertex_ai"})
"""LiteLLM's providers that hand the marks on to Claude. Other models of theirs cache without being told."""


@dataclass(frozen=True)
class Placed:
    """Breakpoints of one request: after how many messages, hashes of what stands before, when it began."""

    lengths: tuple[int, ...] = ()
    beginnings: tuple[bytes, ...] = ()
    began: float = 0.0


class CacheBreakpoints:
    """Places the breakpoints for one model, and remembers what its cache holds."""

    def __init__(self, provider: str, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.wanted = provider in PROVIDERS and "claude" in name.lower()
        self._clock = clock
        self._held: dict[bytes, float] = {}
        self._answers_take = 0.0

    def place(self, request: Request) -> Placed:
        """Where to put them."""
        now = self._clock()
        if not self.wanted:
            return Placed(began=now)
        self._held = {key: used for key, used in self._held.items() if now - used < LIFETIME - MARGIN}
        beginnings = _beginnings(request.messages)
        held = [length for length, key in enumerate(beginnings, start=1) if key in self._held]
        in_time = self._answers_take < LIFETIME - MARGIN
        wanted = {*held[-1:], *(request.read_again if in_time else ())}
        # A block without text takes no mark.
        lengths = sorted(one for one in wanted if request.messages[one - 1].content.strip())[-MOST:]
        return Placed(tuple(lengths), tuple(beginnings[one - 1] for one in lengths), now)

    def heard(self, placed: Placed, usage: Usage) -> None:
        """Take in what an answer tells: how long answers take, and that there is something in the cache."""
        took = self._clock() - placed.began
        self._answers_take += (took - self._answers_take) / 4 if self._answers_take else took
        if usage.cached_tokens or usage.cache_write_tokens:
            self._held |= dict.fromkeys(placed.beginnings, placed.began)

    def refused(self) -> None:
        """The endpoint takes no marks: put none from now on."""
        self.wanted = False


def refuses_breakpoints(status: int | None, message: str) -> bool:
    """Whether a refusal is about breakpoints: the endpoint does not know them, or may not cache (Google switches
    caching off for projects that ask for it, and then refuses marked requests)."""
    return status in (400, 403, 422) and _ABOUT_CACHING.search(message[:_SAID]) is not None


def marked(messages: Sequence[dict[str, Any]], placed: Placed) -> list[dict[str, Any]]:
    """The messages of a body with the breakpoints in them; the texts stay as they are."""
    made = list(messages)
    for length in placed.lengths:
        text = made[length - 1]["content"]
        part = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        made[length - 1] = {**made[length - 1], "content": [part]}
    return made


def _beginnings(messages: Sequence[Message]) -> list[bytes]:
    """A hash of each beginning: of the first message, of the first two …"""
    state, found = hashlib.blake2b(digest_size=16), list[bytes]()
    for message in messages:
        content = message.content.encode()
        state.update(f"{message.role} {len(content)} ".encode())
        state.update(content)
        found.append(state.digest())
    return found
