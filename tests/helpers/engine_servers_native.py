"""Stand-ins for the providers with APIs of their own, at the paths where LiteLLM 1.110 calls them.

A script sees the request in OpenAI's words, `requests` has it as it was sent. `api_base` is what
LiteLLM takes: for Anthropic the root (a base that ends in `/v1` becomes `/v1/v1/messages`), for Gemini
the API's version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from .engine_servers_base import EngineServer, Json, count, plain, prompt_tokens
from .scripted_calls import ChatCall, Reply, reply_bytes, text_of

_ANTHROPIC: Final = frozenset(
    [
        "model",
        "messages",
        "system",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "stream",
        "thinking",
        "metadata",
        "tools",
        "tool_choice",
        "service_tier",
        "output_config",
        "output_format",
        "cache_control",
        "context_management",
        "container",
    ]
)
_STOPS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_GEMINI_STOPS: Final = {"stop": "STOP", "length": "MAX_TOKENS"}


class AnthropicServer(EngineServer):
    """`POST /v1/messages`, after Anthropic's API reference and public reports (Claude 4.x, 2026).

    Thinks only when told to (`thinking` of type `enabled` or `adaptive`). Refused are texts without a
    visible character, unknown keys, `max_tokens` above `output_cap`, a prompt above the context, prompt
    and `max_tokens` above it together, and with thinking any temperature but 1 and a budget that is
    too small or leaves no answer. `sampling=False` is a model that takes no temperature at all. A script's
    finish reason `content_filter` becomes the stop reason `refusal`. `cached` tokens of each prompt
    count as read from the cache.
    """

    TEMPLATE_SWITCH = False

    def __init__(
        self,
        *arguments: Any,
        output_cap: int = 2048,
        sampling: bool = True,
        cached: int = 0,
        **options: Any,
    ) -> None:
        self.output_cap = output_cap
        self.sampling = sampling
        self.cached = cached
        super().__init__(*arguments, chat_path="/v1/messages", **options)

    @property
    def api_base(self) -> str:
        """What LiteLLM takes."""
        return self.root_url

    def read_chat(self, request: web.Request, body: Json) -> Json:
        """The system prompt as a message."""
        system = body.get("system")
        text = system if isinstance(system, str) else text_of({"content": system})
        first = [{"role": "system", "content": text}] if text else []
        return {**body, "messages": [*first, *body.get("messages", [])]}

    def thinking_off(self, body: Json) -> bool:
        """Off unless asked for."""
        return (body.get("thinking") or {}).get("type") not in ("enabled", "adaptive")

    def refuse(self, call: ChatCall) -> Reply | None:
        """The first fault found."""
        if call.model != self.served:
            return self.error(404, f"model: {call.model}", "not_found_error")
        message = self._form(call.body) or self._thinking(call.body) or self._lengths(call)
        return None if message is None else self.error(400, message)

    def error(self, status: int, message: str, kind: str = "invalid_request_error") -> Reply:
        """In Anthropic's shape."""
        error = {"type": kind, "message": message}
        return plain(status, {"type": "error", "error": error, "request_id": "req_5eed"})

    def _form(self, body: Json) -> str | None:
        unknown = next((name for name in body if name not in _ANTHROPIC), None)
        if unknown is not None:
            return f"{unknown}: Extra inputs are not permitted"
        if "max_tokens" not in body:
            return "max_tokens: Field required"
        for index, message in enumerate(one for one in body["messages"] if one["role"] != "system"):
            if message["content"] in ("", []):
                end = (
                    "all messages must have non-empty content except for the optional final assistant message"
                )
                return f"messages.{index}: {end}"
            text = text_of(message)
            if not text:
                return "messages: text content blocks must be non-empty"
            if not text.strip():
                return "messages: text content blocks must contain non-whitespace text"
        return None

    def _thinking(self, body: Json) -> str | None:
        if not self.sampling and "temperature" in body:
            return "`temperature` is deprecated for this model."
        if self.thinking_off(body):
            return None
        if body.get("temperature", 1) != 1:
            adaptive = " or in adaptive mode" if body["thinking"]["type"] == "adaptive" else ""
            return f"`temperature` may only be set to 1 when thinking is enabled{adaptive}."
        budget = body["thinking"].get("budget_tokens")
        if budget is not None and budget < 1024:
            return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        if budget is not None and body["max_tokens"] <= budget:
            return "`max_tokens` must be greater than `thinking.budget_tokens`."
        return None

    def _lengths(self, call: ChatCall) -> str | None:
        prompt, asked = self.prompt(call), int(call.body["max_tokens"])
        if asked > self.output_cap:
            end = f"which is the maximum allowed number of output tokens for {self.served}"
            return f"max_tokens: {asked} > {self.output_cap}, {end}"
        if prompt > self.context:
            return f"prompt is too long: {prompt} tokens > {self.context} maximum"
        if prompt + asked > self.context:
            return (
                f"input length and `max_tokens` exceed context limit: {prompt} + {asked} > {self.context}, "
                "decrease input length or `max_tokens` and try again"
            )
        return None

    def write_reply(self, call: ChatCall, reply: Reply) -> bytes:
        """Blocks of thinking and text."""
        if reply.status >= 400 or reply.error is not None or reply.raw_body is not None:
            return reply_bytes(call, reply)
        thought = {"type": "thinking", "thinking": reply.reasoning_content, "signature": "c2lnbmF0dXJl"}
        blocks: list[Json] = [thought] if reply.reasoning_content else []
        blocks += [{"type": "text", "text": reply.content}] if reply.content else []
        usage = reply.usage or self.usage(call, self.prompt(call), 0, 0)
        message = {
            "id": f"msg_{call.index}",
            "type": "message",
            "role": "assistant",
            "model": self.served,
            "content": blocks,
            "stop_reason": _STOPS.get(str(reply.finish_reason), reply.finish_reason),
            "stop_sequence": None,
            "usage": usage,
        }
        return json.dumps(message).encode()

    def usage(self, call: ChatCall, prompt: int, thought: int, text: int) -> dict[str, Any]:
        """Cached tokens stand beside the others."""
        return {
            "input_tokens": prompt - self.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached,
            "output_tokens": thought + text,
            "service_tier": "standard",
        }


