"""What the engine keeps of how a reply was read: notes, reasoning, and the hint at stop strings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentworldbench.engine.ahead import prompt_of
from agentworldbench.engine.fitting import Room
from agentworldbench.engine.retry import Answer
from agentworldbench.engine.steps import Predictor, predict
from agentworldbench.models import Model
from agentworldbench.records import Attempt, Completion, Prediction, Request, Sampling
from tests.helpers.asking import TASKS, make_sample
from tests.helpers.fake_model import FakeModel, says


def predicted(completion: Completion, **extra: Any) -> Prediction:
    """The prediction that the engine makes of a completion; `extra` is sent with the request."""

    async def asker(model: Model, request: Request) -> Answer:
        outcome = await model.generate(request)
        assert isinstance(outcome, Completion)
        return Answer(outcome=outcome, attempts=(Attempt(outcome="ok", seconds=0.0),), seconds=0.0)

    model = FakeModel(lambda request, number: completion)
    predictor = Predictor(model, TASKS, lambda ref, epoch: Sampling(max_tokens=64, extra=extra), Room(16))
    return asyncio.run(predict(predictor, prompt_of(make_sample()), 1, asker))


def test_notes_and_reasoning_of_the_reading_are_kept() -> None:
    kept = predicted(says("plan</think>\n  a.txt<|im_end|>", notes=("2 choices came back",)))
    assert kept.observation == "  a.txt"
    assert kept.reasoning == "plan"
    assert kept.notes == (
        "closing thinking tag without an opening one: what stands before it was read as reasoning",
        "end-of-turn token cut from the end of the answer",
        "2 choices came back",
    )


@pytest.mark.parametrize(
    ("extra", "hint"), [({"stop": ["</x>"]}, True), ({"stop": "x"}, True), ({"stop": []}, False), ({}, False)]
)
def test_mo_09_the_hint_at_stop_strings_needs_some_that_were_sent(extra: dict[str, Any], hint: bool) -> None:
    failure = predicted(says(None, reasoning="the tag is "), **extra).failure
    assert failure is not None
    assert failure.kind == "empty"
    assert ("possible stop inside reasoning" in failure.message) is hint
