"""A bundle's manifest, its references and its secrets against what the bundle and the data hold.

In: the manifest and the material. Out: hits for claims that are not those of the bundle's own files (numbers, judges,
data, list of samples), for references that are not those of the data, and for what looks like a secret and was not
published on purpose. Sizes and hashes of the files were checked when the bundle was unpacked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from agentworldbench.errors import AwbError
from agentworldbench.prompts import reference_observation
from agentworldbench.records import Record
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.table import unseen
from agentworldbench.submission.manifest import NAMES, REFERENCES, Manifest, claims_of, created, harness_of
from agentworldbench.submission.public import environment_of
from agentworldbench.submission.secret_scan import EMAIL, scan
from agentworldbench.submission.secret_scan import Finding as Found
from agentworldbench.texts import digest
from agentworldbench.verification.findings import Hit, Severity
from agentworldbench.verification.material import Material
from agentworldbench.verification.recompute import differences

OTHER_CLAIM: Final = "the manifest claims something else than the bundle's files hold"
HIDDEN: Final = "who submits is told with characters that nobody sees"
OTHER_SESSIONS: Final = "environment.json is not what the sessions of run.json say"
NO_CANARY: Final = "the notice has lost its canary line, by which these texts are kept out of training sets"
OTHER_REFERENCES: Final = "references that are not those of the data"
ADDRESS: Final = "an e-mail address that was not allowed by the submitter"
PERHAPS_OWN: Final = (
    "without the data it cannot be excluded that it stands in the sample's own row, where it is none"
)
SECRET: Final = "something that looks like a secret, and was not allowed by the submitter"


def check_manifest(manifest: Manifest, material: Material) -> Iterator[Hit]:
    """Every claim of a manifest that the bundle itself contradicts."""
    record, results = material.record, material.results
    pairs: dict[str, tuple[Any, Any]] = {
        "model": (manifest.model, record.predict.model.get("model")),
        "protocol": (manifest.protocol, record.protocol),
        "data": (manifest.data, record.predict.data),
        "selection": (manifest.selection, record.selection),
        "epochs": (manifest.epochs, record.epochs),
        "tasks": (manifest.tasks, record.predict.tasks),
    }
    if record.sessions:
        pairs |= {
            "created": (manifest.created, created(record)),
            "harness": (manifest.harness, harness_of(record)),
        }
    if results is not None:
        pairs["claims"] = (list(manifest.claims), list(claims_of(results)))
        named = {"digest", "model", "protocol", "prompts", "system_prompts"}
        pairs["judges"] = (
            list(manifest.judges),
            [one.judge.model_dump(include=named) | {"served": one.served} for one in results.judges],
        )
    if material.samples is not None:
        ids = sorted(ref.id for ref in material.samples.refs)
        pairs["samples"] = (manifest.samples, len(ids))
        pairs["samples_sha256"] = (manifest.samples_sha256, digest(ids))
    for name, (before, now) in pairs.items():
        for place, one, other in differences(_plain(before), _plain(now), name):
            yield Hit("manifest", "refused", OTHER_CLAIM, f"{place} is {one}, should be {other}")
    yield from _submitter(manifest)
    notice = (material.path / "NOTICE").read_text(encoding="utf-8", errors="replace")
    if CANARY not in notice.splitlines():
        yield Hit("manifest", "refused", NO_CANARY, "NOTICE")
    try:
        environment = json.loads((material.path / "environment.json").read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        environment = None
    for place, one, other in differences(environment, environment_of(record), "environment.json"):
        yield Hit("manifest", "refused", OTHER_SESSIONS, f"{place} is {one}, should be {other}")
    yield from _references(material)


def _submitter(manifest: Manifest) -> Iterator[Hit]:
    said = {} if manifest.submitter is None else manifest.submitter.model_dump()
    for name, text in said.items():
        if text is not None and (char := unseen(text)):
            yield Hit("manifest", "refused", HIDDEN, f"submitter.{name}: {char}")


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _references(material: Material) -> Iterator[Hit]:
    """`references.jsonl`, where there is one, against the data."""
    path = material.path / REFERENCES
    samples = material.samples
    if samples is None or not path.exists():
        return
    refs = {ref.id: ref for ref in samples.refs}
    seen: set[str] = set()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                stored = json.loads(line)
                ref = refs[stored["sample_id"]]
                real = reference_observation(samples.dataset.load(ref), samples.tasks[ref.domain])
                same = (
                    stored["observation"] == real
                    and stored["row_hash"] == ref.row_hash
                    and ref.id not in seen
                )
                seen.add(ref.id)
            except (ValueError, LookupError, TypeError, RecursionError):
                same = False
            if not same:
                yield Hit("manifest", "refused", OTHER_REFERENCES, f"{REFERENCES}:{number}")
    for name in sorted(refs.keys() - seen):
        yield Hit("manifest", "refused", OTHER_REFERENCES, f"{REFERENCES}: {name} is missing")


def _weight(found: Found, allowed: bool, rows: bool) -> tuple[Severity, str]:
    """How much something that looks like a secret weighs, and what is said of it."""
    if allowed:
        return "info", "a secret that the submitter published on purpose"
    if found.kind == EMAIL:
        return "warning", ADDRESS if rows else f"{ADDRESS}; {PERHAPS_OWN}"
    return ("refused", SECRET) if rows else ("warning", f"{SECRET}; {PERHAPS_OWN}")


def check_secrets(material: Material, manifest: Manifest | None) -> Iterator[Hit]:
    """Secrets in any file, but for those in the sample's own row and those that the submitter allowed by id. Without the
    data nobody can tell what stands in a row, and every one is a warning; so is an e-mail address, which opens nothing."""
    allowed = {one.id for one in manifest.allowed} if manifest else set()
    names = [name for name in NAMES if (material.path / name).is_file()]
    try:
        found = scan(material.path, names, material.samples, ())
    except (AwbError, ValueError, RecursionError) as problem:
        yield Hit("secrets", "refused", "a file cannot be read as what it should be", str(problem)[:200])
        return
    for one in found:
        severity, message = _weight(one, one.id in allowed, material.samples is not None)
        for place in one.places:
            yield Hit("secrets", severity, message, f"{place}: {one.kind} {one.masked} (id {one.id})")
