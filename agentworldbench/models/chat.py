"""The chat-completion exchange that all servers share: request body out, reply in.

`request_body` makes the JSON body from a `Request`; `read_chat` turns a decoded reply into a
`Completion`, or into a failure (with its usage and raw text) when it is no chat completion. Reasoning comes back under several
names (`reasoning_content`, `reasoning`, thinking parts) and is kept apart from the answer; text is
taken as it is, `<think>` included, so that the stored reply can be read again under other rules.
"""

from __future__ import annotations

import json
from typing import Any

from agentworldbench.models.adapt import Adapted
from agentworldbench.models.base import kept_reply, one_line
from agentworldbench.models.failures import failed
from agentworldbench.records import CallFailure, Completion, FailureKind, Request, Usage
from agentworldbench.texts import scrub


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
) -> Completion | CallFailure:
    """A decoded reply as a `Completion`; its first choice counts.

    `sent` tells what was adapted in the request, `raw` is the reply's text where there is one;
    `secrets` are taken out of messages and out of the text that a failure keeps.
    """
    usage = read_usage(reply.get("usage") if isinstance(reply, dict) else None)
    fault = _fault(reply)
    if fault:
        body = json.dumps(reply, ensure_ascii=False, default=str) if raw is None else raw
        return malformed(one_line(fault, secrets), body, secrets, usage, cost_usd)
    choices = reply["choices"]
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        message = {}
    text, thinking = _content(message.get("content"))
    notes = sent.notes if sent else ()
    if len(choices) > 1:
        notes = (*notes, f"{len(choices)} choices came back; the first counts")
    if text is not None and scrub(text) != text:
        notes = (*notes, "lone surrogates replaced")
    reasoning = _clean(_first_text(message.get("reasoning_content"), message.get("reasoning"), thinking))
    told = (
        text
        or reasoning
        or message.get("refusal")
        or message.get("tool_calls")
        or message.get("function_call")
    )
    if (
        not told
        and choice.get("finish_reason") == "stop"
        and usage.completion_tokens
        and not usage.reasoning_tokens
    ):
        body = json.dumps(reply, ensure_ascii=False, default=str) if raw is None else raw
        return _lost(usage, body, secrets, cost_usd)
    return Completion(
        text=_clean(text),
        reasoning=reasoning,
        finish_reason=_clean(choice.get("finish_reason")),
        refusal=_clean(message.get("refusal")),
        tool_calls=bool(message.get("tool_calls") or message.get("function_call")),
        usage=usage,
        cost_usd=cost_usd,
        model_served=_clean(reply.get("model")),
        response_id=_clean(reply.get("id")),
        fingerprint=_clean(reply.get("system_fingerprint")),
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
    made = f" ({usage.completion_tokens} tokens were made)" if usage and usage.completion_tokens else ""
    failure = failed(
        FailureKind.MALFORMED_RESPONSE, message + made, usage=usage, reply=kept_reply(raw, secrets)
    )
    return failure.model_copy(update={"cost_usd": cost_usd})


def _lost(usage: Usage, raw: str, secrets: tuple[str, ...], cost_usd: float | None) -> CallFailure:
    """The failure of a reply whose tokens arrive nowhere: neither as text nor as reasoning."""
    message = (
        f"the reply has no text although {usage.completion_tokens} tokens were made; "
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
    if not isinstance(choices[0].get("message"), dict) and not choices[0].get("finish_reason"):
        return "the choice has no message"
    return None


def _clean(value: Any) -> str | None:
    """A string without lone surrogates; None for anything else."""
    return scrub(value) if isinstance(value, str) else None


def read_usage(usage: Any) -> Usage:
    """Token counts under the names in use; what is missing or no whole number stays unknown."""
    if not isinstance(usage, dict):
        return Usage()

    def count(*path: str) -> int | None:
        value: Any = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    cached = count("prompt_tokens_details", "cached_tokens")
    return Usage(
        prompt_tokens=count("prompt_tokens"),
        cached_tokens=cached if cached is not None else count("prompt_cache_hit_tokens"),
        completion_tokens=count("completion_tokens"),
        reasoning_tokens=count("completion_tokens_details", "reasoning_tokens"),
    )


def _content(content: Any) -> tuple[str | None, str | None]:
    """(text, thinking) of a message's content, which may be a string or a list of parts."""
    if content is None or isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return str(content), None
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("type") in ("thinking", "reasoning"):
                thoughts.append(str(part.get("thinking") or part.get("text") or ""))
            elif isinstance(part.get("text"), str):
                texts.append(part["text"])
    return ("".join(texts) if texts else None), ("\n".join(thoughts) or None)


def _first_text(*candidates: Any) -> str | None:
    return next((text for text in candidates if isinstance(text, str) and text.strip()), None)
