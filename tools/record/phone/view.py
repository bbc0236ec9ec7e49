"""A tiny view tree for the simulated phone: views, builders, layout, hit test.

In: views as the apps of this package build them, anew for every screen. Out: the same views with
bounds in pixels on a screen of 1080 x 2400 (2.625 pixels a dp). Rules of the layout: a view is as high
as it says or as its children are; `grow` views share what is left; text is 22 pixels a character wide
and wraps at words. What lies outside of its parent is cut, and a view without area is not on the screen.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Rect = tuple[int, int, int, int]
Callback = Callable[[], None]

WIDTH, HEIGHT = 1080, 2400
STATUS_BAR, NAVIGATION_BAR, KEYBOARD_TOP = 128, 2337, 1497
BAR, ROW, LINE, MARGIN, CHARACTER = 147, 189, 58, 42, 22

_CLASSES = {
    "View": "android.view.View",
    "ViewGroup": "android.view.ViewGroup",
    "RecyclerView": "androidx.recyclerview.widget.RecyclerView",
}


@dataclass
class View:
    """One node. `width` and `height` of 0 mean: as large as the parent, as high as the children.

    `flow` lays the children out: `down`, `across`, `right` (across, pushed to the right end),
    `grid` (seven columns, `lead` empty cells first). `dock` takes the view out of the flow: `fab`
    (bottom right corner) or `bottom` (full width). `lift` raises a docked view. `scroll` names the
    scroll position of a list; `offset` and `hidden` are its position and how far it can go.
    """

    cls: str
    text: str = ""
    desc: str = ""
    hint: str = ""
    res: str = ""
    flags: set[str] = field(default_factory=set)
    children: list[View] = field(default_factory=list)
    width: int = 0
    height: int = 0
    grow: bool = False
    flow: str = "down"
    pad: tuple[int, int] = (0, 0)
    dock: str = ""
    lift: int = 0
    lead: int = 0
    tap: Callback | None = None
    hold: Callback | None = None
    field: str = ""
    scroll: str = ""
    offset: int = 0
    hidden: int = 0
    bounds: Rect = (0, 0, 0, 0)

    def __post_init__(self) -> None:
        if self.tap:
            self.flags.add("clickable")
        if self.hold:
            self.flags.add("long_clickable")

    @property
    def full_class(self) -> str:
        """The class with its package, as Android prints it."""
        return _CLASSES.get(self.cls, f"android.widget.{self.cls}")

    def walk(self, depth: int = 0) -> Iterator[tuple[View, int]]:
        """This view and all below it that are on the screen, with their depths, parents first."""
        left, top, right, bottom = self.bounds
        if right > left and bottom > top:
            yield self, depth
            for child in self.children:
                yield from child.walk(depth + 1)


def label(text: str, res: str = "", height: int = LINE, **more: object) -> View:
    """A line of text that fills the width."""
    return View("TextView", text=text, res=res, height=height, **more)  # type: ignore[arg-type]


def paragraph(text: str, res: str, width: int) -> View:
    """Text in as many lines as it needs in `width` pixels."""
    lines = textwrap.wrap(text, width // CHARACTER) or [""]
    return View("TextView", text=text, res=res, height=LINE * len(lines))


def text_width(text: str) -> int:
    """The width of a text button with that label."""
    return CHARACTER * len(text) + 2 * MARGIN


def button(text: str, res: str, tap: Callback, enabled: bool = True, wide: bool = False) -> View:
    """A text button, as wide as its label or as its parent; a disabled one is shown but dead."""
    flags = set() if enabled else {"disabled"}
    size = 0 if wide else text_width(text)
    return View("Button", text=text, res=res, flags=flags, width=size, height=126, tap=tap)


def icon(desc: str, res: str, tap: Callback) -> View:
    """An icon button of a bar."""
    return View("ImageButton", desc=desc, res=res, width=126, height=BAR, tap=tap)


def picture(desc: str = "", res: str = "") -> View:
    """A small icon that does nothing."""
    return View("ImageView", desc=desc, res=res, width=105, height=BAR)


def column(*children: View, cls: str = "LinearLayout", **more: object) -> View:
    """Children one below the other."""
    return View(cls, children=list(children), **more)  # type: ignore[arg-type]


def across(*children: View, cls: str = "LinearLayout", height: int = BAR, **more: object) -> View:
    """Children side by side."""
    return View(cls, children=list(children), flow="across", height=height, **more)  # type: ignore[arg-type]


def scrolling(rows: list[View], res: str, cls: str = "RecyclerView") -> View:
    """A list that fills what is left of the screen and scrolls when its rows do not fit."""
    return View(cls, res=res, children=rows, grow=True, scroll=res)


def fab(desc: str, res: str, tap: Callback) -> View:
    """The round button in the corner."""
    return View("ImageButton", desc=desc, res=res, width=BAR, height=BAR, dock="fab", tap=tap)


def wanted_height(view: View) -> int:
    """Height of a view that does not grow."""
    if view.height:
        return view.height
    flowing = [child for child in view.children if not child.dock]
    heights = [wanted_height(child) for child in flowing] or [0]
    if view.flow == "grid":
        weeks = -(-(view.lead + len(flowing)) // 7)
        return weeks * heights[0] + 2 * view.pad[1]
    total = sum(heights) if view.flow == "down" else max(heights)
    return total + 2 * view.pad[1]


def place(view: View, bounds: Rect, scrolls: dict[str, int], clip: Rect | None = None) -> None:
    """Give `view` its place and lay out what it holds; `clip` is what its parents leave to see."""
    view.bounds = cut(bounds, clip or bounds)
    left, top, right, bottom = bounds
    inner = (left + view.pad[0], top + view.pad[1], right - view.pad[0], bottom - view.pad[1])
    flowing = [child for child in view.children if not child.dock]
    for child, rect in zip(flowing, _rects(view, flowing, inner, scrolls), strict=True):
        place(child, rect, scrolls, view.bounds)
    for child in view.children:
        if child.dock:
            place(child, _docked(child, bounds), scrolls, view.bounds)


def _rects(view: View, children: list[View], inner: Rect, scrolls: dict[str, int]) -> list[Rect]:
    left, top, right, bottom = inner
    if view.flow == "grid":
        return _grid(view, children, inner)
    if view.flow != "down":
        return _side_by_side(view, children, inner)
    heights = [0 if child.grow else wanted_height(child) for child in children]
    spare = bottom - top - sum(heights)
    growing = sum(child.grow for child in children)
    if growing:
        heights = [
            spare // growing if child.grow else size for child, size in zip(children, heights, strict=True)
        ]
    if view.scroll:
        view.hidden = max(0, -spare)
        view.offset = max(0, min(scrolls.get(view.scroll, 0), view.hidden))
        view.flags |= {"scrollable"} if view.hidden else set()
    rects, at = [], top - view.offset
    for child, size in zip(children, heights, strict=True):
        rects.append((left, at, left + child.width if child.width else right, at + size))
        at += size
    return rects


def _side_by_side(view: View, children: list[View], inner: Rect) -> list[Rect]:
    left, top, right, bottom = inner
    fixed = sum(child.width for child in children)
    filling = sum(not child.width for child in children)
    share = (right - left - fixed) // filling if filling else 0
    at = right - fixed if view.flow == "right" else left
    rects = []
    for child in children:
        size = child.width or share
        high = min(wanted_height(child) or bottom - top, bottom - top)
        above = top + (bottom - top - high) // 2
        rects.append((at, above, at + size, above + high))
        at += size
    return rects


def _grid(view: View, children: list[View], inner: Rect) -> list[Rect]:
    left, top, right, _ = inner
    size = (right - left) // 7
    rects = []
    for number, child in enumerate(children, view.lead):
        x, y = left + number % 7 * size, top + number // 7 * child.height
        rects.append((x, y, x + size, y + child.height))
    return rects


def _docked(view: View, bounds: Rect) -> Rect:
    left, _, right, bottom = bounds
    if view.dock == "fab":
        low = bottom - MARGIN - view.lift
        return right - MARGIN - view.width, low - view.height, right - MARGIN, low
    low = bottom - 21 - view.lift
    return left + 21, low - wanted_height(view), right - 21, low


def cut(inner: Rect, outer: Rect) -> Rect:
    """The common part of two rectangles, or one without area."""
    left, top = max(inner[0], outer[0]), max(inner[1], outer[1])
    return left, top, max(left, min(inner[2], outer[2])), max(top, min(inner[3], outer[3]))


def holds(bounds: Rect, x: int, y: int) -> bool:
    """Whether a point lies in a rectangle."""
    return bounds[0] <= x < bounds[2] and bounds[1] <= y < bounds[3]


def path_to(view: View, x: int, y: int) -> list[View]:
    """The views under a point, outermost first; of views that overlap the last one counts."""
    if not holds(view.bounds, x, y):
        return []
    for child in reversed(view.children):
        if below := path_to(child, x, y):
            return [view, *below]
    return [view]


def centre(bounds: Rect) -> tuple[int, int]:
    """The middle of a rectangle, where a finger lands."""
    return (bounds[0] + bounds[2]) // 2, (bounds[1] + bounds[3]) // 2
