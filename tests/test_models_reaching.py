"""Reaching an OpenAI-compatible server: broken connections, the check before a run, names and URLs.

Servers that hang up, fall silent or speak no HTTP must come out as typed failures; the check must
tell a wrong address and a refused key before anything is spent. No key or password in any message.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import ConfigError, CredentialsError, EndpointError
from agentworldbench.models import Connection, Model, create_model
from agentworldbench.models.base import one_line, public_url
from agentworldbench.records import CallFailure, Completion
from tests.helpers.asking import KEY, LIMIT_S, TASKS, Talk, ask_once, make_request, set_key
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer

MODEL = "openai-api/tiny"


def ok(call: ChatCall) -> Reply:
    return Reply(content="total 2")


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch)
        yield


# --- connections -----------------------------------------------------------------------------


def closed_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@asynccontextmanager
async def raw_server(answer: bytes, hang: bool = False) -> AsyncIterator[str]:
    """Answers any request with `answer`, then closes the connection or keeps it open in silence."""
    release = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if hang:
            await release.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        release.set()
        server.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
CHUNKED = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\n'
)
BROKEN = {
    "no answer": (b"", False, "network"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", False, "network"),
    "body shorter than announced": (HEAD + b'{"choices": [', False, "network"),
    "chunks that end early": (CHUNKED, False, "network"),
    "silence": (b"", True, "timeout"),
    "silence in the body": (HEAD + b'{"choices": [', True, "timeout"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_connections_are_typed(name: str) -> None:
    answer, hang, kind = BROKEN[name]

    async def run() -> Completion | CallFailure:
        async with raw_server(answer, hang) as url:
            model = create_model(MODEL, Connection(base_url=url, timeout=0.3), TASKS)
            try:
                return await asyncio.wait_for(model.generate(make_request()), LIMIT_S)
            finally:
                await model.close()

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == kind, outcome
    assert outcome.failure.status is None
    assert outcome.cost_usd is None, "an answer may have been made and paid"


def test_a_dropped_connection_is_a_network_failure() -> None:
    outcome, server = ask_once(MODEL, lambda call: Reply(drop_connection=True))
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.kind, len(server.calls)) == ("network", 1)


def test_a_closed_port_is_unreachable() -> None:
    async def run() -> Completion | CallFailure:
        connection = Connection(base_url=f"http://127.0.0.1:{closed_port()}/v1")
        model = create_model(MODEL, connection, TASKS)
        try:
            return await model.generate(make_request())
        finally:
            await model.close()

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "unreachable"
    assert outcome.cost_usd == 0.0


@pytest.mark.parametrize("model", [MODEL, "openai/tiny"])
def test_proxies_of_the_environment_are_honoured_and_named(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    through, server = ask_once(model, ok)
    assert isinstance(through, CallFailure)
    assert through.failure.kind == "unreachable"
    assert "HTTP_PROXY is set" in through.failure.message
    assert server.calls == ()
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "localhost,127.0.0.1")
    past, server = ask_once(model, ok)
    assert isinstance(past, Completion)
    assert len(server.calls) == 1


# --- the check before a run ------------------------------------------------------------------


def check(url: str, **connection: Any) -> Model:
    async def run() -> Model:
        model = create_model(MODEL, Connection(base_url=url, **connection), TASKS)
        try:
            await asyncio.wait_for(model.check(), LIMIT_S)
        finally:
            await model.close()
        return model

    return asyncio.run(run())


LISTS: dict[str, tuple[Any, int | None]] = {
    "context of the served model": ([{"id": "tiny", "max_model_len": 4096}], 4096),
    "another model": ([{"id": "other", "max_model_len": 4096}], None),
    "no context": ([{"id": "tiny"}], None),
    "a context that is no number": ([{"id": "tiny", "max_model_len": "4096"}], None),
    "no list": (404, None),
    "list not allowed": (403, None),
    "list broken": (500, None),
}


@pytest.mark.parametrize("name", LISTS)
def test_check_learns_the_context_where_the_server_tells_it(name: str) -> None:
    models, context = LISTS[name]
    with ScriptedServer(ok, models=models) as server:
        model = check(server.base_url)
    assert model.limits.context == context
    assert (server.model_requests, server.calls) == (1, ())


def test_a_context_given_by_the_user_wins() -> None:
    with ScriptedServer(ok, models=[{"id": "tiny", "max_model_len": 4096}]) as server:
        assert check(server.base_url, max_context=1000).limits.context == 1000


def test_check_refuses_a_bad_key_without_printing_it() -> None:
    with ScriptedServer(ok, models=401) as server, pytest.raises(CredentialsError, match="refused") as caught:
        check(server.base_url)
    assert "OPENAI_API_KEY" in str(caught.value)
    assert KEY not in str(caught.value)


def test_check_says_that_a_server_cannot_be_reached() -> None:
    with pytest.raises(EndpointError, match="cannot be reached"):
        check(f"http://127.0.0.1:{closed_port()}/v1")


# --- names and texts -------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "ftp://127.0.0.1/v1", "http://[::1/v1", ""])
def test_a_url_must_be_one(url: str) -> None:
    with pytest.raises(ConfigError, match="--base-url"):
        create_model(MODEL, Connection(base_url=url), TASKS)


def test_identity_holds_no_secret() -> None:
    model = create_model(MODEL, Connection(base_url="https://host/v1/"), TASKS)
    assert model.identity() == {"backend": "openai-api", "name": "tiny"}
    assert model.url == "https://host/v1"
    assert KEY not in str(model.endpoint) + json.dumps(model.identity())


def test_two_names_of_one_server_and_two_addresses_of_one_model_are_the_same() -> None:
    made = [
        create_model(name, Connection(base_url=url), TASKS)
        for name, url in (("openai-api/m", "https://a/v1"), ("m", "https://a/v1"), ("m", "https://b/v1"))
    ]
    assert made[0].identity() == made[1].identity() == made[2].identity()
    assert [model.url for model in made] == ["https://a/v1", "https://a/v1", "https://b/v1"]


@pytest.mark.parametrize("model", [MODEL, "openai/tiny"])
@pytest.mark.parametrize("ending", ["/chat/completions", "/chat/completions/", "/"])
def test_the_address_of_the_chat_endpoint_is_taken_for_its_root(model: str, ending: str) -> None:
    async def run(url: str) -> Completion | CallFailure:
        made = create_model(model, Connection(base_url=url + ending), TASKS)
        assert made.url == url
        try:
            return await asyncio.wait_for(made.generate(make_request()), LIMIT_S)
        finally:
            await made.close()

    with ScriptedServer(ok) as server:
        assert isinstance(asyncio.run(run(server.base_url)), Completion)
    assert len(server.calls) == 1


def test_a_query_is_sent_and_never_shown() -> None:
    hidden = "hidden-0123456789"
    paths: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        paths.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
        body = f'{{"error": {{"message": "no {hidden}"}}}}'.encode()
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async def run() -> tuple[Model, Completion | CallFailure]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/v1/chat/completions?key={hidden}&v=1#top"
        made = create_model(MODEL, Connection(base_url=url), TASKS)
        assert made.url == f"http://127.0.0.1:{port}/v1"
        try:
            return made, await asyncio.wait_for(made.generate(make_request()), LIMIT_S)
        finally:
            await made.close()
            server.close()

    made, outcome = asyncio.run(run())
    assert paths == [f"/v1/chat/completions?key={hidden}&v=1".encode()]
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.message.startswith("no ***")
    assert hidden not in str(made.endpoint) + json.dumps(made.identity()) + str(made.url)


def test_a_url_with_a_password_is_refused_without_printing_it() -> None:
    with pytest.raises(ConfigError, match="--base-url https://host/v1: ") as caught:
        create_model(MODEL, Connection(base_url="https://me:hidden@host/v1/"), TASKS)
    assert "hidden" not in str(caught.value)


PUBLIC = {
    "https://me:hidden@host/v1/?a=b@c": "https://host/v1",
    "https://host/v1?key=hidden": "https://host/v1",
    "https://host/v1/#hidden": "https://host/v1",
    "https://me:hid#den@host/v1": "https://host/v1",
    "https://me:hid?den@host/v1": "https://host/v1",
    "http://127.0.0.1:8000/v1": "http://127.0.0.1:8000/v1",
}


@pytest.mark.parametrize("url", PUBLIC)
def test_a_public_url_holds_no_secret(url: str) -> None:
    assert public_url(url) == PUBLIC[url]
    assert public_url(None) is None


@given(st.text(max_size=400))
def test_one_line_is_one_printable_line(text: str) -> None:
    line = one_line(text + KEY, (KEY,), limit=300)
    assert line.isprintable()
    assert len(line) <= 300
    assert KEY not in line


@pytest.mark.parametrize(
    ("model", "name"),
    [("openai-api/org/model:q4", "org/model:q4"), ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"), ("plain", "plain")],
)
def test_the_server_is_asked_for_the_name_as_it_stands(model: str, name: str) -> None:
    with Talk(model) as talk:
        _, (call,) = talk.ask(ok)
    assert call.model == name
