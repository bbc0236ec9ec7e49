"""The retry layer: how often each class of failure is tried, how long is waited, what stops a run.

A model inside the process gives the outcomes; the engine's clock is virtual, so waits are compared
as numbers and nothing sleeps. Limits of an endpoint stand here too.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agentworldbench.engine import retry as retry_module
from agentworldbench.engine import standing
from agentworldbench.engine.limiter import LONGEST_HOLD, Limiter
from agentworldbench.engine.progress import Progress, spent
from agentworldbench.engine.retry import Answer, ask, fatal_error
from agentworldbench.engine.retry_table import RULES
from agentworldbench.errors import AwbError, CredentialsError, EndpointError, QuotaError
from agentworldbench.models import Connection, create_model
from agentworldbench.records import TRANSIENT, Attempt, Failure, FailureKind, Usage
from tests.helpers.asking import TASKS, make_request
from tests.helpers.fake_model import USAGE, FakeModel, VirtualTime, fails, says

OK = says("fine")
FATAL = frozenset(map(FailureKind, ("authentication", "model_missing", "quota", "unreachable")))


@pytest.fixture(name="time")
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return VirtualTime(monkeypatch)


def asked(
    *outcomes: Any, retries: int = 3, local: bool = False, limiter: Limiter | None = None, **of_request: Any
) -> tuple[Answer, FakeModel, Progress]:
    """The answer of a model that gives `outcomes` one after another, the last for ever."""
    model = FakeModel(lambda request, number: outcomes[min(number, len(outcomes)) - 1], local=local)
    progress = Progress()
    request = make_request(**of_request)
    answer = asyncio.run(ask(model, request, (limiter or Limiter(4)).slot(), retries, progress))
    return answer, model, progress


# --- attempts by class -----------------------------------------------------------------------

ATTEMPTS = {
    "provider_error": 4,
    "rate_limit": 4,
    "overloaded": 4,
    "network": 4,
    "malformed_response": 3,
    "timeout": 2,
    "bad_request": 1,
    "context_overflow": 1,
    "content_filter": 1,
    "not_in_replay": 1,
}


@pytest.mark.parametrize("kind", ATTEMPTS)
def test_attempts_by_class_with_three_retries(kind: str, time: VirtualTime) -> None:
    answer, model, progress = asked(fails(kind, status=400))
    assert isinstance(answer.outcome, Failure)
    assert answer.outcome.kind == kind
    assert len(model.requests) == len(answer.attempts) == ATTEMPTS[kind]
    assert {attempt.outcome for attempt in answer.attempts} == {kind}
    assert {(attempt.status, attempt.message) for attempt in answer.attempts} == {(400, f"scripted {kind}")}
    assert progress.retries == len(time.waits) == ATTEMPTS[kind] - 1
    assert progress.requests == ATTEMPTS[kind]
    assert progress.in_flight == 0


def test_the_table_has_every_class_and_agrees_with_what_records_call_transient_and_fatal() -> None:
    assert RULES.keys() == set(FailureKind)
    assert {kind for kind, rule in RULES.items() if rule.fatal} == FATAL
    again = {kind for kind, rule in RULES.items() if rule.attempts != 1} - FATAL
    assert again - {FailureKind.EMPTY} == TRANSIENT
    shrinks = {kind for kind, rule in RULES.items() if rule.load == "shrink"}
    assert shrinks == {"rate_limit", "overloaded"}
    assert all(rule.why for rule in RULES.values())


@pytest.mark.parametrize("kind", sorted(TRANSIENT))
def test_no_retries_means_one_attempt(kind: FailureKind, time: VirtualTime) -> None:
    answer, model, _ = asked(fails(kind), retries=0)
    assert len(model.requests) == len(answer.attempts) == 1
    assert time.waits == []


@pytest.mark.parametrize(
    ("retries", "again", "times"), [(3, True, 2), (1, True, 2), (0, True, 1), (3, False, 1)]
)
def test_a_reply_that_lost_its_text_is_asked_for_once_more_where_the_request_says_so(
    retries: int, again: bool, times: int, time: VirtualTime
) -> None:
    lost = fails("empty", usage=USAGE, cost_usd=0.5, reply="{}")
    answer, model, _ = asked(lost, retries=retries, again_if_empty=again)
    assert isinstance(answer.outcome, Failure)
    kept = [(one.outcome, one.cost_usd, one.reply) for one in answer.attempts]
    assert kept == [("empty", 0.5, "{}")] * times
    assert len(model.requests) == times
    assert len(time.waits) == times - 1


@pytest.mark.parametrize("kind", sorted(TRANSIENT | FATAL))
def test_a_local_model_is_never_asked_twice(kind: FailureKind) -> None:
    answer, model, _ = asked(fails(kind), local=True)
    assert isinstance(answer.outcome, Failure)
    assert len(model.requests) == 1


def test_two_timeouts_are_enough_whatever_came_between(time: VirtualTime) -> None:
    answer, model, _ = asked(fails("timeout"), fails("provider_error"), fails("timeout"), OK, retries=9)
    assert isinstance(answer.outcome, Failure)
    assert answer.outcome.kind == "timeout"
    assert len(model.requests) == 3


def test_an_answer_after_failures_keeps_them(time: VirtualTime) -> None:
    answer, _, _ = asked(fails("provider_error", status=500), fails("malformed_response"), OK)
    assert answer.outcome == OK
    assert [attempt.outcome for attempt in answer.attempts] == ["provider_error", "malformed_response", "ok"]
    assert [attempt.status for attempt in answer.attempts] == [500, None, None]
    assert [attempt.finish_reason for attempt in answer.attempts] == [None, None, "stop"]
    assert spent(answer.attempts) == (USAGE, None), "what failed may have been paid"


def test_an_attempt_keeps_what_a_failure_used_and_said(time: VirtualTime) -> None:
    half = fails("malformed_response", usage=USAGE, cost_usd=0.5, reply="<html>")
    answer, _, _ = asked(half, fails("rate_limit", status=429, cost_usd=0.0), OK)
    assert [attempt.reply for attempt in answer.attempts] == ["<html>", None, None]
    assert [attempt.cost_usd for attempt in answer.attempts] == [0.5, 0.0, 0.25]
    assert spent(answer.attempts) == (USAGE + USAGE, 0.75)


def test_a_local_models_failure_costs_nothing() -> None:
    answer, _, _ = asked(fails("timeout"), local=True)
    assert spent(answer.attempts) == (Usage(), 0.0)


def test_a_cost_is_unknown_when_one_of_its_parts_is() -> None:
    known = Attempt(outcome="ok", seconds=1.0, usage=USAGE, cost_usd=0.5)
    unknown = Attempt(outcome="ok", seconds=1.0, usage=Usage(prompt_tokens=1))
    assert spent((known, known)) == (USAGE + USAGE, 1.0)
    assert spent((known, unknown)) == (USAGE + Usage(prompt_tokens=1), None)
    assert spent((Attempt(outcome=FailureKind.NETWORK, seconds=1.0),)) == (Usage(), None)
    assert spent((Attempt(outcome=FailureKind.RATE_LIMIT, seconds=1.0, cost_usd=0.0),)) == (Usage(), 0.0)
    assert spent(()) == (Usage(), 0.0)


# --- what stops a run ------------------------------------------------------------------------

STOPS: dict[str, tuple[type[AwbError], int, str]] = {
    "authentication": (CredentialsError, 2, "check the key"),
    "model_missing": (EndpointError, 2, "check the model's name"),
    "quota": (QuotaError, 5, "the same command continues"),
    "unreachable": (EndpointError, 2, "is the server running"),
}


def test_every_fatal_class_has_its_error() -> None:
    assert STOPS.keys() == FATAL


@pytest.mark.parametrize("kind", STOPS)
def test_fatal_classes_raise_at_once(kind: str, time: VirtualTime) -> None:
    error, code, words = STOPS[kind]
    requests: list[int] = []
    model = FakeModel(lambda request, number: requests.append(number) or fails(kind))
    with pytest.raises(error, match=words) as caught:
        asyncio.run(ask(model, make_request(), Limiter(1).slot(), 6, Progress()))
    assert caught.value.exit_code == code
    assert "fake/model" in str(caught.value)
    assert (requests, time.waits) == ([1], [])


@pytest.mark.parametrize(("name", "asks"), [("openai-api/m", True), ("baseline/empty", False)])
def test_a_missing_model_asks_about_the_address_where_one_was_given(name: str, asks: bool) -> None:
    url = "http://127.0.0.1:9" if asks else None
    model = create_model(name, Connection(base_url=url), TASKS)
    error = fatal_error(Failure(kind=FailureKind.MODEL_MISSING, message="404"), model)
    assert ("does the address end in /v1? (http://127.0.0.1:9)" in str(error)) is asks


# --- waits -----------------------------------------------------------------------------------


def test_waits_double_up_to_a_minute_with_jitter(time: VirtualTime) -> None:
    asked(fails("provider_error"), retries=9)
    full = [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert len(time.waits) == len(full)
    assert all(wait / 2 <= waited <= wait for wait, waited in zip(full, time.waits, strict=True))
    assert len({waited / wait for wait, waited in zip(full, time.waits, strict=True)}) > 1, "no jitter"


@pytest.mark.parametrize("kind", ["rate_limit", "provider_error"])
def test_a_servers_wish_is_honoured(kind: str, time: VirtualTime) -> None:
    asked(fails(kind, retry_after=17.0), OK)
    assert len(time.waits) == 1
    assert 17.0 <= time.waits[0] <= 17.1


@pytest.mark.parametrize("wish", [0.0, 0.006])
def test_a_wish_for_an_instant_does_not_burn_the_attempts(wish: float, time: VirtualTime) -> None:
    asked(fails("rate_limit", retry_after=wish), retries=3)
    assert sum(time.waits) >= 0.25 + 0.5 + 1


def test_any_number_of_failures_in_a_row_is_lived_with(
    time: VirtualTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "NEVER_ANSWERED", float("inf"))
    answer, _, _ = asked(fails("rate_limit"), retries=1200)
    assert len(answer.attempts) == 1201
    assert max(time.waits) <= 60
    assert max(time.pauses) <= LONGEST_HOLD


def test_a_rate_limit_pauses_the_endpoint_for_all(time: VirtualTime) -> None:
    limiter = Limiter(8)
    limited = FakeModel(lambda request, number: fails("rate_limit", retry_after=30.0) if number == 1 else OK)
    other = FakeModel(lambda request, number: OK)

    async def late() -> Answer:
        while not time.waits:
            await asyncio.sleep(0)
        return await ask(other, make_request(), limiter.slot(), 0, Progress())

    async def run() -> None:
        await asyncio.gather(ask(limited, make_request(), limiter.slot(), 1, Progress()), late())

    asyncio.run(asyncio.wait_for(run(), 20))
    assert len(other.requests) == 1
    assert [round(wait) for wait in time.waits] == [30]
    assert [round(wait) for wait in time.pauses] == [30], "the newcomer waits too"


def test_an_error_of_a_server_pauses_nobody_else(time: VirtualTime) -> None:
    limiter = Limiter(8)
    asked(fails("provider_error", retry_after=30.0), retries=1, limiter=limiter)
    asked(OK, limiter=limiter)
    assert time.pauses == []


# --- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("connections", [1, 3, 50])
def test_connections_are_the_limit_and_are_used(connections: int) -> None:
    model = FakeModel(lambda request, number: OK)
    limiter = Limiter(connections)

    async def run() -> None:
        asks = (ask(model, make_request(), limiter.slot(), 0, Progress()) for _ in range(60))
        await asyncio.gather(*asks)

    asyncio.run(run())
    assert model.max_in_flight == connections


def test_a_waiting_retry_holds_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[Answer]:
        second_asked = asyncio.Event()
        limiter = Limiter(1)

        async def sleep(seconds: float) -> None:
            await second_asked.wait()

        def answer(request: Any, number: int) -> Any:
            if number == 2:
                second_asked.set()
            return fails("provider_error") if number == 1 else OK

        monkeypatch.setattr(retry_module, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": sleep}))
        model = FakeModel(answer)
        asks = (ask(model, make_request(), limiter.slot(), 1, Progress()) for _ in range(2))
        return list(await asyncio.wait_for(asyncio.gather(*asks), 20))

    assert [answer.outcome for answer in asyncio.run(run())] == [OK, OK]
