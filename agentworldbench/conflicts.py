"""The samples of a run on which a judge and the rules contradict each other, with what is needed to read them.

In: a run directory with verdicts and results. Out: a `JudgeConflicts` for each judge (rates by domain, conflicts
with the largest gap first), and on demand the texts of one conflict. A judge is taken by its own reading,
strict or official, and its prediction is shown as it saw it. Nothing is asked and nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentworldbench.errors import ConfigError
from agentworldbench.official import official_observation
from agentworldbench.plan import Samples
from agentworldbench.prompts import action_text, reference_observation
from agentworldbench.readings import both_readings
from agentworldbench.records import Prediction, SampleMetrics, SampleRef, Verdict
from agentworldbench.render.conflicts import Evidence
from agentworldbench.resume import reopen_samples
from agentworldbench.run_record import JudgeRecord, RunRecord, judge_names
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.stats.conflicts import Compared, Conflict, JudgeConflicts, compare, rate, worst_first
from agentworldbench.store import Store, open_store


@dataclass(frozen=True)
class RunConflicts:
    """All conflicts of a run; what they were found in stays open for reading their texts."""

    run: RunRecord
    judges: tuple[JudgeConflicts, ...]
    store: Store
    samples: Samples
    metrics: dict[str, SampleMetrics]

    def evidence(self, one: JudgeConflicts, most: int) -> list[Evidence]:
        """The texts of the `most` worst conflicts of one judge."""
        judge = next(judge for judge in self.run.judges if judge.digest == one.digest)
        refs = {ref.id: ref for ref in self.samples.refs}
        return [
            self._evidence(judge, refs[conflict.sample_id], conflict) for conflict in one.conflicts[:most]
        ]

    def _evidence(self, judge: JudgeRecord, ref: SampleRef, conflict: Conflict) -> Evidence:
        sample, task = self.samples.dataset.load(ref), self.samples.tasks[ref.domain]
        both = next(iter(both_readings(self.store, {ref.domain: [ref]}, judge)))
        prediction, verdict = both.prediction, both.verdict
        assert prediction is not None and verdict is not None, "a conflict has both"
        values = (both.official if judge.parse == "official" else both.strict).values or {}
        metrics = self.metrics[ref.id]
        return Evidence(
            conflict=conflict,
            turn=ref.turn_idx,
            turns=ref.total_turns,
            action=action_text(sample.action, task),
            reference=reference_observation(sample, task),
            prediction=self._shown(judge, prediction),
            scores={name: value for name, value in values.items() if name != "total"},
            said=_said(verdict),
            reply=verdict.reply,
            metrics=metrics.values,
            reasons=metrics.reasons,
        )

    def _shown(self, judge: JudgeRecord, prediction: Prediction) -> str:
        """The prediction as the judge saw it."""
        shown = prediction.observation
        if judge.parse == "official":
            task = self.samples.tasks[prediction.sample_id.partition("/")[0]]
            shown = official_observation(
                prediction.text, shown, task.prediction_tag, task.markers.observation
            )
        return shown or ""


def find_conflicts(path: Path, data: str | None = None, judge: str | None = None) -> RunConflicts:
    """Compare every judge of a run, or the one of that name or digest, with the rules.

    `data` says where the data are now, when they have moved. Raises ConfigError where there is no judge or
    there are no results.
    """
    store = open_store(path)
    run = store.read_run()
    assert run is not None, "open_store asks for it"
    judges = _chosen(path, run, judge)
    if store.read_results() is None:
        raise ConfigError(f"{path}: has no results yet; `awb score {path}` makes them")
    samples = reopen_samples(path, run, data)
    metrics = {record.sample_id: record for record in store.read_metrics() if record.epoch == 1}
    names = judge_names(run.judges)
    found = tuple(_of_judge(store, one, names[one.digest], samples, metrics) for one in judges)
    return RunConflicts(run, found, store, samples, metrics)


def _chosen(path: Path, run: RunRecord, wanted: str | None) -> Sequence[JudgeRecord]:
    if not run.judges:
        raise ConfigError(f"{path}: has no judge; `awb judge {path} --judge MODEL` asks one")
    if wanted is None:
        return run.judges
    names = judge_names(run.judges)
    judges = [one for one in run.judges if wanted in (one.model, names[one.digest], one.digest)]
    if not judges:
        raise ConfigError(f"--judge {wanted}: no judge of this run; it has {', '.join(names.values())}")
    return judges


def _of_judge(
    store: Store, judge: JudgeRecord, name: str, samples: Samples, metrics: dict[str, SampleMetrics]
) -> JudgeConflicts:
    groups = by_domain(samples.refs)
    compared: dict[str, list[Compared]] = {domain: [] for domain in groups}
    judged = 0
    for both in both_readings(store, groups, judge):
        values = (both.official if judge.parse == "official" else both.strict).values or {}
        record = metrics.get(both.ref.id)
        if "factuality" not in values:
            continue
        judged += 1
        if record is not None and record.failed is None:
            primary = samples.tasks[both.ref.domain].primary
            if one := compare(both.ref, values["factuality"], record, primary):
                compared[both.ref.domain].append(one)
    pooled = [one for some in compared.values() for one in some]
    return JudgeConflicts(
        digest=judge.digest,
        judge=name,
        protocol=judge.protocol,
        judged=judged,
        domains={domain: rate([some]) for domain, some in compared.items()},
        overall=rate(list(compared.values())),
        conflicts=tuple(worst_first([one.conflict for one in pooled if one.conflict])),
    )


def _said(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """The sentences of a verdict, each with whether it is praise or blame."""
    return tuple(("strength", text) for text in verdict.strengths) + tuple(
        ("weakness", text) for text in verdict.weaknesses
    )
