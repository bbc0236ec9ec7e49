"""Asks for an answer that fits, and again for less after a refusal for length.

Before each request `fit` says what fits by all that is known by then: other requests learn of the same
model meanwhile. A refusal that brings news (the context, the prompt's length) is followed by what then
fits. One that brings none is followed by guesses: for half of the answer (a quarter of a long one while
the context is unknown), at last for the shortest worth having, then, with `drop-oldest`, without 1, 3,
7 … turns. An answer to a guess is noted as such.

A refusal in words that nobody knows may be about length too, where the prompt is only estimated and
the context unknown, or too short for prompt and answer if the prompt has twice as many tokens. Then
the sample is asked once more, for the shortest answer. If that is answered, the words were about
length, and further such refusals are treated like those without numbers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from agentworldbench.engine.fitting import (
    RESERVE,
    Fitted,
    Room,
    Told,
    Unsent,
    at_least,
    estimate_tokens,
    estimated,
    fit,
    most,
    with_room,
    without_oldest,
)
from agentworldbench.engine.retry import Answer
from agentworldbench.models import Model
from agentworldbench.models.base import Limits
from agentworldbench.records import Attempt, Completion, ContextLimit, Failure, FailureKind, Request, Usage
from agentworldbench.run_record import PROMPT_CUT, PROMPT_PERHAPS_CUT

USUAL_DENSITY: Final = 0.75
"""Tokens for each one estimated, on the low side, while a model's own tokenizer has shown nothing."""
SHORTEST_CONTEXT: Final = 4096
"""No server in use has a shorter one: prompts of half of it are never cut."""
ASKED_AGAIN: Final = 12
"""Smaller requests after refusals for length; each of them costs a refusal at most."""
GUESSES: Final = 3
"""Guesses at the answer's length before the shortest one."""
GUESSED: Final = "asked for fewer tokens than may fit: the server's refusal did not say how many do"

Asker = Callable[[Model, Request], Awaitable[Answer]]
"""Sends one request with limits and retries."""


@dataclass(frozen=True)
class Asked:
    """The answer to the request that was sent last, as it was sent; all attempts; what there is to note."""

    answer: Answer
    fitted: Fitted
    attempts: tuple[Attempt, ...]
    notes: tuple[str, ...]


async def ask_within(model: Model, request: Request, room: Room, asker: Asker) -> Asked | Unsent:
    """Ask within the model's limits; after a refusal for length again, for less."""
    sample = _Sample(model, request, room)
    fitted = await fit(model, request, room, sample.told)
    if isinstance(fitted, Unsent):
        return fitted
    answer = await asker(model, sample.question(fitted))
    attempts = answer.attempts
    for _ in range(ASKED_AGAIN):
        less = await sample.after(answer, fitted)
        if less is None:
            break
        fitted, answer = less, await asker(model, sample.question(less))
        attempts += answer.attempts
    if isinstance(answer.outcome, Failure):
        return Asked(answer, fitted, attempts, ())
    fitted = _as_sent(answer.outcome, fitted, model.limits)
    notes = _unsaid(answer.outcome, fitted, model.limits)
    _learn_from(answer.outcome.usage, fitted, model.limits)
    model.limits.unexplained |= sample.suspected
    return Asked(answer, fitted, attempts, notes)


