"""A plot as files of its own for papers: SVG, and PNG where vl-convert is installed.

In: a `Plot`. Out: SVG text that needs no page (the light colours of the page's style sheets stand in it), and PNG at
three times its size. PNG comes from the extra `charts` (vl-convert-python, 84 MB installed), which nothing else needs.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec

from agentworldbench.render.plots import Plot
from agentworldbench.render.shell import SHELL

_VARIABLE = re.compile(r"(--[\w-]+): (?:light-dark\(([^,()]+), [^()]+\)|([^;]+));")
_USE = re.compile(r"var\((--[\w-]+)\)")
SCALE = 3
"""Pixels of a PNG for each unit of its plot: 1,800 across."""


def picture_kinds() -> tuple[str, ...]:
    """Endings of the files that can be made of a plot."""
    return ("svg", "png") if can_make_png() else ("svg",)


def svg_file(plot: Plot) -> str:
    """The plot as the text of an SVG file, on white."""
    height = round(plot.height, 1)
    size = f' xmlns="http://www.w3.org/2000/svg" width="600" height="{height}"'
    body = str(plot.markup(size))
    style = f'<style>{_light()}</style><rect width="600" height="{height}" fill="#ffffff"/>'
    start = body.index(">") + 1
    return f"{body[:start]}{style}{body[start:]}\n"


def can_make_png() -> bool:
    """Whether what makes PNG is installed."""
    return find_spec("vl_convert") is not None


def png_file(plot: Plot) -> bytes:
    """The plot as a PNG file; only where `can_make_png`."""
    import vl_convert

    made: bytes = vl_convert.svg_to_png(svg_file(plot), scale=SCALE)
    return made


@cache
def _light() -> str:
    """The style sheet of plots with the light colours in place of variables."""
    known = (SHELL / "shell.css").read_text("utf-8") + (SHELL / "plots.css").read_text("utf-8")
    values = {name: light or plain for name, light, plain in _VARIABLE.findall(known)}
    rules = (SHELL / "plots.css").read_text("utf-8").partition("}\n")[2]
    return _USE.sub(lambda use: values[use[1]], rules).replace("min-width: 460px; ", "")
