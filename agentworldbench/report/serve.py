"""The server of `awb view`: answers GET and HEAD on loopback from a site that makes its pages when they are asked for.

In: a site, host and port. Out: HTTP. What a browser may be led to do by other pages is refused: names of hosts that are not
ours (DNS rebinding), other methods, being framed, being read or loaded from another origin. A path is a name that the site
looks up; no file is ever opened by it.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import socketserver
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, unquote

from agentworldbench.errors import AwbError, ConfigError
from agentworldbench.render.shell import SERVED
from agentworldbench.report.live_site import Answer

PORT: Final = 7870
"""The port that is tried first; the next ones where it is taken."""
TRIED: Final = 50
IDLE: Final = 30.0
"""Seconds after which a silent connection is closed."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{SERVED}; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}


class Site(Protocol):
    """What makes the answers."""

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """The page at a path without its first slash; None where there is none. Raises `AwbError`s."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address or name."""
    address = _number(host)
    return address.is_loopback if address else host.lower().rstrip(".") == "localhost"


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as one; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def names_us(name: str, host: str) -> bool:
    """Whether the header `Host` names a server that listens at `host`: loopback, the host it was started with, or, where that
    is open to others, an address or this machine's name. Another name was made to point here by somebody else."""
    text = name.strip().lower()
    asked = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
    if is_loopback(asked) or asked == host.lower():
        return True
    return not is_loopback(host) and (_number(asked) is not None or asked == socket.gethostname().lower())


class Server(socketserver.ThreadingTCPServer):
    """Bound and listening when it is made; `serve_forever` answers. Raises OSError where it cannot be bound."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, site: Site, host: str, port: int) -> None:
        self.site, self.host = site, host
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """The first page, as a browser on this machine asks for it."""
        number = _number(self.host)
        host = "127.0.0.1" if number and number.is_unspecified else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def open_server(site: Site, host: str, port: int | None) -> Server:
    """Listen at a port; None: at the first that is free from `PORT` on, 0: at any. Raises ConfigError where that cannot be."""
    last: OSError | None = None
    for number in range(PORT, PORT + TRIED) if port is None else (port,):
        try:
            return Server(site, host, number)
        except OSError as problem:
            last = problem
            if problem.errno != errno.EADDRINUSE:
                break
    assert last is not None, "at least one port was tried"
    if last.errno != errno.EADDRINUSE:
        raise ConfigError(f"--host {host}: cannot listen there ({last.strerror})") from last
    if port is None:
        raise ConfigError(
            f"ports {PORT} to {PORT + TRIED - 1} are all in use; name another with --port"
        ) from last
    raise ConfigError(f"--port {port}: in use by another program; without --port the next free one is taken") from last  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE

    def do_GET(self) -> None:
        """A page."""
        self._answer()

    def do_HEAD(self) -> None:
        """Its headers."""
        self._answer()

    def _answer(self) -> None:
        if not names_us(self.headers.get("Host", ""), self.server.host):
            return self._say(HTTPStatus.MISDIRECTED_REQUEST, "This server answers to localhost, and to the name given with --host.")  # fmt: skip
        target, _, query = self.path.partition("?")
        try:
            path = unquote(target, errors="strict")
            asked = dict(parse_qsl(query, errors="strict", max_num_fields=20))
        except ValueError:
            return self._say(HTTPStatus.BAD_REQUEST, "The address cannot be read.")
        if not path.startswith("/"):
            return self._say(HTTPStatus.BAD_REQUEST, "The address cannot be read.")
        try:
            answer = self.server.site.answer(path[1:], asked)
        except AwbError as problem:
            return self._say(HTTPStatus.SERVICE_UNAVAILABLE, str(problem))
        except BaseException:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, "An error of the harness; the terminal of awb view shows it.")  # fmt: skip
            raise
        if answer is None:
            return self._say(HTTPStatus.NOT_FOUND, "There is no such page; the first one is at /")
        status = HTTPStatus.OK if answer.place is None else HTTPStatus.FOUND
        return self._send(status, answer.kind, answer.body, answer.place)

    def _refuse(self) -> None:
        self.close_connection = True  # a body may follow, which is not read
        self._say(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD are answered.")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _say(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", (text + "\n").encode("utf-8", "replace"))

    def _send(self, status: HTTPStatus, kind: str, body: bytes, place: str | None = None) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS}
        headers |= {} if place is None else {"Location": place}
        headers |= {"Allow": "GET, HEAD"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        headers |= {"Connection": "close"} if self.close_connection else {}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses by itself: in our words' form, with our headers."""
        self.close_connection = True
        self._say(HTTPStatus(code), message or HTTPStatus(code).phrase)

    def version_string(self) -> str:
        """Name of the server, without versions."""
        return "awb"

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""
