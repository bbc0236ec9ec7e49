"""Two finished runs, sample by sample: what the second does better or worse than the first.

In: two run directories on the same data. Out: a `Comparison`: for every judge that both have, and for the rules,
the differences by domain and overall, and the samples where the second run falls furthest behind. Nothing is
asked and nothing is written. Unlike data, protocols or judges are refused, because a difference would not be
one of the models; `force` compares all the same and says so in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from agentworldbench.errors import ConfigError
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.readings import Outcome, both_readings, epochs_of
from agentworldbench.records import Record, SampleRef
from agentworldbench.resume import reopen_samples
from agentworldbench.run import Run, load_run
from agentworldbench.run_record import JudgeRecord, RunRecord, judge_names
from agentworldbench.stats.aggregate import by_domain, mean
from agentworldbench.stats.epochs import average
from agentworldbench.stats.paired import Differences, Pair, differences
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, open_store

Policy = Literal["exclude", "floor"]
WORST = 10
"""Samples that are listed of each measure, unless told otherwise."""


class Compared(Record):
    """One of the two runs. `samples` are those it was asked about, all domains together."""

    path: str
    model: str
    protocol: str
    samples: int
    complete: bool


class Regression(Record):
    """A sample on which the second run scores less (0-100), with the class of a failure where there was one."""

    sample_id: str
    first: float
    second: float
    first_failure: str | None = None
    second_failure: str | None = None


class Measure(Record):
    """One judge (`judge` is its digest), or the rules (None). Scores are 0-100 under `policy`: under `floor` a failed
    sample counts 0, under `exclude` a sample that failed in either run is left out."""

    name: str
    judge: str | None
    policy: Policy
    differences: Differences
    regressions: tuple[Regression, ...]


class Comparison(Record):
    """Second run minus first. `unlike` says what else differs than the models (empty unless forced), `shared` counts
    the samples of both, `same_answer` those whose prediction is one answer, taken from a response cache."""

    schema_version: Literal[1] = 1
    first: Compared
    second: Compared
    unlike: tuple[str, ...]
    shared: int
    same_answer: int
    measures: tuple[Measure, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Side:
    """One run, open for reading."""

    run: Run
    results: Results
    store: Store
    groups: Mapping[str, Sequence[SampleRef]]


@dataclass(frozen=True)
class _Score:
    """A sample's score (None: failed, `failure` says how)."""

    value: float | None
    failure: str | None = None


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
    sides = (_open(first, data), _open(second, data))
    unlike = [*_unlike(*sides)]
    judges, missing = _judges(sides, judge)
    unlike += missing
    if unlike and not force:
        raise ConfigError(
            f"these runs are not alike: {'; '.join(unlike)}. Their scores do not compare; --force compares them all "
            "the same and says so"
        )
    shared, same = _shared(*sides)
    if not shared:
        raise ConfigError(f"{first} and {second} have no sample in common")
    measures = [_judged(sides, pair, shared, worst) for pair in judges]
    if judge is None:
        measures.append(_by_rules(sides, shared, worst))
    return Comparison(
        first=_compared(sides[0]),
        second=_compared(sides[1]),
        unlike=tuple(unlike),
        shared=sum(map(len, shared.values())),
        same_answer=same,
        measures=tuple(measures),
        notes=tuple(_notes(sides, shared, judges)),
    )


def _open(path: Path, data: str | None) -> _Side:
    run = load_run(path)
    if run.results is None:
        raise ConfigError(f"{path}: has no results yet; `awb score {path}` makes them")
    samples = reopen_samples(path, run.record, data)
    return _Side(run, run.results, open_store(path), by_domain(samples.refs))


def _compared(side: _Side) -> Compared:
    return Compared(
        path=str(side.run.path),
        model=side.results.model,
        protocol=side.results.protocol,
        samples=sum(map(len, side.groups.values())),
        complete=side.results.complete,
    )


def _unlike(first: _Side, second: _Side) -> Iterator[str]:
    """What differs beside the models, in words."""
    one, other = first.results, second.results
    domains = [domain for domain in first.groups if domain in second.groups]
    for what, known in (
        ("the data", [side.predict.data.files for side in (one, other)]),
        ("how predictions are asked for and read", [side.predict.tasks for side in (one, other)]),
        (
            "the task files, so the rule metrics (`awb score` computes both anew)",
            [one.task_files, other.task_files],
        ),
        ("a user's own metrics", [one.own_metrics, other.own_metrics]),
    ):
        differing = [domain for domain in domains if known[0].get(domain) != known[1].get(domain)]
        if differing:
            yield f"{what} of {', '.join(differing)}"
    for what, values in (
        ("the protocols", (one.protocol, other.protocol)),
        ("the rules of extraction", (one.predict.extraction, other.predict.extraction)),
        ("the context policies", (one.predict.context_policy, other.predict.context_policy)),
        ("the versions that computed the metrics", (one.made_by, other.made_by)),
    ):
        if values[0] != values[1]:
            yield f"{what} ({values[0]} and {values[1]})"


def _judges(
    sides: Sequence[_Side], wanted: str | None
) -> tuple[list[tuple[JudgeRecord, JudgeRecord]], list[str]]:
    """The judges to compare by, one of each run, and what keeps them from being alike."""
    first, second = (_named(side, wanted) for side in sides)
    if wanted is not None and not (first and second):
        raise ConfigError(f"--judge {wanted}: no judge of both runs")
    common = [(one, second[digest]) for digest, one in first.items() if digest in second]
    if common or not (first and second):
        return common, []
    if len(first) == len(second) == 1:
        (one,), (other,) = first.values(), second.values()
        return [(one, other)], [f"the judges ({_called(one)} and {_called(other)})"]
    return [], ["the judges: none judged both"]


