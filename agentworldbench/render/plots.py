"""Plots of a run: intervals by row, a grid of numbers, trends, distributions, bubbles, stacked bars.

In: names and numbers. Out: a `Plot`: `drawing.py` makes it of an Altair chart, `plot_parts.py` has what charts share. Scores
run from 0 to 100 on every axis. Names are values that a chart looks up by number, never a part of its expressions. Each
mark tells its numbers, and each series has a form beside its colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from agentworldbench.render.drawing import (
    CARD,
    COLOURS,
    NARROW,
    SOFT,
    Specification,
    plot,
)
from agentworldbench.render.drawing import Plot as Plot  # who asks for plots gets their type here too
from agentworldbench.render.plot_parts import (
    TICKS,
    Values,
    chart_of,
    colour,
    footed,
    framed,
    hundred,
    line_above_last,
    line_data,
    named_rows,
    numbered,
    scores_axis,
    shape,
    short,
    upwards_axis,
    with_whiskers,
)
from agentworldbench.render.plot_values import Series
from agentworldbench.render.sample import shown

_AIRY: Final = 4
"""Marks in a row up to which they stand far apart."""


def intervals(
    name: str, title: str, note: str, rows: Sequence[str], series: Sequence[Series], foot: str = ""
) -> Plot:
    """A row for each name, in it a mark with its interval for each series, and the number; from 0 to 100; below it `foot`.

    The last of several rows stands apart: it is what the others come to.
    """
    import altair as alt

    marks, names = list(_marks(rows, series)), [one.name for one in series]
    step = (13 if len(series) <= _AIRY else 12) * len(series) + 13

    def chart(width: int) -> Specification:
        base = chart_of("marks").encode(
            y=named_rows(rows), yOffset=alt.YOffset("series:O", scale=numbered(series))
        )
        x = alt.X("value:Q", scale=hundred(), axis=scores_axis(), title="Score")
        layers = [
            line_above_last(rows, step),
            *with_whiskers(
                base, colour(names), shape(names), {"x": x}, {"x": alt.X("low:Q"), "x2": alt.X2("high:Q")}
            ),
            base.mark_text(align="right", dx=40, fontSize=11, color=SOFT, aria=False).encode(
                x=alt.value("width"), text=alt.Text("number:N")
            ),
        ]
        data = {"marks": marks, "line": line_data(rows)}
        return footed(framed(layers, width, step * len(rows), data, rows=rows, series=names), foot)

    return plot(name, title, note, chart, foot)


def grid(
    name: str, title: str, note: str, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]
) -> Plot:  # fmt: skip
    """Numbers from 0 to 100 in cells, the darker the higher; the last of several rows stands apart."""
    import altair as alt

    cells = [
        {"at": at, "column": column, "value": value, "number": "–" if value is None else f"{value:.1f}"}
        for at, row in enumerate(values)
        for column, value in enumerate(row)
    ]

    def chart(width: int) -> Specification:
        turned = {"labelAngle": -40, "labelAlign": "left"} if width == NARROW else {}
        axis = alt.Axis(orient="top", labelExpr="columns[datum.value]", **turned)
        base = chart_of("cells").encode(
            y=named_rows(rows), x=alt.X("column:O", scale=numbered(columns), axis=axis, title=None)
        )
        layers = [
            base.mark_rect(width={"band": 0.97}, height={"band": 0.93}, aria=False).encode(
                color=alt.value(COLOURS[0]),
                fillOpacity=alt.FillOpacity("value:Q", scale=hundred(range=[0.04, 0.5]), legend=None),
            ),
            base.mark_text(fontSize=10.5 if turned else 12, aria=False).encode(text=alt.Text("number:N")),
            line_above_last(rows, 28),
        ]
        ends = columns if turned else []
        data = {"cells": cells, "line": line_data(rows)}
        return framed(layers, width, 28 * len(rows), data, rows=rows, columns=columns, ends=ends)

    return plot(name, title, note, chart)


def trend(
    name: str, title: str, note: str, across: str, bins: Sequence[str], series: Sequence[Series]
) -> Plot:
    """Means with intervals along bins that have an order; each series is named at its end."""
    import altair as alt

    marks, names = list(_marks(bins, series)), [short(one.name) for one in series]
    counts = [
        max((value.samples or 0 for one in series if (value := one.values[at])), default=0)
        for at in range(len(bins))
    ]
    labels = [[label, f"n {count}" if count else "–"] for label, count in zip(bins, counts, strict=True)]
    ends = list(_ends(series))

    def chart(width: int) -> Specification:
        # Marks of a bin stand beside each other, so that their intervals can be told apart.
        narrow = width == NARROW
        shift = 9 * len(bins) / (width - (45 if narrow else 130))
        placed = [one | {"x": one["at"] + (one["series"] - (len(series) - 1) / 2) * shift} for one in marks]
        axis = alt.Axis(values=[*range(len(bins))], labelExpr="bins[datum.value]", labelLineHeight=15,
                        labelFontSize=10 if narrow else 12)  # fmt: skip
        x = alt.X("x:Q", scale=alt.Scale(domain=[-0.5, len(bins) - 0.5]), axis=axis, title=shown(across))
        y = alt.Y("value:Q", scale=hundred(), axis=upwards_axis("Score", values=TICKS))
        base = chart_of("marks").encode(x=x)
        end = chart_of("ends").encode(x=alt.value("width"), y=alt.Y("value:Q"))
        # Where there is no room beside the chart, the names stand above it.
        hues = colour(names, "" if narrow else None, offset=30)
        whisker = {"y": alt.Y("low:Q"), "y2": alt.Y2("high:Q")}
        layers = [
            base.mark_line(strokeWidth=1.5, opacity=0.6, aria=False).encode(y=y, color=hues),
            *with_whiskers(base, hues, shape(names, "" if narrow else None, offset=30), {"y": y}, whisker),
        ]
        if narrow:
            return framed(layers, width, 190, {"marks": placed}, series=names, bins=labels)
        layers += [
            end.mark_point(filled=True, size=60, opacity=1, xOffset=8, aria=False).encode(
                color=hues, shape=shape(names, None)
            ),
            end.mark_text(align="left", dx=17, aria=False).encode(text=alt.Text("name:N")),
        ]
        return framed(layers, width, 190, {"marks": placed, "ends": ends}, ends=names, bins=labels)

    return plot(name, title, note, chart)


def distribution(
    name: str, title: str, note: str, across: str, series: Sequence[tuple[str, Sequence[int]]]
) -> Plot:
    """How many samples have which score: counts in equal bins from 0 to 100, the series side by side."""
    import altair as alt

    names = [label for label, _ in series]
    size = 100 / max(len(counts) for _, counts in series)
    room = size * 0.86 / len(series)
    bars: Values = [
        {
            "series": number,
            "count": count,
            "from": at * size + size * 0.07 + room * number + 0.15,
            "to": at * size + size * 0.07 + room * (number + 1) - 0.15,
            "said": shown(f"{label}, {at * size:.0f} to {(at + 1) * size:.0f}: {count}"),
        }
        for number, (label, counts) in enumerate(series)
        for at, count in enumerate(counts)
    ]
    most = max(4, *(bar["count"] for bar in bars))  # an axis of whole numbers has four

    def chart(width: int) -> Specification:
        every = 20 if width == NARROW else 10
        x = alt.X("from:Q", scale=hundred(), axis=scores_axis(every, grid=False), title=shown(across))
        axis = upwards_axis("Predictions", tickCount=4, tickMinStep=1, format=",d")
        layer = (
            chart_of("bars")
            .mark_rect()
            .encode(
                x=x,
                x2=alt.X2("to:Q"),
                y=alt.Y("count:Q", scale=alt.Scale(domain=[0, most], nice=4), axis=axis),
                y2=alt.datum(0),
                color=colour(names, "square", offset=30),
                description=alt.Description("said:N"),
            )
        )
        return framed([layer], width, 180, {"bars": bars}, series=names)

    return plot(name, title, note, chart)


def bubbles(
    name: str, title: str, note: str, across: str, upwards: str, places: Sequence[tuple[float, float, int]]
) -> Plot:
    """How many samples stand where on two scales from 0 to 100: the area of a bubble is their number."""
    import altair as alt

    marks: Values = [
        {"x": one, "y": other, "count": count,
         "said": shown(f"{across} ~{one:.0f}, {upwards.lower()} ~{other:.0f}: {count}")}
        for one, other, count in sorted(places, key=lambda place: -place[2])
    ]  # fmt: skip
    most = max((count for *_, count in places), default=1)
    sizes = sorted({1, max(1, round(most / 4)), most})

    def chart(width: int) -> Specification:
        x = alt.X("x:Q", scale=hundred(padding=14), axis=scores_axis(), title=shown(across))
        y = alt.Y("y:Q", scale=hundred(padding=14), axis=upwards_axis(upwards, values=TICKS))
        beside = {"orient": "bottom", "columns": 3} if width == NARROW else {"orient": "right", "columns": 1}
        legend = alt.Legend(
            title="Predictions", values=sizes, format="d", offset=8, symbolType="circle", symbolFillColor=COLOURS[0],
            symbolOpacity=0.55, **beside,
        )  # fmt: skip
        data = {"marks": marks, "even": [{"x": 0, "y": 0, "x2": 100, "y2": 100}]}
        layers = [
            chart_of("even")
            .mark_rule(strokeDash=[4, 4], color=SOFT, opacity=0.7, aria=False)
            .encode(x=x, y=y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q")),
            chart_of("marks")
            .mark_point(filled=True, color=COLOURS[0], opacity=1, fillOpacity=0.55)
            .encode(
                x=x,
                y=y,
                size=alt.Size("count:Q", scale=alt.Scale(domain=[0, most], range=[0, 800]), legend=legend),
                description=alt.Description("said:N"),
            ),
        ]
        return framed(layers, width, 260 if width == NARROW else 360, data, ends=["Predictions"])

    return plot(name, title, note, chart)


def stacked(
    name: str, title: str, note: str, unit: str, rows: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]
) -> Plot:  # fmt: skip
    """Amounts of several kinds in one bar for each row, with the sum behind it."""
    import altair as alt

    names = [label for label, _ in series]
    bars: Values = []
    sums: Values = []
    for at, row in enumerate(rows):
        start = 0.0
        for number, (kind, values) in enumerate(series):
            said = shown(f"{row}, {kind}: {_amount(values[at])} {unit}")
            bars.append({"at": at, "series": number, "from": start, "to": start + values[at], "said": said})
            start += values[at]
        sums.append({"at": at, "to": start, "sum": _amount(start)})
    most = max((one["to"] for one in sums), default=0) or 1

    def chart(width: int) -> Specification:
        x = alt.X("from:Q", scale=alt.Scale(domain=[0, most]), axis=None)
        layers = [
            chart_of("bars")
            .mark_bar(height={"band": 0.68}, stroke=CARD, strokeWidth=1)
            .encode(
                y=named_rows(rows, apart=False),
                x=x,
                x2=alt.X2("to:Q"),
                color=colour(names, "square"),
                description=alt.Description("said:N"),
            ),
            chart_of("sums")
            .mark_text(align="left", dx=6, color=SOFT, aria=False)
            .encode(y=named_rows(rows, apart=False), x=alt.X("to:Q", axis=None), text=alt.Text("sum:N")),
        ]
        ends = [one["sum"] for one in sums]
        return framed(
            layers, width, 26 * len(rows), {"bars": bars, "sums": sums}, rows=rows, series=names, ends=ends
        )

    return plot(name, title, note, chart)


def _marks(places: Sequence[str], series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """A mark for each value there is; `at` and `series` are the numbers of its place and its series."""
    for number, one in enumerate(series):
        for at, value in enumerate(one.values):
            if value is not None:
                known = value.low is not None and value.high is not None
                low, high = (_held(value.low or 0), _held(value.high or 0)) if known else (None, None)
                said = shown(f"{places[at]}, {one.name}: {value.said}")
                yield {"at": at, "series": number, "value": _held(value.value), "low": low, "high": high,
                       "number": f"{value.value:.1f}", "said": said}  # fmt: skip


def _ends(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """Where the name of each series stands: at its last value, and as far from the others as it is high."""
    known = [
        (last, number)
        for number, one in enumerate(series)
        if (last := next((_held(value.value) for value in reversed(one.values) if value), None)) is not None
    ]
    least, place = 8.0, -8.0
    for left, (value, number) in zip(
        range(len(known) - 1, -1, -1), sorted(known, key=lambda one: (one[0], -one[1])), strict=True
    ):
        place = min(max(value, place + least), 100 - least * left)
        yield {"series": number, "value": place, "name": short(series[number].name)}


def _held(value: float) -> float:
    """A score on its axis."""
    return max(0.0, min(100.0, value))


def _amount(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:.1f} M"
    return (
        f"{value / 1_000:.1f} k" if value >= 10_000 else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    )
