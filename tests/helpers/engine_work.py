"""One session of the pipeline on a run directory, with models inside the process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agentworldbench.dataset import Dataset
from agentworldbench.engine.fitting import Room
from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.steps import Predictor
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import DIMENSIONS, Completion, Request, SampleRef, Sampling
from agentworldbench.scoring.judge import Judge
from agentworldbench.store import Store

from .asking import TASKS
from .fake_model import FakeModel, says
from .scripted_server import verdict_text

GOOD = dict.fromkeys(DIMENSIONS, 4)
LIMIT_S = 30.0


def world(request: Request, number: int) -> Completion:
    """A prediction that names its sample."""
    return says(f"<predicted_observation>{request.sample.id}</predicted_observation>")


def verdict(request: Request, number: int) -> Completion:
    """Fours throughout."""
    return says(verdict_text(GOOD))


def judge_of(model: FakeModel, attempts: int = 3) -> Judge:
    """A judge of the builtin protocol that asks `model`."""
    return Judge(
        model, Sampling(temperature=0.0), PROTOCOLS["builtin"], TASKS, as_json=False, attempts=attempts
    )


def work(
    dataset: Dataset,
    store: Store,
    model: FakeModel | None,
    *judges: Judge,
    seed: int | None = 1,
    refs: Sequence[SampleRef] | None = None,
    **patience: Any,
) -> Progress:
    """One session on `store`, bounded."""
    predictor = None
    if model:
        predictor = Predictor(model, TASKS, lambda ref, epoch: Sampling(max_tokens=64), Room(16))
    progress = Progress()
    pipeline = Pipeline(
        dataset, store, predictor, judges, Patience(**{"max_connections": 4} | patience), progress
    )
    chosen = dataset.refs if refs is None else refs

    async def run() -> None:
        units, questions = pipeline.due(chosen)
        progress.begin(len(units), len(questions))
        await asyncio.wait_for(pipeline.run(chosen, seed), LIMIT_S)

    asyncio.run(run())
    return progress
