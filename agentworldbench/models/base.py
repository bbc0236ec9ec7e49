"""The one protocol behind which every model and every judge stands.

In: a `Request`. Out: a `Completion`, or a `CallFailure` that says why there is none; `generate`
never raises for what a server did. Retry, limits and budget live in `engine/`: a backend sends one
request and reports. Backends that cannot work at all (no key, no server) raise from `check`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol
from urllib.parse import parse_qsl, urlsplit

from agentworldbench.errors import ConfigError
from agentworldbench.network import proxy_for
from agentworldbench.prices import FREE, Price
from agentworldbench.records import CallFailure, Completion, Request, Thinking
from agentworldbench.run_record import ModelFacts
from agentworldbench.texts import digest, scrub

LEAST_CONTEXT: Final = 256
"""No server in use has a shorter context in tokens: a smaller number is about something else."""


@dataclass
class Limits:
    """Context length (prompt and answer together) and longest answer in tokens, as far as they are known.

    Both are learned: from the user, a table, the server's own words, its refusals. The smaller of
    two values counts, since a request must keep to both; `*_from` tells where the value is from.
    `proven` is the longest exchange that has been answered: no context is shorter than that. `density`
    is the fewest tokens that a prompt had for each one estimated, among those too short to be cut.
    `unexplained`: a refusal in words that nobody knows has turned out to be about length.
    """

    proven: int = 0
    context: int | None = None
    context_from: str | None = None
    max_output: int | None = None
    max_output_from: str | None = None
    density: float | None = None
    unexplained: bool = False

    def hear_context(self, tokens: int | None, source: str) -> None:
        """Take over a context length that a server tells of itself.

        One in which nothing of this benchmark fits is not believed, and `context_from` says so.
        """
        if tokens is None or tokens >= LEAST_CONTEXT:
            self.learn_context(tokens, source)
        elif self.context is None:
            self.context_from = f"{source} says {tokens}: not believed"

    def learn_context(self, tokens: int | None, source: str) -> None:
        """Take over a context length, unless a smaller one is known or a longer one proven."""
        known = self.context is not None and self.context <= (tokens or 0)
        if tokens is not None and tokens >= self.proven and not known:
            self.context, self.context_from = tokens, source

    def learn_output(self, tokens: int | None, source: str) -> None:
        """Take over a longest answer, unless a shorter one is known."""
        if tokens is not None and tokens > 0 and (self.max_output is None or tokens < self.max_output):
            self.max_output, self.max_output_from = tokens, source


class Model(Protocol):
    """A model or judge.

    `name` is what the user wrote; `url` the server's address as it may be shown; `query_mark` tells
    addresses apart that differ in their query alone (None: it has none); `endpoint` groups
    models that share a limit of requests in flight (None: no limit); `limits` grow with what is
    learned; `local` models answer without any server and are neither retried nor paid; `batch` is
    how many requests an engine in this process wants at once (None: as many as there are connections).
    """

    name: str
    url: str | None
    query_mark: str | None
    endpoint: str | None
    limits: Limits
    local: bool
    batch: int | None

    async def check(self) -> None:
        """Contact the endpoint (or load the engine) and learn what it tells of the model.

        Raises EndpointError, CredentialsError or ConfigError.
        """

    async def count(self, request: Request) -> int | None:
        """Tokens of the request's prompt by the model's own tokenizer and chat template; None: unknown."""

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Send one request and report what came of it."""

    async def close(self) -> None:
        """Release connections."""

    def identity(self) -> dict[str, Any]:
        """What makes this model's answers its own, for `run.json`; holds no secret and no address.

        A server may move between two sessions of one run: its URL is `url`.
        """

    def facts(self) -> ModelFacts:
        """What is known of the model by now, for the session's record."""

    def switches(self, thinking: Thinking, effort: str | None) -> dict[str, Any]:
        """Body parameters that ask this model to think, not to think, or how hard.

        Raises ConfigError where it cannot be asked that.
        """

    def price(self) -> Price | None:
        """What its tokens cost, or None when unknown."""


