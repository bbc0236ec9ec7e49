"""What a server does without saying so is noted: a cut prompt, an answer shorter than was asked for.

Models without a tokenizer report prompt tokens as a server would that cuts, drops whole turns, or
takes everything; a short prompt shows how dense the model's tokens are.
"""

from __future__ import annotations

from typing import Any

import pytest

from agentworldbench.engine.budget import Asked
from agentworldbench.engine.fitting import RESERVE, estimate_tokens
from agentworldbench.records import Request, Usage
from tests.helpers.fake_model import FakeModel, says
from tests.helpers.within import asked_for, chat, within

CUT = "the server read fewer prompt tokens than were sent: it cut the prompt"
MAYBE_CUT = "the prompt looks longer than what the server read: it may have been cut"


def test_a_prompt_that_the_server_cut_is_noted() -> None:
    model = FakeModel(
        lambda request, number: says("ok", usage=Usage(prompt_tokens=4096, completion_tokens=1))
    )
    asked = within(model, chat(now=240_000))
    assert isinstance(asked, Asked)
    assert asked.notes == (CUT,)


def test_an_answer_that_ended_before_its_budget_is_noted() -> None:
    usage = Usage(prompt_tokens=50, completion_tokens=20)
    model = FakeModel(lambda request, number: says("ok", finish_reason="length", usage=usage))
    asked = within(model, chat(), max_tokens=64)
    assert isinstance(asked, Asked)
    assert asked.notes == ("the server ended the answer before the tokens that were asked for",)


def test_an_answer_as_long_as_the_endpoint_gives_is_not_noted() -> None:
    usage = Usage(prompt_tokens=50, completion_tokens=20)
    lowered = {"max_tokens": "max_completion_tokens", "max_completion_tokens": 20}
    model = FakeModel(
        lambda request, number: says("ok", finish_reason="length", usage=usage, adapted=lowered)
    )
    for _ in range(2):
        asked = within(model, chat(), max_tokens=64)
        assert isinstance(asked, Asked)
        assert asked.notes == ()
    assert asked_for(model) == [64, 20], "learned"
    assert (model.limits.max_output, model.limits.max_output_from) == (20, "the server's refusal")


def test_an_exchange_as_asked_is_not_noted() -> None:
    usage = Usage(prompt_tokens=40, completion_tokens=64)
    model = FakeModel(lambda request, number: says("ok", finish_reason="length", usage=usage))
    asked = within(model, chat(), max_tokens=64)
    assert isinstance(asked, Asked)
    assert asked.notes == ()


def reading(context: int | None, share: float, most: int) -> FakeModel:
    """A server whose prompts have `share` tokens for each one estimated, and which reads `most` of them."""

    def answer(request: Request, number: int) -> Any:
        tokens = round(share * estimate_tokens(request.messages))
        return says("ok", usage=Usage(prompt_tokens=min(tokens, most), completion_tokens=1))

    model = FakeModel(answer)
    model.limits.learn_context(context, "a test")
    return model


@pytest.mark.parametrize(
    ("context", "share", "most", "noted"),
    [
        # All was read: as long as usual, denser, much less dense, in a wide context.
        (4096, 0.5, 4096, False),
        (8192, 1.0, 8192, False),
        (4096, 0.4, 4096, False),
        (100_000, 1.0, 100_000, False),
        (None, 1.0, 100_000, False),
        # Half of the context was read, or what is left without some turns.
        (4096, 1.0, 2050, True),
        (4096, 1.0, 3900, True),
        (4096, 0.8, 2050, True),
        (None, 1.0, 2050, True),
        # What was read fills the context.
        (4096, 2.0, 4096 - RESERVE + 1, True),
    ],
)
def test_a_prompt_that_may_have_been_cut_is_noted(
    context: int | None, share: float, most: int, noted: bool
) -> None:
    model = reading(context, share, most)
    short = within(model, chat(now=1000), max_tokens=600)
    long = within(model, chat(now=24_000), max_tokens=600)  # about 6,000 tokens
    assert isinstance(short, Asked)
    assert isinstance(long, Asked)
    assert short.notes == ()
    assert long.notes == ((MAYBE_CUT,) if noted else ())


@pytest.mark.parametrize(("characters", "share", "notes"), [(21_000, 0.6, ()), (24_000, 1.0, (MAYBE_CUT,))])
def test_without_a_shorter_prompt_the_usual_density_counts(
    characters: int, share: float, notes: tuple[str, ...]
) -> None:
    asked = within(reading(4096, share, 3900), chat(now=characters), max_tokens=600)
    assert isinstance(asked, Asked)
    assert asked.notes == notes
