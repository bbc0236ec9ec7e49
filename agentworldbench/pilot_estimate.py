"""From a pilot run and a plan to what each mix of samples, epochs and judge repeats would tell and cost.

In: a `Pilot`, and the `Plan` of a larger run. Out: a `PilotEstimate`: the pilot's sources of variance by domain and
together, and a `Mix` for parts of the plan's selection, 1, 2 and 4 epochs and 1, 2 and 4 judge repeats: predicted half
widths of both intervals of the macro score (`stats/mixes.py`), requests, tokens and USD (`estimate.py`, as if nothing
were stored). What is unlike the pilot is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, Literal

from agentworldbench.errors import ConfigError
from agentworldbench.pilot import Pilot
from agentworldbench.plan import Plan
from agentworldbench.plan_parts import PartCosts, design_of, part_costs, parts_of
from agentworldbench.records import Record, SampleRef
from agentworldbench.resume import differences
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.stats.costs import Spending
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.macro_variance import MacroVariance, macro_variance
from agentworldbench.stats.mixes import Half, Mix, predicted_population, predicted_precision, predicted_rerun
from agentworldbench.stats.variance import Components, Design, analysed

TIMES: Final = (1, 2, 4)
"""Epochs, and judge repeats, that the table has."""


class PilotRun(Record):
    """The pilot: what it is, its macro score as reported with both half widths (points; None: not available), and the
    same half widths as the shares of variance give them. `precision`: by what share a predicted half width may be off
    (at 95 %), because the pilot is small. `answer_tokens` and `verdict_tokens`: what one record of each took on average,
    reasoning included (None: not counted)."""

    path: str
    model: str
    scored_by: str
    judge: str | None
    protocol: str
    policy: Literal["exclude", "floor"]
    samples: int
    trajectories: int
    epochs: int
    repeats: int
    coverage: float
    value: float | None
    population: Interval | None
    rerun: Interval | None
    predicted_population: Half | None
    predicted_rerun: Half | None
    precision: float | None
    answer_tokens: int | None
    verdict_tokens: int | None


class PilotEstimate(Record):
    """All of it. `cheapest` is the place of the cheapest mix that reaches `target` (points); `unpriced` are the models
    of unknown price; `unlike` says in what else than its size the plan differs from the pilot."""

    schema_version: Literal[1] = 1
    pilot: PilotRun
    domains: dict[str, Components]
    macro: MacroVariance
    mixes: tuple[Mix, ...]
    target: float | None = None
    cheapest: int | None = None
    unpriced: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()


def pilot_estimate(pilot: Pilot, plan: Plan, target: float | None = None) -> PilotEstimate:
    """What each mix would tell and cost; `target` is a half width of the macro score's interval `population`.

    Raises ConfigError where the pilot has no score of a planned domain, or a single trajectory.
    """
    every = {domain: analysed(domain, scores) for domain, scores in pilot.scores.items()}
    components = {domain: one.components for domain, one in every.items()}
    domains = list(by_domain(plan.samples.refs))
    _check_told(pilot, components, domains)
    told = {domain: components[domain] for domain in domains}
    unpriced: set[str] = set()
    mixes: list[Mix] = []
    for selection, refs in parts_of(plan):
        costs = part_costs(plan, refs)
        unpriced.update(costs.unpriced)
        for epochs, repeats in product(_times(plan.config.epochs), _repeats(pilot, plan)):
            designs = {
                domain: design_of(some, epochs, repeats, _scored(pilot, domain))
                for domain, some in by_domain(refs).items()
            }
            mixes.append(_mix(selection, refs, epochs, repeats, told, designs, costs))
    mixes = [_marked(mix, mixes, target) for mix in mixes]
    reached = [place for place, mix in enumerate(mixes) if mix.reaches]
    return PilotEstimate(
        pilot=_pilot_run(pilot, components),
        domains=told,
        macro=macro_variance({domain: every[domain] for domain in domains}),
        mixes=tuple(mixes),
        target=target,
        cheapest=min(reached, key=lambda place: mixes[place].cost, default=None),
        unpriced=tuple(sorted(unpriced)),
        unlike=tuple(_unlike(pilot, plan)),
    )


def _check_told(pilot: Pilot, components: Mapping[str, Components], domains: Sequence[str]) -> None:
    """Refuse where a planned domain has too little in the pilot. Raises ConfigError."""
    for domain in domains:
        one = components.get(domain)
        if one is None:
            why = "no score"
        elif one.trajectories < 2:
            why = "one trajectory, so nothing tells how trajectories differ"
        elif one.reason == "not_separable":
            why = "scores too lopsided to tell sources of variance apart"
        else:
            continue
        raise ConfigError(
            f"--pilot {pilot.run.path}: of domain '{domain}' it has {why}; give it more (--limit-trajectories 10), or "
            "plan other --tasks"
        )


def _times(asked: int | None) -> list[int]:
    return sorted({*TIMES, asked or 1})


def _repeats(pilot: Pilot, plan: Plan) -> list[int]:
    return _times(plan.config.judge_repeats) if pilot.judge else [1]


def _scored(pilot: Pilot, domain: str) -> float:
    """The share of a domain's samples that have a score in the pilot."""
    return len({score.turn for score in pilot.scores[domain]}) / len(pilot.groups[domain])


