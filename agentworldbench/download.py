"""One file over HTTP to one place on disk: resumed where it broke off, and put there only if its hash is right.

In: a URL, the target, the expected SHA-256. Out: the target, or an exception. What has arrived lies in
`TARGET.part`; another attempt, or another day's, asks for the rest by `Range` and starts over where the
server does not go along. The part becomes the target in one step after its hash was checked, so no
file under the target's name is ever half or wrong. Proxies and CA bundles of the environment count.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.version import __version__

if TYPE_CHECKING:
    import httpx

ATTEMPTS: Final = 4
SECONDS: Final = 20.0
"""Longest wait for a connection, and for the next bytes of an answer."""
BUNDLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file of trusted certificates; the first one set counts."""
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class _Again(Exception):
    """An attempt that another one may better."""


@contextmanager
def http_client() -> Iterator[httpx.Client]:
    """A client that goes through the proxies and trusts the certificates that the environment names.

    Raises ConfigError when these variables cannot be used.
    """
    import httpx

    bundle = next(((name, value) for name in BUNDLES if (value := os.environ.get(name, "").strip())), None)
    try:
        verify = _trusting(bundle[1]) if bundle else True
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError(
            f"{bundle[0] if bundle else ''}: no usable file of certificates ({problem})"
        ) from problem
    agent = {"User-Agent": f"agentworldbench/{__version__}", "Accept-Encoding": "identity"}
    try:
        client = httpx.Client(verify=verify, headers=agent, timeout=SECONDS, follow_redirects=True)
    except (ValueError, ImportError, OSError) as problem:
        raise ConfigError(f"the proxy or certificate settings of the environment: {problem}") from problem
    with client:
        yield client


def _trusting(bundle: str) -> ssl.SSLContext:
    place = Path(bundle)
    if place.is_dir():
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)


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
    resumed = part.exists()
    found = _sha256(part) if resumed else ""
    if found != sha256:
        found = _receive(client, url, part, size, wait)
    if found != sha256 and resumed:  # what was kept may be of another file: once more, from its beginning
        part.unlink()
        found = _receive(client, url, part, size, wait)
    if found != sha256:
        length = part.stat().st_size
        part.unlink()
        much = f"more than {size}" if length > size else str(length)
        raise DataError(
            f"{shown(url)}: SHA-256 is {found} ({much} bytes), expected {sha256} ({size} bytes); nothing was kept"
        )
    part.replace(target)


def shown(url: str) -> str:
    """The URL without user name and password."""
    scheme, found, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{found}{host.rpartition('@')[2]}{slash}{path}"


def _receive(client: httpx.Client, url: str, part: Path, size: int, wait: Callable[[float], None]) -> str:
    """Append to `part` until the server says that this was all; its SHA-256."""
    import httpx

    for attempt in range(1, ATTEMPTS + 1):
        try:
            _attempt(client, url, part, size)
            break
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as problem:
            raise ConnectionError(f"{shown(url)}: {_reason(problem)}") from problem
        except (httpx.TransportError, _Again) as problem:
            if attempt == ATTEMPTS:
                raise ConnectionError(f"{shown(url)}: {_reason(problem)}, {ATTEMPTS} times") from problem
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise ConnectionError(f"{shown(url)}: {_reason(problem)}") from problem
        wait(float(attempt))
    return _sha256(part)


def _attempt(client: httpx.Client, url: str, part: Path, size: int) -> None:
    kept = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={kept}-"} if kept else {}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416:
            part.unlink()  # nothing stands behind what we have, and that is not the file
            raise _Again("the server has no such range")
        if response.status_code in _BUSY:
            raise _Again(f"HTTP {response.status_code}")
        if response.status_code not in (200, 206):
            raise ConnectionError(f"{shown(url)}: HTTP {response.status_code}")
        if response.status_code == 206 and not _continues(response, kept):
            part.unlink(missing_ok=True)
            raise _Again("the server sent another range than was asked for")
        with part.open("ab" if response.status_code == 206 else "wb") as file:
            for block in response.iter_bytes():
                file.write(block)
                if file.tell() > size:  # a page of something else, perhaps without end
                    return


def _continues(response: httpx.Response, kept: int) -> bool:
    return str(response.headers.get("Content-Range", "")).replace(" ", "").startswith(f"bytes{kept}-")


def _reason(problem: Exception) -> str:
    return (str(problem).splitlines() or [""])[0] or type(problem).__name__


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
