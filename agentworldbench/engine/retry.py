"""Asks a model until there is an answer, a final failure, or a reason to stop the run.

The only retry layer of the harness. What follows which class of failure stands in `retry_table.py`;
here it is carried out: attempts with growing, jittered waits, a server's own wish honoured, the
endpoint's limiter told what came of each, fatal failures raised at once. Every attempt is recorded,
with what it used and cost where that is known.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Final

from agentworldbench.engine.fitting import estimated
from agentworldbench.engine.limiter import Limiter, Slot, Ticket, doubled
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.retry_table import RULES
from agentworldbench.engine.standing import Standing
from agentworldbench.errors import AwbError, ConfigError, CredentialsError, EndpointError, QuotaError
from agentworldbench.models import Model
from agentworldbench.models.failures import names_missing_model
from agentworldbench.records import (
    Attempt,
    CallFailure,
    Completion,
    ContextLimit,
    Failure,
    FailureKind,
    Request,
)
from agentworldbench.texts import count_text

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 60.0
MAX_REFUSED: Final = 5
"""So many bad requests before a model's first answer are no matter of single samples."""


@dataclass(frozen=True)
class Answer:
    """What asking brought: a completion or a failure, and all attempts in order.

    `limit` holds what a refusal for length said about it.
    """

    outcome: Completion | Failure
    attempts: tuple[Attempt, ...]
    seconds: float
    limit: ContextLimit | None = None


async def ask(
    model: Model,
    request: Request,
    slot: Slot,
    max_retries: int,
    progress: Progress,
    tally: list[Attempt] | None = None,
) -> Answer:
    """Send `request`, at most 1 + `max_retries` times; each attempt is also put into `tally` when it has ended.

    Raises an AwbError for fatal failures.
    """
    tally = [] if tally is None else tally
    limiter = slot.limiter
    standing = limiter.standing(model)
    attempts: list[Attempt] = []
    while True:
        async with slot.held(), limiter.sending(_likely_tokens(request, limiter)) as ticket:
            started = time.monotonic()
            with progress.request_in_flight():
                outcome = await model.generate(request)
            seconds = time.monotonic() - started
            _heed_cancellation()
            if not model.local:
                _tell(limiter, ticket, outcome)
        if isinstance(outcome, Completion):
            limiter.reached = True
            standing.note(None, time.monotonic())
            limiter.resume()
            attempts.append(_answered(outcome, seconds))
            tally.append(attempts[-1])
            return Answer(outcome, tuple(attempts), seconds)
        failure = _in_context(outcome.failure, standing)
        attempts.append(_failed(failure, outcome, seconds, model))
        tally.append(attempts[-1])
        if failure.status is not None:
            limiter.reached = True
        standing.note(failure.kind, time.monotonic(), outcome.retry_after)
        if not model.local:
            _hold(limiter, ticket, failure.kind, standing)
        if failure.kind is FailureKind.BAD_REQUEST and not request.tentative:
            standing.refused += 1
        final = failure.kind is FailureKind.EMPTY and not request.again_if_empty
        if final or not _again(failure, attempts, limiter, max_retries, model):
            return Answer(failure, tuple(attempts), seconds, outcome.limit)
        wait = _wait(outcome, len(attempts))
        with progress.waiting(failure, wait):
            slot.give_back()
            await asyncio.sleep(wait)


def _likely_tokens(request: Request, limiter: Limiter) -> float:
    """Prompt and answer of a request, where somebody counts them."""
    if not limiter.counts_tokens:
        return 0.0
    longest = request.sampling.max_tokens
    answer = limiter.usual_answer if longest is None else min(limiter.usual_answer, longest)
    return estimated(request) + answer


def _tell(limiter: Limiter, ticket: Ticket, outcome: Completion | CallFailure) -> None:
    """Let the limiter know what the server made of a request."""
    usage = outcome.usage
    if isinstance(outcome, Completion):
        limiter.used(ticket, usage.prompt_tokens, usage.completion_tokens)
        limiter.carried(ticket, answered=True)
        return
    kind = outcome.failure.kind
    load = RULES[kind].load
    if load == "shrink":
        limiter.used(ticket, 0, 0)
        limiter.overcharged(ticket, kind.value, outcome.retry_after)
    elif load == "steady":
        limiter.troubled()
    else:
        limiter.carried(ticket, answered=False)


def _hold(limiter: Limiter, ticket: Ticket, kind: FailureKind, standing: Standing) -> None:
    """Let one request at a time find out whether an endpoint is back that is down. One that cannot even be reached
    stops the run soon anyway, and one that refuses single requests is at work."""
    if not standing.failed:
        limiter.resume()
    elif kind is not FailureKind.UNREACHABLE and standing.is_down(limiter.limit):
        limiter.hold(ticket)


