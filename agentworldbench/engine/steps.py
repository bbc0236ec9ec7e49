"""The two steps of a sample, each from a question to a finished record.

`predict` asks the model and makes a `Prediction`; `judge` asks a judge, again when its reply holds
no verdict, and makes a `Verdict`. Neither raises for what a model did: failures become records.
How a request is sent (connections, retries) is passed in as `Asker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentworldbench.engine.ahead import Prompt
from agentworldbench.engine.budget import Asked, Asker, ask_within
from agentworldbench.engine.fitting import Room, Unsent, Written
from agentworldbench.engine.order import NONE, Reads
from agentworldbench.engine.progress import spent
from agentworldbench.models import Model
from agentworldbench.observation import read_reply
from agentworldbench.official import official_observation
from agentworldbench.prompts import messages_sha256
from agentworldbench.protocol import Parse
from agentworldbench.records import (
    Attempt,
    Completion,
    Failure,
    FailureKind,
    Prediction,
    Request,
    Sample,
    SampleRef,
    Sampling,
    Verdict,
)
from agentworldbench.reply import parts_of
from agentworldbench.scoring.judge import Judge
from agentworldbench.task import Task
from agentworldbench.texts import sha256_text, time_text


@dataclass(frozen=True)
class Predictor:
    """The model under test, its sampling for a sample, what to do where its context is short, and how
    the protocol reads its replies: what it takes for text is not asked for again. The official script
    asks once, whatever comes; strictly a reply whose tokens were lost on the way is asked for twice."""

    model: Model
    tasks: Mapping[str, Task]
    sampling: Callable[[SampleRef, int], Sampling]
    room: Room
    parse: Parse = "strict"

    def failed(self, prediction: Prediction) -> Failure | None:
        """The failure of a stored prediction by the protocol's own reading; officially any content counts."""
        judged = self.parse == "official" and prediction.official_sha256 is not None
        return None if judged else prediction.failure

    def make_ready(self) -> None:
        """Compile what replies are read with. It takes as long as reading ten of them, and is done before anything is sent."""
        for task in self.tasks.values():
            parts_of("", task.prediction_tag)


async def predict(
    predictor: Predictor, prompt: Prompt, epoch: int, asker: Asker, read_again: Reads = NONE
) -> Prediction:
    """Ask the model for the sample's observation in one epoch (counted from 1)."""
    sample, messages = prompt.sample, prompt.messages
    sampling = predictor.sampling(sample.ref, epoch)
    model = predictor.model
    record: dict[str, Any] = {
        "sample_id": sample.id,
        "row_hash": sample.ref.row_hash,
        "epoch": epoch,
        "started_at": _now(),
        "notes": sample.ref.flags,
    }
    request = Request(
        sample=sample,
        messages=messages,
        sampling=sampling,
        epoch=epoch,
        again_if_empty=predictor.parse == "strict",
        read_again=read_again.lengths(messages),
    )
    request = prompt.written.into(request)
    asked = await ask_within(model, request, predictor.room, asker)
    if isinstance(asked, Unsent):
        return Prediction(**record | _unsent(asked, request), failure=asked.failure, cost_usd=0.0)
    record |= _sending(asked)
    completion = asked.answer.outcome
    if isinstance(completion, Failure):
        return Prediction(**record, failure=completion)
    task = predictor.tasks[sample.ref.domain]
    read = read_reply(
        completion,
        task.prediction_tag,
        task.markers.observation,
        stops_sent=bool(sampling.extra.get("stop")),
    )
    thinking = _thinking_notes(sampling, completion, read.reasoning)
    notes = (*sample.ref.flags, *asked.notes, *read.notes, *thinking)
    record |= _reply(completion, notes) | {"reasoning": read.reasoning}
    official = official_observation(
        completion.text, read.observation, task.prediction_tag, task.markers.observation
    )
    return Prediction(
        **record,
        observation=read.observation,
        official_sha256=None if official is None else sha256_text(official),
        text=completion.text,
        failure=read.failure,
    )


