"""A chart of scores against cost as inline SVG: logarithmic in cost, whiskers for intervals, best-for-the-money marked.

In: points with a cost above 0. Out: markup that takes its colours and sizes from the page's style sheet; every point is a
link with a name. Names stand where there is room, first at the points that nothing cheaper surpasses, and among many
points at those alone; the others are read by pointing at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 52, 24, 36, 62
LABEL_CHARACTERS: Final = 28
LABEL_HEIGHT: Final = 15
FEW: Final = 24
"""Points up to which all are named where there is room; among more a name would not be found beside its point."""
CHARACTER_WIDTH: Final = 7.4
"""Of a letter at the size of a wide screen, in units of the drawing."""


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
    dots = [(axes.x(one.cost), axes.y(one.score)) for one in points]
    labels: list[_Box] = []
    named = len(points) <= FEW
    for point in [*marked, *sorted((one for one in points if one not in marked), key=lambda one: -one.score)]:
        best = point in marked
        label = _label(point, axes, dots, labels) if best or named else None
        parts.append(_drawn(point, axes, best, label))
    return Markup("").join([*parts, Markup("</svg>")])


@dataclass(frozen=True)
class _Box:
    """A label: its left, right and base line, and whether it ends at the point."""

    left: float
    right: float
    base: float
    ends: bool

    def free(self, dots: Sequence[tuple[float, float]], labels: Sequence[_Box]) -> bool:
        """Whether it lies inside the chart, on no dot and no other label."""
        inside = self.left >= LEFT and self.right <= WIDTH - RIGHT and TOP + 2 <= self.base <= HEIGHT - BOTTOM
        on_dot = any(
            self.left - 6 < x < self.right + 6 and self.base - LABEL_HEIGHT < y < self.base + 6
            for x, y in dots
        )
        on_label = any(
            self.left < one.right + 6
            and one.left < self.right + 6
            and abs(self.base - one.base) < LABEL_HEIGHT
            for one in labels
        )
        return inside and not on_dot and not on_label


def _label(point: Point, axes: _Axes, dots: Sequence[tuple[float, float]], labels: list[_Box]) -> _Box | None:
    """Where a point's name can stand, noted in `labels`; None where there is no room for it."""
    x, y, width = (
        axes.x(point.cost),
        axes.y(point.score),
        CHARACTER_WIDTH * min(len(point.name), LABEL_CHARACTERS),
    )
    for base in (y + 4, y - 9, y + 17):
        for ends in (False, True):
            left = x - 10 - width if ends else x + 10
            box = _Box(left, left + width, base, ends)
            if box.free(dots, labels):
                labels.append(box)
                return box
    return None


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
                    x, HEIGHT - BOTTOM + 24, f"{10.0**power:g}"
                )
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            Markup('<text class="mid axis" x="{}" y="{}">{}</text>').format(middle, HEIGHT - 10, across)
        )
        parts.append(Markup('<text class="axis" x="{}" y="{}">{}</text>').format(2, 18, upwards))
        return parts


def _drawn(point: Point, axes: _Axes, marked: bool, label: _Box | None) -> Markup:
    """A point as a link: whisker, dot, and its name where there is room."""
    from markupsafe import Markup

    x, y = round(axes.x(point.cost), 1), round(axes.y(point.score), 1)
    told = f"{point.name}: {point.score:.1f} for {point.cost:.3g} USD"
    parts = [Markup('<a href="{}"><title>{}</title>').format(point.link, told)]
    if point.low is not None and point.high is not None:
        ends = round(axes.y(point.low), 1), round(axes.y(point.high), 1)
        parts.append(Markup('<path class="whisker" d="M{} {}V{}"/>').format(x, *ends))
    kind = "best" if marked else "dot"
    parts.append(Markup('<circle class="{}" cx="{}" cy="{}" r="5"/>').format(kind, x, y))
    if label is not None:
        name = point.name if len(point.name) <= LABEL_CHARACTERS else point.name[: LABEL_CHARACTERS - 1] + "…"
        place = ("end name", x - 10) if label.ends else ("name", x + 10)
        parts.append(
            Markup('<text class="{}" x="{}" y="{}">{}</text>').format(*place, round(label.base, 1), name)
        )
    return Markup("").join([*parts, Markup("</a>")])
