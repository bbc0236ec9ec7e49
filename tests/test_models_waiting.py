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

from agentworldbench.models.waiting import MAX_WAIT, retry_after
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
MOMENTS = st.datetimes().map(lambda date: date.isoformat() + "Z")
VALUES = (
    DURATIONS | DATES | MOMENTS | st.floats().map(str) | st.text(st.characters(codec="latin-1"), max_size=20)
)


@given(st.dictionaries(st.sampled_from(HEADERS), VALUES))
def test_a_wait_is_none_or_in_bounds(headers: dict[str, str]) -> None:
    wait = retry_after(headers, NOW)
    assert wait is None or 0 <= wait <= MAX_WAIT


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
