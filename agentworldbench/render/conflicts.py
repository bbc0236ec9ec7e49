"""Conflicts of judge and rules as tables, and as a page on which each can be read.

In: `JudgeConflicts`, and `Evidence` for the conflicts that a page shows. Out: `Table`s, rows for CSV, HTML. The
page is one file in the shell of all pages and asks no network. All texts in it come from models, judges and recorded
environments: Jinja2 escapes them, control characters become pictures, and the page's policy allows no script but the
shell's. Of a long text the beginning is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentworldbench.records import DIMENSIONS
from agentworldbench.render.diff import Difference, beginning, difference
from agentworldbench.render.names import domain_name
from agentworldbench.render.sample import unfenced
from agentworldbench.render.shell import page
from agentworldbench.render.table import DASH, Table, csv_cell, percent, share
from agentworldbench.stats.conflicts import (
    DECISIVE,
    HIGH,
    HIGH_RULE,
    LOW,
    Conflict,
    ConflictRate,
    JudgeConflicts,
)

CANARY: Final = "agentworldbench canary 663ab7e4-fbed-4ade-a871-538175c1ceac"
"""Stands on pages that hold benchmark text, so that it can be found in, and kept out of, training data."""
MOST_BYTES: Final = 20_000
"""Of HTML that one text takes on the page."""
CSV_COLUMNS: Final = (
    "judge", "judge_digest", "sample_id", "domain", "side", "factuality", "rule_score", "gap", "wrong",
)  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """One conflict with its texts: what a person reads to decide who is right.

    `prediction` is what the judge was shown, `said` its sentences (each a strength or a weakness), `reply` all it
    wrote, `reasons` why metrics could not read the prediction.
    """

    conflict: Conflict
    turn: int
    turns: int
    action: str
    reference: str
    prediction: str
    scores: Mapping[str, float]
    said: Sequence[tuple[str, str]]
    reply: str | None
    metrics: Mapping[str, float]
    reasons: Mapping[str, str]


def definition() -> str:
    """What a conflict is, in one paragraph."""
    return (
        f"The judge is kinder: factuality {HIGH} or 5 although a decisive metric is 0. It is stricter: factuality 1 or "
        f"{LOW} although every decisive metric is 1 and the rule score at least {HIGH_RULE:g}. Decisive metrics are "
        "those with a yes or no (status, exit code, page …); compared are samples with a factuality and at least one of "
        "them."
    )


def rates_table(one: JudgeConflicts) -> Table:
    """How often this judge and the rules contradict each other, by domain."""
    rows = [(domain_name(domain), *_rate_cells(rate)) for domain, rate in one.domains.items()]
    rows.append(("All", *_rate_cells(one.overall)))
    return Table(
        title=f"Conflicts of judge and rules, {one.judge}",
        columns=("Domain", "Compared", "Judge kinder", "Judge stricter", "Share", "95 % interval"),
        rows=tuple(rows),
        left=("Domain",),
        together=(("Judge kinder", "Judge stricter"), ("Share", "95 % interval")),
        strong=(len(rows) - 1,),
        notes=(definition(), f"Samples with a factuality: {one.judged}."),
    )


def _rate_cells(rate: ConflictRate) -> tuple[str, ...]:
    interval = DASH if rate.low is None else f"{percent(rate.low)} – {percent(rate.high)}"
    return (str(rate.samples), str(rate.kinder), str(rate.stricter), percent(rate.share), interval)


def conflicts_table(one: JudgeConflicts, most: int | None = None) -> Table:
    """The conflicts, the largest gap first; at most `most` of them."""
    listed = one.conflicts[:most]
    left = len(one.conflicts) - len(listed)
    return Table(
        title=f"Samples on which they disagree most, {one.judge}",
        columns=("Sample", "Judge", "Factuality", "Rule score", "Gap", "Wrong by the rules"),
        rows=tuple(
            (
                conflict.sample_id,
                conflict.side,
                f"{conflict.factuality:g}",
                share(conflict.rule_score),
                f"{conflict.gap:+.2f}",
                wrong_words(conflict),
            )
            for conflict in listed
        ),
        left=("Sample", "Judge", "Wrong by the rules"),
        notes=(
            "Gap: factuality on a scale from 0 to 1, less the rule score.",
            *([f"{left} more (--limit)."] if left else []),
        ),
        fold=("Sample", "Wrong by the rules"),
    )


def wrong_words(conflict: Conflict) -> str:
    """What the rules found wrong, in words."""
    return ", ".join(DECISIVE[name] for name in conflict.wrong) or DASH


def csv_rows(judges: Sequence[JudgeConflicts], most: int | None = None) -> Iterator[tuple[str, ...]]:
    """`CSV_COLUMNS`, then a row a conflict."""
    yield CSV_COLUMNS
    for one in judges:
        for conflict in one.conflicts[:most]:
            score = conflict.rule_score
            numbers = (f"{conflict.factuality:g}", "" if score is None else repr(score), repr(conflict.gap))
            place = (csv_cell(conflict.sample_id), csv_cell(conflict.domain), conflict.side)
            yield (csv_cell(one.judge), one.digest, *place, *numbers, " ".join(conflict.wrong))


# --- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    text: str
    left: int
    """Characters that are not shown."""


@dataclass(frozen=True)
class _Card:
    anchor: str
    evidence: Evidence
    domain: str
    wrong: str
    action: _Text
    difference: Difference
    reply: _Text | None
    said: tuple[tuple[str, str], ...]
    scores: tuple[tuple[str, str, str], ...]
    metrics: tuple[tuple[str, str, str], ...]
    """Name, value, and how it stands: wrong, right, or neither."""
    reasons: tuple[tuple[str, str], ...]
    """Metrics that could not be read, and why."""


@dataclass(frozen=True)
class _Section:
    judge: JudgeConflicts
    rates: Table
    cards: tuple[_Card, ...]
    left: int


def conflicts_page(model: str, data: str, judges: Sequence[tuple[JudgeConflicts, Sequence[Evidence]]]) -> str:
    """One HTML page: for each judge the rates, then its conflicts with all that is needed to decide."""
    sections = [
        _Section(
            judge=one,
            rates=rates_table(one),
            cards=tuple(
                _card(f"c{number}-{place}", evidence) for place, evidence in enumerate(listed, start=1)
            ),
            left=len(one.conflicts) - len(listed),
        )
        for number, (one, listed) in enumerate(judges, start=1)
    ]
    return page(
        Path(__file__).parent / "conflicts_page",
        "conflicts",
        f"Conflicts of judge and rules: {model}",
        styles=["texts"],
        canary=CANARY,
        model=model,
        data=data,
        definition=definition(),
        sections=sections,
        dash=DASH,
    )


def _card(anchor: str, evidence: Evidence) -> _Card:
    conflict = evidence.conflict
    return _Card(
        anchor=anchor,
        evidence=evidence,
        domain=domain_name(conflict.domain),
        wrong=wrong_words(conflict),
        action=_text(unfenced(evidence.action)),
        difference=difference(evidence.prediction, evidence.reference, MOST_BYTES),
        reply=None if evidence.reply is None else _text(evidence.reply),
        said=tuple((kind, beginning(text, MOST_BYTES)[0]) for kind, text in evidence.said),
        scores=tuple(
            (name, f"{evidence.scores[name]:g}" if name in evidence.scores else DASH, "")
            for name in DIMENSIONS
        ),
        metrics=tuple((name, share(value), _stands(name, value)) for name, value in evidence.metrics.items()),
        reasons=tuple((name, beginning(text, MOST_BYTES)[0]) for name, text in evidence.reasons.items()),
    )


def _stands(name: str, value: float) -> str:
    return {0.0: "wrong", 1.0: "right"}.get(value, "") if name in DECISIVE else ""


def _text(text: str) -> _Text:
    return _Text(*beginning(text, MOST_BYTES))
