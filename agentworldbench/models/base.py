"""The one protocol behind which every model and every judge stands.

In: a `Request`. Out: a `Completion`, or a `CallFailure` that says why there is none; `generate`
never raises for what a server did. Retry, limits and budget live in `engine/`: a backend sends one
request and reports. Backends that cannot work at all (no key, no server) raise from `check`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from agentworldbench.records import CallFailure, Completion, Request


class Model(Protocol):
    """A model or judge.

    `name` is what the user wrote; `endpoint` groups models that share limits (None: no limit);
    `context` is the context length in tokens where it is known; `local` models answer without
    any server and are neither retried nor paid.
    """

    name: str
    endpoint: str | None
    context: int | None
    local: bool

    async def check(self) -> None:
        """Contact the endpoint once, cheaply. Raises EndpointError or CredentialsError."""

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Send one request and report what came of it."""

    async def close(self) -> None:
        """Release connections."""

    def identity(self) -> dict[str, Any]:
        """What makes this model's answers its own, for `run.json`; holds no secret."""

    def price(self) -> tuple[float, float] | None:
        """(USD per prompt token, USD per completion token), or None when unknown."""


@dataclass(frozen=True)
class Connection:
    """How to reach a model: root URL, seconds an attempt may take, names of key variables in order."""

    base_url: str | None = None
    timeout: float = 1800.0
    key_variables: tuple[str, ...] = ("AWB_API_KEY", "OPENAI_API_KEY")
    max_context: int | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)


def proxy_hint(url: str) -> str:
    """What to say when `url` cannot be reached and a proxy of the environment stands in between."""
    parts = urlsplit(url)
    if parts.scheme not in getproxies() or proxy_bypass(parts.hostname or ""):
        return ""
    return f"; {parts.scheme.upper()}_PROXY is set: is it meant for this address (NO_PROXY lists exceptions)?"


_USERINFO = re.compile(r"(?<=://)[^/@\s]*@")


def public_url(url: str | None) -> str | None:
    """A URL without user name and password, fit to be stored and printed."""
    return _USERINFO.sub("", url).rstrip("/") if url else None


def one_line(text: str, secrets: tuple[str, ...] = (), limit: int = 300) -> str:
    """A provider's message as one printable line, keys and control characters taken out."""
    for secret in secrets:
        text = text.replace(secret, "***")
    text = re.sub(r"\b(sk|hf|gsk|xai|key)[-_][A-Za-z0-9_\-]{8,}", "***", text)
    text = _USERINFO.sub("", " ".join(text.split()))
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
