"""How long a server asks to wait: from headers of its refusal, else from the words.

In: headers and message of an HTTP error. Out: seconds from now, within 0 and NONSENSE, or None where nothing
usable is said and the caller's own back-off applies; what is waited of them is bounded. Read are, in this order, `retry-after-ms`,
`Retry-After` (seconds or a date), and what providers tell of their rate limits: OpenAI's
`x-ratelimit-reset-requests` and `-tokens` ("6m0s", "120ms"), Anthropic's `anthropic-ratelimit-*-reset`
(RFC 3339), `x-ratelimit-reset` and `ratelimit-reset` (seconds, or seconds or milliseconds of the epoch).

Moments are compared with the response's own `Date`: the server's clock wrote both, and ours may be
wrong. Nonsense is left out: what is negative, no number, or further away than any such limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

MAX_WAIT: Final = 600.0
"""Longest wait in seconds after a fault of a server; a longer wish is cut to this."""
QUOTA_WAIT: Final = 3600.0
"""A rate limit knows when it ends, and is waited for in full; one that asks for more than this is a quota: of the
day, or the month."""
NONSENSE: Final = 7 * 86400.0
"""No limit of a provider is further away in seconds: such a wish is left out."""

_NUMBER: Final = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
_DURATION: Final = re.compile(
    r"(?=\d)(?:(\d{1,4})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m(?!s))?(?:(\d{1,10}(?:\.\d{1,9})?)s)?(?:(\d{1,12}(?:\.\d{1,9})?)ms)?",
    re.ASCII,
)
_UNITS: Final = (86400.0, 3600.0, 60.0, 1.0, 0.001)
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_RESET: Final = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:(.+)-)?reset(?:-(.+))?", re.ASCII)
_DELAY = re.compile(
    r"(?:retry.?delay\W+|(?:retry|try again) (?:in|after) )(?:(\d{1,3})h)?(?:(\d{1,4})m(?!s))?"
    r"(\d{1,6}(?:\.\d{1,9})?) ?(ms|s)(?:econds?)?\b",
    re.IGNORECASE | re.ASCII,
)


def retry_after(
    headers: Mapping[str, str], now: datetime | None = None, limited: bool = True
) -> float | None:
    """Seconds to wait by the headers of a refusal, or None; `now` is our clock (default: it is asked).

    `limited`: the refusal is for a rate limit. Providers tell of their limits with every response, and
    when one is fresh again says nothing about a fault of the server.
    """
    low = {name.lower(): value.strip() for name, value in headers.items()}
    moment = _date(low.get("date", "")) or now or datetime.now(UTC)
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if _NUMBER.fullmatch(low.get(name, "")) and (wait := float(low[name]) * scale) <= NONSENSE:
            return wait
    date = _date(low.get("retry-after", ""))
    if date is not None and (wait := max(0.0, _until(date, moment))) <= NONSENSE:
        return wait
    return _reset(low, moment) if limited else None


def delay_in(message: str) -> float | None:
    """Seconds to wait where only the text of the error says so (`retryDelay`, `retry in 17s`, `try again in 6m0s`)."""
    match = _DELAY.search(message)
    if match is None:
        return None
    seconds = float(match[3]) * (0.001 if match[4].lower() == "ms" else 1.0)
    wait = int(match[1] or 0) * 3600 + int(match[2] or 0) * 60 + seconds
    return wait if wait <= NONSENSE else None


def delay_words(text: str) -> str | None:
    """The delay that a text names, as `retry in 17 s`; None for none."""
    wait = delay_in(text)
    return None if wait is None else f"retry in {wait:g} s"


def come_back(wait: float, now: datetime | None = None) -> str:
    """When a quota is fresh again, for people."""
    moment = (now or datetime.now(UTC)) + timedelta(seconds=wait)
    return f"it asks to come back in {wait / 3600:.1f} hours, at {moment:%Y-%m-%d %H:%M} UTC"


def clock_offset(date: str, now: datetime | None = None) -> float | None:
    """Seconds by which the clock that wrote an HTTP `Date` is ahead of ours; None for no date."""
    told = _date(date)
    return None if told is None else round(_until(told, now or datetime.now(UTC)), 1)


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _until(date: datetime, moment: datetime) -> float:
    return (date - moment) / timedelta(seconds=1)


def _reset(low: Mapping[str, str], moment: datetime) -> float | None:
    """The wait until a rate limit is fresh again: of those that are used up the longest, else the shortest.

    Where none is said to be used up, what is left was too little for this request: when the first of
    them is fresh again another attempt is worth it, and so it is after MAX_WAIT.
    """
    spent, others = list[float](), list[float]()
    for name, value in low.items():
        found = _RESET.fullmatch(name)
        wait = _wait_of(value, moment) if found else None
        if found is None or wait is None or not 0 <= wait <= NONSENSE:
            continue
        left = low.get(name.replace("reset", "remaining"), "")
        used_up = _NUMBER.fullmatch(left) is not None and float(left) < 1
        (spent if used_up else others).append(wait)
    return max(spent) if spent else min((*others, MAX_WAIT)) if others else None


def _wait_of(value: str, moment: datetime) -> float | None:
    """Seconds from `moment` until what a reset header names."""
    if _NUMBER.fullmatch(value):
        number = float(value)
        if number < 1e9:
            return number
        return (number / 1000 if number >= 1e11 else number) - moment.timestamp()
    if _RFC_3339.fullmatch(value):
        try:
            return _until(datetime.fromisoformat(value.upper()), moment)
        except ValueError:
            return None
    parts = _DURATION.fullmatch(value)
    if parts is None:
        return None
    return sum(float(part) * unit for part, unit in zip(parts.groups(), _UNITS, strict=True) if part)
