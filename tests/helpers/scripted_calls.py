"""What a script of the scripted server sees (`ChatCall`) and what it answers (`Reply`).

`ChatCall` is one parsed chat request with its place in the order of arrival. `Reply` holds
everything a test may want to see on the wire: text, reasoning, errors, headers, delays, broken
bodies, dropped connections. `reply_bytes` turns the two into the HTTP body. Token counts are a
quarter of the characters: deterministic, and close enough for cost tests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

CREATED: Final = 1_700_000_000


class Unset:
    """Type of `UNSET`: a choices override that was not given (None and [] are overrides)."""


UNSET: Final = Unset()


@dataclass(frozen=True)
class ChatCall:
    """One `POST /v1/chat/completions` as it arrived."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """Names in lower case."""
    index: int
    """Arrival number on this server, from 1."""
    attempt: int
    """How often these messages have arrived, this call included; other parameters do not count."""

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The messages as sent."""
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages") or []
        return messages

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        """Text of all system and developer messages, joined by newlines."""
        return "\n".join(
            text_of(message) for message in self.messages if message.get("role") in {"system", "developer"}
        )

    @property
    def last_user(self) -> str:
        """Text of the last user message, or the empty string."""
        texts = [text_of(message) for message in self.messages if message.get("role") == "user"]
        return texts[-1] if texts else ""

    @property
    def is_judge(self) -> bool:
        """Heuristic: the system text has the word "judge" or the last user text asks for a verdict."""
        asked = "<final_evaluation>" in self.last_user
        return asked or re.search(r"\bjudge\b", self.system, re.IGNORECASE) is not None

    @property
    def key(self) -> str:
        """SHA-256 of the messages: what `attempt` counts and the log names."""
        return digest_of(self.body.get("messages"))


@dataclass(frozen=True)
class Reply:
    """One answer. `error` wins over content whatever the status; `raw_body` wins over both."""

    content: str | Sequence[Mapping[str, Any]] | None = None
    status: int = 200
    reasoning_content: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = "stop"
    delay_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    """The error object; a mapping that has the key "error" is sent as it stands."""
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    refusal: str | None = None
    raw_body: bytes | None = None
    usage: Mapping[str, Any] | None = None
    """Default: counted from the characters."""
    omit_usage: bool = False
    cached_tokens: int | None = None
    """Adds `prompt_tokens_details.cached_tokens` to the default usage."""
    model: str | None = None
    """The served name; default: the one asked for."""
    drop_connection: bool = False
    choices: object = UNSET
    """Sent in place of the choices, e.g. [] or None."""
    together: int = 0
    """Answer only once this many requests have been in flight at the same time (bounded)."""


Script = Callable[[ChatCall], Reply]


def text_of(message: Mapping[str, Any]) -> str:
    """The text of one message; text parts of a list are joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON of `value`."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def reply_bytes(call: ChatCall, reply: Reply) -> bytes:
    """The HTTP body of `reply` to `call`."""
    if reply.raw_body is not None:
        return reply.raw_body
    if reply.error is not None or reply.status >= 400:
        error = reply.error
        if error is None:
            error = {"message": f"scripted status {reply.status}", "type": "scripted_error", "code": None}
        return json.dumps(error if "error" in error else {"error": error}).encode()
    completion: dict[str, Any] = {
        "id": f"chatcmpl-{call.index}",
        "object": "chat.completion",
        "created": CREATED,
        "model": call.model if reply.model is None else reply.model,
        "choices": _choices(reply) if isinstance(reply.choices, Unset) else reply.choices,
    }
    if not reply.omit_usage:
        completion["usage"] = _usage(call, reply) if reply.usage is None else reply.usage
    return json.dumps(completion).encode()


def _choices(reply: Reply) -> list[dict[str, Any]]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
    optional = {
        "reasoning_content": reply.reasoning_content,
        "reasoning": reply.reasoning,
        "tool_calls": reply.tool_calls,
    }
    message.update({name: value for name, value in optional.items() if value is not None})
    return [{"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}]


def _usage(call: ChatCall, reply: Reply) -> dict[str, Any]:
    prompt = sum(len(text_of(message)) for message in call.messages) // 4
    content = reply.content or ""
    text = content if isinstance(content, str) else text_of({"content": list(content)})
    reasoning = len(reply.reasoning_content or reply.reasoning or "") // 4
    completion = len(text) // 4 + reasoning
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    if reply.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": reply.cached_tokens}
    return usage
