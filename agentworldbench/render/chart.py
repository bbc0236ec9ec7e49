"""A chart of scores against cost as inline SVG: logarithmic in cost, whiskers for intervals, best-for-the-money marked.

In: points with a cost above 0. Out: markup that takes its colours and sizes from the page's style sheet; every point is a
link with a name. Labels stand at the points that nothing cheaper surpasses; the others are read by pointing at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 52, 24, 18, 48
LABEL_CHARACTERS: Final = 28
LABEL_HEIGHT: Final = 15


@dataclass(frozen=True)
class Point:
    """One model: cost (USD, above 0), score (0-100) with bounds where there are some, name, and where it leads."""

    cost: float
    score: float
    low: float | None
    high: float | None
    name: str
    link: str


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other surpasses at equal or lower cost, cheapest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost, -one.score)):
        if not best or point.score > best[-1].score:
            best.append(point)
    return best


def scatter(points: Sequence[Point], across: str, upwards: str) -> Markup:
    """The chart; `across` and `upwards` name its axes."""
    from markupsafe import Markup

    axes = _Axes.of(points)
    marked = frontier(points)
    parts = [
        Markup('<svg class="chart" viewBox="0 0 {} {}" role="group" aria-label="{} by {}">').format(
            WIDTH, HEIGHT, upwards, across
        )
    ]
    parts += axes.drawn(across, upwards)
    path = "".join(
        f"{'L' if number else 'M'}{axes.x(one.cost):.1f} {axes.y(one.score):.1f}"
        for number, one in enumerate(marked)
    )
    parts.append(Markup('<path class="frontier" d="{}"/>').format(path))
    used: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda one: -one.score):
        parts.append(_drawn(point, axes, point in marked, used))
    return Markup("").join([*parts, Markup("</svg>")])


@dataclass(frozen=True)
class _Axes:
    cost: tuple[int, int]
    """Powers of ten."""
    score: tuple[float, float]

    @classmethod
    def of(cls, points: Sequence[Point]) -> _Axes:
        logs = [log10(one.cost) for one in points]
        first, last = floor(min(logs)), ceil(max(logs))
        low = min(one.score if one.low is None else one.low for one in points)
        high = max(one.score if one.high is None else one.high for one in points)
        bottom, top = max(0.0, 10 * floor(low / 10)), min(100.0, 10 * ceil(high / 10))
        return cls((first, max(last, first + 1)), (bottom, max(top, bottom + 10)))

    def x(self, cost: float) -> float:
        first, last = self.cost
        return LEFT + (log10(cost) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(self, score: float) -> float:
        bottom, top = self.score
        return HEIGHT - BOTTOM - (score - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    def drawn(self, across: str, upwards: str) -> list[Markup]:
        from markupsafe import Markup

        parts = []
        bottom, top = self.score
        step = 5 if top - bottom <= 30 else 10 if top - bottom <= 60 else 20
        for value in range(int(bottom), int(top) + 1, step):
            y = round(self.y(value), 1)
            parts.append(Markup('<path class="grid" d="M{} {}H{}"/>').format(LEFT, y, WIDTH - RIGHT))
            parts.append(Markup('<text class="end" x="{}" y="{}">{}</text>').format(LEFT - 8, y + 4, value))
        for power in range(self.cost[0], self.cost[1] + 1):
            x = round(self.x(10.0**power), 1)
            parts.append(Markup('<path class="grid" d="M{} {}V{}"/>').format(x, TOP, HEIGHT - BOTTOM))
            parts.append(
                Markup('<text class="mid" x="{}" y="{}">{}</text>').format(
                    x, HEIGHT - BOTTOM + 18, f"{10.0**power:g}"
                )
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            Markup('<text class="mid axis" x="{}" y="{}">{}</text>').format(middle, HEIGHT - 8, across)
        )
        parts.append(Markup('<text class="axis" x="{}" y="{}">{}</text>').format(2, 11, upwards))
        return parts


def _drawn(point: Point, axes: _Axes, marked: bool, used: list[tuple[float, float]]) -> Markup:
    """A point as a link: whisker, dot, and its name where it is marked and there is room."""
    from markupsafe import Markup

    x, y = round(axes.x(point.cost), 1), round(axes.y(point.score), 1)
    told = f"{point.name}: {point.score:.1f} for {point.cost:.3g} USD"
    parts = [Markup('<a href="{}"><title>{}</title>').format(point.link, told)]
    if point.low is not None and point.high is not None:
        parts.append(
            Markup('<path class="whisker" d="M{} {}V{}"/>').format(
                x, round(axes.y(point.low), 1), round(axes.y(point.high), 1)
            )
        )
    parts.append(
        Markup('<circle class="{}" cx="{}" cy="{}" r="5"/>').format("best" if marked else "dot", x, y)
    )
    room = all(abs(x - a) > 170 or abs(y - b) > LABEL_HEIGHT for a, b in used)
    if marked and room:
        used.append((x, y))
        name = point.name if len(point.name) <= LABEL_CHARACTERS else point.name[: LABEL_CHARACTERS - 1] + "…"
        right = x > (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            Markup('<text class="{}" x="{}" y="{}">{}</text>').format(
                "end name" if right else "name", x - 9 if right else x + 9, y - 7, name
            )
        )
    return Markup("").join([*parts, Markup("</a>")])
