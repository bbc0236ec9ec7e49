"""From a store's journals to `metrics.jsonl` and `results.json`: the derived half of a run.

In: a store, its `run.json`, the data. Out: `Results`. Nothing is asked; both files can be made again
at any time (`awb score RUN`) and depend on the journals and the data alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentworldbench.plan import Samples
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import FailureKind, Prediction, SampleMetrics, SampleRef, Usage, Verdict
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.stats.aggregate import block, by_domain, macro, rule_results
from agentworldbench.stats.results import JudgeResults, PredictionResults, Results
from agentworldbench.store import Store
from agentworldbench.version import __version__


def make_results(store: Store, run: Mapping[str, Any], samples: Samples) -> Results:
    """Compute, store and return all numbers of a run."""
    groups = by_domain(samples.refs)
    store.write_metrics(_metrics(store, samples))
    metrics = {record.sample_id: record for record in store.read_metrics()}
    rules = rule_results(groups, metrics, {domain: samples.tasks[domain].primary for domain in groups})
    judges = tuple(_judge_results(store, groups, judge) for judge in run["judges"])
    predictions = _prediction_results(store, groups)
    results = Results(
        protocol=run["predict"]["protocol"]["name"],
        policy=PROTOCOLS[run["predict"]["protocol"]["name"]].policy,
        model=run["predict"]["model"]["model"],
        data={name: value for name, value in run["predict"]["data"].items()},
        task_files={domain: samples.tasks[domain].file_sha256() for domain in groups},
        selection=dict(run["selection"]),
        complete=_complete(predictions, judges),
        predictions=predictions,
        rules=rules,
        judges=judges,
        harness=__version__,
        made_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    store.write_json("results.json", results.model_dump(mode="json"))
    return results


def _metrics(store: Store, samples: Samples) -> Iterator[SampleMetrics]:
    """Metrics of every stored prediction of the selection, in file order."""
    for ref in samples.refs:
        prediction = store.predictions.get((ref.id, 1))
        if prediction is not None:
            failed = prediction.failure.kind if prediction.failure else None
            sample = samples.dataset.load(ref)
            yield score_observation(sample, samples.tasks[ref.domain], prediction.observation, failed)


def _judge_results(
    store: Store, groups: Mapping[str, Sequence[SampleRef]], judge: Mapping[str, Any]
) -> JudgeResults:
    digest = judge["digest"]
    scores: dict[str, dict[str, int]] = {}
    failures: dict[str, dict[str, int]] = {}
    verdicts: list[Verdict] = []
    for domain, refs in groups.items():
        counts: Counter[str] = Counter()
        for ref in refs:
            verdict = store.verdicts.get((ref.id, 1, digest, 1))
            if verdict is not None:
                verdicts.append(verdict.model_copy(update={"reply": None, "reasoning": None, "attempts": ()}))
            if verdict is not None and verdict.scores is not None:
                scores[ref.id] = verdict.scores
            else:
                counts[_why_unscored(store, ref, verdict)] += 1
        failures[domain] = dict(sorted(counts.items()))
    blocks = {domain: block(refs, scores) for domain, refs in groups.items()}
    usage, cost = _spent(verdicts)
    return JudgeResults(
        digest=digest,
        model=judge["model"],
        served=_served(verdicts),
        domains=blocks,
        failures=failures,
        micro=block([ref for refs in groups.values() for ref in refs], scores),
        macro_exclude=macro(one.exclude for one in blocks.values()),
        macro_floor=macro(one.floor for one in blocks.values()),
        usage=usage,
        cost_usd=cost,
    )


def _why_unscored(store: Store, ref: SampleRef, verdict: Verdict | None) -> str:
    """`prediction:<kind>`, `judge:<kind>` or `not_run`."""
    prediction = store.predictions.get((ref.id, 1))
    if prediction is not None and prediction.failure is not None:
        return f"prediction:{prediction.failure.kind}"
    if verdict is not None and verdict.failure is not None:
        return f"judge:{verdict.failure.kind}"
    return FailureKind.NOT_RUN.value


def _prediction_results(store: Store, groups: Mapping[str, Sequence[SampleRef]]) -> PredictionResults:
    failures: dict[str, dict[str, int]] = {}
    predicted: dict[str, int] = {}
    notes: Counter[str] = Counter()
    predictions: list[Prediction] = []
    for domain, refs in groups.items():
        counts: Counter[str] = Counter()
        predicted[domain] = 0
        for ref in refs:
            prediction = store.predictions.get((ref.id, 1))
            if prediction is None:
                counts[FailureKind.NOT_RUN] += 1
                continue
            predictions.append(
                prediction.model_copy(update={"text": None, "reasoning": None, "observation": None})
            )
            notes.update(prediction.notes)
            if prediction.failure is None:
                predicted[domain] += 1
            else:
                counts[prediction.failure.kind] += 1
        failures[domain] = {str(kind): count for kind, count in sorted(counts.items())}
    usage, cost = _spent(predictions)
    return PredictionResults(
        samples={domain: len(refs) for domain, refs in groups.items()},
        predicted=predicted,
        failures=failures,
        served=_served(predictions),
        notes=dict(sorted(notes.items())),
        usage=usage,
        cost_usd=cost,
    )


def _spent(records: Iterable[Prediction | Verdict]) -> tuple[dict[str, int | None], float | None]:
    """Summed token counts, and USD when every record's cost is known."""
    usage, cost = Usage(), 0.0
    known = True
    for record in records:
        usage = usage + record.usage
        known = known and record.cost_usd is not None
        cost += record.cost_usd or 0.0
    return usage.model_dump(), cost if known else None


def _served(records: Iterable[Prediction | Verdict]) -> tuple[str, ...]:
    return tuple(sorted({record.model_served for record in records if record.model_served}))


def _complete(predictions: PredictionResults, judges: Sequence[JudgeResults]) -> bool:
    pending = FailureKind.NOT_RUN.value
    stages = [predictions.failures, *(judge.failures for judge in judges)]
    return not any(pending in counts for stage in stages for counts in stage.values())