class LocalAnswers:
    """Base of models that hand over answers which exist already: no server, no limits, no cost."""

    name: str
    url: str | None = None
    query_mark: str | None = None
    endpoint: str | None = None
    local: bool = True
    batch: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.limits = Limits()

    async def check(self) -> None:
        """Nothing to contact."""

    async def count(self, request: Request) -> int | None:
        """No tokenizer."""
        return None

    async def close(self) -> None:
        """Nothing to release."""

    def facts(self) -> ModelFacts:
        """Nothing to tell."""
        return ModelFacts()

    def switches(self, thinking: Thinking, effort: str | None) -> dict[str, Any]:
        """Raises ConfigError for anything but the default: there is nobody to tell."""
        if thinking != "default" or effort:
            raise ConfigError(f"model '{self.name}': takes no --thinking and no --reasoning-effort")
        return {}

    def price(self) -> Price | None:
        """Nothing is paid."""
        return FREE


@dataclass(frozen=True)
class Connection:
    """How to reach a model: root URL, seconds an attempt may take, names of key variables in order.

    `max_context` is the user's word on the context length in tokens. `model_args` and `batch_size`
    (a number of requests, or "auto") are for engines in this process; so is `parameters`, what the
    user adds to every request, which they check before anything is loaded. `price` is the user's word
    on what the model costs. `stream`: replies are to come as they are made.
    """

    base_url: str | None = None
    timeout: float = 7200.0
    key_variables: tuple[str, ...] = ("AWB_API_KEY", "OPENAI_API_KEY")
    max_context: int | None = None
    model_args: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | Literal["auto"] = "auto"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    price: Price | None = None
    stream: bool = False

    def limits(self) -> Limits:
        """What is known before anybody is asked."""
        limits = Limits()
        limits.learn_context(self.max_context, "--max-context")
        return limits


def reach_hint(url: str, reason: str) -> str:
    """What to say when `url` cannot be reached for this `reason`: its certificate is not trusted, or a
    proxy of the environment stands in between."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return "; SSL_CERT_FILE can name a file with the certificates to trust"
    through = proxy_for(url)
    if through is None:
        return ""
    return f"; {through[1]} is set: is it meant for this address (NO_PROXY lists exceptions)?"


_USERINFO = re.compile(r"(?<=://)[^/@\s]*@")
_ENDPOINT = re.compile(r"/chat/completions/*(?=$|[?#])")
_KEY_NAME = re.compile(r"(.*[-_])?(key|apikey|token|secret|sig|signature|password)", re.IGNORECASE)
_KEY = re.compile(r"\b(sk|hf|gsk|xai|key)[-_][A-Za-z0-9_\-]{8,}")
LOOKED_AT: Final = 10_000
"""Characters of a message that one line of it is made from: some pages of errors have millions."""
KEPT_REPLY: Final = 10_000
"""Characters that are kept of a reply which is no chat completion."""


def public_url(url: str | None) -> str | None:
    """A URL fit to be stored and printed: without user name, password, query and fragment."""
    return re.split(r"[?#]", _USERINFO.sub("", url), maxsplit=1)[0].rstrip("/") if url else None


def query_mark(url: str | None) -> str | None:
    """A hash of what a URL's query asks for (a version, a deployment), whatever its order; None where there is
    none. Parameters that are keys by their name say nothing about the answer and are left out."""
    asked = sorted(pair for pair in parse_qsl(urlsplit(url or "").query) if not _KEY_NAME.fullmatch(pair[0]))
    return digest(asked) if asked else None


def root_url(url: str | None) -> str | None:
    """A base URL as clients want it: people also give the full address of the chat endpoint."""
    return _ENDPOINT.sub("", url) if url else url


def _without_keys(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return _KEY.sub("***", text)


def kept_text(text: str, secrets: tuple[str, ...] = ()) -> str:
    """A server's words about itself as they may be stored: valid text without keys."""
    return scrub(_without_keys(text, secrets))


def kept_reply(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The beginning of a raw reply as it may be stored, keys taken out."""
    return kept_text(text, secrets)[:KEPT_REPLY]


def one_line(text: str, secrets: tuple[str, ...] = (), limit: int = 300) -> str:
    """A provider's message as one printable line, keys and control characters taken out."""
    text = " ".join(_without_keys(text, secrets).split())[:LOOKED_AT]
    text = _USERINFO.sub("", text)
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
