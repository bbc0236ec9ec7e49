"""From an Altair chart to a drawing of ours: vl-convert's SVG, of which what is seen is kept and nothing else.

In: a function that makes a chart for a width. Out: a `Plot`, drawn twice, for a wide and for a narrow place. Colours are
names of variables of the page's style sheet, so a plot follows light and dark; `plot_files.py` puts light colours in their place.
What vl-convert writes is read as XML and written anew from a list of elements and attributes that may stay: no ids, styles,
links or handlers, numbers with one decimal, and what a mark is said to be is its `<title>`. Vega and the font that texts are
measured with come with vl-convert: nothing is asked of a network, and equal numbers make equal bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from agentworldbench.render.sample import shown

if TYPE_CHECKING:
    from markupsafe import Markup

WIDE: Final = 600
NARROW: Final = 320
"""Widths in units of a drawing; its letters are 12 of them high, on a page about as many pixels."""
FONT: Final = "Liberation Sans"
"""Comes with vl-convert, so texts are as wide on every machine; Arial and Helvetica have the same widths."""
TEXT, SOFT, LINE, STRONG_LINE, CARD = (
    f"var(--{name})" for name in ("text", "soft", "line", "strong-line", "card")
)
COLOURS: Final = tuple(f"var(--s{number})" for number in range(4))
SHAPES: Final = (
    "circle",
    "diamond",
    "square",
    "triangle-up",
    "cross",
    "triangle-down",
    "M-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0L-1,-.6Z",
    "triangle-right",
    "M0,-1.2L.3,-.4L1.1,-.4L.5,.1L.7,1L0,.5L-.7,1L-.5,.1L-1.1,-.4L-.3,-.4Z",
    "triangle-left",
)
"""A form for each series, so that no one has to tell colours apart; where there are more than colours, these begin anew."""

_ELEMENTS: Final = {"g", "path", "line", "rect", "text", "tspan"}
_PLACES: Final = {"d", "transform", "x", "y", "x2", "y2", "dy", "width", "height"}
_COLOURED: Final = {"fill", "stroke"}
_INHERITED: Final = _COLOURED | {
    "fill-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-size", "font-weight", "text-anchor",
}  # fmt: skip
_LOOKS: Final = _INHERITED | {"opacity"}
_USUAL: Final = {
    ("opacity", "1"), ("fill-opacity", "1"), ("stroke-width", "1"), ("font-size", "12px"), ("font-weight", "normal"),
    ("text-anchor", "start"), ("transform", "translate(0,0)"), ("x2", "0"), ("y2", "0"),
}  # fmt: skip
"""What an attribute is that is not there."""
_NUMBER: Final = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


Specification = dict[str, Any]
"""A chart as Altair hands it on: what Vega-Lite reads."""


@dataclass(frozen=True)
class Drawing:
    """What stands between the tags of an SVG, and its size."""

    width: float
    height: float
    body: Markup


@dataclass(frozen=True)
class Plot:
    """A plot: `name` is that of its files; `narrow` is for a telephone; `foot` stands in the drawing itself."""

    name: str
    title: str
    note: str
    wide: Drawing
    narrow: Drawing
    foot: str = ""

    def markup(self) -> Markup:
        """Both drawings as elements of a page, whose style sheet shows the one that there is room for."""
        from markupsafe import Markup

        template = Markup('<svg class="plot {}" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>')
        return Markup("").join(
            template.format(kind, one.width, one.height, self.said, one.body)
            for kind, one in (("wide", self.wide), ("narrow", self.narrow))
        )

    @property
    def said(self) -> str:
        """For those who do not see it."""
        return " ".join(filter(None, (f"{self.title}. {self.note}", self.foot)))


def plot(name: str, title: str, note: str, chart: Callable[[int], Specification], foot: str = "") -> Plot:
    """Draw what `chart` makes for a width; `foot` is a sentence that it draws and that who sees nothing is told."""
    from altair.utils.schemapi import debug_mode

    # Altair would check each piece of a chart against a schema, which takes twice as long as the drawing.
    with debug_mode(False):
        wide, narrow = chart(WIDE), chart(NARROW)
    return Plot(name, shown(title), shown(note), drawing(wide), drawing(narrow), shown(foot))


def drawing(chart: Specification) -> Drawing:
    """A chart as markup."""
    from markupsafe import Markup

    tree = ElementTree.fromstring(_svg(json.dumps(chart, sort_keys=True)))
    parts = [ElementTree.tostring(part, "unicode") for child in tree for part in _kept(child)]
    width, height = (round(float(tree.attrib[name]), 1) for name in ("width", "height"))
    return Drawing(width, height, Markup("".join(parts)))


@lru_cache(maxsize=64)
def _svg(chart: str) -> str:
    """What vl-convert makes of a chart; kept for who looks at the same numbers again."""
    import vl_convert

    made: str = vl_convert.vegalite_to_svg(chart, config=_CONFIG, allowed_base_urls=[])
    return made


def _kept(node: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """The node as it is written anew, its children in its place where it says nothing itself, or nothing."""
    kind = node.tag.rpartition("}")[2]
    if kind not in _ELEMENTS or _unseen(node):
        return
    children = [kept for child in node for kept in _kept(child)]
    attributes = dict(_attributes(node))
    if kind == "g" and children:
        attributes |= _lifted(children)
        children = [one for child in children for one in (child if _plain(child) else [child])]
    if kind == "g" and not (attributes and children):
        yield from children
        return
    made = ElementTree.Element(kind, attributes)
    if kind in ("text", "tspan"):
        made.text = node.text
    elif kind != "g" and node.get("role") == "graphics-symbol" and (said := node.get("aria-label")):
        ElementTree.SubElement(made, "title").text = said
    made.extend(children)
    yield made


def _lifted(children: list[ElementTree.Element]) -> dict[str, str]:
    """What all children say alike, taken from them: they inherit it from their group."""
    alike = {name: value for name, value in children[0].items() if name in _INHERITED}
    for child in children:
        alike = {name: value for name, value in alike.items() if child.get(name) == value}
    for child in children:
        for name in alike:
            del child.attrib[name]
    return alike


def _plain(node: ElementTree.Element) -> bool:
    """A group that says nothing, now that what its children had in common stands further up."""
    return node.tag == "g" and not node.attrib


def _unseen(node: ElementTree.Element) -> bool:
    """Vega puts frames around its groups, most of them without size or colour."""
    plain = node.get("class") in ("background", "foreground") and not (node.get("fill") or node.get("stroke"))
    return plain or node.get("display") == "none" or node.get("d") == ""


def _attributes(node: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for name, value in node.items():
        if name not in _PLACES | _LOOKS or (name == "stroke-width" and not node.get("stroke")):
            continue
        if name not in _COLOURED:
            value = _rounded(value, 1 if name in _PLACES else 2)
        if (name, value) not in _USUAL:
            yield name, value


def _rounded(text: str, digits: int) -> str:
    """The text with its numbers as exact as can be seen; -0 is 0."""
    return _NUMBER.sub(lambda number: f"{round(float(number[0]), digits) + 0.0:g}", text)


_CONFIG: Final = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "text": {"fontSize": 12, "color": TEXT},
    "axis": {
        "domain": False,
        "ticks": False,
        "grid": False,
        "gridColor": LINE,
        "labelColor": SOFT,
        "labelFontSize": 12,
        "labelPadding": 8,
        "labelLimit": 400,
        "labelAngle": 0,
        "labelOverlap": False,
        "titleColor": SOFT,
        "titleFontSize": 12,
        "titlePadding": 10,
        "titleFontWeight": "normal",
    },
    "legend": {
        "orient": "top",
        "titleColor": SOFT,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": TEXT,
        "labelFontSize": 12,
        "labelLimit": 400,
        "symbolSize": 70,
        "symbolOpacity": 1,
        "symbolStrokeWidth": 0,
        "columnPadding": 24,
        "offset": 10,
    },
}
"""How all plots look."""
