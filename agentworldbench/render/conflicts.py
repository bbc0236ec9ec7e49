"""Conflicts of judge and rules as tables, and as a page on which each can be read.

In: `JudgeConflicts`, and `Evidence` for the conflicts that a page shows. Out: `Table`s, rows for CSV, HTML. The
page is one file without scripts and asks no network. All texts in it come from models, judges and recorded
environments: Jinja2 escapes them, control characters become pictures, and the page's own policy forbids scripts
and requests. Of a long text the beginning is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentworldbench.records import DIMENSIONS
from agentworldbench.render.names import domain_name
from agentworldbench.render.sample import shown, unfenced
from agentworldbench.render.table import DASH, Table, percent, share
from agentworldbench.stats.conflicts import (
    DECISIVE,
    HIGH,
    HIGH_RULE,
    LOW,
    Conflict,
    ConflictRate,
    JudgeConflicts,
)
from agentworldbench.version import __version__

CANARY: Final = "agentworldbench canary 663ab7e4-fbed-4ade-a871-538175c1ceac"
"""Stands on pages that hold benchmark text, so that it can be found in, and kept out of, training data."""
MOST: Final = 20_000
"""Characters of a text that a page shows."""
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
            place = (conflict.sample_id, conflict.domain, conflict.side)
            yield (one.judge, one.digest, *place, *numbers, " ".join(conflict.wrong))


# --- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    text: str
    alone: bool
    """Whether the other text of the pair does not hold this line."""


@dataclass(frozen=True)
class _Text:
    lines: tuple[_Line, ...]
    left: int
    """Characters that are not shown."""


@dataclass(frozen=True)
class _Card:
    anchor: str
    evidence: Evidence
    domain: str
    wrong: str
    action: _Text
    reference: _Text
    prediction: _Text
    reply: _Text | None
    said: tuple[tuple[str, str], ...]
    scores: tuple[tuple[str, str], ...]
    metrics: tuple[tuple[str, str, str, str], ...]
    """Name, value, how it stands (wrong, right, or between), and why it is 0 where it could not be read."""


@dataclass(frozen=True)
class _Section:
    judge: JudgeConflicts
    rates: Table
    cards: tuple[_Card, ...]
    left: int


def conflicts_page(model: str, data: str, judges: Sequence[tuple[JudgeConflicts, Sequence[Evidence]]]) -> str:
    """One HTML page: for each judge the rates, then its conflicts with all that is needed to decide."""
    from jinja2 import Environment, StrictUndefined

    template = (Path(__file__).parent / "conflicts.html").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
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
    return environment.from_string(template).render(
        canary=CANARY,
        version=__version__,
        model=shown(model),
        data=shown(data),
        definition=definition(),
        sections=sections,
        dash=DASH,
    )


def _card(anchor: str, evidence: Evidence) -> _Card:
    conflict = evidence.conflict
    reference, prediction = _pair(evidence.reference, evidence.prediction)
    return _Card(
        anchor=anchor,
        evidence=evidence,
        domain=domain_name(conflict.domain),
        wrong=wrong_words(conflict),
        action=_text(unfenced(evidence.action)),
        reference=reference,
        prediction=prediction,
        reply=None if evidence.reply is None else _text(evidence.reply),
        said=tuple((kind, shown(text[:MOST])) for kind, text in evidence.said),
        scores=tuple(
            (name, f"{evidence.scores[name]:g}" if name in evidence.scores else DASH) for name in DIMENSIONS
        ),
        metrics=tuple(
            (name, share(value), _stands(name, value), shown(evidence.reasons.get(name, "")))
            for name, value in evidence.metrics.items()
        ),
    )


def _stands(name: str, value: float) -> str:
    if name not in DECISIVE:
        return "other"
    return {0.0: "wrong", 1.0: "right"}.get(value, "between")


def _pair(reference: str, prediction: str) -> tuple[_Text, _Text]:
    """Two texts, with the lines marked that only one of them holds."""
    return _text(reference, beside=prediction), _text(prediction, beside=reference)


def _text(text: str, beside: str | None = None) -> _Text:
    held = None if beside is None else Counter(line.rstrip() for line in beside.split("\n"))
    lines = []
    for line in text[:MOST].split("\n"):
        word = line.rstrip()
        lines.append(_Line(shown(line), alone=held is not None and bool(word) and not held[word]))
        if held:
            held[word] -= held[word] > 0
    return _Text(tuple(lines), max(0, len(text) - MOST))
