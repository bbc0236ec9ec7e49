"""A small SVG writer for the pictures of the documentation: 700 pixels wide, readable in light and dark.

In: shapes and texts with a kind (`ink`, `soft`, `first`, `second`, …). Out: SVG text, the same for the same calls:
coordinates are rounded to a tenth. Colours come with the picture and follow the reader's scheme; the background is its
own, so that a page of another colour does no harm. No text is smaller than `SMALL` pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, Literal

WIDTH: Final = 700
SMALL: Final = 13
Anchor = Literal["start", "middle", "end"]

# Light and dark of each kind. Contrast with the background is at least 4.5 for all that is text.
COLOURS: Final = {
    "ground": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "soft": ("#59636e", "#9198a1"),
    "line": ("#c4ccd4", "#3d444d"),
    "first": ("#0a5cc2", "#58a6ff"),
    "second": ("#b3470a", "#f0883e"),
    "third": ("#17702f", "#4ac26b"),
    "fourth": ("#7a3ab8", "#bc8cff"),
    "pale": ("#e3e9f0", "#21262d"),
}


class Picture:
    """One picture in the making; y grows downwards."""

    def __init__(self, height: int, title: str, description: str) -> None:
        self._height = height
        self._head = (title, description)
        self._parts: list[str] = []
        self.text(20, 30, title, size=16, bold=True)

    def text(
        self, x: float, y: float, words: str, kind: str = "ink", size: int = SMALL, anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:  # fmt: skip
        """A line of text; `y` is its base line."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" class="{kind}" font-size="{max(size, SMALL)}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>"
        )

    def line(self, x: float, y: float, x2: float, y2: float, kind: str = "line", width: float = 1, dashed: bool = False) -> None:  # fmt: skip
        """A straight line."""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<line x1="{_n(x)}" y1="{_n(y)}" x2="{_n(x2)}" y2="{_n(y2)}" class="{kind}-line" stroke-width="{_n(width)}"{dashes}/>'
        )

    def dot(self, x: float, y: float, kind: str = "first", radius: float = 4, faint: bool = False) -> None:
        """A filled circle."""
        opacity = ' opacity="0.45"' if faint else ""
        self._parts.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="{kind}"{opacity}/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, opacity: float = 1) -> None:
        """A filled rectangle."""
        seen = "" if opacity == 1 else f' opacity="{_n(opacity, 2)}"'
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="2" class="{kind}"{seen}/>'
        )

    def area(self, points: Sequence[tuple[float, float]], kind: str, opacity: float = 1) -> None:
        """A filled polygon."""
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        self._parts.append(f'<polygon points="{path}" class="{kind}" opacity="{_n(opacity, 2)}"/>')

    def curve(self, points: Sequence[tuple[float, float]], kind: str, width: float = 2) -> None:
        """A line through points."""
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        self._parts.append(
            f'<polyline points="{path}" class="{kind}-line" fill="none" stroke-width="{_n(width)}"/>'
        )

    def interval(self, low: float, middle: float, high: float, y: float, kind: str) -> None:
        """A dot with whiskers."""
        self.line(low, y, high, y, kind, 3)
        for end in (low, high):
            self.line(end, y - 5, end, y + 5, kind, 3)
        self.dot(middle, y, kind, 5)

    def scale(self, left: float, right: float, y: float, ticks: Sequence[tuple[float, str]]) -> None:
        """A horizontal scale; `ticks` are places in pixels with what stands below them."""
        self.line(left, y, right, y, "soft")
        for x, words in ticks:
            self.line(x, y, x, y + 5, "soft")
            self.text(x, y + 20, words, "soft", anchor="middle")

    def svg(self) -> str:
        """The whole picture."""
        title, description = (escape(words) for words in self._head)
        light = "".join(_rules(name, colours[0]) for name, colours in COLOURS.items())
        dark = "".join(_rules(name, colours[1]) for name, colours in COLOURS.items())
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height}" width="{WIDTH}" '
                f'height="{self._height}" role="img" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
                f"<title>{title}</title>",
                f"<desc>{description}</desc>",
                f"<style>{light}@media (prefers-color-scheme: dark){{{dark}}}</style>",
                f'<rect width="{WIDTH}" height="{self._height}" rx="8" class="ground"/>',
                *self._parts,
                "</svg>\n",
            ]
        )


def _rules(name: str, colour: str) -> str:
    return f".{name}{{fill:{colour}}}.{name}-line{{stroke:{colour}}}"


def _n(value: float, decimals: int = 1) -> str:
    return f"{round(value, decimals) + 0:.{decimals}f}".rstrip("0").rstrip(".")
