"""Refusals that say little or nothing, and numbers that cannot be: less is asked for, step by step.

Servers here hide their context. Some refuse with the context alone, some without numbers, some in
words that nobody knows. Prompts have one token a character unless a test says otherwise; their
estimate is about a quarter of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentworldbench.engine.budget import ASKED_AGAIN, GUESSED, Asked, ask_within
from agentworldbench.engine.fitting import RESERVE, TEMPLATE, Room, Unsent, at_most, estimate_tokens
from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.retry import MAX_REFUSED, Answer, ask
from agentworldbench.errors import ConfigError
from agentworldbench.models import Model
from agentworldbench.models.base import LEAST_CONTEXT, Limits
from agentworldbench.records import ContextLimit, Failure, Request, Sampling, Usage
from tests.helpers.asking import make_sample
from tests.helpers.fake_model import FakeModel, fails, says
from tests.helpers.within import LEAST, answering, asked_for, characters, chat, counting, within

Refuse = Callable[[int], Any]


def hiding(context: int, refuse: Refuse, dense: int = 1) -> FakeModel:
    """A server with a context that it does not tell; `refuse` makes its refusal from that number.

    `dense` are the characters of a token.
    """

    def answer(request: Request, number: int) -> Any:
        prompt = characters(request.messages) // dense
        if prompt + (request.sampling.max_tokens or 0) > context:
            return refuse(context)
        return says("ok", usage=Usage(prompt_tokens=prompt, completion_tokens=1))

    return FakeModel(answer)


def naming_it(context: int) -> Any:
    return fails("context_overflow", status=400, limit=ContextLimit(context=context))


def without_numbers(context: int) -> Any:
    return fails("context_overflow", status=400)


def in_unknown_words(context: int) -> Any:
    return fails("bad_request", status=400)


def together(model: FakeModel, samples: int, prompt: int = 2000) -> list[Asked | Unsent]:
    """So many samples at once, on one connection each."""
    request = Request(
        sample=make_sample(), messages=chat(now=prompt - 100), sampling=Sampling(max_tokens=32768)
    )
    limiter = Limiter(samples)

    async def asker(model: Model, request: Request) -> Answer:
        return await ask(model, request, limiter.slot(), 0, Progress())

    async def all_of_them() -> list[Asked | Unsent]:
        return await asyncio.gather(*(ask_within(model, request, Room(LEAST), asker) for _ in range(samples)))

    return asyncio.run(all_of_them())


def test_what_another_request_has_learned_meanwhile_counts() -> None:
    model = hiding(16_384, naming_it, dense=4)
    answers = together(model, 15)
    left = 16_384 - estimate_tokens(chat(now=1900)) - RESERVE
    assert model.max_in_flight == 15
    assert sorted(asked_for(model)) == [left] * 15 + [32768] * 15  # type: ignore[type-var]
    for asked in answers:
        assert isinstance(asked, Asked)
        assert not isinstance(asked.answer.outcome, Failure)
        assert asked.notes == ()


# --- without numbers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "known", "most", "sent"),
    [
        (20_000, False, 32768, [32768, 8192]),
        (5100, False, 32768, [32768, 8192, 2048]),
        (4000, False, 1900, [1900, 950]),
        (3600, False, 32768, [32768, 8192, 2048, 1024, LEAST]),
        (3600, True, 32768, [2778, 1389, 694, LEAST]),
        (4300, True, 32768, [3478, 1739, 869]),
        (4300, True, 1400, [1400, 700]),
        (3400, True, 400, [400]),
    ],
)
def test_less_is_asked_for_step_by_step(context: int, known: bool, most: int, sent: list[int]) -> None:
    model = hiding(context, without_numbers)
    if known:
        model.limits.learn_context(context, "a test")
    asked = within(model, chat(now=2900), most)  # 3,000 tokens, about 758 by the estimate
    assert isinstance(asked, Asked)
    assert asked_for(model) == sent
    assert not isinstance(asked.answer.outcome, Failure)
    assert asked.notes == ((GUESSED,) if len(sent) > 1 else ())
    assert asked.fitted.asked == sent[-1]


@pytest.mark.parametrize(
    ("context", "dropped", "requests"), [(3300, 0, 5), (2400, 3, 7), (1500, 7, 8), (900, 8, 9)]
)
def test_more_turns_are_dropped_each_time(context: int, dropped: int, requests: int) -> None:
    model = hiding(context, without_numbers)
    turns = [300] * 8  # 2,600 tokens with the rest
    asked = within(model, chat(*turns), policy="drop-oldest")
    assert isinstance(asked, Asked)
    assert not isinstance(asked.answer.outcome, Failure)
    assert asked.fitted.dropped_turns == dropped
    assert len(model.requests) == requests
    assert model.requests[-1].messages[1:] == chat(*turns)[1 + 2 * dropped :]


@pytest.mark.parametrize("policy", ["error", "drop-oldest"])
@pytest.mark.parametrize("refuse", [without_numbers, in_unknown_words, naming_it])
def test_steps_come_to_an_end(refuse: Refuse, policy: str) -> None:
    model = hiding(700, refuse)
    asked = within(model, chat(*[300] * 40, now=4000), policy=policy)
    assert isinstance(asked, Asked)
    assert isinstance(asked.answer.outcome, Failure)
    assert len(model.requests) <= 1 + ASKED_AGAIN
    sizes = [(len(one.messages), one.sampling.max_tokens or 0) for one in model.requests]
    assert sizes == sorted(set(sizes), reverse=True), "each request is smaller than the one before"


# --- in words that nobody knows --------------------------------------------------------------


def test_an_unknown_refusal_may_be_about_length() -> None:
    model = hiding(6000, in_unknown_words)
    first = within(model, chat(now=2900))
    assert isinstance(first, Asked)
    assert not isinstance(first.answer.outcome, Failure)
    assert first.notes == (GUESSED,)
    second = within(model, chat(now=2900))
    assert isinstance(second, Asked)
    assert not isinstance(second.answer.outcome, Failure)
    assert asked_for(model) == [32768, LEAST, 32768, 8192, 2048], "once it is known for what it is, by steps"


def test_a_refusal_of_something_else_costs_one_more_request() -> None:
    model = FakeModel(lambda request, number: fails("bad_request", status=400))
    for _ in range(2):
        asked = within(model, chat(), policy="drop-oldest")
        assert isinstance(asked, Asked)
        assert isinstance(asked.answer.outcome, Failure)
        assert asked.answer.outcome.kind == "bad_request"
        assert [attempt.outcome for attempt in asked.attempts] == ["bad_request"] * 2
    assert asked_for(model) == [32768, LEAST] * 2
    assert not model.limits.unexplained


@pytest.mark.parametrize(
    ("context", "counts", "most", "status"),
    [
        (100_000, False, 32768, 400),  # all would fit if the prompt were twice as long
        (4000, True, 32768, 400),  # the prompt's length is known
        (None, False, LEAST, 400),  # there is nothing less to ask for
        (None, False, 32768, 409),
    ],
)
def test_some_refusals_cannot_be_about_length(
    context: int | None, counts: bool, most: int, status: int
) -> None:
    model = FakeModel(lambda request, number: fails("bad_request", status=status))
    model.limits.learn_context(context, "a test")
    if counts:
        counting(model)
    within(model, chat(now=2900), most)
    assert len(model.requests) == 1


def test_a_refusal_that_is_tried_again_with_less_does_not_stop_the_run() -> None:
    model = hiding(6000, in_unknown_words)
    for asked in together(model, 3 * MAX_REFUSED):
        assert isinstance(asked, Asked)
        assert not isinstance(asked.answer.outcome, Failure)


def test_a_model_that_refuses_the_shortest_answers_too_stops_the_run() -> None:
    model = FakeModel(lambda request, number: fails("bad_request", status=400))
    with pytest.raises(ConfigError, match="every request so far was refused"):
        together(model, 3 * MAX_REFUSED)


# --- numbers that cannot be ------------------------------------------------------------------


def test_an_exchange_that_filled_the_context_proves_it() -> None:
    limits = Limits(proven=8000)
    limits.learn_context(7999, "a refusal")
    assert limits.context is None
    limits.learn_context(8000, "a refusal")
    assert limits.context == 8000


@pytest.mark.parametrize("told", [1, 10, LEAST_CONTEXT - 1])
def test_a_context_that_no_server_has_is_not_believed(told: int) -> None:
    limits = Limits()
    limits.hear_context(told, "/props n_ctx")
    assert (limits.context, limits.context_from) == (None, f"/props n_ctx says {told}: not believed")
    limits.hear_context(2048, "a refusal")
    limits.hear_context(told, "/props n_ctx")
    assert (limits.context, limits.context_from) == (2048, "a refusal")


@pytest.mark.parametrize("told", [None, LEAST_CONTEXT])
def test_other_contexts_are_believed(told: int | None) -> None:
    limits = Limits()
    limits.hear_context(told, "/props n_ctx")
    assert (limits.context, limits.context_from) == (told, told and "/props n_ctx")


MESSAGES = chat(now=2900)


@pytest.mark.parametrize(
    ("counted", "used"),
    [
        (1, False),
        (249, False),
        (250, True),
        (at_most(MESSAGES) + TEMPLATE, True),
        (at_most(MESSAGES) + TEMPLATE + 1, False),
        (10**9, False),
    ],
)
def test_a_count_that_cannot_be_is_not_used(counted: int, used: bool) -> None:
    model = answering(8000)
    model.tokens = lambda request: counted
    asked = within(model, MESSAGES)
    assert isinstance(asked, Asked)
    assert asked.fitted.prompt_tokens_from == ("counted" if used else "estimated")
    assert asked.fitted.prompt_tokens == (counted if used else estimate_tokens(MESSAGES))


@pytest.mark.parametrize("named", [1, 10**8])
def test_a_prompt_that_cannot_be_so_long_is_not_believed(named: int) -> None:
    limit = ContextLimit(context=8000, prompt=named)
    model = hiding(8000, lambda context: fails("context_overflow", status=400, limit=limit))
    asked = within(model, MESSAGES)
    assert isinstance(asked, Asked)
    assert not isinstance(asked.answer.outcome, Failure)
    assert asked.fitted.prompt_tokens_from == "estimated"


# --- the shortest answer worth having --------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "most", "sent"),
    [(1630, 100, [100]), (2048 - RESERVE - 100, 100, [100]), (2048 - RESERVE - 99, 100, []), (1630, 600, [])],
)
def test_no_more_room_is_needed_than_is_asked_for(prompt: int, most: int, sent: list[int]) -> None:
    model = counting(answering(2048))
    asked = within(model, chat(now=prompt - 100), most)
    assert isinstance(asked, Asked if sent else Unsent)
    assert asked_for(model) == sent


def test_the_number_that_was_sent_is_handed_over() -> None:
    model = FakeModel(lambda request, number: says("ok", adapted={"max_tokens": 4096}))
    asked = within(model, chat())
    assert isinstance(asked, Asked)
    assert asked.fitted.asked == 4096
