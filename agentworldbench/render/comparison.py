"""The tables of a comparison of two runs: differences by domain, then the samples that got worse.

In: the parts of a `Comparison`. Out: tables. B − A above 0 means that the second run is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import interval_notes, score_cell
from agentworldbench.render.table import DASH, Table, points
from agentworldbench.stats.paired import POWER, Difference, Differences

FORCED: Final = "UNLIKE RUNS: no difference of the models"
"""What stands in the title of a comparison that was forced."""


def differences_table(title: str, rows: Differences, notes: Sequence[str]) -> Table:
    """One measure: both scores, their difference with interval, tests, and on how many samples which is better."""
    named = [
        *((domain_name(domain), row) for domain, row in rows.domains.items()),
        ("Overall, macro", rows.macro),
        ("Overall, micro", rows.micro),
    ]
    return Table(
        title=title,
        columns=("Domain", "Samples", "A", "B", "B − A", "p", "Holm", "Detectable", "Better/same/worse"),
        rows=tuple((name, *_cells(row)) for name, row in named),
        left=("Domain",),
        strong=(len(named) - 2,),
        notes=(
            *notes,
            "p: by flipping signs of whole trajectories; Holm: corrected for all rows of this table, the number to go by. "
            f"Detectable: the difference that {100 * POWER:.0f} % of such comparisons would tell from 0. Better: samples on "
            "which B scores more.",
            *interval_notes([(name, row.interval) for name, row in named]),
        ),
    )


def regressions_table(title: str, rows: Sequence[tuple[str, str, str, str]]) -> Table | None:
    """The samples on which the second run falls furthest behind; None where it does so nowhere."""
    if not rows:
        return None
    return Table(
        title=title,
        columns=("Sample", "A", "B", "B − A"),
        rows=tuple(rows),
        left=("Sample",),
    )


def regression_cells(
    sample_id: str, first: float, second: float, failures: tuple[str | None, str | None]
) -> tuple[str, str, str, str]:
    """One row: scores, or the class of the failure that stands for 0."""
    cells = [failure or points(value) for value, failure in zip((first, second), failures, strict=True)]
    return (sample_id, cells[0], cells[1], f"{second - first:+.2f}")


def _cells(row: Difference) -> tuple[str, ...]:
    difference = score_cell(row.difference, row.interval)
    return (
        str(row.samples),
        points(row.first),
        points(row.second),
        f"+{difference}" if row.difference is not None and row.difference > 0 else difference,
        _p(row.p),
        _p(row.p_holm),
        points(row.detectable),
        f"{row.better}/{row.equal}/{row.worse}",
    )


def _p(value: float | None) -> str:
    if value is None:
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
