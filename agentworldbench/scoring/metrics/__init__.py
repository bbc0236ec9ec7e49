"""The literal table of metrics, and scoring one prediction with those that a task lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentworldbench.prompts import previous_observation
from agentworldbench.records import FailureKind, Sample, SampleMetrics
from agentworldbench.scoring.metrics import change, search, structured, swe, terminal, text, ui_tree
from agentworldbench.scoring.metrics.base import Metric, Unparsable
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.task import Task
from agentworldbench.texts import scrub

MAX_CHARACTERS: Final = 1_000_000
"""A longer prediction is scored on its first million characters and flagged."""

REASON_CHARACTERS: Final = 200
"""So much is kept of the reason why a prediction could not be read."""

METRICS: Final[Mapping[str, Metric]] = {
    **text.METRICS,
    **change.METRICS,
    **ui_tree.METRICS,
    **structured.METRICS,
    **terminal.METRICS,
    **swe.METRICS,
    **search.METRICS,
}


def score_observation(
    sample: Sample,
    task: Task,
    observation: str | None,
    failed: FailureKind | None = None,
    epoch: int = 1,
    own: Mapping[str, Metric] | None = None,
) -> SampleMetrics:
    """All metrics of the task for one predicted observation, or for a failed prediction (None).

    Beside them stands what `baseline/copy-last` scores here on the primary metrics, in the same way. `own`
    holds the metrics that the task's author has written (`own.py`).
    """
    facts = Facts(sample, task)
    known = {**METRICS, **(own or {})}
    applicable = {name: known[name] for name in task.metrics if known[name].applies(facts)}
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    if observation is not None:
        flags = ("cut_to_1_MB",) if len(observation) > MAX_CHARACTERS else ()
        values, reasons = _values(facts, applicable, observation)
    primary = {name: metric for name, metric in applicable.items() if name in task.primary}
    return SampleMetrics(
        sample_id=sample.id,
        epoch=epoch,
        applicable=tuple(applicable),
        values=values,
        baseline=_values(facts, primary, previous_observation(sample, task) or "")[0],
        reasons=reasons,
        failed=failed,
        flags=flags,
    )


def _values(
    facts: Facts, metrics: Mapping[str, Metric], observation: str
) -> tuple[dict[str, float], dict[str, str]]:
    """The values of an observation by metric, and why those that could not read it are 0."""
    prediction = normalise(observation[:MAX_CHARACTERS])
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name, metric in metrics.items():
        value = metric.score(facts, prediction)
        if isinstance(value, Unparsable):
            reasons[name] = scrub(str(value.reason))[:REASON_CHARACTERS]
        values[name] = 0.0 if isinstance(value, Unparsable) else value
    return values, reasons
