"""The way to the network: which proxy the environment means, and how connections use it and its login.

Cases stand in `cases/network/proxies.yaml`; the proxies are loopback servers that write down what they are asked.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.models import Connection, create_model
from agentworldbench.network import proxy_for
from agentworldbench.records import CallFailure, Completion
from tests.helpers.asking import LIMIT_S, TASKS, cases, make_request, set_key

LOGIN = b64encode(b"me:hid:den 0123").decode()
REPLY = b'{"choices": [{"message": {"content": "total 2"}, "finish_reason": "stop"}]}'


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(monkeypatch)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize("case", cases("network/proxies.yaml"))
def test_which_proxy_the_environment_means(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, value)
    assert proxy_for(case["url"]) == (tuple(case["through"]) if "through" in case else None)


def through_a_proxy(
    url: str, variable: str, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> tuple[Completion | CallFailure, list[str]]:
    """What becomes of one request when the environment names a proxy with a login, and what the proxy was asked."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def run() -> Completion | CallFailure:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv(variable, f"http://me:hid%3Aden%200123@127.0.0.1:{port}")
        model = create_model("openai-api/tiny", Connection(base_url=url, timeout=LIMIT_S), TASKS)
        try:
            return await asyncio.wait_for(model.generate(make_request()), LIMIT_S)
        finally:
            await model.close()
            server.close()

    return asyncio.run(run()), heads


def test_a_proxy_gets_the_whole_address_and_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(REPLY),
        REPLY,
    )
    outcome, heads = through_a_proxy("http://node7:8000/v1", "HTTP_PROXY", answer, monkeypatch)
    assert isinstance(outcome, Completion)
    assert outcome.text == "total 2"
    (head,) = heads
    assert head.startswith("POST http://node7:8000/v1/chat/completions HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {LOGIN}\r\n" in head


def test_a_tunnel_shows_the_proxy_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    outcome, heads = through_a_proxy("https://node7/v1", "HTTPS_PROXY", answer, monkeypatch)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.kind, outcome.cost_usd) == ("unreachable", 0.0), "nothing reached the server"
    assert "HTTPS_PROXY is set" in outcome.failure.message
    assert "Proxy Authentication Required" in outcome.failure.message
    assert "hid" not in outcome.failure.message
    (head,) = heads
    assert head.startswith("CONNECT node7:443 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {LOGIN}\r\n" in head
    assert "sk-" not in head


@pytest.mark.parametrize("proxy", ["socks5://me:hidden-0123@127.0.0.1:9", "gopher://127.0.0.1:9", "http://"])
def test_a_proxy_that_cannot_be_used_is_named(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    model = create_model("openai-api/tiny", Connection(base_url="http://node7/v1"), TASKS)
    with pytest.raises(ConfigError, match=r"^ALL_PROXY=.*: no http or https address of a proxy") as caught:
        asyncio.run(model.check())
    assert "hidden-0123" not in str(caught.value)
