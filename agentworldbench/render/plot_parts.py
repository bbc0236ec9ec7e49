"""What plots share: their frame, axes, scales, legends, and how long a name may be.

In: names, titles, what differs. Out: pieces of Altair charts. Names stand in parameters of a chart (`rows`, `series` and
what else is named by its labels), where expressions look them up by number: what somebody calls a model is never read
as an expression.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from textwrap import wrap
from typing import Any, Final

from agentworldbench.render.drawing import COLOURS, SHAPES, SOFT, STRONG_LINE, TEXT, Specification
from agentworldbench.render.sample import shown

Values = list[dict[str, Any]]
"""Of a chart: what each of its marks is made of."""
TICKS: Final = [0, 25, 50, 75, 100]
_CHARACTER: Final = 6.6
"""Width of a letter, in units of a drawing."""
_WIDER: Final = 1.17
"""Than that of a drawing may be the font of a page."""


def load_altair() -> None:
    """Import Altair, which asks for the home directory meanwhile and has no use for it here: where there is none, as
    under a number without a user in a container, it is shown the one for temporary files."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = gettempdir()
        try:
            import_module("altair")
        finally:
            del os.environ["HOME"]


def chart_of(data: str) -> Any:
    """A chart of the data that `framed` gets under this name (values in a chart would be copied at each step)."""
    import altair as alt

    return alt.Chart(alt.NamedData(name=data))


def framed(
    layers: Sequence[Any],
    width: int,
    height: int,
    data: Mapping[str, Values],
    **names: Sequence[str] | Sequence[list[str]],
) -> Specification:
    """Layers as one chart that is as wide as asked, with its data and the names that its labels look up.

    Room is left at both sides for fonts of a page that are wider than the one of the drawing.
    """
    import altair as alt

    left = 4 + (_WIDER - 1) * _wide(names.get("rows", ()))
    right = 8 + (_WIDER - 1) * _wide(names.get("ends", ()))
    # A column of the legend is a symbol of 16, a name, and 24 to the next; it begins where the rows' names end.
    columns = int(
        (width - left - _wide(names.get("rows", ())) + 24) / (40 + _WIDER * _wide(names.get("series", ())))
    )
    # What concerns the whole is put beside the layers: each method of a chart would copy all of them.
    chart: Specification = alt.layer(*layers).to_dict(validate=False)
    return chart | {
        "width": width,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": left, "right": right, "top": 4, "bottom": 2},
        "config": {"legend": {"columns": max(1, columns)}},
        "params": [{"name": name, "value": _labels(some)} for name, some in names.items()],
        "datasets": data,
    }


def footed(chart: Specification, foot: str) -> Specification:
    """A chart with a sentence below it, in as many lines as it needs."""
    if not foot:
        return chart
    lines = wrap(shown(foot), int(chart["width"] / _CHARACTER))
    looks = {
        "orient": "bottom",
        "anchor": "start",
        "offset": 10,
        "color": SOFT,
        "fontSize": 11,
        "fontWeight": "normal",
    }
    return chart | {"title": {"text": lines, **looks}}


def _labels(names: Sequence[str] | Sequence[list[str]]) -> list[Any]:
    """Names as labels; one of several lines is a list."""
    return [short(one) if isinstance(one, str) else [short(line) for line in one] for one in names]


def named_rows(rows: Sequence[str], apart: bool = True) -> Any:
    """Rows from above; where the last of several stands `apart`, its name is bold."""
    import altair as alt

    last = len(rows) - 1 if apart and len(rows) > 1 else -1
    weight = {"condition": {"test": f"datum.value == {last}", "value": "bold"}, "value": "normal"}
    axis = alt.Axis(labelExpr="rows[datum.value]", labelColor=TEXT, labelFontWeight=weight)
    return alt.Y("at:O", scale=numbered(rows), axis=axis, title=None)


def line_above_last(rows: Sequence[str], step: int) -> Any:
    """A line above the last of several rows; its data are `line_data`, named `line`."""
    import altair as alt

    return (
        chart_of("line").mark_rule(color=STRONG_LINE, aria=False).encode(y=alt.value(step * (len(rows) - 1)))
    )


def line_data(rows: Sequence[str]) -> Values:
    """One line where there are several rows."""
    return [{}] if len(rows) > 1 else []


def with_whiskers(
    base: Any, hues: Any, forms: Any, place: dict[str, Any], whisker: dict[str, Any]
) -> list[Any]:
    """Marks with their intervals as whiskers: encodings of a series, and where the two stand."""
    import altair as alt

    said = alt.Description("said:N")
    return [
        base.transform_filter("datum.low !== null")
        .mark_rule(strokeWidth=2.5, strokeCap="round", opacity=0.5)
        .encode(color=hues, description=said, **whisker),
        base.mark_point(filled=True, size=64, opacity=1).encode(
            color=hues, shape=forms, description=said, **place
        ),
    ]


def scores_axis(every: int = 25, grid: bool = True) -> Any:
    """An axis of scores."""
    import altair as alt

    return alt.Axis(values=[*range(0, 101, every)], grid=grid, labelFlush=False)


def upwards_axis(title: str, **more: Any) -> Any:
    """An axis on the left, its title level above it."""
    import altair as alt

    return alt.Axis(
        grid=True, title=shown(title), titleAngle=0, titleAlign="left", titleAnchor="end", titleBaseline="bottom",
        titleX=-26, titleY=-10, **more,
    )  # fmt: skip


def hundred(**more: Any) -> Any:
    """The scale of scores."""
    import altair as alt

    return alt.Scale(domain=[0, 100], nice=False, zero=False, **more)


def numbered(names: Sequence[object], **more: Any) -> Any:
    """A scale of the numbers of names."""
    import altair as alt

    return alt.Scale(domain=[*range(len(names))], **more)


def colour(names: Sequence[str], symbol: str | None = "", **legend: Any) -> Any:
    """The colour of a series; `symbol` is that of the legend, empty for that of the marks, None for no legend."""
    import altair as alt

    scale = numbered(names, range=[COLOURS[place % len(COLOURS)] for place in range(len(names))])
    return alt.Color("series:O", scale=scale, legend=_legend(symbol, **legend))


def shape(names: Sequence[str], symbol: str | None = "", **legend: Any) -> Any:
    """The form of a series; what is said of the legend must be what its colour says."""
    import altair as alt

    scale = numbered(names, range=SHAPES[: len(names)])
    return alt.Shape("series:O", scale=scale, legend=_legend(symbol, **legend))


def _legend(symbol: str | None, **more: Any) -> Any:
    import altair as alt

    if symbol is None:
        return None
    more |= {"symbolType": symbol} if symbol else {}
    return alt.Legend(labelExpr="series[datum.value]", title=None, **more)


def _wide(names: Sequence[str] | Sequence[list[str]]) -> float:
    """Room for the longest name."""
    return _CHARACTER * max((len(short(name)) for name in names if isinstance(name, str)), default=0)


def short(label: str) -> str:
    """A name as a label, whatever is in it; of a long one beginning and end, which tell versions apart."""
    label = shown(label)
    return label if len(label) <= 20 else f"{label[:11]}…{label[-8:]}"
