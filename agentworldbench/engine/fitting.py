"""What is known of a model and of a prompt, to the request that fits: answer's length, turns kept.

Rule: asked = min(--max-tokens, context - prompt tokens - 64, the model's longest answer), and nothing
is sent where that is below --min-output (or below --max-tokens, if that is less). The prompt's length
is what a refusal has named, else what the model's own tokenizer counts, else an estimate. An estimate
shrinks the answer but never refuses a prompt that might fit. With the policy `drop-oldest` the oldest
turns go first, as few as possible; the system prompt and the current turn stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agentworldbench.models import Model
from agentworldbench.prompts import messages_json
from agentworldbench.records import ContextLimit, Failure, FailureKind, Message, Request
from agentworldbench.run_record import ContextPolicy
from agentworldbench.texts import count_text

RESERVE: Final = 64
"""Tokens kept free beside prompt and answer."""
CHARACTERS: Final = 12
"""No tokenizer spends less than one token on so many characters of these texts: what is over-long by
this measure is not sent, and a server that reports fewer has cut the prompt."""
TEMPLATE: Final = 2048
"""More tokens than any chat template adds of its own."""

Source = Literal["counted", "estimated", "refusal"] | None
"""How a prompt's length is known (None: nobody reads it)."""


@dataclass(frozen=True)
class Room:
    """What may be spent on one sample: --min-output in tokens, and what becomes of an over-long prompt."""

    min_output: int
    policy: ContextPolicy = "error"

    def floor(self, wanted: int | None) -> int:
        """Tokens of the shortest answer worth having, where `wanted` are the most."""
        return self.min_output if wanted is None else min(self.min_output, wanted)


@dataclass(frozen=True)
class Fitted:
    """A request that fits as far as is known: its prompt tokens, how they are known, turns left out.

    `bounds` are the context and the longest prompt that it was fitted to. `guessed`: it asks for less
    than what is believed to fit, since a refusal did not say how much does.
    """

    request: Request
    prompt_tokens: int
    prompt_tokens_from: Source
    bounds: tuple[int | None, int | None] = (None, None)
    dropped_turns: int = 0
    guessed: bool = False

    @property
    def asked(self) -> int | None:
        """The longest answer that it allows."""
        return self.request.sampling.max_tokens

    def smaller_than(self, other: Fitted) -> bool:
        """Whether it leaves out more of the history, or no less and asks for a shorter answer."""
        if self.dropped_turns != other.dropped_turns:
            return self.dropped_turns > other.dropped_turns
        return self.asked is not None and (other.asked is None or self.asked < other.asked)


@dataclass(frozen=True)
class Unsent:
    """Nothing was sent: the failure (context_overflow), and the prompt's length as it is known."""

    failure: Failure
    prompt_tokens: int
    prompt_tokens_from: Source


@dataclass
class Told:
    """What the refusals of one sample's requests have said of its prompt.

    `prompt` and `least` are (turns left out, tokens that the prompt then has, or has at least);
    `longest` bounds the prompt alone; `density` is how many tokens there are for each one estimated.
    """

    prompt: tuple[int, int] | None = None
    least: tuple[int, int] | None = None
    longest: int | None = None
    density: float = 1.0

    def hear(self, limit: ContextLimit, refused: Fitted) -> bool:
        """Take over what the refusal of a request says; whether it names the prompt's length."""
        messages = refused.request.messages
        estimate = max(estimate_tokens(messages), 1)
        if limit.prompt_only:
            self.longest = smaller(self.longest, limit.context)
        prompt = None if limit.at_least else limit.prompt
        if limit.total is not None and refused.asked is not None:
            prompt = limit.total - refused.asked
        if prompt is not None and is_possible(prompt, messages):
            self.prompt, self.density = (refused.dropped_turns, prompt), prompt / estimate
            return True
        if limit.at_least and limit.prompt is not None and limit.prompt <= at_most(messages) + TEMPLATE:
            self.least = (refused.dropped_turns, limit.prompt)
            self.density = max(self.density, limit.prompt / estimate)
        return False


async def fit(model: Model, request: Request, room: Room, told: Told) -> Fitted | Unsent:
    """The longest request that fits by all that is known now."""
    if model.local and model.batch is None:
        return Fitted(request, 0, None)
    context, wanted = model.limits.context, most(model, request)
    bounds = (context, told.longest)
    if bounds == (None, None) or _fits_for_certain(request, wanted, bounds):
        return Fitted(with_room(request, wanted), estimated(request), "estimated", bounds)
    floor = room.floor(wanted)
    longest = smaller(None if context is None else context - floor, told.longest)
    assert longest is not None, "one of the two bounds is known"
    shorter, turns = request, 0
    while True:
        prompt, source = await _length(model, shorter, turns, told)
        if prompt + RESERVE <= longest:
            break
        more = _next_to_drop(request, turns, prompt, source, longest)
        fewer = without_oldest(request, more) if room.policy == "drop-oldest" else None
        if fewer is None:
            least = told.least[1] if told.least and told.least[0] == turns else 0
            if source != "estimated" or max(at_least(shorter.messages), least) + RESERVE > longest:
                return _unsent(prompt, source, floor, context)
            break
        shorter, turns = fewer, more
    left = None if context is None else max(context - prompt - RESERVE, floor)
    return Fitted(with_room(shorter, smaller(wanted, left)), prompt, source, bounds, turns)


