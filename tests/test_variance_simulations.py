"""What estimated shares of variance, and the standard errors made of them, are worth (slow, seeded).

One draw of scores tells shares roughly: their averages over many draws must be right, and how far single draws
scatter is measured here, because the documentation names it.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from agentworldbench.stats.variance import (
    Component,
    Components,
    Design,
    Score,
    analysed,
    predicted_se,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SHARES = {"trajectory": 0.35, "turn": 0.25, "generation": 0.25, "rest": 0.15}
DRAWS = 200
AS_DRAWN = Design(trajectories=100, turns=2, epochs=2, judges=1, repeats=2)


def draw(random: np.random.Generator, design: Design, panel: dict[str, float] | None = None) -> list[Score]:
    """Scores whose variance is 400, divided as `SHARES` say; `panel` adds variances of effects of judges."""
    n, t, e, j, r = (
        design.trajectories, int(design.turns), design.epochs, design.judges, design.repeats,
    )  # fmt: skip
    deviation = {name: 20 * sqrt(share) for name, share in (SHARES | (panel or {})).items()}
    found = 50 + deviation["trajectory"] * random.normal(size=(n, 1, 1, 1, 1))
    found = found + deviation["turn"] * random.normal(size=(n, t, 1, 1, 1))
    found = found + deviation["generation"] * random.normal(size=(n, t, e, 1, 1))
    found = found + deviation.get("judge", 0) * random.normal(size=(1, 1, 1, j, 1))
    found = found + deviation.get("judge_by_turn", 0) * random.normal(size=(n, t, 1, j, 1))
    found = found + deviation["rest"] * random.normal(size=(n, t, e, j, r))
    return [
        Score(f"t{place[0]}", f"s{place[1]}", place[2], f"j{place[3]}", float(value))
        for place, value in np.ndenumerate(found)
    ]


def told_se(found: Components, design: Design) -> float:
    errors = predicted_se(found, design)
    assert errors is not None and errors[0] == errors[1]
    return errors[0]


def mean_of(scores: list[Score]) -> float:
    return float(np.mean([one.value for one in scores]))


def shares_of(found: Components) -> list[float]:
    return [next(part.share for part in found.parts if name in part.names) for name in SHARES]


def holds(part: Component, true: float) -> bool:
    interval = part.interval
    assert interval.low is not None and interval.high is not None
    return interval.low <= true <= interval.high


def test_shares_and_their_intervals_and_the_standard_error() -> None:
    """100 trajectories x 2 turns x 2 generations x 2 repeats of one judge."""
    random = np.random.default_rng(1)
    truth = list(SHARES.values())
    shares, covered, predicted = [], [], []
    for _ in range(DRAWS):
        scores = draw(random, AS_DRAWN)
        found = analysed("simulated", scores).components
        shares.append(shares_of(found))
        covered.append([holds(part, true) for part, true in zip(found.parts, truth, strict=True)])
        predicted.append(told_se(found, AS_DRAWN))
    average, scatter = np.mean(shares, axis=0), np.std(shares, axis=0)
    assert average == pytest.approx(truth, abs=0.05)
    assert average == pytest.approx(truth, abs=0.015), (
        "far nearer, in fact: what is left is the noise of 200 draws"
    )
    assert scatter == pytest.approx([0.07, 0.06, 0.04, 0.02], abs=0.01), "as documented"
    assert np.mean(covered, axis=0).min() >= 0.89
    assert np.mean(covered, axis=0).max() <= 0.99
    true_se = 20 * sqrt(0.35 / 100 + 0.25 / 200 + 0.25 / 400 + 0.15 / 800)
    assert np.mean(predicted) == pytest.approx(true_se, rel=0.03)


@pytest.mark.parametrize(
    "other",
    [Design(100, 2, 1, 1, 1), Design(50, 4, 1, 1, 2), Design(25, 2, 4, 1, 1), Design(200, 1, 1, 1, 1)],
    ids=["asked once", "fewer trajectories of more turns", "few, asked often", "one turn of many"],
)
def test_the_standard_error_of_another_design(other: Design) -> None:
    """Predicted from the first design, seen in draws of the other."""
    random = np.random.default_rng(2)
    predicted = [told_se(analysed("simulated", draw(random, AS_DRAWN)).components, other) for _ in range(50)]
    seen = np.std([mean_of(draw(random, other)) for _ in range(1500)])
    assert np.mean(predicted) == pytest.approx(seen, rel=0.08)


def test_a_panel_of_judges_and_verdicts_that_are_missing() -> None:
    """Three judges with habits of their own, and every fifth verdict missing."""
    panel = {"judge": 0.1, "judge_by_turn": 0.15}
    random = np.random.default_rng(3)
    names = ("trajectory", "turn", "generation", "judge", "judge_by_turn", "judge_by_generation", "rest")
    truth = dict.fromkeys(names, 0.0) | SHARES | panel
    design = Design(trajectories=60, turns=2, epochs=2, judges=3, repeats=2)
    found = []
    for _ in range(150):
        scores = [one for one in draw(random, design, panel) if random.random() < 0.8]
        parts = analysed("simulated", scores).components.parts
        assert tuple(part.names[0] for part in parts) == names
        found.append([part.estimate / 400 for part in parts])
    # Two degrees of freedom tell next to nothing of judges; in the mean they are right nevertheless.
    errors = np.std(found, axis=0) / sqrt(len(found))
    away = abs(np.mean(found, axis=0) - np.array([truth[name] for name in names]))
    assert (away < 3.5 * errors).all()
    assert np.std(found, axis=0)[3] > 0.06
