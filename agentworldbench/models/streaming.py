"""A streamed chat completion, put together as the reply that it would have been in one piece.

In: the lines of a server-sent event stream. Out: the decoded reply, which `chat.py` reads like any
other, or a failure. Partial text never becomes an answer: a stream that ends before a finish reason
came is a broken connection. One that breaks after it has brought the whole answer, which is kept.
Comments, by which servers keep a connection alive, are passed over.
"""

from __future__ import annotations

import asyncio
import json
import re
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
_STATUS: Final = {
    **dict.fromkeys(
        ("rate_limit_error", "rate_limit_exceeded", "rate_limited", "ratelimiterror", "too_many_requests"),
        429,
    ),
    **dict.fromkeys(("insufficient_quota", "billing_error", "resource_exhausted"), 429),
    **dict.fromkeys(
        (
            "overloaded_error",
            "overloaded",
            "server_is_overloaded",
            "engine_overloaded_error",
            "server_overloaded",
        ),
        529,
    ),
    **dict.fromkeys(
        ("invalid_request_error", "badrequesterror", "bad_request_error", "validation", "content_filter"), 400
    ),
    **dict.fromkeys(("context_length_exceeded", "exceed_context_size_error"), 400),
    **dict.fromkeys(("authentication_error", "invalid_api_key"), 401),
    **dict.fromkeys(("permission_error", "permission_denied"), 403),
    **dict.fromkeys(("not_found_error", "model_not_found", "notfounderror"), 404),
    **dict.fromkeys(("timeout_error", "timeout", "deadline_exceeded"), 504),
}
"""HTTP statuses that codes and types of errors stand for, where the status itself was spent on the stream."""
_LIMITED: Final = re.compile(r".{0,40}?(rate.?limit|too many requests)", re.IGNORECASE)
"""How a message that has neither code nor type begins."""
_TEXTS: Final = ("content", "reasoning_content", "reasoning", "refusal")
_NAMES: Final = ("id", "model", "system_fingerprint")


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines of an event stream: they end in CR or LF alone, never in a separator of Unicode inside a text."""
    begun: list[bytes] = []  # of one line, joined once: a line can be long, and come in many chunks
    async for chunk in chunks:
        first, *others = chunk.replace(b"\r", b"\n").split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun).decode("utf-8", "replace").removeprefix("\ufeff")
            begun = [other]
    yield b"".join(begun).decode("utf-8", "replace")


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
    """Take in all events; why they make no whole reply, or None. What is no JSON is a fault, or in a last line without
    an end the place where the stream broke off."""
    name, unread = "", None
    while True:
        silence = ENDING if reply.finish_reason else SILENCE if reply.begun else None
        try:
            async with asyncio.timeout(silence):
                line = await anext(lines, None)
        except TimeoutError:
            whole = reply.finish_reason is not None
            return unread if unread or whole else _broken(f"the stream fell silent for {SILENCE:g} s")
        if line is not None and unread is not None:
            return unread
        field, _, told = (line or "").partition(":")
        told = told.strip()
        if line is None or (field, told) == ("data", "[DONE]"):
            break
        name = told if field == "event" else name
        if field not in ("data", "error") or not told:
            continue
        is_error = "error" in (field, name)  # llama.cpp's word, and that of event streams
        name = ""
        try:
            event = json.loads(told)
        except (ValueError, RecursionError) as problem:
            if is_error:
                return _refused({"error": told}, secrets)
            why = f"an event is not JSON ({one_line(str(problem))}): {one_line(told, secrets)}"
            unread = failed(FailureKind.MALFORMED_RESPONSE, why)
            continue
        if error := _error_in(event, is_error):
            return _refused(error, secrets)
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


def _error_in(event: Any, is_error: bool) -> dict[str, Any] | None:
    """The error that an event tells of, as the body of a refusal would hold it; None for none."""
    if not isinstance(event, dict):
        return {"error": event} if is_error and event else None
    if event.get("error"):
        return event
    if is_error or event.get("object") == "error":  # without a frame: earlier vLLM, SGLang
        return {"error": event}
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) and choice.get("error") else None


def _refused(event: dict[str, Any], secrets: tuple[str, ...]) -> CallFailure:
    """An error in the middle of a stream whose status was 200: it carries its own, or is the server's fault."""
    text = error_text(event, "the server ended the stream with an error")
    status = _status_in(event) or (429 if _LIMITED.match(text) else 500)
    return call_failure(status, text, {}, secrets)


def refused_in(reply: Any, secrets: tuple[str, ...]) -> CallFailure | None:
    """The refusal that a whole reply is whose status was 200; None where it carries no status of its own."""
    if not isinstance(reply, dict) or not reply.get("error") or reply.get("choices"):
        return None
    status = _status_in(reply)
    return call_failure(status, error_text(reply, "an error"), {}, secrets) if status else None


def _status_in(event: dict[str, Any]) -> int | None:
    inner = event["error"]
    told = {**event, **inner} if isinstance(inner, dict) else event
    names = [told.get(name) for name in ("code", "status", "status_code", "type", "error_type")]
    return next(filter(None, map(_status, names)), None)


def _status(name: Any) -> int | None:
    """The HTTP status that a code or type of an error stands for."""
    if isinstance(name, str) and name.isascii() and name.isdigit() and len(name) == 3:
        name = int(name)
    if isinstance(name, int):
        return name if 400 <= name < 600 else None
    return _STATUS.get(name.lower()) if isinstance(name, str) else None
