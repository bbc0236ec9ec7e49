"""Agreement of judges: published and worked cases, definitions written out, laws, intervals.

Cases stand in `cases/stats/agreement.yaml`. How often the intervals hold, and statsmodels as a second opinion on
kappa, is in `test_agreement_simulations.py`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agentworldbench.records import DIMENSIONS
from agentworldbench.stats.agreement import (
    MEASURES,
    Agreement,
    Rated,
    RatedVerdicts,
    Reason,
    agreement,
    agreement_by_column,
    alpha,
    weighted_kappa,
)
from agentworldbench.stats.bootstrap import resample_ratio, resampled_interval

CASES = yaml.safe_load(
    (Path(__file__).parent / "cases" / "stats" / "agreement.yaml").read_text(encoding="utf-8")
)
OTHER_WEIGHTS = {"nominal", "interval", "unweighted"}
FEW = settings(max_examples=25, deadline=None)
Table = list[dict[str, int]]

# Two trajectories, so that nothing is drawn: what is tested here are the values.
tables = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), max_size=4), min_size=1, max_size=12
)


def rated(table: Sequence[dict[str, int | None]] | Table, clusters: int = 2) -> list[Rated]:
    return [Rated(f"t{place % clusters}", values) for place, values in enumerate(table)]


def predictions_of(case: dict[str, Any]) -> list[Rated]:
    ratings: dict[str, list[int | None]] = case["ratings"]
    count = len(next(iter(ratings.values()), []))
    clusters = case.get("clusters", [f"t{place % 2}" for place in range(count)])
    return [
        Rated(cluster, {rater: values[place] for rater, values in ratings.items()})
        for place, cluster in enumerate(clusters)
    ]


def values_of(found: Agreement) -> dict[str, float | str | None]:
    return {name: getattr(found, name).value for name in MEASURES}


def numbers_of(found: Agreement) -> dict[str, float]:
    return {name: value for name, value in values_of(found).items() if isinstance(value, float)}


# --- worked cases --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_cases(case: dict[str, Any]) -> None:
    found = agreement("case", predictions_of(case))
    for name, expected in case["expected"].items():
        if name in OTHER_WEIGHTS:
            continue
        got = getattr(found, name)
        if name not in MEASURES:
            assert got == expected
        elif expected in get_args(Reason):
            assert (got.value, got.interval, got.reason) == (None, None, expected)
        else:
            assert got.reason is None
            assert got.value == as_printed(expected)


def as_printed(expected: float | str) -> Any:
    """What is as near to a printed decimal as it can tell, or to a fraction as numbers can be."""
    if isinstance(expected, str):
        return pytest.approx(float(Fraction(expected)), abs=1e-14)
    return pytest.approx(expected, abs=0.5001 * 10.0 ** -len(str(expected).partition(".")[2]))


@pytest.mark.parametrize(
    "case", [case for case in CASES if OTHER_WEIGHTS & case["expected"].keys()], ids=lambda case: case["id"]
)
def test_published_values_with_other_differences(case: dict[str, Any]) -> None:
    """What has been published with the same coincidences and tables, but other differences and weights."""
    apart = np.subtract.outer(np.arange(5.0), np.arange(5.0))
    table = [
        {rater: value for rater, value in one.values.items() if value is not None}
        for one in predictions_of(case)
    ]
    found = {
        "nominal": lambda: alpha(coincidences(table), lambda _: (apart != 0).astype(float)),
        "interval": lambda: alpha(coincidences(table), lambda _: apart**2),
        "unweighted": lambda: weighted_kappa(pair_tables(table), (apart != 0).astype(float)).mean(),
    }
    for name in OTHER_WEIGHTS & case["expected"].keys():
        expected = case["expected"][name]
        assert float(found[name]()) == as_printed(expected)


def coincidences(table: Table) -> NDArray[np.float64]:
    found = np.zeros((5, 5))
    for values in table:
        for first, second in permutations(values.values(), 2):
            found[first - 1, second - 1] += 1 / (len(values) - 1)
    return found


def pair_tables(table: Table) -> NDArray[np.float64]:
    raters = sorted({rater for values in table for rater in values})
    found = np.zeros((len(raters) * (len(raters) - 1) // 2, 5, 5))
    for place, (one, other) in enumerate(combinations(raters, 2)):
        for values in table:
            if one in values and other in values:
                found[place, values[one] - 1, values[other] - 1] += 1
    return found


def test_weighted_kappa_of_cohen_1968() -> None:
    """Table 1: two judges, 200 cases, three diagnoses, and weights that are neither linear nor quadratic."""
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]], dtype=float)
    weights = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]], dtype=float)
    assert float(weighted_kappa(table, weights)) == pytest.approx(0.348, abs=0.0005)
    assert float(weighted_kappa(table, 1 - np.eye(3))) == pytest.approx(0.492, abs=0.0005)


# --- the definitions, written out ----------------------------------------------------------------


def alpha_by_definition(table: Table) -> Fraction | None:
    """Mean ordinal difference within predictions against that between any two of all values."""
    paired = [list(values.values()) for values in table if len(values) > 1]
    pool = [value for values in paired for value in values]
    counts = {value: pool.count(value) for value in range(1, 6)}

    def squared(one: int, other: int) -> Fraction:
        low, high = sorted((one, other))
        between = sum(counts[value] for value in range(low, high + 1))
        return (between - Fraction(counts[low] + counts[high], 2)) ** 2

    seen = sum(
        (squared(*pair) / (len(values) - 1) for values in paired for pair in permutations(values, 2)),
        Fraction(0),
    )
    chance = sum((squared(*pair) for pair in permutations(pool, 2)), Fraction(0))
    return 1 - seen * (len(pool) - 1) / chance if chance else None


def kappa_by_definition(table: Table, power: int) -> Fraction | None:
    kappas = []
    for one, other in combinations("abcd", 2):
        both = [(values[one], values[other]) for values in table if one in values and other in values]
        if not both:
            continue
        first, second = zip(*both, strict=True)
        if len(set(first)) == 1 or len(set(second)) == 1:
            return None
        seen = Fraction(sum(abs(a - b) ** power for a, b in both), len(both))
        kappas.append(1 - seen * len(both) ** 2 / sum(abs(a - b) ** power for a, b in product(first, second)))
    return sum(kappas, Fraction(0)) / len(kappas) if kappas else None


@FEW
@given(tables)
def test_values_are_those_of_the_definitions(table: Table) -> None:
    found = agreement("law", rated(table))
    pairs = [pair for values in table for pair in combinations(values.values(), 2)]
    expected = {
        "alpha": alpha_by_definition(table),
        "kappa_linear": kappa_by_definition(table, 1),
        "kappa_quadratic": kappa_by_definition(table, 2),
        "exact": Fraction(sum(a == b for a, b in pairs), len(pairs)) if pairs else None,
        "within_one": Fraction(sum(abs(a - b) <= 1 for a, b in pairs), len(pairs)) if pairs else None,
    }
    for name, value in expected.items():
        got = getattr(found, name)
        assert (got.value is None) == (value is None) == (got.reason is not None)
        assert value is None or got.value == pytest.approx(float(value), abs=1e-12)
    assert found.pairs == len(pairs)


# --- laws ----------------------------------------------------------------------------------------


@FEW
@given(tables, st.randoms(use_true_random=False))
def test_neither_order_nor_names_show(table: Table, shuffle: random.Random) -> None:
    renamed = [{"zyxw"["abcd".index(rater)]: value for rater, value in values.items()} for values in table]
    again = rated(renamed)
    shuffle.shuffle(again)
    found, other = agreement("law", rated(table)), agreement("law", again)
    assert numbers_of(other) == pytest.approx(numbers_of(found), abs=1e-14)
    assert other.alpha.value == found.alpha.value
    assert {name: getattr(other, name).reason for name in MEASURES} == {
        name: getattr(found, name).reason for name in MEASURES
    }


@FEW
@given(tables)
def test_a_scale_turned_upside_down_changes_nothing(table: Table) -> None:
    turned = [{rater: 6 - value for rater, value in values.items()} for values in table]
    found = numbers_of(agreement("law", rated(table)))
    assert numbers_of(agreement("law", rated(turned))) == pytest.approx(found, abs=1e-12)


@FEW
@given(tables)
def test_alpha_knows_the_order_of_values_alone(table: Table) -> None:
    """1, 2, 3 written as 1, 3, 5 are the same ordinal values; for kappa and for neighbours they are not."""
    three = [{rater: min(value, 3) for rater, value in values.items()} for values in table]
    wide = [{rater: 2 * value - 1 for rater, value in values.items()} for values in three]
    found, other = (agreement("law", rated(some)).alpha.value for some in (three, wide))
    assert other == pytest.approx(found, abs=1e-12)


@FEW
@given(tables)
def test_alpha_takes_raters_for_interchangeable(table: Table) -> None:
    # The lowest value is always the first rater's.
    swapped = [dict(zip(sorted(values), sorted(values.values()), strict=True)) for values in table]
    assert agreement("law", rated(swapped)).alpha.value == agreement("law", rated(table)).alpha.value


@FEW
@given(tables)
def test_all_twice_changes_kappas_and_rates_nowhere(table: Table) -> None:
    found, twice = agreement("law", rated(table)), agreement("law", rated(table) * 2)
    for name in ("kappa_linear", "kappa_quadratic", "exact", "within_one"):
        assert getattr(twice, name).value == pytest.approx(getattr(found, name).value, abs=1e-12)
    assert twice.pairs == 2 * found.pairs


@FEW
@given(tables)
def test_single_values_and_failures_are_counted_and_weigh_nothing(table: Table) -> None:
    more = [*rated(table), Rated("t0", {"a": 3}), Rated("t1", {"b": None, "a": None})]
    found, other = agreement("law", rated(table)), agreement("law", more)
    assert values_of(other) == values_of(found)
    assert (other.alone, other.failed) == (found.alone + 1, found.failed + 2)
    assert (other.predictions, other.clusters) == (found.predictions, found.clusters)


@FEW
@given(tables)
def test_nothing_is_above_1_or_no_number(table: Table) -> None:
    for value in numbers_of(agreement("law", rated(table))).values():
        assert -1 - 1e-12 <= value <= 1


@pytest.mark.parametrize("value", [0, 6, -1])
def test_a_value_off_the_scale_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 5, not {value}"):
        agreement("law", rated([{"a": 3, "b": value}]))


def test_dimensions_are_told_apart() -> None:
    """Two judges agree on all dimensions but the last, where one of them failed once."""
    random_ = random.Random(1)
    predictions = []
    for place in range(8):
        verdict = {name: random_.randint(1, 5) for name in DIMENSIONS}
        other = verdict | {DIMENSIONS[-1]: 6 - verdict[DIMENSIONS[-1]]}
        predictions.append(RatedVerdicts(f"t{place % 3}", {"x": verdict, "y": other if place else None}))
    found = agreement_by_column("judges", predictions)
    assert list(found) == ["total", *DIMENSIONS]
    assert [found[name].alpha.value for name in DIMENSIONS[:-1]] == [1.0] * 4
    last = found[DIMENSIONS[-1]].alpha.value
    assert last is not None and last < 0
    assert {(one.predictions, one.alone, one.failed) for one in found.values()} == {(7, 1, 1)}


# --- intervals -----------------------------------------------------------------------------------


def judged(clusters: int, seed: int = 1, turns: int = 3, noise: float = 0.8) -> list[Rated]:
    """Three raters see the quality of a prediction through noise; predictions of a trajectory are alike."""
    random_ = random.Random(seed)
    found = []
    for cluster in range(clusters):
        shared = random_.gauss(3, 1)
        for _ in range(turns):
            quality = random_.gauss(shared, 0.5)
            values = {
                rater: min(5, max(1, round(quality + random_.gauss(0, noise)))) for rater in ("x", "y", "z")
            }
            found.append(Rated(f"t{cluster:02}", values))
    return found


def test_intervals_hold_their_value_and_are_the_same_again() -> None:
    predictions = judged(20)
    found = agreement("judges", predictions)
    assert found == agreement("judges", list(reversed(predictions)))
    for name in MEASURES:
        one = getattr(found, name)
        assert one.interval.low < one.value < one.interval.high <= 1
        assert (one.interval.method, one.interval.clusters, one.interval.df) == ("bootstrap", 20, 19)
    assert found.alpha.interval != agreement("others", predictions).alpha.interval


def test_intervals_of_rates_are_those_of_a_ratio() -> None:
    """The same draws as `bootstrap.py` makes, by another way."""
    predictions = judged(12)
    samples = [
        (one.cluster, float(sum(a == b for a, b in combinations(one.values.values(), 2))), 3.0)
        for one in predictions
    ]
    expected = resampled_interval([resample_ratio("judges", samples)])
    assert agreement("judges", predictions).exact.interval == expected


def test_trajectories_are_drawn_not_predictions() -> None:
    """The same predictions are worth less when they come from few trajectories."""
    together = judged(20, turns=5)
    alone = [Rated(f"p{place:03}", one.values) for place, one in enumerate(together)]
    wide, narrow = (agreement("judges", some).exact.interval for some in (together, alone))
    assert wide is not None and narrow is not None and wide.half is not None and narrow.half is not None
    assert narrow.half < 0.9 * wide.half


@pytest.mark.parametrize(
    ("predictions", "flags"),
    [
        (judged(1, turns=6), ("one_cluster",)),
        (judged(4), ("too_few_clusters",)),
        (judged(6), ("few_clusters",)),
        (judged(10), ()),
        ([Rated(f"t{n}", {"a": 1 + n % 5, "b": 1 + n % 5}) for n in range(12)], ("no_spread",)),
        ([Rated(f"t{n}", {"a": 4 + (n == 3), "b": 4 + (n == 3)}) for n in range(12)], ("unstable",)),
    ],
    ids=["one", "four", "six", "ten", "all agree", "one trajectory holds all variation"],
)
def test_flags_say_why_there_is_no_interval(predictions: list[Rated], flags: tuple[str, ...]) -> None:
    found = agreement("judges", predictions)
    assert found.alpha.value is not None and found.alpha.interval is not None
    assert found.alpha.interval.flags == flags
    assert (found.alpha.interval.half is None) == bool(set(flags) - {"few_clusters"})
