"""Connections to a server that stay open through an hour of silence, and tell when the other side is gone.

A reply that is not streamed comes after minutes without a byte. Gateways that translate addresses
forget such connections (after 60 to 350 seconds, by public reports), and neither side is told: the
client waits for the whole --timeout. So the kernel probes idle connections: the gateway remembers,
and a peer that is gone is noticed after `IDLE + COUNT * EVERY` seconds.

In: a server's address and key, and the environment. Out: `Connections`, which a backend asks over, and for
LiteLLM the same settings in the variables that it reads.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agentworldbench.download import is_http, shown
from agentworldbench.errors import ConfigError
from agentworldbench.network import BUNDLES, proxy_for, trusted_certificates
from agentworldbench.version import __version__

if TYPE_CHECKING:
    import aiohttp

    Exchange: TypeAlias = AbstractAsyncContextManager[aiohttp.ClientResponse]

CONNECT_SECONDS: Final = 30.0
"""Seconds to reach a server, by name, proxy and TLS; the wait for its answer is another matter."""
IDLE: Final = 30
EVERY: Final = 15
COUNT: Final = 6
"""Seconds of silence before the first probe and between two; unanswered ones before the connection is lost."""
REUSED_FOR: Final = 15.0
"""Seconds for which a connection between two requests is kept."""
LONGEST_HEADER: Final = 64 * 1024
"""Bytes of one header that are borne: gateways put policies and cookies there that aiohttp's own 8 KB do not hold."""
MOST_BYTES: Final = 512 * 2**20
"""No answer has so many bytes: what goes on for longer would only fill the memory."""
IN_PIECES: Final = 2**20
"""Bytes of a body from which on it is sent piece by piece, so that others are heard in between."""


class Connections:
    """HTTP with one server that `key` opens, over an aiohttp session: `query` goes with every request.

    Proxies and certificates are those of the environment. How many connections there are is the engine's affair,
    and so is how long an answer may take; `timeout` (seconds) bounds the reaching of the server alone.
    To be made where an event loop runs. Raises ConfigError where the environment's settings cannot be used.
    """

    def __init__(self, url: str, key: str, query: Sequence[tuple[str, str]], timeout: float) -> None:
        import aiohttp

        connector = aiohttp.TCPConnector(
            limit=0, ssl=trusted_certificates(), keepalive_timeout=REUSED_FOR, socket_factory=probed_socket
        )
        self._query = query
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_headers(key),
            timeout=aiohttp.ClientTimeout(connect=min(timeout, CONNECT_SECONDS)),
            max_field_size=LONGEST_HEADER,
            proxy=_usable_proxy(url),
        )

    def get(self, url: str) -> Exchange:
        """Ask for an address; to be entered: `async with connections.get(url) as response`."""
        return self._session.get(url, params=self._query)

    def post(self, url: str, body: bytes) -> Exchange:
        """Send JSON to an address."""
        data = body if len(body) < IN_PIECES else BytesIO(body)
        return self._session.post(url, params=self._query, data=data)

    async def close(self) -> None:
        """Close all of them."""
        await self._session.close()


class AnswerTooLarge(Exception):
    """A body of more than MOST_BYTES."""


async def pieces_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body of a response as it comes. Raises AnswerTooLarge, and what the connection raises."""
    left = MOST_BYTES
    async for piece in response.content.iter_any():
        left -= len(piece)
        if left < 0:
            raise AnswerTooLarge(f"the answer is larger than {MOST_BYTES // 2**20} MB")
        yield piece


def tells_its_end(response: aiohttp.ClientResponse) -> bool:
    """Whether a body that breaks off raises. One that lasts until the connection is closed does not, and of a packed one
    aiohttp does not look whether it unpacked all."""
    headers = response.headers
    framed = "Content-Length" in headers or "chunked" in headers.get("Transfer-Encoding", "").lower()
    return framed and "Content-Encoding" not in headers


def _headers(key: str) -> dict[str, str]:
    """What every request says; organisation and project are named by the variables that OpenAI's own clients read."""
    told = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": f"agentworldbench/{__version__}",
        "OpenAI-Organization": os.environ.get("OPENAI_ORG_ID", "").strip(),
        "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID", "").strip(),
    }
    return {name: value for name, value in told.items() if value}


def _usable_proxy(url: str) -> str | None:
    """The environment's proxy for a server, login included. Raises ConfigError for one of a kind that is not spoken here."""
    through = proxy_for(url)
    if through is None:
        return None
    proxy, variable = through
    if not is_http(proxy):
        raise ConfigError(
            f"{variable}={shown(proxy)}: no http or https address of a proxy; set it anew, or list the server's host "
            "in NO_PROXY"
        )
    return proxy


def probed_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for `getaddrinfo`'s (family, kind, protocol, …), probed by the kernel while it is idle."""
    family, kind, protocol = address[:3]
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle = "TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE"  # macOS calls it so
    for name, value in ((idle, IDLE), ("TCP_KEEPINTVL", EVERY), ("TCP_KEEPCNT", COUNT)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def probe_litellm() -> None:
    """Probing, connections without number and certificates for LiteLLM, which reads them from the environment."""
    os.environ.setdefault("AIOHTTP_SO_KEEPALIVE", "True")
    os.environ.setdefault("AIOHTTP_TCP_KEEPIDLE", str(IDLE))
    os.environ.setdefault("AIOHTTP_TCP_KEEPINTVL", str(EVERY))
    os.environ.setdefault("AIOHTTP_TCP_KEEPCNT", str(COUNT))
    os.environ.setdefault("AIOHTTP_CONNECTOR_LIMIT_PER_HOST", "4096")
    os.environ.setdefault("AIOHTTP_CONNECTOR_LIMIT", "4096")
    bundles = [bundle for name in BUNDLES if (bundle := os.environ.get(name, "").strip())]
    if bundles:
        os.environ["SSL_CERT_FILE"] = bundles[0]  # the one variable that LiteLLM reads


def key_mark(key: str | None) -> str:
    """What tells keys apart in memory: limits are per endpoint and key. It is neither stored nor shown."""
    return hashlib.sha256(key.encode()).hexdigest()[:16] if key else "no key"
