"""A streamed chat completion, put together as the reply that it would have been in one piece.

In: the lines of a server-sent event stream. Out: the decoded reply, which `chat.py` reads like any
other, or a failure. Partial text never becomes an answer: a stream that ends before a finish reason
came is a broken connection. One that breaks after it has brought the whole answer, which is kept.
Comments, by which servers keep a connection alive, are passed over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from agentworldbench.models.base import one_line
from agentworldbench.models.chat import read_usage
from agentworldbench.models.failures import call_failure, error_text, failed
from agentworldbench.records import CallFailure, FailureKind

STREAMED: Final = {"stream": True, "stream_options": {"include_usage": True}}
"""What a request says to be answered in a stream, tokens counted at its end."""
SILENCE: Final = 300.0
"""Seconds without any line, after the first text came, that mean a dead connection: before it a model
may think for long."""
ENDING: Final = 10.0
"""Seconds without any line, after the finish reason came, that mean the end: some servers keep the connection."""
_TEXTS: Final = ("content", "reasoning_content", "reasoning", "refusal")
_NAMES: Final = ("id", "model", "system_fingerprint")


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines of an event stream: they end in CR or LF alone, never in a separator of Unicode inside a text."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").removeprefix("\ufeff")
    yield rest.decode("utf-8", "replace")


async def read_stream(
    lines: AsyncIterator[str], secrets: tuple[str, ...] = ()
) -> dict[str, Any] | CallFailure:
    """Read a stream to its end. Raises what the connection raises, as long as no finish reason came."""
    reply = _Reply()
    try:
        failure = await _read(lines, reply, secrets)
    except Exception:
        if reply.finish_reason is None:
            raise
        failure = None  # at most the token counts are lost
    if failure is None:
        return reply.whole()
    made = {"usage": read_usage(reply.usage)} | ({"cost_usd": None} if reply.begun else {})
    return failure.model_copy(update=made)


async def _read(lines: AsyncIterator[str], reply: _Reply, secrets: tuple[str, ...]) -> CallFailure | None:
    """Take in all events; why they make no whole reply, or None."""
    while True:
        silence = ENDING if reply.finish_reason else SILENCE if reply.begun else None
        try:
            async with asyncio.timeout(silence):
                line = await anext(lines, None)
        except TimeoutError:
            if reply.finish_reason is None:
                return _broken(f"the stream fell silent for {SILENCE:g} s")
            return None
        field, _, told = (line or "").partition(":")
        told = told.strip()
        if line is None or (field, told) == ("data", "[DONE]"):
            break
        if field not in ("data", "error") or not told:
            continue
        try:
            event = json.loads(told)
        except (ValueError, RecursionError) as problem:
            return failed(FailureKind.MALFORMED_RESPONSE, f"an event is not JSON ({one_line(str(problem))})")
        if field == "error":  # llama.cpp
            event = {"error": event}
        if isinstance(event, dict) and event.get("error"):
            return _refused(event, secrets)
        if isinstance(event, dict):
            reply.add(event)
    return None if reply.finish_reason else _broken("the stream ended before the answer did")


class _Reply:
    """What has come so far; the first choice counts."""

    def __init__(self) -> None:
        self.finish_reason: Any = None
        self._message: dict[str, Any] = {"role": "assistant"}
        self._texts: dict[str, list[str]] = {}
        self._top: dict[str, Any] = {}

    @property
    def begun(self) -> bool:
        """Whether any text came."""
        return bool(self._texts)

    @property
    def usage(self) -> Any:
        """The tokens that the server counted last."""
        return self._top.get("usage")

    def add(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        self._top |= {name: event[name] for name in (*_NAMES, "usage") if event.get(name)}
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or choice.get("index", 0) not in (0, None):
            return
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        delta = choice.get("delta", None if self.begun else choice.get("message"))  # some send it whole
        for name, value in (delta if isinstance(delta, dict) else {}).items():
            if name in _TEXTS and isinstance(value, str) and value:
                self._texts.setdefault(name, []).append(value)
            elif name == "content" and isinstance(value, list):
                self._message["parts"] = self._message.get("parts", []) + value
            elif name in ("tool_calls", "function_call") and value:
                self._message[name] = value

    def whole(self) -> dict[str, Any]:
        """The reply in one piece."""
        message = self._message | {name: "".join(pieces) for name, pieces in self._texts.items()}
        parts = message.pop("parts", None)
        if parts:
            text = [{"type": "text", "text": message["content"]}] if message.get("content") else []
            message["content"] = parts + text
        message.setdefault("content", None)
        return self._top | {
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason}]
        }


def _broken(message: str) -> CallFailure:
    return failed(FailureKind.NETWORK, message)


def _refused(event: dict[str, Any], secrets: tuple[str, ...]) -> CallFailure:
    """An error in the middle of a stream whose status was 200: it carries its own, or is the server's fault."""
    inner = event["error"]
    code = inner.get("code") if isinstance(inner, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return call_failure(status, error_text(event, "the server ended the stream with an error"), {}, secrets)
