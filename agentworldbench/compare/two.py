"""Two finished runs, sample by sample: what the second does better or worse than the first.

In: two run directories on the same data. Out: a `Comparison`: for every judge that both have, and for the rules,
the differences by domain and overall, and the samples where the second run falls furthest behind, with the places
of both replies. Unlike data, protocols or judges are refused, because a difference would not be one of the
models; `force` compares all the same and says so in the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from agentworldbench.compare.alike import Measured, alike_or_forced, measures_of, panel_notes
from agentworldbench.compare.notes import ONE_MODEL, left_out_notes, one_answer_notes
from agentworldbench.compare.sides import (
    Compared,
    Coverage,
    Kind,
    OneAnswer,
    Scores,
    Shared,
    Side,
    compared,
    counted,
    coverage_of,
    one_answers,
    open_side,
    same_model,
    shared_samples,
)
from agentworldbench.protocol import Policy
from agentworldbench.records import Record
from agentworldbench.render.cells import cell_html
from agentworldbench.render.ranking import letter
from agentworldbench.stats.paired import Differences, Pair, by_task, differences

WORST = 10
"""Samples that are listed of each measure, unless told otherwise."""


class Reply(Record):
    """Where a stored prediction stands: file, line (from 1) and epoch."""

    file: str
    line: int
    epoch: int = 1


class Regression(Record):
    """A sample on which the second run scores less (0-100), with the class of a failure where there was one, and
    the places of what each run answered."""

    sample_id: str
    first: float
    second: float
    first_failure: str | None = None
    second_failure: str | None = None
    first_replies: tuple[Reply, ...] = ()
    second_replies: tuple[Reply, ...] = ()


class Measure(Record):
    """One judge or the panel of all (`judge` is its digest), or the rules (None).

    Scores are 0-100 under `policy`: under `floor` a failed sample counts 0, under `exclude` a sample that failed in
    either run is left out. A domain in which one run has no score at all has no difference. `by_task` are the same
    differences with all episodes of one task as one cluster."""

    name: str
    kind: Kind
    judge: str | None
    policy: Policy
    coverage: dict[str, Coverage]
    differences: Differences
    by_task: Differences
    regressions: tuple[Regression, ...]


class Comparison(Record):
    """Second run minus first. `unlike` says what else differs than the models (empty unless forced), `shared` counts
    the samples of both, `same_answer` those whose prediction is one answer, taken from a response cache, and
    `same_record` those whose answer stands in both directories, or was replayed from one of them."""

    schema_version: Literal[1] = 1
    kind: Literal["two"] = "two"
    first: Compared
    second: Compared
    unlike: tuple[str, ...]
    shared: int
    same_answer: int
    same_record: int
    measures: tuple[Measure, ...]
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """Below a notebook's cell: the tables of `awb compare`."""
        from agentworldbench.compare.tables import two_tables

        return cell_html(two_tables(self))


def compare_runs(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    judge: str | None = None,
    data: str | None = None,
    force: bool = False,
    worst: int = WORST,
) -> Comparison:
    """Compare two runs on the samples that both were asked about.

    `judge` names one judge by model, name or digest; `data` says where the data are now, when they have moved.
    Raises ConfigError where the runs are unlike and `force` is not set, or where nothing is shared.
    """
    sides = (open_side(Path(first), data), open_side(Path(second), data))
    measures, missing = measures_of(sides, judge)
    unlike = alike_or_forced(sides, missing, force)
    shared = shared_samples(sides)
    same, how = one_answers(sides[0], sides[1], shared)
    return Comparison(
        first=compared(sides[0].run.path, sides[0].results),
        second=compared(sides[1].run.path, sides[1].results),
        unlike=unlike,
        shared=sum(map(len, shared.values())),
        same_answer=how.cached,
        same_record=how.copied,
        measures=tuple(_measure(one, sides, shared, same, worst) for one in measures),
        notes=(*_notes(sides, shared, how, measures), *panel_notes(sides, judge)),
    )


def _measure(
    measured: Measured, sides: Sequence[Side], shared: Shared, same: frozenset[str], worst: int
) -> Measure:
    scores = measured.scores(sides, shared)
    coverage = coverage_of(sides, scores)
    pairs = _pairs(measured.policy, scores, shared, same)
    every = [pair for some in pairs.values() for pair in some if pair.difference < 0]
    lost = sorted(every, key=lambda pair: (pair.difference, pair.sample_id))[:worst]
    return Measure(
        name=measured.name,
        kind=measured.kind,
        judge=measured.digest,
        policy=measured.policy,
        coverage={domain: coverage[domain] for domain in shared},
        differences=differences(pairs),
        by_task=differences(by_task(pairs)),
        regressions=tuple(_regressions(lost, sides, scores)),
    )


def _pairs(
    policy: Policy, scores: Sequence[Scores], shared: Shared, same: frozenset[str]
) -> dict[str, list[Pair]]:
    both = counted(policy, scores, shared, lambda name: (0, 0 if name in same else 1))
    return {
        domain: [Pair(ref.id, ref.cluster, first, second, ref.task_key) for ref, (first, second) in some]
        for domain, some in both.items()
    }


def _regressions(
    lost: Sequence[Pair], sides: Sequence[Side], scores: Sequence[Scores]
) -> Iterator[Regression]:
    names = [pair.sample_id for pair in lost]
    first, second = (_replies(side, names) for side in sides)
    for pair in lost:
        name = pair.sample_id
        yield Regression(
            sample_id=name,
            first=pair.first,
            second=pair.second,
            first_failure=scores[0][name].failure,
            second_failure=scores[1][name].failure,
            first_replies=first[name],
            second_replies=second[name],
        )


def _replies(side: Side, names: Sequence[str]) -> dict[str, tuple[Reply, ...]]:
    """Where a run's predictions of some samples stand, epoch after epoch."""
    journal = side.store.predictions
    keys = [(name, epoch) for name in names for epoch in range(1, side.run.record.epochs + 1)]
    lines = journal.lines(keys)
    return {
        name: tuple(
            Reply(file=str(journal.path), line=lines[key], epoch=key[1])
            for key in keys
            if key[0] == name and key in lines
        )
        for name in names
    }


def _notes(
    sides: tuple[Side, Side], shared: Shared, same: OneAnswer, measures: Sequence[Measured]
) -> Iterator[str]:
    yield from one_answer_notes(sides[0], sides[1], same)
    if same.cached + same.copied < sum(map(len, shared.values())) and same_model(*sides):
        yield f"Both {ONE_MODEL}"
    yield from left_out_notes(sides, shared)
    if all(measured.kind == "rules" for measured in measures):
        for run, side in enumerate(sides):
            if side.run.record.judges:
                yield f"{letter(run)} has been judged and {letter(1 - run)} has not: compared by rules alone"