class _Sample:
    """One sample's way from refusal to refusal: what was told, and how often was guessed."""

    def __init__(self, model: Model, request: Request, room: Room) -> None:
        self.told = Told()
        self.suspected = False
        self._guesses = 0
        self._model = model
        self._request = request
        self._room = room

    def question(self, fitted: Fitted) -> Request:
        """The request as it is handed over for sending."""
        in_doubt = self.in_doubt(fitted)
        if in_doubt == fitted.request.tentative:
            return fitted.request
        return fitted.request.model_copy(update={"tentative": in_doubt})

    async def after(self, answer: Answer, refused: Fitted) -> Fitted | None:
        """What to ask for after `answer`; None where it is no refusal for length, or nothing less is left."""
        failure = answer.outcome
        if not isinstance(failure, Failure) or self._model.local:
            return None
        if failure.kind is FailureKind.CONTEXT_OVERFLOW:
            return await self._after_refusal(answer.limit or ContextLimit(), refused)
        unknown = failure.kind is FailureKind.BAD_REQUEST and failure.status in (400, 422)
        return self._on_suspicion(refused) if unknown and self.in_doubt(refused) else None

    async def _after_refusal(self, limit: ContextLimit, refused: Fitted) -> Fitted | None:
        if limit.context is not None and limit.context < self._floor + RESERVE:
            limit = ContextLimit()  # nothing could ever be sent: such a number is about something else
        if limit.prompt_only and self._room.policy == "error":
            return None  # no shorter answer helps
        if not limit.prompt_only:
            self._model.limits.learn_context(limit.context, "the server's refusal")
        named = self.told.hear(limit, refused)
        fitted = await fit(self._model, self._request, self._room, self.told)
        if isinstance(fitted, Unsent):
            return None
        if (named or fitted.bounds != refused.bounds) and fitted.smaller_than(refused):
            return fitted
        return self._without_oldest(refused) if limit.prompt_only else self._guess(refused)

    def in_doubt(self, fitted: Fitted) -> bool:
        """Whether a refusal of a request in unknown words could be about length, and less can be asked for."""
        limits, asked = self._model.limits, fitted.asked
        long = limits.context is None or 2 * fitted.prompt_tokens + (asked or 0) > limits.context
        less = not self.suspected and (asked is None or asked > self._floor)
        return fitted.prompt_tokens_from == "estimated" and long and (less or limits.unexplained)

    def _on_suspicion(self, refused: Fitted) -> Fitted | None:
        if self._model.limits.unexplained:
            return self._guess(refused)
        self.suspected = True
        return self._shortened(refused, self._floor)

    def _guess(self, refused: Fitted) -> Fitted | None:
        if refused.asked is not None and refused.asked <= self._floor:
            return self._without_oldest(refused)
        self._guesses += 1
        if refused.asked is None or self._guesses > GUESSES:
            return self._shortened(refused, self._floor)
        part = 4 if self._model.limits.context is None and refused.asked > SHORTEST_CONTEXT else 2
        return self._shortened(refused, max(refused.asked // part, self._floor))

    def _shortened(self, refused: Fitted, max_tokens: int) -> Fitted:
        return replace(refused, request=with_room(refused.request, max_tokens), guessed=True)

    def _without_oldest(self, refused: Fitted) -> Fitted | None:
        """With twice as many turns left out, and one more; with the current one alone in the end."""
        turns = 2 * refused.dropped_turns + 1
        while turns > refused.dropped_turns and self._room.policy == "drop-oldest":
            shorter = without_oldest(self._request, turns)
            if shorter is not None:
                tokens = round(estimate_tokens(shorter.messages) * self.told.density)
                request = with_room(shorter, refused.asked)
                return Fitted(request, tokens, "estimated", refused.bounds, turns, refused.guessed)
            turns -= 1
        return None

    @property
    def _floor(self) -> int:
        return self._room.floor(most(self._model, self._request))


def _as_sent(completion: Completion, fitted: Fitted, limits: Limits) -> Fitted:
    """With the longest answer that was asked for in the end: endpoints have their own most."""
    lowered = (completion.adapted.get(name) for name in ("max_tokens", "max_completion_tokens"))
    sent = min((value for value in lowered if isinstance(value, int)), default=None)
    if sent is None or (fitted.asked is not None and fitted.asked <= sent):
        return fitted
    limits.learn_output(sent, "the server's refusal")
    return replace(fitted, request=with_room(fitted.request, sent))


def _unsaid(completion: Completion, fitted: Fitted, limits: Limits) -> tuple[str, ...]:
    """What does not show elsewhere: a cut prompt, an answer shorter than was asked for, a guess."""
    notes = [GUESSED] if fitted.guessed else []
    seen, made = completion.usage.prompt_tokens, completion.usage.completion_tokens
    counted = fitted.prompt_tokens_from == "counted"
    least = fitted.prompt_tokens * 0.9 if counted else at_least(fitted.request.messages)
    if seen is not None and seen < least - RESERVE:
        notes.append(PROMPT_CUT)
    elif seen is not None and not counted and _looks_cut(seen, fitted, limits):
        notes.append(PROMPT_PERHAPS_CUT)
    sent = fitted.asked
    if completion.finish_reason == "length" and made is not None and sent is not None and made < sent:
        notes.append("the server ended the answer before the tokens that were asked for")
    return tuple(notes)


def _looks_cut(seen: int, fitted: Fitted, limits: Limits) -> bool:
    """Whether a prompt fills the context, or is too long for it by what shorter ones have shown."""
    estimate = estimated(fitted.request)
    if limits.context is None:
        return seen < 0.7 * estimate * (limits.density or 0)
    return max(seen + RESERVE, estimate * (limits.density or USUAL_DENSITY)) > limits.context


def _learn_from(usage: Usage, fitted: Fitted, limits: Limits) -> None:
    """What an answer shows of the model's limits and of its tokenizer."""
    seen = usage.prompt_tokens or 0
    limits.proven = max(limits.proven, seen + (usage.completion_tokens or 0))
    estimate = max(estimated(fitted.request), 1) if seen else 0
    if 0 < estimate < (limits.context or SHORTEST_CONTEXT) / 2:
        limits.density = min(limits.density or seen / estimate, seen / estimate)
