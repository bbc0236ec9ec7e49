"""A rough idea of what a plan will ask and cost, before anything is sent.

Prompt tokens come from the character counts of the index (about 4 characters a token), output is
assumed at 2,000 tokens a reply; prices are those of the model's table. Where there is no price the
cost is unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.models import Model
from agentworldbench.plan import Plan
from agentworldbench.records import SampleRef
from agentworldbench.store import Store

CHARACTERS_PER_TOKEN: Final = 4
ASSUMED_OUTPUT: Final = 2000
JUDGE_PROMPT_TOKENS: Final = 1500
"""The judge's own prompt, and room for prediction and reference."""


@dataclass(frozen=True)
class StageEstimate:
    """Requests, prompt tokens and USD (None: no price known) of one model in one stage."""

    stage: str
    model: str
    requests: int
    prompt_tokens: int
    usd: float | None
    local: bool


def estimate(plan: Plan) -> list[StageEstimate]:
    """What is still due of a plan, by stage."""
    patience = Patience(retry_failed=plan.config.retry_failed)
    pipeline = Pipeline(
        plan.samples.dataset, Store(plan.path), plan.predictor, plan.judges, patience, Progress()
    )
    units, questions = pipeline.due(plan.samples.refs)
    stages = []
    if plan.predictor:
        stages.append(_stage("predict", plan.predictor.model, [unit.ref for unit in units], 0))
    for judge in plan.judges:
        refs = [question.unit.ref for question in questions if question.judge is judge]
        stages.append(_stage("judge", judge.model, refs, JUDGE_PROMPT_TOKENS))
    return stages


def _stage(stage: str, model: Model, refs: Sequence[SampleRef], fixed: int) -> StageEstimate:
    tokens = sum(ref.context_chars // CHARACTERS_PER_TOKEN + fixed for ref in refs)
    price = model.price()
    usd = None if price is None else tokens * price[0] + len(refs) * ASSUMED_OUTPUT * price[1]
    return StageEstimate(stage, model.name, len(refs), tokens, usd, model.local)
