"""What comparisons of runs share: runs open for reading, which samples they share, and which answers are one.

In: run directories. Out: `Side`s; the samples that all were asked about, and how many of them each has a score of;
which answers of two runs are one answer, and whether both asked one model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Literal

from agentworldbench.errors import ConfigError
from agentworldbench.protocol import Policy
from agentworldbench.records import Prediction, Record, SampleRef
from agentworldbench.resume import differences as predict_differences
from agentworldbench.resume import reopen_samples
from agentworldbench.run import Run, load_run
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.stats.epochs import SampleScore
from agentworldbench.stats.intervals import mean
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, open_store
from agentworldbench.texts import digest

Kind = Literal["judge", "panel", "rules"]
Scores = Mapping[str, SampleScore]
"""By sample id; a sample that counts nowhere is missing."""
Shared = Mapping[str, Sequence[SampleRef]]
"""Samples by domain."""


class Compared(Record):
    """One of the runs. `samples` are those it is about, all domains together; `subset` says which part of its data
    that is, where it is not all. `data_argument` is what --data was given, `data` what results call it."""

    path: str
    model: str
    data: str
    data_argument: str
    protocol: str
    samples: int
    complete: bool
    subset: str | None = None


class Coverage(Record):
    """How many of a domain's samples that all runs are about have a score in each, in the order of the runs. A sample
    of several answers counts by the share of them that have one."""

    samples: int
    scored: tuple[float, ...]

    def share(self, run: int) -> float:
        """Scored / all of one run, by its place."""
        return self.scored[run] / self.samples if self.samples else 0.0


class OneAnswer(Record):
    """Samples whose answers in two runs are one: `cached` taken from a response cache, `copied` the same record
    in both directories, or one replayed from the other."""

    cached: int = 0
    copied: int = 0


@dataclass(frozen=True)
class Answer:
    """What tells whether two predictions are one: the `draw` of a response cache, when and how long it was `asked`
    for (None: another program asked and did not say), and a hash of what it `said`."""

    draw: str | None
    asked: tuple[object, ...] | None
    said: str


@dataclass(frozen=True)
class Side:
    """One run, open for reading."""

    run: Run
    results: Results
    store: Store
    groups: Shared

    @cached_property
    def answers(self) -> Mapping[tuple[str, int], Answer]:
        """Every stored prediction by sample and epoch, without its texts."""
        return {one.key: _answer(one) for one in self.store.predictions}


def open_results(path: Path) -> tuple[Run, Results]:
    """A run and its results. Raises ConfigError where there are none."""
    run = load_run(path)
    if run.results is None:
        raise ConfigError(f"{path}: has no results yet; `awb score {path}` makes them")
    return run, run.results


def compared(path: Path, results: Results) -> Compared:
    """How a comparison calls a run."""
    return Compared(
        path=str(path),
        model=results.model,
        data=results.predict.data.name,
        data_argument=results.selection.data,
        protocol=results.protocol,
        samples=sum(results.selection.samples.values()),
        complete=results.complete,
        subset=results.subset,
    )


def open_side(path: Path, data: str | None) -> Side:
    """A run with results, and its samples. Raises ConfigError where there are none."""
    run, results = open_results(path)
    samples = reopen_samples(path, run.record, data)
    return Side(run, results, open_store(path), by_domain(samples.refs))


def shared_samples(sides: Sequence[Side]) -> dict[str, list[SampleRef]]:
    """The samples that all runs were asked about, by domain. Raises ConfigError where there are none."""
    found = _common(sides, lambda side, ref: (ref.id, 1) in side.store.predictions)
    if not found:
        names = [str(side.run.path) for side in sides]
        raise ConfigError(f"{', '.join(names[:-1])} and {names[-1]} have no sample in common")
    return found


def _common(sides: Sequence[Side], has: Callable[[Side, SampleRef], bool]) -> dict[str, list[SampleRef]]:
    """The samples that every run is about and `has`, with their text unchanged."""
    hashes = [{ref.id: ref.row_hash for refs in side.groups.values() for ref in refs} for side in sides]
    found: dict[str, list[SampleRef]] = {}
    for domain, refs in sides[0].groups.items():
        for ref in refs:
            if all(one.get(ref.id) == ref.row_hash for one in hashes) and all(
                has(side, ref) for side in sides
            ):
                found.setdefault(domain, []).append(ref)
    return found


def coverage_of(sides: Sequence[Side], scores: Sequence[Scores]) -> dict[str, Coverage]:
    """By domain, of the samples that all runs are about (asked already or not) those that have a score. Samples
    that no run has a score or a failure of (a metric that does not apply) are none of them."""
    every = _common(sides, lambda side, ref: True)
    found = {}
    for domain, refs in every.items():
        counted = [
            ref.id
            for ref in refs
            if any(ref.id in one for one in scores)
            or any((ref.id, 1) not in side.store.predictions for side in sides)
        ]
        scored = tuple(fsum(one[name].scored for name in counted if name in one) for one in scores)
        found[domain] = Coverage(samples=len(counted), scored=scored)
    return found


def _answer(prediction: Prediction) -> Answer:
    told = (prediction.started_at, prediction.response_id)
    failure = prediction.failure and prediction.failure.kind.value
    return Answer(
        prediction.draw,
        None if told == (None, None) else (*told, prediction.seconds),
        digest([prediction.text, prediction.observation, failure]),
    )


def one_answers(first: Side, second: Side, shared: Shared) -> tuple[frozenset[str], OneAnswer]:
    """The shared samples whose answers (of every epoch) are one in both runs, and how that came."""
    found: list[str] = []
    cached = copied = 0
    epochs = range(1, max(first.run.record.epochs, second.run.record.epochs) + 1)
    alike = _answer_alike(first, second)
    for refs in shared.values():
        for ref in refs:
            pairs = [
                (first.answers.get((ref.id, epoch)), second.answers.get((ref.id, epoch))) for epoch in epochs
            ]
            draws = [_one_draw(one, other, alike) for one, other in pairs]
            if None not in draws:
                found.append(ref.id)
                cached += "cached" in draws
                copied += "cached" not in draws
    return frozenset(found), OneAnswer(cached=cached, copied=copied)


def _answer_alike(first: Side, second: Side) -> bool:
    """Whether equal texts of two runs are one answer: where one replays stored answers, or both ask a baseline."""
    backends = [side.run.record.predict.model.get("backend") for side in (first, second)]
    return "replay" in backends or ("baseline" in backends and same_model(first, second))


def _one_draw(one: Answer | None, other: Answer | None, alike: bool) -> Literal["cached", "copied"] | None:
    """How two predictions are one answer; None: they are two, or nothing tells."""
    if one is None or other is None:
        return None
    if one.draw is not None and one.draw == other.draw:
        return "cached"
    copied = one.asked is not None and one.asked == other.asked
    return "copied" if one.said == other.said and (copied or alike) else None


def same_directory(first: Side, second: Side) -> bool:
    """Whether two paths lead to one directory."""
    return first.run.path.resolve() == second.run.path.resolve()


def same_model(first: Side, second: Side) -> bool:
    """Whether both runs asked one model in one way, by their records, so that they differ by their draws alone.

    Two servers may serve two models under one name, so addresses count too.
    """
    records = [side.run.record for side in (first, second)]
    urls = [record.sessions[-1].model_url if record.sessions else None for record in records]
    return urls[0] == urls[1] and not predict_differences(records[0].predict, records[1].predict)


def as_draws(scores: Sequence[SampleScore], draws: Sequence[int]) -> list[float | None]:
    """What a sample counts in each run. One answer is one draw: runs with one number in `draws` get the mean of
    what the verdicts on it said."""
    if len(set(draws)) == len(draws):
        return [one.value for one in scores]
    found = []
    for draw in draws:
        mine = [one.value for one, other in zip(scores, draws, strict=True) if other == draw]
        found.append(mean([value for value in mine if value is not None]))
    return found


def counted(
    policy: Policy, scores: Sequence[Scores], shared: Shared, draws: Callable[[str], Sequence[int]]
) -> dict[str, list[tuple[SampleRef, tuple[float, ...]]]]:
    """The samples that count in every run, with the score of each run; none of a domain in which one of them has none.

    `draws` says of a sample which draw each run's answer is.
    """
    found: dict[str, list[tuple[SampleRef, tuple[float, ...]]]] = {}
    for domain, refs in shared.items():
        known = [ref for ref in refs if all(ref.id in one for one in scores)]
        some = found[domain] = []
        if not all(any(one[ref.id].value is not None for ref in known) for one in scores):
            continue
        for ref in known:
            values = as_draws([one[ref.id] for one in scores], draws(ref.id))
            if policy == "floor" or None not in values:
                some.append((ref, tuple(value or 0.0 for value in values)))
    return found
