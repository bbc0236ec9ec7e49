"""Half widths of planned runs, and shares of variance over all domains.

The half widths must be those that the real intervals have: the same scores are averaged, and given to the functions
that make `results.json`. How good predictions are in repeated draws is in `test_pilot_simulations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from agentworldbench.stats.epochs import macro_rerun, rerun
from agentworldbench.stats.intervals import clustered, stratified
from agentworldbench.stats.macro_variance import macro_variance
from agentworldbench.stats.mixes import Half, Mix, predicted_population, predicted_precision, predicted_rerun
from agentworldbench.stats.variance import (
    Analysis,
    Component,
    Components,
    Design,
    Name,
    Score,
    analysed,
    predicted_se,
)
from tests.test_variance import design, drawn

EFFECTS = {"trajectory": 100.0, "turn": 60.0, "generation": 50.0, "rest": 30.0}


def domains_of(places: Mapping[str, tuple[int, int, int, int]]) -> dict[str, list[Score]]:
    """Scores of each domain's trajectories, turns, epochs and repeats of one judge."""
    return {name: drawn(design(n, t, e, 1, r), seed=7, **EFFECTS) for name, (n, t, e, r) in places.items()}


def by_sample(scores: Sequence[Score]) -> dict[tuple[str, str], list[float]]:
    """Each sample's means by epoch."""
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for one in scores:
        found.setdefault((one.trajectory, one.turn), {}).setdefault(one.generation, []).append(one.value)
    return {key: [fmean(some) for some in epochs.values()] for key, epochs in found.items()}


PLACES = {"swe": (8, 5, 2, 2), "web": (12, 3, 2, 2), "os": (6, 4, 2, 2)}


def test_a_pilot_of_full_designs_has_the_widths_that_were_reported() -> None:
    domains = domains_of(PLACES)
    components = {name: analysed(name, scores).components for name, scores in domains.items()}
    assert not any(part.negative for one in components.values() for part in one.parts)
    designs = {name: Design(n, t, e, 1, r) for name, (n, t, e, r) in PLACES.items()}
    population, again = [], []
    for scores in domains.values():
        samples = by_sample(scores)
        mean = fmean(value for some in samples.values() for value in some)
        population.append(clustered(mean, [(key[0], fmean(some)) for key, some in samples.items()]))
        again.append(rerun(mean, samples.values()))
    measured, measured_again = stratified(50.0, population), macro_rerun(50.0, again)
    assert measured is not None and measured_again is not None
    predicted = predicted_population(components, designs)
    assert predicted is not None and predicted.low == predicted.high
    assert predicted.high == pytest.approx(measured.half, rel=1e-9)
    once_more = predicted_rerun(components, designs)
    assert once_more is not None
    assert once_more.high == pytest.approx(measured_again.half, rel=0.02), (
        "degrees of freedom are estimated there"
    )
    precision = predicted_precision(components, designs)
    assert measured.df is not None
    assert precision == pytest.approx(1.96 / sqrt(2 * measured.df))


def one_part(estimates: Mapping[Name, float], **more: Any) -> Components:
    """Components that are known exactly."""
    interval = analysed("none", drawn(design(2, 2), rest=1.0)).components.parts[0].interval
    parts = tuple(
        Component(names=(name,), levels=9, estimate=v, variance=max(v, 0.0), negative=v < 0, share=0.0, interval=interval)
        for name, v in estimates.items()
    )  # fmt: skip
    return Components(scores=100, trajectories=10, parts=parts, unknown=("judge",), **more)


KNOWN = one_part({"trajectory": 100.0, "turn": 60.0, "generation": 40.0, "rest": 20.0})


def test_one_epoch_has_a_rerun_width_at_the_normal_quantile() -> None:
    half = predicted_rerun({"swe": KNOWN}, {"swe": Design(10, 5)})
    assert half is not None
    assert half.high == pytest.approx(1.959964 * sqrt(60 / 50), rel=1e-6)


