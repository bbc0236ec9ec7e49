"""The token budget: how long an answer may be, and which prompts leave no room for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.engine.budget import RESERVE, allowed_output, estimate_tokens
from agentworldbench.records import (
    Failure,
    Message,
)

PROMPT = (Message(role="user", content="x" * 4000),)
TOKENS = 1004
BUDGETS: list[tuple[int | None, int | None, int, int | None]] = [
    # max_tokens, context, min_output, tokens to ask for (-1: context_overflow)
    (None, None, 512, None),
    (32768, None, 512, 32768),
    (100, 100_000, 512, 100),
    (32768, 4096, 512, 4096 - TOKENS - RESERVE),
    (None, 4096, 512, 4096 - TOKENS - RESERVE),
    (2000, 4096, 512, 2000),
    (
        32768,
        1300,
        512,
        512,
    ),  # by the estimate too little is left, by a low estimate enough: the server decides
    (32768, 1278, 512, -1),
    (32768, 1279, 512, 512),
    (32768, 10, 1, -1),
    (32768, 1068, 1, 1),
]


@pytest.mark.parametrize(("most", "context", "least", "expected"), BUDGETS)
def test_allowed_output(most: int | None, context: int | None, least: int, expected: int | None) -> None:
    assert estimate_tokens(PROMPT) == TOKENS
    allowed = allowed_output(PROMPT, most, context, least)
    if expected == -1:
        assert isinstance(allowed, Failure)
        assert allowed.kind == "context_overflow"
        assert str(context) in allowed.message
    else:
        assert allowed == expected


@pytest.mark.parametrize(
    ("most", "context", "longest", "expected"),
    [
        (32768, None, 16384, 16384),
        (100, None, 16384, 100),
        (None, None, 16384, None),
        (None, 4096, 100, 100),
        (32768, 4096, 2000, 2000),
        (32768, 4096, 4096, 4096 - TOKENS - RESERVE),
        (32768, 1300, 16, 16),
        (32768, 10, 16, -1),
    ],
)
def test_no_more_is_asked_for_than_the_model_can_give(
    most: int | None, context: int | None, longest: int, expected: int | None
) -> None:
    allowed = allowed_output(PROMPT, most, context, 512, longest)
    assert (-1 if isinstance(allowed, Failure) else allowed) == expected


@given(st.text(max_size=3000), st.integers(1, 50_000), st.integers(1, 50_000), st.integers(1, 2000))
def test_what_is_asked_for_fits(text: str, most: int, context: int, least: int) -> None:
    messages = (Message(role="user", content=text),)
    allowed = allowed_output(messages, most, context, least)
    if isinstance(allowed, Failure):
        assert context - estimate_tokens(messages) - RESERVE < least
    else:
        assert allowed is not None
        assert 1 <= allowed <= most
        assert allowed <= max(context - estimate_tokens(messages) - RESERVE, least)


def test_wide_characters_count_more_tokens() -> None:
    assert estimate_tokens((Message(role="user", content="界" * 100),)) == 84
