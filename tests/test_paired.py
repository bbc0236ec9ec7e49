"""Differences of two runs on shared samples: tests by hand, scipy and statsmodels as oracles, symmetry."""

from __future__ import annotations

import random
from math import sqrt
from statistics import stdev

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from agentworldbench.stats.intervals import clustered
from agentworldbench.stats.paired import EXACT, Pair, detectable, differences, holm, sign_flip


def pairs(seed: int, clusters: int, size: int = 3, shift: float = 3.0) -> list[Pair]:
    random_ = random.Random(seed)
    found = []
    for cluster in range(clusters):
        ease, gain = random_.gauss(50, 20), random_.gauss(shift, 5)
        for n in range(size):
            first = random_.gauss(ease, 5)
            found.append(Pair(f"s{cluster}/{n}", f"c{cluster}", first, random_.gauss(first + gain, 5)))
    return found


def swapped(some: list[Pair]) -> list[Pair]:
    return [Pair(one.sample_id, one.cluster, one.second, one.first) for one in some]


BY_HAND = {
    "all one way": ([1, 2, 3], 2 / 8),
    "two": ([3, 1], 2 / 4),
    "one cluster tells nothing": ([5], 1),
    "sums of 3 and 1, seen is 1": ([1, 1, -1], 1),
    "one against": ([4, 3, -1], 4 / 8),
    "clusters without a difference": ([0, 2, 0, 3, 4, 0], 2 / 8),
    "no difference at all": ([0, 0, 0], 1),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_sign_flips_by_hand(name: str) -> None:
    parts, p = BY_HAND[name]
    assert sign_flip("os", parts) == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_sign_flips_are_those_of_scipy(seed: int) -> None:
    random_ = random.Random(seed)
    parts = [random_.gauss(0.4, 1) for _ in range(9)]
    found = stats.permutation_test(
        (np.array(parts),), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip("os", parts) == pytest.approx(found.pvalue, abs=1e-12)


def test_random_flips_are_near_all_flips() -> None:
    random_ = random.Random(3)
    parts = np.array([random_.gauss(0.35, 1) for _ in range(EXACT + 2)])
    signs = 2 * (np.arange(2 ** len(parts))[:, None] >> np.arange(len(parts)) & 1) - 1
    exact = (abs(signs @ parts) >= abs(parts.sum()) - 1e-9).mean()
    assert 0.01 < exact < 0.5
    assert sign_flip("os", list(parts)) == pytest.approx(exact, abs=4 * sqrt(exact * (1 - exact) / 10_000))
    assert sign_flip("os", list(parts)) == sign_flip("os", list(parts)) != sign_flip("swe", list(parts))
    assert sign_flip("os", [1.0] * 40) == pytest.approx(1 / 10_001), "never 0"


HOLM = [[0.01, 0.04, 0.03, 0.005], [0.5, 0.6, 0.9], [0.02, 0.02, 0.02], [0.0, 1.0, 0.3, 0.0004, 0.04, 0.04]]


@pytest.mark.parametrize("ps", HOLM)
def test_holm_is_that_of_statsmodels(ps: list[float]) -> None:
    assert holm(ps) == pytest.approx(list(multipletests(ps, method="holm")[1]), abs=1e-12)


def test_holm_by_hand_and_without_what_is_missing() -> None:
    assert holm([0.03, None, 0.01]) == pytest.approx([0.03, None, 0.02])
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([None]) == [None]
    assert holm([]) == []


def test_single_samples_are_the_paired_t_test() -> None:
    some = pairs(1, clusters=20, size=1)
    row = differences({"os": some}).domains["os"]
    bounds = stats.ttest_rel([one.second for one in some], [one.first for one in some]).confidence_interval(
        0.95
    )
    assert row.interval is not None
    assert (row.interval.low, row.interval.high) == pytest.approx((bounds.low, bounds.high), rel=1e-8)
    assert row.difference == pytest.approx((bounds.low + bounds.high) / 2)
    spread = stdev(one.difference for one in some)
    needed = TTestPower().solve_power(nobs=20, power=0.8, alpha=0.05)
    assert row.detectable == pytest.approx(needed * spread, rel=0.02)


def test_what_both_runs_share_drops_out() -> None:
    """Trajectories differ by 20 points, gains by 5: the difference is known better than the scores."""
    some = pairs(2, clusters=40)
    row = differences({"os": some}).domains["os"]
    alone = clustered(row.second, [(one.cluster, one.second) for one in some])
    assert row.interval is not None and row.interval.half is not None
    assert alone is not None and alone.half is not None
    assert row.interval.half < alone.half / 2
    assert row.p is not None and row.p < 0.05


def test_rows_and_averages() -> None:
    domains = {"os": pairs(3, 12), "swe": pairs(4, 30, shift=-2), "web": pairs(5, 8, size=1)}
    found = differences(domains)
    for domain, some in domains.items():
        row = found.domains[domain]
        assert (row.samples, row.clusters) == (len(some), len({one.cluster for one in some}))
        assert row.difference == pytest.approx((row.second or 0) - (row.first or 0))
        assert row.better == sum(one.second > one.first for one in some)
        assert row.better + row.equal + row.worse == row.samples
    macro, micro = found.macro, found.micro
    assert macro.difference == pytest.approx(sum(row.difference or 0 for row in found.domains.values()) / 3)
    every = [one.difference for some in domains.values() for one in some]
    assert micro.difference == pytest.approx(sum(every) / len(every))
    assert macro.samples == micro.samples == len(every)
    assert (macro.p is None, micro.p, micro.p_holm) == (False, None, None)
    ps = [*(row.p for row in found.domains.values()), macro.p]
    corrected = [*(row.p_holm for row in found.domains.values()), macro.p_holm]
    assert corrected == holm(ps)


def test_the_other_way_round_is_the_same_with_the_other_sign() -> None:
    domains = {"os": pairs(6, 12), "swe": pairs(7, 25)}
    found = differences(domains)
    other = differences({domain: swapped(some) for domain, some in domains.items()})
    for one, two in (
        (found.macro, other.macro),
        (found.micro, other.micro),
        (found.domains["os"], other.domains["os"]),
    ):
        assert two.difference == pytest.approx(-(one.difference or 0))
        assert (two.p, two.p_holm) == (one.p, one.p_holm)
        assert two.detectable == pytest.approx(one.detectable)
        assert (two.better, two.equal, two.worse) == (one.worse, one.equal, one.better)
        assert one.interval is not None and two.interval is not None
        assert one.interval.low is not None and two.interval.high == pytest.approx(-one.interval.low)


def test_equal_runs_have_no_interval_and_no_small_p() -> None:
    some = [Pair(one.sample_id, one.cluster, one.first, one.first) for one in pairs(8, 12)]
    row = differences({"os": some}).domains["os"]
    assert (row.difference, row.p, row.detectable, row.equal) == (0, 1, None, len(some))
    assert row.interval is not None and row.interval.flags == ("no_spread",)
    assert detectable(None) is None


def test_a_domain_without_a_shared_sample_leaves_no_overall() -> None:
    found = differences({"os": pairs(9, 12), "swe": []})
    row = found.domains["swe"]
    assert (row.samples, row.difference, row.interval, row.p) == (0, None, None, None)
    assert (found.macro.difference, found.macro.interval, found.macro.p) == (None, None, None)
    assert found.micro.difference == found.domains["os"].difference
    assert found.domains["os"].p_holm == found.domains["os"].p, "one test needs no correction"
