"""One request to a model in this process: its prompt, its room, and the completion that comes of it.

On an engine that a test scripts; pooling and batches are tested in `test_in_process.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from agentworldbench.models.generation import EngineFailed, Generated, Job
from agentworldbench.records import CallFailure, Completion, FailureKind, Sampling
from tests.helpers.asking import make_request
from tests.helpers.fake_engine import FakeEngine, ask_all, bounded, model_of

Outcomes = Iterator[tuple[Job, Generated | EngineFailed]]


def kinds(outcomes: Sequence[Completion | CallFailure]) -> list[str | None]:
    return [None if isinstance(one, Completion) else one.failure.kind for one in outcomes]


def test_a_completion_tells_tokens_and_why_it_ended() -> None:
    def script(jobs: Sequence[Job]) -> Outcomes:
        for job in jobs:
            yield job, Generated(tuple(map(ord, "cut"[: job.room])), "length")

    engine = FakeEngine(script)
    (cut,) = ask_all(model_of(engine, batch_size=1), ["a"], Sampling(max_tokens=2))
    (whole,) = ask_all(model_of(FakeEngine(), batch_size=1), ["word"])
    assert isinstance(cut, Completion)
    assert isinstance(whole, Completion)
    assert (cut.text, cut.finish_reason, cut.usage.completion_tokens) == ("cu", "length", 2)
    assert (whole.text, whole.finish_reason, whole.usage.completion_tokens) == ("WORD", "stop", 5)
    assert whole.usage.prompt_tokens == len("system:You are a shell.\nuser:word\n")
    assert (whole.cost_usd, whole.adapted, whole.notes) == (0.0, {}, ())


ROOM = {
    "what remains of the context": (None, None, 1000, 960),
    "the answer that is wanted": (7, None, 1000, 7),
    "a context that the user makes smaller": (None, 100, 1000, 60),
    "no more than remains": (5000, None, 1000, 960),
}


@pytest.mark.parametrize("name", ROOM)
def test_the_room_of_an_answer(name: str) -> None:
    wanted, max_context, context, room = ROOM[name]
    engine = FakeEngine(context=context)
    text = "x" * (40 - len("system:You are a shell.\nuser:\n"))
    ask_all(model_of(engine, max_context=max_context), [text], Sampling(max_tokens=wanted))
    assert [(len(job.prompt), job.room) for job in engine.jobs] == [(40, room)]


def test_a_prompt_that_fills_the_context_is_not_sent() -> None:
    engine = FakeEngine(context=40)
    assert kinds(ask_all(model_of(engine), ["x" * 40])) == [FailureKind.CONTEXT_OVERFLOW]
    assert engine.jobs == []


def test_a_counted_prompt_is_encoded_once_and_counts_exactly() -> None:
    engine = FakeEngine()
    model = model_of(engine, batch_size=2)
    request = make_request(text="hello")

    async def work() -> tuple[int | None, int | None]:
        await model.check()
        counts = await model.count(request), await model.count(request)
        await model.generate(request)
        await model.close()
        return counts

    expected = len("system:You are a shell.\nuser:hello\n")
    assert bounded(work) == (expected, expected)
    assert len(engine.tokenizer.encoded) == 1


def test_a_template_that_refuses_the_system_role_fails_the_sample() -> None:
    engine = FakeEngine()
    engine.template = "no system role"
    model = model_of(engine)

    async def work() -> tuple[int | None, Completion | CallFailure]:
        await model.check()
        counted = await model.count(make_request())
        outcome = await model.generate(make_request())
        await model.close()
        return counted, outcome

    counted, outcome = bounded(work)
    assert counted is None
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind is FailureKind.BAD_REQUEST
    assert "System role not supported" in outcome.failure.message
    assert engine.jobs == []


@pytest.mark.parametrize(
    ("scheme", "rolling", "adapted"), [("hf", False, {"response_format": None}), ("vllm", True, {})]
)
def test_a_json_schema_is_kept_to_or_said_to_be_left_out(
    scheme: str, rolling: bool, adapted: dict[str, Any]
) -> None:
    engine = FakeEngine(rolling=rolling)
    model = model_of(engine, scheme)

    async def work() -> Completion | CallFailure:
        await model.check()
        outcome = await model.generate(make_request(json_schema={"type": "object"}))
        await model.close()
        return outcome

    outcome = bounded(work)
    assert isinstance(outcome, Completion)
    assert outcome.adapted == adapted
    assert bool(outcome.notes) is bool(adapted)
    held = engine.jobs[0].decoding.schema
    assert (held and json.loads(held)) == ({"type": "object"} if rolling else None)
