"""An OpenAI-compatible chat server on loopback whose answers a test scripts.

In: a script (`ChatCall` -> `Reply`), optionally a log file and what `/v1/models` says. Out:
`base_url`, and for assertions `calls`, `max_in_flight`, `asked()`, `wait_for_calls()`. Every
request stands in the log, flushed, before it is answered, so a test that kills the client can
still count what was asked. As a process: `python -m tests.helpers.scripted_server --port 0
--log FILE --script world_and_judge --delay 0.05` prints the base URL on its first line and runs
until SIGTERM or SIGINT. More paths come as `routes`; an API in other words overrides `read_chat` and
`write_reply` (see `engine_servers`) and keeps the counting, the log and the scripts.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web
from aiohttp.typedefs import Middleware

from .app_thread import HOST, AppThread
from .scripted_calls import UNSET, ChatCall, Reply, Script, digest_of, reply_bytes
from .scripted_replies import (
    DIMENSIONS,
    by_role,
    echo_world,
    every_nth,
    fail_first,
    fixed_verdict,
    hash_scores,
    hash_verdict,
    late,
    rate_limited,
    refuse_parameter,
    together,
    verdict_text,
    world_and_judge,
)

__all__ = [
    "DIMENSIONS",
    "UNSET",
    "ChatCall",
    "Reply",
    "Script",
    "ScriptedServer",
    "asked_in_log",
    "by_role",
    "digest_of",
    "echo_world",
    "every_nth",
    "fail_first",
    "fixed_verdict",
    "hash_scores",
    "hash_verdict",
    "late",
    "rate_limited",
    "read_log",
    "refuse_parameter",
    "together",
    "verdict_text",
    "world_and_judge",
]

SCRIPTS: Final[Mapping[str, Script]] = {
    "echo_world": echo_world,
    "hash_verdict": hash_verdict,
    "world_and_judge": world_and_judge,
}
# aiohttp refuses bodies above 1 MiB by default; a prompt of this benchmark can be larger.
BODY_LIMIT: Final = 256 * 2**20


class ScriptedServer:
    """Serves `script` between `__enter__` and `__exit__`; all members may be used from any thread.

    An exception inside the script is answered with 500 and raised again by `__exit__`. A request
    that its client gave up counts as in flight until it would have been answered.
    """

    def __init__(
        self,
        script: Script = world_and_judge,
        *,
        log_path: Path | None = None,
        models: Sequence[Mapping[str, Any]] | int = ({"id": "scripted-model"},),
        port: int = 0,
        gather_limit_s: float = 10.0,
        chat_path: str = "/v1/chat/completions",
        routes: Iterable[web.RouteDef] = (),
        middlewares: Iterable[Middleware] = (),
    ) -> None:
        self.script = script
        self.models = models
        """Entries of `GET /v1/models`, or the status to refuse it with."""
        self.model_requests = 0
        self.errors: list[Exception] = []
        self.max_in_flight = 0
        self._gather_limit_s = gather_limit_s
        self._log_path = log_path
        self._log: FileIO | None = None
        self._changed = threading.Condition()
        self._calls: list[ChatCall] = []
        self._attempts: Counter[str] = Counter()
        self._in_flight = 0
        self._answered = 0
        self._gates: dict[int, asyncio.Event] = {}
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=middlewares)
        app.router.add_post(chat_path, self._chat)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_routes(routes)
        self._thread = AppThread(app, port)
        self._port = port

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.errors and error is None:
            raise RuntimeError("the server's script failed") from self.errors[0]

    def start(self) -> None:
        """Binds the port and serves; appends to the log file when it exists."""
        if self._log_path is not None:
            self._log = FileIO(self._log_path, "a")
        self._port = self._thread.start()

    def stop(self) -> None:
        """Closes all connections and ends the thread."""
        self._thread.stop()
        if self._log is not None:
            self._log.close()

    @property
    def base_url(self) -> str:
        """Ends in `/v1`."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """Without a path."""
        return f"http://{HOST}:{self._port}"

    @property
    def calls(self) -> tuple[ChatCall, ...]:
        """All chat requests in order of arrival."""
        with self._changed:
            return tuple(self._calls)

    @property
    def answered(self) -> int:
        """Chat requests that are done: sent, dropped, or lost because the client had gone."""
        with self._changed:
            return self._answered

    def asked(self) -> Counter[str]:
        """How often each list of messages was asked, by `ChatCall.key`."""
        with self._changed:
            return Counter(self._attempts)

    def wait_for_calls(self, count: int, timeout_s: float = 10.0) -> None:
        """Returns once `count` chat requests have arrived; `TimeoutError` after `timeout_s`."""
        self._wait(lambda: len(self._calls) >= count, f"{count} calls", timeout_s)

    def wait_for_answers(self, count: int, timeout_s: float = 10.0) -> None:
        """Returns once `count` chat requests are done; `TimeoutError` after `timeout_s`."""
        self._wait(lambda: self._answered >= count, f"{count} answers", timeout_s)

    def _wait(self, reached: Callable[[], bool], what: str, timeout_s: float) -> None:
        with self._changed:
            if not self._changed.wait_for(reached, timeout_s):
                seen = f"{len(self._calls)} calls, {self._answered} answers"
                raise TimeoutError(f"waited {timeout_s} s for {what}; there were {seen}")

    def read_chat(self, request: web.Request, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The request in OpenAI's words, for the script."""
        return body

    def write_reply(self, call: ChatCall, reply: Reply) -> bytes:
        """The HTTP body of a script's reply, in the words of this server's API."""
        return reply_bytes(call, reply)

    def model_list(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        """The body of `GET /v1/models`."""
        return {"object": "list", "data": entries}

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
        except ValueError as error:
            return _refusal(400, f"the body is not JSON: {error}")
        if not isinstance(body, dict) or body.get("stream"):
            return _refusal(400, "this server answers JSON objects, and does not stream")
        body = self.read_chat(request, body)
        call = self._arrive(body, {name.lower(): value for name, value in request.headers.items()})
        try:
            reply = await self._decide(call)
            if reply.delay_s:
                await asyncio.sleep(reply.delay_s)
            payload = self.write_reply(call, reply)
        finally:
            # Before the first byte leaves: a client that asks again at once must not count twice.
            self._leave()
        if reply.drop_connection:
            if request.transport is not None:
                request.transport.abort()
            self._done(call, reply, "dropped")
            return web.Response()
        headers = {"Content-Type": "application/json", **reply.headers}
        response = web.Response(status=reply.status, body=payload, headers=headers)
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            self._done(call, reply, "lost")
        else:
            self._done(call, reply, "sent")
        return response

    async def _decide(self, call: ChatCall) -> Reply:
        try:
            reply = self.script(call)
            if reply.together:
                await self._gathered(reply.together)
        except Exception as error:  # noqa: BLE001 - a failing script must fail the test, not hang it
            self.errors.append(error)
            return Reply(status=500, error={"message": f"script failed: {error!r}", "type": "script"})
        return reply

    async def _gathered(self, count: int) -> None:
        gate = self._gates.setdefault(count, asyncio.Event())
        if self.max_in_flight >= count:
            gate.set()
        try:
            await asyncio.wait_for(gate.wait(), self._gather_limit_s)
        except TimeoutError:
            raise TimeoutError(
                f"{count} requests were never in flight together, at most {self.max_in_flight}"
            ) from None

    def _arrive(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> ChatCall:
        key = digest_of(body.get("messages"))
        with self._changed:
            self._attempts[key] += 1
            call = ChatCall(body, headers, len(self._calls) + 1, self._attempts[key])
            self._calls.append(call)
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
            self._write(
                event="request",
                index=call.index,
                attempt=call.attempt,
                key=key,
                body_sha256=digest_of(body),
                model=call.model,
                is_judge=call.is_judge,
            )
            self._changed.notify_all()
        for count, gate in self._gates.items():
            if self._in_flight >= count:
                gate.set()
        return call

    def _leave(self) -> None:
        with self._changed:
            self._in_flight -= 1

    def _done(self, call: ChatCall, reply: Reply, outcome: str) -> None:
        with self._changed:
            self._answered += 1
            self._write(event="reply", index=call.index, key=call.key, status=reply.status, outcome=outcome)
            self._changed.notify_all()

    def _write(self, **record: object) -> None:
        if self._log is not None:
            self._log.write(json.dumps(record).encode() + b"\n")

    async def _list_models(self, request: web.Request) -> web.Response:
        self.model_requests += 1
        models = self.models
        if isinstance(models, int):
            return _refusal(models, f"scripted status {models}")
        entries = [{"object": "model", "created": 0, "owned_by": "test", **model} for model in models]
        return web.json_response(self.model_list(entries))


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log file, oldest first; a torn last line is left out."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def asked_in_log(path: Path) -> Counter[str]:
    """How often each list of messages was asked, by `ChatCall.key`, over all servers that wrote `path`."""
    return Counter(record["key"] for record in read_log(path) if record["event"] == "request")


def _refusal(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=status)


def _script_named(name: str) -> Script:
    if ":" not in name:
        return SCRIPTS[name]
    module, _, attribute = name.partition(":")
    script: Script = getattr(importlib.import_module(module), attribute)
    return script


def main(arguments: Sequence[str] | None = None) -> None:
    """The server as a process."""
    parser = argparse.ArgumentParser(prog="python -m tests.helpers.scripted_server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--script", default="world_and_judge", help=f"{', '.join(SCRIPTS)} or module:name")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--model", default="scripted-model", help="name in /v1/models")
    parser.add_argument("--max-model-len", type=int)
    options = parser.parse_args(arguments)
    script = _script_named(options.script)
    model = {"id": options.model}
    if options.max_model_len is not None:
        model["max_model_len"] = options.max_model_len
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = ScriptedServer(
        late(options.delay, script), log_path=options.log, models=[model], port=options.port
    )
    with server:
        print(server.base_url, flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
