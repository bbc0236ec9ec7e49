"""What a provider's refusal means: HTTP status and message to a typed failure.

In: status, decoded error body, headers. Out: a `CallFailure` with its class, the server's wish how
long to wait, and whether it may have been billed. The wordings of over-long prompts, too large
answers, exhausted quotas and missing models are those that the servers people use really send; a
status alone often says too little (429 is both a rate limit and an empty account, 400 both a bad
parameter and a long prompt, 403 both a bad key and a flagged prompt).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from agentworldbench.models.base import one_line
from agentworldbench.records import CallFailure, Failure, FailureKind, Usage

MAX_WAIT: Final = 600.0
"""Longest wait in seconds that a server may ask for; more is cut to this."""

_OVERFLOW = re.compile(
    r"maximum context length|context.?length.?exceeded|context window|exceed(s|ed)? (the )?(configured |available )?"
    r"(context|limit of \d+)|longer than the model'?s? context|exceeds the maximum allowed length|prompt is too long|"
    r"input token count.*exceeds|request_too_large|input is too long|too many tokens|available context size|"
    r"`?inputs`? tokens \+ `?max_new_tokens`? must be",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance is too low|payment required",
    re.IGNORECASE,
)
_SPENT = re.compile(rf"{_QUOTA.pattern}|out of credits|billing.?hard.?limit", re.IGNORECASE)
"""What a 429 may add: its text is never an echo of the prompt."""
_RETRYABLE_QUOTA = re.compile(r"retry.?(delay|in|after)|per.?minute|per.?second|requests per", re.IGNORECASE)
_DELAY = re.compile(
    r"(?:retry.?delay\W+|(?:retry|try again) (?:in|after) )(\d{1,6}(?:\.\d{1,9})?) ?(ms|s)(?:econds?)?\b",
    re.IGNORECASE,
)
_MODEL_MISSING = re.compile(
    r"model_not_found|model [`'\"]?[\w./:-]+[`'\"]? (does not exist|not found|is not found)|no such model|unknown model",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content_filter|content management policy|content policy|safety system", re.IGNORECASE)
_FORBIDDEN_TEXT = re.compile(
    rf"{_FILTER.pattern}|moderat(ed|ion)|flagged|(?<!\bip )\bfilter(s|ed|ing)?\b", re.IGNORECASE
)

_OUTPUT = re.compile(
    r"max[_ ]?((completion|output|new)[_ ]?)?tokens|maximum (output|tokens)|(output|completion) tokens",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"context[ _-]?(length|limit|size)|max_(model|seq)_len|inputs?[`' _]+(tokens|length)|prompt[ _]tokens|"
    r"tokens in the (messages|prompt)",
    re.IGNORECASE,
)
_MOST = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:supports?|allows?|produces?) (?:at most|up to|only|a maximum of) (?P<most>\d{1,9})",
        r"> (?P<most>\d{1,9}),? which is the maximum",
        r"range\b[^\[(\d]{0,60}[\[(]\s*\d+\s*,\s*(?P<most>\d{1,9})\s*(?P<open>\))?",
        r"from \d+ \(inclusive\) to (?P<most>\d{1,9}) \((?:inclusive|(?P<open>exclusive))",
        r"(?:range|between)\b[^\d]{0,30}\d+ ?(?:-|–|to|and) ?(?P<most>\d{1,9})",
        r"(?:less(?: than)? or equal to|(?:no|not) (?:more|greater|larger) than|not exceed|at most|up to|<=|≤)"
        r"[ `'\"]*(?P<most>\d{1,9})",
        r"(?:(?:limit|maximum|allowed)(?: value)? (?:of|is)|(?:length|tokens) is)[ `'\"]*(?P<most>\d{1,9})",
    )
)
"""Wordings of the largest answer an endpoint gives; `open` marks a bound that is not itself allowed."""

_BY_STATUS: Final[dict[int, FailureKind]] = {
    401: FailureKind.AUTHENTICATION,
    402: FailureKind.QUOTA,
    404: FailureKind.MODEL_MISSING,
    408: FailureKind.TIMEOUT,
    413: FailureKind.CONTEXT_OVERFLOW,
    429: FailureKind.RATE_LIMIT,
}

_BROKEN: Final = (
    (
        FailureKind.UNREACHABLE,
        {"ConnectionRefusedError", "gaierror", "ConnectError", "ClientConnectorError"},
    ),
    (
        FailureKind.NETWORK,
        {"ConnectionError", "ServerDisconnectedError", "ClientOSError", "ClientPayloadError"}
        | {"ReadError", "WriteError", "ProtocolError"},
    ),
    (FailureKind.TIMEOUT, {"TimeoutError", "TimeoutException"}),
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


def output_limit(message: str) -> int | None:
    """The most tokens an answer may have, from a refusal that says so; None for any other message.

    Messages about the context (prompt and answer together) name numbers too, but are no limit of
    the answer.
    """
    if not _OUTPUT.search(message) or _CONTEXT.search(message):
        return None
    found = next(filter(None, (pattern.search(message) for pattern in _MOST)), None)
    if found is None:
        return None
    most = int(found["most"]) - (found.groupdict().get("open") is not None)
    return most if most > 0 else None


def kind_of(status: int, message: str, asked_to_wait: bool = False) -> FailureKind:
    """Class of an HTTP error from its status, the text of its body, and whether it names a time to wait."""
    if status == 429:
        spent = _SPENT.search(message) and not _RETRYABLE_QUOTA.search(message)
        again = asked_to_wait and "insufficient_quota" not in message
        return FailureKind.QUOTA if spent and not again else FailureKind.RATE_LIMIT
    if status == 403:
        if _FORBIDDEN_TEXT.search(message):
            return FailureKind.CONTENT_FILTER
        return FailureKind.QUOTA if _QUOTA.search(message) else FailureKind.AUTHENTICATION
    told = _kind_in_words(status, message) if status in (400, 422, 500, 503) else None
    return told or _BY_STATUS.get(
        status, FailureKind.PROVIDER_ERROR if status >= 500 else FailureKind.BAD_REQUEST
    )


def _kind_in_words(status: int, message: str) -> FailureKind | None:
    """The class that a message names where the status says little."""
    if status < 500 and output_limit(message) is not None:
        return FailureKind.BAD_REQUEST
    if _OVERFLOW.search(message):
        return FailureKind.CONTEXT_OVERFLOW
    if _MODEL_MISSING.search(message):
        return FailureKind.MODEL_MISSING
    if _QUOTA.search(message) and status < 500:
        return FailureKind.QUOTA
    return FailureKind.CONTENT_FILTER if _FILTER.search(message) else None


def call_failure(
    status: int, message: str, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = ()
) -> CallFailure:
    """Failure of one request from what the server sent."""
    wait = retry_after(headers or {})
    if wait is None:
        wait = _delay_in(message)
    kind = kind_of(status, message, wait is not None)
    return failed(kind, one_line(message, secrets) or f"HTTP {status}", status, wait)


def _delay_in(message: str) -> float | None:
    """Seconds to wait where only the text of the error says so (Gemini: `retryDelay`, `retry in 17s`)."""
    match = _DELAY.search(message)
    if match is None:
        return None
    return min(float(match[1]) * (0.001 if match[2].lower() == "ms" else 1.0), MAX_WAIT)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait from `retry-after-ms` or `Retry-After` (seconds or a date), at most MAX_WAIT.

    None for a missing, negative or unreadable value: the caller's own back-off applies.
    """
    low = {name.lower(): value.strip() for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = low.get(name, "")
        if re.fullmatch(r"\d{1,9}(\.\d+)?", value):
            return min(float(value) * scale, MAX_WAIT)
    try:
        date = parsedate_to_datetime(low.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    moment = now or datetime.now(UTC)
    wait = (date if date.tzinfo else date.replace(tzinfo=UTC)) - moment
    return min(max(wait.total_seconds(), 0.0), MAX_WAIT)


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
    return str(problem) or type(problem).__name__


def error_text(body: Any, default: str) -> str:
    """The message inside a decoded error body, whatever its shape, followed by code, type and retry delay."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # Gemini's OpenAI endpoint wraps its error so
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            message = inner.get("message") or inner.get("detail") or default
            extras = [str(inner[name]) for name in ("code", "type", "param") if inner.get(name)]
            delay = _DELAY.search(str(inner.get("details") or ""))
            extras += [f"retry in {delay[1]} {delay[2]}"] if delay else []
            return f"{message} ({', '.join(extras)})" if extras else str(message)
        return str(inner)
    return str(body) if body else default
