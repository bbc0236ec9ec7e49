"""`openai-api/NAME`: what every answer of a server becomes.

The servers' behaviours stand in `tests/cases/models`; each must come out as a completion or a typed
failure after exactly one request (no hidden retries), with the key in no message. Below that: what
is sent, and how refused parameters are learned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import CredentialsError
from agentworldbench.models import Connection, create_model
from agentworldbench.models import adapt as adapt_module
from agentworldbench.models.waiting import NONSENSE, retry_after
from agentworldbench.records import Completion, Sampling
from tests.helpers.asking import (
    KEY,
    TASKS,
    Talk,
    ask_many,
    ask_once,
    assert_outcome,
    assert_read,
    cases,
    make_request,
    reply_of,
    set_key,
)
from tests.helpers.scripted_server import ChatCall, Reply, refuse_parameter, together
from tests.helpers.virtual_loop import run_virtual

MODEL = "openai-api/tiny"
OK = Reply(content="total 2")
USE_OTHER = "Use 'max_completion_tokens' instead."


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch)
        yield


@pytest.fixture(scope="module")
def talk(key: None) -> Iterator[Talk]:
    with Talk(MODEL) as talking:
        yield talking


def ok(call: ChatCall) -> Reply:
    return OK


@pytest.mark.parametrize("case", cases("models/replies.yaml"))
def test_reply(case: dict[str, Any], talk: Talk) -> None:
    outcome, calls = talk.ask(lambda call: reply_of(case))
    assert len(calls) == 1
    assert_outcome(case, outcome)
    assert_read(case, outcome)


@pytest.mark.parametrize("case", cases("models/errors.yaml"))
def test_refusal(case: dict[str, Any], talk: Talk) -> None:
    outcome, calls = talk.ask(lambda call: reply_of(case))
    assert len(calls) == 1
    assert_outcome(case, outcome)


@given(st.text(st.characters(codec="latin-1"), max_size=30) | st.integers().map(str) | st.floats().map(str))
def test_retry_after_is_none_or_in_bounds(value: str) -> None:
    for name in ("Retry-After", "retry-after-ms"):
        wait = retry_after({name: value})
        assert wait is None or 0 <= wait <= NONSENSE


def test_retry_after_dates_count_from_now() -> None:
    now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    header = {"Retry-After": format_datetime(now + timedelta(seconds=4), usegmt=True)}
    assert retry_after(header, now) == 4.0
    assert retry_after({"Retry-After": "Sun, 01 Mar 2026 12:00:09 -0000"}, now) == 9.0


# --- what is sent ----------------------------------------------------------------------------


def test_the_body_holds_what_was_set_and_nothing_else(talk: Talk) -> None:
    _, calls = talk.ask(ok)
    (call,) = calls
    assert call.body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "You are a shell."},
            {"role": "user", "content": "What does `ls` print?"},
        ],
    }
    assert call.headers["authorization"] == f"Bearer {KEY}"


def test_parameters_arrive_with_their_types_and_extras_as_given(talk: Talk) -> None:
    extra = {
        "top_k": 20,
        "stop": ["\n\n"],
        "reasoning_effort": "high",
        "chat_template_kwargs": {"enable_thinking": False},
        "temperature": 0.25,
    }
    sampling = Sampling(temperature=0.6, top_p=0.9, seed=0, max_tokens=64, extra=extra)
    _, calls = talk.ask(ok, make_request(sampling, json_schema={"type": "object"}))
    (call,) = calls
    sent = {name: value for name, value in call.body.items() if name not in ("model", "messages")}
    schema = {"name": "verdict", "schema": {"type": "object"}, "strict": True}
    assert sent == {
        "top_p": 0.9,
        "seed": 0,
        "max_tokens": 64,
        "response_format": {"type": "json_schema", "json_schema": schema},
        **extra,
    }
    assert [type(sent[name]) for name in ("max_tokens", "seed", "top_k")] == [int, int, int]


def test_messages_arrive_word_for_word(talk: Talk) -> None:
    text = "  \n\x1b[31mé\u2028\U0001f600<think>\x00\r\n  "
    _, calls = talk.ask(ok, make_request(text=text))
    assert calls[0].last_user == text


def test_no_key_means_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    _, server = ask_once(MODEL, ok)
    assert server.calls[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize("variable", ["AWB_API_KEY", "OPENAI_API_KEY"])
def test_keys_lose_the_blanks_around_them(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, f" {KEY}\n")
    _, server = ask_once(MODEL, ok)
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["sk-to…ken", "sk-one\nsk-two", "sk-\x7f"])
def test_a_key_that_no_header_can_hold_is_refused_at_once(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWB_API_KEY", key)
    with pytest.raises(CredentialsError, match="AWB_API_KEY") as caught:
        create_model(MODEL, Connection(base_url="http://127.0.0.1:9/v1"), TASKS)
    assert key not in str(caught.value)


# --- parameters that a server refuses --------------------------------------------------------


NO_TEMPERATURE = "temperature not accepted by the endpoint: sent without"
RENAMED = "max_tokens sent as max_completion_tokens"
REFUSALS = {
    "max_tokens": (refuse_parameter("max_tokens", USE_OTHER, ok), (RENAMED,), {"temperature", "max_completion_tokens"}),
    "temperature": (
        refuse_parameter("temperature", "Only the default (1) is supported.", ok, allowed=(1,)),
        (NO_TEMPERATURE,),
        {"max_tokens"},
    ),
    "both": (
        refuse_parameter("temperature", "", refuse_parameter("max_tokens", USE_OTHER, ok)),
        (RENAMED, NO_TEMPERATURE),
        {"max_completion_tokens"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_lessons_are_learned_once_with_many_in_flight(name: str) -> None:
    script, notes, names = REFUSALS[name]
    outcomes, server = ask_many(MODEL, script, 16, Sampling(temperature=0.6, max_tokens=77))
    assert [outcome.notes for outcome in outcomes] == [notes] * 16
    assert len(server.calls) == 16 + len(notes), "each lesson costs exactly one refused request"
    last = server.calls[-1].body
    assert last.keys() - {"model", "messages"} == names
    assert 77 in (last.get("max_tokens"), last.get("max_completion_tokens")), "the budget is kept"


def test_what_cannot_be_adapted_is_a_failure_after_one_request() -> None:
    script = refuse_parameter("max_completion_tokens", "", refuse_parameter("max_tokens", USE_OTHER, ok))
    outcomes, server = ask_many(MODEL, script, 1, Sampling(max_tokens=5))
    assert outcomes[0].failure.kind == "bad_request"
    assert [("max_tokens" in call.body) for call in server.calls] == [True, False]


def test_an_overflow_that_names_max_tokens_is_no_lesson() -> None:
    message = (
        "maximum context length is 8192 tokens, you requested 9000; max_tokens is not supported so large"
    )
    reply = Reply(status=400, error={"message": message})
    outcomes, server = ask_many(MODEL, lambda call: reply, 1, Sampling(max_tokens=5))
    assert outcomes[0].failure.kind == "context_overflow"
    assert len(server.calls) == 1


def test_a_slow_first_answer_does_not_hold_the_others_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapt_module, "FIRST_REQUEST_HEAD_START", 0.05)
    outcomes, server = ask_many(MODEL, together(8, ok), 8, Sampling())
    assert all(isinstance(outcome, Completion) for outcome in outcomes)
    assert server.max_in_flight == 8


@pytest.mark.parametrize(("quickest", "expected"), [(0.02, 0.04), (3.0, 5.0), (None, 5.0)])
def test_the_others_wait_as_long_as_a_refusal_may_take(quickest: float | None, expected: float) -> None:
    """A server that answers small questions in 20 ms has refused after 40, if it will."""

    async def work() -> float:
        adaptation, loop = adapt_module.Adaptation(), asyncio.get_running_loop()
        if quickest is not None:
            adaptation.answered_within(quickest)
            adaptation.answered_within(9.0)

        async def first() -> None:
            async with adaptation.first_alone():
                await asyncio.sleep(100)

        asking = asyncio.create_task(first())
        await asyncio.sleep(0)
        began = loop.time()
        async with adaptation.first_alone():
            waited = loop.time() - began
        await asking
        return waited

    assert run_virtual(work()) == pytest.approx(expected)
