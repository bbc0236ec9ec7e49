"""The pictures of docs/numbers.md about several judges: agreement and panel.

In: seeded judges, and the functions that measure their agreement. Out: pictures.
"""

from __future__ import annotations

from random import Random
from statistics import median

from agentworldbench.stats.agreement import Rated, agreement
from tools.number_scenes import place
from tools.svg_picture import Picture


def agreeing() -> Picture:
    """Two judges' integers on the same predictions, as a grid."""
    random = Random(12)
    grades = []
    for number in range(120):
        level = random.gauss(3, 1.1)
        grades.append(
            (str(number // 4), tuple(min(5, max(1, round(level + random.gauss(0, 0.55)))) for _ in range(2)))
        )
    found = agreement("picture", [Rated(cluster, {"one": a, "other": b}) for cluster, (a, b) in grades])
    counts: dict[tuple[int, int], int] = {}
    for _, (a, b) in grades:
        counts[a, b] = counts.get((a, b), 0) + 1
    picture = Picture(
        370, "Agreement: what two judges gave the same 120 predictions",
        "A grid of five by five; in each cell how many predictions the first judge gave the row's value and the second the "
        "column's. Most lie on or beside the diagonal.",
    )  # fmt: skip
    left, top, side = 100, 84, 48
    for a in range(1, 6):
        picture.text(left - 14, top + side * (5 - a) + 30, str(a), anchor="middle")
        picture.text(left + side * (a - 1) + 24, top + side * 5 + 20, str(a), anchor="middle")
        for b in range(1, 6):
            count = counts.get((a, b), 0)
            x, y = left + side * (b - 1), top + side * (5 - a)
            kind = "third" if a == b else "first" if abs(a - b) == 1 else "second"
            picture.box(x + 1, y + 1, side - 2, side - 2, "pale")
            picture.box(x + 1, y + 1, side - 2, side - 2, kind, min(0.5, 0.06 + count / 45) if count else 0)
            picture.text(
                x + 24, y + 29, str(count) if count else "·", "ink" if count else "soft", 14, "middle"
            )
    picture.text(left + 120, top + side * 5 + 40, "second judge's value", "soft", anchor="middle")
    picture.text(20, 62, "first judge's value", "soft")
    exact, within, alpha, kappa = (
        measure.value or 0.0
        for measure in (found.exact, found.within_one, found.alpha, found.kappa_quadratic)
    )
    x = 390
    for y, name, value, kind, what in (
        (110, "exact", f"{100 * exact:.0f} %", "third", "the same value"),
        (165, "within one", f"{100 * within:.0f} %", "first", "the same or the next value"),
        (220, "alpha", f"{alpha:.2f}", "ink", "1: always alike; 0: as by chance;"),
        (292, "weighted kappa", f"{kappa:.2f}", "ink", "the same for a pair of judges,"),
    ):
        picture.text(x, y, f"{name}: {value}", kind, 16, bold=True)
        picture.text(x, y + 20, what, "soft")
    picture.text(x, 257, "far misses count more than near ones", "soft")
    picture.text(x, 329, "squared distances as weights", "soft")
    return picture


def panel() -> Picture:
    """Three judges on six predictions, and their median."""
    random = Random(4)
    picture = Picture(
        300, "A panel: the median of three judges",
        "Six predictions; for each the scores of three judges as dots of three colours, and a bar at the middle one, which is "
        "the panel's score. One judge is far off once, and the bar does not follow.",
    )  # fmt: skip
    up = place(100, 0, 70, 235)
    for n in (0, 25, 50, 75, 100):
        picture.line(70, up(n), 660, up(n), "line")
        picture.text(60, up(n) + 5, str(n), "soft", anchor="end")
    for column in range(6):
        level = random.uniform(25, 85)
        scores = [min(100, max(0, round((level + random.gauss(0, 9)) / 5) * 5)) for _ in range(3)]
        if column == 3:
            scores[2] = 5
        x = 120 + 98 * column
        picture.box(x - 36, up(median(scores)) - 3, 72, 6, "ink")
        for number, (value, kind) in enumerate(zip(scores, ("first", "second", "fourth"), strict=True)):
            picture.dot(x - 18 + 18 * number, up(value), kind, 6)
        picture.text(x, 258, f"prediction {column + 1}", "soft", anchor="middle")
    for x, name, kind in ((120, "judge 1", "first"), (230, "judge 2", "second"), (340, "judge 3", "fourth")):
        picture.dot(x, 281, kind, 6)
        picture.text(x + 12, 286, name)
    picture.box(452, 278, 40, 6, "ink")
    picture.text(500, 286, "the panel's score")
    return picture
