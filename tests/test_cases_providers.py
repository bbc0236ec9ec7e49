"""Public reports PR-…: what stands between a run and its server, and what a server refuses.

Proxies and certificates of the environment (a TLS server with a certificate authority of the test's own),
parameters refused one after another, a reply that never ends, texts that a server does not take. Single
replies and refusals stand in `cases/models/`; `test_public_reports.py` says which test holds which report.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.engine import retry
from agentworldbench.errors import AwbError, ConfigError, EndpointError
from agentworldbench.models import Connection, create_model
from agentworldbench.records import CallFailure, Completion
from agentworldbench.run import evaluate
from tests.helpers.asking import LIMIT_S, TASKS, make_request, set_key
from tests.helpers.awb_command import run_awb
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, refuse_parameter
from tests.helpers.whole_runs import good, kind_of_call, options
from tests.test_models_reaching import closed_port

pytestmark = pytest.mark.slow
MODEL = "openai-api/tiny"
REPLY = json.dumps({"choices": [{"message": {"content": "total 2"}, "finish_reason": "stop"}]}).encode()


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("data")
    return make_official_folder(
        folder, domains=("swe", "os"), trajectories=2, observation_chars=60, special=False
    )


def asked(url: str, timeout: float = LIMIT_S) -> Completion | CallFailure:
    """One request, after the check that precedes every run."""

    async def run() -> Completion | CallFailure:
        model = create_model(MODEL, Connection(base_url=url, timeout=timeout), TASKS)
        try:
            await asyncio.wait_for(model.check(), LIMIT_S)
            return await asyncio.wait_for(model.generate(make_request()), LIMIT_S)
        finally:
            await model.close()

    return asyncio.run(run())


# --- proxies (PR-16) ---------------------------------------------------------------------------

PROXIES: dict[str, tuple[dict[str, str], str]] = {
    # name: (the environment; DEAD is a proxy that is not there, PORT the server's), what is said (nothing: reached)
    "none": ({}, ""),
    "for https alone": ({"HTTPS_PROXY": "DEAD"}, ""),
    "an exception": ({"HTTP_PROXY": "DEAD", "NO_PROXY": "localhost,127.0.0.1"}, ""),
    "an exception in small letters": ({"HTTP_PROXY": "DEAD", "no_proxy": "127.0.0.1"}, ""),
    "an exception with blanks": ({"HTTP_PROXY": "DEAD", "NO_PROXY": " localhost , 127.0.0.1 "}, ""),
    "an exception with a port": ({"HTTP_PROXY": "DEAD", "NO_PROXY": "127.0.0.1:PORT"}, ""),
    "a range of exceptions": ({"HTTP_PROXY": "DEAD", "NO_PROXY": "10.0.0.0/8,127.0.0.0/8"}, ""),
    "exceptions for all": ({"HTTP_PROXY": "DEAD", "NO_PROXY": "*"}, ""),
    "an empty proxy": ({"HTTP_PROXY": ""}, ""),
    "a proxy that is not there": ({"HTTP_PROXY": "DEAD"}, "HTTP_PROXY is set: is it meant for this address"),
    "in small letters": ({"http_proxy": "DEAD"}, "HTTP_PROXY is set"),
    "for everything": ({"ALL_PROXY": "DEAD"}, "ALL_PROXY is set"),
    "an exception for another": ({"HTTP_PROXY": "DEAD", "NO_PROXY": "10.0.0.0/8"}, "HTTP_PROXY is set"),
    "with a password": ({"HTTP_PROXY": "http://me:hidden-0123@127.0.0.1:9"}, "HTTP_PROXY is set"),
    "of another kind": ({"HTTP_PROXY": "gopher://127.0.0.1:9"}, "^HTTP_PROXY=gopher://127.0.0.1:9: no http or https address of a proxy"),
}  # fmt: skip


def set_environment(patch: pytest.MonkeyPatch, given: dict[str, str]) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        patch.delenv(name, raising=False)
        patch.delenv(name.lower(), raising=False)
    for name, value in given.items():
        patch.setenv(name, value)


@pytest.mark.parametrize("name", PROXIES)
def test_proxies_of_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, said = PROXIES[name]
    with ScriptedServer(good) as server:
        words = {
            "DEAD": f"http://127.0.0.1:{closed_port()}",
            "PORT": server.base_url.split(":")[2].split("/")[0],
        }
        for old, new in words.items():
            given = {variable: value.replace(old, new) for variable, value in given.items()}
        set_environment(monkeypatch, given)
        if not said:
            assert isinstance(asked(server.base_url), Completion)
            return
        with pytest.raises(AwbError, match=said) as caught:
            asked(server.base_url)
        assert (server.calls, server.model_requests) == ((), 0)
    assert isinstance(caught.value, ConfigError if "no http or https" in said else EndpointError)
    assert "hidden-0123" not in str(caught.value)


# --- certificates ------------------------------------------------------------------------------


def openssl(folder: Path, *words: str) -> None:
    program = shutil.which("openssl")
    assert program is not None, "the openssl command is needed"
    subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca.pem`, an authority of our own, and `server.pem`/`server.key` for 127.0.0.1, signed by it."""
    folder = tmp_path_factory.mktemp("authority")
    new = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(folder, *new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Own CA")
    openssl(folder, *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-days", "2")
    openssl(folder, "x509", "-req", "-in", "server.csr", "-out", "server.pem", *signed)
    return folder


@contextmanager
def tls_server(authority: Path) -> Iterator[str]:
    """Answers every request with one completion, over TLS, from a thread of its own."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    ready, urls = threading.Event(), list[str]()
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(REPLY)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + REPLY)
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        urls.append(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        ready.set()
        await ending.wait()
        server.close()

    def work(run: Callable[[], Coroutine[Any, Any, None]] = main) -> None:
        loop.set_exception_handler(lambda loop, told: None)  # clients that do not trust us break off
        loop.run_until_complete(run())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=work, name="tls-server")
    thread.start()
    assert ready.wait(LIMIT_S)
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(LIMIT_S)


BUNDLES = {
    # name: (the environment, AUTHORITY is the folder; what is said, nothing: trusted)
    "none": ({}, "CERTIFICATE_VERIFY_FAILED.*SSL_CERT_FILE can name a file with the certificates to trust"),
    "SSL_CERT_FILE": ({"SSL_CERT_FILE": "AUTHORITY/ca.pem"}, ""),
    "REQUESTS_CA_BUNDLE": ({"REQUESTS_CA_BUNDLE": "AUTHORITY/ca.pem"}, ""),
    "CURL_CA_BUNDLE": ({"CURL_CA_BUNDLE": "AUTHORITY/ca.pem"}, ""),
    "the first counts": ({"SSL_CERT_FILE": "AUTHORITY/ca.pem", "CURL_CA_BUNDLE": "/nowhere"}, ""),
    "no such file": ({"SSL_CERT_FILE": "AUTHORITY/no.pem"}, "^SSL_CERT_FILE: no usable file of certificates"),
    "no certificates": (
        {"SSL_CERT_FILE": "AUTHORITY/names"},
        "^SSL_CERT_FILE: no usable file of certificates",
    ),
}


@pytest.mark.parametrize("name", BUNDLES)
def test_certificates_of_the_environment(name: str, authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, said = BUNDLES[name]
    set_environment(monkeypatch, {})
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in given.items():
        monkeypatch.setenv(variable, value.replace("AUTHORITY", str(authority)))
    with tls_server(authority) as url:
        if not said:
            assert isinstance(asked(url), Completion)
            return
        with pytest.raises(AwbError, match=said):
            asked(url)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize("scheme", ["openai-api", "openai"])
def test_both_libraries_trust_what_the_environment_names(
    scheme: str, variable: str, authority: Path, data: Manifest, tmp_path: Path
) -> None:
    nothing = dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), "")
    env = nothing | {variable: str(authority / "ca.pem"), "OPENAI_API_KEY": "sk-for-tests-0123"}
    with tls_server(authority) as url:
        words = (
            "--model",
            f"{scheme}/m",
            "--base-url",
            url,
            "--data",
            data.folder,
            "--limit",
            "1",
            "-o",
            "run",
        )
        done = run_awb("run", *words, "--max-retries", "0", cwd=tmp_path, env=env)
    assert done.code == 0, done.err
    assert "predictions 2/2 ·" in done.err


# --- refusals ----------------------------------------------------------------------------------


def test_two_headers_that_contradict_each_other_are_none() -> None:
    """PR-02: the HTTP library joins them; neither is a number then, and our own wait applies."""
    head = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nRetry-After: 40\r\nConnection: close\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + b"Content-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async def run() -> Completion | CallFailure:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = create_model(MODEL, Connection(base_url=url, timeout=LIMIT_S), TASKS)
        try:
            return await model.generate(make_request())
        finally:
            await model.close()
            server.close()

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "rate_limit"
    assert outcome.retry_after is None or 0 <= outcome.retry_after <= 600


@pytest.mark.parametrize("scheme", ["openai-api", "openai"])
def test_parameters_refused_one_after_another_are_learned_once(
    scheme: str, data: Manifest, tmp_path: Path
) -> None:
    """PR-06: each is left out or renamed once, for all samples, and the budget keeps its value."""
    inner = refuse_parameter("max_tokens", "Use 'max_completion_tokens' instead.", good)
    with ScriptedServer(refuse_parameter("temperature", "Only the default is supported.", inner)) as server:
        more = {"model": f"{scheme}/world", "no_judge": True, "max_tokens": 777, "max_connections": 1}
        run = evaluate(**options(server, tmp_path / "run", data.folder) | more)
    assert len(server.calls) == len(data.rows) + 2
    for call in server.calls[2:]:
        assert call.body["max_completion_tokens"] == 777
        assert not {"max_tokens", "temperature"} & call.body.keys()
    assert {record.max_tokens for record in run.predictions()} == {777}
    assert all(record.failure is None for record in run.predictions())


def test_a_reply_that_never_ends_is_one_failed_sample(
    data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PR-11, PR-12: each attempt has an end, timeouts are few, and the others go on."""
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.001)
    stalled = kind_of_call

    def script(call: ChatCall) -> Reply:
        return Reply(delay_s=600.0) if stalled(call) == chosen else good(call)

    with ScriptedServer(good) as server:
        evaluate(**options(server, tmp_path / "all", data.folder, no_judge=True))
        kinds = [stalled(call) for call in server.calls]
        chosen = min(set(kinds), key=kinds.count)
        server.script = script
        since = len(server.calls)
        opts = options(server, tmp_path / "run", data.folder, no_judge=True)
        run = evaluate(**opts, timeout=1.0, max_connections=32)
        count = kinds.count(chosen)
        assert len(server.calls) - since == len(data.rows) + count
    failed = [record for record in run.predictions() if record.failure]
    assert len(failed) == count < len(data.rows)
    for record in failed:
        assert record.failure is not None
        assert record.failure.kind == "timeout"
        assert [attempt.outcome for attempt in record.attempts] == ["timeout", "timeout"]
        assert all(attempt.seconds >= 1.0 for attempt in record.attempts)


@pytest.mark.parametrize("scheme", ["openai-api", "openai"])
def test_a_server_that_takes_no_empty_text_fails_that_sample_alone(scheme: str, tmp_path: Path) -> None:
    """PR-22: nothing is put in the place of an empty observation; the refusal is the sample's failure."""
    turns = ["### Turn 1\n\nls", "### Turn 2\n\nls"]
    row: dict[str, Any] = {
        "task": "terminal",
        "prompt": turns,
        "current_prompt": turns[-1],
        "system_str": "A shell.",
    }
    row |= {"turn_idx": 2, "total_turns": 2}
    histories = ["total 2", "", "\n", "total 3"]
    lines = [json.dumps(row | {"id": n, "response": [text, "end"]}) for n, text in enumerate(histories)]
    (tmp_path / "terminal_test.jsonl").write_text("\n".join(lines) + "\n")

    def script(call: ChatCall) -> Reply:
        if all(str(message["content"]).strip() for message in call.messages):
            return good(call)
        error = {
            "message": "messages: text content blocks must be non-empty",
            "type": "invalid_request_error",
        }
        return Reply(status=400, error=error)

    with ScriptedServer(script) as server:
        opts = {"no_judge": True, "model": f"{scheme}/world", "max_connections": 1}
        run = evaluate(**options(server, tmp_path / "run", tmp_path) | opts)
    kinds = {one.sample_id: one.failure and one.failure.kind for one in run.predictions()}
    assert kinds == {
        "terminal/0/2": None, "terminal/1/2": "bad_request", "terminal/2/2": "bad_request", "terminal/3/2": None,
    }  # fmt: skip
