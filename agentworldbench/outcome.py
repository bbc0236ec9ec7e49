"""From a store's journals to `metrics.jsonl` and `results.json`: the derived half of a run.

In: a store, its `RunRecord`, the data. Out: `Results`. Nothing is asked; both files can be made again
at any time (`awb score RUN`) and depend on the journals and the data alone. They are replaced when all is
computed: stopped before, the old ones stay. A verdict counts only for the observation and the system prompt
it was given on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from math import fsum
from typing import Any, Final

from pydantic import ValidationError

from agentworldbench.errors import Interrupted, StoreError
from agentworldbench.headline_checks import judge_checks, panel_checks, rule_checks
from agentworldbench.panels import panel_results
from agentworldbench.plan import Samples
from agentworldbench.prices import Price
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.raters import agreements
from agentworldbench.readings import NOT_RUN, Groups, Outcome, Outcomes, both_readings, reading_of_all
from agentworldbench.records import Asked, FailureKind, SampleMetrics, Usage
from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.own import OwnCode, read_own
from agentworldbench.scoring.parallel import Told, score_all
from agentworldbench.scoring.worker import Item, Job
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.stats.costs import spending_by_domain
from agentworldbench.stats.epochs import run_rules
from agentworldbench.stats.results import FromCache, JudgeResults, PredictionResults, Results
from agentworldbench.stats.warnings import warnings_of
from agentworldbench.store import Store, check_protocols
from agentworldbench.texts import time_text
from agentworldbench.version import __version__

Recalled = tuple[Usage, float | None]
"""Tokens and USD that an answer took when it was asked for."""


TRIED: Final = 3
"""Samples of a domain on which a user's own metrics are tried before anything is asked."""


@dataclass(frozen=True)
class Scoring:
    """How metrics are computed: whether code beside task files may run, in how many processes (None: as the
    work is worth), and who is told how far it is."""

    allow_code: bool = False
    processes: int | None = None
    told: Told = lambda done, total: None


def read_results(store: Store) -> Results | None:
    """The results of a run that are stored. Raises StoreError when they are damaged."""
    stored, path = store.read_results(), store.path / "results.json"
    if stored is None:
        return None
    remedy = "; `awb score` makes it again"
    try:
        results = Results.model_validate_json(json.dumps(stored))
    except ValidationError as problem:
        raise StoreError(f"{path}: {_why_unread(stored)}{remedy}") from problem
    named = {
        f"judges.{number}.judge.protocol": one.judge.protocol for number, one in enumerate(results.judges)
    }
    named |= {"panel.protocol": results.panel.protocol} if results.panel else {}
    check_protocols(path, {"protocol": results.protocol, **named}, remedy)
    return results


def _why_unread(results: Any) -> str:
    """Of what does not fit `Results`: another version says which it is, and is not damaged."""
    known = Results.model_fields["schema_version"].default
    version = results.get("schema_version", known) if isinstance(results, dict) else known
    if version == known and type(version) is type(known):
        return "damaged"
    return f"written by another version of awb (schema {version!r:.20}, this one reads {known})"


def own_code(samples: Samples, allowed: bool) -> dict[str, OwnCode]:
    """Users' own metrics by domain. Raises ConfigError where there are some and they are not `allowed`."""
    return {
        domain: read_own(samples.tasks[domain], allowed)
        for domain in by_domain(samples.refs)
        if samples.tasks[domain].own
    }


def try_own(samples: Samples, allowed: bool) -> None:
    """Run users' own metrics on the references of the first samples, so that what is wrong shows before
    anything is spent. Raises TaskError or ConfigError."""
    for domain, code in own_code(samples, allowed).items():
        task, metrics = samples.tasks[domain], code.metrics()
        for ref in by_domain(samples.refs)[domain][:TRIED]:
            score_observation(samples.dataset.load(ref), task, None, own=metrics)


