"""Asks a model until there is an answer, a final failure, or a reason to stop the run.

The only retry layer of the harness. Transient failures (429, 5xx, network, timeout, replies that
are no chat completion) are tried again with growing, jittered waits, a server's own wish honoured;
failures of the answer itself are final here; fatal ones (key, model, quota, unreachable endpoint,
a model that refuses whatever it is asked) raise and stop the run at once. Every attempt is
recorded, with what it used and cost where that is known.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Final

from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.errors import AwbError, ConfigError, CredentialsError, EndpointError, QuotaError
from agentworldbench.models import Model
from agentworldbench.records import (
    FATAL,
    TRANSIENT,
    Attempt,
    CallFailure,
    Completion,
    ContextLimit,
    Failure,
    FailureKind,
    Request,
)

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 60.0
MOST: Final = {FailureKind.TIMEOUT: 2, FailureKind.MALFORMED_RESPONSE: 3, FailureKind.EMPTY: 2}
"""A request that ended so this often is not sent again: each attempt may have been paid."""
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
    model: Model, request: Request, limiter: Limiter, max_retries: int, progress: Progress
) -> Answer:
    """Send `request`, at most 1 + `max_retries` times. Raises an AwbError for fatal failures."""
    attempts: list[Attempt] = []
    while True:
        async with limiter.slot():
            started = time.monotonic()
            with progress.request_in_flight():
                outcome = await model.generate(request)
            seconds = time.monotonic() - started
        _heed_cancellation()
        if isinstance(outcome, Completion):
            limiter.reached = True
            limiter.answered.add(model.name)
            attempts.append(_answered(outcome, seconds))
            return Answer(outcome, tuple(attempts), seconds)
        failure = _in_context(outcome.failure, limiter, model)
        attempts.append(_failed(failure, outcome, seconds, model))
        if failure.status is not None:
            limiter.reached = True
        if failure.kind is FailureKind.BAD_REQUEST and not request.tentative:
            limiter.refused[model.name] += 1
        if not _again(failure, attempts, limiter, max_retries, model):
            return Answer(failure, tuple(attempts), seconds, outcome.limit)
        wait = _wait(outcome, len(attempts))
        if failure.kind is FailureKind.RATE_LIMIT:
            limiter.pause(wait)
        progress.retried(failure, wait)
        await asyncio.sleep(wait)


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


def _in_context(failure: Failure, limiter: Limiter, model: Model) -> Failure:
    """HTTP 403 is a bad key, until the model has answered: from then on it is about the one request."""
    forbidden = failure.kind is FailureKind.AUTHENTICATION and failure.status == 403
    if forbidden and model.name in limiter.answered:
        return failure.model_copy(update={"kind": FailureKind.BAD_REQUEST})
    return failure


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
    may_return = failure.kind is FailureKind.UNREACHABLE and limiter.reached
    if model.local:
        return False
    if failure.kind in FATAL and not (may_return and len(attempts) <= max_retries):
        raise fatal_error(failure, model)
    refuses = failure.kind is FailureKind.BAD_REQUEST and limiter.refused[model.name] >= MAX_REFUSED
    if refuses and model.name not in limiter.answered:
        raise _refuses_all(failure, model)
    if failure.kind in MOST and sum(item.outcome == failure.kind for item in attempts) >= MOST[failure.kind]:
        return False
    # A reply without text is an answer; as a failure of the call its tokens were lost on the way.
    curable = failure.kind in TRANSIENT or failure.kind is FailureKind.EMPTY or may_return
    return curable and len(attempts) <= max_retries


def _wait(outcome: CallFailure, attempts: int) -> float:
    """Seconds before the next attempt: the server's wish, else 0.5, 1, 2 … 60 with jitter.

    A wish for 0 (or for a moment that has passed) is none: all attempts would be spent in an instant.
    """
    if outcome.retry_after:
        return outcome.retry_after + random.uniform(0, 0.1)
    return float(min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempts - 1)) * random.uniform(0.5, 1.0))


def _refuses_all(failure: Failure, model: Model) -> AwbError:
    return ConfigError(
        f"model '{model.name}': every request so far was refused: {failure.message}; change what it does not take "
        "(sampling flags, --max-tokens, --gen-kwargs, --extra-body, --judge-json-schema), or the server; "
        "--retry-failed asks again what was refused"
    )


def fatal_error(failure: Failure, model: Model) -> AwbError:
    """The error that stops the run, with what to do."""
    text = f"model '{model.name}': {failure.message}"
    if failure.kind is FailureKind.QUOTA:
        return QuotaError(f"{text}; what is done stays, and the same command continues once there is quota")
    if failure.kind is FailureKind.AUTHENTICATION:
        return CredentialsError(f"{text}; check the key in the environment")
    if failure.kind is FailureKind.MODEL_MISSING:
        own = model.identity()["backend"] == "openai-api"
        hint = f"; does the address end in /v1? ({model.url})" if own else ""
        return EndpointError(
            f"{text}; check the model's name (openai-api/NAME sends NAME to --base-url exactly as it stands){hint}"
        )
    return EndpointError(f"{text}; is the server running? What is done stays, and the same command continues")
