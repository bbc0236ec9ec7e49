"""The manifest of a bundle: what is in it, what it claims, and what was left out.

A bundle is a run directory that may be public: the files of `NAMES`, of which `manifest.json` lists all others
with size and SHA-256. `bundle_sha256` is the hash of the manifest's bytes, so it names the whole bundle whatever
program has packed it. Everything here comes from the run and from the options, nothing from the clock or the
machine: the same run gives the same manifest everywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from agentworldbench.errors import BundleError
from agentworldbench.leaderboard.measured import rule_scores
from agentworldbench.leaderboard.provenance import Submitter
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import Record
from agentworldbench.render.conflicts import CANARY
from agentworldbench.run_record import DataSection, RunRecord, SelectionRecord
from agentworldbench.stats.results import JudgeResults, Reading, Results
from agentworldbench.texts import digest

MANIFEST: Final = "manifest.json"
REFERENCES: Final = "references.jsonl"
DERIVED: Final = ("metrics.jsonl", "results.json")
NAMES: Final = (
    "NOTICE", "environment.json", MANIFEST, *DERIVED, "predictions.jsonl", REFERENCES, "run.json", "verdicts.jsonl"
)  # fmt: skip
"""Every file that a bundle may have, in the order in which it is packed."""
REQUIRED: Final = tuple(name for name in NAMES if name not in (REFERENCES, "verdicts.jsonl"))
"""Those without which it is none; a run without a judge has no verdicts."""


class FileMark(Record):
    """A file's SHA-256 (hex) and size in bytes."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class Harness(Record):
    """Version and commit of the harness in the last session; commit None where it was installed from a wheel."""

    version: str
    git_commit: str | None
    git_dirty: bool | None


class Options(Record):
    """What the submitter chose to publish."""

    reasoning: bool
    references: bool


class Allowed(Record):
    """Something that looked like a secret and was published on purpose (`--allow`)."""

    id: str
    kind: str
    places: int


class JudgeClaim(Record):
    """One judge: its digest, the names under which it answered, hashes of what it was asked with."""

    digest: str
    model: str
    protocol: str
    served: tuple[str, ...]
    prompts: dict[str, str]
    system_prompts: dict[str, str | None]


class Claim(Record):
    """Headline numbers (0-100) copied from `results.json`: of a judge or panel (`judge` is its digest), or of the
    rules (None)."""

    judge: str | None
    policy: Literal["exclude", "floor"]
    overall: float | None
    scores: dict[str, float | None]
    coverage: dict[str, float]


class Manifest(Record):
    """What `manifest.json` holds. `submitter` is given by a person, never taken from the machine. `samples_sha256` is the digest of the sorted list of sample ids, `tasks` are
    digests of what a task changes in predictions; `redactions` counts by kind what was replaced in the harness' own
    fields (addresses, paths). Texts of models and judges are never changed."""

    schema_version: Literal[1] = 1
    canary: str = CANARY
    created: str
    submitter: Submitter | None
    harness: Harness
    model: str
    protocol: str
    data: DataSection
    selection: SelectionRecord
    samples: int
    samples_sha256: str
    epochs: int
    tasks: dict[str, str]
    judges: tuple[JudgeClaim, ...]
    claims: tuple[Claim, ...]
    options: Options
    allowed: tuple[Allowed, ...] = ()
    redactions: dict[str, int] = Field(default_factory=dict)
    files: dict[str, FileMark]

    def claimant(self, claim: Claim) -> str:
        """Whose numbers a claim holds, in words."""
        if claim.judge is None:
            return "rules"
        named = {judge.digest: f"judge {judge.model}, protocol {judge.protocol}" for judge in self.judges}
        return named.get(claim.judge, f"panel of {len(self.judges)} judges")


def make_manifest(
    run: RunRecord,
    results: Results,
    sample_ids: Iterable[str],
    *,
    submitter: Submitter | None,
    options: Options,
    allowed: Iterable[Allowed],
    redactions: Mapping[str, int],
    files: Mapping[str, FileMark],
) -> Manifest:
    """The manifest of a run whose public files are `files`."""
    ids = sorted(sample_ids)
    return Manifest(
        created=created(run),
        submitter=submitter,
        harness=harness_of(run),
        model=results.model,
        protocol=run.protocol,
        data=run.predict.data,
        selection=run.selection,
        samples=len(ids),
        samples_sha256=digest(ids),
        epochs=run.epochs,
        tasks=run.predict.tasks,
        judges=tuple(map(_judge, results.judges)),
        claims=claims_of(results),
        options=options,
        allowed=tuple(allowed),
        redactions=dict(sorted(redactions.items())),
        files=dict(sorted(files.items())),
    )


def created(run: RunRecord) -> str:
    """When the last session of a run began: the bundle's date, whenever it is made."""
    return max(session.started_at for session in run.sessions)


def harness_of(run: RunRecord) -> Harness:
    """What the last session of a run was carried out with."""
    last = run.sessions[-1]
    return Harness(version=last.harness, git_commit=last.git_commit, git_dirty=last.git_dirty)


def claims_of(results: Results) -> tuple[Claim, ...]:
    """The headline numbers of results: a claim for each judge, for their panel where there is one, for the rules."""
    claims = [_claim(one.judge.digest, one.judge.protocol, one.headline) for one in results.judges]
    if results.panel:
        claims.append(_claim(results.panel.digest, results.panel.protocol, results.panel.reading))
    rules = rule_scores(results, results.policy)
    counted = {domain: mean.scored / mean.n for domain, mean in results.rules.score.items() if mean.n}
    by_rules = Claim(
        judge=None, policy=results.policy, overall=rules.overall, scores=dict(rules.scores), coverage=counted
    )
    return (*claims, by_rules)


def _claim(judge: str, protocol: str, reading: Reading) -> Claim:
    policy = PROTOCOLS[protocol].policy
    macro = reading.macro_floor if policy == "floor" else reading.macro_exclude
    return Claim(
        judge=judge,
        policy=policy,
        overall=macro["total"],
        scores={domain: getattr(block, policy)["total"] for domain, block in reading.domains.items()},
        coverage={domain: block.coverage for domain, block in reading.domains.items()},
    )


def _judge(judge: JudgeResults) -> JudgeClaim:
    record = judge.judge
    return JudgeClaim(
        digest=record.digest,
        model=record.model,
        protocol=record.protocol,
        served=judge.served,
        prompts=record.prompts,
        system_prompts=record.system_prompts,
    )


def write_manifest(manifest: Manifest) -> bytes:
    """The bytes of `manifest.json`; their SHA-256 is the name of the bundle."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def bundle_sha256(manifest: bytes) -> str:
    """The hash that names a bundle."""
    return hashlib.sha256(manifest).hexdigest()


def read_manifest(raw: bytes) -> Manifest:
    """A manifest from its bytes. Raises BundleError (`version`, `manifest`)."""
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as problem:
        raise BundleError("manifest", f"{MANIFEST}: not JSON ({problem})") from problem
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version != 1:
        raise BundleError("version", f"{MANIFEST}: of version {version}; this awb reads version 1")
    try:
        return Manifest.model_validate_json(raw)
    except ValidationError as problem:
        detail = problem.errors(include_input=False)[0]
        field = ".".join(map(str, detail["loc"]))
        raise BundleError("manifest", f"{MANIFEST}: field '{field}': {detail['msg']}") from problem


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once: of two, programs read different ones."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found
