"""The shape of `results.json`: what a run's scores are, with every count they rest on.

Scores are 0-100, rule metrics [0, 1], None where a number is not available. Both failure policies
and both averages always stand side by side: `exclude` leaves failed samples out, `floor` counts
them 0; macro is the plain mean of the domain means, micro the mean over samples. A domain without
any scored sample makes macro not available.
"""

from __future__ import annotations

from typing import Any, Literal

from agentworldbench.records import Record

Scores = dict[str, float | None]
"""`total` and the five dimensions, 0-100."""


class Block(Record):
    """Scores of one domain, or of all, for one judge."""

    samples: int
    scored: int
    clusters: int
    coverage: float
    exclude: Scores
    floor: Scores


class JudgeResults(Record):
    """One judge's scores; `failures` count by class what kept a sample from a score."""

    digest: str
    model: str
    served: tuple[str, ...]
    domains: dict[str, Block]
    failures: dict[str, dict[str, int]]
    micro: Block
    macro_exclude: Scores
    macro_floor: Scores
    usage: dict[str, int | None]
    cost_usd: float | None


class MetricMean(Record):
    """Mean of one metric over the samples it applies to; `n` counts them all, `scored` without failures."""

    n: int
    scored: int
    exclude: float | None
    floor: float | None


class RuleResults(Record):
    """Rule metrics by domain, and the rule score (mean of a sample's applicable primary metrics)."""

    metrics: dict[str, dict[str, MetricMean]]
    score: dict[str, MetricMean]
    macro_exclude: float | None
    macro_floor: float | None


class PredictionResults(Record):
    """How the asking went: counts by domain, failures by class, tokens, cost, adaptations."""

    samples: dict[str, int]
    predicted: dict[str, int]
    failures: dict[str, dict[str, int]]
    served: tuple[str, ...]
    notes: dict[str, int]
    usage: dict[str, int | None]
    cost_usd: float | None


class Results(Record):
    """All numbers of a run. `complete` is False while selected samples have not been asked."""

    schema_version: Literal[1] = 1
    protocol: str
    policy: Literal["exclude", "floor"]
    model: str
    data: dict[str, Any]
    task_files: dict[str, str]
    selection: dict[str, Any]
    complete: bool
    predictions: PredictionResults
    rules: RuleResults
    judges: tuple[JudgeResults, ...]
    harness: str
    made_at: str
