"""`openai-api/NAME` with `--base-url`: every OpenAI-compatible server (vLLM, SGLang, llama.cpp, TGI).

Bodies are posted over connections of our own (`connections.py`): the SDK of OpenAI would compare every message of
a prompt with its types, five times the work. The reply is decoded here, so that odd shapes become typed failures.
`check` also asks what the server tells of itself (`probe.py`), and prompts are counted with its own tokenizer
where it has a way to. The key is `AWB_API_KEY` or `OPENAI_API_KEY` (for a judge `AWB_JUDGE_API_KEY` first); a
local server needs none. A query of the URL (some gateways want one) goes with every request.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from pydantic_core import from_json, to_json

from agentworldbench.download import is_http
from agentworldbench.errors import ConfigError, CredentialsError, EndpointError
from agentworldbench.models import thinking as families
from agentworldbench.models.adapt import Adaptation, Adapted
from agentworldbench.models.base import (
    Connection,
    kept_reply,
    kept_text,
    one_line,
    public_url,
    query_mark,
    reach_hint,
)
from agentworldbench.models.chat import malformed, read_chat, read_usage, request_body
from agentworldbench.models.connections import Connections, key_mark, pieces_of, tells_its_end
from agentworldbench.models.failures import (
    connection_failure,
    failed,
    first_cause,
)
from agentworldbench.models.pricing import cost_of
from agentworldbench.models.probe import TokenCounter, ask_server
from agentworldbench.models.refusals import keyless, moved, refused, told
from agentworldbench.models.streaming import STREAMED, lines_of, read_stream, refused_in
from agentworldbench.models.waiting import clock_offset
from agentworldbench.prices import Price
from agentworldbench.records import CallFailure, Completion, FailureKind, Request, Thinking
from agentworldbench.run_record import ModelFacts

if TYPE_CHECKING:
    from agentworldbench.models.connections import Exchange

CHECK_SECONDS = 20.0
"""Seconds for the list of models."""
PROBE_SECONDS = 10.0
"""Seconds for each further question; tokenizing a prompt of 100,000 tokens takes one or two."""
MOST_SLOW = 3
"""So many questions in a row without an answer in time are enough: this server is asked none any more."""


class OpenAIModel:
    """One model of one OpenAI-compatible server."""

    local = False
    batch: int | None = None

    def __init__(self, name: str, served: str, connection: Connection) -> None:
        if not connection.base_url:
            raise ConfigError(f"{name}: --base-url is missing (for example http://127.0.0.1:8000/v1)")
        if not connection.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"--base-url {public_url(connection.base_url)}: must begin with http:// or https://"
            )
        if not is_http(connection.base_url):
            raise ConfigError(
                f"--base-url {public_url(connection.base_url)}: has no host, or no port that is one"
            )
        parts = urlsplit(connection.base_url)
        if parts.username is not None:
            raise ConfigError(
                f"--base-url {public_url(connection.base_url)}: a URL cannot hold a user name or password here; "
                f"put the key into {' or '.join(connection.key_variables)}"
            )
        self.name = name
        self.limits = connection.limits()
        self._facts = ModelFacts()
        self._clock: float | None = None
        self._slow = 0
        self._served = served
        self._connection = connection
        self._key, variable = _key(connection.key_variables)
        self._query = parse_qsl(parts.query, keep_blank_values=True)
        hidden = (way for _, value in self._query if len(value) > 7 for way in ways_to_write(value))
        self._secrets = (*((self._key,) if variable else ()), *hidden)
        self._url = public_url(connection.base_url) or ""
        self.url: str | None = self._url
        self.query_mark = query_mark(connection.base_url)
        self.endpoint: str | None = f"{self._url} {key_mark(self._key if variable else None)}"
        self._adaptation = Adaptation()
        self._opened: Connections | None = None
        self._counter = TokenCounter(self._post, served)

    def identity(self) -> dict[str, Any]:
        """Backend and served name."""
        return {"backend": "openai-api", "name": self._served}

    def price(self) -> Price | None:
        """A server of one's own has no price list: without --price the cost is unknown, which is not 0."""
        return self._connection.price

    def _open(self) -> Connections:
        if self._opened is None:
            self._opened = Connections(self._url, self._key, self._query, self._connection.timeout)
        return self._opened

    async def check(self) -> None:
        """Ask `/models`: the server must answer at all and accept the key; learn its context length."""
        exchange = self._open().get(f"{self._url}/models")
        try:
            async with asyncio.timeout(CHECK_SECONDS), exchange as response:
                status, content = response.status, await response.read()
                self._clock = clock_offset(response.headers.get("date", ""))
        except Exception as problem:
            late = isinstance(problem, TimeoutError) and not str(problem)
            reason = f"no answer within {CHECK_SECONDS:g} s" if late else first_cause(problem)
            reason = one_line(reason, self._secrets)
            raise EndpointError(
                f"{self._url}: cannot be reached ({reason}); is the server running, and the address right?"
                f"{reach_hint(self._url, reason)}"
            ) from problem
        if status == 401:
            said = told(status, content.decode("utf-8", "replace"))
            raise CredentialsError(f"{self._refused_key(said)}{keyless(response, self._url)}")
        if not _is_good(status):
            return  # many servers have no such list, some keys may not read it: the first request will tell
        with suppress(ValueError, RecursionError):
            await self._learn(json.loads(content))

    async def _learn(self, listed: Any) -> None:
        """What the server tells of the model, from its list and from what its engine adds."""
        data = listed.get("data") if isinstance(listed, dict) else None
        entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
        entry = next((entry for entry in entries if entry.get("id") == self._served), None)
        if entry is None and len(entries) == 1 and entries[0].get("owned_by") == "llamacpp":
            entry = entries[0]  # llama.cpp serves its one model under any name
        facts = await ask_server(self._get, self._post, self._served, entry)
        self._facts = ModelFacts.model_validate(_without_secrets(facts.model_dump(), self._secrets))
        self.limits.hear_context(self._facts.context, self._facts.context_from or "")
        self._counter.expect(self._facts.engine)
        # While the server is idle: which way to count it offers is settled once.
        await self._counter.count([{"role": "user", "content": "ok"}], {})

    async def _get(self, path: str) -> Any:
        return await self._ask(partial(self._open().get, self._at_root(path)))

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._ask(partial(self._open().post, self._at_root(path), to_json(body)))

    def _at_root(self, path: str) -> str:
        """The address of a path at the server's root, beside `/v1`."""
        return f"{self._url.removesuffix('/v1')}{path}"

    async def _ask(self, ask: Callable[[], Exchange]) -> Any:
        """Decoded JSON of an answer, None for anything else."""
        import aiohttp

        if self._slow >= MOST_SLOW:
            return None
        began = time.monotonic()
        try:
            async with asyncio.timeout(PROBE_SECONDS), ask() as response:
                status, content = response.status, await response.read()
        except TimeoutError:
            self._slow += 1
            return None
        except (OSError, ValueError, aiohttp.ClientError):
            return None
        self._adaptation.answered_within(time.monotonic() - began)
        if not _is_good(status):
            return None
        self._slow = 0
        with suppress(ValueError, RecursionError):
            return json.loads(content)
        return None

    def facts(self) -> ModelFacts:
        """What the server told in `check`, and the limits learned since."""
        limits = self.limits
        return self._facts.model_copy(
            update={"context": limits.context, "context_from": limits.context_from}
            | {"max_output": limits.max_output, "max_output_from": limits.max_output_from}
            | {"prompts_counted": self._counter.exact, "clock_offset": self._clock}
        )

    def switches(self, thinking: Thinking, effort: str | None) -> dict[str, Any]:
        """By the family that the served name tells."""
        return families.own_server(self._served, thinking, effort)

    async def count(self, request: Request) -> int | None:
        """By the server's tokenizer; None where it has none to offer."""
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        return await self._counter.count(messages, request.sampling.extra)

    def _refused_key(self, message: str) -> str:
        names = " or ".join(self._connection.key_variables)
        return f"{self._url}: the key was refused ({one_line(message, self._secrets)}); set {names}"

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Send one request; a refused parameter is adapted and sent again at once."""
        async with self._adaptation.first_alone():
            body = request_body(request) | (STREAMED if self._connection.stream else {})
            while True:
                sent = self._adaptation.apply(body)
                outcome = await self._send(sent, self._body(sent, request))
                if isinstance(outcome, Completion):
                    return outcome
                failure = outcome.failure
                adaptable = failure.kind is FailureKind.BAD_REQUEST
                if not (adaptable and self._adaptation.learn(sent.body, failure.message)):
                    return outcome

    def _body(self, sent: Adapted, request: Request) -> bytes:
        """The body as JSON: the model first, and messages that are written already as they are."""
        body = {"model": self._served} | sent.body
        if request.json_text is None or "messages" in request.sampling.extra:
            return to_json(body)
        del body["messages"]
        return b"".join((to_json(body)[:-1], b',"messages":', request.json_text, b"}"))

    async def _send(self, sent: Adapted, body: bytes) -> Completion | CallFailure:
        try:
            async with asyncio.timeout(self._connection.timeout):
                content = await self._receive(body, bool(sent.body.get("stream")))
        except TimeoutError:
            return failed(FailureKind.TIMEOUT, f"no answer within {self._connection.timeout:g} s")
        if isinstance(content, CallFailure):
            return content
        raw = content.text.decode("utf-8", "replace")
        try:
            reply = _decoded(content.text)
        except (ValueError, RecursionError) as problem:
            if not content.told and breaks_off(content.text):
                cut = f"{self._url}: the connection ended before the answer did"
                return failed(FailureKind.NETWORK, cut, reply=kept_reply(raw, self._secrets))
            return malformed(f"the reply is not JSON ({one_line(str(problem))})", raw, self._secrets)
        counted = reply.get("usage") if isinstance(reply, dict) else None
        usage = read_usage(counted)
        if refusal := refused_in(reply, self._secrets):
            return refusal.model_copy(update={"usage": usage, "reply": kept_reply(raw, self._secrets)})
        return read_chat(
            reply, sent, cost_of(counted, usage, self._connection.price), self._secrets, raw, usage
        )

    async def _receive(self, body: bytes, stream: bool) -> _Content | CallFailure:
        """The body of a reply; of a stream, what it would have been in one piece."""
        exchange = self._open().post(f"{self._url}/chat/completions", body)
        try:
            async with exchange as response:
                if elsewhere := moved(response, self._secrets):
                    return elsewhere
                if not _is_good(response.status):
                    return await refused(response, self._url, self._secrets)
                if not stream or "event-stream" not in response.content_type:
                    # Some servers do not stream whatever they are asked.
                    text = b"".join([piece async for piece in pieces_of(response)])
                    return _Content(text, tells_its_end(response))
                reply = await read_stream(lines_of(pieces_of(response)), self._secrets)
                return reply if isinstance(reply, CallFailure) else _Content(json.dumps(reply).encode())
        except Exception as problem:  # noqa: BLE001 - sockets, TLS, proxies and addresses fail in classes of their own
            kind = connection_failure(problem) or FailureKind.NETWORK
            reason = one_line(first_cause(problem), self._secrets)
            hint = reach_hint(self._url, reason) if kind is FailureKind.UNREACHABLE else ""
            return failed(kind, f"{self._url}: {reason}{hint}")

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None


class _Content(NamedTuple):
    """The body of a reply; `told`: the server said where it ends, and this is all of it."""

    text: bytes
    told: bool = True


def _is_good(status: int) -> bool:
    return 200 <= status < 300


def _decoded(content: bytes) -> Any:
    """A reply's JSON; the quicker parser leaves odd ones (lone surrogates, other encodings) to the patient one."""
    try:
        return from_json(content, cache_strings=False)
    except ValueError:
        return json.loads(content)


def breaks_off(content: bytes) -> bool:
    """Whether a reply is the beginning of a JSON text, and no more of it."""
    try:
        from_json(content, cache_strings=False)
    except ValueError as problem:
        return str(problem).startswith("EOF while parsing")
    return False


def ways_to_write(value: str) -> set[str]:
    """A value of a query as it stands, and as addresses write it."""
    return {value, quote(value, safe=""), quote_plus(value), quote_plus(value, safe="/?:@!$'()*,")}


def _without_secrets(value: Any, secrets: tuple[str, ...]) -> Any:
    """A JSON-like value with keys taken out of its texts."""
    if isinstance(value, str):
        return kept_text(value, secrets)
    if isinstance(value, dict):
        return {name: _without_secrets(inner, secrets) for name, inner in value.items()}
    return value


def _key(variables: tuple[str, ...]) -> tuple[str, str | None]:
    """(key, name of its variable); servers without keys get a placeholder, in a header that all expect.

    Raises CredentialsError for a key that no HTTP header can hold.
    """
    for variable in variables:
        key = os.environ.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise CredentialsError(f"{variable}: holds characters that no key has; set it anew")
        if key:
            return key, variable
    return "none", None
