"""A stand-in for Anthropic whose cache of prompts works as its public documentation says.

A breakpoint (`cache_control`) puts everything up to its block into the cache, where that is at least `least`
tokens; the longest cached beginning within 20 blocks before a breakpoint is read; without one nothing is.
More than four, or one on a block without text, are refused. Entries do not expire. `marks` has for each
request how many of its blocks stood before each breakpoint.
"""

from __future__ import annotations

from typing import Any, Final

from .engine_servers import AnthropicServer
from .engine_servers_base import PER_MESSAGE, Json, count
from .scripted_calls import ChatCall, Reply

LOOKBACK: Final = 20


class CachingAnthropicServer(AnthropicServer):
    """`AnthropicServer` with a cache; `refuses` is one that does not know breakpoints."""

    def __init__(self, *arguments: Any, least: int = 1, refuses: bool = False, **options: Any) -> None:
        self.least = least
        self.refuses = refuses
        self.marks: list[tuple[int, ...]] = []
        self._held: set[tuple[tuple[str, str], ...]] = set()
        super().__init__(*arguments, **options)

    def refuse(self, call: ChatCall) -> Reply | None:
        """Breakpoints first."""
        blocks = _blocks(call.body)
        marked = [text for _, text, mark in blocks if mark]
        if marked and self.refuses:
            return self.error(400, "messages.0.content.0.cache_control: Extra inputs are not permitted")
        if len(marked) > 4:
            return self.error(
                400, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
            )
        if not all(text.strip() for text in marked):
            return self.error(400, "cache_control cannot be set for empty text blocks")
        return super().refuse(call)

    def usage(self, call: ChatCall, prompt: int, thought: int, text: int) -> dict[str, Any]:
        """What was read and what was written."""
        blocks = _blocks(call.body)
        texts = tuple((role, text) for role, text, _ in blocks)
        ends = tuple(number for number, (_, _, mark) in enumerate(blocks, start=1) if mark)
        self.marks.append(ends)
        near = {length for end in ends for length in range(max(1, end - LOOKBACK), end + 1)}
        read = max((length for length in near if texts[:length] in self._held), default=0)
        kept = [end for end in ends if _tokens(texts[:end]) >= self.least]
        self._held |= {texts[:end] for end in kept}
        cached = _tokens(texts[:read])
        written = max(0, _tokens(texts[: max(kept, default=0)]) - cached)
        return {
            "input_tokens": prompt - cached - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": cached,
            "output_tokens": thought + text,
        }


def _blocks(body: Json) -> list[tuple[str, str, bool]]:
    """(role, text, whether a breakpoint is on it) of every block, the system's first."""
    found = []
    system = {"role": "system", "content": body.get("system") or []}
    for message in [system, *(one for one in body["messages"] if one["role"] != "system")]:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        found += [(message["role"], part["text"], "cache_control" in part) for part in parts]
    return found


def _tokens(texts: tuple[tuple[str, str], ...]) -> int:
    return sum(PER_MESSAGE + count(text) for _, text in texts)
