"""Three runs or more on the samples that all of them share: every pair, and a rank that luck does not make.

In: run directories on the same data. Out: a `Ranking`: for every judge that all have, and for the rules, each
run's score with interval and coverage on the shared samples, the difference of every two, and a rank: 1 + the
number of models that are better after Holm's correction over all pairs. A directory that is listed twice, and a
copy whose answers are all those of another run, stand once. A rank needs 99 % coverage in every domain, and runs
that are alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

from agentworldbench.compare.alike import Measured, alike_or_forced, measures_of, panel_notes
from agentworldbench.compare.notes import ONE_MODEL, called, left_out_notes, named_once, one_answer_notes
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
    same_directory,
    same_model,
    shared_samples,
)
from agentworldbench.errors import ConfigError
from agentworldbench.leaderboard.entries import RANK_COVERAGE
from agentworldbench.protocol import Policy
from agentworldbench.records import Record
from agentworldbench.render.cells import cell_html
from agentworldbench.render.names import domain_name
from agentworldbench.stats.intervals import Interval, clustered, mean, stratified
from agentworldbench.stats.ranking import PairDifference, SharedSample, all_pairs, ranks_of
from agentworldbench.texts import count_text

Answers = Mapping[tuple[int, int], tuple[frozenset[str], OneAnswer]]
"""By two runs: the samples whose answers are one in both, and how that came."""


class Score(Record):
    """A mean over shared samples, 0-100, with its `population` interval; None where it is not available."""

    value: float | None
    interval: Interval | None


class Standing(Record):
    """One run among the others; `run` is its place in the list of runs. `coverage` holds the scored share of each
    domain; `unranked` says why there is no rank."""

    run: int
    domains: dict[str, Score]
    overall: Score
    coverage: dict[str, float]
    rank: int | None
    unranked: str | None = None


class Standings(Record):
    """All runs by one judge or the panel of all (`judge` is its digest), or by the rules (None).

    Under `floor` a failed sample counts 0, under `exclude` a sample that failed in any run is left out of all. `samples`
    counts what is compared, by domain; `standings` are best first, equal scores by name."""

    name: str
    kind: Kind
    judge: str | None
    policy: Policy
    samples: dict[str, int]
    standings: tuple[Standing, ...]
    pairs: tuple[PairDifference, ...]


class Ranking(Record):
    """Several runs. `unlike` says what else differs than the models (empty unless forced; then nothing has a rank),
    `shared` counts the samples of all, `notes` call the runs A, B, C … in their order, `left_out` names the runs that stand for another one of the list."""

    schema_version: Literal[1] = 1
    kind: Literal["several"] = "several"
    runs: tuple[Compared, ...]
    left_out: tuple[str, ...]
    unlike: tuple[str, ...]
    shared: int
    measures: tuple[Standings, ...]
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """Below a notebook's cell: the tables of `awb compare`."""
        from agentworldbench.compare.tables import several_tables

        return cell_html(several_tables(self))


def rank_runs(
    paths: Sequence[str | os.PathLike[str]],
    judge: str | None = None,
    data: str | None = None,
    force: bool = False,
) -> Ranking:
    """Compare all runs on the samples that every one of them was asked about.

    `judge` and `data` as in `compare_runs`. Raises ConfigError where runs are unlike and `force` is not set, where
    nothing is shared, or where fewer than two runs are left.
    """
    sides, left_out = _without_directories_twice([open_side(Path(path), data) for path in paths])
    if len(sides) > 1:
        sides, copies = _without_copies(sides)
        left_out += copies
    if len(sides) == 1:
        raise ConfigError(
            f"{sides[0].run.path} is left alone, there is nothing to compare: {'; '.join(left_out)}"
        )
    measures, missing = measures_of(sides, judge)
    unlike = alike_or_forced(sides, missing, force)
    shared = shared_samples(sides)
    answers = _answers(sides, shared)
    return Ranking(
        runs=tuple(compared(side.run.path, side.results) for side in sides),
        left_out=tuple(left_out),
        unlike=unlike,
        shared=sum(map(len, shared.values())),
        measures=tuple(_standings(one, sides, shared, answers, bool(unlike)) for one in measures),
        notes=(*_notes(sides, shared, answers, measures), *panel_notes(sides, judge)),
    )


def _without_directories_twice(sides: Sequence[Side]) -> tuple[list[Side], list[str]]:
    kept: list[Side] = []
    twice: list[str] = []
    for side in sides:
        same = next((one for one in kept if same_directory(one, side)), None)
        if same is None:
            kept.append(side)
        else:
            twice.append(f"{side.run.path} is the directory of {same.run.path} and stands once")
    return kept, twice