class GeminiServer(EngineServer):
    """`POST /v1beta/models/NAME:generateContent`, after Google's API reference and public reports (2.5, 3).

    Thinks unless `thinkingConfig.thinkingBudget` is 0, which `must_think` models refuse; thoughts count
    towards `maxOutputTokens`, so that an answer may end with MAX_TOKENS and no text, and are shown on
    `includeThoughts` only. `context` bounds the prompt alone. A script's upper-case finish reason
    (SAFETY, PROHIBITED_CONTENT …) leaves the candidate without content; its `refusal` is the reason why
    the prompt was blocked.
    """

    TEMPLATE_SWITCH = False

    def __init__(
        self, *arguments: Any, output_cap: int = 2048, must_think: bool = False, **options: Any
    ) -> None:
        self.output_cap = output_cap
        self.must_think = must_think
        super().__init__(*arguments, chat_path="/v1beta/models/{model:[^:/]+}:generateContent", **options)

    @property
    def api_base(self) -> str:
        """What LiteLLM takes."""
        return f"{self.root_url}/v1beta"

    def read_chat(self, request: web.Request, body: Json) -> Json:
        """Contents as messages; both spellings of each key are taken, as by the API."""
        system = _either(body, "systemInstruction", "system_instruction")
        turns = [{"role": "system", "content": _parts(system)}] if system else []
        roles = {"model": "assistant"}
        for turn in body.get("contents") or []:
            role = str(turn.get("role", "user"))
            turns.append({"role": roles.get(role, role), "content": _parts(turn)})
        config = _either(body, "generationConfig", "generation_config")
        return {
            "model": request.match_info["model"],
            "messages": turns,
            "max_tokens": _either(config, "maxOutputTokens", "max_output_tokens") or None,
            "thinking": _either(config, "thinkingConfig", "thinking_config"),
            "config": config,
        }

    def thinking_off(self, body: Json) -> bool:
        """By its budget."""
        return bool(body["thinking"].get("thinkingBudget") == 0)

    def refuse(self, call: ChatCall) -> Reply | None:
        """Name, thinking, lengths."""
        if call.model != self.served:
            message = f"models/{call.model} is not found for API version v1beta, or is not supported for"
            return self.error(404, f"{message} generateContent.", "NOT_FOUND")
        asked, prompt = self.wanted(call), self.prompt(call)
        if self.must_think and self.thinking_off(call.body):
            message = "Budget 0 is invalid. This model only works in thinking mode."
        elif asked is not None and asked > self.output_cap:
            message = (
                f"Unable to submit request because it has a maxOutputTokens value of {asked} but the supported "
                f"range is from 1 (inclusive) to {self.output_cap + 1} (exclusive). Update the value and try again."
            )
        elif prompt > self.context:
            end = f"exceeds the maximum number of tokens allowed ({self.context})."
            message = f"The input token count ({prompt}) {end}"
        else:
            return None
        return self.error(400, message, "INVALID_ARGUMENT")

    def error(self, status: int, message: str, name: str) -> Reply:
        """In Google's shape."""
        return plain(status, {"error": {"code": status, "message": message, "status": name}})

    def budget(self, call: ChatCall) -> int:
        """What is asked for; the prompt takes nothing away."""
        asked = self.wanted(call)
        return self.output_cap if asked is None else asked

    def usage(self, call: ChatCall, prompt: int, thought: int, text: int) -> dict[str, Any]:
        """Counts that are 0 are left out."""
        counts = {"promptTokenCount": prompt, "candidatesTokenCount": text, "thoughtsTokenCount": thought}
        told: dict[str, Any] = {name: value for name, value in counts.items() if value}
        return told | {"totalTokenCount": prompt + thought + text}

    def write_reply(self, call: ChatCall, reply: Reply) -> bytes:
        """Parts of one candidate, or the feedback on a blocked prompt."""
        if reply.status >= 400 or reply.error is not None or reply.raw_body is not None:
            return reply_bytes(call, reply)
        usage = reply.usage or self.usage(
            call, prompt_tokens(call.messages), 0, count(str(reply.content or ""))
        )
        answer = {"usageMetadata": usage, "modelVersion": self.served, "responseId": f"r{call.index}"}
        if reply.refusal:
            blocked = {"promptFeedback": {"blockReason": reply.refusal}}
            return json.dumps(blocked | answer).encode()
        shown = call.body["thinking"].get("includeThoughts")
        parts: list[dict[str, Any]] = (
            [{"text": reply.reasoning_content, "thought": True}] if shown and reply.reasoning_content else []
        )
        parts += [{"text": reply.content}] if reply.content else []
        content = {"parts": parts, "role": "model"} if parts else {"role": "model"}
        reason = str(reply.finish_reason)
        candidate = {"content": content, "finishReason": _GEMINI_STOPS.get(reason, reason), "index": 0}
        return json.dumps({"candidates": [candidate]} | answer).encode()


def _either(body: Json, camel: str, snake: str) -> Any:
    return body.get(camel) or body.get(snake) or {}


def _parts(turn: Json) -> str:
    parts = turn.get("parts") or []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