def _mix(
    selection: str,
    refs: Sequence[SampleRef],
    epochs: int,
    repeats: int,
    components: Mapping[str, Components],
    designs: Mapping[str, Design],
    costs: PartCosts,
) -> Mix:
    requests, low, high, usd_low, usd_high = costs.numbers(epochs, repeats)
    priced = not costs.unpriced
    return Mix(
        selection=selection,
        samples=len(refs),
        trajectories=sum(design.trajectories for design in designs.values()),
        epochs=epochs,
        repeats=repeats,
        population=predicted_population(components, designs),
        rerun=predicted_rerun(components, designs),
        requests=round(requests),
        tokens_low=round(low),
        tokens_high=round(high),
        usd_low=usd_low if priced else None,
        usd_high=usd_high if priced else None,
    )


def _marked(mix: Mix, mixes: Sequence[Mix], target: float | None) -> Mix:
    if mix.population is None:
        return mix.model_copy(update={"reaches": None if target is None else False})
    width = mix.population.high
    better = [
        other
        for other in mixes
        if other.population is not None
        and (other.cost, other.population.high) != (mix.cost, width)
        and other.cost <= mix.cost
        and other.population.high <= width
    ]
    reaches = None if target is None else width <= target
    return mix.model_copy(update={"efficient": not better, "reaches": reaches})


def _pilot_run(pilot: Pilot, components: Mapping[str, Components]) -> PilotRun:
    record = pilot.run.record
    designs = {
        domain: design_of(
            [ref for ref in pilot.groups[domain] if ref.id in {score.turn for score in scores}],
            record.epochs,
            pilot.repeats,
        )
        for domain, scores in pilot.scores.items()
    }
    measured = pilot.measured()
    samples = sum(map(len, pilot.groups.values()))
    scored = {(score.turn, score.generation) for some in pilot.scores.values() for score in some}
    return PilotRun(
        path=str(pilot.run.path),
        model=pilot.results.model,
        scored_by=pilot.called,
        judge=pilot.judge.digest if pilot.judge else None,
        protocol=pilot.protocol,
        policy=pilot.policy,
        samples=samples,
        trajectories=sum(one.trajectories for one in components.values()),
        epochs=record.epochs,
        repeats=pilot.repeats,
        coverage=len(scored) / (samples * record.epochs),
        value=measured.value,
        population=measured.population,
        rerun=measured.rerun,
        predicted_population=predicted_population(components, designs),
        predicted_rerun=predicted_rerun(components, designs) if record.epochs > 1 else None,
        precision=predicted_precision(components, designs),
        answer_tokens=_mean_tokens(pilot.results.predictions.spent),
        verdict_tokens=_mean_tokens(pilot.verdicts_spent()),
    )


def _mean_tokens(spent: Spending | None) -> int | None:
    """Completion tokens of one record, reasoning included."""
    tokens = None if spent is None else spent.usage.completion_tokens
    return round(tokens / spent.records) if spent and spent.records and tokens else None


def _unlike(pilot: Pilot, plan: Plan) -> Iterator[str]:
    """What differs beside the size, in words."""
    stored, predict = pilot.run.record.predict, plan.predict
    if stored.model["model"] != predict.model["model"]:
        yield f"the model ({predict.model['model']}, the pilot's was {stored.model['model']})"
        predict = predict.model_copy(update={"model": stored.model})
    other = [name for name, sha in predict.data.files.items() if stored.data.files.get(name, sha) != sha]
    if other:
        yield f"the data of {', '.join(other)} ({predict.data.name}, the pilot's were {stored.data.name})"
        predict = predict.model_copy(update={"data": stored.data})
    for judge in plan.judges:
        if pilot.judge and judge.digest() != pilot.judge.digest:
            yield f"the judge ({judge.model.name}, {judge.digest()}; the pilot's was {pilot.called}, {pilot.judge.digest})"
    yield from differences(stored, predict)[:6]
