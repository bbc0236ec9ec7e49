"""Components of variance: a published analysis, exact unbiasedness, laws, and standard errors of other designs.

What the estimates are worth in repeated draws is in `test_variance_simulations.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from agentworldbench.stats.intervals import clustered
from agentworldbench.stats.variance import (
    NAMES,
    POPULATION,
    RERUN,
    Components,
    Design,
    Name,
    Score,
    analysed,
    predicted_se,
)

CASES = yaml.safe_load(
    (Path(__file__).parent / "cases" / "stats" / "variance.yaml").read_text(encoding="utf-8")
)
Place = tuple[str, str, int, str]
"""Trajectory, turn, generation, judge."""

# Calcium in turnip greens: 4 plants, 3 leaves of each, 2 determinations of each [Snedecor & Cochran 1967, p. 286].
TURNIPS = """3.28 3.09  3.52 3.48  2.88 2.80   2.46 2.44  1.87 1.92  2.19 2.19
             2.77 2.66  3.74 3.44  2.55 2.55   3.78 3.87  4.07 4.12  3.31 3.31"""


def design(
    trajectories: int, turns: int, generations: int = 1, judges: int = 1, repeats: int = 1
) -> list[Place]:
    return [
        (f"t{t}", f"s{s}", g, f"j{j}")
        for t, s, g, j, _ in itertools.product(
            *map(range, (trajectories, turns, generations, judges, repeats))
        )
    ]


def drawn(places: Sequence[Place], seed: int = 1, **variances: float) -> list[Score]:
    """Scores with normal effects of the given variances around 50."""
    random = np.random.default_rng(seed)
    effects: dict[tuple[object, ...], float] = {}
    found = []
    for number, (trajectory, turn, generation, judge) in enumerate(places):
        keys: dict[str, tuple[object, ...]] = {
            "trajectory": (trajectory,),
            "turn": (trajectory, turn),
            "generation": (trajectory, turn, generation),
            "judge": (judge,),
            "judge_by_turn": (trajectory, turn, judge),
            "judge_by_generation": (trajectory, turn, generation, judge),
            "rest": (number,),
        }
        value = 50.0
        for name, key in keys.items():
            full = (name, *key)
            if full not in effects:
                effects[full] = float(random.normal()) * sqrt(variances.get(name, 0.0))
            value += effects[full]
        found.append(Score(trajectory, turn, generation, judge, value))
    return found


def variance_components(name: str, scores: Sequence[Score]) -> Components:
    return analysed(name, scores).components


def told_se(found: Components, design: Design, drawn: frozenset[Name] = POPULATION) -> float | None:
    """The standard error where it is one number."""
    errors = predicted_se(found, design, drawn)
    return errors[0] if errors is not None and errors[0] == errors[1] else None


def estimates(found: Components) -> dict[tuple[Name, ...], float]:
    return {part.names: part.estimate for part in found.parts}


def part(found: Components, name: Name) -> Any:
    return next(part for part in found.parts if name in part.names)


# --- estimates -----------------------------------------------------------------------------------


def test_a_published_nested_analysis() -> None:
    """Variance components as SAS PROC NESTED prints them for the same data."""
    values = map(float, TURNIPS.split())
    scores = [
        Score(*place, value) for place, value in zip(design(4, 3, repeats=2), values, strict=True)
    ]  # plants as trajectories, leaves as turns
    found = variance_components("turnips", scores)
    assert [(one.names[0], one.levels) for one in found.parts] == [
        ("trajectory", 4),
        ("turn", 12),
        ("rest", 24),
    ]
    assert [one.estimate for one in found.parts] == pytest.approx([0.365223, 0.161060, 0.006654], abs=6e-7)
    assert [one.share for one in found.parts] == pytest.approx([0.6853, 0.3022, 0.0125], abs=5e-5)
    assert found.unknown == ("judge",)


def lopsided(seed: int) -> list[Place]:
    """Some of the verdicts of a full design, so that no two levels have the same number of them."""
    random = np.random.default_rng(seed)
    return [place for place in design(3, 2, 2, 2, 2) if random.random() < 0.8]


@pytest.mark.parametrize("seed", range(2))
def test_estimates_are_exactly_unbiased_however_lopsided_the_design(seed: int) -> None:
    """Estimates are linear in products of two scores. So their expectation when one source has variance 1 and
    all others 0 is their sum over scores that are 1 in one level of that source and 0 elsewhere."""
    places = lopsided(seed)
    groups = [one.names for one in variance_components("law", drawn(places, rest=1.0)).parts]
    assert groups == [(name,) for name in NAMES]
    levels: dict[Name, Callable[[int, Place], object]] = {
        "trajectory": lambda _, place: place[0],
        "turn": lambda _, place: place[:2],
        "generation": lambda _, place: place[:3],
        "judge": lambda _, place: place[3],
        "judge_by_turn": lambda _, place: (place[0], place[1], place[3]),
        "judge_by_generation": lambda _, place: place,
        "rest": lambda number, _: number,
    }
    for name, level_of in levels.items():
        sums = dict.fromkeys(groups, 0.0)
        of_places = [level_of(number, place) for number, place in enumerate(places)]
        for level in dict.fromkeys(of_places):
            scores = [
                Score(*place, float(other == level)) for place, other in zip(places, of_places, strict=True)
            ]
            for names, estimate in estimates(variance_components("law", scores)).items():
                sums[names] += estimate
        assert sums == pytest.approx({names: float(names == (name,)) for names in groups}, abs=1e-8)


def test_neither_order_nor_names_nor_the_mean_show_and_units_are_squared() -> None:
    scores = drawn(lopsided(9), trajectory=2.0, turn=1.0, judge=1.0, rest=1.0)
    found = estimates(variance_components("law", scores))
    assert estimates(variance_components("law", scores[::-1])) == found
    renamed = [
        Score(one.trajectory[::-1] + "!", one.turn[::-1], 7 - one.generation, one.judge + "?", one.value)
        for one in scores
    ]
    assert estimates(variance_components("law", renamed)) == pytest.approx(found, abs=1e-10)
    moved = [
        Score(one.trajectory, one.turn, one.generation, one.judge, 3 * one.value - 1000) for one in scores
    ]
    expected = {names: 9 * value for names, value in found.items()}
    assert estimates(variance_components("law", moved)) == pytest.approx(expected, abs=1e-8)


def test_a_negative_estimate_is_shown_and_counted_0() -> None:
    """Turns that differ more within trajectories than trajectories do: like teams whose members share a prize."""
    scores = [
        Score(f"t{t}", f"s{s}", g, "j", 10.0 * (s - 0.5) + t * 0.01 + g)
        for t, s, g in itertools.product(range(4), range(2), range(2))
    ]
    found = variance_components("law", scores)
    whole = part(found, "trajectory")
    assert whole.negative and whole.estimate < 0 and whole.variance == 0 and whole.share == 0
    assert sum(one.share for one in found.parts) == pytest.approx(1)
    assert [one.negative for one in found.parts] == [True, False, False]


# --- what cannot be told -------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_a_design_cannot_tell_apart_is_one_component(case: dict[str, Any]) -> None:
    found = variance_components("case", drawn(design(**case["design"]), trajectory=9.0, rest=1.0))
    assert [" + ".join(one.names) for one in found.parts] == case["parts"]
    assert list(found.unknown) == case["unknown"]
    for fields in case["predicted"]:
        assert told_se(found, Design(**fields)) is not None
    for fields in case["not_predicted"]:
        assert told_se(found, Design(**fields)) is None


def test_where_nothing_can_be_estimated() -> None:
    equal = [Score(*place, 0.1) for place in design(3, 2, 2)]
    for scores, reason, count in ((equal, "no_spread", 3), ([], "no_spread", 0), (equal[:1], "no_spread", 1)):
        found = variance_components("none", scores)
        assert (found.parts, found.reason, found.trajectories) == ((), reason, count)
        assert predicted_se(found, Design(10, 2)) is None


def test_a_design_too_lopsided_for_its_equations() -> None:
    """Four verdicts that divide into turns, generations and judges in as many ways as there are unknowns, but no
    two of them share what would tell these apart."""
    places = [("t1", "s0", 0, "j0"), ("t1", "s0", 1, "j0"), ("t1", "s1", 1, "j0"), ("t1", "s1", 1, "j1")]
    found = variance_components("none", [Score(*place, float(n * n)) for n, place in enumerate(places)])
    assert (found.parts, found.reason) == ((), "not_separable")
    assert predicted_se(found, Design(10, 2)) is None


@pytest.mark.parametrize(
    ("trajectories", "flags"), [(1, ("one_cluster",)), (4, ("too_few_clusters",)), (6, ("few_clusters",))]
)
def test_intervals_of_shares_say_how_little_few_trajectories_tell(
    trajectories: int, flags: tuple[str, ...]
) -> None:
    found = variance_components("few", drawn(design(trajectories, 2, 2), turn=1.0, generation=1.0))
    assert {one.interval.flags for one in found.parts} == {flags}


def test_intervals_of_shares_are_seeded_and_hold_the_share() -> None:
    scores = drawn(design(30, 2, 2, 1, 2), trajectory=4.0, turn=2.0, generation=2.0, rest=2.0)
    found = variance_components("os", scores)
    assert found == variance_components("os", scores[::-1])
    assert found != variance_components("web", scores)
    for one in found.parts:
        assert one.interval.low is not None and one.interval.high is not None
        assert 0 <= one.interval.low < one.share < one.interval.high <= 1
        assert one.interval.clusters == found.trajectories == 30


# --- other designs -------------------------------------------------------------------------------

ALL = {
    "trajectory": 100.0, "turn": 25.0, "generation": 9.0, "judge": 60.0, "judge_by_turn": 4.0,
    "judge_by_generation": 4.0, "rest": 1.0,
}  # fmt: skip
"""With these, and the seed of `drawn`, no estimate is negative."""


@pytest.mark.parametrize(
    ("turns", "generations", "judges", "repeats"), [(2, 2, 1, 2), (3, 1, 1, 1), (2, 2, 3, 1), (2, 2, 2, 2)]
)
def test_the_same_design_has_the_interval_that_was_seen(
    turns: int, generations: int, judges: int, repeats: int
) -> None:
    """In a balanced design without negative estimates the two are one number; judges stay the same."""
    scores = drawn(design(4, turns, generations, judges, repeats), **ALL)
    found = variance_components("same", scores)
    assert not any(one.negative for one in found.parts)
    mean = float(np.mean([one.value for one in scores]))
    interval = clustered(mean, [(one.trajectory, one.value) for one in scores])
    same = Design(4, turns, generations, judges, repeats)
    assert interval is not None
    assert told_se(found, same) == pytest.approx(interval.se, rel=1e-9)


FULL = variance_components("full", drawn(design(4, 2, 2, 2, 2), **ALL))


def test_predicted_variance_term_by_term() -> None:
    v = {one.names[0]: one.variance for one in FULL.parts}
    assert list(v) == list(NAMES) and all(v.values())
    asked = Design(trajectories=50, turns=4, epochs=3, judges=5, repeats=2, unevenness=0.5)
    expected = (
        v["trajectory"] * 1.25 / 50
        + v["turn"] / 200
        + v["generation"] / 600
        + v["judge_by_turn"] / 1000
        + v["judge_by_generation"] / 3000
        + v["rest"] / 6000
    )
    assert told_se(FULL, asked) == pytest.approx(sqrt(expected), rel=1e-12)
    others = sqrt(expected + v["judge"] / 5)
    assert told_se(FULL, asked, frozenset(NAMES)) == pytest.approx(others, rel=1e-12)
    again = v["generation"] / 600 + v["judge_by_generation"] / 3000 + v["rest"] / 6000
    assert told_se(FULL, asked, RERUN) == pytest.approx(sqrt(again), rel=1e-12)


@pytest.mark.parametrize("more", ["trajectories", "turns", "epochs", "judges", "repeats"])
def test_more_of_anything_narrows_the_interval(more: str) -> None:
    asked = {"trajectories": 10, "turns": 2, "epochs": 1, "judges": 1, "repeats": 1}
    few, many = (told_se(FULL, Design(**some)) for some in (asked, asked | {more: asked[more] + 1}))
    assert few is not None and many is not None and many < few


def test_one_judge_tells_nothing_of_other_judges() -> None:
    found = variance_components("one", drawn(design(4, 2, 2, 1, 2), trajectory=1.0, rest=1.0))
    assert predicted_se(found, Design(10, 2)) is not None
    assert predicted_se(found, Design(10, 2), frozenset(NAMES)) is None


def test_what_cannot_be_told_apart_lies_between_two_bounds() -> None:
    """One turn of each trajectory, one answer, one verdict: all of it may be the trajectory's or the verdict's."""
    found = variance_components("bounds", drawn(design(30, 1), turn=4.0))
    (one,) = found.parts
    low, high = predicted_se(found, Design(10, 5, 2, 1, 3)) or (0.0, 0.0)
    assert low == pytest.approx(sqrt(one.variance / 300))
    assert high == pytest.approx(sqrt(one.variance / 10))
    assert predicted_se(found, Design(10, 5, 2), RERUN) == pytest.approx((0.0, sqrt(one.variance / 100)))


def test_negative_estimates_count_in_the_sum_while_that_is_positive() -> None:
    """Trajectories are alike in their means: the negative estimate takes from the turns' part what these have too much."""
    scores = [
        Score(f"t{t}", f"s{s}", 0, "j", 10.0 * s + 0.1 * t) for t, s in itertools.product(range(4), range(2))
    ]
    found = variance_components("negative", scores)
    assert part(found, "trajectory").estimate < 0
    interval = clustered(5.15, [(one.trajectory, one.value) for one in scores])
    assert interval is not None
    assert told_se(found, Design(4, 2)) == pytest.approx(interval.se, rel=1e-9)
    turn = part(found, "turn").variance
    assert turn / 80 + part(found, "trajectory").estimate / 4 < 0
    assert told_se(found, Design(4, 20)) == pytest.approx(sqrt(turn / 80))


@pytest.mark.parametrize("fields", [{"trajectories": 0}, {"turns": 0.5}, {"epochs": 0}, {"unevenness": -0.1}])
def test_a_design_of_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="fewer than one"):
        Design(**{"trajectories": 2, "turns": 1} | fields)
