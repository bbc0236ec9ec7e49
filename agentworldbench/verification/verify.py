"""Everything that can be checked of a run or a bundle without asking a model, in one pass over its samples.

In: a bundle (zip file or folder with a manifest) or a run directory, where the data and the official prompts are,
perhaps the leaderboard entry that claims its numbers. Out: a `Report`. An archive that cannot be opened safely is a
refusal like any other; nothing of a bundle is run, and nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentworldbench.errors import AwbError, BundleError, ConfigError
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import Record
from agentworldbench.scoring.judge import Judge
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.results import Reading, Results
from agentworldbench.store import no_run
from agentworldbench.submission.manifest import MANIFEST, Manifest, bundle_sha256
from agentworldbench.submission.unpack import opened
from agentworldbench.verification import completeness, contradictions, manifest_claims, oddities
from agentworldbench.verification.draws import Drawn, check_draws, drawn_of, temperatures_of
from agentworldbench.verification.duplicates import Copy, check_copies, copies_of
from agentworldbench.verification.findings import (
    Hit,
    JudgeNumbers,
    Report,
    RuleNumbers,
    Unchecked,
    gathered,
    verdict_of,
)
from agentworldbench.verification.identity import check_judges, check_served, check_tasks
from agentworldbench.verification.injection import Judged, check_injection, injection_of
from agentworldbench.verification.leaks import Unknowable, check_leaks, unknowable_of
from agentworldbench.verification.material import Case, Material, open_material
from agentworldbench.verification.recompute import check_entry, recomputed, without_data
from agentworldbench.verification.rendering import check_prompts
from agentworldbench.verification.replay import reread_prediction, reread_verdict
from agentworldbench.version import __version__

CHECKS: Final = (
    "archive", "manifest", "completeness", "selection", "journals", "tasks", "judges", "served names", "predictions", "judge replies",
    "numbers", "data", "prompts", "judge prompts", "duplicates", "leaked text", "judge injection", "secrets",
    "times and tokens",
)  # fmt: skip
"""Every check, in the order in which a report names them."""
NEED_DATA: Final = frozenset({"data", "prompts", "judge prompts", "leaked text", "secrets"})
Told = Callable[[int, int], None]


@dataclass
class _Seen:
    """What one pass over the cases gathers."""

    hits: list[Hit] = field(default_factory=list)
    changed: dict[tuple[Any, ...], Record] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    unknowable: list[Unknowable] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    cases: int = 0


@dataclass(frozen=True)
class Opened:
    """A subject of verification as a directory; `manifest` is None for a run that is no bundle."""

    name: str
    path: Path
    manifest: Manifest | None
    sha256: str | None

    def material(self, data: str | None = None, prompts: Path | None = None) -> Material:
        """The run in it, with data and prompts as far as they are at hand.

        Raises BundleError for a bundle that holds no run, ConfigError, StoreError or DataError for such a directory.
        """
        reasoning = self.manifest is None or self.manifest.options.reasoning
        try:
            return open_material(self.path, data, prompts, reasoning)
        except AwbError as problem:
            if self.manifest is None:
                raise
            told = str(problem).replace(f"{self.path}/", "")
            raise BundleError("records", f"{told.partition(';')[0]}") from problem


@contextmanager
def opened_subject(subject: Path) -> Iterator[Opened]:
    """A run directory as it stands, a bundle unpacked. Raises BundleError for a bundle that is refused."""
    if subject.is_dir() and not (subject / MANIFEST).exists():
        yield Opened(subject.resolve().name, subject, None, None)
        return
    if not subject.exists():
        raise ConfigError(f"{subject}: no such bundle or run directory")
    if subject.suffix in (".json", ".jsonl"):
        raise no_run(subject)
    with opened(subject) as (path, manifest):
        yield Opened(subject.name, path, manifest, bundle_sha256((path / MANIFEST).read_bytes()))


def verify(
    subject: Path,
    data: str | None = None,
    prompts: Path | None = None,
    entry: Path | None = None,
    told: Told = lambda done, total: None,
) -> Report:
    """Verify a bundle or a run directory. Raises ConfigError or StoreError when `subject` is neither."""
    try:
        with opened_subject(subject) as source:
            return checked(source, source.material(data, prompts), entry, told)
    except BundleError as problem:
        return refusal(subject, problem)


def refusal(subject: Path, problem: BundleError) -> Report:
    """The report on a bundle that could not be opened safely, or whose files are not those of a run."""
    findings = gathered([Hit("archive", "refused", f"{problem.kind}: {problem}", subject.name)])
    return Report(
        verdict="refused",
        subject=subject.name,
        bundle_sha256=None,
        harness=__version__,
        findings=tuple(findings),
        checked=("archive",),
    )


def checked(
    source: Opened, material: Material, entry: Path | None = None, told: Told = lambda done, total: None
) -> Report:
    """The report on an opened subject; `told` hears how far the metrics are."""
    manifest = source.manifest
    judges, hits, unchecked = check_judges(material)
    hits += [*material.hits, *check_tasks(material), *check_served(material)]
    hits += [*completeness.check_selection(material), *completeness.check_journals(material)]
    hits += [*oddities.check_times(material), *contradictions.check_names(material)]
    unchecked = [*material.unchecked, *unchecked]
    if manifest is not None:
        hits += manifest_claims.check_manifest(manifest, material)
    seen = _one_pass(material, judges)
    hits += [*seen.hits, *check_copies(seen.copies, seen.cases), *check_leaks(seen.unknowable)]
    hits += [*check_draws(seen.drawn, temperatures_of(material)), *check_injection(seen.judged)]
    results, more = _numbers(material, seen.changed, told)
    hits += more
    if entry is not None and results is not None:
        hits += check_entry(entry, results, material.record, source.sha256, manifest)
    elif entry is not None:
        why = "an entry is compared with recomputed results, which need the data"
        unchecked.append(Unchecked(check="entry", why=why))
    hits += manifest_claims.check_secrets(material, manifest)
    findings = gathered(hits)
    return Report(
        verdict=verdict_of(findings, unchecked),
        subject=source.name,
        bundle_sha256=source.sha256,
        harness=__version__,
        model=str(material.record.predict.model.get("model")),
        data=material.record.predict.data.name,
        samples=seen.cases,
        findings=tuple(findings),
        checked=_checked(
            material, unchecked, manifest is not None, entry is not None and results is not None
        ),
        unchecked=tuple(unchecked),
        judges=tuple(_judge_numbers(results)) if results else (),
        rules=_rule_numbers(results) if results else None,
    )


def _one_pass(material: Material, judges: Mapping[str, Judge]) -> _Seen:
    seen = _Seen()
    for case in material.cases():
        seen.cases += 1
        seen.hits += [
            *completeness.check_case(case, material),
            *check_prompts(case, judges),
            *oddities.check_case(case, material),
            *contradictions.check_case(case, material),
        ]
        _replay(case, material, seen)
        seen.copies += copies_of(case)
        seen.drawn += drawn_of(case, material)
        if (unknowable := unknowable_of(case)) is not None:
            seen.unknowable.append(unknowable)
        if (judged := injection_of(case)) is not None:
            seen.judged.append(judged)
    return seen


def _replay(case: Case, material: Material, seen: _Seen) -> None:
    """Read a case's replies again; records that read otherwise are kept for the recomputation."""
    prediction, hits = reread_prediction(case, material)
    seen.hits += hits
    if hits and prediction is not None:
        seen.changed[prediction.key] = prediction
    for judge, stored in case.verdicts:
        verdict, found = reread_verdict(case, judge, stored, prediction)
        seen.hits += found
        if verdict is not stored:
            seen.changed[verdict.key] = verdict


