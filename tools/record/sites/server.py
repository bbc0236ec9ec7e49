"""A tiny web server for one of the sites under `sites/`, with state that lives as long as the server.

In: a `Site` (requests to responses). Out: its pages on a free loopback port, which the browser maps to
the site's public-looking host, so that no port and no loopback address reaches the data. A site
object is made anew for every trajectory; visitors are told apart by a cookie with a running number.
"""

from __future__ import annotations

import mimetypes
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tools.record import common

SITES = common.HERE / "sites"
COOKIE = re.compile(r"\bvisitor=(v\d+)")


@dataclass(frozen=True)
class Request:
    """What a site needs to know of a request; repeated fields keep their last value."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    visitor: str
    cookies: str = ""

    @property
    def target(self) -> str:
        """Path and query as one address."""
        query = "&".join(f"{quote(key)}={quote(value)}" for key, value in self.query.items())
        return f"{self.path}?{query}" if query else self.path


@dataclass(frozen=True)
class Response:
    """A page, a file or a redirect."""

    body: str = ""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


class Site(Protocol):
    """One web site with its state."""

    host: str

    def answer(self, request: Request) -> Response: ...


def redirect(target: str) -> Response:
    """See other: the page that follows a form sent with POST."""
    return Response(status=303, headers={"Location": target})


def data(name: str) -> Any:
    """The records of site `name`, read anew so that no trajectory sees changes of another."""
    return yaml.safe_load((SITES / name / "data.yaml").read_text(encoding="utf-8"))


def templates(name: str) -> Environment:
    """The page templates of site `name`."""
    return Environment(
        loader=FileSystemLoader(SITES / name),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def static_file(name: str, path: str) -> Response | None:
    """A style sheet, script or whole page of site `name`; None when there is no such file."""
    file = SITES / name / path.lstrip("/")
    if not re.fullmatch(r"/[\w-]+\.(?:css|js|html)", path) or not file.is_file():
        return None
    kind = mimetypes.guess_type(file.name)[0] or "text/plain"
    return Response(file.read_text(encoding="utf-8"), kind=f"{kind}; charset=utf-8")


@contextmanager
def serving(site: Site) -> Iterator[int]:
    """Serve `site` on a free loopback port; the port number is handed out."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()
    visitors: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond({})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self._respond(dict(parse_qsl(self.rfile.read(length).decode(), keep_blank_values=True)))

        def _respond(self, form: dict[str, str]) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            cookies = self.headers.get("Cookie") or ""
            known = COOKIE.search(cookies)
            with lock:
                if not known:
                    visitors.append(f"v{len(visitors) + 1}")
                visitor = known.group(1) if known else visitors[-1]
                request = Request(str(self.command), unquote(parts.path), query, form, visitor, cookies)
                response = site.answer(request)
            body = response.body.encode()
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            if not known:
                self.send_header("Set-Cookie", f"visitor={visitor}; Path=/")
            self.send_header("Content-Type", response.kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the recorder's own output stays readable."""

    return Handler
