"""Asking within a budget: prompts of known lengths, and models whose limits a test scripts.

`within` drives `ask_within` with a `FakeModel`; nothing is sent. `counting` gives the model a
tokenizer of one token a character, so that the numbers can be checked by eye.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from agentworldbench.engine.budget import Asked, ask_within
from agentworldbench.engine.fitting import Room, Unsent
from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.models import Model
from agentworldbench.records import Message, Request, Sampling, Usage

from .asking import make_sample
from .fake_model import FakeModel, says

LEAST: Final = 512
"""Tokens of the shortest answer worth having."""


def chat(*turns: int, system: int = 100, now: int = 100) -> tuple[Message, ...]:
    """Messages whose contents are that long: system prompt, earlier turns (halves), the current turn."""
    history = [
        Message(role=role, content="x" * (size // 2)) for size in turns for role in ("user", "assistant")
    ]
    first = Message(role="system", content="s" * system)
    return (first, *history, Message(role="user", content="u" * now))


def characters(messages: Sequence[Message]) -> int:
    """Characters of all contents."""
    return sum(len(message.content) for message in messages)


def within(
    model: FakeModel,
    messages: Sequence[Message],
    max_tokens: int | None = 32768,
    policy: Any = "error",
) -> Asked | Unsent:
    """Ask once, within the model's limits."""
    request = Request(
        sample=make_sample(), messages=tuple(messages), sampling=Sampling(max_tokens=max_tokens)
    )

    async def asker(model: Model, request: Request) -> Answer:
        return await ask(model, request, Limiter(1).slot(), 0, Progress())

    return asyncio.run(ask_within(model, request, Room(LEAST, policy), asker))


def counting(model: FakeModel) -> FakeModel:
    """The model with a tokenizer of one token a character."""
    model.tokens = lambda request: characters(request.messages)
    return model


def answering(limit: int | None = None) -> FakeModel:
    """A model that answers all, with a context of `limit`."""
    model = FakeModel(lambda request, number: says("ok", usage=Usage()))
    model.limits.learn_context(limit, "a test")
    return model


def asked_for(model: FakeModel) -> list[int | None]:
    """`max_tokens` of each request that arrived."""
    return [request.sampling.max_tokens for request in model.requests]
