"""`awb view` in Debian's Chromium while a real `awb run` works: counts change, pages say when they are old, the end is seen.

Run and viewer are processes of their own; the world answers a few questions, and the others when the test lets it. Waiting
is for what a page says, never for time. Nothing may be written to the console, and nothing but the viewer asked; axe-core
(`.ci/axe`) looks at every kind of page.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from agentworldbench.report.names import page_name
from tests.helpers.awb_command import clean_environment
from tests.helpers.chromium import CHROMIUM, Chromium
from tests.helpers.played_world import PlayedWorld
from tests.helpers.processes import LIMIT_S, ended, flags, start
from tests.helpers.report_pages import AXE, HOSTILE_ID, LONG, axe, click, until
from tests.helpers.scripted_server import ScriptedServer
from tools.damage import scenes

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed"),
]
FIRST = 8
"""Answers of model and judge before the world waits."""
SAMPLES = [one.sample.id for one in scenes()["terminal"][:9]]
STATE = "document.querySelector('#live b').textContent"
DONE = "Number(document.querySelector('.stages [data-live=\"stage.0\"]').textContent.split(' ')[0])"
OFFERED = "!document.getElementById('offer').hidden"


class Gate:
    """Lets a few requests through, and the others once it is open."""

    def __init__(self) -> None:
        self._left = threading.Semaphore(FIRST)
        self.open = threading.Event()

    @property
    def middleware(self) -> web.middleware:
        """For the server."""

        @web.middleware
        async def wait(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path.endswith("/chat/completions") and not self._left.acquire(blocking=False):
                await asyncio.to_thread(self.open.wait, LIMIT_S)
            return await handler(request)

        return wait


@contextmanager
def viewer(path: Path) -> Iterator[str]:
    """The address of `awb view PATH`; afterwards Ctrl-C ends it at once and without a word."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agentworldbench", "view", str(path), "--port", "0"],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, out, err) == (130, "", "Ctrl-C ends this; the runs go on.\n")
    finally:
        process.kill()
        process.wait()


def test_a_run_under_way_is_seen_to_its_end(tmp_path: Path) -> None:
    gate, run = Gate(), tmp_path / "run"
    world = PlayedWorld({HOSTILE_ID: LONG})
    with ScriptedServer(world, middlewares=[gate.middleware]) as server:
        words = [*flags(server, Path("mini"), run), "-t", "terminal", "-j", "2", "--display", "none"]
        working = start([*words, *(word for one in SAMPLES for word in ("--sample-id", one))], tmp_path)
        try:
            server.wait_for_calls(FIRST, LIMIT_S)
            server.wait_for_answers(FIRST, LIMIT_S)
            with viewer(run) as address, Chromium() as browser:
                look(browser, address, gate)
                assert browser.console == []
                assert browser.requests and all(one.startswith(address) for one in browser.requests)
        finally:
            gate.open.set()
            done = ended(working)
    assert (done.code, (run / "results.json").exists()) == (0, True), done.err


def look(browser: Chromium, address: str, gate: Gate) -> None:
    """What somebody sees who opens the page before the run is half done, and stays."""
    browser.open(address)
    until(browser, f"{STATE} === 'Running' && {DONE} > 0")
    assert browser.value(DONE) < len(SAMPLES)
    for width in (375, 1280):
        browser.resize(width)
        assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    clean(browser)
    browser.value("window.stayed = true")
    gate.open.set()
    until(browser, f"{DONE} === {len(SAMPLES)}")
    until(browser, f"{STATE} === 'Finished' && {OFFERED}")
    assert browser.value("window.stayed"), "nothing was loaded again by itself"
    browser.follow(lambda: click(browser, "#offer button"))
    until(browser, "document.querySelectorAll('.headline').length === 2")
    clean(browser)
    browser.open(f"{address}samples.html")
    until(browser, f"document.querySelectorAll('#rows tr').length === {len(SAMPLES)}")
    clean(browser)
    browser.open(f"{address}samples/{page_name(HOSTILE_ID)}.html")
    title = browser.value("document.title")
    assert title.startswith(HOSTILE_ID)
    browser.value("document.getElementById('history').open = true")
    until(browser, "document.querySelector('#history .turns').dataset.full")
    clean(browser)
    assert browser.value("document.title") == title


def clean(browser: Chromium) -> None:
    """axe-core finds nothing, in either colours."""
    for colours in ("dark", "light") if AXE.exists() else ():
        browser.prefer(colours)
        assert axe(browser) == []


def test_a_list_of_runs(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with ScriptedServer(PlayedWorld()) as server:
        for name in ("one", "two & <more>"):
            words = [*flags(server, Path("mini"), folder / name), "-t", "web", "--limit", "2"]
            assert ended(start([*words, "--display", "none"], tmp_path)).code == 0
    with viewer(folder) as address, Chromium(width=375) as browser:
        browser.open(address)
        clean(browser)
        names = browser.value("[...document.querySelectorAll('tbody th a')].map((one) => one.textContent)")
        assert names == ["two & <more>", "one"]
        browser.follow(lambda: click(browser, "tbody th a"))
        until(browser, f"{STATE} === 'Finished'")
        browser.follow(lambda: click(browser, "nav.brand a"))
        assert browser.value("document.querySelector('h1').textContent").startswith("Runs in ")
        assert browser.console == []
