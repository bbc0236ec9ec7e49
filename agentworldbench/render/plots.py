"""Plots of a run as SVG: intervals by row, a grid of numbers, trends, distributions, bubbles, stacked bars.

In: names and numbers. Out: a `Plot`: markup that takes its colours from the page's style sheet, so it follows light and
dark, and the same as a file of its own for papers (`plot_files.py`). Scores run from 0 to 100 on every axis. All texts are
escaped; each mark tells its numbers in a `<title>`, and the plot has a label for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log10, sqrt
from typing import TYPE_CHECKING, Final

from agentworldbench.render.sample import shown

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH: Final = 600
"""Of every plot, in its own units; a letter is about 12 of them high."""
_CHARACTER: Final = 6.7
_LEGEND: Final = 26
_TICKS: Final = (0, 25, 50, 75, 100)


@dataclass(frozen=True)
class Value:
    """A number with the ends of its interval, where it has one, and on how many samples it rests."""

    value: float
    low: float | None = None
    high: float | None = None
    samples: int | None = None

    @property
    def said(self) -> str:
        """As a mark tells it."""
        interval = "" if self.low is None or self.high is None else f", {self.low:.1f} to {self.high:.1f}"
        return f"{self.value:.1f}{interval}" + ("" if self.samples is None else f", {self.samples} samples")


@dataclass(frozen=True)
class Series:
    """What one colour stands for; None where it has no number."""

    name: str
    values: tuple[Value | None, ...]


@dataclass(frozen=True)
class Plot:
    """A drawing: `name` is that of its files, `body` what stands between the SVG's tags."""

    name: str
    title: str
    note: str
    height: float
    body: Markup

    def markup(self, extra: str = "") -> Markup:
        """The SVG; `extra` are attributes of ours for its tag."""
        from markupsafe import Markup

        return Markup(
            '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}"' + extra + ">{}</svg>"
        ).format(WIDTH, round(self.height, 1), f"{self.title}. {self.note}", self.body)


def intervals(name: str, title: str, note: str, rows: Sequence[str], series: Sequence[Series]) -> Plot:
    """A row for each name, in it a mark with its interval for each series; from 0 to 100."""
    left = _room(rows)
    step = 13 * len(series) + 12
    top = _LEGEND + 6
    bottom = top + step * len(rows)

    def x(value: float) -> float:
        return left + max(0.0, min(100.0, value)) / 100 * (WIDTH - left - 24)

    parts = [*_legend([one.name for one in series], left)]
    parts += [_path("grid", f"M{x(tick):.1f} {top}V{bottom}") for tick in _TICKS]
    parts += [_text("mid soft", x(tick), bottom + 16, str(tick)) for tick in _TICKS]
    for row, label in enumerate(rows):
        middle = top + step * (row + 0.5)
        parts.append(_text("end", left - 10, middle + 4, _short(label)))
        for number, one in enumerate(series):
            if (value := one.values[row]) is None:
                continue
            y = middle + 13 * (number - (len(series) - 1) / 2)
            whisker = (
                ""
                if value.low is None or value.high is None
                else f"M{x(value.low):.1f} {y:.1f}H{x(value.high):.1f}"
            )
            parts.append(_marked(number, value, x(value.value), y, whisker, f"{label}, {one.name}"))
    return _plot(name, title, note, bottom + 24, parts)


def grid(
    name: str, title: str, note: str, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]
) -> Plot:  # fmt: skip
    """Numbers from 0 to 100 in cells, the darker the higher."""
    left, top, high = _room(rows), 30, 27
    wide = (WIDTH - left) / len(columns)
    parts = [_text("mid soft", left + wide * (at + 0.5), 18, column) for at, column in enumerate(columns)]
    for row, label in enumerate(rows):
        y = top + high * row
        parts.append(_text("end", left - 10, y + 17, _short(label)))
        for at, value in enumerate(values[row]):
            shade = "none" if value is None else f"h{min(9, int(value // 10))}"
            parts.append(
                _format(
                    '<g class="cell {}"><rect x="{}" y="{}" width="{}" height="{}" rx="3"/><text class="mid" x="{}" y="{}">{}</text></g>',
                    shade, round(left + wide * at + 1, 1), y, round(wide - 2, 1), high - 2,
                    round(left + wide * (at + 0.5), 1), y + 17, "–" if value is None else f"{value:.1f}",
                )
            )  # fmt: skip
    return _plot(name, title, note, top + high * len(rows) + 4, parts)