def make_results(store: Store, run: RunRecord, samples: Samples, scoring: Scoring) -> Results:
    """Compute, store and return all numbers of a run. Raises Interrupted when the user stops it."""
    own = own_code(samples, scoring.allow_code)
    try:
        metrics = _metrics(store, samples, own, scoring, run.epochs)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted while metrics were computed; nothing was changed, `awb score` computes them anew"
        ) from None
    results = results_of(store, run, samples, metrics, own)
    store.write_metrics(record for some in metrics.values() for record in some)
    store.write_json("results.json", results.model_dump(mode="json"))
    return results


def results_of(
    store: Store,
    run: RunRecord,
    samples: Samples,
    metrics: Mapping[str, list[SampleMetrics]],
    own: Mapping[str, OwnCode],
) -> Results:
    """All numbers of what a store holds now; nothing is written. `metrics` are those of its predictions by sample id,
    epoch after epoch, samples in file order."""
    groups = by_domain(samples.refs)
    primary = {domain: samples.tasks[domain].primary for domain in groups}
    price = run.price(str(run.predict.model["model"]))
    predictions = _prediction_results(store, groups, run, price)
    judges, outcomes = list[JudgeResults](), dict[str, Outcomes]()
    for one in run.judges:
        made, outcomes[one.digest] = _judge_results(store, groups, run, one)
        judges.append(made)
    panel = panel_results(run, groups, outcomes)
    return Results(
        protocol=run.protocol,
        policy=PROTOCOLS[run.protocol].policy,
        predict=run.predict,
        selection=run.selection,
        task_files={domain: samples.tasks[domain].file_sha256() for domain in groups},
        own_metrics={domain: code.digests() for domain, code in own.items()},
        complete=_complete(predictions, judges),
        predictions=predictions,
        rules=run_rules(groups, metrics, primary).model_copy(
            update={"checks": rule_checks(groups, metrics, PROTOCOLS[run.protocol].policy)}
        ),
        judges=tuple(judges),
        warnings=tuple(warnings_of(run, predictions, judges)),
        made_by=__version__,
        made_at=time_text(datetime.now(UTC)),
        epochs=run.epochs,
        repeats=run.repeats,
        data_samples=dict(Counter(ref.domain for ref in samples.dataset.refs if ref.domain in groups)),
        panel=panel and panel.model_copy(update={"checks": panel_checks(groups, outcomes, run)}),
        agreement=agreements(run, groups, outcomes),
    )


def _metrics(
    store: Store, samples: Samples, own: Mapping[str, OwnCode], scoring: Scoring, epochs: int
) -> dict[str, list[SampleMetrics]]:
    """Metrics of every stored prediction of the selection by sample id, in file order, epoch after epoch."""
    tasks = {
        domain: task.model_copy(update={"judge_system_prompt": ""}) for domain, task in samples.tasks.items()
    }
    job = Job(tasks, samples.dataset.files, store.predictions.path, own)
    numbers = range(1, epochs + 1)
    places = ((ref, store.predictions.place((ref.id, epoch))) for ref in samples.refs for epoch in numbers)
    items = [Item(ref, place) for ref, place in places if place is not None]
    with closing(score_all(job, items, scoring.processes, scoring.told)) as scored:
        found: dict[str, list[SampleMetrics]] = {}
        for record in scored:
            found.setdefault(record.sample_id, []).append(record)
        return found


def _judge_results(
    store: Store, groups: Groups, run: RunRecord, judge: JudgeRecord
) -> tuple[JudgeResults, Outcomes]:
    """One judge's numbers, and what they were made of by the reading of its protocol."""
    served: set[str] = set()
    notes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    strict: dict[str, list[list[Outcome]]] = {}
    official: dict[str, list[list[Outcome]]] = {}
    differing = less_room = 0
    recalled: list[Recalled] = []
    for both in both_readings(store, groups, judge, run.epochs, run.repeats.get(judge.digest, 1)):
        for outcomes, one in ((strict, both.strict), (official, both.official)):
            mine = outcomes.setdefault(both.ref.id, [])
            mine += [[]] if both.repeat == 1 else []
            mine[-1].append(one)
        differing += both.differ
        if both.verdict is not None:
            served.update(filter(None, [both.verdict.model_served]))
            notes.update(both.verdict.notes)
            recalled += _recalled(both.verdict)
            less_room += _asked_less(both.verdict, judge.sampling.get("max_tokens"))
        own = both.official if judge.parse == "official" else both.strict
        if own.stage == "judge":
            examples.setdefault(own.kind, own.message)
    every = store.verdicts.every_line()
    lines = (one for one in every if one.judge == judge.digest and one.sample_id in strict)
    spent, domains = spending_by_domain(lines, run.price(judge.model))
    results = JudgeResults(
        judge=judge,
        served=tuple(sorted(served)),
        strict=reading_of_all(groups, strict),
        official=reading_of_all(groups, official),
        differing=differing,
        less_room=less_room,
        examples=dict(sorted(examples.items())),
        notes=dict(sorted(notes.items())),
        spent=spent,
        spent_by_domain=domains,
        from_cache=_from_cache(recalled),
        checks=judge_checks(groups, official if judge.parse == "official" else strict, judge),
    )
    return results, official if judge.parse == "official" else strict


