"""From a store's journals to `metrics.jsonl` and `results.json`: the derived half of a run.

In: a store, its `RunRecord`, the data. Out: `Results`. Nothing is asked; both files can be made again
at any time (`awb score RUN`) and depend on the journals and the data alone. A verdict counts only for
the observation and the system prompt it was given on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentworldbench.plan import Samples
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.readings import NOT_RUN, Groups, Outcome, both_readings, reading
from agentworldbench.records import Asked, FailureKind, Prediction, SampleMetrics, Usage, Verdict
from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.stats.aggregate import by_domain, rule_results
from agentworldbench.stats.results import JudgeResults, PredictionResults, Results, Spending
from agentworldbench.stats.warnings import warnings_of
from agentworldbench.store import Store
from agentworldbench.version import __version__


def make_results(store: Store, run: RunRecord, samples: Samples) -> Results:
    """Compute, store and return all numbers of a run."""
    groups = by_domain(samples.refs)
    store.write_metrics(_metrics(store, samples))
    metrics = {record.sample_id: record for record in store.read_metrics()}
    predictions = _prediction_results(store, groups, run.predict.sampling)
    judges = tuple(_judge_results(store, groups, judge) for judge in run.judges)
    results = Results(
        protocol=run.protocol,
        policy=PROTOCOLS[run.protocol].policy,
        predict=run.predict,
        selection=run.selection,
        task_files={domain: samples.tasks[domain].file_sha256() for domain in groups},
        complete=_complete(predictions, judges),
        predictions=predictions,
        rules=rule_results(groups, metrics, {domain: samples.tasks[domain].primary for domain in groups}),
        judges=judges,
        warnings=tuple(warnings_of(run, predictions, judges)),
        made_by=__version__,
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


def _judge_results(store: Store, groups: Groups, judge: JudgeRecord) -> JudgeResults:
    served: set[str] = set()
    notes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    strict: dict[str, Outcome] = {}
    official: dict[str, Outcome] = {}
    differing = less_room = 0
    for both in both_readings(store, groups, judge):
        strict[both.ref.id], official[both.ref.id] = both.strict, both.official
        differing += both.differ
        if both.verdict is not None:
            served.update(filter(None, [both.verdict.model_served]))
            notes.update(both.verdict.notes)
            less_room += _asked_less(both.verdict, judge.sampling.get("max_tokens"))
        own = both.official if judge.parse == "official" else both.strict
        if own.stage == "judge":
            examples.setdefault(own.kind, own.message)
    return JudgeResults(
        judge=judge,
        served=tuple(sorted(served)),
        strict=reading(groups, strict),
        official=reading(groups, official),
        differing=differing,
        less_room=less_room,
        examples=dict(sorted(examples.items())),
        notes=dict(sorted(notes.items())),
        spent=_spending(
            line
            for line in store.verdicts.every_line()
            if line.judge == judge.digest and line.sample_id in strict
        ),
    )


def _prediction_results(
    store: Store, groups: Groups, sampling: Mapping[str, Mapping[str, Any]]
) -> PredictionResults:
    failures: dict[str, dict[str, int]] = {}
    predicted: dict[str, int] = {}
    shortened = less_room = 0
    served: set[str] = set()
    notes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    chosen = {ref.id for refs in groups.values() for ref in refs}
    for domain, refs in groups.items():
        counts: Counter[str] = Counter()
        predicted[domain] = 0
        for ref in refs:
            prediction = store.predictions.get((ref.id, 1))
            if prediction is None:
                counts[NOT_RUN] += 1
                continue
            served.update(filter(None, [prediction.model_served]))
            notes.update(prediction.notes)
            shortened += prediction.dropped_turns > 0 and prediction.failure is None
            less_room += _asked_less(prediction, sampling.get(domain, {}).get("max_tokens"))
            if prediction.failure is None:
                predicted[domain] += 1
            else:
                counts[prediction.failure.kind.value] += 1
                examples.setdefault(prediction.failure.kind.value, prediction.failure.message)
        failures[domain] = dict(sorted(counts.items()))
    return PredictionResults(
        samples={domain: len(refs) for domain, refs in groups.items()},
        predicted=predicted,
        shortened=shortened,
        less_room=less_room,
        failures=failures,
        served=tuple(sorted(served)),
        examples=dict(sorted(examples.items())),
        notes=dict(sorted(notes.items())),
        spent=_spending(line for line in store.predictions.every_line() if line.sample_id in chosen),
    )


def _asked_less(record: Asked, wanted: Any) -> bool:
    """Whether an answer was asked for with fewer tokens than `wanted` (no number: as many as the server gives)."""
    if record.failure is not None and record.failure.kind is FailureKind.CONTEXT_OVERFLOW:
        return False  # there was no answer, however little was asked for
    lowered = (record.adapted.get(name) for name in ("max_tokens", "max_completion_tokens"))
    sent = [number for number in (record.max_tokens, *lowered) if isinstance(number, int)]
    return isinstance(wanted, int) and bool(sent) and min(sent) < wanted


def _spending(records: Iterable[Prediction | Verdict]) -> Spending:
    """Tokens of all records, and USD when every record's cost is known."""
    usage, cost, known = Usage(), 0.0, True
    for record in records:
        usage = usage + record.usage
        known = known and record.cost_usd is not None
        cost += record.cost_usd or 0.0
    return Spending(usage=usage, cost_usd=cost if known else None)


def _complete(predictions: PredictionResults, judges: Sequence[JudgeResults]) -> bool:
    asked = all(NOT_RUN not in counts for counts in predictions.failures.values())
    return asked and all(not counts["pending"] for judge in judges for counts in judge.failures.values())