def trend(
    name: str, title: str, note: str, across: str, bins: Sequence[str], series: Sequence[Series]
) -> Plot:
    """Means with intervals along bins that have an order."""
    left, top, bottom = 44, _LEGEND + 10, 236

    def y(value: float) -> float:
        return bottom - max(0.0, min(100.0, value)) / 100 * (bottom - top)

    wide = (WIDTH - left - 10) / len(bins)
    parts = [*_legend([one.name for one in series], left), *_scores_axis(left, y)]
    for at, label in enumerate(bins):
        middle = left + wide * (at + 0.5)
        parts.append(_text("mid soft", middle, bottom + 18, label))
        counts = [value.samples for one in series if (value := one.values[at]) and value.samples]
        parts.append(_text("mid soft small", middle, bottom + 33, f"n {max(counts)}" if counts else "–"))
    parts.append(_text("mid soft", left + (WIDTH - left) / 2, bottom + 52, across))
    for number, one in enumerate(series):
        shift = 9 * (number - (len(series) - 1) / 2)
        places = [
            (left + wide * (at + 0.5) + shift, value, bins[at])
            for at, value in enumerate(one.values)
            if value
        ]
        path = "".join(
            f"{'L' if n else 'M'}{x:.1f} {y(value.value):.1f}" for n, (x, value, _) in enumerate(places)
        )
        parts.append(_path(f"line s{number}", path))
        for x, value, label in places:
            whisker = (
                ""
                if value.low is None or value.high is None
                else f"M{x:.1f} {y(value.low):.1f}V{y(value.high):.1f}"
            )
            parts.append(_marked(number, value, x, y(value.value), whisker, f"{label}, {one.name}"))
    return _plot(name, title, note, bottom + 60, parts)


def distribution(
    name: str, title: str, note: str, across: str, series: Sequence[tuple[str, Sequence[int]]]
) -> Plot:
    """How many samples have which score: counts in equal bins from 0 to 100, the series side by side."""
    left, top, bottom = 44, _LEGEND + 10, 236
    bins = max(len(counts) for _, counts in series)
    most = max(1, *(count for _, counts in series for count in counts))
    unit = _nice(most)
    high = unit * ceil(most / unit)
    wide = (WIDTH - left - 10) / bins
    parts = [*_legend([label for label, _ in series], left)]
    for value in range(0, high + 1, unit):
        y = bottom - value / high * (bottom - top)
        parts += [
            _path("grid", f"M{left} {y:.1f}H{WIDTH - 10}"),
            _text("end soft", left - 8, y + 4, str(value)),
        ]
    for at in range(bins + 1):
        parts.append(_text("mid soft", left + wide * at, bottom + 18, str(round(100 / bins * at))))
    parts.append(_text("mid soft", left + (WIDTH - left) / 2, bottom + 38, across))
    bar = (wide - 8) / len(series)
    for number, (label, counts) in enumerate(series):
        for at, count in enumerate(counts):
            size = count / high * (bottom - top)
            said = f"{label}, {100 / bins * at:.0f} to {100 / bins * (at + 1):.0f}: {count}"
            parts.append(
                _bar(number, left + wide * at + 4 + bar * number, bottom - size, bar - 1, size, said)
            )
    return _plot(name, title, note, bottom + 46, parts)


def bubbles(
    name: str, title: str, note: str, across: str, upwards: str, places: Sequence[tuple[float, float, int]]
) -> Plot:
    """How many samples stand where on two scales from 0 to 100: the area of a bubble is their number."""
    left, top, bottom = 44, 26, 326
    right = WIDTH - 14

    def x(value: float) -> float:
        return left + 14 + value / 100 * (right - left - 28)

    def y(value: float) -> float:
        return bottom - 14 - value / 100 * (bottom - top - 28)

    parts = [_text("soft", 2, 12, upwards), *_scores_axis(left, y)]
    parts += [_path("grid", f"M{x(tick):.1f} {top}V{bottom}") for tick in _TICKS]
    parts += [_text("mid soft", x(tick), bottom + 18, str(tick)) for tick in _TICKS]
    parts.append(_text("mid soft", (left + right) / 2, bottom + 38, across))
    parts.append(_path("even", f"M{x(0):.1f} {y(0):.1f}L{x(100):.1f} {y(100):.1f}"))
    most = max((count for *_, count in places), default=1)
    for one, other, count in sorted(places, key=lambda place: -place[2]):
        said = shown(f"{across} about {one:.0f}, {upwards.lower()} about {other:.0f}: {count}")
        parts.append(
            _format(
                '<circle class="bubble" cx="{}" cy="{}" r="{}"><title>{}</title></circle>',
                round(x(one), 1), round(y(other), 1), round(2 + 13 * sqrt(count / most), 1), said,
            )
        )  # fmt: skip
    return _plot(name, title, note, bottom + 46, parts)


