"""Half widths that a pilot predicts, against those that simulated runs have (slow, seeded).

Three domains that vary in unlike ways. Pilots are analysed as `awb estimate --pilot` does it; runs of other mixes are
drawn, and their intervals made by the functions behind `results.json`.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from agentworldbench.stats.epochs import macro_rerun, rerun
from agentworldbench.stats.intervals import clustered, stratified
from agentworldbench.stats.mixes import predicted_population, predicted_rerun
from agentworldbench.stats.variance import Components, Design, Score, analysed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SHARES = {"swe": (0.35, 0.25, 0.25, 0.15), "web": (0.1, 0.4, 0.3, 0.2), "os": (0.5, 0.1, 0.1, 0.3)}
"""Trajectory, turn, generation, verdict; the whole variance is 400."""
Numbers = tuple[int, int, int, int]
"""Trajectories, turns of each, epochs, repeats."""
MIXES: tuple[Numbers, ...] = ((40, 5, 1, 1), (80, 2, 2, 1), (20, 5, 4, 1), (60, 3, 1, 4), (12, 5, 2, 2))
RUNS = 80


def draw(random: np.random.Generator, domain: str, numbers: Numbers) -> np.ndarray:
    n, t, e, r = numbers
    found = np.full(numbers, 50.0)
    for share, shape in zip(
        SHARES[domain], ((n, 1, 1, 1), (n, t, 1, 1), (n, t, e, 1), (n, t, e, r)), strict=True
    ):
        found += 20 * sqrt(share) * random.normal(size=shape)
    return found


def halves(random: np.random.Generator, numbers: Numbers) -> tuple[float, float | None]:
    """Both half widths of the macro score of one simulated run."""
    population, again = [], []
    for domain in SHARES:
        epochs = draw(random, domain, numbers).mean(axis=3)
        mean = float(epochs.mean())
        samples = [(str(place[0]), float(value)) for place, value in np.ndenumerate(epochs.mean(axis=2))]
        population.append(clustered(mean, samples))
        again.append(rerun(mean, epochs.reshape(-1, numbers[2]).tolist()))
    whole, once_more = stratified(50.0, population), macro_rerun(50.0, again)
    assert whole is not None and whole.half is not None
    return whole.half, once_more.half if once_more else None


def pilot(random: np.random.Generator, numbers: Numbers, rows: int | None = None) -> dict[str, Components]:
    """The components of one simulated pilot; of `rows` a domain where not all samples are drawn."""
    found = {}
    for domain in SHARES:
        values = draw(random, domain, numbers)
        chosen = random.permutation(numbers[0] * numbers[1])[:rows].tolist()
        scores = [
            Score(f"t{n}", f"s{t}", e, "j", float(value))
            for (n, t, e, _), value in np.ndenumerate(values)
            if n * numbers[1] + t in chosen
        ]
        found[domain] = analysed(domain, scores).components
    return found


def designs(numbers: Numbers) -> dict[str, Design]:
    n, t, e, r = numbers
    return dict.fromkeys(SHARES, Design(n, t, e, 1, r))


def test_predicted_half_widths_are_those_of_simulated_runs() -> None:
    """From pilots of 12 trajectories x 3 turns x 2 epochs x 2 repeats a domain: within 10 % on average."""
    random = np.random.default_rng(11)
    pilots = [pilot(random, (12, 3, 2, 2)) for _ in range(40)]
    for numbers in MIXES:
        seen = [halves(random, numbers) for _ in range(RUNS)]
        population = [predicted_population(one, designs(numbers)) for one in pilots]
        predicted = np.mean([half.high for half in population if half])
        assert predicted == pytest.approx(np.mean([half for half, _ in seen]), rel=0.10), numbers
        again = [half for _, half in seen if half is not None]
        if numbers[2] > 1:
            once_more = [predicted_rerun(one, designs(numbers)) for one in pilots]
            assert np.mean([half.high for half in once_more if half]) == pytest.approx(
                np.mean(again), rel=0.10
            ), numbers
        else:
            assert not again


def test_rows_drawn_from_all_trajectories_predict_too() -> None:
    """`--limit 15` of 60 samples in 12 trajectories, 2 epochs, 2 repeats: within 15 % on average."""
    random = np.random.default_rng(12)
    pilots = [pilot(random, (12, 5, 2, 2), rows=15) for _ in range(40)]
    for numbers in MIXES:
        seen = np.mean([halves(random, numbers)[0] for _ in range(RUNS)])
        population = [predicted_population(one, designs(numbers)) for one in pilots]
        assert np.mean([half.high for half in population if half]) == pytest.approx(seen, rel=0.15), numbers


def test_bounds_of_what_one_epoch_leaves_open_hold_the_width() -> None:
    random = np.random.default_rng(13)
    pilots = [pilot(random, (12, 3, 1, 1)) for _ in range(30)]
    for numbers in MIXES:
        seen, again = np.mean([halves(random, numbers) for _ in range(RUNS)], axis=0, dtype=float)
        population = [predicted_population(one, designs(numbers)) for one in pilots]
        low, high = (np.mean([getattr(half, end) for half in population if half]) for end in ("low", "high"))
        assert 0.93 * low < seen < 1.07 * high, numbers
        if numbers[2] > 1:
            once_more = [predicted_rerun(one, designs(numbers)) for one in pilots]
            assert again < 1.07 * np.mean([half.high for half in once_more if half]), numbers
