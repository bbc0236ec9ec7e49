"""How many tokens an answer may have, and whether a prompt can be sent at all.

Rule: asked = min(--max-tokens, context - prompt tokens - 64, the model's longest answer); below
--min-output the sample is `context_overflow` and is not sent. The prompt is counted by the model's
own tokenizer where there is a way to, and only where it matters. Where it can only be estimated,
the estimate shrinks the answer but never refuses a prompt that might fit: the server decides, and
after its refusal the sample is asked again within the numbers that it named, at last for the
shortest answer worth having. History is shortened only with the policy `drop-oldest`: the oldest turns go first, the system prompt and the
current turn stay, and the number of dropped turns is recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from agentworldbench.engine.retry import Answer
from agentworldbench.models import Model
from agentworldbench.models.base import Limits
from agentworldbench.records import (
    Attempt,
    Completion,
    ContextLimit,
    Failure,
    FailureKind,
    Message,
    Request,
    Usage,
)
from agentworldbench.run_record import PROMPT_CUT, PROMPT_PERHAPS_CUT, ContextPolicy

RESERVE: Final = 64
"""Tokens kept free beside prompt and answer."""
CHARACTERS: Final = 12
"""No tokenizer spends less than one token on so many characters of these texts: what is over-long by
this measure is not sent, and a server that reports fewer has cut the prompt."""

USUAL_DENSITY: Final = 0.75
"""Tokens for each one estimated, on the low side, while a model's own tokenizer has shown nothing."""
SHORTEST_CONTEXT: Final = 4096
"""No server in use has a shorter one: prompts of half of it are never cut."""
ASKED_AGAIN: Final = 2
"""Smaller requests after refusals for length: one by what the server said, one for the shortest answer."""

Asker = Callable[[Model, Request], Awaitable[Answer]]
"""Sends one request with limits and retries."""


@dataclass(frozen=True)
class Room:
    """What may be spent on one sample: --min-output in tokens, and what becomes of an over-long prompt."""

    min_output: int
    policy: ContextPolicy = "error"


@dataclass(frozen=True)
class Fitted:
    """A request that fits as far as is known: its prompt tokens, how they are known (None: nobody
    reads it), turns left out."""

    request: Request
    prompt_tokens: int
    prompt_tokens_from: Literal["counted", "estimated", "refusal"] | None
    dropped_turns: int = 0


@dataclass(frozen=True)
class Asked:
    """The answer to the request that was sent last; all attempts; what the answer itself gives to note."""

    answer: Answer
    fitted: Fitted
    attempts: tuple[Attempt, ...]
    notes: tuple[str, ...]


def estimate_tokens(messages: Sequence[Message]) -> int:
    """About one token for 4 ASCII characters and for 1.25 others, and 4 for each message's frame."""
    total = 0.0
    for message in messages:
        plain = len(message.content.encode("ascii", "ignore"))
        total += 4 + plain / 4 + (len(message.content) - plain) / 1.25
    return round(total)


def _at_most(messages: Sequence[Message]) -> int:
    """More tokens than any common tokenizer makes of these texts."""
    return sum(16 + len(message.content.encode()) for message in messages)


def _at_least(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages) // CHARACTERS


async def ask_within(model: Model, request: Request, room: Room, asker: Asker) -> Asked | Failure:
    """Ask within the model's limits; after a refusal for length again with what it said.

    A `Failure` (context_overflow) means that nothing was sent.
    """
    fitted = await _fit(model, request, room)
    if isinstance(fitted, Failure):
        return fitted
    answer = await asker(model, fitted.request)
    attempts = answer.attempts
    for _ in range(ASKED_AGAIN):
        refused = isinstance(answer.outcome, Failure) and answer.outcome.kind is FailureKind.CONTEXT_OVERFLOW
        if not refused or model.local:
            break
        again = await _fit_again(model, request, fitted, answer, room)
        if again is None:
            break
        answer = await asker(model, again.request)
        attempts += answer.attempts
        fitted = again
    if isinstance(answer.outcome, Failure):
        return Asked(answer, fitted, attempts, ())
    sent = _sent(answer.outcome, fitted)
    if sent is not None and _less(sent, fitted.request):
        model.limits.learn_output(sent, "the server's refusal")
    notes = _unsaid(answer.outcome, fitted, sent, model.limits)
    _learn_from(answer.outcome.usage, fitted, model.limits)
    return Asked(answer, fitted, attempts, notes)


async def _fit(model: Model, request: Request, room: Room) -> Fitted | Failure:
    context, wanted = model.limits.context, _most(model, request)
    if model.local and model.batch is None:
        return Fitted(request, 0, None)
    estimated = Fitted(_with_room(request, wanted), estimate_tokens(request.messages), "estimated")
    if context is None:
        return estimated
    if wanted is not None and _at_most(request.messages) + wanted + RESERVE <= context:
        return estimated
    counted = await _fit_counted(model, request, wanted, context, room)
    return counted or _fit_estimated(estimated, wanted, context, room)


