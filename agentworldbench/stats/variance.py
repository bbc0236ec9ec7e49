"""Where the variance of scores comes from, and how wide an interval another design would give.

In: one domain's scores of single verdicts, each with trajectory, turn, generation (epoch) and judge. Out:
`Components`, the variance that each of these adds to a verdict's score and its share of all; from them
`predicted_se`, the standard error of the mean for other numbers of each. `mixes.py` makes intervals of it.

Turns lie in trajectories and generations in turns, judges are crossed with them, repeats of a judge differ by the
rest. What a design cannot tell apart (with one judge "turn" and "judge by turn", with one repeat "judge by
generation" and the rest) is estimated as one component.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING, Final, Literal, get_args

from agentworldbench.records import Record
from agentworldbench.stats.cluster_draws import drawn_interval, drawn_sums
from agentworldbench.stats.henderson import SumsOfSquares
from agentworldbench.stats.intervals import Interval, is_nothing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Codes = NDArray[np.int64]

Name = Literal["trajectory", "turn", "generation", "judge", "judge_by_turn", "judge_by_generation", "rest"]
NAMES: Final[tuple[Name, ...]] = get_args(Name)
Reason = Literal["no_spread", "not_separable"]


@dataclass(frozen=True, order=True)
class Score:
    """The score of one verdict, and what it belongs to. Turns are named within their trajectory, generations
    within their turn; repeats of a judge are further scores."""

    trajectory: str
    turn: str
    generation: int
    judge: str
    value: float


class Component(Record):
    """One source of variance, or several (`names`) that the design cannot tell apart.

    `estimate` is unbiased; `variance` is the same, or 0 where it is `negative`; both in squared units of the
    score. `share` is that of the sum of all variances, `levels` how many of the source there are: of 2 judges
    nobody learns how judges differ. `interval` is that of the share over other trajectories, the judges
    staying the same. It is wide. Simulated with 100 trajectories x 2 turns x 2 generations x 2 repeats and
    true shares 0.35, 0.25, 0.25, 0.15, estimated shares scatter from draw to draw with standard deviations of
    0.07, 0.06, 0.04 and 0.02 (`tests/test_variance_simulations.py`).
    """

    names: tuple[Name, ...]
    levels: int
    estimate: float
    variance: float
    negative: bool
    share: float
    interval: Interval


class Components(Record):
    """The sources of variance. `unknown` are those of which there is but one (one judge: nothing tells how
    judges differ). There are no `parts` where `reason` says why: all scores are equal, or the design is so
    lopsided that its equations have no single solution."""

    scores: int
    trajectories: int
    parts: tuple[Component, ...] = ()
    unknown: tuple[Name, ...] = ()
    reason: Reason | None = None


@dataclass(frozen=True)
class Design:
    """How many of each, at least 1: `turns` in a trajectory (their mean, and their standard deviation / mean as
    `unevenness`), epochs (generations) of each, judges, and repeats of each judge."""

    trajectories: int
    turns: float
    epochs: int = 1
    judges: int = 1
    repeats: int = 1
    unevenness: float = 0.0

    def __post_init__(self) -> None:
        least = min(self.trajectories, self.turns, self.epochs, self.judges, self.repeats)
        if least < 1 or self.unevenness < 0:
            raise ValueError(f"no design has fewer than one of anything: {self}")


@dataclass(frozen=True)
class Analysis:
    """The components of one domain, and their variances (negative ones counted 0) in every draw of trajectories:
    a row a draw, a column a part; no rows where there are too few trajectories to draw from."""

    components: Components
    draws: Numbers


RERUN: Final[frozenset[Name]] = frozenset({"generation", "judge_by_generation", "rest"})
"""What another run of the same samples with the same judges draws again."""
POPULATION: Final[frozenset[Name]] = frozenset(NAMES) - {"judge"}
"""What another draw of trajectories draws again; the judges stay the same."""


def predicted_se(
    components: Components, design: Design, drawn: frozenset[Name] = POPULATION
) -> tuple[float, float] | None:
    """The least and the largest standard error that the mean over all samples of `design` may have.

    Var = sum of variance / how many of its effects are averaged over, for the sources that are `drawn` again: the D
    study of generalizability theory [Brennan 2001, chapter 4]. Trajectories of m turns weigh m, so theirs is averaged
    over (sum m)^2 / sum m^2 = trajectories / (1 + `unevenness`^2). Sources that are known together alone may be all
    the one or all the other: where `design` averages them unequally, the two errors differ. Negative estimates count as
    they are, because what one source has too little another has too much, and the sum is right on average; where the
    sum is not positive they count 0. None where nothing is known of a source.
    """
    if not components.parts or not drawn.isdisjoint(components.unknown):
        return None
    generations = design.trajectories * design.turns * design.epochs
    averaged: dict[Name, float] = {
        "trajectory": design.trajectories / (1 + design.unevenness**2),
        "turn": design.trajectories * design.turns,
        "generation": generations,
        "judge": design.judges,
        "judge_by_turn": design.trajectories * design.turns * design.judges,
        "judge_by_generation": generations * design.judges,
        "rest": generations * design.judges * design.repeats,
    }
    terms = [
        [(part.estimate / averaged[name], part.variance / averaged[name]) if name in drawn else (0.0, 0.0)
         for name in part.names]
        for part in components.parts
    ]  # fmt: skip
    return _error([min(some) for some in terms]), _error([max(some) for some in terms])


def _error(terms: Sequence[tuple[float, float]]) -> float:
    """The root of the sum of variances, given as estimated and with negative ones counted 0."""
    whole = fsum(estimate for estimate, _ in terms)
    return sqrt(whole if whole > 0 else fsum(variance for _, variance in terms))


def analysed(name: str, scores: Iterable[Score]) -> Analysis:
    """The components of one domain's scores; `name` seeds the draws behind the intervals.

    Henderson's method I [Henderson 1953; Searle, Casella & McCulloch 1992, chapter 5], which needs no normal
    distribution and no balance: sums of squares are set equal to what they are on average, as

        score = mean + trajectory + turn + generation + judge + judge by turn + judge by generation + rest

    gives them, all effects random and independent. The estimates are unbiased before negative ones are set to 0,
    and far from exact: see `Component`.

    Domains are analysed apart: pooled, what differs between them would count as difference of trajectories.
    """
    import numpy as np

    ordered = sorted(scores)
    values = [one.value for one in ordered]
    numbers: dict[str, int] = {}
    clusters = np.array([numbers.setdefault(one.trajectory, len(numbers)) for one in ordered])
    trajectories = len(numbers)
    if not values or is_nothing(max(values) - min(values), values):
        return _none(len(values), trajectories, "no_spread")
    groups, unknown = _partitions(ordered)
    sums = SumsOfSquares(np.array(values), clusters, [codes for _, codes in groups])
    estimates = sums.estimates(sums.by_trajectory.sum(axis=0)[None])[0]
    if np.isnan(estimates).any():
        return _none(len(values), trajectories, "not_separable")
    # What rounding leaves of nothing is neither negative nor positive.
    estimates[abs(estimates) <= 1e-12 * abs(estimates).sum()] = 0.0
    shares = shares_of(estimates[None])[0]
    drawn = [sums.estimates(some) for some in drawn_sums(name, sums.by_trajectory)]
    draws = np.concatenate(drawn) if drawn else np.empty((0, len(groups)))
    shares_drawn = shares_of(draws)
    components = Components(
        scores=len(values),
        trajectories=trajectories,
        parts=tuple(
            Component(
                names=names,
                levels=int(codes.max()) + 1,
                estimate=round(float(estimates[place]), 12),
                variance=max(0.0, round(float(estimates[place]), 12)),
                negative=bool(estimates[place] < 0),
                share=round(float(shares[place]), 12),
                interval=drawn_interval(shares_drawn[:, place], trajectories),
            )
            for place, (names, codes) in enumerate(groups)
        ),
        unknown=unknown,
    )
    return Analysis(components, np.maximum(draws, 0))


def _none(scores: int, trajectories: int, reason: Reason) -> Analysis:
    import numpy as np

    return Analysis(Components(scores=scores, trajectories=trajectories, reason=reason), np.empty((0, 0)))


def _partitions(scores: Sequence[Score]) -> tuple[list[tuple[tuple[Name, ...], Codes]], tuple[Name, ...]]:
    """The ways in which the design divides the scores, each as one code a score with the names of all sources
    that divide them so; and the sources that do not divide them at all."""
    import numpy as np

    keys: dict[Name, list[tuple[object, ...]]] = {name: [] for name in NAMES}
    for place, one in enumerate(scores):
        turn = (one.trajectory, one.turn)
        generation = (*turn, one.generation)
        keys["trajectory"].append((one.trajectory,))
        keys["turn"].append(turn)
        keys["generation"].append(generation)
        keys["judge"].append((one.judge,))
        keys["judge_by_turn"].append((*turn, one.judge))
        keys["judge_by_generation"].append((*generation, one.judge))
        keys["rest"].append((place,))
    found: dict[tuple[int, ...], list[Name]] = {}
    for name, some in keys.items():
        # Numbered as they first occur, so that equal divisions have equal codes.
        numbers: dict[tuple[object, ...], int] = {}
        codes = tuple(numbers.setdefault(key, len(numbers)) for key in some)
        found.setdefault(codes, []).append(name)
    unknown = found.pop((0,) * len(scores), [])
    groups = [(tuple(names), np.array(codes, dtype=np.int64)) for codes, names in found.items()]
    return groups, tuple(unknown)


def shares_of(estimates: Numbers) -> Numbers:
    """Shares of the sum by row, negative estimates counted 0; NaN where nothing varies or is told apart."""
    import numpy as np

    positive = np.maximum(estimates, 0)
    whole = positive.sum(axis=1, keepdims=True)
    shares: Numbers = np.divide(positive, whole, out=np.full(positive.shape, np.nan), where=whole > 0)
    return shares
