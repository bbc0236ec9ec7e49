"""How often intervals of agreement hold, and kappa against statsmodels (slow, seeded)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import cohens_kappa

from agentworldbench.stats.agreement import MEASURES, TOTALS, Rated, agreement, weighted_kappa

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DRAWS = 300
APART = abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))


@pytest.mark.parametrize("seed", range(30))
def test_kappa_is_that_of_statsmodels(seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 9, size=(5, 5)) + np.diag(range(5))
    for weights, name in ((APART, "linear"), (APART**2, "quadratic")):
        expected = cohens_kappa(table, wt=name, return_results=False)
        assert float(weighted_kappa(table.astype(float), weights)) == pytest.approx(expected, abs=1e-12)


def draw(random: np.random.Generator, clusters: int) -> list[Rated]:
    """Two judges, one milder than the other, and trajectories of 1 to 6 predictions that are alike."""
    found = []
    for cluster in range(clusters):
        shared = random.normal(3, 1)
        quality = random.normal(shared, 0.6, size=(random.integers(1, 7), 1))
        seen: NDArray[np.float64] = quality + random.normal([0, 0.4], 0.6, size=(len(quality), 2))
        for first, second in seen.round().clip(1, 5):
            found.append(Rated(str(cluster), {"a": int(first), "b": int(second)}))
    return found


@pytest.mark.parametrize(
    ("clusters", "least", "missing"), [(8, 0.86, 0.45), (20, 0.89, 0.02), (60, 0.90, 0.0)]
)
def test_intervals_cover_what_endless_trajectories_would_give(
    clusters: int, least: float, missing: float
) -> None:
    """Of 8 trajectories a draw can leave a judge with one value alone: then kappa has no interval."""
    large = agreement("truth", draw(np.random.default_rng(1), 8000))
    truth = {name: getattr(large, name).value for name in MEASURES}
    random = np.random.default_rng(2)
    held = dict.fromkeys(MEASURES, 0)
    none = dict.fromkeys(MEASURES, 0)
    for _ in range(DRAWS):
        found = agreement("simulated", draw(random, clusters))
        for name in MEASURES:
            interval = getattr(found, name).interval
            if interval is None or interval.low is None:
                none[name] += 1
            else:
                held[name] += interval.low <= truth[name] <= interval.high
    shares = {name: held[name] / (DRAWS - none[name]) for name in MEASURES}
    assert min(shares.values()) >= least, shares
    assert max(shares.values()) <= 0.99, shares
    assert max(none.values()) <= missing * DRAWS, none


def draw_totals(random: np.random.Generator, clusters: int) -> list[Rated]:
    """The sum of five grades from each of three repeats of one judge."""
    found = []
    for cluster in range(clusters):
        shared = random.normal(3, 1)
        for _ in range(random.integers(1, 7)):
            quality = random.normal(shared, 0.6)
            grades = random.normal(quality, 0.8, size=(3, 5)).round().clip(1, 5).sum(axis=1)
            found.append(Rated(str(cluster), {str(n): int(value) for n, value in enumerate(grades)}))
    return found


def test_intervals_of_totals_of_repeats_cover_too() -> None:
    large = agreement("truth", draw_totals(np.random.default_rng(3), 4000), TOTALS, alike=True)
    truth = {name: getattr(large, name).value for name in MEASURES}
    random, draws = np.random.default_rng(4), 150
    held = dict.fromkeys(MEASURES, 0)
    for _ in range(draws):
        found = agreement("simulated", draw_totals(random, 30), TOTALS, alike=True)
        for name in MEASURES:
            interval = getattr(found, name).interval
            held[name] += interval.low <= truth[name] <= interval.high
    shares = {name: count / draws for name, count in held.items()}
    assert min(shares.values()) >= 0.89, shares
    assert max(shares.values()) <= 0.99, shares
