"""An audit: the claimed judge is asked again about samples drawn at random, until the claim is accepted or rejected.

In: an opened subject with its data, a judge that can be reached, at most how many samples. Out: `AuditReport`. Samples
come in an order that a seed fixes, in steps; after each the sequential test of `stats/sequential.py` looks at the
differences new - stored. The judge must have the recorded digest: the same model, sampling and prompts, so that both
verdicts are draws of one judge. New verdicts are made by the ordinary engine, in a run directory of their own that
is thrown away.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev
from tempfile import TemporaryDirectory
from typing import Any, Final

from agentworldbench.config import RunConfig
from agentworldbench.engine.spending import check_prices
from agentworldbench.errors import ConfigError
from agentworldbench.plan import Plan, make_judges
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.pull import Tell
from agentworldbench.readings import both_readings
from agentworldbench.records import Prediction, SampleRef
from agentworldbench.run import ask
from agentworldbench.run_record import JudgeRecord
from agentworldbench.selection import rank
from agentworldbench.stats.aggregate import by_domain, score_of
from agentworldbench.stats.sequential import ASSUMED_NOISE, MARGIN, PairedTest
from agentworldbench.store import Store, open_store
from agentworldbench.texts import count_text
from agentworldbench.verification.findings import AuditReport, Finding, Report, Unchecked, verdict_of
from agentworldbench.verification.identity import named, recorded_sampling
from agentworldbench.verification.material import Material

STEP: Final = 20
"""Samples that are asked about before the test is looked at."""
LEAST_PAIRS: Final = 10
"""Repeated verdicts below which the noise is assumed and not measured."""
Look = Callable[[AuditReport], None]


@dataclass(frozen=True)
class Audit:
    """An audit that is ready to begin: the claimed judge, samples with their stored scores in the order of asking."""

    material: Material
    config: RunConfig
    judge: JudgeRecord
    seed: int
    order: tuple[SampleRef, ...]
    stored: dict[str, float]
    noise: float
    folder: Path
    tell: Tell

    def plan(self, count: int) -> Plan:
        """The plan that judges the first `count` samples in the audit's own run directory."""
        samples = self.material.samples
        assert samples is not None, "an audit is made where the data are"
        drawn = {ref.id for ref in self.order[:count]}
        refs = tuple(ref for ref in samples.refs if ref.id in drawn)
        counts = {domain: sum(ref.domain == domain for ref in refs) for domain in samples.tasks}
        record = self.material.record
        whole = {"limit": None, "limit_trajectories": None, "shard": None, "seed": None}
        chosen = {"sample_id": tuple(ref.id for ref in refs), "samples": counts}
        return Plan(
            config=self.config,
            protocol=PROTOCOLS[self.judge.protocol],
            samples=replace(samples, refs=refs),
            predictor=None,
            judges=make_judges(self.config, PROTOCOLS[self.judge.protocol], samples.tasks, self.tell),
            path=self.folder,
            predict=record.predict,
            selection=record.selection.model_copy(update=whole | chosen),
        )


@contextmanager
def opened_audit(
    material: Material, config: RunConfig, most: int, seed: int | None, tell: Tell
) -> Iterator[Audit]:
    """An audit of at most `most` samples by the judge that `config` names; `seed` None: drawn, and reported.

    Raises ConfigError where the data are not there, or the judge is none of those that gave the verdicts.
    """
    if material.samples is None:
        raise ConfigError("--audit: prompts are rendered from the data; " + material.unchecked[0].why)
    record = _claimed(material, config.judge[0] if config.judge else None)
    known = config.model_copy(update=_as_recorded(record, config))
    (judge,) = make_judges(known, PROTOCOLS[record.protocol], material.samples.tasks, tell)
    check_prices(known, [judge.model])
    if judge.digest() != record.digest:
        differing = ", ".join(_differences(judge.record(), record)) or "digest"
        raise ConfigError(
            f"--judge {judge.model.name}: not the judge of the bundle ({record.digest}): {differing} differ; only the same "
            "judge's verdicts can be compared"
        )
    seed = secrets.randbits(32) if seed is None else seed
    stored = dict(_scores(material.store, material, record, material.samples.refs))
    scored = [ref for ref in material.samples.refs if ref.id in stored]
    order = tuple(sorted(scored, key=lambda ref: rank(seed, ref.id))[:most])
    if not order:
        raise ConfigError(f"--audit: judge {record.model} scored no sample")
    with TemporaryDirectory(prefix="awb-audit-") as folder:
        path = Path(folder) / "run"
        path.mkdir()
        audit = Audit(material, known, record, seed, order, stored, noise_of(material, record), path, tell)
        _begin(audit)
        yield audit


def _claimed(material: Material, name: str | None) -> JudgeRecord:
    judges = material.record.judges
    if name is None:
        raise ConfigError("--audit needs --judge: the judge that is asked again")
    mine = [
        one
        for one in judges
        if name in (one.model, one.digest) or one.model.rpartition("/")[2] == name.rpartition("/")[2]
    ]
    if len(mine) != 1:
        raise ConfigError(f"--judge {name}: not one judge of the run by this name; it has {named(judges)}")
    return mine[0]


def _as_recorded(record: JudgeRecord, config: RunConfig) -> dict[str, Any]:
    """The settings of a judge as its record has them."""
    sampling = recorded_sampling(record.sampling)
    name = config.judge[0] if config.judge[0] != record.digest else record.model
    return {
        "judge": (name,),
        "protocol": record.protocol,
        "judge_temperature": sampling.temperature,
        "judge_max_tokens": sampling.max_tokens,
        "judge_thinking": sampling.thinking,
        "judge_reasoning_effort": sampling.reasoning_effort,
        "judge_extra_body": sampling.extra,
        "judge_json_schema": record.schema_sha256 is not None,
        "judge_attempts": record.attempts or 1,
        "gui_diagnostics": "diagnostics" in record.prompts,
        "judge_repeats": 1,
        "epochs": 1,
    }


