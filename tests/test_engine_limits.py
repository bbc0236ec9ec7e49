"""The limiter against servers that carry so many requests at once, or a minute, on a virtual clock.

Bounds are those the harness promises: under 5 % of 2,000 requests wasted and at least 80 % of the
allowed throughput, whatever is allowed, however long answers take, wherever the limit starts.
"""

from __future__ import annotations

import asyncio
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.engine.limiter import MOST, START, Limiter, Limiters
from agentworldbench.engine.rates import Ceilings
from agentworldbench.engine.retry_table import RULES
from tests.helpers.loaded_server import Load, drive
from tests.helpers.virtual_loop import run_virtual

LATENCIES = {"50 ms": (0.05, 0.05), "2 s": (2.0, 2.0), "50 ms to 2 s": (0.05, 2.0)}
# A third of the grid is quick, so that each value meets each other one; the slow step has all of it.
GRID = [
    pytest.param(latency, allowed, connections, marks=[] if (x + y + z) % 3 == 0 else pytest.mark.slow)
    for x, latency in enumerate(LATENCIES)
    for y, allowed in enumerate([1, 3, 8, 30, 100])
    for z, connections in enumerate([None, 16, 64])
]


@pytest.mark.parametrize(("latency", "allowed", "connections"), GRID)
def test_a_limit_is_found_at_little_cost(latency: str, allowed: int, connections: int | None) -> None:
    shortest, longest = LATENCIES[latency]
    found = drive(Load(allowed=allowed, shortest=shortest, longest=longest), connections=connections)
    most = min(allowed, connections or MOST)
    assert found.unanswered == 0
    assert found.wasted < 0.05
    if found.requests * longest / most >= 2:  # in less than two seconds the tail is all there is
        assert found.throughput(most) >= 0.8
    assert found.model.most_busy <= most


@pytest.mark.parametrize("connections", [None, 64])
def test_a_wave_of_refusals_shrinks_to_what_was_carried_and_no_further(connections: int | None) -> None:
    limits: list[int] = []
    drive(Load(allowed=8), connections=connections, requests=100, watch=lambda one: limits.append(one.limit))
    assert min(limits) == 8


@pytest.mark.parametrize("connections", [None, 64])
def test_late_refusals_mislead_nobody(connections: int | None) -> None:
    found = drive(Load(allowed=8, shortest=0.2, longest=0.6, refuses_after=2.0), connections=connections)
    assert found.wasted < 0.05
    assert found.throughput(8) >= 0.8


@pytest.mark.parametrize("retry_after", [0.2, 1.0, 5.0])
def test_the_time_a_server_names_is_kept_to_and_trials_get_rarer(retry_after: float) -> None:
    found = drive(Load(allowed=8, shortest=1.0, longest=1.0, retry_after=retry_after))
    assert found.wasted < 0.05
    assert found.throughput(8) >= 0.8
    starts = found.model.starts
    refused_first = START - 8
    assert refused_first <= found.refused
    gap = max(later - earlier for earlier, later in pairwise(starts))
    assert gap >= retry_after * 0.99, "somebody was asked while the server had asked to wait"


def test_who_waits_at_a_ceiling_keeps_to_a_limit_that_shrank_meanwhile() -> None:
    load = Load(allowed=8, shortest=100.0, longest=100.0)
    found = drive(load, 300, connections=64, ceilings=Ceilings(requests=60))
    assert found.refused <= 8, "slots that were given before the first refusal are no leave to send"
    assert found.throughput(8) >= 0.95


def test_a_limit_by_the_minute_is_lived_with() -> None:
    found = drive(Load(a_minute=600, shortest=0.5, longest=1.5, retry_after=30.0))
    assert found.unanswered == 0
    assert found.seconds < 2000 / 600 * 60 * 1.25


def test_single_refusals_for_other_reasons_do_not_ruin_the_limit() -> None:
    draw = random.Random(1)
    found = drive(Load(allowed=8, faults=lambda number: "rate_limit" if draw.random() < 0.01 else None))
    assert found.throughput(8) >= 0.8


