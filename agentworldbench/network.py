"""The way to the network as the environment describes it: proxies, and certificates to trust.

In: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` and what else is usual. Out: the
proxy for an address, a TLS context. Whoever speaks HTTP here asks this module, so that all go one way.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from agentworldbench.errors import ConfigError

BUNDLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file of trusted certificates; the first one set counts."""


def trusted_certificates() -> ssl.SSLContext:
    """The certificates that a variable of the environment names, else those that httpx trusts by itself.

    Raises ConfigError when they cannot be used.
    """
    for name in BUNDLES:
        if bundle := os.environ.get(name, "").strip():
            try:
                return _trusting(bundle, Path(bundle).stat().st_mtime_ns)
            except (OSError, ssl.SSLError) as problem:
                raise ConfigError(f"{name}: no usable file of certificates ({problem})") from problem
    return _public(os.environ.get("SSL_CERT_DIR", ""))


@lru_cache(maxsize=8)  # a hundred certificates take 30 ms, and every endpoint has connections of its own
def _trusting(bundle: str, changed: int) -> ssl.SSLContext:
    if Path(bundle).is_dir():
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)


@lru_cache(maxsize=8)
def _public(folder: str) -> ssl.SSLContext:
    """httpx's own choice, which also looks at the variable that `folder` is the value of."""
    import httpx

    return httpx.create_ssl_context()


def proxy_for(url: str) -> tuple[str, str] | None:
    """(the proxy on the way to an address, the variable that names it); None where there is none.

    A proxy for the scheme counts before `ALL_PROXY`; macOS and Windows have settings of their own. `NO_PROXY` lists
    exceptions: hosts with all below them, HOST:PORT, addresses, and networks such as 10.0.0.0/8.
    """
    place = urlsplit(url)
    host, proxies = place.hostname or "", getproxies()
    scheme = next((name for name in (place.scheme, "all") if proxies.get(name)), None)
    if scheme is None or proxy_bypass(host) or _is_exception(host, place.port, proxies.get("no", "")):
        return None
    proxy = proxies[scheme]
    return (proxy if "://" in proxy else f"http://{proxy}"), f"{scheme.upper()}_PROXY"


def _is_exception(host: str, port: int | None, listed: str) -> bool:
    """Whether `listed`, as NO_PROXY has it, names a host."""
    names = [name.strip().lower() for name in listed.split(",")]
    if not {"*", host, f"{host}:{port}"}.isdisjoint(names):
        return True
    suffixes = (name.lstrip("*").lstrip(".") for name in names)
    within = any(suffix and host.endswith(f".{suffix}") for suffix in suffixes)
    return within or _is_in_network(host, names)


def _is_in_network(host: str, names: Iterable[str]) -> bool:
    with suppress(ValueError):
        address = ip_address(host)
        for name in names:
            with suppress(ValueError):
                if "/" in name and address in ip_network(name, strict=False):
                    return True
    return False
