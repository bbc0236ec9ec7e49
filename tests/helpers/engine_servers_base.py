"""What the stand-ins for inference servers share: exact token counts, answers cut to a budget, errors.

The tokenizer counts a word or a punctuation mark as one token, and `<|im_start|>`, `<|im_end|>`,
`<think>`, `</think>` as one each. The chat template puts three tokens around each message (start,
role, end) and two at the end (start, `assistant`); where thinking is switched off, the empty thought
`<think></think>` adds two. So a test knows the numbers: `prompt_tokens(messages)`.

`EngineServer` asks its `answer` script for a whole text and then does what the engine would: refuse
by its own words (`refuse`), think first (`thinks`), cut to the budget (`budget`), count the usage.
`requests` has every request to every path, in order.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from aiohttp import web
from aiohttp.typedefs import Middleware

from .scripted_calls import ChatCall, Reply, Script, reply_bytes, text_of
from .scripted_replies import world_and_judge
from .scripted_server import ScriptedServer

PIECE: Final = re.compile(r"<\|im_(?:start|end)\|>|</?think>|\w+|[^\w\s]")
PER_MESSAGE: Final = 3
PER_PROMPT: Final = 2
NO_THOUGHT: Final = "<think>\n\n</think>\n\n"

Json = Mapping[str, Any]
Messages = Sequence[Mapping[str, Any]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ReasoningField = Literal["reasoning_content", "reasoning", "both", "inline", "hidden"]


def count(text: str) -> int:
    """Tokens of a text."""
    return sum(1 for _ in PIECE.finditer(text))


def token_ids(text: str) -> list[int]:
    """One number per token, the same for the same piece."""
    return [zlib.crc32(match[0].encode("utf-8", "replace")) % 50_000 for match in PIECE.finditer(text)]


def cut(text: str, tokens: int) -> str:
    """The first `tokens` tokens of a text, as they stand there."""
    ends = [match.end() for match in PIECE.finditer(text)]
    if len(ends) <= tokens:
        return text
    return text[: ends[tokens - 1]] if tokens > 0 else ""


def rendered(messages: Messages, *, thinking_off: bool = False) -> str:
    """The chat template."""
    turns = [f"<|im_start|>{one.get('role')}\n{text_of(one)}<|im_end|>\n" for one in messages]
    return "".join(turns) + "<|im_start|>assistant\n" + (NO_THOUGHT if thinking_off else "")


def prompt_tokens(messages: Messages, *, thinking_off: bool = False) -> int:
    """Tokens of the rendered messages."""
    return count(rendered(messages, thinking_off=thinking_off))


def sized_messages(tokens: int) -> list[dict[str, str]]:
    """One user message whose rendered prompt has exactly `tokens` tokens."""
    words = tokens - PER_MESSAGE - PER_PROMPT
    if words < 0:
        raise ValueError(f"the template alone has {PER_MESSAGE + PER_PROMPT} tokens")
    return [{"role": "user", "content": " ".join(["word"] * words)}]


def rambling(tokens: int, thoughts: int = 0) -> Script:
    """An answer of that many tokens (and thoughts of that many): longer ones than the budget are cut."""
    text, thought = " ".join(["so"] * tokens), " ".join(["hm"] * thoughts)
    return lambda call: Reply(content=text, reasoning_content=thought or None)


def openai_error(
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    param: str | None = None,
    code: str | int | None = None,
) -> Reply:
    """A refusal in OpenAI's shape."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Reply(status=status, error=error)


def plain(status: int, body: Json) -> Reply:
    """A refusal whose body is sent as it stands."""
    return Reply(status=status, raw_body=json.dumps(body).encode())


