"""A run that is good to look at and to break pages with, and what HTML it became.

`played_run(folder)` evaluates the bundled data of some domains with `PlayedWorld`; one prediction of a terminal is hostile
and longer than a page may be. `Page` is a page as its HTML says: elements with attributes, and the text in them. The functions below act in a browser and wait for what its
page says, never for time.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from agentworldbench.run import Run, evaluate
from tests.helpers.chromium import Chromium
from tests.helpers.played_world import PlayedWorld
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.whole_runs import options
from tools.damage import scenes

AXE = Path(__file__).resolve().parents[2] / ".demo" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
"""axe-core, where `.ci/axe` has installed it."""
HOSTILE = (
    "</pre></script><!--<script>document.title='broken'</script>\n"
    "<img src=x onerror=\"document.title='broken'\"> javascript:alert(1) {{ 7 * 7 }} &lt;b&gt;\n"
    "\x1b[31mred\x1b[0m \x00 \u202egnp.exe\ttab  \n"
    '=HYPERLINK("http://example.invalid")\n'
)
LONG = HOSTILE + "x" * 400_000
HOSTILE_ID = scenes()["terminal"][0].sample.id


def played_run(folder: Path, **more: Any) -> Run:
    """Evaluate; the hostile prediction is the first sample of terminal."""
    with ScriptedServer(PlayedWorld({HOSTILE_ID: LONG})) as server:
        return evaluate(**options(server, folder / "run", "mini", display="none", **more))


def assigned_json(path: Path, name: str) -> Any:
    """What a script file assigns; anything but JSON in it fails the test."""
    text = path.read_text(encoding="utf-8")
    head = f'"use strict";\n(window.AWB ??= {{}}).{name} = '
    assert text.startswith(head) and text.endswith(";\n")
    assert "<" not in text
    return json.loads(text[len(head) : -2])


class Page(HTMLParser):
    """Elements in their order as (tag, attributes), and all text that is neither script nor style."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._texts: list[str] = []
        self._within: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    @property
    def text(self) -> str:
        """All text."""
        return "".join(self._texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    def texts_of(self, tag: str) -> list[str]:
        """The text of each element of a kind; of those that stand in none of their own kind."""
        return self._within.get(tag, [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within.setdefault(tag, []).append("")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._texts.append(data)
        for tag in set(self._open):
            self._within[tag][-1] += data


# --- in a browser ---------------------------------------------------------------------------------


def until(browser: Chromium, condition: str) -> None:
    """Wait until a page says so; it is asked before each frame."""
    browser.value(
        f"new Promise((done) => {{ const look = () => ({condition}) ? done() : requestAnimationFrame(look); look(); }})"
    )


def click(browser: Chromium, selector: str) -> None:
    browser.value(f"document.querySelector({json.dumps(selector)}).click()")


def put(browser: Chromium, **values: str) -> None:
    """Fill in filters, as somebody would, and wait for the list."""
    for name, value in values.items():
        browser.value(f"document.getElementById({json.dumps(name)}).value = {json.dumps(value)}")
    browser.value(
        "new Promise((done) => { new MutationObserver(done).observe(document.getElementById('told'), {childList: true});"
        " document.getElementById('filters').dispatchEvent(new Event('input')); })"
    )


def shown(browser: Chromium) -> list[str]:
    """Ids of all predictions that fit, in their order."""
    browser.value(
        "(() => { const more = document.getElementById('more'); while (!more.hidden) more.click(); })()"
    )
    found: list[str] = browser.value(
        "[...document.querySelectorAll('#rows th a')].map((one) => one.textContent)"
    )
    return found


def axe(browser: Chromium) -> list[tuple[str, ...]]:
    """What axe-core finds on the page: impact, rule, the element, and what is wrong with it."""
    browser.value(AXE.read_text(encoding="utf-8") + "; undefined")
    done: dict[str, Any] = browser.value("axe.run(document, {resultTypes: ['violations'], preload: false})")
    assert len(done["passes"]) > 15, "the checker ran"
    return [
        (one["impact"], one["id"], node["html"][:200], node["failureSummary"])
        for one in done["violations"]
        for node in one["nodes"][:2]
    ]


def changed_line(report: Path, lines: list[list[Any]]) -> str:
    """A page with equal lines and with lines that have words marked."""
    for line in lines:
        text = (report / "samples" / f"{line[0]}.html").read_text()
        if (
            text.count('<div class="same') > 8
            and '<div class="changed' in text
            and "<del>" in text
            and "far" in text
        ):
            return f"samples/{line[0]}.html"
    raise AssertionError("no such page")
