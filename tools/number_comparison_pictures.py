"""The pictures of docs/numbers.md that compare runs: difference, smallest detectable difference, rank.

In: seeded runs over the same simulated samples, and the functions behind `awb compare`. Out: pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, pi, sqrt
from random import Random
from statistics import fmean

from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.paired import Pair, detectable, differences, holm, sign_flip
from tools.number_scenes import Sampled, drawn, ends, interval_of, place
from tools.svg_picture import Picture


def difference() -> Picture:
    """Two runs on the same trajectories: overlapping intervals, and the interval of their difference."""
    random = Random(8)
    first = drawn(random, 12, 5, 50)
    pairs = [
        Pair(f"swe/{n}", cluster, value, value + random.gauss(5, 7))
        for n, (cluster, value) in enumerate(first)
    ]
    row = differences({"swe": pairs}).domains["swe"]
    assert row.interval is not None and row.difference is not None and row.p is not None
    picture = Picture(
        420, "A difference of two runs on the same samples",
        "Left: twelve lines, one a trajectory, from run A to run B; most of them rise. Right: the intervals of A and B overlap; "
        "the interval of B minus A is narrower and does not reach 0.",
    )  # fmt: skip
    up = place(90, 10, 70, 350)
    picture.text(110, 388, "run A", "first", 15, "middle", True)
    picture.text(270, 388, "run B", "second", 15, "middle", True)
    picture.text(190, 408, "a line: one trajectory", "soft", anchor="middle")
    for cluster in dict.fromkeys(pair.cluster for pair in pairs):
        mine = [pair for pair in pairs if pair.cluster == cluster]
        a, b = fmean(pair.first for pair in mine), fmean(pair.second for pair in mine)
        picture.line(110, up(a), 270, up(b), "third" if b > a else "soft", 1.8)
        picture.dot(110, up(a), "first", 4.5)
        picture.dot(270, up(b), "second", 4.5)
    at = place(25, 75, 370, 670)
    for y, name, values, kind in (
        (90, "A", [(pair.cluster, pair.first) for pair in pairs], "first"),
        (130, "B", [(pair.cluster, pair.second) for pair in pairs], "second"),
    ):
        mean, interval = interval_of(values)
        low, high = ends(interval)
        picture.interval(at(low), at(mean), at(high), y, kind)
        picture.text(345, y + 5, name, kind, 15, bold=True)
    picture.scale(370, 670, 160, [(at(n), str(n)) for n in (30, 40, 50, 60, 70)])
    picture.text(520, 66, "scores: their intervals overlap", "soft", anchor="middle")
    low, high = ends(row.interval)
    over = place(-20, 20, 370, 670)
    picture.line(over(0), 262, over(0), 322, "ink", 1.5, dashed=True)
    picture.interval(over(low), over(row.difference), over(high), 290, "third")
    picture.text(318, 295, "B − A", "third", 15, bold=True)
    picture.scale(370, 670, 322, [(over(n), f"{n:+d}" if n else "0") for n in (-20, -10, 0, 10, 20)])
    picture.text(520, 240, f"the difference: {row.difference:.1f} ± {row.interval.half:.1f}, p = {row.p:.2g}", "soft", anchor="middle")  # fmt: skip
    return picture


def smallest() -> Picture:
    """Differences that would be seen where there is none, and where there is one of the detectable size."""
    interval = Interval(method="clustered", se=1.0, df=60, clusters=61)
    size = detectable(interval) or 0.0
    line = 2.0003
    picture = Picture(
        300, "The smallest detectable difference",
        "Two bell curves of observed differences: one around 0, one around 2.8 standard errors. Eighty of a hundred of the second "
        "lie beyond the line from which on a difference is told from 0.",
    )  # fmt: skip
    at, base = place(-3.5, 6.5, 40, 660), 225

    def bell(center: float, x: float) -> float:
        return base - 330 * exp(-((x - center) ** 2) / 2) / sqrt(2 * pi)

    steps = [n / 20 for n in range(-70, 131)]
    beyond = [x for x in steps if x >= line]
    picture.area(
        [(at(line), base), *((at(x), bell(size, x)) for x in [line, *beyond]), (at(6.5), base)],
        "second",
        0.28,
    )
    picture.curve([(at(x), bell(0, x)) for x in steps], "first")
    picture.curve([(at(x), bell(size, x)) for x in steps], "second")
    picture.line(at(line), 62, at(line), base, "ink", 1.5, dashed=True)
    picture.text(at(line) + 8, 66, "from here on told from 0", "ink")
    picture.text(at(-0.2), 82, "no difference", "first", anchor="end", bold=True)
    picture.text(at(size + 0.9), 110, "true difference", "second", bold=True)
    picture.text(at(size + 0.9), 128, "of detectable size", "second", bold=True)
    picture.text(at(size + 0.3), 196, "80 of 100", "ink", anchor="middle", bold=True)
    picture.scale(40, 660, base, [(at(0), "0"), (at(size), f"{size:.1f} standard errors")])
    picture.text(350, 286, "difference that a comparison shows", "soft", anchor="middle")
    return picture


def rank() -> Picture:
    """Five runs on the same samples: who is better than whom after Holm."""
    random = Random(21)
    base = drawn(random, 30, 4, 52)
    shifts = {"A": 9.0, "B": 7.0, "C": 1.0, "D": 0.0, "E": -9.0}
    runs = {
        name: [(cluster, value + shift + random.gauss(0, 9)) for cluster, value in base]
        for name, shift in shifts.items()
    }
    pairs = [(a, b) for n, a in enumerate(runs) for b in list(runs)[n + 1 :]]
    ps = [sign_flip(f"{a}{b}", _gaps(runs[a], runs[b])) for a, b in pairs]
    corrected = holm(ps)
    better = dict.fromkeys(runs, 0)
    means = {name: fmean(value for _, value in some) for name, some in runs.items()}
    for (a, b), p in zip(pairs, corrected, strict=True):
        if p is not None and p < 0.05:
            better[a if means[a] < means[b] else b] += 1
    at = place(30, 75, 130, 560)
    picture = Picture(
        330, "Rank: one more than the number of runs that are surely better",
        "Five runs with their intervals, sorted by score. Runs that cannot be told apart share a rank: "
        + ", ".join(f"{name} {1 + better[name]}" for name in runs) + ".",
    )  # fmt: skip
    picture.text(60, 64, "rank", "soft", anchor="middle")
    picture.text(345, 64, "score with its interval (population)", "soft", anchor="middle")
    picture.text(615, 64, "runs surely better", "soft", anchor="middle")
    kinds = {1: "first", 3: "third", 5: "second"}
    for row, name in enumerate(sorted(runs, key=lambda one: -means[one])):
        y, mine = 95 + 40 * row, 1 + better[name]
        _, interval = interval_of(runs[name])
        low, high = ends(interval)
        kind = kinds.get(mine, "fourth")
        picture.box(20, y - 17, 660, 34, kind, 0.12)
        picture.text(60, y + 6, str(mine), kind, 18, "middle", True)
        picture.text(100, y + 5, name, bold=True)
        picture.interval(at(low), at(means[name]), at(high), y, kind)
        picture.text(615, y + 5, str(better[name]), anchor="middle")
    picture.scale(130, 560, 292, [(at(n), str(n)) for n in (30, 40, 50, 60, 70)])
    return picture


def _gaps(one: Sequence[Sampled], other: Sequence[Sampled]) -> list[float]:
    """Sums of differences by trajectory."""
    sums: dict[str, float] = {}
    for (cluster, a), (_, b) in zip(one, other, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + b - a
    return list(sums.values())
