"""A verification report for people: lines of findings, a table of the recomputed scores, the verdict.

In: a report. Out: lines and a table. Texts that come from whoever made the bundle are escaped where they are printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentworldbench.prices import dollars
from agentworldbench.render.table import DASH, Table, percent, points
from agentworldbench.texts import count_text
from agentworldbench.verification.findings import AuditReport, Report

SHOWN: Final = 3
"""Places of a finding that are printed; `--json` has twenty."""
_VERDICTS: Final = {
    "accepted": "Accepted: the numbers follow from the replies, and nothing speaks against them.",
    "refused": "Refused: see what is refused above.",
    "incomplete": "Incomplete: nothing speaks against it, but not everything could be checked here.",
}


def finding_lines(report: Report) -> Iterator[str]:
    """Every finding with its first places, then what was not checked."""
    for finding in report.findings:
        places = "" if finding.count == 1 else f" ({count_text(finding.count, 'place')})"
        yield f"{finding.severity}, {finding.check}: {finding.message}{places}"
        yield from (f"    {place}" for place in finding.where[:SHOWN])
        if finding.where and finding.count > SHOWN:
            yield f"    and {finding.count - min(SHOWN, len(finding.where)):,} more"
    for left in report.unchecked:
        yield f"not checked, {left.check}: {left.why}"


def numbers_table(report: Report) -> Table:
    """The recomputed scores of judges and rules, overall and by domain; no rows where none were computed."""
    domains = tuple(report.rules.domains) if report.rules else ()
    rows = [
        (one.judge, one.policy, points(one.macro), *(points(one.domains.get(name)) for name in domains))
        for one in report.judges
    ]
    if report.rules:
        rules = report.rules
        rows.append(
            ("rules", rules.policy, points(rules.macro), *(points(rules.domains[name]) for name in domains))
        )
    shares = [share for one in report.judges for share in one.coverage.values()]
    return Table(
        title="Scores as the raw replies give them (0-100)",
        columns=("By", "Policy", "Macro", *domains),
        rows=tuple(rows),
        left=("By", "Policy"),
        fold=("By",),
        notes=(f"Least coverage of a domain: {percent(min(shares))}.",) if shares else (),
    )


def report_lines(report: Report) -> Iterator[str]:
    """What was verified, what an audit came to, and the verdict."""
    if report.model is not None:
        sha256 = f", bundle {report.bundle_sha256}" if report.bundle_sha256 else ""
        yield f"{report.model} on {report.data}: {count_text(report.samples, 'prediction')}{sha256}"
    if report.checked:
        yield f"Checked: {', '.join(report.checked)}."
    if report.audit is not None:
        yield _audit(report.audit)
    yield _VERDICTS[report.verdict]


def _audit(audit: AuditReport) -> str:
    mean = DASH if audit.mean_difference is None else f"{audit.mean_difference:+.2f}"
    noise = "" if audit.noise is None else f" (standard deviation {audit.noise:.1f})"
    cost = "unknown" if audit.cost_usd is None else f"{dollars(audit.cost_usd)} USD"
    failed = f", {audit.failed} without a verdict" if audit.failed else ""
    return (
        f"Audit by {audit.judge}: {audit.decision}. {count_text(audit.judged, 'sample')} judged again{failed}, seed {audit.seed}; new minus "
        f"stored {mean} points{noise}; evidence {audit.evidence_against:.3g} against (20 rejects), {audit.evidence_for:.3g} "
        f"for (10 accepts); cost {cost}."
    )
