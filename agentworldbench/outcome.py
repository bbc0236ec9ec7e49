"""From a store's journals to `metrics.jsonl` and `results.json`: the derived half of a run.

In: a store, its `RunRecord`, the data. Out: `Results`. Nothing is asked; both files can be made again
at any time (`awb score RUN`) and depend on the journals and the data alone. A verdict counts only for
the observation and the system prompt it was given on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from agentworldbench.plan import Samples
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import FailureKind, Prediction, SampleMetrics, SampleRef, Usage, Verdict
from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.stats.aggregate import block, by_domain, macro, rule_results
from agentworldbench.stats.results import JudgeResults, PredictionResults, Results, Spending
from agentworldbench.stats.warnings import warnings_of
from agentworldbench.store import Store
from agentworldbench.version import __version__

Groups = Mapping[str, Sequence[SampleRef]]
NOT_RUN = FailureKind.NOT_RUN.value


def make_results(store: Store, run: RunRecord, samples: Samples) -> Results:
    """Compute, store and return all numbers of a run."""
    groups = by_domain(samples.refs)
    store.write_metrics(_metrics(store, samples))
    metrics = {record.sample_id: record for record in store.read_metrics()}
    predictions = _prediction_results(store, groups)
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
    scores: dict[str, dict[str, int]] = {}
    failures: dict[str, dict[str, dict[str, int]]] = {}
    pending: set[str] = set()
    served: set[str] = set()
    notes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    chosen = {ref.id for refs in groups.values() for ref in refs}
    for domain, refs in groups.items():
        counts: dict[str, Counter[str]] = {"prediction": Counter(), "judge": Counter(), "pending": Counter()}
        for ref in refs:
            prediction = store.predictions.get((ref.id, 1))
            verdict = _verdict(store, prediction, judge, domain)
            if verdict is not None:
                served.update(filter(None, [verdict.model_served]))
                notes.update(verdict.notes)
            if verdict is not None and verdict.scores is not None:
                scores[ref.id] = verdict.scores
            elif prediction is not None and prediction.failure is not None:
                counts["prediction"][prediction.failure.kind.value] += 1
            elif verdict is not None and verdict.failure is not None:
                counts["judge"][verdict.failure.kind.value] += 1
                examples.setdefault(verdict.failure.kind.value, verdict.failure.message)
            else:
                counts["pending"][NOT_RUN] += 1
                pending.add(ref.id)
        failures[domain] = {stage: dict(sorted(some.items())) for stage, some in counts.items()}
    blocks = {domain: block(refs, scores, pending) for domain, refs in groups.items()}
    return JudgeResults(
        judge=judge,
        served=tuple(sorted(served)),
        domains=blocks,
        failures=failures,
        micro=block([ref for refs in groups.values() for ref in refs], scores, pending),
        macro_exclude=macro(one.exclude for one in blocks.values()),
        macro_floor=macro(one.floor for one in blocks.values()),
        examples=dict(sorted(examples.items())),
        notes=dict(sorted(notes.items())),
        spent=_spending(
            line
            for line in store.verdicts.every_line()
            if line.judge == judge.digest and line.sample_id in chosen
        ),
    )


def _verdict(store: Store, prediction: Prediction | None, judge: JudgeRecord, domain: str) -> Verdict | None:
    """The verdict that counts for a prediction, or None."""
    if prediction is None or domain not in judge.system_prompts:
        return None
    return store.verdict_on(prediction, judge.digest, judge.system_prompts[domain])


def _prediction_results(store: Store, groups: Groups) -> PredictionResults:
    failures: dict[str, dict[str, int]] = {}
    predicted: dict[str, int] = {}
    shortened = 0
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
            shortened += prediction.dropped_turns > 0
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
        failures=failures,
        served=tuple(sorted(served)),
        examples=dict(sorted(examples.items())),
        notes=dict(sorted(notes.items())),
        spent=_spending(line for line in store.predictions.every_line() if line.sample_id in chosen),
    )


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
