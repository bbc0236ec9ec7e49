"""Tables of a pilot: where its scores' variance comes from, and what other mixes of samples and repeats would tell.

In: `Components` by domain with those of all, and `Mix`es. Out: tables. What the pilot cannot tell apart stands in one
cell, and a half width that it leaves open is shown with both bounds; nothing unknown is shown as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Final

from agentworldbench.prices import dollars
from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import MOST, width
from agentworldbench.render.table import DASH, Table
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.macro_variance import MacroPart, MacroVariance
from agentworldbench.stats.mixes import Half, Mix
from agentworldbench.stats.variance import Component, Components, Name

SOURCES: Final[Mapping[Name, str]] = {
    "trajectory": "Trajectory",
    "turn": "Turn",
    "generation": "Generation",
    "rest": "Verdict",
}
"""Sources that one judge's scores have. What a judge thinks of a turn or an answer is part of these."""
CHEAPEST, REACHES, EFFICIENT = "◀", "✓", "*"


def shares_table(title: str, domains: Mapping[str, Components], macro: MacroVariance, judged: bool) -> Table:
    """Shares of the variance of single scores, by domain and together; `judged`: verdicts may vary too."""
    shown = {name: text for name, text in SOURCES.items() if judged or name != "rest"}
    rows = [(domain_name(domain), *_shares(one.parts, shown)) for domain, one in domains.items()]
    rows.append(("All", *_shares(macro.parts, shown)))
    what = "Share of the variance of single scores (with its 95 % interval over other trajectories, which is rough)"
    notes = [f"{what}: how trajectories differ, turns of one, answers to one prompt"]
    notes[0] += ", and verdicts on one answer." if judged else "."
    if any("with " in cell for row in rows for cell in row):
        more = "; --judge-repeats 2 answers from verdicts" if judged else ""
        notes.append(
            "with …: the pilot cannot tell the two apart. --epochs 2 tells turns from answers"
            f"{more}; two turns of a trajectory tell the turn from the trajectory."
        )
    if any(f"({DASH})" in cell for row in rows for cell in row):
        notes.append(
            f"({DASH}): too few trajectories for an interval; such shares are hardly more than a guess."
        )
    below = [
        f"{domain_name(domain)} {SOURCES[part.names[0]].lower()}"
        for domain, one in domains.items()
        for part in one.parts
        if part.negative and part.names[0] in SOURCES
    ]
    if below:
        notes.append(f"Estimated below 0, so counted as 0: {', '.join(below)}.")
    if judged:
        notes.append("One judge: nothing here tells how other judges would score.")
    flat = [domain_name(domain) for domain, one in domains.items() if not one.parts]
    if flat:
        notes.append(f"All scores are equal, so there is nothing to share out: {', '.join(flat)}.")
    return Table(
        title=title,
        columns=("Domain", *shown.values(), "Deviation"),
        rows=tuple(rows),
        left=("Domain",),
        strong=(len(rows) - 1,),
        notes=(*notes, "Deviation: standard deviation of single scores, in points."),
    )


def _shares(parts: Sequence[Component] | Sequence[MacroPart], shown: Mapping[Name, str]) -> tuple[str, ...]:
    cells = dict.fromkeys(shown, DASH)
    for part in parts:
        first, *rest = [name for name in part.names if name in shown]
        cells[first] = f"{100 * part.share:.0f} %{_bounds(part.interval)}"
        cells |= dict.fromkeys(rest, f"with {shown[first].lower()}")
    deviation = sqrt(fsum(part.variance for part in parts))
    return (*cells.values(), f"{deviation:.2f}")


def _bounds(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return f" ({DASH})"
    return f" ({100 * interval.low:.0f}–{100 * interval.high:.0f})"


def mixes_table(
    title: str, mixes: Sequence[Mix], cheapest: int | None, priced: bool, notes: Sequence[str]
) -> Table:
    """One row a mix; `cheapest` is the place of the one that is marked."""
    rows = []
    for place, mix in enumerate(mixes):
        marks = [CHEAPEST] if place == cheapest else [REACHES] * bool(mix.reaches)
        cost = _range(mix.usd_low, mix.usd_high) if priced else _millions(mix.tokens_low, mix.tokens_high)
        rows.append(
            (
                mix_name(mix),
                f"{mix.trajectories:,}",
                half_cell(mix.population),
                half_cell(mix.rerun),
                cost,
                " ".join([EFFICIENT] * mix.efficient + marks),
            )
        )
    return Table(
        title=title,
        columns=(
            "Mix",
            "Trajectories",
            "± population",
            "± re-run",
            "USD" if priced else "Million tokens",
            "Mark",
        ),
        rows=tuple(rows),
        left=("Mix", "Mark"),
        together=(("± population", "± re-run"),),
        strong=() if cheapest is None else (cheapest,),
        notes=tuple(notes),
    )


def mix_name(mix: Mix) -> str:
    """Samples × epochs × judge repeats."""
    return f"{mix.samples:,} × {mix.epochs} × {mix.repeats}"


def half_cell(half: Half | None) -> str:
    """A half width in points: a number, its bounds, or a dash."""
    if half is None:
        return DASH
    low, high = width(half.low), width(half.high)
    if low == high:
        return high
    if not half.low:
        return DASH if half.high > MOST else f"≤ {high}"
    return f"{low} to {high}"


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return DASH
    return dollars(high) if low == high else f"{dollars(low)} to {dollars(high)}"


def _millions(low: int, high: int) -> str:
    return f"{low / 1e6:.3g} to {high / 1e6:.3g}"