async def _fit_counted(
    model: Model, request: Request, wanted: int | None, context: int, room: Room
) -> Fitted | Failure | None:
    """By the model's own tokenizer; None where it offers none."""
    counted = await model.count(request)
    if counted is None:
        return None
    fitted = Fitted(request, counted, "counted")
    turn = 0
    while context - fitted.prompt_tokens - RESERVE < room.min_output:
        turn = _next_to_drop(fitted, turn, context, room)
        shorter = _without_oldest(request, turn) if room.policy == "drop-oldest" else None
        if shorter is None:
            return _overflow(f"{counted} prompt tokens", context, room)
        again = await model.count(shorter)
        fitted = Fitted(
            shorter, estimate_tokens(shorter.messages) if again is None else again, "counted", turn
        )
    return replace(
        fitted, request=_with_room(fitted.request, _smaller(wanted, context - fitted.prompt_tokens - RESERVE))
    )


def _next_to_drop(fitted: Fitted, dropped: int, context: int, room: Room) -> int:
    """How many turns to leave out next: as many as the excess is long, at least one more.

    By the share of characters, a little less than that: turns that could stay should.
    """
    excess = fitted.prompt_tokens + RESERVE + room.min_output - context
    history = [message for message in fitted.request.messages if message.role != "system"][:-1]
    sizes = [
        len(first.content) + len(second.content)
        for first, second in zip(history[::2], history[1::2], strict=True)
    ]
    total = sum(len(message.content) for message in fitted.request.messages) or 1
    left, more = 0.9 * excess / max(fitted.prompt_tokens, 1) * total, 0
    while more < len(sizes) and left > 0:
        left -= sizes[more]
        more += 1
    return dropped + max(more - 1, 1)


def _fit_estimated(
    start: Fitted, wanted: int | None, context: int, room: Room, scale: float = 1.0
) -> Fitted | Failure:
    """Within an estimate, `scale` times the usual one: it shrinks the answer, the server refuses."""
    request, turn = start.request, 0
    while True:
        prompt = round(estimate_tokens(request.messages) * scale)
        left = context - prompt - RESERVE
        if left >= room.min_output or room.policy == "error":
            break
        turn += 1
        shorter = _without_oldest(start.request, turn)
        if shorter is None:
            return _overflow(f"about {prompt} prompt tokens", context, room)
        request = shorter
    if _at_least(request.messages) + RESERVE + room.min_output > context:
        return _overflow(f"about {prompt} prompt tokens", context, room)
    fitted = _with_room(request, _smaller(wanted, max(left, room.min_output)))
    return Fitted(fitted, prompt, "estimated", start.dropped_turns + turn)


async def _fit_again(
    model: Model, request: Request, fitted: Fitted, answer: Answer, room: Room
) -> Fitted | None:
    """A smaller request after the server's refusal, or None when nothing smaller is left to ask for."""
    told = answer.limit or ContextLimit()
    if told.context is not None and told.context < room.min_output + RESERVE:
        told = ContextLimit()  # nothing could ever be sent: such a number is about something else
    before = model.limits.context
    if not told.prompt_only:
        model.limits.learn_context(told.context, "the server's refusal")
    context, wanted = model.limits.context, _most(model, request)
    if told.prompt_only:
        return _fit_prompt(fitted, told, wanted, context, room)
    smaller: Fitted | Failure | None = None
    if context is not None:
        smaller = _fit_told(fitted, told, wanted, context, room)
        smaller = smaller or await _fit_counted(model, request, wanted, context, room)
    if smaller is None and context is not None and (context != before or room.policy == "drop-oldest"):
        smaller = _fit_estimated(fitted, wanted, context, room, _scale(told, fitted))
    if isinstance(smaller, Failure):
        return None
    # Where nothing more is known, the shortest answer worth having is the last chance.
    last = replace(fitted, request=_with_room(fitted.request, room.min_output))
    return next((one for one in (smaller, last) if one and _is_smaller(one, fitted)), None)


def _fit_told(
    fitted: Fitted, told: ContextLimit, wanted: int | None, context: int, room: Room
) -> Fitted | Failure | None:
    """By the prompt's tokens as the refusal names them; None where it does not, or turns may go."""
    prompt = _prompt_told(told, fitted)
    least = told.prompt if prompt is None else prompt
    if least is not None and context - least - RESERVE < room.min_output:
        return None if room.policy == "drop-oldest" else _overflow(f"{least} prompt tokens", context, room)
    if prompt is None:
        return None
    left = _smaller(wanted, context - prompt - RESERVE)
    return Fitted(_with_room(fitted.request, left), prompt, "refusal", fitted.dropped_turns)


