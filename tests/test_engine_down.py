"""An endpoint that only fails is found out about by one request at a time, on a virtual clock.

The attempts of all samples must not be used up meanwhile, and all go on when it is back.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from agentworldbench.engine.limiter import LONGEST_HOLD, Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.standing import ANSWERED, NEVER_ANSWERED, ROUNDS_FAILED
from agentworldbench.errors import EndpointError
from agentworldbench.render.progress import status
from tests.helpers.loaded_server import Load, drive
from tests.helpers.virtual_loop import run_virtual

CONNECTIONS = 64
WAVE = ROUNDS_FAILED * CONNECTIONS + CONNECTIONS
"""Requests that may fail before it is known that it is no matter of single ones: those under way end so too."""


def down(since: float, until: float, kind: str = "provider_error", wait: float | None = None) -> Load:
    """A server that fails for all between two moments."""
    load = Load(shortest=1.0, longest=1.0, retry_after=wait)
    load.faults = lambda number: kind if since <= load.starts[-1] < until else None
    return load


@pytest.mark.parametrize(
    "kind", ["provider_error", "overloaded", "rate_limit", "malformed_response", "network"]
)
@pytest.mark.parametrize(("since", "patience"), [(0.0, NEVER_ANSWERED), (20.0, ANSWERED)])
def test_a_server_that_never_comes_back_costs_few_requests(kind: str, since: float, patience: float) -> None:
    load = down(since, float("inf"), kind)
    with pytest.raises(EndpointError, match="nothing has succeeded for"):
        drive(load, connections=CONNECTIONS)
    assert since + patience <= load.starts[-1] <= since + patience + 2 * LONGEST_HOLD
    assert load.refusals <= WAVE + patience / LONGEST_HOLD + 10, "2,000 requests have 14,000 attempts"


@pytest.mark.parametrize("kind", ["provider_error", "rate_limit"])
def test_all_go_on_when_it_is_back(kind: str) -> None:
    load = down(20.0, 500.0, kind)
    found = drive(load, 4000, connections=CONNECTIONS)
    assert found.unanswered == 0
    assert load.refusals <= WAVE + 30
    assert found.seconds <= 500 + LONGEST_HOLD + 2 * 4000 / CONNECTIONS
    assert found.limiter.why == ""


def test_one_goes_at_a_time_after_pauses_that_grow() -> None:
    load = down(0.0, 200.0)
    assert drive(load, 200, connections=4).unanswered == 0
    gaps = [later - earlier for earlier, later in pairwise(load.starts)]
    assert load.refusals < 40
    assert max(gaps) <= LONGEST_HOLD + 1
    last = gaps[load.refusals - 4 : load.refusals - 1]
    assert last == sorted(last)
    assert last[0] >= 8


def test_the_reason_is_told() -> None:
    limiter = Limiter(4)

    async def run() -> list[str]:
        told = []
        for act in (limiter.hold, None):
            async with limiter.sending() as ticket:
                limiter.resume() if act is None else act(ticket)
            told.append(limiter.why)
        return told

    assert run_virtual(run()) == ["nothing succeeds: one request at a time", ""]


FAULTS: dict[str, Callable[[int], str | None]] = {
    "every second": lambda number: "provider_error" if number % 2 else None,
    "nine of ten": lambda number: "provider_error" if number % 10 else None,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_fails_often_is_not_down(name: str) -> None:
    load = Load(shortest=1.0, longest=1.0, faults=FAULTS[name])
    found = drive(load, 300, connections=8, retries=100)
    assert found.unanswered == 0
    assert max(later - earlier for earlier, later in pairwise(load.starts)) < 61


def test_one_that_cannot_be_reached_any_more_stops_the_run_soon() -> None:
    load = down(20.0, float("inf"), "unreachable")
    with pytest.raises(EndpointError, match="is the server running"):
        drive(load, connections=CONNECTIONS)
    assert load.starts[-1] <= 20 + 120


@pytest.mark.parametrize("wait", [1200.0, 3600.0])
def test_a_limit_that_says_when_it_ends_is_waited_for(wait: float) -> None:
    load = down(20.0, 20.0 + wait, "rate_limit", wait=wait)
    found = drive(load, connections=CONNECTIONS)
    assert found.unanswered == 0
    assert load.refusals <= WAVE + 30


def test_the_line_of_a_log_says_why_nothing_moves() -> None:
    progress, limiter = Progress(), Limiter(4)
    progress.predictions.totals["mcp"] = 7
    progress.limiters = [limiter]

    async def run() -> None:
        async with limiter.sending() as ticket:
            limiter.hold(ticket)

    run_virtual(run())
    assert "nothing succeeds: one request at a time" in status(progress)
    progress.predictions.reused = 7
    assert "nothing succeeds" not in status(progress)
