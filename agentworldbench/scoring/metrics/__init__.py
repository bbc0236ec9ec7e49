"""The literal table of metrics, and scoring one prediction with those that a task lists.

A metric is a pair: whether it applies (from the sample alone, so that all models share
denominators) and its value in [0, 1] for a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agentworldbench.records import FailureKind, Sample, SampleMetrics
from agentworldbench.scoring.metrics import change, text
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.task import Task

MAX_CHARACTERS: Final = 1_000_000
"""A longer prediction is scored on its first million characters and flagged."""


def _always(facts: Facts) -> bool:
    return True


@dataclass(frozen=True)
class Metric:
    """`applies(facts)` and `score(facts, normalised prediction)` in [0, 1]."""

    score: Callable[[Facts, str], float]
    applies: Callable[[Facts], bool] = _always


METRICS: Final[Mapping[str, Metric]] = {
    "exact_match": Metric(text.exact_match),
    "masked_exact_match": Metric(text.masked_exact_match),
    "line_f1": Metric(text.line_f1),
    "rouge_l": Metric(text.rouge_l, text.has_tokens),
    "length_ratio": Metric(text.length_ratio),
    "change_f1": Metric(change.change_f1, change.has_change),
    "noop_match": Metric(change.noop_match, change.has_no_change),
}


def score_observation(
    sample: Sample, task: Task, observation: str | None, failed: FailureKind | None = None, epoch: int = 1
) -> SampleMetrics:
    """All metrics of the task for one predicted observation, or for a failed prediction (None)."""
    facts = Facts(sample, task)
    applicable = tuple(name for name in task.metrics if METRICS[name].applies(facts))
    values: dict[str, float] = {}
    flags: tuple[str, ...] = ()
    if observation is not None:
        if len(observation) > MAX_CHARACTERS:
            observation, flags = observation[:MAX_CHARACTERS], ("cut_to_1_MB",)
        prediction = normalise(observation)
        values = {name: METRICS[name].score(facts, prediction) for name in applicable}
    return SampleMetrics(
        sample_id=sample.id, epoch=epoch, applicable=applicable, values=values, failed=failed, flags=flags
    )
