"""Connections to a server that stay open through an hour of silence, and tell when the other side is gone.

A reply that is not streamed comes after minutes without a byte. Gateways that translate addresses
forget such connections (after 60 to 350 seconds, by public reports), and neither side is told: the
client waits for the whole --timeout. So the kernel probes idle connections: the gateway remembers,
and a peer that is gone is noticed after `IDLE + COUNT * EVERY` seconds.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentworldbench.download import BUNDLES, trusted_certificates
from agentworldbench.errors import ConfigError

if TYPE_CHECKING:
    import aiohttp
    import openai
    from aiohttp.client import _RequestContextManager as Exchange

CONNECT_SECONDS: Final = 30.0
"""Seconds to reach a server; the wait for its answer is another matter."""
IDLE: Final = 30
EVERY: Final = 15
COUNT: Final = 6
"""Seconds of silence before the first probe and between two; unanswered ones before the connection is lost."""
REUSED_FOR: Final = 15.0
"""Seconds for which a connection between two requests is kept."""


def http_client(timeout: float) -> openai.DefaultAioHttpClient:
    """The SDK's aiohttp client whose sockets are probed, for answers that take up to `timeout` seconds.

    How many connections there are is the engine's affair. Raises ConfigError where proxies or
    certificates that the environment names cannot be used.
    """
    import openai

    class ProbedClient(openai.DefaultAioHttpClient):
        """Proxies of the environment stay in force: their transports are made here too."""

        def _init_transport(self, *given: Any, **options: Any) -> Any:
            return _probed(super()._init_transport(*given, **options))

        def _init_proxy_transport(self, *given: Any, **options: Any) -> Any:
            return _probed(super()._init_proxy_transport(*given, **options))

    waits = openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
    try:
        return ProbedClient(timeout=waits, verify=trusted_certificates() or True)
    except (OSError, ValueError, ImportError) as problem:
        raise ConfigError(f"the proxy or certificate settings of the environment: {problem}") from problem


def _probed(transport: Any) -> Any:
    """The transport, with a session of its own whose sockets are made by `probed_socket`."""
    import aiohttp

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0,
            ssl=transport.ssl_context,
            keepalive_timeout=REUSED_FOR,
            socket_factory=probed_socket,
        )
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    transport.client = session
    return transport


class Posts:
    """Posts bodies to one address over the aiohttp session under an SDK's client, past the client itself.

    The same connections, proxies, certificates and headers, at a third of the processor time: what the SDK
    and its HTTP client do for one request beside that takes a millisecond, which is worth nothing here, as the
    body is written already and the reply is read by this harness.
    """

    def __init__(
        self, client: openai.AsyncOpenAI, url: str, query: Mapping[str, str], timeout: float
    ) -> None:
        import aiohttp
        from yarl import URL

        inner: Any = client._client
        transport = inner._transport_for_url(inner.build_request("POST", url).url)
        if not isinstance(transport.client, aiohttp.ClientSession):
            transport.client = transport.get_client()
        self._session: aiohttp.ClientSession = transport.client
        told = {**client.default_headers, **client.auth_headers}
        self._url = URL(url).update_query(query) if query else URL(url)
        self._options: dict[str, Any] = {
            "headers": {name: value for name, value in told.items() if isinstance(value, str)},
            "timeout": aiohttp.ClientTimeout(sock_connect=min(timeout, CONNECT_SECONDS)),
        }
        if proxy := transport.proxy:
            login = aiohttp.BasicAuth(*proxy.auth) if proxy.auth else None
            self._options |= {"proxy": str(proxy.url), "proxy_auth": login, "proxy_headers": proxy.headers}

    def post(self, body: bytes) -> Exchange:
        """The exchange, to be entered: `async with posts.post(body) as response`."""
        return self._session.post(self._url, data=body, **self._options)


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
