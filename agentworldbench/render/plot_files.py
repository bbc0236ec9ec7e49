"""A plot as files of its own for papers: SVG, and PNG at three times its size.

In: a `Plot`. Out: its wide drawing as the text of an SVG file, which needs no page (the light colours of the page's style sheets
stand in it), and as PNG. Both say the font that the texts were measured with; it comes with vl-convert.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from agentworldbench.render.drawing import FONT, Plot
from agentworldbench.render.shell import SHELL

_VARIABLE = re.compile(r"(--[\w-]+): (?:light-dark\(([^,()]+), [^()]+\)|([^;]+));")
_USE = re.compile(r"var\((--[\w-]+)\)")
SCALE = 3
"""Pixels of a PNG for each unit of its plot: 1,800 across."""


def svg_file(plot: Plot) -> str:
    """The plot as the text of an SVG file, on white."""
    from markupsafe import Markup

    drawn = plot.wide
    body = Markup(_USE.sub(lambda use: _light()[use[1]], drawn.body))
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" width="{0:g}" height="{1:g}" role="img"'
        ' aria-label="{2}" font-family="{3}, Arial, Helvetica, sans-serif" font-size="12">'
        '<rect width="{0:g}" height="{1:g}" fill="#ffffff"/>{4}</svg>\n'
    ).format(drawn.width, drawn.height, plot.said, FONT, body)


def png_file(plot: Plot) -> bytes:
    """The plot as a PNG file."""
    return _png(svg_file(plot))


@lru_cache(maxsize=16)
def _png(svg: str) -> bytes:
    """Kept, as the drawings are, for who looks at the same numbers again."""
    import vl_convert

    made: bytes = vl_convert.svg_to_png(svg, scale=SCALE)
    return made


@cache
def _light() -> dict[str, str]:
    """The variables of the page's style sheets as they are in light colours."""
    known = (SHELL / "shell.css").read_text("utf-8") + (SHELL / "plots.css").read_text("utf-8")
    return {name: light or plain for name, light, plain in _VARIABLE.findall(known)}