def stacked(
    name: str, title: str, note: str, unit: str, rows: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]
) -> Plot:  # fmt: skip
    """Amounts of several kinds in one bar for each row, with the sum behind it."""
    left, top, step = _room(rows), _LEGEND + 4, 26
    sums = [sum(values[row] for _, values in series) for row in range(len(rows))]
    scale = (WIDTH - left - 78) / (max(sums, default=0) or 1)
    parts = [*_legend([label for label, _ in series], left)]
    for row, label in enumerate(rows):
        y = top + step * row
        parts.append(_text("end", left - 10, y + 15, _short(label)))
        x = float(left)
        for number, (kind, values) in enumerate(series):
            size = values[row] * scale
            parts.append(_bar(number, x, y + 3, size, 17, f"{label}, {kind}: {_amount(values[row])} {unit}"))
            x += size
        parts.append(_text("soft", x + 6, y + 15, f"{_amount(sums[row])}"))
    return _plot(name, title, note, top + step * len(rows) + 6, parts)


def _amount(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:.1f} M"
    return (
        f"{value / 1_000:.1f} k" if value >= 10_000 else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    )


def _nice(most: int) -> int:
    """A step of 1, 2 or 5 times a power of ten that divides an axis into about four."""
    rough = max(1.0, most / 4)
    power = 10 ** int(log10(rough))
    return int(next(step * power for step in (1, 2, 5, 10) if step * power >= rough))


def _room(rows: Sequence[str]) -> int:
    return round(min(150, max(70, 14 + _CHARACTER * max(len(_short(row)) for row in rows))))


def _short(label: str) -> str:
    return label if len(label) <= 20 else label[:19] + "…"


def _scores_axis(left: float, y: object) -> Iterator[Markup]:
    assert callable(y)
    for tick in _TICKS:
        yield _path("grid", f"M{left} {y(tick):.1f}H{WIDTH - 10}")
        yield _text("end soft", left - 8, y(tick) + 4, str(tick))


def _legend(names: Sequence[str], left: float) -> Iterator[Markup]:
    if len(names) == 1:
        yield _text("soft", left, 14, names[0])
        return
    room = (WIDTH - left) / len(names)
    x = left + 6
    for number, name in enumerate(names):
        most = max(6, int((room - 24) / _CHARACTER))
        label = name if len(name) <= most else name[: most - 1] + "…"
        yield _mark(number, x, 10)
        yield _text("soft", x + 10, 14, label)
        x += 30 + _CHARACTER * len(label)


def _marked(number: int, value: Value, x: float, y: float, whisker: str, whose: str) -> Markup:
    line = _path(f"whisker s{number}", whisker) if whisker else ""
    return _format("<g><title>{}: {}</title>{}{}</g>", shown(whose), value.said, line, _mark(number, x, y))


def _mark(number: int, x: float, y: float) -> Markup:
    """A form for each colour, so that no one has to tell colours apart."""
    x, y = round(x, 1), round(y, 1)
    if number % 3 == 0:
        return _format('<circle class="mark s{}" cx="{}" cy="{}" r="4.5"/>', number, x, y)
    if number % 3 == 1:
        return _format('<path class="mark s{}" d="M{} {}l5 5l-5 5l-5 -5z"/>', number, x, round(y - 5, 1))
    return _format(
        '<rect class="mark s{}" x="{}" y="{}" width="8" height="8"/>',
        number,
        round(x - 4, 1),
        round(y - 4, 1),
    )


def _bar(number: int, x: float, y: float, wide: float, high: float, said: str) -> Markup:
    return _format(
        '<rect class="bar s{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
        number, round(x, 1), round(y, 1), round(max(0.0, wide), 1), round(high, 1), shown(said),
    )  # fmt: skip


def _path(kind: str, path: str) -> Markup:
    return _format('<path class="{}" d="{}"/>', kind, path)


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return _format('<text class="{}" x="{}" y="{}">{}</text>', kind, round(x, 1), round(y, 1), shown(text))


def _format(template: str, *values: object) -> Markup:
    from markupsafe import Markup

    return Markup(template).format(*values)


def _plot(name: str, title: str, note: str, height: float, parts: Sequence[Markup]) -> Plot:
    from markupsafe import Markup

    return Plot(name, shown(title), shown(note), height, Markup("").join(parts))