async def _length(model: Model, request: Request, turns: int, told: Told) -> tuple[int, Source]:
    """Tokens of a prompt without its `turns` oldest turns."""
    if told.prompt is not None and told.prompt[0] == turns:
        return told.prompt[1], "refusal"
    counted = await model.count(request)
    if counted is not None and is_possible(counted, request.messages):
        return counted, "counted"
    return round(estimated(request) * told.density), "estimated"


def _next_to_drop(request: Request, turns: int, prompt: int, source: Source, longest: int) -> int:
    """How many turns to leave out next, when `turns` of them leave a prompt that is too long.

    One more after an estimate, which costs nothing. A count is asked for where the prompt will nearly
    fit by the share of its estimate, from the side of too few turns: those that could stay should.
    """
    if source == "estimated":
        return turns + 1
    now = without_oldest(request, turns) or request
    density = prompt / max(estimate_tokens(now.messages), 1)
    enough = turns + 1
    while (fewer := without_oldest(request, enough)) is not None:
        if density * estimate_tokens(fewer.messages) + RESERVE <= longest:
            break
        enough += 1
    return max(enough - 1, turns + 1)


def _unsent(prompt: int, source: Source, floor: int, context: int | None) -> Unsent:
    about = "about " if source == "estimated" else ""
    leaves = count_text(prompt, "prompt token leaves", "prompt tokens leave")
    whole = "the context" if context is None else f"a context of {context:,}"
    message = f"{about}{leaves} less than {floor:,} of {whole}"
    return Unsent(Failure(kind=FailureKind.CONTEXT_OVERFLOW, message=message), prompt, source)


def _fits_for_certain(request: Request, wanted: int | None, bounds: tuple[int | None, int | None]) -> bool:
    context, longest = bounds
    if context is None or wanted is None or longest is not None:
        return False
    # What is written has a frame around each message and is never shorter than the texts.
    longest = len(request.json_text) if request.json_text else at_most(request.messages)
    return longest + wanted + RESERVE <= context


@dataclass(frozen=True)
class Written:
    """Messages as compact JSON, its hash, and the estimate of their tokens: long texts are gone through once."""

    json_text: bytes
    sha256: str
    tokens: int

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Written:
        """Write messages."""
        text = messages_json(messages)
        return cls(text, hashlib.sha256(text).hexdigest(), estimate_tokens(messages))

    def into(self, request: Request) -> Request:
        """The request whose messages these are, with what is known of them."""
        known = {"json_text": self.json_text, "prompt_sha256": self.sha256, "estimate": self.tokens}
        return request.model_copy(update=known)


NOT_WRITTEN: Final = {"json_text": None, "prompt_sha256": None, "estimate": None}
"""What is known of messages that were changed."""


def estimated(request: Request) -> int:
    """The estimate of a request's prompt."""
    return estimate_tokens(request.messages) if request.estimate is None else request.estimate


def estimate_tokens(messages: Sequence[Message]) -> int:
    """About one token for 4 ASCII characters and for 1.25 others, and 4 for each message's frame."""
    total = 0.0
    for message in messages:
        ascii_only = message.content.isascii()  # known without a look at the text
        plain = len(message.content if ascii_only else message.content.encode("ascii", "ignore"))
        total += 4 + plain / 4 + (len(message.content) - plain) / 1.25
    return round(total)


def at_most(messages: Sequence[Message]) -> int:
    """More tokens than any common tokenizer makes of these texts."""
    return sum(16 + len(message.content.encode()) for message in messages)


def at_least(messages: Sequence[Message]) -> int:
    """Fewer tokens than any common tokenizer makes of these texts."""
    return sum(len(message.content) for message in messages) // CHARACTERS


def is_possible(tokens: int, messages: Sequence[Message]) -> bool:
    """Whether a prompt of these texts can have so many tokens: servers also tell nonsense."""
    return at_least(messages) <= tokens <= at_most(messages) + TEMPLATE


def without_oldest(request: Request, turns: int) -> Request | None:
    """The request without its `turns` oldest turns; None when it has not so many before the current one."""
    system = tuple(message for message in request.messages if message.role == "system")
    rest = request.messages[len(system) :]
    if 2 * turns >= len(rest):
        return None
    shorter = {"messages": system + rest[2 * turns :], "read_again": ()}
    return request.model_copy(update=shorter | NOT_WRITTEN)


def most(model: Model, request: Request) -> int | None:
    """The longest answer that is wanted and that the model gives; None: the server's default."""
    return smaller(request.sampling.max_tokens, model.limits.max_output)


def with_room(request: Request, max_tokens: int | None) -> Request:
    """The request for an answer of at most so many tokens."""
    if request.sampling.max_tokens == max_tokens:
        return request
    sampling = request.sampling.model_copy(update={"max_tokens": max_tokens})
    return request.model_copy(update={"sampling": sampling})


def smaller(one: int | None, other: int | None) -> int | None:
    """The smaller of two numbers, as far as they are known."""
    return min((value for value in (one, other) if value is not None), default=None)
