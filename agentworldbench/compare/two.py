"""Two finished runs, sample by sample: what the second does better or worse than the first.

In: two run directories on the same data. Out: a `Comparison`: for every judge that both have, and for the rules,
the differences by domain and overall, and the samples where the second run falls furthest behind, with the places
of both replies. Unlike data, protocols or judges are refused, because a difference would not be one of the
models; `force` compares all the same and says so in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from agentworldbench.compare.alike import Measured, alike_or_forced, measures_of, panel_notes
from agentworldbench.compare.sides import (
    Compared,
    Coverage,
    Kind,
    OneAnswer,
    Scores,
    Shared,
    Side,
    as_draws,
    compared,
    coverage_of,
    one_answers,
    open_side,
    same_directory,
    same_model,
    shared_samples,
)
from agentworldbench.protocol import Policy
from agentworldbench.records import Record
from agentworldbench.render.cells import cell_html
from agentworldbench.render.names import domain_name
from agentworldbench.stats.paired import Differences, Pair, by_task, differences

WORST = 10
"""Samples that are listed of each measure, unless told otherwise."""
ONE_MODEL = "asked one model in one way, by their records: what differs are draws of its answers, not models"


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
    first: Path,
    second: Path,
    judge: str | None = None,
    data: str | None = None,
    force: bool = False,
    worst: int = WORST,
) -> Comparison:
    """Compare two runs on the samples that both were asked about.

    `judge` names one judge by model, name or digest; `data` says where the data are now, when they have moved.
    Raises ConfigError where the runs are unlike and `force` is not set, or where nothing is shared.
    """
    sides = (open_side(first, data), open_side(second, data))
    measures, missing = measures_of(sides, judge)
    unlike = alike_or_forced(sides, missing, force)
    shared = shared_samples(sides)
    same, counted = one_answers(sides[0], sides[1], shared)
    return Comparison(
        first=compared(first, sides[0].results),
        second=compared(second, sides[1].results),
        unlike=unlike,
        shared=sum(map(len, shared.values())),
        same_answer=counted.cached,
        same_record=counted.copied,
        measures=tuple(_measure(one, sides, shared, same, worst) for one in measures),
        notes=(*_notes(sides, shared, counted, measures), *panel_notes(sides, judge)),
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
    """The samples that count in both runs; none of a domain in which either run has no score."""
    first, second = scores
    pairs: dict[str, list[Pair]] = {}
    for domain, refs in shared.items():
        both = [ref for ref in refs if ref.id in first and ref.id in second]
        some = pairs[domain] = []
        if not all(any(one[ref.id].value is not None for ref in both) for one in scores):
            continue
        for ref in both:
            values = as_draws([first[ref.id], second[ref.id]], (0, 0 if ref.id in same else 1))
            if policy == "floor" or None not in values:
                some.append(Pair(ref.id, ref.cluster, values[0] or 0.0, values[1] or 0.0, ref.task_key))
    return pairs


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
        for side in sides:
            if side.run.record.judges:
                yield f"{side.run.path} has been judged and the other has not: compared by rules alone"


def one_answer_notes(first: Side, second: Side, same: OneAnswer) -> Iterator[str]:
    """Why two runs differ by nothing, in all samples or in some."""
    if same_directory(first, second):
        yield "Both are one directory: nothing can differ"
        return
    one_draw = "each is one draw and differs by 0, whatever judges said of it twice"
    if same.cached:
        yield (
            f"What was answered to {same.cached} samples is the same in both, taken from a response cache: {one_draw}"
        )
    if same.copied:
        yield (
            f"What was answered to {same.copied} samples stands in both as one record, or is replayed (a copied "
            f"directory, perhaps resumed): {one_draw}"
        )


def left_out_notes(sides: Sequence[Side], shared: Shared) -> Iterator[str]:
    """How many samples of each run are not compared, and what part of its data a run is about."""
    which = "both" if len(sides) == 2 else "all"
    for side in sides:
        alone = sum(map(len, side.groups.values())) - sum(map(len, shared.values()))
        if alone:
            yield f"{side.run.path}: {alone} of its samples are not asked in {which} runs and are left out"
        if side.results.subset:
            yield f"{side.run.path}: {side.results.subset}"
        missing = [domain_name(domain) for domain in side.groups if domain not in shared]
        if missing:
            yield f"{side.run.path}: {', '.join(missing)} not compared: no sample is asked in {which} runs"
