"""A finished run as a pilot of a larger one: what it was asked with, and its scores one by one.

In: a run directory, and the name of one of its judges (none: its only judge, or its rule metrics). Out: a `Pilot`:
by domain the `Score` of each verdict under the failure policy of its protocol, 0-100, from which `stats/variance.py`
tells where variance comes from; the macro score that the run itself reports; and the configuration of a larger run
that is otherwise the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

from agentworldbench.config import RunConfig, make_config
from agentworldbench.errors import ConfigError
from agentworldbench.prices import MILLION
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.readings import Outcome, both_readings
from agentworldbench.records import SampleRef
from agentworldbench.resume import reopen_samples
from agentworldbench.run import Run, load_run
from agentworldbench.run_record import JudgeRecord, judge_names
from agentworldbench.stats.aggregate import RULE_SCORE, by_domain, score_of, value_of
from agentworldbench.stats.costs import Spending
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import JudgeResults, Results
from agentworldbench.stats.variance import Score
from agentworldbench.store import open_store
from agentworldbench.texts import count_text

RULES: Final = "rules"
"""Who scored, where no judge did."""
_SAMPLING: Final = ("temperature", "top_p", "max_tokens", "thinking", "reasoning_effort")
_JUDGE_SAMPLING: Final = ("temperature", "max_tokens", "thinking", "reasoning_effort")


@dataclass(frozen=True)
class Measured:
    """A macro score, 0-100, with its two intervals."""

    value: float | None
    population: Interval | None
    rerun: Interval | None


@dataclass(frozen=True)
class Pilot:
    """A run, open for reading. `judge` is None where its rule scores are meant. `scores` holds the domains that have
    any; `answers` says how many answers each domain was to have."""

    run: Run
    results: Results
    judge: JudgeRecord | None
    groups: Mapping[str, Sequence[SampleRef]]
    scores: Mapping[str, Sequence[Score]]

    @property
    def called(self) -> str:
        """Who scored, as headings say it."""
        if self.judge is None:
            return RULES
        return judge_names(self.run.record.judges)[self.judge.digest]

    @property
    def protocol(self) -> str:
        """The protocol that the scores were made under."""
        return self.judge.protocol if self.judge else self.run.record.protocol

    @property
    def policy(self) -> Literal["exclude", "floor"]:
        """What a failed answer counts."""
        return PROTOCOLS[self.protocol].policy

    @property
    def repeats(self) -> int:
        """Verdicts on each answer."""
        return self.run.record.repeats.get(self.judge.digest, 1) if self.judge else 1

    def measured(self) -> Measured:
        """The macro score as the run's results have it."""
        if self.judge is None:
            rules = self.results.rules
            mean = getattr(rules.macro[RULE_SCORE], self.policy) if RULE_SCORE in rules.macro else None
            intervals = (getattr(one, self.policy) for one in (rules.macro_intervals, rules.macro_rerun))
            return Measured(None if mean is None else 100 * mean, *map(_in_points, intervals))
        reading = self._judged.headline
        mean = getattr(reading, f"macro_{self.policy}")["total"]
        return Measured(
            mean, getattr(reading.macro_intervals, self.policy), getattr(reading.macro_rerun, self.policy)
        )

    @property
    def _judged(self) -> JudgeResults:
        assert self.judge, "asked for only where there is one"
        return next(one for one in self.results.judges if one.judge.digest == self.judge.digest)

    def verdicts_spent(self) -> Spending | None:
        """Tokens of the judge's verdicts; None where there is no judge."""
        return self._judged.spent if self.judge else None


def open_pilot(path: Path, judge: str | None, rules: bool, data: str | None = None) -> Pilot:
    """Open a run as a pilot, scored by the judge of that model, name or digest, or by `rules`.

    Raises ConfigError where it has no results, several judges and none named, or no score.
    """
    run = load_run(path)
    if run.results is None:
        raise ConfigError(f"--pilot {path}: has no results yet; `awb score {path}` makes them")
    record = None if rules else _judge(run, judge)
    samples = reopen_samples(path, run.record, data)
    groups = by_domain(samples.refs)
    if record is None:
        primary = {domain: samples.tasks[domain].primary for domain in groups}
        found = _by_rules(run, groups, primary)
    else:
        found = _judged(run, groups, record)
    scores: dict[str, list[Score]] = {}
    for domain, score in found:
        scores.setdefault(domain, []).append(score)
    pilot = Pilot(run, run.results, record, groups, scores)
    if not scores:
        raise ConfigError(f"--pilot {path}: holds no score by {pilot.called}")
    return pilot


def _judge(run: Run, wanted: str | None) -> JudgeRecord | None:
    """The judge that is named, or the only one (which another one may be planned in place of)."""
    judges = run.record.judges
    names = judge_names(judges)
    named = [one for one in judges if wanted in (one.model, one.digest, names[one.digest])]
    if len(named) == 1:
        return named[0]
    if len(judges) <= 1 and not named:
        return next(iter(judges), None)
    which = "several of that name" if named else count_text(len(judges), "judge")
    raise ConfigError(
        f"--pilot {run.path}: has {which}; --judge names the one whose scores are meant: "
        + "; ".join(f"'{names[one.digest]}' ({one.digest})" for one in judges)
    )


