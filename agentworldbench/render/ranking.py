"""The tables of several runs: who stands where on the samples they share, and the difference of every two.

In: rows of numbers by run. Out: tables. Runs are called A, B, C … as they were listed; a difference is the better
run minus the other one, so that it is above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from agentworldbench.render.comparison import difference_cells, task_matters, task_words
from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import DIFFERENCE, Named, in_points, interval_notes, score_cell
from agentworldbench.render.table import DASH, Table, percent
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.paired import POWER, Difference

Cell = tuple[float | None, Interval | None, float]
"""A score, its interval, and the coverage that it rests on."""


@dataclass(frozen=True)
class RankedRow:
    """One run: its place in the list, model, rank or why there is none, overall score, and domains."""

    run: int
    model: str
    rank: int | None
    unranked: str | None
    overall: tuple[float | None, Interval | None]
    domains: dict[str, Cell]


@dataclass(frozen=True)
class PairRow:
    """One pair, by the places of its runs: second minus first, and the same by tasks."""

    first: int
    second: int
    difference: Difference
    by_task: Difference


def letter(run: int) -> str:
    """What the run at a place of the list is called."""
    return ascii_uppercase[run] if run < len(ascii_uppercase) else str(run + 1)


def ranking_table(title: str, rows: Sequence[RankedRow], notes: Sequence[str]) -> Table:
    """The runs, best first, with coverage beside every mean."""
    domains = list(dict.fromkeys(domain for row in rows for domain in row.domains))
    shown: list[Named] = []
    cells = []
    for row in rows:
        shown += [
            (letter(row.run), in_points(one))
            for one in (row.overall[1], *(cell[1] for cell in row.domains.values()))
        ]
        cells.append(
            (
                letter(row.run),
                DASH if row.rank is None else str(row.rank),
                row.model,
                score_cell(*row.overall),
                percent(min((cell[2] for cell in row.domains.values()), default=None)),
                *(_cell(row.domains[domain]) for domain in domains),
            )
        )
    return Table(
        title=title,
        columns=("Run", "Rank", "Model", "Overall", "Coverage", *map(domain_name, domains)),
        rows=tuple(cells),
        left=("Run", "Model"),
        together=(("Overall", "Coverage"),),
        notes=(
            *notes,
            "Overall: macro, the plain mean of the domains. Coverage (scored / all): of the domain that has the least; where "
            "a domain's is below 100 % it stands beside its score. Rank: 1 + the number of models that are better after Holm's "
            "correction over all pairs; runs of one rank are not told apart.",
            *(f"{letter(row.run)}: no rank, {row.unranked}." for row in rows if row.unranked),
            *interval_notes(shown),
        ),
    )  # fmt: skip


def _cell(cell: Cell) -> str:
    value, interval, coverage = cell
    score = score_cell(value, interval)
    return score if coverage == 1 else f"{score} ({percent(coverage)})"


def pairs_table(title: str, pairs: Sequence[PairRow], order: Sequence[int]) -> Table:
    """The macro difference of every two runs, in the `order` of the table of runs."""
    place = {run: number for number, run in enumerate(order)}
    turned = [one if place[one.second] < place[one.first] else _turned(one) for one in pairs]
    turned.sort(key=lambda one: (place[one.second], place[one.first]))
    rows = [(f"{letter(one.second)} − {letter(one.first)}", one) for one in turned]
    by_task = [
        f"{name} {task_words(one.by_task)}" for name, one in rows if task_matters(one.difference, one.by_task)
    ]
    return Table(
        title=title,
        columns=("Pair", "Difference", "p", "Holm", "Detectable", "Better/same/worse"),
        rows=tuple((name, *difference_cells(one.difference)) for name, one in rows),
        left=("Pair",),
        together=(("p", "Holm"),),
        notes=(
            "Macro differences, 0-100. p: by flipping signs of whole trajectories; Holm: corrected for all pairs, the "
            f"number to go by. Detectable: the difference that {100 * POWER:.0f} % of such comparisons would tell from 0.",
            *([f"With all episodes of one task as one cluster: {'; '.join(by_task)}."] if by_task else []),
            *interval_notes(
                [(name, in_points(one.difference.interval, least=DIFFERENCE)) for name, one in rows]
            ),
        ),
    )


def _turned(one: PairRow) -> PairRow:
    return PairRow(one.second, one.first, one.difference.turned(), one.by_task.turned())
