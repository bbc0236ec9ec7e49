"""Requests of `openai-api/NAME` go over connections of our own: nothing of what SDKs do is missing.

Headers, redirects, packed replies and the bytes of the body, on loopback servers.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from agentworldbench.engine.fitting import Written
from agentworldbench.models import Connection, create_model
from agentworldbench.records import CallFailure, Completion, Request, Sampling
from agentworldbench.version import __version__
from tests.helpers.asking import KEY, LIMIT_S, TASKS, make_request, set_key
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer

MODEL = "openai-api/tiny"
ODD = '  \n\x1b[31mé\u2028\U0001f600<think>\x00"\\ '


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch)
        yield


def ok(call: ChatCall) -> Reply:
    return Reply(content="total 2")


def asked(url: str, request: Request | None = None) -> Completion | CallFailure:
    async def run() -> Completion | CallFailure:
        model = create_model(MODEL, Connection(base_url=url, timeout=LIMIT_S), TASKS)
        try:
            return await asyncio.wait_for(model.generate(request or make_request()), LIMIT_S)
        finally:
            await model.close()

    return asyncio.run(run())


def redirect(status: int, where: str) -> web.RouteDef:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": where})

    return web.post("/v1/chat/completions", handle)


@pytest.mark.parametrize("status", [307, 308])
def test_a_moved_address_gets_the_same_body(status: int) -> None:
    here = "/v2/chat/completions"
    with ScriptedServer(ok, chat_path=here, routes=[redirect(status, here)]) as server:
        outcome = asked(server.base_url)
    assert isinstance(outcome, Completion)
    (call,) = server.calls
    assert call.last_user == make_request().messages[-1].content
    assert call.headers["authorization"] == f"Bearer {KEY}"


def test_another_host_is_not_given_the_key() -> None:
    with ScriptedServer(ok) as other:
        where = f"{other.base_url}/chat/completions"
        with ScriptedServer(ok, chat_path="/none", routes=[redirect(307, where)]) as server:
            asked(server.base_url)
    (call,) = other.calls
    assert "authorization" not in call.headers


@pytest.mark.parametrize(
    ("headers", "raw"),
    [({}, b"{not json"), ({"Content-Encoding": "gzip"}, b"no gzip at all")],
    ids=["no JSON", "no gzip"],
)
def test_a_reply_that_cannot_be_read_is_a_failure(headers: dict[str, str], raw: bytes) -> None:
    with ScriptedServer(lambda call: Reply(headers=headers, raw_body=raw)) as server:
        outcome = asked(server.base_url)
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind in ("malformed_response", "network")
    assert outcome.cost_usd is None


def test_packed_replies_are_unpacked() -> None:
    plain = json.dumps({"choices": [{"message": {"content": "total 2"}, "finish_reason": "stop"}]})
    reply = Reply(headers={"Content-Encoding": "gzip"}, raw_body=gzip.compress(plain.encode()))
    with ScriptedServer(lambda call: reply) as server:
        outcome = asked(server.base_url)
    assert isinstance(outcome, Completion)
    assert outcome.text == "total 2"
    assert "gzip" in server.calls[0].headers["accept-encoding"]


def test_headers_say_who_asks_and_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Organisation and project come from the variables of OpenAI's own clients."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    with ScriptedServer(ok) as server:
        asked(server.base_url)
    (call,) = server.calls
    assert call.headers["user-agent"] == f"agentworldbench/{__version__}"
    assert call.headers["content-type"] == call.headers["accept"] == "application/json"
    assert (call.headers["openai-organization"], call.headers["openai-project"]) == ("org-1", "proj-1")


EXTRAS: dict[str, tuple[dict[str, Any], bool]] = {
    "none": ({}, True),
    "some": ({"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}, True),
    "messages of the user's own": ({"messages": [{"role": "user", "content": "mine"}]}, False),
    "a model of the user's own": ({"model": "mine"}, True),
}


@pytest.mark.parametrize("name", EXTRAS)
def test_messages_that_are_written_already_are_sent_as_they_are(name: str) -> None:
    extra, as_written = EXTRAS[name]
    plain = make_request(Sampling(temperature=0.6, max_tokens=64, extra=extra), text=ODD)
    written = Written.of(plain.messages)
    bodies: list[bytes] = []

    async def handle(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.json_response({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})

    route = web.post("/v1/chat/completions", handle)
    with ScriptedServer(ok, chat_path="/none", routes=[route]) as server:
        for request in (plain, written.into(plain)):
            assert isinstance(asked(server.base_url, request), Completion)
    assert json.loads(bodies[0]) == json.loads(bodies[1])
    assert (written.json_text in bodies[1]) is as_written
    assert json.loads(bodies[1])["model"] == extra.get("model", "tiny")