def _numbers(
    material: Material, changed: Mapping[tuple[Any, ...], Record], told: Told
) -> tuple[Results | None, list[Hit]]:
    if material.samples is None:
        return None, without_data(material, changed)
    try:
        return recomputed(material, changed, told)
    except AwbError as problem:
        return None, [
            Hit("numbers", "refused", "results cannot be computed from these records", str(problem))
        ]


def _checked(material: Material, unchecked: list[Unchecked], bundle: bool, entry: bool) -> tuple[str, ...]:
    left = {one.check for one in unchecked}
    if material.samples is None:
        left |= NEED_DATA
    if not bundle:
        left |= {"archive", "manifest"}
    return tuple(name for name in (*CHECKS, *(["entry"] if entry else [])) if name not in left)


def _judge_numbers(results: Results) -> Iterator[JudgeNumbers]:
    for one in results.judges:
        yield _judged(one.judge.model, one.judge.digest, one.judge.protocol, one.headline)
    if (panel := results.panel) is not None:
        yield _judged(f"panel: {panel.combine}", panel.digest, panel.protocol, panel.reading)


def _judged(name: str, digest: str, protocol: str, reading: Reading) -> JudgeNumbers:
    policy = PROTOCOLS[protocol].policy
    return JudgeNumbers(
        judge=name,
        digest=digest,
        protocol=protocol,
        policy=policy,
        macro=(reading.macro_floor if policy == "floor" else reading.macro_exclude)["total"],
        micro=getattr(reading.micro, policy)["total"],
        domains={domain: getattr(block, policy)["total"] for domain, block in reading.domains.items()},
        coverage={domain: block.coverage for domain, block in reading.domains.items()},
    )


def _rule_numbers(results: Results) -> RuleNumbers:
    policy = results.policy
    macro = getattr(results.rules.macro[RULE_SCORE], policy)
    scores = {domain: getattr(mean, policy) for domain, mean in results.rules.score.items()}
    return RuleNumbers(
        policy=policy,
        macro=None if macro is None else 100 * macro,
        skill=getattr(results.rules.overall_skill, policy),
        domains={domain: None if score is None else 100 * score for domain, score in scores.items()},
    )


def report_json(report: Report) -> str:
    """A report for programs."""
    return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False)
