"""The token budget: how long an answer may be, which prompts are sent, and what a refusal teaches.

`ask_within` is driven with models whose context, tokenizer and refusals a test scripts; nothing
is sent. Prompts count one token a character here, so the numbers can be checked by eye.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.engine.budget import Asked
from agentworldbench.engine.fitting import RESERVE, Unsent, estimate_tokens
from agentworldbench.records import ContextLimit, Failure, Message, Request, Usage
from tests.helpers.fake_model import FakeModel, fails, says
from tests.helpers.within import LEAST, answering, asked_for, characters, chat, counting, within

# --- counted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "context", "most", "longest", "expected"),
    [
        (1000, None, 32768, None, 32768),
        (1000, None, None, None, None),
        (1000, 100_000, 32768, None, 32768),
        (1000, 4096, 32768, None, 4096 - 1000 - RESERVE),
        (1000, 4096, None, None, 4096 - 1000 - RESERVE),
        (1000, 4096, 2000, None, 2000),
        (1000, 4096, 32768, 600, 600),
        (1000, None, None, 600, 600),
        (1000, 1000 + RESERVE + LEAST, 32768, None, LEAST),
        (1000, 1000 + RESERVE + LEAST - 1, 32768, None, "context_overflow"),
        (1000, 10, 32768, None, "context_overflow"),
    ],
)
def test_a_counted_prompt_leaves_the_rest_of_the_context(
    prompt: int, context: int | None, most: int | None, longest: int | None, expected: int | str | None
) -> None:
    model = counting(answering(context))
    model.limits.learn_output(longest, "a test")
    asked = within(model, chat(now=prompt - 100), most)
    if expected == "context_overflow":
        assert isinstance(asked, Unsent)
        assert (asked.failure.kind, model.requests) == ("context_overflow", [])
        assert (asked.prompt_tokens, asked.prompt_tokens_from) == (prompt, "counted")
        assert f"{prompt:,} prompt tokens" in asked.failure.message
        assert f"{context:,}" in asked.failure.message
    else:
        assert isinstance(asked, Asked)
        assert asked_for(model) == [expected]


def test_a_prompt_that_fits_by_any_measure_is_not_counted() -> None:
    model = answering(100_000)
    model.tokens = lambda request: pytest.fail("counted")
    asked = within(model, chat(now=1000))
    assert isinstance(asked, Asked)
    assert asked.fitted.prompt_tokens_from == "estimated"


@given(st.text(max_size=3000), st.integers(1, 50_000), st.integers(1, 50_000))
@settings(deadline=None)
def test_what_is_asked_for_fits(text: str, most: int, context: int) -> None:
    model = counting(answering(context))
    asked = within(model, (Message(role="user", content=text),), most)
    if isinstance(asked, Unsent):
        assert context - len(text) - RESERVE < LEAST
    else:
        (allowed,) = asked_for(model)
        assert allowed is not None
        assert allowed == min(most, context - len(text) - RESERVE) or len(text) + allowed + RESERVE <= context


# --- estimated: the server decides -----------------------------------------------------------


def refusing(context: int, tokens: Callable[[Request], int], told: str) -> FakeModel:
    """A server with a context that it does not tell: it refuses, with `told` of the two numbers."""

    def answer(request: Request, number: int) -> Any:
        prompt, wanted = tokens(request), request.sampling.max_tokens or 0
        if prompt + wanted <= context:
            return says("ok", usage=Usage(prompt_tokens=prompt, completion_tokens=1))
        named = {"context": context, "prompt": prompt, "total": prompt + wanted}
        limit = ContextLimit(**{name: named[name] for name in told.split() if name in named})
        return fails("context_overflow", status=400, limit=limit)

    return FakeModel(answer)


def in_characters(request: Request) -> int:
    return characters(request.messages)


ABOUT_8000 = 8000 - estimate_tokens(chat(now=2900)) - RESERVE
"""Asked for in a context of 8,000 by the estimate of a prompt that has 3,000 tokens in truth."""


@pytest.mark.parametrize(
    ("told", "known", "sent", "how"),
    [
        ("context prompt", None, [32768, 8000 - 3000 - RESERVE], "refusal"),
        ("context prompt", 8000, [ABOUT_8000, 4936], "refusal"),
        ("context", None, [32768, ABOUT_8000, ABOUT_8000 // 2], "estimated"),
        ("total context", None, [32768, 8000 - 3000 - RESERVE], "refusal"),
        ("nothing", None, [32768, 8192, 2048], "estimated"),
        ("nothing", 8000, [ABOUT_8000, ABOUT_8000 // 2], "estimated"),
        ("prompt", None, [32768, 8192, 2048], "estimated"),
    ],
)
def test_a_refusal_for_length_is_followed_by_smaller_requests(
    told: str, known: int | None, sent: list[int], how: str
) -> None:
    model = refusing(8000, in_characters, told)
    model.limits.learn_context(known, "a test")
    asked = within(model, chat(now=2900))
    assert isinstance(asked, Asked)
    assert asked_for(model) == sent
    assert not isinstance(asked.answer.outcome, Failure)
    assert [attempt.outcome for attempt in asked.attempts] == ["context_overflow"] * (len(sent) - 1) + ["ok"]
    assert asked.fitted.prompt_tokens_from == how
    assert model.limits.context == (8000 if "context" in told else known)


def test_what_one_refusal_teaches_holds_for_the_next_sample() -> None:
    model = refusing(8000, lambda request: characters(request.messages) // 4, "context prompt")
    within(model, chat(now=2900))
    within(model, chat(now=2900))
    assert asked_for(model) == [32768, 8000 - 750 - RESERVE, 8000 - estimate_tokens(chat(now=2900)) - RESERVE]
    assert model.limits.context_from == "the server's refusal"


@pytest.mark.parametrize("counts", [True, False])
def test_a_lower_bound_is_no_length_of_the_prompt(counts: bool) -> None:
    """vLLM 0.17 and 0.24 stop counting one token after what fits beside the answer that is asked for."""

    def answer(request: Request, number: int) -> Any:
        prompt, wanted = in_characters(request), request.sampling.max_tokens or 0
        if prompt + wanted <= 8000:
            return says("ok", usage=Usage(prompt_tokens=prompt, completion_tokens=1))
        least = ContextLimit(context=8000, prompt=8000 - wanted + 1, at_least=True)
        return fails("context_overflow", status=400, limit=least)

    model = FakeModel(answer)
    if counts:
        counting(model)
    asked = within(model, chat(now=2900), max_tokens=7000)
    assert isinstance(asked, Asked)
    assert not isinstance(asked.answer.outcome, Failure)
    by_estimate = 8000 - 1001 - RESERVE  # the least that it is, above the estimate of 758
    assert asked_for(model) == ([7000, 4936] if counts else [7000, by_estimate, by_estimate // 2])
    assert asked.fitted.prompt_tokens_from == ("counted" if counts else "estimated")


def test_a_lower_bound_above_the_context_is_an_overflow() -> None:
    limit = ContextLimit(context=2000, prompt=2001, at_least=True)
    model = FakeModel(lambda request, number: fails("context_overflow", status=400, limit=limit))
    asked = within(model, chat(now=2900))
    assert isinstance(asked, Asked)
    assert asked_for(model) == [32768]
    assert model.limits.context == 2000


def bounding_prompts(longest: int) -> FakeModel:
    """A server that bounds the prompt alone."""

    def answer(request: Request, number: int) -> Any:
        prompt = in_characters(request)
        limit = ContextLimit(context=longest, prompt=prompt, prompt_only=True)
        return says("ok") if prompt <= longest else fails("context_overflow", status=400, limit=limit)

    return FakeModel(answer)


def test_a_bound_of_the_prompt_is_no_context() -> None:
    model = bounding_prompts(2000)
    asked = within(model, chat(now=2900))
    assert isinstance(asked, Asked)
    assert isinstance(asked.answer.outcome, Failure)
    assert asked_for(model) == [32768], "no shorter answer helps"
    assert model.limits.context is None


@pytest.mark.parametrize("known", [None, 4000])
def test_turns_are_dropped_until_the_prompt_alone_fits(known: int | None) -> None:
    model = bounding_prompts(2000)
    model.limits.learn_context(known, "a test")
    asked = within(model, chat(*[400] * 8), policy="drop-oldest")
    assert isinstance(asked, Asked)
    assert not isinstance(asked.answer.outcome, Failure)
    assert asked.fitted.dropped_turns == 4
    left = 32768 if known is None else known - asked.fitted.prompt_tokens - RESERVE
    assert (asked_for(model)[-1], len(model.requests)) == (left, 2), "the bound takes nothing from the answer"


def test_a_prompt_that_the_server_finds_too_long_is_an_overflow() -> None:
    model = refusing(3000, in_characters, "context prompt")
    asked = within(model, chat(now=2900))
    assert isinstance(asked, Asked)
    assert isinstance(asked.answer.outcome, Failure)
    assert asked.answer.outcome.kind == "context_overflow"
    assert asked_for(model) == [32768]


@pytest.mark.parametrize("named", [9, RESERVE + LEAST - 1])
def test_a_context_in_which_nothing_fits_is_not_believed(named: int) -> None:
    limit = ContextLimit(context=named)
    model = FakeModel(lambda request, number: fails("context_overflow", status=400, limit=limit))
    within(model, chat())
    assert asked_for(model) == [32768, 8192, 2048, 1024, LEAST]
    assert model.limits.context is None


def test_a_context_shorter_than_what_was_answered_is_not_believed() -> None:
    model = answering()
    model.limits.proven = 9000
    model.limits.learn_context(8000, "a refusal")
    assert model.limits.context is None


def test_a_hopeless_prompt_is_not_sent_on_an_estimate() -> None:
    model = answering(1000)
    asked = within(model, chat(now=12 * 1000))
    assert isinstance(asked, Unsent)
    assert model.requests == []


def test_an_estimate_that_is_too_high_does_not_keep_a_sample_from_being_sent() -> None:
    model = refusing(1500, lambda request: characters(request.messages) // 8, "context prompt")
    model.limits.learn_context(1500, "a test")
    asked = within(model, chat(now=6000))  # about 1,500 tokens by the estimate, 775 in truth
    assert isinstance(asked, Asked)
    assert not isinstance(asked.answer.outcome, Failure)


# --- drop-oldest -----------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [True, False])
def test_the_oldest_turns_go_first(counts: bool) -> None:
    tokens = in_characters if counts else (lambda request: characters(request.messages) // 4)
    size = 1 if counts else 4
    messages = chat(*[400 * size] * 8, system=100 * size, now=100 * size)  # 3,400 tokens
    model = refusing(2000, tokens, "context prompt")
    model.limits.learn_context(2000, "a test")
    if counts:
        counting(model)
    asked = within(model, messages, policy="drop-oldest")
    assert isinstance(asked, Asked)
    assert not isinstance(asked.answer.outcome, Failure)
    sent = model.requests[-1].messages
    dropped = asked.fitted.dropped_turns
    assert sent == (messages[0], *messages[1 + 2 * dropped :])
    assert dropped >= 5, "3,400 - 5 * 400 + 64 + 512 fits 2,000"
    assert dropped <= 6
    assert 2000 - tokens(model.requests[-1]) - RESERVE >= LEAST


def test_turns_are_dropped_by_the_number_that_a_refusal_names() -> None:
    model = refusing(2000, in_characters, "context prompt")
    model.limits.learn_context(2000, "a test")
    messages = chat(*[400] * 8)  # the estimate is a quarter: all seems to fit
    asked = within(model, messages, policy="drop-oldest")
    assert isinstance(asked, Asked)
    assert not isinstance(asked.answer.outcome, Failure)
    assert asked.fitted.prompt_tokens_from == "estimated", "by the ratio that the refusal gave"
    assert asked.fitted.dropped_turns >= 5
    assert len(model.requests) == 2


@pytest.mark.parametrize("counts", [True, False])
def test_without_history_there_is_nothing_to_drop(counts: bool) -> None:
    model = counting(answering(1000)) if counts else answering(1000)
    asked = within(model, chat(now=20_000), policy="drop-oldest")
    assert isinstance(asked, Unsent)
    assert asked.failure.kind == "context_overflow"


def test_wide_characters_count_more_tokens() -> None:
    assert estimate_tokens((Message(role="user", content="界" * 100),)) == 84
