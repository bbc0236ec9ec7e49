"""A report in Debian's Chromium, opened from the disk: list, search, a sample's page, keyboard, colours, widths.

Whatever a test does, nothing may be written to the console and nothing but the report's own files asked for. axe-core
(`.ci/axe`) checks accessibility in both colours, wide and narrow (its own look at style sheets is a request, which the policy forbids). Waiting is for what a page says, never for time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from agentworldbench.report.build import build_report
from agentworldbench.report.names import page_name
from agentworldbench.run import evaluate
from tests.helpers.chromium import CHROMIUM, Chromium
from tests.helpers.report_pages import (
    AXE,
    HOSTILE_ID,
    assigned_json,
    axe,
    changed_line,
    click,
    played_run,
    put,
    shown,
    until,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed"),
]
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
TOLD = "document.getElementById('told').textContent"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = played_run(tmp_path_factory.mktemp("played"), tasks=("terminal", "web", "mcp"))
    return build_report([run.path], run.path.parent / "report").index.parent


@pytest.fixture(scope="module")
def lines(report: Path) -> list[list[Any]]:
    found: list[list[Any]] = assigned_json(report / "list.js", "list")["lines"]
    return found


@pytest.fixture(scope="module")
def started() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture
def browser(started: Chromium, report: Path) -> Iterator[Chromium]:
    """A wide window in light colours, nothing remembered."""
    started.resize(1280)
    started.prefer("light")
    started.open((report / "index.html").as_uri())
    started.value("sessionStorage.clear(), localStorage.clear()")
    started.console.clear()
    started.requests.clear()
    yield started
    assert started.console == []
    asked = {unquote(one.partition("#")[0].partition("?")[0]) for one in started.requests}
    assert all(one.startswith(f"file://{report}/") for one in asked), asked


def show(browser: Chromium, report: Path, name: str, place: str = "") -> None:
    browser.open("about:blank")
    browser.requests.clear()
    browser.open((report / name).as_uri() + place)
    if name == "samples.html":
        until(browser, f"{TOLD} !== ''")


def sample(lines: list[list[Any]], at: int) -> str:
    return f"samples/{lines[at][0]}.html"


# --- the list ------------------------------------------------------------------------------------


def test_filters(browser: Chromium, report: Path, lines: list[list[Any]]) -> None:
    show(browser, report, "samples.html")
    assert shown(browser) == [line[1] for line in lines]
    put(browser, domain="web")
    assert shown(browser) == [line[1] for line in lines if line[1].startswith("web/")]
    put(browser, domain="", failure="+")
    assert shown(browser) == [line[1] for line in lines if line[6] or line[8][0]]
    put(browser, failure="-", high="40")
    assert shown(browser) == [
        line[1]
        for line in lines
        if not line[6] and not line[8][0] and line[7][0] is not None and line[7][0] <= 40
    ]
    put(browser, failure="", high="", of="rule", low="99.9")
    assert shown(browser) == [line[1] for line in lines if line[10] is not None and line[10] >= 99.9]
    put(browser, low="", conflict="k")
    kinder = shown(browser)
    assert kinder == [line[1] for line in lines if line[9][0] == "k"] != []
    metrics = assigned_json(report / "list.js", "list")["metrics"]
    at = metrics.index("status_class")
    put(browser, conflict="", metric="status_class", most="0.5")
    assert (
        shown(browser)
        == [line[1] for line in lines if line[11][at] is not None and line[11][at] <= 0.5]
        != []
    )
    put(browser, metric="", domain="mcp", low="99.99", high="0")
    assert shown(browser) == [] and "No prediction fits" in browser.value(TOLD)
    browser.value("document.getElementById('reset').click()")
    until(browser, f"{TOLD}.startsWith('{len(lines)} of')")


def test_search(browser: Chromium, report: Path, lines: list[list[Any]]) -> None:
    show(browser, report, "samples.html")
    put(browser, words=f"{HOSTILE_ID} <script>document")
    assert shown(browser) == [HOSTILE_ID]
    put(browser, words="value DIFFERS")
    found = shown(browser)
    texts = {
        page: text
        for domain in ("terminal", "web", "mcp")
        for page, text in assigned_json(report / f"search-{domain}.js", "search").items()
    }
    assert (
        found
        == [line[1] for line in lines if "value" in texts[line[0]] and "differs" in texts[line[0]]]
        != []
    )


def test_sorting_and_a_link_to_a_filtered_list(
    browser: Chromium, report: Path, lines: list[list[Any]]
) -> None:
    show(browser, report, "samples.html")
    click(browser, "#samples th:nth-child(5) button")
    until(browser, "document.querySelector('[aria-sort]')")
    by_id = {line[1]: line[7][0] for line in lines}
    scores = [by_id[one] for one in shown(browser)]
    known = [score for score in scores if score is not None]
    assert known == sorted(known) and scores[len(known) :] == [None] * (len(scores) - len(known))
    put(browser, domain="terminal", failure="-")
    place = browser.value("location.hash")
    expected = shown(browser)
    show(browser, report, "samples.html", place)
    assert shown(browser) == expected
    assert browser.value("document.getElementById('domain').value") == "terminal"


# --- a sample ------------------------------------------------------------------------------------


def test_next_and_previous_go_through_the_list_as_it_was_filtered(
    browser: Chromium, report: Path, lines: list[list[Any]]
) -> None:
    show(browser, report, sample(lines, 0))
    browser.follow(lambda: browser.press("j"))
    assert browser.value("document.querySelector('h1').textContent") == lines[1][1]
    browser.follow(lambda: browser.press("ArrowLeft"))
    assert browser.value("document.querySelector('h1').textContent") == lines[0][1]
    show(browser, report, "samples.html")
    put(browser, domain="web", failure="-")
    wanted = shown(browser)
    assert browser.value("Object.keys(sessionStorage)") == [f"awb-list file://{report}/style.css"]
    browser.follow(lambda: click(browser, "#rows th a"))
    assert browser.value("document.getElementById('place').textContent") == f"1 of {len(wanted)} in your list"
    browser.follow(lambda: browser.press("j"))
    assert browser.value("document.querySelector('h1').textContent") == wanted[1]
    browser.follow(lambda: browser.press("l"))
    until(browser, f"{TOLD} !== ''")
    assert shown(browser) == wanted


def test_the_difference_in_both_views(browser: Chromium, report: Path, lines: list[list[Any]]) -> None:
    show(browser, report, changed_line(report, lines))
    text = "document.getElementById('diff').textContent"
    before = browser.value(text)
    tops = "(() => { const [p, r] = document.querySelectorAll('.changed > span'); return [p, r].map((one) => one.getBoundingClientRect()).map((one) => [one.left, one.top]); })()"
    (left, upper), (same, lower) = browser.value(tops)
    assert left == same and upper < lower
    browser.press("s")
    (left, upper), (right, level) = browser.value(tops)
    assert left < right and upper == level
    assert browser.value("document.getElementById('side').getAttribute('aria-pressed')") == "true"
    browser.press("d")
    assert browser.value("[...document.querySelectorAll('.far')].every((one) => one.offsetHeight === 0)")
    assert "equal line" in browser.value("document.querySelector('.skip-note').textContent")
    browser.press("d")
    browser.press("s")
    browser.press("w")
    assert "·" in browser.value(text)
    browser.press("w")
    assert browser.value(text) == before, "marks leave nothing behind"


def test_a_hostile_prediction_is_text_whatever_is_pressed(browser: Chromium, report: Path) -> None:
    name = f"samples/{page_name(HOSTILE_ID)}.html"
    show(browser, report, name)
    title = browser.value("document.title")
    assert title.startswith(HOSTILE_ID)
    for button in ("#colours", "#blanks", "#side", "#only", "#inline", "#blanks", "#colours"):
        click(browser, button)
    assert "␛[31mred␛[0m" in browser.value("document.getElementById('diff').textContent")
    click(browser, "#colours")
    assert browser.value("document.querySelector('#diff .sgr-31').textContent") == "red"
    browser.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.value(
        "[document.images.length, document.querySelectorAll('script:not([src])').length]"
    ) == [0, 0]
    assert browser.value("document.title") == title


def test_the_history_is_loaded_when_it_is_opened(
    browser: Chromium, report: Path, lines: list[list[Any]]
) -> None:
    at = next(at for at, line in enumerate(lines) if line[3] > 3)
    show(browser, report, sample(lines, at))
    assert not any("/trajectories/" in one for one in browser.requests)
    browser.value("document.getElementById('history').open = true")
    until(browser, "document.querySelectorAll('#history h3').length")
    assert browser.value("document.querySelectorAll('#history h3').length") == lines[at][3] - 1
    assert sum("/trajectories/" in one for one in browser.requests) == 1


def test_json_is_folded_on_demand(browser: Chromium, report: Path, lines: list[list[Any]]) -> None:
    at = next(at for at, line in enumerate(lines) if line[1].startswith("mcp/"))
    show(browser, report, sample(lines, at))
    plain = browser.value("JSON.parse(document.querySelector('pre[data-json]').textContent)")
    browser.value(
        "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Fold JSON').click()"
    )
    keys = browser.value("[...document.querySelectorAll('.folded .key')].map((one) => one.textContent)")
    assert {f"{key}: " for key in plain} <= set(keys)
    assert browser.value("document.querySelector('pre[data-json]').hidden")


def test_elements_of_a_screen(browser: Chromium, report: Path, lines: list[list[Any]]) -> None:
    page = next(
        line[0]
        for line in lines
        if 'class="changed"><td' in (report / "samples" / f"{line[0]}.html").read_text()
    )
    show(browser, report, f"samples/{page}.html")
    visible = (
        "[...document.querySelectorAll('#node-table tbody tr')].filter((one) => one.offsetHeight).length"
    )
    few = browser.value(visible)
    click(browser, "#all-nodes")
    assert browser.value(visible) > few > 0


# --- everywhere ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_nothing_scrolls_sideways(
    browser: Chromium, report: Path, lines: list[list[Any]], width: int
) -> None:
    browser.resize(width)
    for name in (
        "index.html",
        "samples.html",
        sample(lines, 0),
        changed_line(report, lines),
        f"samples/{page_name(HOSTILE_ID)}.html",
    ):
        show(browser, report, name)
        assert browser.value(FITS), name
        if browser.value("!!document.getElementById('side')"):
            click(browser, "#side")
            browser.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            assert browser.value(FITS), name


def test_the_page_of_several_runs(browser: Chromium, report: Path, tmp_path: Path) -> None:
    copied = evaluate(
        "baseline/copy-last",
        data="mini",
        tasks=("terminal", "web", "mcp"),
        output=tmp_path / "copied",
        display="none",
    )
    several = build_report([report.parent / "run", copied.path], tmp_path / "several").index
    for width in (320, 1280):
        browser.resize(width)
        browser.open(several.as_uri())
        assert browser.value(FITS)
        if AXE.exists():
            assert axe(browser) == []
    browser.follow(lambda: click(browser, "tbody th a"))
    assert browser.value("document.querySelector('h1').textContent") == "openai-api/world"
    browser.follow(lambda: click(browser, "nav a"))
    assert browser.value("document.querySelector('h1').textContent") == "Reports of 2 runs"
    browser.requests.clear()


def test_colours_are_kept_from_page_to_page(browser: Chromium, report: Path, lines: list[list[Any]]) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    show(browser, report, "index.html")
    light = browser.value(colour)
    click(browser, "#theme")
    dark = browser.value(colour)
    assert dark != light
    show(browser, report, sample(lines, 0))
    assert browser.value(colour) == dark


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: bash .ci/axe")
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_axe_finds_nothing(
    browser: Chromium, report: Path, lines: list[list[Any]], colours: str, width: int
) -> None:
    browser.resize(width)
    browser.prefer(colours)
    hostile = f"samples/{page_name(HOSTILE_ID)}.html"
    for name in ("index.html", "samples.html", sample(lines, 3), changed_line(report, lines), hostile):
        show(browser, report, name)
        browser.value(
            "document.querySelectorAll('details:not(#history)').forEach((one) => { one.open = true; })"
        )
        assert axe(browser) == [], name
