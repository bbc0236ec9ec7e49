"""What the loopback stand-ins for file hosts share: sending files, going wrong by script, noting requests.

In: routes, set by the stand-in. Out: its address, `asked`, and a `Script` for each method: what goes
wrong, by the file's path. `send` answers one request for a file, with Range, as scripted.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from .app_thread import HOST, AppThread

LOGIN_PAGE: Final = b"<!DOCTYPE html>\n<html><body>Please log in to the network.</body></html>\n"
BLOCK: Final = 2**20
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """One request as it arrived; `path` is decoded, without query and without the server's prefix."""

    method: str
    path: str
    range: str | None
    host: str
    authorized: bool
    """Whether an Authorization header came along; its value is not kept."""


@dataclass
class Script:
    """What goes wrong, by the file's path; each entry of a list is used up by one request."""

    statuses: dict[str, list[int]] = field(default_factory=dict)
    """Answers in place of the file."""
    retry_after: str = ""
    """Goes with these statuses."""
    cuts: dict[str, list[int]] = field(default_factory=dict)
    """Bytes after which the connection is dropped."""
    reset: bool = False
    """The connection is reset there, not closed."""
    versions: dict[str, list[bytes]] = field(default_factory=dict)
    """What the file is for this one request."""
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Content type and body of a page that comes with status 200, whatever was asked."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Where to, by status 302."""
    strange: bool = False
    """Redirects come without the headers that the file's host would send, as from a login page."""
    stalls: dict[str, int] = field(default_factory=dict)
    """Bytes after which nothing more comes; `stalled` is set then."""
    stalled: threading.Event = field(default_factory=threading.Event)
    endless: set[str] = field(default_factory=set)
    """Files that go on until the client leaves."""
    ranges: bool = True
    shifted: bool = False
    """Ranges are answered with the bytes one further than asked for."""


class FileServer:
    """Runs between `__enter__` and `__exit__`; `script` may be changed meanwhile."""

    def __init__(self, prefix: str = "") -> None:
        self.script = Script()
        """For GET."""
        self.head = Script()
        """For HEAD."""
        self._prefix = prefix
        self._asked: list[Asked] = []
        self._lock = threading.Lock()
        self.app = web.Application(middlewares=[self._note])
        self._thread = AppThread(self.app)
        self._port = 0

    def __enter__(self) -> Self:
        self._port = self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.stop()

    @property
    def origin(self) -> str:
        """The server's address, without a path."""
        return f"http://{HOST}:{self._port}"

    @property
    def asked(self) -> list[Asked]:
        """All requests in order of arrival."""
        with self._lock:
            return list(self._asked)

    @web.middleware
    async def _note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        entry = Asked(
            request.method,
            request.path.removeprefix(self._prefix),
            request.headers.get("Range"),
            request.host,
            "Authorization" in request.headers,
        )
        with self._lock:
            self._asked.append(entry)
        return await self.answer(request, handler)

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """For stand-ins that answer some requests otherwise than by their route."""
        return await handler(request)

    async def send(
        self, request: web.Request, path: str, data: bytes, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """The file `path`, which holds `data`, or what the script has in its place."""
        script = self.head if request.method == "HEAD" else self.script
        if statuses := script.statuses.get(path):
            extra = {"Retry-After": script.retry_after} if script.retry_after else {}
            return web.Response(status=statuses.pop(0), headers=extra)
        if path in script.redirects:
            own = {} if script.strange else headers
            return web.Response(status=302, headers={**own, "Location": script.redirects[path]})
        if path in script.pages:
            kind, page = script.pages[path]
            return web.Response(body=page, headers={"Content-Type": kind} if kind else {})
        if versions := script.versions.get(path):
            data = versions.pop(0)
        response, body = _headed(request, script, data, headers)
        if path in script.endless:
            await response.prepare(request)
            with contextlib.suppress(ConnectionResetError):
                while True:
                    await response.write(data)
            return response
        response.content_length = len(body)
        await response.prepare(request)
        if request.method == "GET" and response.status != 416:
            return await _body(request, response, script, path, body)
        return response


def _headed(
    request: web.Request, script: Script, data: bytes, headers: Mapping[str, str]
) -> tuple[web.StreamResponse, bytes]:
    """The answer's head, and the bytes that belong to it."""
    if not script.ranges or "Range" not in request.headers:
        return web.StreamResponse(headers=headers), data
    try:
        wanted = request.http_range
    except ValueError:
        wanted = slice(len(data), None)
    start, stop, _ = wanted.indices(len(data))
    start += script.shifted
    if start >= stop:
        unmet = {**headers, "Content-Range": f"bytes */{len(data)}"}
        return web.StreamResponse(status=416, headers=unmet), b""
    met = {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
    return web.StreamResponse(status=206, headers=met), data[start:stop]


async def _body(
    request: web.Request, response: web.StreamResponse, script: Script, path: str, body: bytes
) -> web.StreamResponse:
    assert request.transport
    if path in script.stalls:
        await response.write(body[: script.stalls[path]])
        script.stalled.set()
        await asyncio.Event().wait()  # until the server is stopped
    if cuts := script.cuts.get(path):
        await response.write(body[: cuts.pop(0)])
        if script.reset:
            linger = struct.pack("ii", 1, 0)
            request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        request.transport.close()  # what was written still arrives, unless the connection is reset
        return response
    for start in range(0, len(body), BLOCK):
        await response.write(body[start : start + BLOCK])
    await response.write_eof()
    return response