@pytest.mark.parametrize("kind", ["provider_error", "timeout", "network"])
def test_errors_of_the_server_only_stop_growth(kind: str) -> None:
    limits: list[int] = []
    faults = Load(allowed=10**6, faults=lambda number: kind if number == 200 else None)
    drive(faults, requests=1200, watch=lambda one: limits.append(one.limit))
    assert limits == sorted(limits), "never shrunk"
    still = [limit for limit in limits if limits.count(limit) > 600]
    assert still, "growth went on at once"


def test_growth_is_additive_and_ends_at_the_cap() -> None:
    limits: list[int] = []
    found = drive(Load(allowed=10**6), requests=8000, watch=lambda one: limits.append(one.limit))
    assert max(limits) == MOST
    rounds = found.seconds / 0.2
    assert all(later - earlier <= 1 for earlier, later in pairwise(limits))
    assert rounds >= (MOST - START) / 16


@pytest.mark.parametrize("carries", [1, 4])
def test_a_server_that_queues_is_not_flooded(carries: int) -> None:
    found = drive(Load(allowed=carries, queues=True, shortest=0.5, longest=1.5), requests=1000)
    assert found.limiter.limit <= MOST / 4
    assert "slower" in found.limiter.why


def test_an_overload_is_sat_out() -> None:
    storm = Load(allowed=64, kind="overloaded", faults=lambda n: "overloaded" if 500 < n < 540 else None)
    found = drive(storm)
    assert found.unanswered == 0
    assert found.wasted < 0.05


def test_why_tells_what_keeps_the_limit_low() -> None:
    assert drive(Load(allowed=8)).limiter.why == "limited by 429s"
    assert drive(Load(allowed=8, kind="overloaded")).limiter.why == "the server is overloaded"
    assert drive(Load(), requests=50).limiter.why == ""


@settings(max_examples=10, deadline=None)
@given(
    allowed=st.integers(1, 60),
    shortest=st.floats(0.05, 2.0),
    spread=st.floats(1.0, 8.0),
    connections=st.none() | st.integers(1, 64),
    seed=st.integers(0, 99),
)
def test_any_limit_is_found(
    allowed: int, shortest: float, spread: float, connections: int | None, seed: int
) -> None:
    load = Load(allowed=allowed, shortest=shortest, longest=shortest * spread, seed=seed)
    found = drive(load, connections=connections)
    assert found.unanswered == 0
    assert found.wasted < 0.05
    most = min(allowed, connections or MOST)
    if found.requests * shortest / most >= 5:
        assert found.throughput(most) >= 0.8


# --- slots -----------------------------------------------------------------------------------


def test_slots_go_to_the_earliest_place_and_cancelled_waiters_leave_none_behind() -> None:
    served: list[int] = []

    async def work(limiter: Limiter, place: int) -> None:
        async with limiter.slot(place) as slot:
            await slot.take()
            served.append(place)
            await asyncio.sleep(1)

    async def run() -> None:
        limiter = Limiter(1)
        tasks = [asyncio.create_task(work(limiter, place)) for place in (5, 9, 3, 7, 1)]
        await asyncio.sleep(0.5)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await work(limiter, 2)

    run_virtual(run())
    assert served == [5, 1, 3, 9, 2]


def test_a_slot_that_was_just_given_to_a_cancelled_waiter_is_not_lost() -> None:
    async def run() -> None:
        limiter = Limiter(1)
        await limiter.acquire()
        waiter = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        limiter.release()
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        await asyncio.wait_for(limiter.acquire(), 1)

    run_virtual(run())


