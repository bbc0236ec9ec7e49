"""The pictures of docs/numbers.md that are about a pilot: its shares of variance, and the widths of other mixes.

In: one simulated pilot of three domains, analysed as `awb estimate --pilot` does it. Out: two pictures.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise, product
from math import log10, sqrt
from random import Random
from typing import Final

from agentworldbench.render.pilot import SOURCES
from agentworldbench.stats.macro_variance import macro_variance
from agentworldbench.stats.mixes import predicted_population
from agentworldbench.stats.variance import Analysis, Design, Score, analysed
from tools.svg_picture import Picture

SHARES: Final = {
    "SWE": (0.35, 0.25, 0.25, 0.15),
    "Web": (0.15, 0.35, 0.3, 0.2),
    "OS": (0.5, 0.15, 0.15, 0.2),
}
"""Trajectory, turn, generation, verdict; the whole variance is 22^2."""
COLOURS: Final = {"trajectory": "first", "turn": "third", "generation": "second", "rest": "fourth"}


@lru_cache
def _pilot() -> dict[str, Analysis]:
    """40 trajectories of 3 turns, 2 answers to each, 2 verdicts on each answer, in each domain."""
    random, found = Random(3), {}
    for domain, shares in SHARES.items():
        trajectory, turn, generation, verdict = (22 * sqrt(share) for share in shares)
        scores = []
        for t in range(40):
            level = random.gauss(50, trajectory)
            for s in range(3):
                sample = random.gauss(level, turn)
                for e in range(2):
                    answer = random.gauss(sample, generation)
                    scores += [
                        Score(f"t{t}", f"s{s}", e, "j", random.gauss(answer, verdict)) for _ in range(2)
                    ]
        found[domain] = analysed(domain, scores)
    return found


def variance() -> Picture:
    """Shares of variance as bars."""
    pilot = _pilot()
    whole = macro_variance(pilot)
    rows = {name: {part.names[0]: part.share for part in one.components.parts} for name, one in pilot.items()}
    rows["All"] = {part.names[0]: part.share for part in whole.parts}
    picture = Picture(
        310, "Variance shares: why single scores differ",
        "Four bars of 100 %, each divided into trajectory, turn, generation and verdict: "
        + "; ".join(f"{name} " + ", ".join(f"{100 * share:.0f}" for share in some.values()) for name, some in rows.items()),
    )  # fmt: skip
    for number, (name, some) in enumerate(rows.items()):
        y, x = 56 + 42 * number, 90.0
        picture.text(80, y + 20, name, anchor="end", bold=True)
        for source, share in some.items():
            picture.box(x, y, 570 * share - 2, 30, COLOURS[source], 0.3)
            picture.box(x, y, 4, 30, COLOURS[source])
            if share > 0.06:
                picture.text(x + 285 * share, y + 20, f"{100 * share:.0f} %", anchor="middle")
            x += 570 * share
    for (name, text), x, more in zip(
        SOURCES.items(), (90, 238, 360, 520), ("more trajectories", "more turns", "--epochs", "--judge-repeats"), strict=True
    ):  # fmt: skip
        picture.box(x, 244, 14, 14, COLOURS[name])
        picture.text(x + 20, 256, text, bold=True)
        picture.text(x, 280, "less by", "soft")
        picture.text(x, 297, more, "soft")
    return picture


def mixes() -> Picture:
    """Half width against requests, with the mixes that nothing cheaper equals."""
    pilot = {name: one.components for name, one in _pilot().items()}
    found = []
    for trajectories, epochs, repeats in product((20, 50, 100, 200), (1, 2, 4), (1, 2, 4)):
        design = Design(trajectories, 3, epochs, 1, repeats)
        half = predicted_population(pilot, dict.fromkeys(pilot, design))
        assert half is not None
        requests = 3 * trajectories * 3 * epochs * (1 + repeats)
        found.append((requests, half.high, (trajectories * 9, epochs, repeats)))
    best = [one for one in found if not any(o[0] <= one[0] and o[1] <= one[1] and o != one for o in found)]
    best.sort()
    picture = Picture(
        380, "What each mix would tell: ± against requests",
        "Dots of 36 mixes of samples, epochs and judge repeats: half a width in points against requests. A line joins the mixes "
        "that no cheaper one equals; more samples narrow the interval fastest.",
    )  # fmt: skip

    def at(requests: float) -> float:
        return 70 + (log10(requests) - 2.4) / 2.3 * 590

    def up(half: float) -> float:
        return 320 - half / 5 * 260

    for half in range(6):
        picture.line(70, up(half), 660, up(half), "line")
        picture.text(60, up(half) + 5, f"± {half}" if half else "0", "soft", anchor="end")
    for requests, half, _ in found:
        picture.dot(at(requests), up(half), "soft", 4, faint=True)
    for one, other in pairwise(best):
        picture.line(at(one[0]), up(one[1]), at(other[0]), up(other[1]), "first", 2)
    for requests, half, mix in best:
        picture.dot(at(requests), up(half), "first", 5)
        if mix[1:] == (1, 1):
            picture.text(
                at(requests),
                up(half) + 22,
                " × ".join(f"{n:,}" for n in mix),
                "first",
                anchor="middle",
                bold=True,
            )
    picture.scale(70, 660, 320, [(at(n), f"{n:,}") for n in (300, 1000, 3000, 10000, 30000)])
    picture.text(365, 362, "requests to model and judge (samples × epochs × judge repeats stands beside a dot)", "soft", anchor="middle")  # fmt: skip
    return picture