def get(path: str, body: Callable[[], Json]) -> web.RouteDef:
    """A path that tells the same to everybody."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response(body())

    return web.get(path, handler)


def post(path: str, answer: Callable[[Json], Json | Reply]) -> web.RouteDef:
    """A path that answers a JSON object; a `Reply` is a refusal."""

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        told = answer(body)
        if isinstance(told, Reply):
            payload = told.raw_body or reply_bytes(ChatCall(body, {}, 0, 0), told)
            return web.Response(status=told.status, body=payload, content_type="application/json")
        return web.json_response(told)

    return web.post(path, handler)


@dataclass(frozen=True)
class SeenRequest:
    """One request as it came over the wire."""

    method: str
    path: str
    body: Any
    """Decoded JSON; None where there was no body, or none that is JSON."""


class EngineServer(ScriptedServer):
    """Base of the stand-ins. `context`: tokens of prompt and answer; `served`: the model's name.

    `thinks` is what the model thinks before every answer unless a request switches that off (a
    script's own reasoning comes first); `reasoning_field` is where the server puts it: `inline` is
    the text's `<think>…</think>`, as without a reasoning parser, `hidden` shows in the usage alone.
    """

    EMPTY: ClassVar[str | None] = ""
    """Content of an answer that was cut while it still thought."""
    TEMPLATE_SWITCH: ClassVar[bool] = True
    """Whether thinking is switched off in the chat template, which then adds an empty thought."""
    UNKNOWN: ClassVar[tuple[int, Json]] = (404, {"detail": "Not Found"})
    """Status and body for every other path."""

    def __init__(
        self,
        answer: Script = world_and_judge,
        *,
        context: int = 4096,
        served: str = "served-model",
        thinks: str = "",
        reasoning_field: ReasoningField = "reasoning_content",
        entry: Json | None = None,
        routes: Iterable[web.RouteDef] = (),
        chat_path: str = "/v1/chat/completions",
        port: int = 0,
    ) -> None:
        self.answer = answer
        self.context = context
        self.served = served
        self.thinks = thinks
        self.reasoning_field = reasoning_field
        self._requests: list[SeenRequest] = []
        super().__init__(
            self._limited,
            models=[{"id": served, **(entry or {})}],
            port=port,
            chat_path=chat_path,
            routes=[*routes, web.route("*", "/{rest:.*}", self._unknown)],
            middlewares=[web.middleware(self._noting())],
        )

    @property
    def api_base(self) -> str:
        """The address for LiteLLM and `--base-url`."""
        return self.base_url

    @property
    def requests(self) -> tuple[SeenRequest, ...]:
        """All requests to all paths, in order of arrival."""
        return tuple(self._requests)

    def paths(self) -> list[str]:
        """`METHOD /path` of all requests, in order."""
        return [f"{one.method} {one.path}" for one in self.requests]

    def bodies(self, path: str) -> list[Any]:
        """Bodies of the requests to one path, in order."""
        return [one.body for one in self.requests if one.path == path]

    # What an engine overrides.

    def refuse(self, call: ChatCall) -> Reply | None:
        """The engine's own refusal, or None."""
        return None

    def budget(self, call: ChatCall) -> int:
        """Tokens that the answer gets; what is asked for, as far as the context has room."""
        room = self.context - self.prompt(call)
        asked = self.wanted(call)
        return room if asked is None else min(asked, room)

    def thinking_off(self, body: Json) -> bool:
        """Whether a request switches thinking off."""
        arguments = body.get("chat_template_kwargs") or {}
        return arguments.get("enable_thinking") is False or arguments.get("thinking") is False

    def prompt(self, call: ChatCall) -> int:
        """Tokens of the prompt as the engine evaluates it."""
        return self.count_body(call.body)

    def extras(self, call: ChatCall, reply: Reply) -> Json:
        """Further top-level keys of a completion."""
        return {}

    # What all share.

    def wanted(self, call: ChatCall) -> int | None:
        """`max_completion_tokens` or `max_tokens` of a request."""
        asked: int | None = call.body.get("max_completion_tokens") or call.body.get("max_tokens")
        return asked

    def count_body(self, body: Json) -> int:
        """Tokens of the messages in a body under its template arguments."""
        return count(self.render_body(body))

    def render_body(self, body: Json) -> str:
        """The chat template under a body's arguments; one that knows no switch ignores it."""
        closed = self.TEMPLATE_SWITCH and bool(self.thinks) and self.thinking_off(body)
        return rendered(body.get("messages") or [], thinking_off=closed)

    def usage(self, call: ChatCall, prompt: int, thought: int, text: int) -> dict[str, Any]:
        """`usage` of a completion."""
        made = thought + text
        return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}

    def write_reply(self, call: ChatCall, reply: Reply) -> bytes:
        """The completion with the engine's own keys."""
        payload = super().write_reply(call, reply)
        if reply.status >= 400 or reply.error is not None or reply.raw_body is not None:
            return payload
        return json.dumps(json.loads(payload) | dict(self.extras(call, reply))).encode()

    def _limited(self, call: ChatCall) -> Reply:
        refusal = self.refuse(call)
        if refusal is not None:
            return refusal
        reply = self.answer(call)
        untouched = (reply.status >= 400, reply.error, reply.raw_body, reply.usage)
        if any(untouched) or not isinstance(reply.content, str):
            return reply
        return self._cut(call, reply, reply.content)

    def _cut(self, call: ChatCall, reply: Reply, text: str) -> Reply:
        budget = max(self.budget(call), 0)
        thought = "" if self.thinking_off(call.body) else self.thinks
        thought = reply.reasoning_content or reply.reasoning or thought
        if thought and self.reasoning_field == "inline":
            thought, text = "", f"<think>\n{thought}\n</think>\n\n{text}"
        kept = cut(thought, budget)
        shown = cut(text, budget - count(kept))
        whole = count(thought) + count(text) <= budget
        field = self.reasoning_field
        return replace(
            reply,
            content=shown or (self.EMPTY if kept and not whole else shown),
            reasoning_content=kept if kept and field in ("reasoning_content", "both") else None,
            reasoning=kept if kept and field in ("reasoning", "both") else None,
            finish_reason=reply.finish_reason if whole else "length",
            usage=self.usage(call, self.prompt(call), count(kept), count(shown)),
        )

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        status, body = self.unknown(request)
        return web.json_response(body, status=status)

    def unknown(self, request: web.Request) -> tuple[int, Json]:
        """Status and body for a path that the engine does not have."""
        return self.UNKNOWN

    def _noting(self) -> Middleware:
        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            raw = await request.read()
            try:
                body = json.loads(raw) if raw else None
            except ValueError:
                body = None
            self._requests.append(SeenRequest(request.method, request.path, body))
            try:
                return await handler(request)
            except (web.HTTPException, ConnectionError):
                raise
            except Exception as error:  # noqa: BLE001 - a failing route must fail the test, not hide
                self.errors.append(error)
                return web.json_response({"error": f"route failed: {error!r}"}, status=500)

        return note
