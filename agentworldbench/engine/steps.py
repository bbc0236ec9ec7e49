"""The two steps of a sample, each from a question to a finished record.

`predict` asks the model and makes a `Prediction`; `judge` asks a judge, again when its reply holds
no verdict, and makes a `Verdict`. Neither raises for what a model did: failures become records.
How a request is sent (limits, retries) is passed in as `Asker`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentworldbench.engine.budget import allowed_output
from agentworldbench.engine.progress import spent
from agentworldbench.engine.retry import Answer
from agentworldbench.models import Model
from agentworldbench.observation import read_reply
from agentworldbench.prompts import messages_sha256, predict_messages
from agentworldbench.records import (
    Attempt,
    Completion,
    Failure,
    Prediction,
    Request,
    Sample,
    SampleRef,
    Sampling,
    Verdict,
    sha256_text,
)
from agentworldbench.scoring.judge import ASK_AGAIN, Judge
from agentworldbench.scoring.verdict import ReadVerdict
from agentworldbench.task import Task

Asker = Callable[[Model, Request], Awaitable[Answer]]
"""Sends one request with limits and retries."""


@dataclass(frozen=True)
class Predictor:
    """The model under test, its sampling for a sample, and the least output worth asking for."""

    model: Model
    tasks: Mapping[str, Task]
    sampling: Callable[[SampleRef, int], Sampling]
    min_output: int


async def predict(predictor: Predictor, sample: Sample, epoch: int, asker: Asker) -> Prediction:
    """Ask the model for the sample's observation in one epoch (counted from 1)."""
    messages = predict_messages(sample)
    sampling = predictor.sampling(sample.ref, epoch)
    model = predictor.model
    record: dict[str, Any] = {
        "sample_id": sample.id,
        "row_hash": sample.ref.row_hash,
        "epoch": epoch,
        "prompt_sha256": messages_sha256(messages),
        "started_at": _now(),
        "notes": sample.ref.flags,
    }
    allowed = allowed_output(
        messages, sampling.max_tokens, model.context, predictor.min_output, model.max_output
    )
    if isinstance(allowed, Failure):
        return Prediction(**record, failure=allowed, cost_usd=0.0)
    request = Request(
        sample=sample,
        messages=messages,
        sampling=sampling.model_copy(update={"max_tokens": allowed}),
        epoch=epoch,
    )
    answer = await asker(model, request)
    record |= _sending(answer, allowed)
    if isinstance(answer.outcome, Failure):
        return Prediction(**record, failure=answer.outcome)
    completion = answer.outcome
    task = predictor.tasks[sample.ref.domain]
    observation, reasoning, failure = read_reply(completion, task.prediction_tag, task.markers.observation)
    record |= _reply(completion, sample.ref.flags) | {"reasoning": reasoning}
    return Prediction(**record, observation=observation, text=completion.text, failure=failure)


async def judge(judge: Judge, prediction: Prediction, sample: Sample, repeat: int, asker: Asker) -> Verdict:
    """Ask a judge about a prediction's observation, up to `judge.attempts` times.

    `repeat` counts independent verdicts of one judge on one prediction, from 1.
    """
    observation = prediction.observation
    assert observation is not None, "only a prediction with an observation is judged"
    request = judge.request(sample, observation, prediction.epoch, repeat)
    record: dict[str, Any] = {
        "sample_id": sample.id,
        "row_hash": sample.ref.row_hash,
        "epoch": prediction.epoch,
        "judge": judge.digest(),
        "repeat": repeat,
        "observation_sha256": sha256_text(observation),
        "system_sha256": judge.system_sha256(sample.ref.domain),
        "prompt_sha256": messages_sha256(request.messages),
        "started_at": _now(),
    }
    model, sampling = judge.model, request.sampling
    allowed = allowed_output(
        request.messages, sampling.max_tokens, model.context, judge.min_output, model.max_output
    )
    if isinstance(allowed, Failure):
        return Verdict(**record, failure=allowed, cost_usd=0.0)
    request = request.model_copy(update={"sampling": sampling.model_copy(update={"max_tokens": allowed})})
    earlier: tuple[Attempt, ...] = ()
    for asked in range(1, judge.attempts + 1):
        answer = await asker(model, request)
        record |= _sending(answer, allowed, earlier)
        if isinstance(answer.outcome, Failure):
            return Verdict(**record, failure=answer.outcome)
        completion = answer.outcome
        read = judge.read(completion, sample, observation)
        if isinstance(read, ReadVerdict) or read.kind not in ASK_AGAIN or asked == judge.attempts:
            break
        unread = {"outcome": read.kind, "message": read.message, "reply": completion.text}
        earlier += (*answer.attempts[:-1], answer.attempts[-1].model_copy(update=unread))
    record |= _reply(completion, ()) | {"reply": completion.text, "reasoning": completion.reasoning}
    if isinstance(read, Failure):
        return Verdict(**record, failure=read)
    if read.found != "tag":
        record["notes"] = (*record["notes"], f"verdict found by: {read.found}")
    return Verdict(**record, scores=read.scores, strengths=read.strengths, weaknesses=read.weaknesses)


def _sending(answer: Answer, allowed: int | None, earlier: tuple[Attempt, ...] = ()) -> dict[str, Any]:
    """How an answer was obtained; a single good attempt says nothing that the record does not."""
    attempts = (*earlier, *answer.attempts)
    usage, cost = spent(attempts)
    return {
        "max_tokens": allowed,
        "usage": usage,
        "cost_usd": cost,
        "seconds": round(answer.seconds, 3),
        "attempts": attempts if len(attempts) > 1 or attempts[0].outcome != "ok" else (),
    }


def _reply(completion: Completion, notes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "finish_reason": completion.finish_reason,
        "refusal": completion.refusal,
        "tool_calls": completion.tool_calls,
        "model_served": completion.model_served,
        "response_id": completion.response_id,
        "fingerprint": completion.fingerprint,
        "adapted": completion.adapted,
        "notes": (*notes, *completion.notes),
    }


def _now() -> str:
    """UTC, RFC 3339, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
