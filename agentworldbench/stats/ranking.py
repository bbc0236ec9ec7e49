"""Several runs on the same samples: every pair of them, and who is better than how many.

In: of each run its score of every shared sample, by domain. Out: a `PairDifference` for each pair, whose p is
corrected for all pairs [Holm 1979], and ranks made of them: 1 + the number of models that are better by a
difference told from 0. Runs whose difference is luck share a rank, and a rank may be shared by many: what the
samples cannot tell apart stands in no order. This is the number of significantly better rivals, the lower end
of a confidence set for the rank [Mogstad, Romano, Shaikh & Wilhelm 2024, for ranks with uncertainty].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from agentworldbench.records import Record
from agentworldbench.stats.intervals import LEVEL
from agentworldbench.stats.paired import Difference, Pair, by_task, holm, tested

TOLD: Final = round(1 - LEVEL, 6)
"""A corrected p below this tells a difference from 0."""


@dataclass(frozen=True)
class SharedSample:
    """One sample that all runs share, with its trajectory, its task, and the score (0-100) of each run in order."""

    sample_id: str
    cluster: str
    task: str
    scores: tuple[float, ...]


class PairDifference(Record):
    """Run `second` minus run `first`, by their places in the list of runs.

    `macro.p_holm` is corrected for the macro differences of all pairs, those of `domains` for all domains of all
    pairs. `macro_by_task` takes the episodes of one task for one cluster.
    """

    first: int
    second: int
    domains: dict[str, Difference]
    macro: Difference
    macro_by_task: Difference


def all_pairs(domains: Mapping[str, Sequence[SharedSample]], runs: int) -> tuple[PairDifference, ...]:
    """The differences of every two of `runs` runs, the later minus the earlier one."""
    found = []
    for first, second in combinations(range(runs), 2):
        pairs = {
            domain: [
                Pair(one.sample_id, one.cluster, one.scores[first], one.scores[second], one.task)
                for one in some
            ]
            for domain, some in domains.items()
        }
        rows = tested(pairs)
        found.append(
            PairDifference(
                first=first,
                second=second,
                domains=rows.domains,
                macro=rows.macro,
                macro_by_task=tested(by_task(pairs)).macro,
            )
        )
    return _corrected(found)


def _corrected(found: Sequence[PairDifference]) -> tuple[PairDifference, ...]:
    macro = holm([one.macro.p for one in found])
    tasks = holm([one.macro_by_task.p for one in found])
    places = [(number, domain) for number, one in enumerate(found) for domain in one.domains]
    rows = dict(zip(places, holm([found[n].domains[domain].p for n, domain in places]), strict=True))
    return tuple(
        one.model_copy(
            update={
                "macro": one.macro.model_copy(update={"p_holm": macro[number]}),
                "macro_by_task": one.macro_by_task.model_copy(update={"p_holm": tasks[number]}),
                "domains": {
                    domain: row.model_copy(update={"p_holm": rows[number, domain]})
                    for domain, row in one.domains.items()
                },
            }
        )
        for number, one in enumerate(found)
    )


def is_told(row: Difference) -> bool:
    """Whether a difference is told from 0 after correction."""
    return row.difference is not None and row.p_holm is not None and row.p_holm < TOLD


def ranks_of(
    pairs: Sequence[PairDifference], models: Sequence[int], ranked: Sequence[bool]
) -> list[int | None]:
    """The rank of each run: 1 + the number of models that are better; None for those that are not `ranked`.

    `models` numbers the models of the runs: two runs of one model that are both better are one better model, and no
    model is better than itself.
    """
    better: dict[int, set[int]] = {number: set() for number in range(len(models))}
    for one in pairs:
        if is_told(one.macro):
            assert one.macro.difference is not None
            winner, loser = (one.second, one.first) if one.macro.difference > 0 else (one.first, one.second)
            if ranked[winner] and models[winner] != models[loser]:
                better[loser].add(models[winner])
    return [1 + len(better[number]) if ranked[number] else None for number in better]
