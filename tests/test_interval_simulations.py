"""What intervals cover when trajectories are drawn again and again, by simulation (slow, seeded).

An interval of 95 % must hold the true mean in about 95 of 100 draws. Samples of one trajectory resemble
each other, so one that takes them for independent holds it far less often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from agentworldbench.stats.bootstrap import resample_ratio, resampled_interval
from agentworldbench.stats.intervals import Interval, Sampled, clustered, of_strata, stratified

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DRAWS = 2000
CORRELATION = 0.5


def draw(random: np.random.Generator, sizes: Iterable[int], mean: float = 50.0) -> list[Sampled]:
    """Clusters with standard deviation 20 and the given correlation between samples of one cluster."""
    found = []
    for name, size in enumerate(sizes):
        values = mean + 20 * (
            np.sqrt(CORRELATION) * random.normal() + np.sqrt(1 - CORRELATION) * random.normal(size=size)
        )
        found += [(str(name), float(value)) for value in values]
    return found


def mean_of(samples: list[Sampled]) -> float:
    return float(np.mean([value for _, value in samples]))


def covered(interval: Interval | None, truth: float) -> bool:
    assert interval is not None and interval.low is not None and interval.high is not None
    return interval.low <= truth <= interval.high


def share(draws: int, one: Callable[[np.random.Generator], bool], seed: int) -> float:
    random = np.random.default_rng(seed)
    return sum(one(random) for _ in range(draws)) / draws


def test_population_intervals_cover_and_naive_ones_do_not() -> None:
    """40 clusters of 5 with an intra-class correlation of 0.5."""
    random = np.random.default_rng(1)
    population = naive = 0
    for _ in range(DRAWS):
        samples = draw(random, [5] * 40)
        mean = mean_of(samples)
        alone = [(str(n), value) for n, (_, value) in enumerate(samples)]
        population += covered(clustered(mean, samples), 50)
        naive += covered(clustered(mean, alone), 50)
    assert 0.93 <= population / DRAWS <= 0.97
    assert naive / DRAWS < 0.85


@pytest.mark.parametrize(("clusters", "least"), [(3, 0.92), (6, 0.92), (10, 0.93), (100, 0.93)])
def test_few_clusters_are_covered_too(clusters: int, least: float) -> None:
    """Equal sizes; the t quantile makes up for how little is known of the variance."""

    def one(random: np.random.Generator) -> bool:
        samples = draw(random, [5] * clusters)
        return covered(clustered(mean_of(samples), samples), 50)

    assert least <= share(DRAWS, one, seed=2) <= 0.97


def test_clusters_of_unequal_size_cost_a_little() -> None:
    def one(random: np.random.Generator) -> bool:
        samples = draw(random, random.integers(1, 12, size=25))
        return covered(clustered(mean_of(samples), samples), 50)

    assert 0.91 <= share(DRAWS, one, seed=3) <= 0.97


def test_means_of_seven_domains() -> None:
    """Domains of unlike means, sizes and numbers of clusters, as macro and micro average them."""
    clusters = (8, 12, 20, 30, 40, 15, 10)
    means = (20, 35, 50, 55, 60, 70, 90)
    truth = sum(means) / 7
    random = np.random.default_rng(4)
    macro = micro = 0
    for _ in range(DRAWS // 2):
        strata = [draw(random, [5] * count, mean) for count, mean in zip(clusters, means, strict=True)]
        parts = [clustered(mean_of(samples), samples) for samples in strata]
        macro += covered(stratified(sum(map(mean_of, strata)) / 7, parts), truth)
        pooled = [one for samples in strata for one in samples]
        weighed = sum(count * mean for count, mean in zip(clusters, means, strict=True)) / sum(clusters)
        micro += covered(of_strata(mean_of(pooled), strata), weighed)
    assert 0.93 <= macro / (DRAWS // 2) <= 0.97
    assert 0.93 <= micro / (DRAWS // 2) <= 0.97


def pairs(random: np.random.Generator, clusters: int) -> list[tuple[str, float, float]]:
    """Rule scores of a model and of copying, which have trajectory and sample in common."""
    found = []
    for name in range(clusters):
        shared = random.normal()
        own: NDArray[np.float64] = random.normal(size=(random.integers(1, 9), 2))
        for first, second in own:
            copied = 1 / (1 + np.exp(-(0.8 * shared + 0.6 * first)))
            score = 1 / (1 + np.exp(-(0.7 * shared + 0.4 * first + 0.6 * second + 0.8)))
            found.append((str(name), float(score - copied), float(1 - copied)))
    return found


@pytest.mark.parametrize(("clusters", "least"), [(6, 0.88), (12, 0.91), (40, 0.92)])
def test_skill(clusters: int, least: float) -> None:
    large = pairs(np.random.default_rng(5), 40_000)
    truth = sum(numerator for _, numerator, _ in large) / sum(denominator for *_, denominator in large)

    def one(random: np.random.Generator) -> bool:
        return covered(resampled_interval([resample_ratio("os", pairs(random, clusters))]), truth)

    assert least <= share(DRAWS // 2, one, seed=6) <= 0.98
