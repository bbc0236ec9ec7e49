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
    refs = plan.samples.refs
    patience = Patience(retry_failed=plan.config.retry_failed)
    pipeline = Pipeline(
        plan.samples.dataset, Store(plan.path), plan.predictor, plan.judges, patience, Progress()
    )
    predictions, verdicts = pipeline.due(refs)
    stages = []
    if plan.predictor:
        stages.append(_stage("predict", plan.predictor.model, predictions, refs, 0))
    for judge in plan.judges:
        due = round(verdicts / len(plan.judges))
        stages.append(_stage("judge", judge.model, due, refs, JUDGE_PROMPT_TOKENS))
    return stages


def _stage(stage: str, model: Model, requests: int, refs: Sequence[SampleRef], fixed: int) -> StageEstimate:
    mean = sum(ref.context_chars for ref in refs) / CHARACTERS_PER_TOKEN / len(refs)
    tokens = round(requests * (mean + fixed))
    price = model.price()
    usd = None if price is None else tokens * price[0] + requests * ASSUMED_OUTPUT * price[1]
    return StageEstimate(stage, model.name, requests, tokens, usd, model.local)
