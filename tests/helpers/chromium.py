"""Debian's Chromium, driven over its own debugging pipe: for tests of pages, without another library.

In: the address of a page and the size of the window. Out: what scripts evaluate to, what was written to the console,
which requests were made, pictures. One message at a time, each answered before the next is sent. The browser
has a profile of its own in a folder that is removed, resolves no host name, and ends with the context.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)


class Chromium:
    """A browser with one tab; use as a context manager."""

    def __init__(self, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self._size, self._dark = (width, height), dark
        self.console: list[str] = []
        """Messages of the console and uncaught errors, since the browser was started."""
        self.requests: list[str] = []
        """Addresses that were asked for, `data:` left out."""
        self._count, self._loaded = 0, False

    def __enter__(self) -> Chromium:
        self._folder = tempfile.TemporaryDirectory(prefix="awb", ignore_cleanup_errors=True)
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        # Chromium reads file descriptor 3 and writes 4; a shell moves the pipes there without races.
        script = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        profile = f"--user-data-dir={self._folder.name}"
        self._process = subprocess.Popen(
            ["bash", "-c", script, CHROMIUM, *_FLAGS, profile, "about:blank"],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder.name, "TZ": "UTC"},
        )
        os.close(commands)
        os.close(answers)
        self._rest = b""
        self._session: str | None = None
        targets = self._ask("Target.getTargets")["targetInfos"]
        tab = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._ask(f"{domain}.enable")
        self.resize(*self._size)
        self.prefer("dark" if self._dark else "light")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._out)  # the browser ends with its pipe
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._folder.cleanup()

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self._loaded = False
        self._ask("Page.navigate", url=address)
        while not self._loaded:
            self._note(self._receive())

    def follow(self, act: Callable[[], object]) -> None:
        """Do what leads to another page, and wait until that is loaded."""
        self._loaded = False
        act()
        while not self._loaded:
            self._note(self._receive())

    def resize(self, width: int, height: int = 900) -> None:
        """The size of the window in CSS pixels; narrow ones count as a telephone's."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def prefer(self, colours: str) -> None:
        """What the system prefers: `light` or `dark`."""
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])

    def value(self, script: str) -> Any:
        """What an expression evaluates to, as JSON; a promise is awaited. An error in it fails the test."""
        done = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key: its name and key code, and what it types."""
        word = {"key": key, "windowsVirtualKeyCode": code, "text": text}
        self._ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **word)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **word)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._ask("Input.insertText", text=text)

    def picture(self, path: Path, whole: bool = False) -> None:
        """Save what is seen, or the whole page, as PNG."""
        taken = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._send(message)
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _send(self, message: dict[str, Any]) -> None:
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._out, left) :]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 16)
            assert part, "the browser ended before it answered"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        """Keep what an event tells."""
        params = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.consoleAPICalled":
                self.console.append(json.dumps(params["args"]))
            case "Runtime.exceptionThrown":
                self.console.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.console.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                address = params["request"]["url"]
                if not address.startswith("data:"):
                    self.requests.append(address)