async def judge(
    judge: Judge,
    prediction: Prediction,
    sample: Sample,
    repeat: int,
    asker: Asker,
    read_again: Reads = NONE,
) -> Verdict:
    """Ask a judge about a prediction's observation, up to `judge.attempts` times: a reply without text is
    an attempt like one without verdict, also where its tokens were lost on the way.

    `repeat` counts independent verdicts of one judge on one prediction, from 1.
    """
    observation = judge.shown(prediction)
    assert observation is not None, "only a prediction that can be judged is handed over"
    request = judge.request(sample, observation, prediction.epoch, repeat, prediction.text)
    request = request.model_copy(update={"read_again": read_again.lengths(request.messages)})
    request = Written.of(request.messages).into(request)
    record: dict[str, Any] = {
        "sample_id": sample.id,
        "row_hash": sample.ref.row_hash,
        "epoch": prediction.epoch,
        "judge": judge.digest(),
        "repeat": repeat,
        "observation_sha256": sha256_text(observation),
        "system_sha256": judge.system_sha256(sample.ref.domain),
        "started_at": _now(),
    }
    earlier: tuple[Attempt, ...] = ()
    attempt = 0
    while True:
        attempt += 1
        asked = await ask_within(judge.model, request, Room(judge.min_output), asker)
        if isinstance(asked, Unsent):
            return Verdict(**{"cost_usd": 0.0} | record | _unsent(asked, request), failure=asked.failure)
        record |= _sending(asked, earlier)
        completion = asked.answer.outcome
        if isinstance(completion, Failure):
            if completion.kind is not FailureKind.EMPTY or attempt == judge.attempts:
                return Verdict(**record, failure=completion)
            earlier += asked.attempts
            continue
        read = judge.read(completion, sample, observation)
        unread = judge.unread(completion.text, read)
        if unread is None or attempt == judge.attempts:
            break
        message = read.message if isinstance(read, Failure) else "no verdict by the official rules"
        again = {"outcome": unread, "message": message, "reply": completion.text}
        earlier += (*asked.attempts[:-1], asked.attempts[-1].model_copy(update=again))
    record |= _reply(completion, asked.notes) | {"reply": completion.text, "reasoning": completion.reasoning}
    if isinstance(read, Failure):
        return Verdict(**record, failure=read)
    if read.found != ("no tag" if judge.as_json else "tag"):  # a schema has no room for a tag
        record["notes"] = (*record["notes"], f"verdict found by: {read.found}")
    return Verdict(**record, scores=read.scores, strengths=read.strengths, weaknesses=read.weaknesses)


def _thinking_notes(sampling: Sampling, completion: Completion, reasoning: str | None) -> tuple[str, ...]:
    """Whether the answer shows that the model did not do as --thinking says."""
    thought = bool(reasoning or completion.usage.reasoning_tokens)
    if sampling.thinking == "on" and not thought:
        return ("no reasoning came back although --thinking is on",)
    if sampling.thinking == "off" and thought:
        return ("reasoning came back although --thinking is off",)
    return ()


def _sending(asked: Asked, earlier: tuple[Attempt, ...] = ()) -> dict[str, Any]:
    """How an answer was obtained; a single good attempt says nothing that the record does not."""
    attempts, fitted = (*earlier, *asked.attempts), asked.fitted
    usage, cost = spent(attempts)
    return {
        "prompt_sha256": _sha256(fitted.request),
        "max_tokens": fitted.request.sampling.max_tokens,
        "prompt_tokens": fitted.prompt_tokens if fitted.prompt_tokens_from else None,
        "prompt_tokens_from": fitted.prompt_tokens_from,
        "dropped_turns": fitted.dropped_turns,
        "usage": usage,
        "cost_usd": cost,
        "seconds": round(asked.answer.seconds, 3),
        "attempts": attempts if len(attempts) > 1 or attempts[0].outcome != "ok" else (),
    }


def _sha256(request: Request) -> str:
    return request.prompt_sha256 or messages_sha256(request.messages)


def _unsent(asked: Unsent, request: Request) -> dict[str, Any]:
    return {
        "prompt_sha256": _sha256(request),
        "prompt_tokens": asked.prompt_tokens,
        "prompt_tokens_from": asked.prompt_tokens_from,
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
        "cache_breakpoints": completion.cache_breakpoints,
        "notes": (*notes, *completion.notes),
    }


def _now() -> str:
    """UTC, RFC 3339, milliseconds."""
    return time_text(datetime.now(UTC), "milliseconds")
