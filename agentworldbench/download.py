"""One file over HTTP to one place on disk: resumed where it broke off, and put there only if its hash is right.

In: a URL, the target, the expected SHA-256. Out: the target, or an exception. What has arrived lies in
`TARGET.part`; another attempt, or another day's, asks for the rest by `Range` and starts over where the
server does not go along. The part becomes the target in one step after its hash was checked, so no
file under the target's name is ever half or wrong. Faults that may pass are asked again; no connection,
a page of HTML in place of the file and a redirect that leaves HTTP are said at once. Proxies and CA
bundles of the environment count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.network import proxy_for, trusted_certificates
from agentworldbench.texts import sha256_file
from agentworldbench.version import __version__

if TYPE_CHECKING:
    import httpx

ATTEMPTS: Final = 4
SECONDS: Final = 20.0
"""Longest wait for the next bytes of an answer."""
CONNECT_SECONDS: Final = 8.0
"""Longest wait for a connection: where packets are dropped, nobody says that there is no way."""
BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may be others at the next attempt."""
LONGEST_PAUSE: Final = 60.0
"""Most that a server's Retry-After counts, in seconds."""
_LOGIN: Final = {
    407: "the proxy asks for a login: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT carries one",
    511: "the network asks for a login: open the address in a browser and log in there",
}
PAGE: Final = (
    "a web page came in place of the file: a login page or a proxy answered; open the address in a browser and log "
    "in there, or set HTTPS_PROXY and NO_PROXY as your network wants them, then run the same command again"
)
"""What a page of HTML means, and what to do."""


