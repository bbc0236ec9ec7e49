"""The sequential test of audits: what it decides, what it may not, and how often it is wrong, by simulation.

A simulated judge draws five integers about a quality of the sample, so that both verdicts on a sample are draws of one
distribution. Claims are inflated by 5 points: all alike, or a few of them raised to the top until the mean is up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.stats.sequential import ALPHA, BETA, MARGIN, PairedTest

SAMPLES = 2170
differences = st.lists(st.floats(-100, 100), max_size=60)


def decided(test: PairedTest, values: Sequence[float]) -> str:
    """The decision after as many differences as it takes."""
    for value in values:
        if (decision := test.add(value)) is not None:
            return decision
    return "undecided"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0] * 200, "accepted"),
        ([-MARGIN] * 200, "rejected"),
        ([-40.0] * 12, "rejected"),
        ([8.0, -8.0] * 100, "accepted"),
        ([20.0] * 40, "accepted"),
        ([0.0] * 10, "undecided"),
        ([], "undecided"),
    ],
)
def test_decisions(values: list[float], expected: str) -> None:
    assert decided(PairedTest(), values) == expected


@given(differences)
def test_capitals_are_positive_whatever_comes(values: list[float]) -> None:
    test = PairedTest()
    for value in values:
        test.add(value)
        assert test.against > 0 and test.on_its_side > 0
        assert math.isfinite(test.against) and math.isfinite(test.on_its_side)
    assert test.count == len(values)
    assert test.mean is None or -100.000001 <= test.mean <= 100.000001


@given(st.lists(st.sampled_from([-1.0, 1.0]), min_size=1, max_size=9), st.floats(0.5, 99))
def test_a_fair_game_stays_fair(signs: list[float], size: float) -> None:
    """Over all ways in which honest differences can fall, the capital against them is 1 on average."""
    rounds = len(signs)
    total = 0.0
    for way in range(2**rounds):
        test = PairedTest()
        for place in range(rounds):
            test.add(size if way >> place & 1 else -size)
        total += test.against
    assert total / 2**rounds == pytest.approx(1.0)


@pytest.mark.parametrize("difference", [100.1, -101.0, math.nan, math.inf])
def test_what_is_no_difference_of_scores(difference: float) -> None:
    with pytest.raises(ValueError, match="scores are 0 to 100"):
        PairedTest().add(difference)


# --- how often it is wrong --------------------------------------------------------------------------------------


def verdict(rng: Random, quality: float, noise: float) -> float:
    """One verdict's score, 0-100: the mean of five integers 1-5."""
    values = [min(5, max(1, round(rng.gauss(quality, noise)))) for _ in range(5)]
    return 25 * (sum(values) / 5 - 1)


def claimed(rng: Random, qualities: Sequence[float], noise: float, forged: str) -> list[float]:
    """Stored scores, honest or with a mean that is 5 points too high."""
    scores = [verdict(rng, quality, noise) for quality in qualities]
    missing = MARGIN * len(scores)
    if forged == "all alike":
        while missing > 1e-6:  # nobody gets more than 100
            free = [place for place, score in enumerate(scores) if score < 100]
            share = missing / len(free)
            for place in free:
                step = min(share, 100 - scores[place])
                scores[place] += step
                missing -= step
    elif forged == "a few":
        order = list(range(len(scores)))
        rng.shuffle(order)
        for place in order:
            if missing <= 0:
                break
            missing -= 100 - scores[place]
            scores[place] = 100.0
    return scores


def audits(forged: str, noise: float, most: int, rounds: int = 400) -> tuple[dict[str, float], float]:
    """Shares of decisions of audits of at most `most` samples, and how many samples they took on average."""
    rng = Random(f"{forged}/{noise}/{most}")
    found: Counter[str] = Counter()
    asked = 0
    for number in range(rounds):
        if number % 20 == 0:
            qualities = [rng.uniform(1.5, 4.8) for _ in range(SAMPLES)]
            scores = claimed(rng, qualities, noise, forged)
        test = PairedTest()
        places = rng.sample(range(SAMPLES), most)
        found[decided(test, [verdict(rng, qualities[place], noise) - scores[place] for place in places])] += 1
        asked += test.count
    return {name: count / rounds for name, count in found.items()}, asked / rounds


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 0.8, 1.3])
def test_honest_claims_are_seldom_rejected(noise: float) -> None:
    shares, asked = audits("", noise, 300)
    assert shares.get("rejected", 0) <= ALPHA
    assert shares["accepted"] >= 0.95
    assert asked < 150


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 0.8, 1.3])
@pytest.mark.parametrize(("forged", "power"), [("all alike", 0.95), ("a few", 0.85)])
def test_claims_that_are_five_points_too_high_are_found(noise: float, forged: str, power: float) -> None:
    shares, asked = audits(forged, noise, 300)
    assert shares.get("accepted", 0) <= BETA
    assert shares["rejected"] >= power
    assert asked < 200