def _named(side: _Side, wanted: str | None) -> dict[str, JudgeRecord]:
    judges = side.run.record.judges
    names = judge_names(judges)
    return {one.digest: one for one in judges if wanted in (None, one.model, one.digest, names[one.digest])}


def _called(judge: JudgeRecord) -> str:
    return f"{judge.model}, {judge.protocol}, {judge.digest}"


def _shared(first: _Side, second: _Side) -> tuple[dict[str, list[SampleRef]], int]:
    """The samples that both runs were asked about, by domain, and how many of their answers are one."""
    found: dict[str, list[SampleRef]] = {}
    same = 0
    for domain, refs in first.groups.items():
        hashes = {ref.id: ref.row_hash for ref in second.groups.get(domain, ())}
        for ref in refs:
            one, other = (side.store.predictions.get((ref.id, 1)) for side in (first, second))
            if one is None or other is None or hashes.get(ref.id) != ref.row_hash:
                continue
            found.setdefault(domain, []).append(ref)
            same += one.draw is not None and one.draw == other.draw
    return found, same


def _judged(
    sides: Sequence[_Side],
    judges: Sequence[JudgeRecord],
    shared: Mapping[str, Sequence[SampleRef]],
    worst: int,
) -> Measure:
    first = judges[0]
    scores = [
        dict(_verdicts(side.run.record, side.store, shared, judge))
        for side, judge in zip(sides, judges, strict=True)
    ]
    name = judge_names(sides[0].run.record.judges)[first.digest]
    return _measure(name, first.digest, PROTOCOLS[first.protocol].policy, scores, shared, worst)


def _verdicts(
    run: RunRecord, store: Store, groups: Mapping[str, Sequence[SampleRef]], judge: JudgeRecord
) -> Iterator[tuple[str, _Score]]:
    """The score of each sample that the judge was asked about, read as its protocol reads."""
    policy = PROTOCOLS[judge.protocol].policy
    every = both_readings(store, groups, judge, run.epochs, run.repeats.get(judge.digest, 1))
    for name, some in groupby(every, lambda both: both.ref.id):
        outcomes: list[list[Outcome]] = []
        for both in some:
            outcomes += [[]] if both.repeat == 1 else []
            outcomes[-1].append(both.official if judge.parse == "official" else both.strict)
        flat = [one for repeats in outcomes for one in repeats]
        found = epochs_of(outcomes).score
        if not found.counts.scored:
            failed = next((one.kind for one in flat if one.stage not in ("", "pending")), None)
            if failed is not None:
                yield name, _Score(None, failed)
            elif len(flat) == 1 and flat[0].values is not None:
                yield name, _Score(None)
        else:
            yield name, _Score(getattr(found, policy)["total"])


def _by_rules(sides: Sequence[_Side], shared: Mapping[str, Sequence[SampleRef]], worst: int) -> Measure:
    scores = [dict(_rule_scores(side.run)) for side in sides]
    return _measure("rules", None, sides[0].results.policy, scores, shared, worst)


def _rule_scores(run: Run) -> Iterator[tuple[str, _Score]]:
    """The rule score of each sample with a primary metric: those that copying was scored on."""
    floor = PROTOCOLS[run.record.protocol].policy == "floor"
    for name, some in groupby(run.metrics(), lambda record: record.sample_id):
        record = average(list(some), floor)
        values = [record.values[name] for name in record.baseline if name in record.values]
        if record.failed is not None and record.baseline:
            yield name, _Score(None, record.failed.value)
        elif values:
            yield name, _Score(100 * (mean(values) or 0.0))


def _measure(
    name: str,
    judge: str | None,
    policy: Policy,
    scores: Sequence[Mapping[str, _Score]],
    shared: Mapping[str, Sequence[SampleRef]],
    worst: int,
) -> Measure:
    first, second = scores
    pairs: dict[str, list[Pair]] = {domain: [] for domain in shared}
    for domain, refs in shared.items():
        for ref in refs:
            if ref.id not in first or ref.id not in second:
                continue
            values = first[ref.id].value, second[ref.id].value
            if policy == "floor" or None not in values:
                pairs[domain].append(Pair(ref.id, ref.cluster, values[0] or 0.0, values[1] or 0.0))
    every = [pair for some in pairs.values() for pair in some if pair.difference < 0]
    lost = sorted(every, key=lambda pair: (pair.difference, pair.sample_id))[:worst]
    return Measure(
        name=name,
        judge=judge,
        policy=policy,
        differences=differences(pairs),
        regressions=tuple(
            Regression(
                sample_id=pair.sample_id,
                first=pair.first,
                second=pair.second,
                first_failure=first[pair.sample_id].failure,
                second_failure=second[pair.sample_id].failure,
            )
            for pair in lost
        ),
    )


def _notes(
    sides: Sequence[_Side], shared: Mapping[str, Sequence[SampleRef]], judges: Sequence[object]
) -> Iterator[str]:
    for side in sides:
        alone = sum(map(len, side.groups.values())) - sum(map(len, shared.values()))
        if alone:
            yield f"{side.run.path}: {alone} of its samples are not asked in both runs and are left out"
        if side.run.record.judges and not judges:
            yield f"{side.run.path} has been judged and the other has not: compared by rules alone"