class _Again(Exception):
    """An attempt that another one may better, after `seconds`."""

    def __init__(self, reason: str, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


@contextmanager
def http_client() -> Iterator[httpx.Client]:
    """A client that goes through the proxies and trusts the certificates that the environment names.

    Raises ConfigError when these variables cannot be used.
    """
    import httpx

    agent = {"User-Agent": f"agentworldbench/{__version__}", "Accept-Encoding": "identity"}
    try:
        client = httpx.Client(
            verify=trusted_certificates(),
            headers=agent,
            timeout=httpx.Timeout(SECONDS, connect=CONNECT_SECONDS),
            follow_redirects=True,
            event_hooks={"response": [_check_redirect]},
        )
    except (ValueError, ImportError, OSError) as problem:
        raise ConfigError(f"the proxy or certificate settings of the environment: {problem}") from problem
    with client:
        yield client


def _check_redirect(response: httpx.Response) -> None:
    if response.has_redirect_location:
        check_target(str(response.url), response.headers["Location"])


def check_target(url: str, location: str) -> None:
    """Refuse a redirect that is no HTTP address. Raises ConnectionError with one line."""
    try:
        target = urljoin(url, location)
    except ValueError:
        target = ""
    if not is_http(target):
        raise ConnectionError(
            f"{shown(url)}: redirected to {shown(location)!r}, which is no http or https address"
        )


def is_http(url: str) -> bool:
    """Whether this is an address that can be asked: http or https, with a host."""
    try:
        place = urlsplit(url)
        return place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:  # a port or a host that is none
        return False


def download(
    client: httpx.Client,
    url: str,
    target: Path,
    size: int,
    sha256: str,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Fetch `url`, a file of `size` bytes, to `target`.

    `wait` takes the seconds between two attempts. Raises DataError when the hash is wrong (nothing is
    kept then), ConnectionError with one line when the file cannot be had, OSError when the disk refuses.
    """
    part = target.with_name(f"{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    pieced = part.exists()
    found = sha256_file(part) if pieced else ""
    if found != sha256:
        pieced |= _receive(client, url, part, size, wait) > 1
        found = sha256_file(part)
    if found != sha256 and pieced:  # the pieces may be of two files: once more, from the beginning
        part.unlink()
        _receive(client, url, part, size, wait)
        found = sha256_file(part)
    if found != sha256:
        length = part.stat().st_size
        part.unlink()
        much = f"more than {size}" if length > size else str(length)
        raise DataError(
            f"{shown(url)}: SHA-256 is {found} ({much} bytes), expected {sha256} ({size} bytes); nothing was kept: "
            "run the same command again, and if that fails too, do not use this mirror or proxy"
        )
    part.replace(target)


def shown(url: str) -> str:
    """The URL without user name and password."""
    scheme, found, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{found}{host.rpartition('@')[2]}{slash}{path}"


def unreached(url: str, problem: BaseException) -> str:
    """Why there is no connection for this address, and by which proxy it was tried."""
    reason = first_line(problem)
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        reason += "; SSL_CERT_FILE names the certificates that your network needs"
    through = proxy_for(url)
    return f"{reason}, by the proxy {shown(through[0])} of the environment" if through else reason


def first_line(problem: BaseException) -> str:
    """What an exception says, in one line."""
    return (str(problem).strip().splitlines() or [""])[0] or type(problem).__name__


def pause(attempt: int, headers: Mapping[str, str] | None = None) -> float:
    """Seconds to wait after a failed attempt (the first is 1): as the server says, within reason."""
    asked = (headers or {}).get("Retry-After", "").strip()
    return max(float(attempt), min(float(asked), LONGEST_PAUSE) if asked.isdecimal() else 0.0)


def is_page(data: bytes, content_type: str = "") -> bool:
    """Whether these are the first bytes of a page of HTML: it says so, or is called so and begins like one."""
    start = data[:512].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    called = content_type.lower().startswith("text/html")
    return start.startswith(b"<" if called else (b"<!doctype html", b"<html"))


def _receive(client: httpx.Client, url: str, part: Path, size: int, wait: Callable[[float], None]) -> int:
    """Append to `part` until the server says that this was all; the number of attempts that it took."""
    import httpx

    for attempt in range(1, ATTEMPTS + 1):
        seconds = 0.0
        try:
            _attempt(client, url, part, size)
            return attempt
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as problem:
            raise ConnectionError(f"{shown(url)}: {unreached(url, problem)}") from problem
        except httpx.UnsupportedProtocol as problem:
            raise ConnectionError(f"{shown(url)}: {first_line(problem)}") from problem
        except (httpx.TransportError, _Again) as problem:
            if attempt == ATTEMPTS:
                raise ConnectionError(f"{shown(url)}: {first_line(problem)}, {ATTEMPTS} times") from problem
            seconds = problem.seconds if isinstance(problem, _Again) else 0.0
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise ConnectionError(f"{shown(url)}: {first_line(problem)}") from problem
        wait(max(seconds, pause(attempt)))
    raise AssertionError("the last attempt returns or raises")


def _attempt(client: httpx.Client, url: str, part: Path, size: int) -> None:
    kept = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={kept}-"} if kept else {}
    with client.stream("GET", url, headers=headers) as response:
        _check_status(response, url)
        if response.status_code == 416:
            part.unlink(missing_ok=True)  # nothing stands behind what we have, and that is not the file
            raise _Again("the server has no such range")
        if response.status_code == 206 and not _continues(response, kept):
            part.unlink(missing_ok=True)
            raise _Again("the server sent another range than was asked for")
        blocks = response.iter_bytes()
        first = next(blocks, b"")
        if response.status_code == 200 and is_page(first, response.headers.get("Content-Type", "")):
            raise ConnectionError(f"{shown(str(response.url))}: {PAGE}")
        with part.open("ab" if response.status_code == 206 else "wb") as file:
            for block in chain((first,), blocks):
                file.write(block)
                if file.tell() > size:  # something else, perhaps without end
                    return


def _check_status(response: httpx.Response, url: str) -> None:
    """Refuse a status that brings no bytes of the file."""
    status = response.status_code
    if status in BUSY:
        raise _Again(f"HTTP {status}", pause(0, response.headers))
    if status in _LOGIN:
        raise ConnectionError(f"{shown(url)}: HTTP {status}, {_LOGIN[status]}")
    if status not in (200, 206, 416):
        raise ConnectionError(f"{shown(url)}: HTTP {status}")


def _continues(response: httpx.Response, kept: int) -> bool:
    return str(response.headers.get("Content-Range", "")).replace(" ", "").startswith(f"bytes{kept}-")
