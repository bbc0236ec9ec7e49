"""The tables of a comparison of two runs: differences by domain, then the samples that got worse.

In: the parts of a `Comparison`. Out: tables. B − A above 0 means that the second run is better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import DIFFERENCE, in_points, interval_notes, score_cell, width
from agentworldbench.render.table import DASH, Table, percent, points
from agentworldbench.stats.checks import Check
from agentworldbench.stats.paired import POWER, Difference, Differences
from agentworldbench.stats.ranking import TOLD
from agentworldbench.texts import count_text

FORCED: Final = "UNLIKE RUNS: no difference of the models"
"""What stands in the title of a comparison that was forced."""
Scored = tuple[int, Sequence[float]]
"""Samples, and how many of them each run has a score of."""


def differences_table(
    title: str, rows: Differences, by_task: Differences, scored: Mapping[str, Scored], notes: Sequence[str]
) -> Table:
    """One measure: both scores, their difference with interval, tests, and on how many samples which is better.

    `scored` holds by domain the samples that both runs are about and how many of them each has a score of, `by_task`
    the same differences with the episodes of one task as one cluster.
    """
    named = [
        *((domain_name(domain), row) for domain, row in rows.domains.items()),
        ("Overall, macro", rows.macro),
        ("Overall, micro", rows.micro),
    ]
    summed = (sum(samples for samples, _ in scored.values()), _summed([some for _, some in scored.values()]))
    coverage = [*(scored[domain] for domain in rows.domains), summed, summed]
    tasks = [*by_task.domains.values(), by_task.macro, by_task.micro]
    return Table(
        title=title,
        columns=(
            "Domain",
            "Samples",
            "Coverage",
            "A",
            "B",
            "B − A",
            "p",
            "Holm",
            "Detectable",
            "Better/same/worse",
        ),
        rows=tuple(
            (name, str(row.samples), coverage_cell(*one), *_cells(row))
            for (name, row), one in zip(named, coverage, strict=True)
        ),
        left=("Domain",),
        together=(("A", "B", "B − A"), ("p", "Holm")),
        strong=(len(named) - 2,),
        notes=(
            *notes,
            "Coverage: scored / all, of A and of B. p: by flipping signs of whole trajectories; Holm: corrected for all "
            f"rows of this table, the number to go by. Detectable: the difference that {100 * POWER:.0f} % of such "
            "comparisons would tell from 0. Better: samples on which B scores more.",
            *_not_compared(named, dict(zip([name for name, _ in named], coverage, strict=True))),
            *_by_task_notes(named, tasks),
            *interval_notes([(name, in_points(row.interval, least=DIFFERENCE)) for name, row in named]),
        ),
    )


def _summed(counts: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*counts, strict=True)))


def coverage_cell(samples: int, scored: Sequence[float]) -> str:
    """Scored / all of each run, once where it is the same in all."""
    cells = [percent(count / samples if samples else None) for count in scored]
    return cells[0] if len(set(cells)) == 1 else " / ".join(cells)


def _not_compared(named: Sequence[tuple[str, Difference]], scored: Mapping[str, Scored]) -> Iterator[str]:
    """A domain in which a run has no score is not a difference of 0."""
    for name, row in named:
        samples, counts = scored[name]
        if row.difference is None and samples and 0 in counts:
            who = " and ".join(letter for letter, count in zip("AB", counts, strict=True) if not count)
            yield f"{name}: not comparable, {who} has no score of any of {count_text(samples, 'sample')}; so there is no macro difference."


def _by_task_notes(named: Sequence[tuple[str, Difference]], tasks: Sequence[Difference]) -> Iterator[str]:
    """Rows that clusters of tasks make more than a tenth wider, or whose corrected p then says another thing."""
    found = []
    for (name, row), other in zip(named, tasks, strict=True):
        if task_matters(row, other):
            found.append(f"{name} {task_words(other)}")
    if found:
        yield f"With all episodes of one task as one cluster: {'; '.join(found)}."


def task_matters(row: Difference, by_task: Difference) -> bool:
    """Whether clusters of tasks make a difference's interval more than a tenth wider, or turn its test."""
    check = Check(reported=row.interval, by_task=by_task.interval, bootstrap=None)
    ps = (row.p_holm, by_task.p_holm)
    turned = None not in ps and len({p is not None and p < TOLD for p in ps}) == 2
    return check.wider_by_task or turned


def task_words(by_task: Difference) -> str:
    """Its interval and corrected p."""
    tested = "" if by_task.p_holm is None else f" (Holm {p_cell(by_task.p_holm)})"
    return f"{score_cell(by_task.difference, by_task.interval, least=DIFFERENCE)}{tested}"


def regressions_table(
    title: str, rows: Sequence[tuple[str, ...]], notes: Sequence[str], commands: Sequence[str]
) -> Table | None:
    """The samples on which the second run falls furthest behind, with where both replies stand and commands to read
    them; None where it does so nowhere."""
    if not rows:
        return None
    return Table(
        title=title,
        columns=("Sample", "A", "B", "B − A", "Reply of A", "Reply of B"),
        rows=tuple(rows),
        left=("Sample", "Reply of A", "Reply of B"),
        notes=tuple(notes),
        commands=tuple(commands),
    )


def regression_cells(
    sample_id: str,
    first: float,
    second: float,
    failures: tuple[str | None, str | None],
    places: tuple[str, str],
) -> tuple[str, ...]:
    """One row: scores, or the class of the failure that stands for 0, and where both replies stand."""
    cells = [failure or points(value) for value, failure in zip((first, second), failures, strict=True)]
    return (sample_id, cells[0], cells[1], f"{second - first:+.2f}", *places)


def _cells(row: Difference) -> tuple[str, ...]:
    return (points(row.first), points(row.second), *difference_cells(row))


def difference_cells(row: Difference) -> tuple[str, ...]:
    """Difference with sign and interval, p, corrected p, smallest detectable difference, better/same/worse."""
    difference = score_cell(row.difference, row.interval, least=DIFFERENCE)
    return (
        f"+{difference}" if row.difference is not None and row.difference > 0 else difference,
        p_cell(row.p),
        p_cell(row.p_holm),
        DASH if row.detectable is None else width(row.detectable),
        f"{row.better}/{row.equal}/{row.worse}",
    )


def p_cell(value: float | None) -> str:
    """A p with three decimals, or a dash."""
    if value is None:
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