def _without_copies(sides: Sequence[Side]) -> tuple[list[Side], list[str]]:
    """The runs that are no copies of an earlier one; a model must not count twice."""
    shared = shared_samples(sides)
    total = sum(map(len, shared.values()))
    answers = _answers(sides, shared)
    kept: list[int] = []
    copies: list[str] = []
    for number, side in enumerate(sides):
        original = next((one for one in kept if len(answers[one, number][0]) == total), None)
        if original is None:
            kept.append(number)
        else:
            copies.append(
                f"{side.run.path} has the same answers as {sides[original].run.path} to all {count_text(total, 'shared sample')} and "
                "is left out"
            )
    return [sides[number] for number in kept], copies


def _answers(sides: Sequence[Side], shared: Shared) -> Answers:
    return {
        (first, second): one_answers(sides[first], sides[second], shared)
        for first, second in combinations(range(len(sides)), 2)
    }


def _standings(
    measured: Measured, sides: Sequence[Side], shared: Shared, answers: Answers, unlike: bool
) -> Standings:
    scores = measured.scores(sides, shared)
    coverage = coverage_of(sides, scores)
    samples = _samples(measured.policy, scores, shared, answers)
    pairs = all_pairs(samples, len(sides))
    reasons = [
        _unranked(number, side, {domain: coverage[domain] for domain in shared}, unlike)
        for number, side in enumerate(sides)
    ]
    ranks = ranks_of(pairs, _models(sides), [reason is None for reason in reasons])
    standings = []
    for number in range(len(sides)):
        domains, overall = _means(samples, number)
        known = overall.value is not None
        standings.append(
            Standing(
                run=number,
                domains=domains,
                overall=overall,
                coverage={domain: coverage[domain].share(number) for domain in shared},
                rank=ranks[number] if known else None,
                unranked=reasons[number]
                or (None if known else "a domain has no sample that all runs were scored on"),
            )
        )
    return Standings(
        name=measured.name,
        kind=measured.kind,
        judge=measured.digest,
        policy=measured.policy,
        samples={domain: len(some) for domain, some in samples.items()},
        standings=tuple(sorted(standings, key=lambda one: _order(one, sides[one.run]))),
        pairs=pairs,
    )


def _models(sides: Sequence[Side]) -> list[int]:
    """The number of each run's model: the first run that asks it in the same way."""
    return [next(one for one in range(len(sides)) if same_model(sides[one], side)) for side in sides]


def _order(one: Standing, side: Side) -> tuple[bool, float, str, str]:
    """Best first, without a score last; equal scores by the model's name, whatever order runs are listed in."""
    value = one.overall.value
    return (value is None, -(value or 0.0), side.results.model, str(side.run.path))


def _samples(
    policy: Policy, scores: Sequence[Scores], shared: Shared, answers: Answers
) -> dict[str, list[SharedSample]]:
    every = counted(policy, scores, shared, lambda name: _draws(name, len(scores), answers))
    return {
        domain: [SharedSample(ref.id, ref.cluster, ref.task_key, row) for ref, row in some]
        for domain, some in every.items()
    }


def _draws(sample_id: str, runs: int, answers: Answers) -> list[int]:
    """Which draw each run's answer to a sample is: the first run that has it."""
    draws = list(range(runs))
    for first, second in combinations(range(runs), 2):
        if sample_id in answers[first, second][0]:
            draws[second] = min(draws[first], draws[second])
    return draws


def _means(samples: Mapping[str, Sequence[SharedSample]], run: int) -> tuple[dict[str, Score], Score]:
    """One run's scores of the shared samples, by domain and overall."""
    domains = {}
    for domain, some in samples.items():
        value = mean([one.scores[run] for one in some])
        interval = clustered(value, [(one.cluster, one.scores[run]) for one in some])
        domains[domain] = Score(value=value, interval=interval)
    known = [one.value for one in domains.values() if one.value is not None]
    overall = mean(known) if len(known) == len(domains) else None
    return domains, Score(
        value=overall, interval=stratified(overall, [one.interval for one in domains.values()])
    )


def _unranked(run: int, side: Side, coverage: Mapping[str, Coverage], unlike: bool) -> str | None:
    """Why a run has no rank here; None where it may have one."""
    if unlike:
        return "the runs are not alike"
    if side.results.predictions.shortened:
        return "some histories were shortened (--context-policy drop-oldest)"
    low = [domain_name(domain) for domain, one in coverage.items() if one.share(run) < RANK_COVERAGE]
    return f"coverage below {100 * RANK_COVERAGE:.0f} % ({', '.join(low)})" if low else None


def _notes(
    sides: Sequence[Side], shared: Shared, answers: Answers, measures: Sequence[Measured]
) -> Iterator[str]:
    yield from named_once(
        (called(pair), note)
        for pair, (_, same) in answers.items()
        for note in one_answer_notes(sides[pair[0]], sides[pair[1]], same)
    )
    models = _models(sides)
    for model in dict.fromkeys(models):
        runs = [run for run, other in enumerate(models) if other == model]
        if len(runs) > 1:
            yield f"{called(runs)} {ONE_MODEL}"
    yield from left_out_notes(sides, shared)
    if all(measured.kind == "rules" for measured in measures) and any(
        side.run.record.judges for side in sides
    ):
        yield "No judge has judged all runs: compared by rules alone"