def _judged(
    run: Run, groups: Mapping[str, Sequence[SampleRef]], judge: JudgeRecord
) -> Iterator[tuple[str, Score]]:
    record, floor = run.record, PROTOCOLS[judge.protocol].policy == "floor"
    every = both_readings(
        open_store(run.path), groups, judge, record.epochs, record.repeats.get(judge.digest, 1)
    )
    for (_, epoch), some in groupby(every, lambda both: (both.ref.id, both.epoch)):
        repeats = list(some)
        ref = repeats[0].ref
        outcomes = [both.official if judge.parse == "official" else both.strict for both in repeats]
        for value in answer_points(outcomes, floor):
            yield ref.domain, Score(ref.cluster, ref.id, epoch, judge.digest, value)


def answer_points(outcomes: Sequence[Outcome], floor: bool) -> list[float]:
    """The scores, 0-100, of one answer from its outcomes by repeat: one a valid verdict; none while one is pending; where
    failures count (`floor`), 0 for each verdict on a failed answer, or on one without any valid verdict."""
    if any(one.stage == "pending" for one in outcomes):
        return []
    totals = [one.values["total"] for one in outcomes if one.values is not None and "total" in one.values]
    if totals:
        return [score for total in totals if (score := score_of([total])) is not None]
    return [0.0] * len(outcomes) if floor else []


def _by_rules(
    run: Run, groups: Mapping[str, Sequence[SampleRef]], primary: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Score]]:
    floor = PROTOCOLS[run.record.protocol].policy == "floor"
    refs = {ref.id: ref for some in groups.values() for ref in some}
    for record in run.metrics():
        ref = refs.get(record.sample_id)
        if ref is None or not set(primary[ref.domain]) & set(record.applicable):
            continue
        value = value_of(record, primary[ref.domain])
        if value is not None or floor:
            yield ref.domain, Score(ref.cluster, ref.id, record.epoch, RULES, 100 * (value or 0.0))


def _in_points(interval: Interval | None) -> Interval | None:
    """An interval in [0, 1] as one in 0-100."""
    if interval is None:
        return None
    names = ("low", "high", "half", "se")
    return interval.model_copy(
        update={name: 100 * value for name in names if (value := getattr(interval, name)) is not None}
    )


def planned_config(pilot: Pilot, config: RunConfig) -> RunConfig:
    """A configuration in which what is not given is the pilot's: data, protocol, model and judge with their sampling,
    addresses and prices. Of another model or judge nothing is taken; nor what was put into requests by hand.

    Raises ConfigError for what makes no configuration, and for scores of another kind than the pilot's.
    """
    record = pilot.run.record
    given = config.model_dump(exclude_unset=True)
    options: dict[str, Any] = {
        "data": record.selection.data,
        "tasks": record.selection.tasks,
        "seed": record.selection.seed,
        "protocol": pilot.protocol,
        "context_policy": record.predict.context_policy,
        "min_output": record.predict.min_output,
    }
    model, prices = str(record.predict.model["model"]), []
    if config.model in (None, model):
        options |= {"model": model, "max_context": record.predict.max_context}
        options |= _flags(list(record.predict.sampling.values()), _SAMPLING, "")
        if not model.startswith(("baseline/", "replay/", "hf/", "vllm/")):
            options["base_url"] = _last(one.model_url for one in record.sessions)
        prices.append(model)
    judge = pilot.judge
    if judge is not None and not config.no_judge:
        mine = (judge.model, judge.digest, pilot.called)
        if all(name in mine for name in config.judge):
            given["judge"] = (judge.model,)
            url = _last(one.judge_urls.get(judge.digest) for one in record.sessions)
            options["judge_base_url"] = (url,) if url else ()
            options |= _flags([judge.sampling], _JUDGE_SAMPLING, "judge_")
            prices.append(judge.model)
    known = [text for name in prices if name not in config.prices and (text := _price(pilot.run, name))]
    given["price"] = (*config.price, *dict.fromkeys(known))
    made = make_config({name: value for name, value in (options | given).items() if value not in (None, ())})
    if made.protocol != pilot.protocol:
        raise ConfigError(
            f"--pilot {pilot.run.path}: scored under protocol {pilot.protocol}, this plan says {made.protocol}; their "
            "numbers do not compare"
        )
    if judge is None and made.judge and not made.no_judge:
        raise ConfigError(
            f"--pilot {pilot.run.path}: no judge has scored it, so it tells nothing of {made.judge[0]}'s scores; judge it "
            "(`awb judge`), or plan with --no-judge"
        )
    return made


def _last(urls: Iterable[str | None]) -> str | None:
    """The address of the last session that had one."""
    return next((url for url in reversed(list(urls)) if url), None)


def _flags(sampling: Sequence[Mapping[str, Any]], names: Sequence[str], prefix: str) -> dict[str, Any]:
    """Sampling parameters that all domains share."""
    return {
        prefix + name: sampling[0][name]
        for name in names
        if all(
            one.get(name, "server default") == sampling[0].get(name) != "server default" for one in sampling
        )
    }


def _price(run: Run, model: str) -> str | None:
    """A price as `--price` writes it, where it was given by that."""
    price = run.record.price(model)
    if price is None or price.source != "--price":
        return None
    rates = [one for one in (price.prompt, price.completion, price.cached) if one is not None]
    return f"{model}=" + ",".join(f"{MILLION * one:.12g}" for one in rates)
