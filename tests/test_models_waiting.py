"""How long to wait, read from a refusal's headers: the forms in use, and nonsense in every place.

Cases stand in `cases/models/waiting.yaml`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.models.failures import call_failure
from agentworldbench.models.waiting import (
    NONSENSE,
    QUOTA_WAIT,
    come_back,
    delay_in,
    delay_words,
    retry_after,
)
from tests.helpers.asking import cases

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HEADERS = (
    "retry-after",
    "retry-after-ms",
    "date",
    "x-ratelimit-reset",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-requests-remaining",
)


@pytest.mark.parametrize("case", cases("models/waiting.yaml"))
def test_what_headers_say(case: dict[str, Any]) -> None:
    wait = retry_after(case["headers"], NOW)
    assert (wait is None) is ("wait" not in case), wait
    assert wait is None or wait == pytest.approx(case["wait"], abs=1e-6)


DURATIONS = st.from_regex(r"-?\d{0,12}(\.\d{0,9})?(ms|s|m|h|d|us)?(\d{0,4}s)?", fullmatch=True)
DATES = st.datetimes(timezones=st.just(UTC)).map(lambda date: format_datetime(date, usegmt=True))
ABSURD = st.from_regex(r"Wed, 21 Oct \d{4,20} 07:28:00 [+-]\d{4,20}", fullmatch=True)
MOMENTS = st.datetimes().map(lambda date: date.isoformat() + "Z")
VALUES = (
    DURATIONS
    | DATES
    | ABSURD
    | MOMENTS
    | st.floats().map(str)
    | st.text(st.characters(codec="latin-1"), max_size=20)
)


@given(st.dictionaries(st.sampled_from(HEADERS), VALUES))
def test_a_wait_is_none_or_in_bounds(headers: dict[str, str]) -> None:
    wait = retry_after(headers, NOW)
    assert wait is None or 0 <= wait <= NONSENSE
    failure = call_failure(429, "no", headers)
    assert failure.retry_after is None or 0 <= failure.retry_after <= QUOTA_WAIT
    assert failure.failure.kind in ("rate_limit", "quota")


@given(st.integers(0, 599), st.integers(-(10**7), 10**7))
def test_a_wrong_clock_of_ours_changes_nothing_where_the_server_tells_its_own(wait: int, off: int) -> None:
    date = format_datetime(NOW, usegmt=True)
    moment = NOW + timedelta(seconds=wait)
    ours = NOW + timedelta(seconds=off)
    for name, value in (
        ("Retry-After", format_datetime(moment, usegmt=True)),
        ("anthropic-ratelimit-requests-reset", moment.isoformat().replace("+00:00", "Z")),
        ("x-ratelimit-reset", str(int(moment.timestamp()))),
    ):
        assert retry_after({"Date": date, name: value}, ours) == wait


@pytest.mark.parametrize(
    ("status", "wait"), [(429, 0.006), (413, 0.006), (500, None), (503, None), (529, None)]
)
def test_rate_limits_told_with_every_response_are_no_wish_of_a_server_that_failed(
    status: int, wait: float | None
) -> None:
    told = {"x-ratelimit-remaining-requests": "499", "x-ratelimit-reset-requests": "6ms"}
    assert call_failure(status, "no", told).retry_after == wait
    assert call_failure(status, "no", told | {"retry-after": "3"}).retry_after == 3


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("Please try again in 6m0s.", 360),
        ("Please try again in 1h0m7.5s.", 3607.5),
        ("Please try again in 999h59m59s.", None),
        ("Please try again in 20ms.", 0.02),
        ("Please retry in 17.5 seconds", 17.5),
        ("{'retryDelay': '17s'}", 17),
        ("try again in 6 weeks", None),
        ("try again later", None),
    ],
)
def test_what_words_say(text: str, wait: float | None) -> None:
    assert delay_in(text) == wait
    told = delay_words(text)
    assert (told is None) is (wait is None)
    assert told is None or delay_in(told) == wait, "the words that are kept say the same"


def test_a_quota_says_when_to_come_back() -> None:
    assert come_back(11 * 3600.0, NOW) == "it asks to come back in 11.0 hours, at 2026-03-01 23:00 UTC"
    for wait, kind in ((QUOTA_WAIT, "rate_limit"), (QUOTA_WAIT + 1, "quota")):
        failure = call_failure(429, "Too many", {"Retry-After": f"{wait:g}"})
        assert failure.failure.kind == kind
        assert ("; it asks to come back in" in failure.failure.message) is (kind == "quota")