def _answered(completion: Completion, seconds: float) -> Attempt:
    return Attempt(
        outcome="ok",
        seconds=seconds,
        usage=completion.usage,
        cost_usd=completion.cost_usd,
        finish_reason=completion.finish_reason,
    )


def _failed(failure: Failure, outcome: CallFailure, seconds: float, model: Model) -> Attempt:
    return Attempt(
        outcome=failure.kind,
        seconds=seconds,
        status=failure.status,
        message=failure.message,
        usage=outcome.usage,
        cost_usd=0.0 if model.local else outcome.cost_usd,
        reply=outcome.reply,
    )


def _in_context(failure: Failure, standing: Standing) -> Failure:
    """HTTP 403 is a bad key and a page that is not there a wrong address, until the model has answered: from then
    on one is about the single request, and the other a fault of what stands between."""
    kind = failure.kind
    if standing.answered and kind is FailureKind.AUTHENTICATION and failure.status == 403:
        kind = FailureKind.BAD_REQUEST
    if standing.answered and kind is FailureKind.MODEL_MISSING and not names_missing_model(failure.message):
        kind = FailureKind.PROVIDER_ERROR
    return failure.model_copy(update={"kind": kind})


def _heed_cancellation() -> None:
    """Raise the CancelledError that a library swallowed: LiteLLM turns some into errors of its own.

    Without this a stopped run would wait for ever, and what was given up would become a record.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _again(
    failure: Failure, attempts: list[Attempt], limiter: Limiter, max_retries: int, model: Model
) -> bool:
    """Whether another attempt is due; raises when the failure is fatal."""
    if model.local:
        return False
    rule, standing = RULES[failure.kind], limiter.standing(model)
    more = len(attempts) <= max_retries
    may_return = failure.kind is FailureKind.UNREACHABLE and limiter.reached
    if rule.fatal and not (may_return and more):
        raise fatal_error(failure, model)
    refuses = failure.kind is FailureKind.BAD_REQUEST and standing.refused >= MAX_REFUSED
    if refuses and not standing.answered:
        raise _refuses_all(failure, model)
    if standing.has_gone(limiter.limit, time.monotonic()):
        raise _has_gone(failure, model, standing)
    so_often = sum(attempt.outcome == failure.kind for attempt in attempts)
    return more and (rule.attempts is None or so_often < rule.attempts)


def _wait(outcome: CallFailure, attempts: int) -> float:
    """Seconds before the next attempt: 0.5, 1, 2 … 60 with jitter, longer by class, or the server's wish.

    The longer of the two: with a wish for an instant that is never kept all attempts would be spent in an
    instant.
    """
    full = doubled(FIRST_WAIT * RULES[outcome.failure.kind].longer, attempts - 1, LONGEST_WAIT)
    return max(full * random.uniform(0.5, 1.0), (outcome.retry_after or 0.0) + random.uniform(0, 0.1))


def _refuses_all(failure: Failure, model: Model) -> AwbError:
    return ConfigError(
        f"model '{model.name}': every request so far was refused: {failure.message}; change what it does not take "
        "(sampling flags, --max-tokens, --gen-kwargs, --extra-body, --judge-json-schema), or the server; "
        "--retry-failed asks again what was refused"
    )


def _has_gone(failure: Failure, model: Model, standing: Standing) -> AwbError:
    minutes = (time.monotonic() - standing.since) / 60
    return EndpointError(
        f"model '{model.name}': nothing has succeeded for {minutes:.0f} minutes ({count_text(standing.failed, 'request')} in a row; "
        f"the last one: {failure.kind.value}: {failure.message}); what is done stays, and the same command continues"
    )


def fatal_error(failure: Failure, model: Model) -> AwbError:
    """The error that stops the run, with what to do."""
    text = f"model '{model.name}': {failure.message}"
    if failure.kind is FailureKind.QUOTA:
        return QuotaError(f"{text}; what is done stays, and the same command continues once there is quota")
    if failure.kind is FailureKind.AUTHENTICATION:
        return CredentialsError(f"{text}; check the key in the environment")
    if failure.kind is FailureKind.MODEL_MISSING:
        if failure.status is not None and failure.status < 400:
            return EndpointError(text)  # a redirect tells the right address itself
        own = model.identity()["backend"] == "openai-api"
        hint = f"; does the address end in /v1? ({model.url})" if own else ""
        return EndpointError(
            f"{text}; check the model's name (openai-api/NAME sends NAME to --base-url exactly as it stands){hint}"
        )
    return EndpointError(f"{text}; is the server running? What is done stays, and the same command continues")
