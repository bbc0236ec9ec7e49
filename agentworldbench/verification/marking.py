"""The status `verified`: written into a leaderboard entry once its bundle has been verified, and never otherwise.

In: the report on a bundle, the entry's file, the maintainer's name. Out: the file with status, and a `Verification` that
names the bundle, the harness, what was left to a person to look at and the audit, if one was made. Refused for
everything but an accepted bundle whose numbers are those of the entry.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from agentworldbench.errors import ConfigError, DataError, StoreError
from agentworldbench.leaderboard.adding import write_entry
from agentworldbench.leaderboard.check import check_entry
from agentworldbench.leaderboard.entries import Entry, read_entry, sealed
from agentworldbench.leaderboard.provenance import Bundle, Verification, VerifiedAudit
from agentworldbench.submission.deliver import check_words
from agentworldbench.submission.manifest import MANIFEST
from agentworldbench.texts import time_text
from agentworldbench.verification.findings import Report
from agentworldbench.verification.recompute import CALLED_VERIFIED


def check_marking(subject: Path, path: Path, by: str) -> None:
    """Find out before any work what no verdict could mend. Raises ConfigError or DataError."""
    check_words("--verified-by", by)
    if subject.is_dir() and not (subject / MANIFEST).exists():
        raise ConfigError(
            f"--verified-by: {subject} is a run directory, which has no hash; verify the bundle that `awb submit` makes"
        )
    if read_entry(path).status == "reported":
        raise ConfigError(
            f"--verified-by: {path} is copied from a publication; only a run's entry is verified"
        )


def mark_verified(report: Report, path: Path, by: str) -> Entry:
    """Write the entry as verified by `report`. Raises ConfigError where the bundle was not accepted, DataError where the
    entry is not fit to stand on a board, StoreError where it cannot be written. The file is as before then."""
    if report.verdict != "accepted":
        raise ConfigError(f"{path}: stays as it is: {_why(report)}")
    assert report.bundle_sha256 is not None, "a bundle has a hash"
    entry = read_entry(path)
    audit = report.audit
    found = Verification(
        by=by.strip(),
        date=time_text(datetime.now(UTC)),
        bundle_sha256=report.bundle_sha256,
        harness=report.harness,
        warnings=sum(one.severity == "warning" and one.message != CALLED_VERIFIED for one in report.findings),
        audit=None
        if audit is None or audit.mean_difference is None
        else VerifiedAudit(
            judge=audit.digest, seed=audit.seed, judged=audit.judged, mean_difference=audit.mean_difference
        ),
    )
    bundle = entry.bundle or Bundle(sha256=report.bundle_sha256)
    marked = sealed(entry.model_copy(update={"bundle": bundle}), found)
    if problems := check_entry(marked, path):
        raise DataError(f"{path}: stays as it is: {problems[0].field} {problems[0].message}")
    try:
        write_entry(path, marked)
    except OSError as problem:
        raise StoreError(f"{path}: cannot be written ({problem.strerror})") from problem
    return marked


def _why(report: Report) -> str:
    if report.verdict == "refused":
        return "the bundle is refused"
    missing = "; ".join(one.why for one in report.unchecked)
    return f"not everything could be checked, and only what is accepted is verified ({missing})"
