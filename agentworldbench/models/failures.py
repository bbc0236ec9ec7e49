"""What a provider's refusal means: HTTP status and message to a typed failure.

In: status, decoded error body, headers. Out: a `CallFailure` with its class, the server's wish how
long to wait, and whether it may have been billed. The wordings of over-long prompts, too large
answers, exhausted quotas and missing models are those that the servers people use really send; a
status alone often says too little (429 is both a rate limit and an empty account, 400 both a bad
parameter and a long prompt, 403 both a bad key and a flagged prompt). Servers also hand back what
they could not read: words count only where the server itself speaks (see `lengths.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from agentworldbench.models.base import one_line
from agentworldbench.models.lengths import context_limit, own_words, refuses_length
from agentworldbench.models.waiting import MAX_WAIT, QUOTA_WAIT, come_back, delay_in, delay_words, retry_after
from agentworldbench.records import CallFailure, Failure, FailureKind, Usage

_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance is too low|payment required",
    re.IGNORECASE,
)
_SPENT = re.compile(rf"{_QUOTA.pattern}|out of credits|billing.?hard.?limit", re.IGNORECASE)
"""What a 429 may add: its text is never an echo of the prompt."""
_RETRYABLE_QUOTA = re.compile(r"retry.?(delay|in|after)|per.?minute|per.?second|requests per", re.IGNORECASE)
_CLASSES: Final = re.compile(
    r"(?:(?:litellm\.)?[A-Z]\w{0,80}(?:Error|Exception)(?: [A-Z]\w{0,80}Error)?(?:: | - )){1,6}"
)
_PER_TIME = re.compile(r"rate_limit_exceeded|tokens per (minute|min|day)\b", re.IGNORECASE)
_MODEL_MISSING = re.compile(
    r"(the |this |requested )?model [`'\"]?[\w./:-]{1,200}[`'\"]? (does not exist|not found|is not found)|"
    r"(no such|unknown|invalid) model\b|model not exist|[\w./:-]{1,200} is not a valid model",
    re.IGNORECASE,
)
_MODEL_WORD = re.compile(r"\bmodel(s?\b|_not_found)", re.IGNORECASE)
_NO_MONEY = re.compile(
    r"(you(r organization)? )?(have |has )?exceeded your current quota|your credit balance is too low|payment required|"
    r"insufficient (balance|credits|funds|quota)",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(r"(incorrect|invalid) api key|api key (is )?(not valid|invalid)", re.IGNORECASE)
_OVERLOADED = re.compile(
    r"overload(ed)?\b|slow down|high (demand|traffic|load)|(at|over|no|insufficient) capacity|"
    r"capacity (is )?(exceeded|reached)|queue (is )?full|too busy|server is busy|too many (concurrent )?requests|"
    r"temporarily rate.?limited upstream",
    re.IGNORECASE,
)
"""How servers say that they have too much to do, whoever asks (OpenAI, Anthropic, Gemini, SGLang, TGI, Moonshot)."""
_FILTER = re.compile(
    r"content_filter|content management policy|content policy|safety system|inappropriate content",
    re.IGNORECASE,
)
_FORBIDDEN_TEXT = re.compile(
    rf"{_FILTER.pattern}|moderat(ed|ion)|flagged|(?<!\bip )\bfilter(s|ed|ing)?\b", re.IGNORECASE
)

_PARSER: Final = re.compile(r"400, message:\s*")
"""How aiohttp begins what it could not read, as if a server had answered so."""
_HEAD: Final = re.compile(r"<RawResponseMessage\(.*", re.DOTALL)
"""What aiohttp says of a head that it read in part."""
_FILTER_CODES: Final = frozenset({"content_filter", "content_policy_violation", "data_inspection_failed"})
_OVERLOADED_CODES: Final = frozenset({"overloaded_error", "engine_overloaded_error", "server_overloaded"})
_EXTRAS: Final = re.compile(r" \(([^()]*)\)$")
_EXTRAS_AT_MOST: Final = 300
"""Code and type as `error_text` writes them behind a message, and where to look for them."""

_BY_STATUS: Final[dict[int, FailureKind]] = {
    401: FailureKind.AUTHENTICATION,
    402: FailureKind.QUOTA,
    404: FailureKind.MODEL_MISSING,
    408: FailureKind.TIMEOUT,
    413: FailureKind.CONTEXT_OVERFLOW,
    429: FailureKind.RATE_LIMIT,
    498: FailureKind.OVERLOADED,  # Groq: no capacity for the flexible tier
    529: FailureKind.OVERLOADED,  # Anthropic, and others after it
}

_BROKEN: Final = (
    (
        FailureKind.UNREACHABLE,
        {"ConnectionRefusedError", "gaierror", "ConnectError", "ClientConnectorError"}
        | {"ConnectionTimeoutError", "ClientHttpProxyError"},
    ),
    (
        FailureKind.NETWORK,
        {"ConnectionError", "ServerDisconnectedError", "ClientOSError", "ClientPayloadError"}
        | {"ReadError", "WriteError", "ProtocolError"},
    ),
    (FailureKind.TIMEOUT, {"TimeoutError", "TimeoutException"}),
    (FailureKind.MALFORMED_RESPONSE, {"AnswerTooLarge"}),
)
"""Class names (Python's, aiohttp's, httpx's) that tell how a connection failed; the first match counts."""

_MAY_BE_BILLED: Final = frozenset(
    {
        FailureKind.PROVIDER_ERROR,
        FailureKind.TIMEOUT,
        FailureKind.NETWORK,
        FailureKind.MALFORMED_RESPONSE,
    }
)
"""Failures after which the server may have made (and charged for) an answer that never arrived."""


def failed(
    kind: FailureKind,
    message: str,
    status: int | None = None,
    retry_after: float | None = None,
    usage: Usage | None = None,
    reply: str | None = None,
) -> CallFailure:
    """A `CallFailure` with its cost: unknown where an answer may have been made, else 0."""
    return CallFailure(
        failure=Failure(kind=kind, message=message, status=status),
        retry_after=retry_after,
        usage=usage or Usage(),
        cost_usd=None if kind in _MAY_BE_BILLED else 0.0,
        reply=reply,
    )


def kind_of(status: int, message: str, asked_to_wait: bool = False) -> FailureKind:
    """Class of an HTTP error from its status, the text of its body, and whether it names a time to wait."""
    if status == 429:
        spent = _SPENT.search(message) and not _RETRYABLE_QUOTA.search(message)
        again = asked_to_wait and "insufficient_quota" not in message
        if spent and not again:
            return FailureKind.QUOTA
        busy = re.search(r"overloaded", own_words(message), re.IGNORECASE)
        return FailureKind.OVERLOADED if busy else FailureKind.RATE_LIMIT
    if status == 413 and _PER_TIME.search(message):
        return FailureKind.RATE_LIMIT
    if status == 403:
        if _FORBIDDEN_TEXT.search(message):
            return FailureKind.CONTENT_FILTER
        return FailureKind.QUOTA if _QUOTA.search(message) else FailureKind.AUTHENTICATION
    told = _kind_in_words(status, message) if status in (400, 422, 500, 503) else None
    return told or _BY_STATUS.get(
        status, FailureKind.PROVIDER_ERROR if status >= 500 else FailureKind.BAD_REQUEST
    )


def names_missing_model(message: str) -> bool:
    """Whether a 404 speaks of a model, and not only of a page."""
    return _MODEL_WORD.search(message[:_EXTRAS_AT_MOST]) is not None


def _kind_in_words(status: int, message: str) -> FailureKind | None:
    """The class that a message names where the status says little: by its first words, or its code."""
    if refuses_length(message):
        return FailureKind.CONTEXT_OVERFLOW
    code = _EXTRAS.search(message[-_EXTRAS_AT_MOST:])
    codes = set(code[1].split(", ")) if code else set()
    if _MODEL_MISSING.match(message) or "model_not_found" in codes:
        return FailureKind.MODEL_MISSING
    if status < 500 and (_NO_MONEY.match(message) or "insufficient_quota" in codes):
        return FailureKind.QUOTA
    if status < 500 and _BAD_KEY.match(message):
        return FailureKind.AUTHENTICATION
    if status >= 500 and (_OVERLOADED.search(own_words(message)) or codes & _OVERLOADED_CODES):
        return FailureKind.OVERLOADED
    filtered = _FILTER.search(own_words(message)) or codes & _FILTER_CODES
    return FailureKind.CONTENT_FILTER if filtered else None


def call_failure(
    status: int, message: str, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = ()
) -> CallFailure:
    """Failure of one request from what the server sent."""
    wait = retry_after(headers or {}, limited=status in (413, 429))
    if wait is None:
        wait = delay_in(message)
    kind, told = kind_of(status, message, wait is not None), one_line(message, secrets) or f"HTTP {status}"
    if wait is not None and wait > QUOTA_WAIT and status == 429:
        kind, told = FailureKind.QUOTA, f"{told}; {come_back(wait)}"
    longest = QUOTA_WAIT if status == 429 else MAX_WAIT
    failure = failed(kind, told, status, None if wait is None else min(wait, longest))
    if kind is not FailureKind.CONTEXT_OVERFLOW:
        return failure
    return failure.model_copy(update={"limit": context_limit(message)})


def connection_failure(problem: BaseException | None) -> FailureKind | None:
    """What broke when no whole reply came; None when the chain of exceptions tells of no connection.

    The first cause decides, by the names of its classes: SDKs and HTTP libraries wrap one another,
    and some call a server that hung up a timeout.
    """
    names: set[str] = set()
    while problem is not None:
        names.update(kind.__name__ for kind in type(problem).__mro__)
        problem = problem.__cause__ or problem.__context__
    return next((kind for kind, causes in _BROKEN if names & causes), None)


def first_cause(problem: BaseException) -> str:
    """The innermost message of a chain of exceptions: the one that says what happened."""
    while problem.__cause__ or problem.__context__:
        inner = problem.__cause__ or problem.__context__
        if inner is None or not str(inner):
            break
        problem = inner
    said = _HEAD.sub("the server hung up in the middle of its answer's head", str(problem))
    return _PARSER.sub("", said) or type(problem).__name__


def error_text(body: Any, default: str) -> str:
    """The message inside a decoded error body, whatever its shape, followed by code, type and retry delay.

    `default` is what an SDK made of it. What a server hands back of the request is left out.
    """
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # Gemini's OpenAI endpoint wraps its error so
    if not isinstance(body, dict):
        return _without_echo(str(body) if body else _unwrapped(default))
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return _without_echo(str(inner))
    message = inner.get("message") or inner.get("detail") or default
    raw = _mapping(inner.get("metadata")).get("raw")
    if raw and message == "Provider returned error":  # OpenRouter's own words for somebody else's
        message = _unwrapped(str(raw))
    extras = [str(inner[name]) for name in ("code", "type", "param") if inner.get(name)]
    extras += [f"{name}={inner[name]}" for name in ("n_prompt_tokens", "n_ctx") if inner.get(name)]
    delay = delay_words(str(inner.get("details") or ""))
    extras += [delay] if delay else []
    text = _complaints(message) or _without_echo(str(message))
    return f"{text} ({', '.join(extras)})" if extras else text


def _unwrapped(text: str) -> str:
    """The server's message out of LiteLLM's: class names before it, the undecoded body after them."""
    classes = _CLASSES.match(text)
    text = text[classes.end() :] if classes else text
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return error_text(body, text) if isinstance(body, (dict, list)) and body else text


def _complaints(message: Any) -> str | None:
    """What is wrong where, from the list that a validator makes; None for anything else."""
    if not isinstance(message, list) or not all("msg" in _mapping(one) for one in message):
        return None
    places = [".".join(str(part) for part in one.get("loc") or () if part != "body") for one in message]
    return "; ".join(f"{place}: {one['msg']}" for place, one in zip(places, message, strict=True))


def _without_echo(text: str) -> str:
    """A validator's complaint without the request that it quotes, llama.cpp's without the messages."""
    text = text.partition("; messages = [")[0]
    if "'loc': " in text:
        text = text.partition("'input': ")[0]
    return text


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