def _prediction_results(
    store: Store, groups: Groups, run: RunRecord, price: Price | None
) -> PredictionResults:
    sampling: Mapping[str, Mapping[str, Any]] = run.predict.sampling
    failures: dict[str, dict[str, int]] = {}
    predicted: dict[str, int] = {}
    shortened = less_room = 0
    recalled: list[Recalled] = []
    served: set[str] = set()
    notes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    chosen = {ref.id for refs in groups.values() for ref in refs}
    for domain, refs in groups.items():
        counts: Counter[str] = Counter()
        predicted[domain] = 0
        for ref, epoch in product(refs, range(1, run.epochs + 1)):
            prediction = store.predictions.get((ref.id, epoch))
            if prediction is None:
                counts[NOT_RUN] += 1
                continue
            served.update(filter(None, [prediction.model_served]))
            notes.update(prediction.notes)
            recalled += _recalled(prediction)
            shortened += prediction.dropped_turns > 0 and prediction.failure is None
            less_room += _asked_less(prediction, sampling.get(domain, {}).get("max_tokens"))
            if prediction.failure is None:
                predicted[domain] += 1
            else:
                counts[prediction.failure.kind.value] += 1
                examples.setdefault(prediction.failure.kind.value, prediction.failure.message)
        failures[domain] = dict(sorted(counts.items()))
    lines = (line for line in store.predictions.every_line() if line.sample_id in chosen)
    spent, domains = spending_by_domain(lines, price)
    return PredictionResults(
        samples={domain: len(refs) * run.epochs for domain, refs in groups.items()},
        predicted=predicted,
        shortened=shortened,
        less_room=less_room,
        failures=failures,
        served=tuple(sorted(served)),
        examples=dict(sorted(examples.items())),
        notes=dict(sorted(notes.items())),
        spent=spent,
        spent_by_domain=domains,
        from_cache=_from_cache(recalled),
    )


def _recalled(record: Asked) -> list[Recalled]:
    """What an answer took when it was asked for, where it came from a response cache."""
    return [] if record.cached_usage is None else [(record.cached_usage, record.cached_cost_usd)]


def _from_cache(recalled: Sequence[Recalled]) -> FromCache:
    costs = [cost for _, cost in recalled if cost is not None]
    return FromCache(
        answers=len(recalled),
        usage=sum((usage for usage, _ in recalled), Usage()),
        cost_usd=fsum(costs) if len(costs) == len(recalled) else None,
    )


def _asked_less(record: Asked, wanted: Any) -> bool:
    """Whether an answer was asked for with fewer tokens than `wanted` (no number: as many as the server gives)."""
    if record.failure is not None and record.failure.kind is FailureKind.CONTEXT_OVERFLOW:
        return False  # there was no answer, however little was asked for
    lowered = (record.adapted.get(name) for name in ("max_tokens", "max_completion_tokens"))
    sent = [number for number in (record.max_tokens, *lowered) if isinstance(number, int)]
    return isinstance(wanted, int) and bool(sent) and min(sent) < wanted


def _complete(predictions: PredictionResults, judges: Sequence[JudgeResults]) -> bool:
    asked = all(NOT_RUN not in counts for counts in predictions.failures.values())
    return asked and all(not counts["pending"] for judge in judges for counts in judge.failures.values())
