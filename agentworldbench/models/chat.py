"""The chat-completion exchange that all servers share: request body out, reply in.

`request_body` makes the JSON body from a `Request`; `read_chat` turns a decoded reply into a
`Completion`, or into a failure (with its usage and raw text) when it is no chat completion. Reasoning comes back under several
names (`reasoning_content`, `reasoning`, thinking parts) and is kept apart from the answer; text is
taken as it is, `<think>` included, so that the stored reply can be read again under other rules.
"""

from __future__ import annotations

import json
from typing import Any, Final

from agentworldbench.models.adapt import Adapted
from agentworldbench.models.base import kept_reply, kept_text, one_line
from agentworldbench.models.failures import failed
from agentworldbench.records import CallFailure, Completion, FailureKind, Request, Usage
from agentworldbench.texts import count_text, scrub

MOST_TOKENS: Final = 10**8
"""No usage counts so many tokens, whatever a server says: they would be priced, and spend what --max-cost allows."""
_CACHED: Final = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot
    ("cache_read_input_tokens",),  # Anthropic, through gateways
)
_WRITTEN: Final = (
    ("prompt_tokens_details", "cache_write_tokens"),  # OpenRouter, LiteLLM
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("prompt_tokens_details", "cache_creation_input_tokens"),  # Alibaba
    ("cache_creation_input_tokens",),  # Anthropic, through gateways
)
"""Where a usage tells what of the prompt was read from the provider's cache, and what was put into it."""
_WHOLE: Final = frozenset(
    {"stop", "end_turn", "stop_sequence", "eos", "eos_token", "tool_calls", "function_call"}
)
"""Finish reasons of an answer that ended by itself."""
_REASONS: Final = {
    "length": {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"},
    "content_filter": {
        "content_filter",
        "content_filtered",
        "safety",
        "recitation",
        "blocklist",
        "spii",
        "sensitive",
    }
    | {"prohibited_content", "image_safety"},
}
"""Finish reasons of other APIs that gateways hand on as they are, by OpenAI's word for them."""
_BROKEN: Final = frozenset({"error", "abort", "aborted", "cancelled", "insufficient_system_resource"})
"""Finish reasons of an answer that the server could not finish."""


def request_body(request: Request) -> dict[str, Any]:
    """Messages and every sampling parameter that is set; `extra` is merged on top."""
    sampling = request.sampling
    body: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages]
    }
    for name in ("temperature", "top_p", "seed", "max_tokens"):
        value = getattr(sampling, name)
        if value is not None:
            body[name] = value
    if request.json_schema:
        schema = {"name": "verdict", "schema": request.json_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body | sampling.extra


def read_chat(
    reply: Any,
    sent: Adapted | None = None,
    cost_usd: float | None = None,
    secrets: tuple[str, ...] = (),
    raw: str | None = None,
    usage: Usage | None = None,
) -> Completion | CallFailure:
    """A decoded reply as a `Completion`; its first choice counts.

    `sent` tells what was adapted in the request, `raw` is the reply's text where there is one, `usage` its
    token counts where they are read already; `secrets` are taken out of messages and out of the text that a
    failure keeps.
    """
    usage = usage or read_usage(reply.get("usage") if isinstance(reply, dict) else None)
    fault = _fault(reply)
    if fault:
        body = json.dumps(reply, ensure_ascii=False, default=str) if raw is None else raw
        return malformed(one_line(fault, secrets), body, secrets, usage, cost_usd)
    choices = reply["choices"]
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        message = {}
    text, thinking, refused = _content(message.get("content"))
    reason, odd = _finish_reason(choice.get("finish_reason"), secrets)
    notes = (*(sent.notes if sent else ()), *odd)
    if len(choices) > 1:
        notes = (*notes, f"{len(choices)} choices came back; the first counts")
    if text is not None and scrub(text) != text:
        notes = (*notes, "lone surrogates replaced")
    refusal = message.get("refusal") or refused or ("finish reason refusal" if reason == "refusal" else None)
    reasoning = _clean(_first_text(message.get("reasoning_content"), message.get("reasoning"), thinking))
    told = text or reasoning or refusal or message.get("tool_calls") or message.get("function_call")
    hidden = usage.reasoning_tokens
    if not told and reason == "stop" and usage.completion_tokens and not hidden:
        body = json.dumps(reply, ensure_ascii=False, default=str) if raw is None else raw
        return _lost(usage, body, secrets, cost_usd)
    return Completion(
        text=_clean(text),
        reasoning=reasoning,
        finish_reason=reason,
        refusal=_clean(refusal),
        tool_calls=bool(message.get("tool_calls") or message.get("function_call")),
        usage=usage,
        cost_usd=cost_usd,
        model_served=_named(reply.get("model"), secrets),
        response_id=_named(reply.get("id"), secrets),
        fingerprint=_named(reply.get("system_fingerprint"), secrets),
        adapted=sent.changes if sent else {},
        notes=notes,
    )


def malformed(
    message: str,
    raw: str,
    secrets: tuple[str, ...] = (),
    usage: Usage | None = None,
    cost_usd: float | None = None,
) -> CallFailure:
    """The failure that a reply makes which is no chat completion; it may have been paid all the same."""
    made = (
        f" ({count_text(usage.completion_tokens, 'token was', 'tokens were')} made)"
        if usage and usage.completion_tokens
        else ""
    )
    failure = failed(
        FailureKind.MALFORMED_RESPONSE, message + made, usage=usage, reply=kept_reply(raw, secrets)
    )
    return failure.model_copy(update={"cost_usd": cost_usd})


def _lost(usage: Usage, raw: str, secrets: tuple[str, ...], cost_usd: float | None) -> CallFailure:
    """The failure of a reply whose tokens arrive nowhere: neither as text nor as reasoning."""
    made = usage.completion_tokens or 0
    message = (
        f"the reply has no text although {count_text(made, 'token was', 'tokens were')} made; "
        "is the server's reasoning parser right for this model?"
    )
    failure = failed(FailureKind.EMPTY, message, usage=usage, reply=kept_reply(raw, secrets))
    return failure.model_copy(update={"cost_usd": cost_usd})


def _fault(reply: Any) -> str | None:
    """Why a decoded reply is no chat completion, or None."""
    if not isinstance(reply, dict):
        return "the reply is not a JSON object"
    choices = reply.get("choices")
    if isinstance(reply.get("error"), (dict, str)) and reply["error"] and not choices:
        return f"an error came with status 200: {reply['error']}"
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return "the reply has no choices"
    reason = choices[0].get("finish_reason")
    if not isinstance(choices[0].get("message"), dict) and not reason:
        return "the choice has no message"
    if choices[0].get("error") or (isinstance(reason, str) and reason.lower() in _BROKEN):
        return (
            f"the answer ended in an error: finish reason {reason}, {choices[0].get('error') or 'no message'}"
        )
    return None


def _finish_reason(value: Any, secrets: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """(the reason in OpenAI's words where it has one there, what to note about it)."""
    if not isinstance(value, str) or not value:
        return None, ("no finish reason: the reply may not be whole",)
    told = kept_text(value, secrets)
    word = told.lower()
    if word in _WHOLE or word == "refusal":
        return told, ()
    meant = next((reason for reason, words in _REASONS.items() if word.partition(":")[0] in words), None)
    if meant is None:
        return told, (f"unknown finish reason {told[:40]!r}: the reply may not be whole",)
    return meant, (() if word == meant else (f"finish reason {told[:40]} read as {meant}",))


def _named(value: Any, secrets: tuple[str, ...]) -> str | None:
    """What a server calls itself or its reply, keys taken out; None for anything but a string."""
    return kept_text(value, secrets) if isinstance(value, str) else None


def _clean(value: Any) -> str | None:
    """A string without lone surrogates; None for anything else."""
    return scrub(value) if isinstance(value, str) else None


def read_usage(usage: Any) -> Usage:
    """Token counts under the names in use; what is missing or no whole number stays unknown. No prompt has 0 tokens:
    gateways that count nothing say so, and their zeros are no counts either."""
    if not isinstance(usage, dict):
        return Usage()

    def count(*path: str) -> int | None:
        value: Any = usage.get(path[0])
        if value is None:
            return None
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        plain = isinstance(value, int) and not isinstance(value, bool)
        return value if plain and 0 <= value < MOST_TOKENS else None

    def first(*paths: tuple[str, ...]) -> int | None:
        return next((value for path in paths if (value := count(*path)) is not None), None)

    prompt, made = count("prompt_tokens"), count("completion_tokens")
    if prompt == 0 and not first(*_CACHED):
        prompt, made = None, made or None
    return Usage(
        prompt_tokens=prompt,
        cached_tokens=first(*_CACHED),
        cache_write_tokens=first(*_WRITTEN),
        completion_tokens=made,
        reasoning_tokens=count("completion_tokens_details", "reasoning_tokens"),
    )


def _content(content: Any) -> tuple[str | None, str | None, str | None]:
    """(text, thinking, refusal) of a message's content, which may be a string, a part or a list of parts."""
    if content is None or isinstance(content, str):
        return content, None, None
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return str(content), None, None
    texts: list[str] = []
    thoughts: list[str] = []
    refusal: str | None = None
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("type") in ("thinking", "reasoning"):
                thoughts.append(str(part.get("thinking") or part.get("text") or ""))
            elif part.get("type") == "refusal":
                refusal = str(part.get("refusal") or part.get("text") or "refused")
            elif isinstance(part.get("text"), str):
                texts.append(part["text"])
    return ("".join(texts) if texts else None), ("\n".join(thoughts) or None), refusal


def _first_text(*candidates: Any) -> str | None:
    return next((text for text in candidates if isinstance(text, str) and text.strip()), None)
