"""Intervals of means over clustered samples: worked cases, scipy and statsmodels as oracles, laws.

Cases stand in `cases/stats`. What intervals cover in repeated draws is in `test_interval_simulations.py`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import OLS

from agentworldbench.records import DIMENSIONS, SampleRef
from agentworldbench.stats.aggregate import block, macro_dimension_intervals, macro_intervals
from agentworldbench.stats.intervals import Interval, Sampled, clustered, of_strata, stratified
from agentworldbench.stats.results import Block
from agentworldbench.stats.student import MANY, student_t

CASES = Path(__file__).parent / "cases" / "stats"
MEANS = yaml.safe_load((CASES / "intervals.yaml").read_text(encoding="utf-8"))
STRATA = yaml.safe_load((CASES / "strata.yaml").read_text(encoding="utf-8"))
FEWER = settings(max_examples=40)
NUMBERS = ("low", "high", "half", "se", "df")
samples_of_clusters = st.lists(
    st.tuples(st.sampled_from("abcdefghijkl"), st.integers(-40, 140).map(float)), min_size=1, max_size=40
)


def values_of(samples: dict[str, list[float]]) -> list[Sampled]:
    return [(cluster, float(value)) for cluster, some in samples.items() for value in some]


def number(text: Any) -> float:
    return float(Fraction(str(text)))


def drawn(seed: int, clusters: int = 12, most: int = 6) -> list[Sampled]:
    """Clusters of unequal size that have something in common."""
    random_ = random.Random(seed)
    found = []
    for cluster in range(clusters):
        shared = random_.gauss(50, 20)
        found += [(f"c{cluster}", random_.gauss(shared, 15)) for _ in range(random_.randint(1, most))]
    return found


def mean_of(samples: Sequence[Sampled]) -> float:
    return sum(value for _, value in samples) / len(samples)


def of(samples: Sequence[Sampled]) -> Interval:
    interval = clustered(mean_of(samples), samples)
    assert interval is not None
    return interval


# --- Student's t ---------------------------------------------------------------------------------

DEGREES = [1, 1.0001, 1.5, 2, 2.7, 3, 5, 9, 13.3, 39, 100, 333.3, 999.99, MANY, 1e4, 1e7]
SHARES = [0.5, 0.500001, 0.6, 0.8, 0.95, 0.975, 0.99, 0.9995, 1 - 1e-7]


@pytest.mark.parametrize("df", DEGREES)
def test_quantiles_of_t_are_those_of_scipy(df: float) -> None:
    found = [student_t(share, df) for share in SHARES]
    assert found == pytest.approx([stats.t.ppf(share, df) for share in SHARES], rel=1e-8, abs=1e-12)
    assert found == sorted(found)


@given(st.floats(1, 2 * MANY), st.floats(0.5, 0.9999))
@settings(max_examples=60)
def test_any_quantile_of_t_is_that_of_scipy(df: float, share: float) -> None:
    assert student_t(share, df) == pytest.approx(stats.t.ppf(share, df), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(("share", "df"), [(0.4, 5), (1.0, 5), (0.975, 0.5), (0.975, float("nan"))])
def test_what_has_no_quantile_is_refused(share: float, df: float) -> None:
    with pytest.raises(ValueError, match="no quantile of t"):
        student_t(share, df)


# --- one mean ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MEANS, ids=lambda case: case["id"])
def test_intervals_worked_by_hand(case: dict[str, Any]) -> None:
    mean = number(case["mean"])
    interval = clustered(mean, values_of(case["samples"]))
    assert interval is not None
    assert (interval.kind, interval.method, interval.level) == ("population", "clustered", 0.95)
    assert interval.clusters == len(case["samples"])
    assert list(interval.flags) == case["flags"]
    if "variance" not in case:
        assert [getattr(interval, name) for name in NUMBERS] == [None] * 5
        return
    se = sqrt(number(case["variance"]))
    half = case["t"] * se
    expected = (mean - half, mean + half, half, se, case["df"])
    assert [getattr(interval, name) for name in NUMBERS] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_one_mean_is_the_cluster_robust_regression_on_a_constant(seed: int) -> None:
    samples = drawn(seed, clusters=3 + 4 * seed)
    names = [int(cluster[1:]) for cluster, _ in samples]
    values = [value for _, value in samples]
    fit = OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(names), "use_correction": True}, use_t=True
    )
    interval = of(samples)
    assert interval.se == pytest.approx(fit.bse[0], rel=1e-10)
    assert (interval.low, interval.high) == pytest.approx(tuple(fit.conf_int(0.05)[0]), rel=1e-8)


def test_no_samples_or_no_mean_have_no_interval() -> None:
    assert clustered(None, [("a", 1.0), ("b", 2.0)]) is None
    assert clustered(1.0, []) is None


@FEWER
@given(samples_of_clusters, st.randoms(use_true_random=False))
def test_neither_order_nor_names_show(samples: list[Sampled], shuffle: random.Random) -> None:
    other = [(f"other {cluster}", value) for cluster, value in samples]
    shuffle.shuffle(other)
    assert clustered(1.0, samples) == clustered(1.0, other)


@given(
    samples_of_clusters, st.sampled_from([0.25, 0.5, 2.0, 64.0]), st.integers(-3, 3).map(lambda n: 64.0 * n)
)
def test_an_interval_moves_and_stretches_with_its_values(
    samples: list[Sampled], scale: float, shift: float
) -> None:
    interval = of(samples)
    moved = of([(cluster, value * scale + shift) for cluster, value in samples])
    assert (interval.half is None) is (moved.half is None)
    if interval.half is not None:
        assert moved.half == pytest.approx(interval.half * scale, rel=1e-9)
        assert moved.df == interval.df


@FEWER
@given(samples_of_clusters)
def test_a_second_copy_of_each_sample_in_its_trajectory_tells_nothing_new(samples: list[Sampled]) -> None:
    once, twice = of(samples), of(samples * 2)
    assert (once.half is None) is (twice.half is None)
    assert once.half is None or twice.half == pytest.approx(once.half, rel=1e-9)


@FEWER
@given(samples_of_clusters)
def test_no_interval_has_a_width_of_0(samples: list[Sampled]) -> None:
    interval = of(samples)
    assert (interval.half is None) is bool({"one_cluster", "no_spread"} & set(interval.flags))
    assert interval.half is None or interval.half > 0


def test_huge_values_do_not_overflow() -> None:
    samples = [(f"c{n}", (-1) ** n * 1e300) for n in range(12)]
    interval = of(samples)
    assert interval.se == pytest.approx(1e300 / sqrt(11))
    both = stratified(0.0, [interval, interval])
    assert both is not None and both.se == pytest.approx(1e300 / sqrt(22))


# --- several domains -----------------------------------------------------------------------------


def part(given_: Any) -> Interval:
    if isinstance(given_, str):
        return Interval.model_validate({"method": "clustered", "clusters": 11, "flags": [given_]})
    se, df = given_
    flags = ("few_clusters",) if df < 9 else ()
    return Interval(method="clustered", low=0, high=1, half=1, se=se, df=df, clusters=df + 1, flags=flags)


@pytest.mark.parametrize("case", STRATA, ids=lambda case: case["id"])
def test_means_of_parts_worked_by_hand(case: dict[str, Any]) -> None:
    parts = [part(one) for one in case["parts"]]
    interval = stratified(50.0, parts)
    assert interval is not None
    assert interval.clusters == sum(one.clusters for one in parts)
    assert list(interval.flags) == case["flags"]
    if "variance" not in case:
        assert [getattr(interval, name) for name in NUMBERS] == [None] * 5
        return
    assert interval.se == pytest.approx(sqrt(number(case["variance"])), rel=1e-9)
    assert interval.df == pytest.approx(number(case["df"]), rel=1e-9)


def test_a_part_that_is_missing_leaves_nothing() -> None:
    known = part([3, 11])
    assert stratified(None, [known]) is None
    assert stratified(1.0, [known, None]) is None
    assert stratified(1.0, []) is None


@pytest.mark.parametrize("seed", range(5))
def test_two_strata_of_single_samples_are_welch(seed: int) -> None:
    random_ = random.Random(seed)
    one = [random_.gauss(50, 10) for _ in range(7 + seed)]
    other = [random_.gauss(60, 30) for _ in range(15)]
    parts = [of([(str(n), value) for n, value in enumerate(some)]) for some in (one, other)]
    interval = stratified(0.0, parts)
    assert interval is not None and interval.half is not None
    # The half of a difference has the spread of the mean of both.
    bounds = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert 2 * interval.half == pytest.approx((bounds.high - bounds.low) / 2, rel=1e-8)
    assert interval.df == pytest.approx(stats.ttest_ind(one, other, equal_var=False).df, rel=1e-10)


def test_a_mean_over_samples_weighs_each_domain_by_its_samples() -> None:
    one, other = drawn(1), drawn(2, clusters=20)
    count = len(one) + len(other)
    parts = [of(one), of(other)]
    expected = stratified(3.0, parts, [len(one) / count, len(other) / count])
    assert of_strata(3.0, [one, [], other]) == expected
    alone = of_strata(mean_of(one), [one])
    assert alone == of(one)


# --- judges --------------------------------------------------------------------------------------


def refs_of(domain: str, samples: Sequence[Sampled]) -> list[SampleRef]:
    return [
        SampleRef(
            id=f"{domain}/{n}/1", domain=domain, row_id=n, turn_idx=1, total_turns=1, cluster=cluster, task_key="k",
            row_hash="0" * 64, line=1, offset=0, length=1, context_chars=1,
        )
        for n, (cluster, _) in enumerate(samples)
    ]  # fmt: skip


def test_a_judge_has_intervals_of_its_totals_under_both_policies() -> None:
    samples = {"os": drawn(3), "swe": drawn(4)}
    refs = {domain: refs_of(domain, some) for domain, some in samples.items()}
    scores = {
        ref.id: value
        for domain, some in samples.items()
        for ref, (_, value) in zip(refs[domain], some, strict=True)
    }
    failed = {"os/0/1", "os/5/1", "swe/2/1"}
    values = {
        name: dict.fromkeys(("total", *DIMENSIONS), score / 25 + 1)
        for name, score in scores.items()
        if name not in failed | {"swe/1/1"}
    }
    blocks = {domain: block(some, values, pending={"swe/1/1"}) for domain, some in refs.items()}
    for domain, one in blocks.items():
        asked = [ref for ref in refs[domain] if ref.id != "swe/1/1"]
        scored = [(ref.cluster, scores[ref.id]) for ref in asked if ref.id in values]
        zeros = [(ref.cluster, scores[ref.id] if ref.id in values else 0.0) for ref in asked]
        for interval, some, mean in (
            (one.intervals.exclude, scored, one.exclude["total"]),
            (one.intervals.floor, zeros, one.floor["total"]),
        ):
            assert interval is not None and interval.low is not None and interval.high is not None
            assert mean == pytest.approx(mean_of(some))
            assert interval.se == pytest.approx(of(some).se)
            assert (interval.low + interval.high) / 2 == pytest.approx(mean)
    whole = macro_intervals(blocks.values())
    pairs = [(one.intervals.exclude, one.intervals.floor) for one in blocks.values()]
    macro_floor = sum(one.floor["total"] or 0 for one in blocks.values()) / 2
    assert whole.floor == stratified(macro_floor, [floor for _, floor in pairs])
    every = block([ref for some in refs.values() for ref in some], values, pending={"swe/1/1"})
    shares = [one.scored / every.scored for one in blocks.values()]
    assert every.intervals.exclude == stratified(every.exclude["total"], [some for some, _ in pairs], shares)


def test_a_dimension_has_the_interval_of_a_total_that_is_it_alone() -> None:
    random_ = random.Random(5)
    refs = [one for name in ("swe", "os") for one in refs_of(name, [(f"c{n // 3}", 0.0) for n in range(24)])]
    rows = {
        ref.id: {name: float(random_.randint(1, 5)) for name in (*DIMENSIONS, "total")}
        for ref in refs
        if random_.random() < 0.8
    }
    pending = {refs[0].id}
    rows.pop(refs[0].id, None)

    def blocks(values: dict[str, dict[str, float]]) -> list[Block]:
        return [block([ref for ref in refs if ref.domain == name], values, pending) for name in ("swe", "os")]

    for name in DIMENSIONS:
        alone = {ref_id: row | {"total": row[name]} for ref_id, row in rows.items()}
        found, expected = blocks(rows), blocks(alone)
        assert [one.dimension_intervals[name] for one in found] == [one.intervals for one in expected]
        assert macro_dimension_intervals(found)[name] == macro_intervals(expected)
        assert found[0].dimension_intervals[name].floor != found[0].intervals.floor


def test_a_domain_without_a_score_has_no_interval_and_leaves_none_overall() -> None:
    refs = {domain: refs_of(domain, drawn(5)) for domain in ("os", "swe")}
    values = {ref.id: dict.fromkeys(("total", *DIMENSIONS), 1.0 + n % 3) for n, ref in enumerate(refs["os"])}
    blocks = [block(some, values, pending=()) for some in refs.values()]
    assert blocks[1].intervals.exclude is None
    assert blocks[1].intervals.floor is None
    assert macro_intervals(blocks).exclude is None
    assert blocks[0].intervals.exclude is not None
