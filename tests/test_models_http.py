"""What `openai-api/NAME` makes of HTTP as servers and gateways really write it: cut, packed, redirected, large.

Cases stand in `cases/network/answers.yaml`; the servers write raw bytes on loopback. Keys are in no message.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from agentworldbench.engine.retry import fatal_error
from agentworldbench.errors import ConfigError, CredentialsError, EndpointError
from agentworldbench.models import Connection, connections, create_model
from agentworldbench.models.base import one_line
from agentworldbench.models.openai_api import breaks_off, ways_to_write
from agentworldbench.models.refusals import told
from agentworldbench.models.streaming import lines_of
from agentworldbench.records import CallFailure, Completion
from tests.helpers.asking import KEY, LIMIT_S, TASKS, cases, make_request, set_key

MODEL = "openai-api/tiny"
COMPLETION = b'{"choices": [{"message": {"content": "total 2"}, "finish_reason": "stop"}]}'
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(monkeypatch)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Head of a request; its body is read too."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length: "):
            await reader.readexactly(int(line.removeprefix(b"content-length: ")))
    return head


def plain(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[str]:
    """Root address of a server that `serve` answers for, one call a connection."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def answering(*answers: bytes, heads: list[bytes] | None = None) -> Serve:
    """Answers the requests of a connection one after another, the last answer again and again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left: Iterator[bytes] = iter(answers)
        answer = b""
        while True:
            head = await read_request(reader)
            if heads is not None:
                heads.append(head)
            answer = next(left, answer)
            writer.write(answer)
            await writer.drain()

    return serve


async def generate(url: str, **given: Any) -> Completion | CallFailure:
    model = create_model(MODEL, Connection(base_url=url, **({"timeout": LIMIT_S} | given)), TASKS)
    try:
        return await asyncio.wait_for(model.generate(make_request()), LIMIT_S)
    finally:
        await model.close()


def wire(case: dict[str, Any]) -> bytes:
    lines = [line.replace(": 20000", ": " + "a" * 20000) for line in case["head"]]
    body = case.get("body", "").replace("COMPLETION", COMPLETION.decode())
    packed = gzip.compress(body.encode())
    sent = packed[: int(len(packed) * case["packed"])] if "packed" in case else body.encode()
    return "\r\n".join([*lines, "", ""]).encode() + sent


@pytest.mark.parametrize("case", cases("network/answers.yaml"))
def test_what_comes_over_the_wire(case: dict[str, Any]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(wire(case))
        await writer.drain()
        if "then" in case:
            await read_request(reader)
            writer.write(plain(case["then"].replace("COMPLETION", COMPLETION.decode()).encode()))
            await writer.drain()
        if case.get("end") == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async def run() -> Completion | CallFailure:
        async with serving(serve) as url:
            return await generate(url)

    outcome = asyncio.run(run())
    assert KEY not in repr(outcome)
    if "text" in case:
        assert isinstance(outcome, Completion), outcome
        assert outcome.text == case["text"]
        return
    assert isinstance(outcome, CallFailure), outcome
    assert (outcome.failure.kind, outcome.failure.status) == (case["kind"], case.get("status"))
    assert (outcome.retry_after, outcome.cost_usd) == (case.get("wait"), case.get("cost"))
    assert case.get("says", "") in outcome.failure.message


@pytest.mark.parametrize(
    "text", ['{"a": [1, -2.5e3, null], "b": "ä\u2028"}', '[{"\\u00e4\\n": true}, "\\ud83d\\ude00"]']
)
def test_every_beginning_of_a_text_breaks_off_and_nothing_else(text: str) -> None:
    whole = text.encode()
    assert all(breaks_off(whole[:length]) for length in range(len(whole)))
    assert not breaks_off(whole)
    assert not any(map(breaks_off, (b"<html>", whole + b"]", b"{oops", b'{"a" 1')))


# --- redirects and keys ------------------------------------------------------------------------


def test_a_key_refused_elsewhere_is_explained_by_the_redirect() -> None:
    async def run() -> CallFailure | Completion:
        async with serving(answering(plain(b"", "401 Unauthorized"))) as other:
            where = f"Location: {other}/chat/completions"
            async with serving(answering(plain(b"", "307 Moved", where))) as url:
                model = create_model(MODEL, Connection(base_url=url), TASKS)
                with pytest.raises(CredentialsError, match=f"{url} redirects to {other}"):
                    await model.check()
                await model.close()
                return await generate(url)

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "authentication"
    assert "where no key is sent: give that as --base-url" in outcome.failure.message


def test_a_moved_address_stops_the_run_with_the_new_one_alone() -> None:
    async def run() -> tuple[str, str]:
        moved = plain(b"", "301 Moved Permanently", "Location: /api/v1/chat/completions")
        async with serving(answering(moved, plain(b"", "405 Method Not Allowed"))) as url:
            model = create_model(MODEL, Connection(base_url=url, timeout=LIMIT_S), TASKS)
            try:
                outcome = await asyncio.wait_for(model.generate(make_request()), LIMIT_S)
            finally:
                await model.close()
            assert isinstance(outcome, CallFailure)
            return url, str(fatal_error(outcome.failure, model))

    url, text = asyncio.run(run())
    assert text.endswith(f"give the new one as --base-url: {url.replace('/v1', '/api/v1')}")


def test_a_key_of_the_query_is_not_shown_as_addresses_write_it() -> None:
    hidden = "hid/den=0123+4 5"
    asked = str(URL("/v1?").update_query({"key": hidden})).partition("?")[2]

    async def run() -> tuple[str, str]:
        async with serving(answering(plain(b"", "307 Moved", f"Location: /v1/again?{asked}"))) as url:
            there = f"{url}?{asked}"
            model = create_model(MODEL, Connection(base_url=there), TASKS)
            with pytest.raises(EndpointError) as caught:
                await model.check()
            await model.close()
            return str(caught.value), repr(await generate(there))

    for text in asyncio.run(run()):
        assert "key=***" in text
        assert not any(way in text for way in (hidden, asked.partition("=")[2]))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=30))
def testways_to_write_a_value_are_those_of_addresses(value: str) -> None:
    written = str(URL("/v1").update_query({"key": value})).partition("key=")[2]
    assert {value, written} <= ways_to_write(value)


def test_a_query_is_sent_as_it_was_given() -> None:
    heads: list[bytes] = []

    async def run() -> Completion | CallFailure:
        async with serving(answering(plain(COMPLETION), heads=heads)) as url:
            return await generate(f"{url}?v=1&v=2&empty=&and=%26")

    assert isinstance(asyncio.run(run()), Completion)
    assert heads[0].startswith(b"POST /v1/chat/completions?v=1&v=2&empty=&and=%26 HTTP/1.1\r\n")


@pytest.mark.parametrize("url", ["http://", "http://127.0.0.1:99999/v1", "http://127.0.0.1:abc/v1"])
def test_an_address_without_a_host_or_port_is_no_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match="has no host, or no port that is one"):
        create_model(MODEL, Connection(base_url=url), TASKS)


# --- time and size -----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["tunnel", "tls"])
def test_silence_on_the_way_is_no_silence_of_the_model(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy, or a port without TLS, that takes the connection and says nothing."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.2)

    async def run() -> Completion | CallFailure:
        end = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await end.wait()

        async with serving(serve) as url:
            silent = url.removesuffix("/v1")
            if scheme == "tunnel":
                monkeypatch.setenv("HTTPS_PROXY", silent)
            try:
                return await generate(
                    "https://node7/v1" if scheme == "tunnel" else f"{silent.replace('http', 'https')}/v1"
                )
            finally:
                end.set()

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.kind, outcome.cost_usd) == ("unreachable", 0.0)


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 100_000)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 50_000)
            await writer.drain()

    async def run() -> Completion | CallFailure:
        async with serving(serve) as url:
            return await generate(url)

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "malformed_response"
    assert "the answer is larger than" in outcome.failure.message


def test_a_large_request_is_sent_in_pieces_and_again_where_it_was_redirected() -> None:
    """aiohttp warns of large bodies in one piece, and warnings are errors here."""
    text, heads = "x" * (connections.IN_PIECES + 1), list[bytes]()

    async def run() -> Completion | CallFailure:
        moved = plain(b"", "307 Moved", "Location: /v2/chat/completions")
        async with serving(answering(moved, plain(COMPLETION), heads=heads)) as url:
            model = create_model(MODEL, Connection(base_url=url, timeout=LIMIT_S), TASKS)
            try:
                return await asyncio.wait_for(model.generate(make_request(text=text)), LIMIT_S)
            finally:
                await model.close()

    assert isinstance(asyncio.run(run()), Completion)
    assert [head.split(b" ")[1] for head in heads] == [b"/v1/chat/completions", b"/v2/chat/completions"]
    assert all(b"Content-Length: 10" in head for head in heads)


def test_long_lines_and_pages_cost_no_more_than_their_length() -> None:
    """Twenty times 100 KB in one line, and a page of 20 MB: with work that grows by the square this takes minutes."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(2000):
            yield b"x" * 10_000
        yield b"\n"

    async def longest() -> int:
        return max([len(line) async for line in lines_of(chunks())])

    before = time.process_time()
    assert asyncio.run(longest()) == 20_000_000
    assert one_line(told(502, "<html>" + "x" * 20_000_000)).startswith("<html>x")
    assert time.process_time() - before < 2.0