@pytest.mark.parametrize("more", [{"epochs": 4}, {"repeats": 4}, {"trajectories": 20}, {"turns": 9}])
def test_more_of_anything_narrows_both_widths(more: dict[str, int]) -> None:
    few = {"trajectories": 10, "turns": 3, "epochs": 2, "repeats": 2}
    for predicted in (predicted_population, predicted_rerun):
        wide, narrow = (predicted({"swe": KNOWN}, {"swe": Design(**some)}) for some in (few, few | more))
        assert wide is not None and narrow is not None and narrow.high < wide.high


def test_where_there_is_no_width() -> None:
    both = {"swe": KNOWN, "web": KNOWN}
    assert predicted_population(both, {"swe": Design(10, 2), "web": Design(1, 2)}) is None
    lone = analysed("lone", drawn(design(1, 4, 2), turn=1.0, generation=1.0)).components
    assert predicted_population({"swe": lone}, {"swe": Design(10, 2)}) is None
    assert predicted_rerun({"swe": lone}, {"swe": Design(10, 2)}) is not None


def test_a_domain_without_spread_adds_nothing() -> None:
    flat = analysed("flat", [Score(*place, 50.0) for place in design(5, 3, 2)]).components
    designs = {"swe": Design(10, 2), "web": Design(10, 2)}
    alone = predicted_population({"swe": KNOWN}, designs)
    both = predicted_population({"swe": KNOWN, "web": flat}, designs)
    assert alone is not None and both is not None
    assert both.high == pytest.approx(alone.high / 2), "the mean of two, of which one is certain"
    assert predicted_population({"web": flat}, designs) is None, "a width of 0 is never said"


def test_what_a_pilot_of_one_epoch_leaves_open_has_two_bounds() -> None:
    components = analysed("open", drawn(design(20, 3), trajectory=80.0, turn=80.0)).components
    half = predicted_population({"swe": components}, {"swe": Design(20, 3, epochs=4, repeats=2)})
    assert half is not None and half.low < half.high
    again = predicted_rerun({"swe": components}, {"swe": Design(20, 3, epochs=2)})
    assert again is not None and again.low == 0.0 < again.high


def test_bounds_are_in_order_though_the_smaller_error_has_fewer_degrees_of_freedom() -> None:
    """Alone, a domain of two trajectories has a t of 12.7; a second domain with much spread lends it its own."""
    few = one_part({"trajectory": 20.0, "turn": 0.0, "generation": 0.0, "rest": 0.0})
    open_ = analysed("open", drawn(design(20, 3), turn=80.0)).components
    designs = {"swe": Design(2, 1), "web": Design(20, 1, epochs=100)}
    bounds = [
        sqrt(
            sum(
                (predicted_se(one, designs[name]) or (0.0, 0.0))[end] ** 2
                for name, one in (("swe", few), ("web", open_))
            )
        )
        for end in (0, 1)
    ]
    half = predicted_population({"swe": few, "web": open_}, designs)
    assert bounds[0] < bounds[1]
    assert half is not None and 0 < half.low < half.high
    assert half.high > 12 * bounds[0] / 2, "the width of the smaller error"


def test_st_07_turns_that_are_alike_are_their_trajectory() -> None:
    """20 trajectories of 10 equal turns, half at 100 and half at 0: all variance is the trajectories', and the standard
    error is sqrt(10) times the one that takes turns for independent, whatever the number of turns."""
    scores = [Score(f"t{t}", f"s{s}", 0, "j", 100.0 * (t % 2)) for t in range(20) for s in range(10)]
    found = analysed("st-07", scores).components
    assert {part.names[0]: part.share for part in found.parts} == {"trajectory": 1.0, "turn": 0.0}
    naive = sqrt(50**2 * 200 / 199 / 200)
    for turns in (10, 1):
        low, high = predicted_se(found, Design(20, turns)) or (0.0, 0.0)
        assert low == pytest.approx(high)
        assert high / naive == pytest.approx(sqrt(10), rel=0.03)


