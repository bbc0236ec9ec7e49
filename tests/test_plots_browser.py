"""Every plot of a report in Debian's Chromium: marks that can be seen, texts that are whole, colours of the page.

A run of three domains with two judges, opened from the disk; the page of two runs. In a wide window and in those of
telephones one drawing of each plot is shown, whatever font the page has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.report.build import build_report
from tests.helpers.chromium import CHROMIUM, Chromium
from tests.helpers.report_pages import played_run

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed"),
]
DRAWN = """[...document.querySelectorAll('figure')].map((figure) => {
  const shown = [...figure.querySelectorAll('svg')].filter((one) => one.getBoundingClientRect().width > 0);
  const frame = shown[0].getBoundingClientRect();
  const box = (one) => one.getBoundingClientRect();
  const marks = [...shown[0].querySelectorAll(':is(path, line):has(title)')];
  const texts = [...shown[0].querySelectorAll('text')].filter((one) => !/rotate/.test(one.getAttribute('transform')));
  const inside = (one) => one.left >= frame.left - 1 && one.right <= frame.right + 1
    && one.top >= frame.top - 1 && one.bottom <= frame.bottom + 1;
  const meet = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
    && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 4;
  return {
    name: figure.id,
    shown: shown.map((one) => one.classList[1]),
    marks: marks.length,
    flat: marks.filter((one) => box(one).width + box(one).height === 0 && !/: 0$/.test(one.textContent))
      .map((one) => one.textContent),
    texts: texts.map((one) => one.textContent),
    cut: texts.filter((one) => !inside(box(one))).map((one) => one.textContent),
    over: texts.flatMap((one, at) => texts.slice(at + 1).filter((other) => meet(box(one), box(other)))
      .map((other) => [one.textContent, other.textContent])),
  };
})"""
"""What a figure shows: its drawing, marks that cannot be seen, texts that are cut or lie on each other."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of a run with two judges, and of one with one, below the page of both."""
    folder = tmp_path_factory.mktemp("played")
    domains = {"tasks": ("terminal", "web", "mcp")}
    two = played_run(folder / "two", judge=("openai-api/judge", "openai-api/judge-b"), **domains)
    one = played_run(folder / "one", **domains)
    return build_report([two.path, one.path], folder / "reports").index.parent


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as started:
        yield started
        assert started.console == []


@pytest.mark.parametrize("width", [1280, 375, 320])
def test_every_plot_is_drawn_and_no_text_in_it_is_cut(browser: Chromium, reports: Path, width: int) -> None:
    browser.resize(width)
    made = json.loads((reports / "report.json").read_text())["reports"]
    marks = 0
    for page, names in [
        ("index.html", None),
        *((f"{one['folder']}/index.html", one["plots"]) for one in made),
    ]:
        browser.open((reports / page).as_uri())
        drawn = browser.value(DRAWN)
        assert drawn and names in (None, [one["name"] for one in drawn])
        for one in drawn:
            assert one["shown"] == ["wide" if width == 1280 else "narrow"]
            assert (one["flat"], one["cut"], one["over"]) == ([], [], []), one["name"]
            assert len(one["texts"]) > 4 and (one["marks"] > 5 or one["name"].startswith("profile"))
            marks += one["marks"]
    assert marks > 200


def test_plots_follow_the_colours_of_the_page(browser: Chromium, reports: Path) -> None:
    made = json.loads((reports / "report.json").read_text())["reports"]
    browser.resize(1280)
    browser.prefer("light")
    browser.open((reports / made[0]["folder"] / "index.html").as_uri())
    colours = (
        "[...document.querySelectorAll('figure svg :is(path, line, text)')].map((one) => getComputedStyle(one))"
        ".flatMap((one) => [one.fill, one.stroke])"
    )
    light = browser.value(colours)
    assert len(set(light)) > 6, "text, axes, lines and each series have colours of their own"
    browser.prefer("dark")
    dark = browser.value(colours)
    for before, after in zip(light, dark, strict=True):
        assert (before == after) == (before == "none"), "no colour is the same on black and white"
