"""The chat-completion exchange that all servers share: request body out, reply in.

`request_body` makes the JSON body from a `Request`; `read_chat` turns a decoded reply into a
`Completion`, or into a failure when it is no chat completion. Reasoning comes back under several
names (`reasoning_content`, `reasoning`, thinking parts) and is kept apart from the answer; text is
taken as it is, `<think>` included, so that the stored reply can be read again under other rules.
"""

from __future__ import annotations

from typing import Any

from agentworldbench.models.base import one_line
from agentworldbench.records import CallFailure, Completion, Failure, FailureKind, Request, Usage, scrub


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
    notes: tuple[str, ...] = (),
    cost_usd: float | None = None,
    secrets: tuple[str, ...] = (),
) -> Completion | CallFailure:
    """A decoded reply as a `Completion`; its first choice counts. `secrets` are taken out of messages."""
    if not isinstance(reply, dict):
        return _malformed("the reply is not a JSON object")
    if isinstance(reply.get("error"), (dict, str)) and reply["error"] and not reply.get("choices"):
        return _malformed(f"an error came with status 200: {one_line(str(reply['error']), secrets)}")
    usage = read_usage(reply.get("usage"))
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return _malformed("the reply has no choices", usage)
    choice = choices[0]
    reason = choice.get("finish_reason")
    message = choice.get("message")
    if not isinstance(message, dict):
        message = {}
        if not reason:
            return _malformed("the choice has no message", usage)
    text, thinking = _content(message.get("content"))
    reasoning = _first_text(message.get("reasoning_content"), message.get("reasoning"), thinking)
    if len(choices) > 1:
        notes = (*notes, f"{len(choices)} choices came back; the first counts")
    return Completion(
        text=None if text is None else scrub(text),
        reasoning=scrub(reasoning) if reasoning else None,
        finish_reason=scrub(reason) if isinstance(reason, str) else None,
        refusal=scrub(message["refusal"]) if isinstance(message.get("refusal"), str) else None,
        tool_calls=bool(message.get("tool_calls") or message.get("function_call")),
        usage=usage,
        cost_usd=cost_usd,
        model_served=scrub(reply["model"]) if isinstance(reply.get("model"), str) else None,
        notes=(*notes, "lone surrogates replaced") if text is not None and scrub(text) != text else notes,
    )


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


def _malformed(message: str, usage: Usage | None = None) -> CallFailure:
    spent = f" ({usage.completion_tokens} tokens were made)" if usage and usage.completion_tokens else ""
    return CallFailure(failure=Failure(kind=FailureKind.MALFORMED_RESPONSE, message=message + spent))
