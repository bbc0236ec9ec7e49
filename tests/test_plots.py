"""Plots as markup and as files: nothing of a name is markup or expression, every mark tells its numbers.

Files are read as XML: which elements and attributes there are, where marks lie, what PNG begins with. How plots look in a
browser is tested in `test_report_browser.py`.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from agentworldbench.render import drawing
from agentworldbench.render.drawing import NARROW, WIDE
from agentworldbench.render.plot_files import SCALE, png_file, svg_file
from agentworldbench.render.plot_values import Series, Value
from agentworldbench.render.plots import Plot, bubbles, distribution, grid, intervals, stacked, trend
from tests.helpers.awb_command import clean_environment

ROOT = Path(__file__).resolve().parents[1]

HOSTILE = "</svg><script>alert(1)</script>\x00\u202e&\"'+datum.value"
LOOKS = {
    "d", "transform", "x", "y", "x2", "y2", "dy", "width", "height", "fill", "fill-opacity", "opacity", "stroke", "stroke-width",
    "stroke-dasharray", "stroke-linecap", "font-size", "font-weight", "text-anchor",
}  # fmt: skip


@cache
def plots() -> dict[str, Plot]:
    value = Value(50, 45.5, 120, 30)
    series = [Series(HOSTILE, (Value(50), None)), Series("b", (Value(0, -3, 2), Value(100)))]
    made = [
        intervals("a", HOSTILE, HOSTILE, [HOSTILE, "row"], series),
        grid("b", "t", "n", ["r"], ["x", HOSTILE], [[None, 100.0]]),
        trend("c", "t", "n", HOSTILE, ["1", "2"], [*series, Series("c", (value, None))]),
        distribution("d", "t", "n", "x", [(HOSTILE, [0, 3, 700]), ("b", [1, 0, 0])]),
        distribution("e", "t", "n", "x", [("none", [0] * 10)]),
        bubbles("f", "t", "n", HOSTILE, HOSTILE, [(0, 100, 3), (50, 50, 1)]),
        bubbles("g", "t", "n", "x", "up", []),
        stacked("h", "t", "n", "USD", ["r", HOSTILE], [("k", [0.001, 12_345_678]), ("l", [0, 500])]),
        stacked("i", "t", "n", "USD", ["r"], [("k", [0.0])]),
        trend("j", "t", "n", "x", ["1"], [Series("a", (None,))]),
    ]
    return {one.name: one for one in made}


def told(plot: Plot) -> list[str]:
    """What its marks say, in the order in which they are drawn."""
    return [one.text or "" for one in ET.fromstring(f"<svg>{plot.wide.body}</svg>").iter("title")]


def words(plot: Plot) -> list[str]:
    """What can be read in it."""
    tree = ET.fromstring(f"<svg>{plot.wide.body}</svg>")
    return ["".join(one.itertext()) for one in tree.iter("text")]


@pytest.mark.parametrize("name", "abcdefghij")
def test_a_plot_is_shapes_and_texts_alone(name: str) -> None:
    plot = plots()[name]
    for drawn, width in ((plot.wide, WIDE), (plot.narrow, NARROW)):
        assert drawn.width == width and 40 < drawn.height < 460
        tree = ET.fromstring(f"<svg>{drawn.body}</svg>")
        assert {one.tag for one in tree.iter()} <= {"svg", "g", "path", "line", "text", "tspan", "title"}
        assert {name for one in tree.iter() for name in one.attrib} <= LOOKS
        for one in tree.iter():
            for colour in (one.get("fill"), one.get("stroke")):
                assert colour in (None, "none") or re.fullmatch(r"var\(--[a-z0-9-]+\)", colour), colour
            assert one.tag == "title" or len((one.text or "").strip()) < 80
        places = [one.get("d", "") + one.get("transform", "") for one in tree.iter()]
        assert not re.search(r"\d\.\d\d", " ".join(places)), "no more decimals than can be seen"
        assert "\u202e" not in drawn.body and "\x00" not in drawn.body
        assert len(drawn.body) < 30_000


@pytest.mark.parametrize("name", "acf")
def test_a_file_needs_no_page(name: str) -> None:
    text = svg_file(plots()[name])
    tree = ET.fromstring(text)
    assert tree.get("role") == "img" and tree.get("aria-label") and tree.get("width") == str(WIDE)
    assert (
        "var(" not in text
        and "style" not in text
        and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    )
    assert "<script" not in text and "\u202e" not in text


def test_what_stands_on_a_page_has_no_identity_and_two_sizes() -> None:
    markup = str(plots()["a"].markup())
    assert markup.count("<svg ") == markup.count('role="img"') == 2
    assert "<script" not in markup and " id=" not in markup and "style" not in markup
    for label in re.findall('aria-label="([^"]*)"', markup):
        assert label.startswith("&lt;/svg&gt;&lt;script&gt;")


def test_numbers_of_a_plot_can_be_read_without_seeing_it() -> None:
    one = intervals("a", "t", "n", ["MCP"], [Series("Judge", (Value(50, 45.5, 55.5),))])
    assert told(one) == ["MCP, Judge: 50.0, 45.5 to 55.5"] * 2, "the mark and its whisker"
    assert told(plots()["h"])[0] == "r, k: 0.00 USD"
    assert {"12.3 M", "0.00"} < set(words(plots()["h"])), "sums stand behind the bars"
    assert {"–", "100.0"} < set(words(plots()["b"]))
    assert [one for one in told(plots()["d"]) if one.startswith("b, ")] == [
        "b, 0 to 33: 1",
        "b, 33 to 67: 0",
        "b, 67 to 100: 0",
    ]
    assert told(plots()["c"])[-1] == "1, c: 50.0, 45.5 to 120.0, 30 samples"


def test_names_are_labels_whatever_they_are() -> None:
    alike = ["the same beginning of a name", "the same beginning of a name", "datum.value", "a" * 999]
    one = intervals(
        "a", "t", "n", alike, [Series("length(rows)", tuple(Value(number) for number in range(4)))]
    )
    found = words(one)
    assert found.count("the same be…f a name") == 2, "rows are told apart by number, not by name"
    assert {"datum.value", "aaaaaaaaaaa…aaaaaaaa", "length(rows)"} < set(found)


def test_a_series_is_named_where_it_ends_and_no_name_on_another() -> None:
    values = [50.0, 50.4, 99.0, 100.0]
    one = trend(
        "a", "t", "n", "x", ["1"], [Series(f"s{n}", (Value(value),)) for n, value in enumerate(values)]
    )
    names = re.findall(r'<text transform="translate\(([\d.]+),([\d.]+)\)"[^>]*>(s\d)<', one.wide.body)
    assert [name for *_, name in names] == ["s0", "s1", "s2", "s3"] and len({x for x, *_ in names}) == 1
    heights = [float(y) for _, y, _ in names]
    assert all(before - after > 12 for before, after in pairwise(heights))
    assert heights[-1] < 20, "the highest stands at the top"


def test_equal_numbers_make_equal_bytes_and_a_png_of_three_times_the_size() -> None:
    def made() -> Plot:
        return intervals("a", "t", "n", ["row"], [Series("Judge", (Value(50, 45.5, 55.5),))])

    first = made()
    drawing._svg.cache_clear()
    again = made()
    assert svg_file(again) == svg_file(first)
    png = png_file(again)
    assert png == png_file(first) and png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (SCALE * WIDE, SCALE * round(first.wide.height))


NOBODY = """
import os, pwd
os.environ.pop("HOME", None)
def unknown(number):
    raise KeyError(number)
pwd.getpwuid = unknown
from agentworldbench.render.plot_parts import load_altair
load_altair()
import altair
assert "HOME" not in os.environ
"""


def test_altair_is_imported_where_there_is_no_home(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOBODY],
        cwd=tmp_path,
        env=clean_environment({"PYTHONPATH": str(ROOT)}),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
