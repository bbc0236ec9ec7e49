"""What tests of differences, ranks and bounds are worth when trajectories are drawn again and again (slow, seeded).

40 clusters of 5 samples with an intra-class correlation of 0.5, as in `test_interval_simulations.py`. The test must
call equal models different in 5 of 100 draws, and see what a test that forgets the pairs does not.
"""

from __future__ import annotations

from math import hypot

import numpy as np
import pytest

from agentworldbench.stats.against import against
from agentworldbench.stats.intervals import clustered, satterthwaite
from agentworldbench.stats.paired import Pair, differences
from agentworldbench.stats.ranking import SharedSample, all_pairs, ranks_of
from agentworldbench.stats.student import student_t

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DRAWS = 2000
CORRELATION = 0.5
CLUSTERS, SIZE = 40, 5


def drawn(
    random: np.random.Generator, runs: int, own: float, shared: float, clusters: int = CLUSTERS
) -> np.ndarray:
    """Scores by cluster, sample and run: what all runs share (standard deviation `shared`) and what each has of its
    own (`own`), both with the given correlation within a cluster."""

    def parts(size: tuple[int, int, int]) -> np.ndarray:
        one = random.normal(size=(size[0], 1, size[2]))
        return np.sqrt(CORRELATION) * one + np.sqrt(1 - CORRELATION) * random.normal(size=size)

    return 50 + shared * parts((clusters, SIZE, 1)) + own * parts((clusters, SIZE, runs))


def pairs(scores: np.ndarray) -> list[Pair]:
    return [
        Pair(f"{cluster}/{n}", str(cluster), float(first), float(second), str(cluster))
        for cluster, rows in enumerate(scores)
        for n, (first, second) in enumerate(rows)
    ]


def unpaired_tells(some: list[Pair]) -> bool:
    """The test of two means that are taken for independent."""
    means = [float(np.mean([getattr(one, name) for one in some])) for name in ("first", "second")]
    known = [
        clustered(mean, [(one.cluster, getattr(one, name)) for one in some])
        for mean, name in zip(means, ("first", "second"), strict=True)
    ]
    terms = [
        (one.se, one.df) for one in known if one is not None and one.se is not None and one.df is not None
    ]
    assert len(terms) == 2
    return abs(means[1] - means[0]) > student_t(0.975, satterthwaite(terms)) * hypot(*(se for se, _ in terms))


def test_equal_models_are_called_different_in_5_of_100_draws() -> None:
    random = np.random.default_rng(11)
    found = held = 0
    for _ in range(DRAWS):
        row = differences({"os": pairs(drawn(random, 2, own=10, shared=20))}).domains["os"]
        assert row.p is not None and row.interval is not None
        assert row.interval.low is not None and row.interval.high is not None
        found += row.p < 0.05
        held += row.interval.low <= 0 <= row.interval.high
    assert 0.04 <= found / DRAWS <= 0.06
    assert 0.93 <= held / DRAWS <= 0.97


def test_a_difference_is_found_that_the_unpaired_test_misses() -> None:
    """4 points, beside trajectories that differ by 20: the pairs drop what both runs share."""
    random = np.random.default_rng(12)
    draws, paired, unpaired = 300, 0, 0
    for _ in range(draws):
        scores = drawn(random, 2, own=5, shared=20)
        scores[:, :, 1] += 4
        some = pairs(scores)
        row = differences({"os": some}).domains["os"]
        assert row.p is not None
        paired += row.p < 0.05
        unpaired += unpaired_tells(some)
    assert paired / draws > 0.95
    assert unpaired / draws < 0.2


def test_the_smallest_detectable_difference_is_found_in_80_of_100_draws() -> None:
    random = np.random.default_rng(13)
    draws, found = 600, 0
    row = differences({"os": pairs(drawn(random, 2, own=10, shared=20, clusters=4000))}).domains["os"]
    assert row.interval is not None and row.interval.se is not None
    se, df = row.interval.se * np.sqrt(4000 / CLUSTERS), CLUSTERS - 1
    shift = float((student_t(0.975, df) + student_t(0.8, df)) * se)
    for _ in range(draws):
        scores = drawn(random, 2, own=10, shared=20)
        scores[:, :, 1] += shift
        p = differences({"os": pairs(scores)}).domains["os"].p
        assert p is not None
        found += p < 0.05
    assert 0.75 <= found / draws <= 0.85


def ranked(scores: np.ndarray) -> list[int | None]:
    samples = [
        SharedSample(f"{cluster}/{n}", str(cluster), str(cluster), tuple(map(float, row)))
        for cluster, rows in enumerate(scores)
        for n, row in enumerate(rows)
    ]
    runs = scores.shape[2]
    return ranks_of(all_pairs({"os": samples}, runs), range(runs), [True] * runs)


def test_equal_models_share_rank_1() -> None:
    """Of ten pairs not one is told from 0 in at least 95 of 100 draws, as Holm promises."""
    random = np.random.default_rng(14)
    draws = 200
    apart = sum(ranked(drawn(random, 5, own=10, shared=20, clusters=16)) != [1] * 5 for _ in range(draws))
    assert apart / draws <= 0.08


def test_what_is_better_by_far_stands_alone() -> None:
    random = np.random.default_rng(15)
    for _ in range(20):
        scores = drawn(random, 4, own=5, shared=20)
        scores[:, :, 2] += 10
        assert ranked(scores)[2] == 1
        assert [rank for place, rank in enumerate(ranked(scores)) if place != 2] == [2, 2, 2]


@pytest.mark.parametrize("shared", [0.0, 10.0, 30.0])
def test_bounds_against_a_published_number(shared: float) -> None:
    """With independent draws the outer bounds hold the true difference in 95 of 100; with what two models share
    they hold it more often, so that what they tell from 0 is told."""
    random = np.random.default_rng(16)
    held = 0
    for _ in range(DRAWS):
        scores = drawn(random, 2, own=10, shared=shared)
        mean, published = (float(one) for one in scores.mean(axis=(0, 1)))
        some = [(str(cluster), float(value)) for cluster, rows in enumerate(scores) for value in rows[:, 0]]
        found = against(mean, clustered(mean, some), published)
        assert found.independent is not None
        held += found.independent[0] <= 0 <= found.independent[1]
    assert held / DRAWS >= 0.935
    assert shared or held / DRAWS <= 0.965
