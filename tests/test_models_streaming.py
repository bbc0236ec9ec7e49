"""Streamed replies, and connections that die in silence: what comes of each on real loopback sockets.

The streams are bytes as servers send them. A partial text is never an answer; tokens are counted; a
connection is probed by the kernel, so that a peer that is gone is noticed without any stream.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import ConfigError
from agentworldbench.models import Connection, create_model, streaming
from agentworldbench.models.connections import COUNT, EVERY, IDLE, key_mark, probed_socket
from agentworldbench.models.streaming import lines_of
from agentworldbench.records import CallFailure, Completion
from tests.helpers.asking import KEY, LIMIT_S, TASKS, cases, make_request, set_key

MODEL = "openai-api/tiny"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CHUNKED = HEAD.replace(b"Connection", b"Transfer-Encoding: chunked\r\nConnection") + b"fff\r\n"
"""Promises 4,095 bytes."""


def event(delta: dict[str, Any] | None = None, finish: str | None = None, **top: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return (
        b"data: " + json.dumps({"id": "r1", "model": "tiny-2", "choices": choices} | top).encode() + b"\n\n"
    )


DONE = b"data: [DONE]\n\n"
USAGE = event(
    usage={"prompt_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}
)
TEXT = event({"role": "assistant", "content": ""}) + event({"content": "tot"}) + event({"content": "al 2"})
STOP = event({}, "stop")


@asynccontextmanager
async def server(answer: bytes, hang: bool = False) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Sends `answer` to any request, then closes or keeps silent; yields its URL and the bodies it got."""
    release, bodies = asyncio.Event(), list[dict[str, Any]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if b"ontent-" in line and b"ength" in line
        )
        bodies.append(json.loads(await reader.readexactly(length)))
        writer.write(answer)
        await writer.drain()
        if hang:
            await release.wait()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1", bodies
    finally:
        release.set()
        listening.close()


def asked(
    answer: bytes, hang: bool = False, timeout: float = LIMIT_S, stream: bool = True
) -> tuple[Completion | CallFailure, list[dict[str, Any]]]:
    """What a model makes of a server's bytes."""

    async def run() -> tuple[Completion | CallFailure, list[dict[str, Any]]]:
        async with server(answer, hang) as (url, bodies):
            model = create_model(MODEL, Connection(base_url=url, timeout=timeout, stream=stream), TASKS)
            try:
                return await asyncio.wait_for(model.generate(make_request()), LIMIT_S), bodies
            finally:
                await model.close()

    return asyncio.run(run())


def test_a_stream_is_the_reply_it_would_have_been_in_one_piece() -> None:
    thought = event({"reasoning_content": "two "}) + event({"reasoning_content": "files"})
    outcome, (body,) = asked(HEAD + b": keep alive\n\n" + thought + TEXT + STOP + USAGE + DONE)
    assert isinstance(outcome, Completion)
    assert (outcome.text, outcome.reasoning, outcome.finish_reason) == ("total 2", "two files", "stop")
    usage = outcome.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (12, 5, 8)
    assert (outcome.model_served, outcome.response_id) == ("tiny-2", "r1")
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