def _differences(one: JudgeRecord, other: JudgeRecord) -> list[str]:
    names = ("identity", "protocol", "protocol_version", "sampling", "schema_sha256", "prompts")
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _begin(audit: Audit) -> None:
    """The run directory of the audit: the predictions to be judged, and no judge yet."""
    record = audit.material.record
    store = Store(audit.folder)
    plan = audit.plan(len(audit.order))
    fresh = {"judges": (), "repeats": {}, "epochs": 1, "selection": audit.plan(1).selection}
    store.write_run(record.model_copy(update=fresh))
    chosen = {ref.id for ref in plan.samples.refs}
    predictions = (
        one for one in audit.material.store.predictions if one.epoch == 1 and one.sample_id in chosen
    )
    store.replace_journal("predictions.jsonl", map(_line, predictions))


def _line(prediction: Prediction) -> bytes:
    return prediction.model_dump_json(exclude_none=True).encode("utf-8") + b"\n"


def carry_out(audit: Audit, look: Look = lambda report: None) -> AuditReport:
    """Ask step by step until the test decides, the samples are used up or the money is; `look` sees every step."""
    done = 0
    report = _report(audit, 0, [], None)
    while done < len(audit.order):
        done = min(done + STEP, len(audit.order))
        stopped = ask(audit.plan(done))
        report = _report(audit, done, _new_scores(audit, done), stopped)
        look(report)
        if report.decision != "undecided" or stopped:
            break
    return report


def _new_scores(audit: Audit, count: int) -> list[tuple[str, float | None]]:
    """(sample id, new score or None) in the order of the draw."""
    found = dict(_scores(open_store(audit.folder), audit.material, audit.judge, audit.order[:count]))
    return [(ref.id, found.get(ref.id)) for ref in audit.order[:count]]


def _report(
    audit: Audit, drawn: int, scores: Sequence[tuple[str, float | None]], stopped: str | None
) -> AuditReport:
    test = PairedTest(noise=audit.noise)
    decision = None
    for name, score in scores:
        if score is not None and decision is None:
            decision = test.add(score - audit.stored[name])
    journal = open_store(audit.folder).verdicts
    costs = [one.cost_usd for one in journal.every_line()]
    answered = {one.sample_id for one in journal}
    known = [cost for cost in costs if cost is not None]
    return AuditReport(
        judge=audit.judge.model,
        digest=audit.judge.digest,
        seed=audit.seed,
        margin=MARGIN,
        decision=decision or "undecided",
        stopped=stopped,
        scored=len(audit.stored),
        drawn=drawn,
        judged=sum(score is not None for _, score in scores),
        failed=sum(score is None and name in answered for name, score in scores),
        mean_difference=test.mean,
        noise=test.deviation,
        evidence_against=test.against,
        evidence_for=test.on_its_side,
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )


def _scores(
    store: Store, material: Material, judge: JudgeRecord, refs: Sequence[SampleRef]
) -> Iterator[tuple[str, float]]:
    """Scores (0-100) of first verdicts on first answers, as the judge's own protocol reads them."""
    for both in both_readings(store, by_domain(refs), judge):
        own = both.official if judge.parse == "official" else both.strict
        if own.values is not None and "total" in own.values:
            score = score_of([own.values["total"]])
            if score is not None:
                yield both.ref.id, score


def noise_of(material: Material, judge: JudgeRecord) -> float:
    """Standard deviation of the difference of two verdicts on one prediction: from the bundle's own repeats where it
    has enough, else assumed (`ASSUMED_NOISE`)."""
    if material.samples is None or material.record.repeats.get(judge.digest, 1) < 2:
        return ASSUMED_NOISE
    by_name: dict[str, list[float]] = {}
    for both in both_readings(material.store, by_domain(material.samples.refs), judge, 1, 2):
        own = both.official if judge.parse == "official" else both.strict
        score = score_of([own.values["total"]]) if own.values and "total" in own.values else None
        if score is not None:
            by_name.setdefault(both.ref.id, []).append(score)
    pairs = [some[0] - some[1] for some in by_name.values() if len(some) == 2]
    return max(stdev(pairs), 1.0) if len(pairs) >= LEAST_PAIRS else ASSUMED_NOISE


def _why_undecided(audit: AuditReport) -> str:
    if audit.stopped:
        return audit.stopped
    if audit.drawn == audit.scored:
        return f"all {count_text(audit.drawn, 'scored sample was', 'scored samples were')} asked about again, which is too few to decide"
    return f"{count_text(audit.judged, 'sample')} did not decide; a larger --audit N asks about more"


def with_audit(report: Report, audit: AuditReport) -> Report:
    """The report with what the audit came to: a rejected claim is refused, an undecided one not accepted."""
    findings, unchecked, checked = list(report.findings), list(report.unchecked), list(report.checked)
    if audit.decision == "rejected":
        message = "the same judge gives lower scores when it is asked again, by more than its own noise"
        difference = audit.mean_difference or 0.0
        where = f"{difference:+.2f} points over {count_text(audit.judged, 'sample')} (seed {audit.seed})"
        findings.insert(0, Finding(check="audit", severity="refused", message=message, where=(where,)))
    elif audit.decision == "undecided":
        unchecked.append(Unchecked(check="audit", why=_why_undecided(audit)))
    else:
        checked.append("audit")
    return report.model_copy(
        update={
            "verdict": verdict_of(findings, unchecked),
            "findings": tuple(findings),
            "unchecked": tuple(unchecked),
            "checked": tuple(checked),
            "audit": audit,
        }
    )
