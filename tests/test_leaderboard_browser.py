"""The leaderboard's page in Debian's Chromium: it asks nothing and says nothing, sorts, filters, shows a model, fits.

One page of 200 generated entries with a hostile name among them, and one of the bundled entries. axe-core (`.ci/axe`)
checks accessibility in both colours, wide and narrow, on the tables and on the view of a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.leaderboard.entries import Entry, load_entries
from agentworldbench.leaderboard.page import page_text
from tests.helpers.board_entries import board, measured
from tests.helpers.chromium import CHROMIUM, Chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed"),
]
AXE = Path(__file__).resolve().parents[1] / ".demo" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = "</script></title><img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>\u202e"
MODEL = measured(4)


def entries() -> list[Entry]:
    return [*board(198), measured(900, name=HOSTILE), *load_entries()[:1]]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(page_text(entries()), encoding="utf-8")
    assert path.stat().st_size < 500_000
    return path.as_uri()


@pytest.fixture(scope="module")
def started() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture
def browser(started: Chromium, address: str) -> Iterator[Chromium]:
    """The page, freshly opened; whatever a test does, nothing may be asked or said."""
    started.resize(1280)
    started.prefer("light")
    started.open("about:blank")
    started.console.clear()
    started.requests.clear()
    started.open(address)
    yield started
    assert started.console == []
    assert set(started.requests) == {address}


def column(browser: Chromium, section: str, number: int) -> list[str]:
    script = f"[...document.querySelectorAll('#{section} tbody tr')].filter(r => !r.hidden).map(r => r.cells[{number}].textContent)"
    found: list[str] = browser.value(script)
    return found


def click(browser: Chromium, selector: str) -> None:
    browser.value(f"document.querySelector({json.dumps(selector)}).click()")


def test_every_table_sorts_by_every_column(browser: Chromium) -> None:
    names = browser.value("[...document.querySelectorAll('#g1 thead th')].map(h => h.textContent)")
    assert names[:4] == ["Rank", "Model", "Status", "Overall"]
    assert browser.value("document.querySelector('#g1 [aria-sort]').textContent") == "Overall"
    ranks = {
        model: rank for model, rank in zip(column(browser, "g1", 1), column(browser, "g1", 0), strict=True)
    }
    click(browser, "#g1 thead th:nth-child(2) button")
    models = column(browser, "g1", 1)
    assert models == sorted(models, key=str.lower) and len(models) > 90
    assert dict(zip(models, column(browser, "g1", 0), strict=True)) == ranks, "a rank stays with its model"
    assert browser.value("document.querySelector('#g1 [aria-sort]').getAttribute('aria-sort')") == "ascending"
    click(browser, "#g1 thead th:nth-child(2) button")
    assert column(browser, "g1", 1) == models[::-1]
    assert browser.value("document.getElementById('told').textContent") == "Sorted by Model, descending."
    cost = browser.value("document.querySelector('#g1 thead tr').cells.length") - 1
    click(browser, f"#g1 thead tr > :nth-child({cost + 1}) button")
    costs = column(browser, "g1", cost)
    known = [float(one) for one in costs if one != "–"]
    assert known == sorted(known, reverse=True) and 0 < len(known) < len(costs)
    assert set(costs[len(known) :]) == {"–"}, "what is not known stands last, whichever way"
    click(browser, f"#g1 thead tr > :nth-child({cost + 1}) button")
    assert column(browser, "g1", cost)[len(known) :] == costs[len(known) :]
    click(browser, "#g1 thead th:nth-child(1) button")
    numbers = [int(one) for one in column(browser, "g1", 0) if one != "–"]
    assert numbers == sorted(numbers) and numbers[0] == 1


def visible(browser: Chromium) -> dict[str, int]:
    script = (
        "Object.fromEntries([...document.querySelectorAll('section.group')].filter(s => !s.hidden)"
        ".map(s => [s.id, [...s.querySelectorAll('tbody tr')].filter(r => !r.hidden).length]))"
    )
    found: dict[str, int] = browser.value(script)
    return found


def test_filters_by_name_table_and_status(browser: Chromium) -> None:
    everything = visible(browser)
    assert sum(everything.values()) == 200 and len(everything) == 4
    browser.value("document.getElementById('words').focus()")
    browser.type("cedar 8b")
    found = visible(browser)
    assert 0 < sum(found.values()) < 20
    assert all(
        "cedar" in name.lower() and "8b" in name.lower() for one in found for name in column(browser, one, 1)
    )
    assert (
        browser.value("document.getElementById('told').textContent")
        == f"{sum(found.values())} of 200 entries."
    )
    browser.type("nothing of this name")
    assert visible(browser) == {}
    assert "No entry fits" in browser.value("document.getElementById('told').textContent")
    browser.value("document.getElementById('words').value = ''")
    browser.value("document.getElementById('table').value = 'g2'")
    browser.value("document.getElementById('filters').dispatchEvent(new Event('input'))")
    assert visible(browser) == {"g2": everything["g2"]}
    browser.value("document.getElementById('table').value = ''")
    click(browser, "[name=status][value=measured]")
    assert sum(visible(browser).values()) == 1
    assert (
        browser.value("document.querySelector('section.group:not([hidden]) tbody tr').dataset.status")
        == "reported"
    )


def test_a_model_has_a_view_of_its_own(browser: Chromium) -> None:
    browser.value(f"location.hash = '#model={MODEL.slug}'")
    browser.value("new Promise(requestAnimationFrame)")
    assert browser.value("[document.getElementById('board').hidden, document.activeElement.textContent]") == [
        True,
        MODEL.model,
    ]
    text = browser.value("document.getElementById('model').innerText")
    assert f"{MODEL.overall:.2f}" in text
    assert MODEL.provenance is not None and MODEL.provenance.git_commit is not None
    for expected in (
        "temperature 0.6",
        MODEL.provenance.git_commit[:12],
        "openai/gpt-5.2-2025-12-11",
        "Factuality",
        "strict,",
    ):
        assert expected in text
    table = "#model [aria-label='Scores by domain']"
    cells = browser.value(
        f"[...document.querySelectorAll({json.dumps(table + ' tbody tr')})].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert [float(row[1]) for row in cells] == [round(score, 2) for score in MODEL.scores.values()]
    first = MODEL.intervals["mcp"]
    assert first.low is not None and first.high is not None
    assert cells[0][2] == f"{first.low:.1f} to {first.high:.1f}"
    assert browser.value("document.querySelectorAll('#model .profile circle').length") == 7
    assert browser.value("document.title").startswith(MODEL.model)
    click(browser, "#back")
    browser.value("new Promise(requestAnimationFrame)")
    back = browser.value("[document.getElementById('model').hidden, document.activeElement.hash]")
    assert back == [True, f"#model={MODEL.slug}"], "the focus is where it came from"


def test_a_link_to_a_model_opens_it(browser: Chromium, address: str) -> None:
    browser.open("about:blank")
    browser.open(f"{address}#model={MODEL.slug}")
    assert browser.value("document.getElementById('model-name').textContent") == MODEL.model
    browser.requests[:] = [one.partition("#")[0] for one in browser.requests if one != "about:blank"]


def test_a_hostile_name_is_text(browser: Chromium) -> None:
    hostile = measured(900, name=HOSTILE)
    assert browser.value("document.title") == "AgentWorldBench leaderboard"
    assert browser.value("document.images.length") == 0
    browser.value(f"location.hash = '#model={hostile.slug}'")
    browser.value("new Promise(requestAnimationFrame)")
    shown = browser.value("document.getElementById('model-name').textContent")
    assert shown == HOSTILE.replace("\u202e", "\\u202e")
    assert browser.value("[document.images.length, document.querySelectorAll('#model script').length]") == [
        0,
        0,
    ]
    assert browser.value("document.title").startswith("</script></title><img")


ADDRESSES = ("javascript:document.title='x'", " JaVaScRiPt:alert(1)", "data:text/html,<script>1</script>", "//evil.invalid",
             "https:evil.invalid", "vbscript:x", "https://example.invalid/a")  # fmt: skip


def test_only_web_addresses_become_links(browser: Chromium, tmp_path: Path) -> None:
    """Public report RP-06."""
    known = load_entries()[0]
    assert known.source is not None
    made = [
        known.model_copy(update={"slug": f"s{n}", "source": known.source.model_copy(update={"url": url})})
        for n, url in enumerate(ADDRESSES)
    ]
    path = tmp_path / "links.html"
    path.write_text(page_text(made), encoding="utf-8")
    browser.open(path.as_uri())
    found = set()
    for one in made:
        browser.value(f"location.hash = '#model={one.slug}'")
        browser.value("new Promise(requestAnimationFrame)")
        assert browser.value("document.getElementById('model-name').textContent") == known.model
        links = "[...document.querySelectorAll('#model a[href]:not([href^=\"#\"])')].map((a) => [a.getAttribute('href'), a.rel])"
        found |= {tuple(pair) for pair in browser.value(links)}
    assert found == {(ADDRESSES[-1], "noopener noreferrer nofollow")}
    browser.requests[:] = [one for one in browser.requests if not one.startswith(path.as_uri())]


def test_light_and_dark_follow_the_system_and_the_button(browser: Chromium, address: str) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(colour)
    browser.prefer("dark")
    dark = browser.value(colour)
    assert light != dark
    assert browser.value("document.getElementById('theme').textContent") == "Light colours"
    click(browser, "#theme")
    assert browser.value(colour) == light
    browser.open("about:blank")
    browser.open(address)
    assert browser.value(colour) == light, "the choice is kept"
    click(browser, "#theme")
    assert browser.value(colour) == dark
    browser.value("localStorage.clear()")
    browser.requests[:] = [one for one in browser.requests if one != "about:blank"]


def test_the_keyboard_reaches_everything(browser: Chromium) -> None:
    reached = []
    for _ in range(9):
        browser.press("Tab")
        reached.append(
            browser.value(
                "document.activeElement.id || document.activeElement.value || document.activeElement.className"
            )
        )
    assert reached[0] == "skip"
    assert reached[1:6] == ["theme", "words", "table", "measured", "reported"]
    browser.value("document.querySelector('#g1 thead th:nth-child(2) button').focus()")
    browser.press("Enter")
    models = column(browser, "g1", 1)
    assert models == sorted(models, key=str.lower)
    browser.value("document.querySelector('#g1 tbody a').focus()")
    browser.press("Enter")
    browser.value("new Promise(requestAnimationFrame)")
    assert browser.value("document.activeElement.id") == "model-name"


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_nothing_scrolls_sideways(browser: Chromium, width: int) -> None:
    browser.resize(width)
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert browser.value(fits)
    if width == 375:
        names = browser.value(
            "[...document.querySelectorAll('#g1 thead th')].filter(h => h.offsetWidth).map(h => h.textContent)"
        )
        assert names == ["Rank", "Model", "Overall"]
        click(browser, "#g1 .columns")
        assert browser.value("document.querySelector('#g1 thead th:last-child').offsetWidth") > 0
        assert browser.value(fits), "the table scrolls in its own frame"
    for slug in (MODEL.slug, measured(900, name=HOSTILE).slug):
        browser.value(f"location.hash = '#model={slug}'")
        browser.value("new Promise(requestAnimationFrame)")
        assert browser.value("!document.getElementById('model').hidden")
        assert browser.value(fits)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: bash .ci/axe")
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("place", ["", f"#model={MODEL.slug}"], ids=["board", "model"])
def test_axe_finds_nothing(browser: Chromium, colours: str, width: int, place: str) -> None:
    browser.resize(width)
    browser.prefer(colours)
    browser.value(f"location.hash = {json.dumps(place)}")
    browser.value("new Promise(requestAnimationFrame)")
    browser.value(AXE.read_text(encoding="utf-8") + "; undefined")
    done: dict[str, Any] = browser.value("axe.run(document, {resultTypes: ['violations']})")
    found = [
        (one["impact"], one["id"], node["html"][:200], node["failureSummary"])
        for one in done["violations"]
        for node in one["nodes"][:2]
    ]
    assert found == []
    assert len(done["passes"]) > 15, "the checker ran"
