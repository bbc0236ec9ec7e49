"""Asks a model until there is an answer, a final failure, or a reason to stop the run.

The only retry layer of the harness. Transient failures (429, 5xx, network, timeout, replies that
are no chat completion) are tried again with growing, jittered waits, a server's own wish honoured;
failures of the answer itself are final here; fatal ones (key, model, quota, unreachable endpoint)
raise and stop the run at once. Every attempt is recorded.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Final

from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.errors import AwbError, CredentialsError, EndpointError, QuotaError
from agentworldbench.models import Model
from agentworldbench.records import (
    FATAL,
    TRANSIENT,
    Attempt,
    CallFailure,
    Completion,
    Failure,
    FailureKind,
    Request,
)

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 60.0
MAX_TIMEOUTS: Final = 2
"""A request that ran into its time limit this often is not sent again: each may have been paid."""


@dataclass(frozen=True)
class Answer:
    """What asking brought: a completion or a failure, and all attempts in order."""

    outcome: Completion | Failure
    attempts: tuple[Attempt, ...]
    seconds: float


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
            usage = outcome.usage
            attempts.append(Attempt(outcome="ok", seconds=seconds, usage=usage, cost_usd=outcome.cost_usd))
            return Answer(outcome, tuple(attempts), seconds)
        failure = outcome.failure
        attempts.append(
            Attempt(outcome=failure.kind, seconds=seconds, status=failure.status, message=failure.message)
        )
        if failure.status is not None:
            limiter.reached = True
        if not _again(failure, attempts, limiter, max_retries, model):
            return Answer(failure, tuple(attempts), seconds)
        wait = _wait(outcome, len(attempts))
        if failure.kind is FailureKind.RATE_LIMIT:
            limiter.pause(wait)
        progress.retried(failure, wait)
        await asyncio.sleep(wait)


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
    if (
        failure.kind is FailureKind.TIMEOUT
        and sum(item.outcome == failure.kind for item in attempts) >= MAX_TIMEOUTS
    ):
        return False
    return (failure.kind in TRANSIENT or may_return) and len(attempts) <= max_retries


def _wait(outcome: CallFailure, attempts: int) -> float:
    """Seconds before the next attempt: the server's wish, else 0.5, 1, 2 … 60 with jitter.

    A wish for 0 (or for a moment that has passed) is none: all attempts would be spent in an instant.
    """
    if outcome.retry_after:
        return outcome.retry_after + random.uniform(0, 0.1)
    return float(min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempts - 1)) * random.uniform(0.5, 1.0))


def fatal_error(failure: Failure, model: Model) -> AwbError:
    """The error that stops the run, with what to do."""
    text = f"model '{model.name}': {failure.message}"
    if failure.kind is FailureKind.QUOTA:
        return QuotaError(f"{text}; what is done stays, and the same command continues once there is quota")
    if failure.kind is FailureKind.AUTHENTICATION:
        return CredentialsError(f"{text}; check the key in the environment")
    if failure.kind is FailureKind.MODEL_MISSING:
        return EndpointError(
            f"{text}; check the model's name (openai-api/NAME sends NAME to --base-url exactly as it stands)"
        )
    return EndpointError(f"{text}; is the server running? What is done stays, and the same command continues")
