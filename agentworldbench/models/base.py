"""The one protocol behind which every model and every judge stands.

In: a `Request`. Out: a `Completion`, or a `CallFailure` that says why there is none; `generate`
never raises for what a server did. Retry, limits and budget live in `engine/`: a backend sends one
request and reports. Backends that cannot work at all (no key, no server) raise from `check`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from agentworldbench.records import CallFailure, Completion, Request, scrub


class Model(Protocol):
    """A model or judge.

    `name` is what the user wrote; `url` the server's address as it may be shown; `endpoint` groups
    models that share limits (None: no limit); `context` is the context length and `max_output` the
    longest answer, in tokens, where they are known; `local` models answer without any server and
    are neither retried nor paid.
    """

    name: str
    url: str | None
    endpoint: str | None
    context: int | None
    max_output: int | None
    local: bool

    async def check(self) -> None:
        """Contact the endpoint once, cheaply. Raises EndpointError or CredentialsError."""

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Send one request and report what came of it."""

    async def close(self) -> None:
        """Release connections."""

    def identity(self) -> dict[str, Any]:
        """What makes this model's answers its own, for `run.json`; holds no secret and no address.

        A server may move between two sessions of one run: its URL is `url`.
        """

    def price(self) -> tuple[float, float] | None:
        """(USD per prompt token, USD per completion token), or None when unknown."""


@dataclass(frozen=True)
class Connection:
    """How to reach a model: root URL, seconds an attempt may take, names of key variables in order."""

    base_url: str | None = None
    timeout: float = 1800.0
    key_variables: tuple[str, ...] = ("AWB_API_KEY", "OPENAI_API_KEY")
    max_context: int | None = None


def proxy_hint(url: str) -> str:
    """What to say when `url` cannot be reached and a proxy of the environment stands in between."""
    parts = urlsplit(url)
    if parts.scheme not in getproxies() or proxy_bypass(parts.hostname or ""):
        return ""
    return f"; {parts.scheme.upper()}_PROXY is set: is it meant for this address (NO_PROXY lists exceptions)?"


_USERINFO = re.compile(r"(?<=://)[^/@\s]*@")


_ENDPOINT = re.compile(r"/chat/completions/*(?=$|[?#])")
_KEY = re.compile(r"\b(sk|hf|gsk|xai|key)[-_][A-Za-z0-9_\-]{8,}")
KEPT_REPLY: Final = 10_000
"""Characters that are kept of a reply which is no chat completion."""


def public_url(url: str | None) -> str | None:
    """A URL fit to be stored and printed: without user name, password, query and fragment."""
    return re.split(r"[?#]", _USERINFO.sub("", url), maxsplit=1)[0].rstrip("/") if url else None


def root_url(url: str | None) -> str | None:
    """A base URL as clients want it: people also give the full address of the chat endpoint."""
    return _ENDPOINT.sub("", url) if url else url


def _without_keys(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return _KEY.sub("***", text)


def kept_reply(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The beginning of a raw reply as it may be stored, keys taken out."""
    return scrub(_without_keys(text, secrets))[:KEPT_REPLY]


def one_line(text: str, secrets: tuple[str, ...] = (), limit: int = 300) -> str:
    """A provider's message as one printable line, keys and control characters taken out."""
    text = _USERINFO.sub("", " ".join(_without_keys(text, secrets).split()))
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
