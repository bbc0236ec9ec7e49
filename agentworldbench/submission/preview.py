"""What would become public, as tables for a terminal: files, what the bundle says of the run, addresses, findings.

In: a prepared bundle. Out: tables, and the first records as they would be read. Everything is taken from the files
themselves, not from what was meant to be in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from agentworldbench.render.table import DASH, Table, percent, points
from agentworldbench.submission.manifest import MANIFEST, NAMES, REFERENCES, Manifest
from agentworldbench.submission.pack import Prepared
from agentworldbench.submission.secret_scan import Finding
from agentworldbench.texts import count_text

SHOWN: Final = 160
"""Characters of a field of a record that are shown."""
_HOLDS: Final = {
    "NOTICE": "whose the texts are; canary",
    "environment.json": "harness, packages, engines",
    MANIFEST: "hashes of all files, claims",
    "metrics.jsonl": "rule metrics of each sample",
    "predictions.jsonl": "raw replies, usage, failures",
    REFERENCES: "reference observations of the data set",
    "results.json": "all numbers",
    "run.json": "settings, sessions, judges",
    "verdicts.jsonl": "raw replies of judges",
}


def preview_tables(prepared: Prepared) -> list[Table]:
    """What would become public."""
    tables = [_files(prepared), _facts(prepared)]
    for name in ("predictions.jsonl", "verdicts.jsonl"):
        if record := _first(prepared.folder / name):
            tables.append(_record(name, record, prepared.findings))
    if prepared.findings:
        tables.append(findings_table(prepared))
    return tables


def _files(prepared: Prepared) -> Table:
    folder = prepared.folder
    names = [name for name in NAMES if (folder / name).is_file()]
    rows = [
        (
            name,
            f"{(folder / name).stat().st_size:,}",
            f"{_lines(folder / name):,}" if name.endswith(".jsonl") else DASH,
            _HOLDS[name],
        )
        for name in names
    ]
    return Table(
        "What would become public",
        ("File", "Bytes", "Records", "Holds"),
        tuple(rows),
        ("File", "Holds"),
        notes=tuple(_left_out(prepared.manifest)),
        fold=("Holds",),
    )


def _left_out(manifest: Manifest) -> Iterator[str]:
    options = manifest.options
    if options.reasoning:
        yield "Reasoning of model and judges is in it (--reasoning)."
    else:
        yield "Left out: reasoning that came apart from the answer (--reasoning puts it in; what stands inside a reply stays)."
    if options.references:
        yield "Reference observations are in it (--no-references leaves them out; replies may still quote them)."
    else:
        yield "Left out: reference observations. Replies may still quote them."
    for kind, count in manifest.redactions.items():
        yield f"Replaced in fields of the harness: {count} × {kind}."
    yield "To read every file before anything leaves this machine: --to file writes them here."


def _facts(prepared: Prepared) -> Table:
    manifest = prepared.manifest
    rows = [("Model", manifest.model), ("Data", _data(manifest))]
    for claim in manifest.claims:
        covered = min(claim.coverage.values(), default=0.0)
        rows.append(
            (
                manifest.claimant(claim).capitalize(),
                f"{points(claim.overall)} ({claim.policy}; {percent(covered)} covered where least)",
            )
        )
    submitter = manifest.submitter
    told = [submitter.name, submitter.url, submitter.contact] if submitter else ["not named (--submitter)"]
    rows.append(("Submitter", ", ".join(filter(None, told))))
    commit = manifest.harness.git_commit
    dirty = ", with uncommitted changes" if manifest.harness.git_dirty else ""
    rows.append(
        ("Harness", f"awb {manifest.harness.version}" + (f" at {commit[:12]}{dirty}" if commit else ""))
    )
    for session in prepared.record.sessions:
        urls = filter(None, [session.model_url, *session.judge_urls.values()])
        rows.append((f"Session {session.started_at[:16]}Z", ", ".join(dict.fromkeys(urls)) or "no endpoint"))
    rows.append(("Bundle", f"sha256 {prepared.sha256}"))
    return Table(
        "What it says", ("Of the run", "Public"), tuple(rows), ("Of the run", "Public"), fold=("Public",)
    )


def _data(manifest: Manifest) -> str:
    revision = f" at {manifest.data.revision[:12]}" if manifest.data.revision else ""
    return f"{manifest.data.name}{revision}, {count_text(manifest.samples, 'sample')}"


def _record(name: str, record: dict[str, Any], findings: Iterable[Finding]) -> Table:
    rows = [(field, _short(value, findings)) for field, value in record.items()]
    return Table(
        f"First record of {name}", ("Field", "Value"), tuple(rows), ("Field", "Value"), fold=("Value",)
    )


def _short(value: Any, findings: Iterable[Finding]) -> str:
    """The beginning of a field; a secret is not printed, whatever becomes of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    for finding in findings:
        for written in (finding.secret, json.dumps(finding.secret, ensure_ascii=False)[1:-1]):
            text = text.replace(written, finding.masked)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({count_text(len(text), 'character')})"


def findings_table(prepared: Prepared) -> Table:
    """What looks like a secret, and whether it was allowed."""
    refused = {one.id for one in prepared.refused}
    rows = [
        (one.id, one.kind, one.masked, _where(one), "refused" if one.id in refused else "allowed")
        for one in prepared.findings
    ]
    return Table(
        "Looks like a secret",
        ("Finding", "Kind", "Value", "Where", "Now"),
        tuple(rows),
        ("Finding", "Kind", "Value", "Where", "Now"),
        fold=("Kind", "Value", "Where"),
    )


def _where(finding: Finding) -> str:
    more = finding.count - len(finding.places)
    return ", ".join(map(str, finding.places)) + (f" and {more} more" if more else "")


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _first(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    with path.open(encoding="utf-8", newline="\n") as file:
        line = file.readline()
    found: dict[str, Any] | None = json.loads(line) if line else None
    return found
