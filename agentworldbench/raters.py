"""How far the judges of a run agree with each other, and each of them with itself.

In: what each judge made of every sample by the reading of its protocol, epoch by epoch and repeat by repeat. Out:
`JudgesAgreement`s. Between judges each stands with one verdict on a prediction, the first valid one of its repeats:
a mean of several would agree better than any verdict that is given, and lies between the grades. Within a judge
its repeats are the raters. Predictions that failed or wait for a verdict say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from agentworldbench.readings import Groups, Outcome, Outcomes
from agentworldbench.records import DIMENSIONS
from agentworldbench.run_record import RunRecord
from agentworldbench.stats.agreement import RatedVerdicts, agreement_by_column
from agentworldbench.stats.results import JudgesAgreement

Grades = dict[str, int]
"""A verdict's integers by dimension."""


def agreements(
    run: RunRecord, groups: Groups, outcomes: Mapping[str, Outcomes]
) -> tuple[JudgesAgreement, ...]:
    """All judges together, each pair where there are more than two, the repeats of each judge that has some."""
    judges = tuple(judge.digest for judge in run.judges)
    found = []
    if len(judges) > 1:
        pairs = list(combinations(judges, 2)) if len(judges) > 2 else []
        for some in (judges, *pairs):
            verdicts = list(_between(groups, {name: outcomes[name] for name in some}))
            name = f"agreement of {' '.join(sorted(some))}"
            columns = agreement_by_column(name, verdicts)
            found.append(JudgesAgreement(kind="between", judges=some, columns=columns))
    for judge in judges:
        if run.repeats.get(judge, 1) > 1:
            columns = agreement_by_column(
                f"repeats of {judge}", list(_within(groups, outcomes[judge])), alike=True
            )
            found.append(JudgesAgreement(kind="within", judges=(judge,), columns=columns))
    return tuple(found)


def _between(groups: Groups, outcomes: Mapping[str, Outcomes]) -> Iterator[RatedVerdicts]:
    for cluster, sample in _samples(groups):
        for of_judges in zip(*(some[sample] for some in outcomes.values()), strict=True):
            given = {name: _first(repeats) for name, repeats in zip(outcomes, of_judges, strict=True)}
            asked = {name: _grades(one) for name, one in given.items() if one.stage in ("", "judge")}
            if asked:
                yield RatedVerdicts(cluster, asked)


def _within(groups: Groups, outcomes: Outcomes) -> Iterator[RatedVerdicts]:
    for cluster, sample in _samples(groups):
        for repeats in outcomes[sample]:
            asked = {
                str(n): _grades(one) for n, one in enumerate(repeats, start=1) if one.stage in ("", "judge")
            }
            if asked:
                yield RatedVerdicts(cluster, asked)


def _samples(groups: Groups) -> Iterator[tuple[str, str]]:
    """Trajectory and id of every sample; names of trajectories can repeat in another domain."""
    for domain, refs in groups.items():
        for ref in refs:
            yield f"{domain}/{ref.cluster}", ref.id


def _first(repeats: Sequence[Outcome]) -> Outcome:
    """The first valid verdict, or else the first outcome."""
    return next((one for one in repeats if one.values is not None), repeats[0])


def _grades(outcome: Outcome) -> Grades | None:
    if outcome.values is None:
        return None
    return {name: int(outcome.values[name]) for name in DIMENSIONS if name in outcome.values}