def test_st_13_a_judge_that_wavers_is_seen_as_such() -> None:
    """A judge who alternates 3 and 5 on every answer: all variance is the verdicts', and repeats average it away."""
    scores = [Score(*place, 50.0 + 50.0 * (number % 2)) for number, place in enumerate(design(6, 3, 2, 1, 2))]
    found = analysed("st-13", scores).components
    assert {part.names[0]: round(part.share, 9) for part in found.parts} == {
        "trajectory": 0.0, "turn": 0.0, "generation": 0.0, "rest": 1.0,
    }  # fmt: skip
    once, often = (predicted_rerun({"swe": found}, {"swe": Design(50, 4, repeats=r)}) for r in (1, 16))
    assert once is not None and often is not None
    assert often.high == pytest.approx(1.959964 * sqrt(found.parts[-1].variance / 200 / 16), rel=1e-6)
    assert often.high < once.high / 2


# --- all domains together ------------------------------------------------------------------------


def test_shares_of_all_are_those_of_mean_variances() -> None:
    analyses = {name: analysed(name, scores) for name, scores in domains_of(PLACES).items()}
    whole = macro_variance(analyses)
    names = [part.names[0] for part in whole.parts]
    assert names == ["trajectory", "turn", "generation", "rest"]
    for place, part in enumerate(whole.parts):
        variances = [one.components.parts[place].variance for one in analyses.values()]
        assert part.variance == pytest.approx(fmean(variances))
        assert part.interval.low is not None and part.interval.high is not None
        assert part.interval.low < part.share < part.interval.high
    assert sum(part.share for part in whole.parts) == pytest.approx(1)
    assert whole.unknown == ("judge",)
    assert whole == macro_variance(dict(reversed(analyses.items()))), "the order of domains never shows"


def test_what_one_domain_cannot_tell_apart_is_joined_in_the_whole() -> None:
    analyses = {
        name: analysed(name, scores)
        for name, scores in domains_of({"swe": (6, 1, 2, 2), "web": (6, 3, 1, 2), "os": (6, 3, 2, 2)}).items()
    }
    whole = macro_variance(analyses)
    assert [part.names[0] for part in whole.parts] == ["trajectory", "rest"]
    assert {"trajectory", "turn", "generation"} <= set(whole.parts[0].names)


def test_wholes_that_cannot_be_told() -> None:
    flat = analysed("flat", [Score(*place, 50.0) for place in design(5, 3, 2)])
    assert macro_variance({"web": flat}).parts == ()
    lost = Analysis(Components(scores=4, trajectories=2, reason="not_separable"), np.empty((0, 0)))
    full = analysed("full", drawn(design(8, 3, 2), **EFFECTS))
    assert macro_variance({"web": lost, "swe": full}).parts == ()
    few = analysed("few", drawn(design(3, 3, 2), **EFFECTS))
    assert {part.interval.flags for part in macro_variance({"web": few, "swe": full}).parts} == {
        ("too_few_clusters",)
    }


def test_mixes_are_ordered_by_money_and_where_that_is_unknown_by_tokens() -> None:
    common: dict[str, Any] = {
        "selection": "", "samples": 9, "trajectories": 3, "epochs": 1, "repeats": 1, "population": Half(low=1, high=1),
        "rerun": None, "requests": 9, "tokens_low": 10,
    }  # fmt: skip
    dear = Mix(**common, tokens_high=20, usd_low=1.0, usd_high=3.0)
    cheap = Mix(**common, tokens_high=90, usd_low=1.0, usd_high=2.0)
    assert cheap.cost < dear.cost
    unknown = [Mix(**common, tokens_high=n, usd_low=None, usd_high=None) for n in (90, 20)]
    assert unknown[1].cost < unknown[0].cost
