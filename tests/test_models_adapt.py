"""Output limits and what is recorded of adapted requests: wordings as data, servers that enforce them.

A limit is learned once, from either backend, and every answer made under it says so; messages about
the context teach nothing. `adapted` names each changed parameter with what was sent in its place.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.models import Connection, create_model
from agentworldbench.models.adapt import Adaptation
from agentworldbench.models.failures import kind_of
from agentworldbench.models.lengths import output_limit
from agentworldbench.records import CallFailure, Completion, Sampling
from tests.helpers.asking import TASKS, ask_many, ask_once, cases, make_request
from tests.helpers.scripted_server import ChatCall, Reply, Script, refuse_parameter

BACKENDS = ("openai-api/tiny", "openai/tiny")
ASKED = 32768
LIMITS = cases("models/output_limits.yaml")
USE_OTHER = "Use 'max_completion_tokens' instead."


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-tests-0123456789abcdef")


def ok(call: ChatCall) -> Reply:
    return Reply(content="total 2")


def at_most(limit: int, message: str, inner: Script = ok) -> Script:
    """400 with `message` while more than `limit` tokens are asked for."""

    def script(call: ChatCall) -> Reply:
        asked = call.body.get("max_tokens") or call.body.get("max_completion_tokens") or 0
        error = {"message": message, "type": "invalid_request_error", "code": None}
        return Reply(status=400, error=error) if asked > limit else inner(call)

    return script


@pytest.mark.parametrize("case", LIMITS)
def test_the_limit_in_a_message(case: dict[str, Any]) -> None:
    assert output_limit(case["message"]) == case["limit"]
    assert kind_of(400, case["message"]) == case.get("kind", "bad_request")


@pytest.mark.parametrize("model", BACKENDS)
@pytest.mark.parametrize("case", LIMITS)
def test_an_answer_is_asked_for_as_long_as_the_endpoint_allows(case: dict[str, Any], model: str) -> None:
    limit = case["limit"]
    script = at_most(limit or 0, case["message"])
    outcome, server = ask_once(model, script, make_request(Sampling(max_tokens=ASKED)))
    if limit is None:
        assert isinstance(outcome, CallFailure)
        assert (outcome.failure.kind, len(server.calls)) == (case["kind"], 1)
    else:
        assert isinstance(outcome, Completion), outcome
        assert [call.body["max_tokens"] for call in server.calls] == [ASKED, limit]
        assert outcome.adapted == {"max_tokens": limit}
        assert outcome.notes == (f"max_tokens lowered to {limit}, the most that the endpoint takes",)


@pytest.mark.parametrize("model", BACKENDS)
def test_the_limit_is_learned_once_with_many_in_flight(model: str) -> None:
    script = at_most(100, "the valid range of max_tokens is [1, 100]")
    outcomes, server = ask_many(model, script, 8, Sampling(max_tokens=200))
    assert [outcome.adapted for outcome in outcomes] == [{"max_tokens": 100}] * 8
    assert len(server.calls) == 9


@pytest.mark.parametrize("model", BACKENDS)
def test_a_limit_that_does_not_hold_is_believed_once(model: str) -> None:
    def ever_less(call: ChatCall) -> Reply:
        most = call.body["max_tokens"] - 1
        return Reply(status=400, error={"message": f"max_tokens must be less than or equal to {most}"})

    outcome, server = ask_once(model, ever_less, make_request(Sampling(max_tokens=9)))
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "bad_request"
    assert [call.body["max_tokens"] for call in server.calls] == [9, 8]


@pytest.mark.parametrize("model", BACKENDS)
def test_every_kind_of_change_is_recorded(model: str) -> None:
    script = refuse_parameter(
        "temperature",
        "",
        refuse_parameter("max_tokens", USE_OTHER, at_most(50, "supports at most 50 completion tokens")),
    )
    sampling = Sampling(temperature=0.6, top_p=0.9, max_tokens=80)
    outcome, server = ask_once(model, script, make_request(sampling))
    assert isinstance(outcome, Completion), outcome
    changes = {"max_tokens": "max_completion_tokens", "max_completion_tokens": 50, "temperature": None}
    assert outcome.adapted == changes
    assert list(outcome.adapted) == list(changes)
    assert len(outcome.notes) == 3
    sent = {name: value for name, value in server.calls[-1].body.items() if name not in ("model", "messages")}
    assert sent == {"max_completion_tokens": 50, "top_p": 0.9}


def test_only_what_a_request_held_is_recorded_as_changed() -> None:
    adaptation = Adaptation()
    assert adaptation.learn({"temperature": 1}, "temperature is not supported")
    assert adaptation.learn({"max_tokens": 9}, "max_tokens must be less than or equal to 5")
    assert adaptation.apply({"top_p": 1, "max_tokens": 5}).changes == {}
    assert adaptation.apply({"top_p": 1, "max_tokens": 5}).notes == ()
    assert adaptation.apply({"temperature": 1, "max_tokens": 6}).changes == {
        "max_tokens": 5,
        "temperature": None,
    }


@pytest.mark.parametrize("turns", range(6))
def test_an_interrupt_ends_those_too_who_wait_for_the_first_request(turns: int) -> None:
    """Whether it reaches them before, while or after the end of the first request lets them go on."""

    async def ask(adaptation: Adaptation) -> None:
        async with adaptation.first_alone():
            await asyncio.Event().wait()

    async def main() -> None:
        adaptation = Adaptation()
        first, *others = (asyncio.create_task(ask(adaptation)) for _ in range(3))
        for _ in range(3):
            await asyncio.sleep(0)
        first.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        for other in others:
            other.cancel()
        await asyncio.wait([first, *others], timeout=0.5)
        assert all(task.cancelled() for task in (first, *others))

    asyncio.run(main())


def test_a_first_request_that_ends_all_ends_the_others_unsent() -> None:
    sent: list[int] = []

    async def ask(adaptation: Adaptation, number: int) -> None:
        async with adaptation.first_alone():
            sent.append(number)
            await asyncio.sleep(0.01)
        raise LookupError(f"request {number}")

    async def main() -> None:
        adaptation = Adaptation()
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(ask(adaptation, number))

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(main())
    assert [str(problem) for problem in caught.value.exceptions] == ["request 0"]
    assert sent == [0]


@given(st.text(max_size=200) | st.from_regex(r"max_tokens.{0,40}(range|most|limit).{0,20}\d+"))
def test_a_limit_is_a_positive_number_or_none(message: str) -> None:
    limit = output_limit(message)
    assert limit is None or limit > 0


def test_the_longest_answer_is_known_from_the_price_table_alone() -> None:
    there = Connection(base_url="http://127.0.0.1:9/v1")
    assert create_model("openai/gpt-4o", Connection(), TASKS).limits.max_output == 16384
    for name, connection in (("openai/nameless", there), ("openai-api/gpt-4o", there)):
        assert create_model(name, connection, TASKS).limits.max_output is None
    assert create_model("baseline/empty", Connection(), TASKS).limits.max_output is None