def _fit_prompt(
    fitted: Fitted, told: ContextLimit, wanted: int | None, context: int | None, room: Room
) -> Fitted | None:
    """After a refusal of the prompt alone, whatever the answer: with fewer turns, where they may go."""
    if room.policy == "error" or told.context is None:
        return None
    shorter = _fit_estimated(fitted, None, told.context + room.min_output, room, _scale(told, fitted))
    if isinstance(shorter, Failure) or shorter.dropped_turns == fitted.dropped_turns:
        return None
    left = None if context is None else max(context - shorter.prompt_tokens - RESERVE, room.min_output)
    return replace(shorter, request=_with_room(shorter.request, _smaller(wanted, left)))


def _prompt_told(told: ContextLimit, fitted: Fitted) -> int | None:
    """Tokens of the prompt, from a refusal that names them or what they are together with the answer."""
    asked = fitted.request.sampling.max_tokens
    if told.total is not None and asked is not None and asked < told.total:
        return told.total - asked
    return None if told.at_least else told.prompt


def _scale(told: ContextLimit, fitted: Fitted) -> float:
    """By how much the prompt is longer than its estimate, as far as a refusal tells."""
    estimate = max(estimate_tokens(fitted.request.messages), 1)
    prompt = _prompt_told(told, fitted)
    return max(told.prompt or 0, estimate) / estimate if prompt is None else prompt / estimate


def _sent(completion: Completion, fitted: Fitted) -> int | None:
    """The longest answer that was asked for in the end: endpoints have their own most."""
    lowered = (completion.adapted.get(name) for name in ("max_tokens", "max_completion_tokens"))
    numbers = (value for value in lowered if isinstance(value, int))
    return min(numbers, default=fitted.request.sampling.max_tokens)


def _unsaid(completion: Completion, fitted: Fitted, sent: int | None, limits: Limits) -> tuple[str, ...]:
    """What the server did without saying so: a cut prompt, an answer shorter than was asked for."""
    notes = []
    seen, made = completion.usage.prompt_tokens, completion.usage.completion_tokens
    counted = fitted.prompt_tokens_from == "counted"
    least = fitted.prompt_tokens * 0.9 if counted else _at_least(fitted.request.messages)
    if seen is not None and seen < least - RESERVE:
        notes.append(PROMPT_CUT)
    elif seen is not None and not counted and _looks_cut(seen, fitted, limits):
        notes.append(PROMPT_PERHAPS_CUT)
    if completion.finish_reason == "length" and made is not None and sent is not None and made < sent:
        notes.append("the server ended the answer before the tokens that were asked for")
    return tuple(notes)


def _looks_cut(seen: int, fitted: Fitted, limits: Limits) -> bool:
    """Whether a prompt fills the context, or is too long for it by what shorter ones have shown."""
    estimate = estimate_tokens(fitted.request.messages)
    if limits.context is None:
        return seen < 0.7 * estimate * (limits.density or 0)
    return max(seen + RESERVE, estimate * (limits.density or USUAL_DENSITY)) > limits.context


def _learn_from(usage: Usage, fitted: Fitted, limits: Limits) -> None:
    """What an answer shows of the model's limits and of its tokenizer."""
    seen = usage.prompt_tokens or 0
    limits.proven = max(limits.proven, seen + (usage.completion_tokens or 0))
    estimate = max(estimate_tokens(fitted.request.messages), 1) if seen else 0
    if 0 < estimate < (limits.context or SHORTEST_CONTEXT) / 2:
        limits.density = min(limits.density or seen / estimate, seen / estimate)


def _without_oldest(request: Request, turns: int) -> Request | None:
    """The request without its `turns` oldest turns; None when it has not so many before the current one."""
    system = tuple(message for message in request.messages if message.role == "system")
    rest = request.messages[len(system) :]
    if 2 * turns >= len(rest):
        return None
    return request.model_copy(update={"messages": system + rest[2 * turns :]})


def _most(model: Model, request: Request) -> int | None:
    """The longest answer that is wanted and that the model gives; None: the server's default."""
    return _smaller(request.sampling.max_tokens, model.limits.max_output)


def _with_room(request: Request, max_tokens: int | None) -> Request:
    sampling = request.sampling.model_copy(update={"max_tokens": max_tokens})
    return request.model_copy(update={"sampling": sampling})


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _is_smaller(one: Fitted, than: Fitted) -> bool:
    shorter = one.dropped_turns > than.dropped_turns
    return shorter or _less(one.request.sampling.max_tokens, than.request)


def _less(max_tokens: int | None, than: Request) -> bool:
    asked = than.sampling.max_tokens
    return max_tokens is not None and (asked is None or max_tokens < asked)


def _overflow(prompt: str, context: int, room: Room) -> Failure:
    message = f"{prompt} leave less than {room.min_output} of a context of {context}"
    return Failure(kind=FailureKind.CONTEXT_OVERFLOW, message=message)
