"""What verification found, as records: findings, the report, and the verdict that follows from them.

In: hits, one a place where a check found something. Out: `Finding`s (hits of one kind together, counted, with the
first places) and a `Report` that programs read. A verdict follows from findings alone: what is refused outweighs
what could not be checked, and that outweighs acceptance. Warnings are for a person to look at and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from agentworldbench.records import Record

Severity = Literal["refused", "warning", "info"]
Outcome = Literal["accepted", "refused", "incomplete"]
SEVERITIES: Final[tuple[Severity, ...]] = ("refused", "warning", "info")
PLACES: Final = 20
"""So many places of a finding are named; `count` says how many there are."""
LONGEST: Final = 300
"""Characters of a place that are kept: names come from whoever made the bundle."""


@dataclass(frozen=True)
class Hit:
    """One place where a check found something; hits of one check, severity and message make a finding."""

    check: str
    severity: Severity
    message: str
    where: str = ""


class Finding(Record):
    """What one check found: `where` names the first places, `count` counts all of them."""

    check: str
    severity: Severity
    message: str
    where: tuple[str, ...] = ()
    count: int = 1


class Unchecked(Record):
    """A check that could not be made, or not wholly, and why."""

    check: str
    why: str


class JudgeNumbers(Record):
    """One judge's scores (0-100) as the replay gives them, under the headline of its protocol."""

    judge: str
    digest: str
    protocol: str
    policy: Literal["exclude", "floor"]
    macro: float | None
    micro: float | None
    domains: dict[str, float | None]
    coverage: dict[str, float]


class RuleNumbers(Record):
    """Rule scores (0-100) and skill as the replay gives them, by the policy of the run."""

    policy: Literal["exclude", "floor"]
    macro: float | None
    skill: float | None
    domains: dict[str, float | None]


class AuditReport(Record):
    """What judging again a random draw of samples came to. Differences are new minus stored, in points of the score.

    `evidence_against` and `evidence_for` are the two capitals of `stats/sequential.py`, of which 20 and 10 decide; of
    the `scored` samples of the bundle the first `drawn` in the order of `seed` were asked about, `judged` of them have a new verdict and `failed` have
    none. `noise` is the standard deviation of the differences, `stopped` why it ended before a decision.
    """

    judge: str
    digest: str
    seed: int
    margin: float
    stopped: str | None = None
    decision: Literal["accepted", "rejected", "undecided"]
    scored: int
    drawn: int
    judged: int
    failed: int
    mean_difference: float | None
    noise: float | None
    evidence_against: float
    evidence_for: float
    cost_usd: float | None


class Report(Record):
    """The whole of a verification. `bundle_sha256` is the hash of the manifest, None for a run directory."""

    schema_version: Literal[1] = 1
    verdict: Outcome
    subject: str
    bundle_sha256: str | None
    harness: str
    model: str | None = None
    data: str | None = None
    samples: int = 0
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    judges: tuple[JudgeNumbers, ...] = ()
    rules: RuleNumbers | None = None
    audit: AuditReport | None = None


def gathered(hits: Iterable[Hit]) -> list[Finding]:
    """Hits of one kind as one finding each, the gravest first, else in the order in which they came."""
    kinds: dict[tuple[Severity, str, str], list[str]] = {}
    counts: dict[tuple[Severity, str, str], int] = {}
    for hit in hits:
        kind = (hit.severity, hit.check, hit.message)
        places = kinds.setdefault(kind, [])
        counts[kind] = counts.get(kind, 0) + 1
        if hit.where and len(places) < PLACES:
            places.append(hit.where[:LONGEST])
    made = [
        Finding(check=check, severity=severity, message=message, where=tuple(places), count=counts[key])
        for key, places in kinds.items()
        for severity, check, message in [key]
    ]
    return sorted(made, key=lambda finding: SEVERITIES.index(finding.severity))


def verdict_of(findings: Iterable[Finding], unchecked: Iterable[Unchecked]) -> Outcome:
    """`refused` where a finding refuses, else `incomplete` where something could not be checked, else `accepted`."""
    if any(finding.severity == "refused" for finding in findings):
        return "refused"
    return "incomplete" if list(unchecked) else "accepted"