def test_a_slot_is_kept_between_the_requests_of_a_worker_and_else_for_one() -> None:
    async def run() -> None:
        limiter = Limiter(1)
        async with limiter.slot(5) as slot:
            await slot.take()
            async with slot.held():
                pass
            later = asyncio.create_task(limiter.acquire(7))
            await asyncio.sleep(1)
            await slot.take()
            assert not later.done(), "a later place waits until the worker has ended"
            earlier = asyncio.create_task(limiter.acquire(3))
            await asyncio.sleep(1)
            taking = asyncio.create_task(slot.take())
            await asyncio.sleep(1)
            assert earlier.done(), "an earlier one is let in between"
            assert not taking.done()
            limiter.release()
            await taking
        await later
        limiter.release()
        async with limiter.slot().held():
            pass
        await asyncio.wait_for(limiter.acquire(), 1)

    run_virtual(run())


def test_endpoints_have_limits_of_their_own() -> None:
    limiters = Limiters()
    assert limiters.of("a", lambda: Limiter(2)) is limiters.of("a", lambda: Limiter(3))
    assert limiters.of("a", lambda: Limiter(2)) is not limiters.of("b", lambda: Limiter(2))
    assert limiters.of(None, lambda: Limiter(2)) is limiters.of(None, lambda: Limiter(2))


# --- ceilings per minute ---------------------------------------------------------------------


def busiest_minute(starts: list[float]) -> int:
    return max(sum(first <= start < first + 60 for start in starts) for first in starts)


@pytest.mark.parametrize("per_minute", [1, 7, 60, 600])
def test_requests_a_minute_are_kept_and_used(per_minute: int) -> None:
    requests = 4 * per_minute
    found = drive(Load(shortest=2.0, longest=2.0), requests, ceilings=Ceilings(requests=per_minute))
    starts = found.model.starts
    assert busiest_minute(starts) <= per_minute
    assert found.seconds <= 4 * 60 + 3, "the ceiling was not used"
    assert starts[0] == 0
    at_once = sum(start == 0 for start in starts)
    assert at_once <= per_minute / 10 + 1, "a whole minute at once"


def test_a_short_run_under_a_ceiling_waits_for_nothing() -> None:
    assert drive(Load(), 6, ceilings=Ceilings(requests=60)).seconds < 1


def test_tokens_a_minute_are_estimated_and_corrected() -> None:
    found = drive(Load(shortest=1.0, longest=1.0), 60, ceilings=Ceilings(tokens=10_000))
    # A request has 1,000 tokens as the server counts them; the first estimates are higher.
    assert 5.0 * 60 - 10 <= found.seconds <= 60 * 7.5
    # Until they are answered requests count as 80 tokens and what is usual of an answer: too few here.
    assert busiest_minute(found.model.starts) <= 12


def test_nobody_waits_for_tokens_that_turned_out_not_to_be_used() -> None:
    load = Load(shortest=1.0, longest=1.0)
    found = drive(load, 2, ceilings=Ceilings(tokens=1_000))
    # A minute for the 1,000 tokens that the first one used; 2,000 and more were expected of it.
    assert found.model.starts == [0.0, pytest.approx(60.0, abs=8)]


def test_a_request_beyond_a_minutes_tokens_still_goes() -> None:
    assert drive(Load(), 3, ceilings=Ceilings(tokens=100)).unanswered == 0


def test_ceilings_of_all_who_share_an_endpoint_hold() -> None:
    shared = Ceilings.lowest([Ceilings(requests=60), Ceilings(requests=30, tokens=500), Ceilings()])
    assert shared == Ceilings(requests=30, tokens=500)


def test_the_page_lists_every_class_of_the_retry_table() -> None:
    page = (Path(__file__).parent.parent / "docs" / "limits.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in page.split("\n") if line.startswith("| `")]
    listed = {name: cells[1].strip() for cells in rows for name in re.findall(r"`(\w+)`", cells[0])}
    assert listed.keys() == {kind.value for kind in RULES}
    for kind, rule in RULES.items():
        number = "--judge-attempts" if kind.value.startswith("judge_") else str(rule.attempts or "all")
        assert number in listed[kind.value], kind