def test_without_the_flag_nothing_is_streamed() -> None:
    plain = json.dumps({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(plain)}\r\n\r\n"
    for stream in (False, True):  # some servers do not stream whatever they are asked
        outcome, (body,) = asked(head.encode() + plain, stream=stream)
        assert isinstance(outcome, Completion)
        assert outcome.text == "ok"
        assert body.get("stream", False) is stream


UNENDING: dict[str, tuple[bytes, bool]] = {
    "closed": (HEAD + TEXT + STOP + USAGE, False),
    "kept open": (HEAD + TEXT + STOP + USAGE, True),
    "cut off": (CHUNKED + TEXT + STOP + USAGE, False),
    "closed in a further event": (HEAD + TEXT + STOP + USAGE + USAGE[:20], False),
}


@pytest.mark.parametrize("name", UNENDING)
def test_an_answer_that_has_its_finish_reason_is_whole_however_the_stream_ends(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "ENDING", 0.2)
    outcome, _ = asked(*UNENDING[name])
    assert isinstance(outcome, Completion), outcome
    assert (outcome.text, outcome.finish_reason, outcome.usage.completion_tokens) == ("total 2", "stop", 5)


ODD: dict[str, tuple[bytes, str]] = {
    "CRLF": ((TEXT + STOP + DONE).replace(b"\n", b"\r\n"), "total 2"),
    "CR": ((TEXT + STOP + DONE).replace(b"\n", b"\r"), "total 2"),
    "no blank after the colon": ((TEXT + STOP + DONE).replace(b"data: ", b"data:"), "total 2"),
    "a line separator of Unicode": (event({"content": "a#b"}).replace(b"#", "\u2028".encode()) + STOP, "a\u2028b"),
    "halves of a character": (event({"content": "\ud83d"}) + event({"content": "\ude00"}) + STOP, "\U0001f600"),
    "the whole message": (b'data: {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}\n\n', "ok"),
    "the whole message once more": (
        TEXT + b'data: {"choices": [{"message": {"content": "total 2"}, "finish_reason": "stop"}]}\n\n', "total 2"
    ),
    "another choice": (TEXT + b'data: {"choices": [{"index": 1, "delta": {"content": "no"}}]}\n\n' + STOP, "total 2"),
    "events of nothing": (b'data: [1]\n\ndata: {"choices": null}\n\n' + TEXT + STOP, "total 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_streams_are_read(name: str) -> None:
    answer, text = ODD[name]
    outcome, _ = asked(HEAD + answer)
    assert isinstance(outcome, Completion), outcome
    assert outcome.text == text


@given(st.binary(max_size=60), st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_bytes_arrive(tail: bytes, size: int) -> None:
    whole = "größe \u2028 \U0001f600\r\n".encode() + tail

    async def lines(step: int) -> list[str]:
        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(whole), step):
                yield whole[start : start + step]

        return [line async for line in lines_of(chunks()) if line]

    assert asyncio.run(lines(size)) == asyncio.run(lines(len(whole)))


COUNTED = event({"content": "tot"}, usage={"prompt_tokens": 12, "completion_tokens": 1})


@pytest.mark.parametrize("code", [429, 529, 500])
def test_what_a_stream_made_before_its_error_is_counted_and_may_have_been_paid(code: int) -> None:
    error = b'data: {"error": {"message": "no", "code": %d}}\n\n' % code
    outcome, _ = asked(HEAD + COUNTED + error)
    assert isinstance(outcome, CallFailure)
    assert (outcome.cost_usd, outcome.usage.prompt_tokens, outcome.usage.completion_tokens) == (None, 12, 1)
    nothing, _ = asked(HEAD + error)
    assert isinstance(nothing, CallFailure)
    assert nothing.cost_usd == (None if code == 500 else 0)


@pytest.mark.parametrize("case", cases("models/stream_errors.yaml"))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_a_server_says_in_a_stream_reaches_the_failure(
    case: dict[str, Any], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_key(monkeypatch)
    lines = "".join(f"{line}{end}{end if line.startswith('data') else ''}" for line in case["lines"])
    outcome, _ = asked(HEAD + TEXT + lines.encode())
    assert isinstance(outcome, CallFailure), outcome
    failure = outcome.failure
    assert (failure.kind, failure.status) == (case["kind"], case.get("status")), failure
    assert case["says"] in failure.message
    assert "\n" not in failure.message
    assert KEY not in outcome.model_dump_json()
    assert outcome.retry_after == case.get("wait")
    assert outcome.cost_usd is None, "some text was made"


BROKEN: dict[str, tuple[bytes, bool, str]] = {
    "closed after some text": (TEXT, False, "network"),
    "closed in an event": (TEXT + STOP[:25], False, "network"),
    "done without a finish reason": (TEXT + DONE, False, "network"),
    "an error in the middle": (TEXT + b'data: {"error": {"message": "server died"}}\n\n', False, "provider_error"),
    "overloaded in the middle": (
        TEXT + b'data: {"error": {"message": "Overloaded", "code": 529}}\n\n', False, "overloaded"
    ),
    "an error in llama.cpp's words": (
        b'error: {"code": 400, "message": "the request exceeds the available context size"}\n\n', False, "context_overflow"
    ),
    "no JSON": (TEXT + b"data: {oops\n\n", False, "malformed_response"),
    "no JSON, and then silence": (TEXT + b"data: {oops\n", True, "malformed_response"),
    "nothing at all": (b"", False, "network"),
    "silence after some text": (TEXT, True, "network"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_partial_text_is_never_an_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SILENCE", 0.2)
    answer, hang, kind = BROKEN[name]
    outcome, _ = asked(HEAD + answer, hang)
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == kind, outcome


def test_silence_before_the_first_text_is_thinking_until_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SILENCE", 0.05)
    outcome, _ = asked(HEAD + b": waiting\n\n", hang=True, timeout=0.5)
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "timeout"


@pytest.mark.parametrize("name", ["openai/gpt-5.4", "hf/tiny", "baseline/empty"])
def test_other_models_refuse_the_flag(name: str) -> None:
    with pytest.raises(ConfigError, match="streamed from openai-api/ servers only"):
        create_model(name, Connection(stream=True), TASKS)


# --- connections -----------------------------------------------------------------------------


def test_sockets_are_probed_while_a_server_thinks() -> None:
    with probed_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        found = [made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in options]
    assert found == [IDLE, EVERY, COUNT]
    assert IDLE < 60, "gateways forget a silent connection after a minute at the earliest"


def test_the_models_own_connections_are_such(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentworldbench.models import connections

    made: list[socket.socket] = []

    def noted(address: tuple[Any, ...]) -> socket.socket:
        made.append(probed_socket(address))
        return made[-1]

    monkeypatch.setattr(connections, "probed_socket", noted)
    for stream in (True, False):
        asked(HEAD + TEXT + STOP + DONE, stream=stream)
    assert len(made) == 2


def test_a_half_closed_connection_is_noticed_at_once() -> None:
    """The server ends its side without a byte: no timeout has to pass."""
    outcome, _ = asked(b"", timeout=LIMIT_S, stream=False)
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "network"


def test_a_server_that_cannot_be_connected_to_is_told_apart_from_a_slow_one() -> None:
    """A listener whose queue is full takes no connection: that is no answer that came late."""

    async def run() -> Completion | CallFailure:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            fillers = [socket.socket() for _ in range(8)]
            for one in fillers:
                one.setblocking(False)
                one.connect_ex(full.getsockname())
            url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
            model = create_model(MODEL, Connection(base_url=url, timeout=0.5), TASKS)
            try:
                return await asyncio.wait_for(model.generate(make_request()), LIMIT_S)
            finally:
                await model.close()
                for one in fillers:
                    one.close()

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind in ("unreachable", "timeout")


def test_limits_are_kept_by_key_and_no_key_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def endpoint(variables: tuple[str, ...]) -> str | None:
        connection = Connection(base_url="http://127.0.0.1:9/v1", key_variables=variables)
        return create_model(MODEL, connection, TASKS).endpoint

    monkeypatch.setenv("AWB_API_KEY", "first-key-12345")
    monkeypatch.setenv("AWB_JUDGE_API_KEY", "first-key-12345")
    same = endpoint(("AWB_API_KEY",))
    assert endpoint(("AWB_JUDGE_API_KEY",)) == same, "one key under two names is one key"
    assert same is not None
    assert "first-key" not in same
    monkeypatch.setenv("AWB_JUDGE_API_KEY", "second-key-12345")
    assert endpoint(("AWB_JUDGE_API_KEY",)) != same
    assert endpoint(("NO_SUCH_KEY",)) == f"http://127.0.0.1:9/v1 {key_mark(None)}"
