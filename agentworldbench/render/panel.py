"""The tables of several verdicts on one prediction: what a panel of judges scores, and how far judges agree.

In: `Results`. Out: tables, None where a run has no panel or nothing that could agree. Judges carry the letters that
they have in the first table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from agentworldbench.protocol import PROTOCOLS
from agentworldbench.render.by_domain import by_domain_table
from agentworldbench.render.names import domain_name, letters, scope
from agentworldbench.render.numbers import interval_notes, share_cell
from agentworldbench.render.table import Table
from agentworldbench.stats.agreement import Agreement, Measure, Reason
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import JudgesAgreement, PanelResults, Results
from agentworldbench.texts import count_text

_MEASURES: Final = {"alpha": "Alpha", "kappa_quadratic": "Kappa", "exact": "Exact", "within_one": "Within 1"}
_REASONS: Final[Mapping[Reason, str]] = {
    "too_few_raters": "fewer than two of them gave a valid verdict",
    "nothing_shared": "no prediction has two valid verdicts",
}
_NO_VARIATION: Final = {
    "Alpha": "all values are the same, so there is nothing to agree about",
    "Kappa": "one of them always gives the same value, which agrees by chance as well",
}


def panel_table(results: Results) -> Table | None:
    """Scores by domain and dimension of the panel, by the reading and policy of its protocol."""
    panel = results.panel
    if panel is None:
        return None
    names = ", ".join(results.judge_names[one] for one in panel.judges)
    return by_domain_table(
        f"Panel scores of {results.model}, panel: {panel.rule} — {scope(results)}",
        panel.reading,
        PROTOCOLS[panel.protocol].policy,
        (
            f"Panel of {names}, protocol {panel.protocol}, digest {panel.digest}. Repeats of a judge are averaged first, "
            "then the judges combined, total and dimensions each by itself.",
            *_panel_counts(results, panel),
        ),
    )


def _panel_counts(results: Results, panel: PanelResults) -> Iterator[str]:
    counts = panel.all_counts
    yield (
        f"Predictions: {counts.predictions}; scored {counts.scored} (though a verdict failed: {counts.short}), failed "
        f"themselves {counts.failed}, too few valid judges {counts.too_few}, waiting for a verdict or not asked yet "
        f"{counts.pending}. Verdicts: {counts.verdicts}, failed: {counts.verdicts_failed}."
    )
    asked = {one.judge.digest: one.judge.system_prompts for one in results.judges}
    for digest in panel.judges:
        missing = [domain_name(one) for one in results.predictions.samples if one not in asked[digest]]
        if missing:
            name = results.judge_names[digest]
            yield (
                f"Judge {name} was never asked about {', '.join(missing)}: the panel has no score there until "
                "`awb judge RUN` asks it."
            )


def agreement_table(results: Results) -> Table | None:
    """How far judges, and repeats of a judge, agree: in full for the first group, the total for the others."""
    if not results.agreement:
        return None
    rows: list[tuple[str, ...]] = []
    shown: list[tuple[str, Interval | None]] = []
    missing: dict[tuple[str, Reason], list[str]] = {}
    for position, group in enumerate(results.agreement):
        for column, one in group.columns.items():
            if position and column != "total":
                continue
            name = f"{_called(results, group)}, {column}"
            found: dict[str, Measure] = {title: getattr(one, field) for field, title in _MEASURES.items()}
            rows.append(
                (
                    name,
                    str(one.predictions),
                    *(share_cell(each.value, each.interval, 2) for each in found.values()),
                )
            )
            for title, each in found.items():
                shown.append((name, each.interval))
                if each.reason:
                    missing.setdefault((title, each.reason), []).append(name)
    return Table(
        title=f"Agreement of judges on {results.model} — {scope(results)}",
        columns=("Verdicts", "Shared", *_MEASURES.values()),
        rows=tuple(rows),
        left=("Verdicts",),
        together=(("Alpha", "Kappa"), ("Exact", "Within 1")),
        strong=(0,),
        notes=(
            *_who(results),
            "Shared: predictions with two or more of the verdicts. Alpha (Krippendorff's, ordinal) and kappa (Cohen's, "
            "weights quadratic): 1 is full agreement, 0 what chance would give. Exact, within 1: pairs of verdicts with the "
            "same value, or at most one point of 1-5 apart. `results.json` has each dimension of every row.",
            *_undefined(missing, len(rows)),
            *interval_notes(shown),
            *_left_out(results.agreement[0].columns["total"]),
        ),
    )


def _called(results: Results, group: JudgesAgreement) -> str:
    """What a group is called: letters of judges, as in the first table."""
    known = dict(zip((one.judge.digest for one in results.judges), letters(len(results.judges)), strict=True))
    if group.kind == "within":
        return f"{known[group.judges[0]]} repeats".strip()
    if len(group.judges) == len(known) > 2:
        return "All"
    return "-".join(known[one] for one in group.judges)


def _who(results: Results) -> Iterator[str]:
    judges = [one.judge for one in results.judges]
    if len(judges) > 1:
        named = zip(letters(len(judges)), judges, strict=True)
        known = ", ".join(f"{letter} {results.judge_names[judge.digest]}" for letter, judge in named)
        first = " Of a judge with repeats the first valid verdict counts." if results.repeats else ""
        yield f"Judges: {known}.{first}"
    if len({one.protocol for one in judges}) > 1:
        yield "Judges of different protocols are told and shown different things: that lowers their agreement too."


def _undefined(missing: Mapping[tuple[str, Reason], list[str]], count: int) -> Iterator[str]:
    """Why measures have no value, in which of the table's `count` rows."""
    same: dict[tuple[str, str], list[str]] = {}
    for (title, reason), rows in missing.items():
        where = "all rows" if len(rows) == count > 1 else "; ".join(rows)
        why = _NO_VARIATION[title] if reason == "no_variation" else _REASONS[reason]
        same.setdefault((where, why), []).append(title)
    for (where, why), titles in same.items():
        yield f"No value of {', '.join(titles).lower()} ({where}): {why}."


def _left_out(one: Agreement) -> Iterator[str]:
    if one.alone or one.failed:
        yield f"First row: {count_text(one.alone, 'prediction')} with a single valid verdict left out; {count_text(one.failed, 'verdict')} failed."
