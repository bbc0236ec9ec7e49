"""Debian's Chromium through Playwright, with one tab: for tests of pages.

In: the address of a page and the size of the window. Out: what scripts evaluate to, what was written to the console,
which requests were made, pictures. Playwright downloads no browser of its own: it drives the one that is installed,
with a profile that is removed. The browser resolves no host name and ends with the context.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

CHROMIUM = Path("/usr/bin/chromium")
_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
_NO_NAMES = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


class Chromium:
    """A browser with one tab; use as a context manager."""

    def __init__(self, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self._size, self._dark = (width, height), dark
        self.console: list[str] = []
        """Messages of the console and uncaught errors, since the browser was started."""
        self.requests: list[str] = []
        """Addresses that were asked for."""

    def __enter__(self) -> Chromium:
        # Imported here, because tests without a browser import this module too.
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*_FLAGS.split(), _NO_NAMES], env={**os.environ, "TZ": "UTC"}
        )
        self._page = self._browser.new_page()
        self._page.on("console", lambda message: self.console.append(message.text))
        self._page.on("pageerror", lambda error: self.console.append(str(error)))
        self._page.on("request", lambda request: self.requests.append(request.url))
        self._protocol = self._page.context.new_cdp_session(self._page)
        self.resize(*self._size)
        self.prefer("dark" if self._dark else "light")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._browser.close()
        self._playwright.stop()

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self._page.goto(address)

    def follow(self, act: Callable[[], object]) -> None:
        """Do what leads to another page, and wait until that is loaded."""
        with self._page.expect_event("load"):
            act()

    def resize(self, width: int, height: int = 900) -> None:
        """The size of the window in CSS pixels; narrow ones count as a telephone's."""
        self._page.set_viewport_size(
            {"width": width, "height": height}
        )  # pictures have the size that Playwright knows
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._protocol.send("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, colours: Literal["light", "dark"]) -> None:
        """What the system prefers."""
        self._page.emulate_media(color_scheme=colours)

    def value(self, script: str) -> Any:
        """What an expression evaluates to, as JSON; a promise is awaited. An error in it fails the test."""
        return self._page.evaluate(script)

    def press(self, key: str) -> None:
        """Press and release a key, by its name."""
        self._page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._page.keyboard.insert_text(text)

    def picture(self, path: Path, whole: bool = False) -> None:
        """Save what is seen, or the whole page, as PNG."""
        self._page.screenshot(path=path, full_page=whole)
