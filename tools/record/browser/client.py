"""A small client of the Playwright MCP server: JSON-RPC, one message a line, over its standard streams.

In: the installed server (`setup/web.sh`), Debian's Chromium, the host name of a site and the loopback
port where it is served. Out: the text that the server answers to a tool call, as it is. The server
runs in a temporary directory with a small fixed environment and a fresh browser profile; it and
its browser form a process group of their own, which ends with the client also after a failure.
Chromium resolves the site's host name to the port and no other name at all.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.record import common

INSTALLED = common.HERE.parents[1] / ".demo" / "record" / "web"
SERVER = INSTALLED / "node_modules" / "@playwright" / "mcp"
CHROMIUM = Path("/usr/bin/chromium")
SETUP = "tools/record/setup/web.sh"
PROTOCOL = "2025-06-18"
ANSWER_SECONDS = 60.0
END_SECONDS = 10.0
ACTION_SECONDS = 5
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class BrowserError(Exception):
    """The server or the browser does not work as a recorder needs it; never an observation."""


def missing() -> str | None:
    """What is not installed, with the command that installs it; None when all is there."""
    if not CHROMIUM.exists():
        return f"{CHROMIUM} is missing: run {SETUP}"
    if shutil.which("node") is None:
        return f"node is missing: run {SETUP}"
    if not (SERVER / "cli.js").exists():
        return f"the Playwright MCP server is not installed: run {SETUP}"
    return None


class Browser:
    """A running server with a browser that knows one site; use as a context manager."""

    def __init__(self, host: str, port: int) -> None:
        """Start the server and shake hands."""
        if reason := missing():
            raise BrowserError(reason)
        self._directory = tempfile.TemporaryDirectory(prefix="awb", ignore_cleanup_errors=True)
        directory = Path(self._directory.name).resolve()
        (directory / "config.json").write_text(json.dumps(configuration(host, port)), encoding="utf-8")
        self._process = subprocess.Popen(
            ["node", str(SERVER / "cli.js"), "--config", "config.json"],
            cwd=directory,
            env=_environment(directory),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._last = 0
        try:
            client = {"name": "recorder", "version": "1"}
            self._ask("initialize", protocolVersion=PROTOCOL, capabilities={}, clientInfo=client)
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return the text of its answer, errors of the tool included."""
        result = self._ask("tools/call", name=tool, arguments=arguments)
        parts = result["content"]
        if [part["type"] for part in parts] != ["text"]:
            raise BrowserError(f"{tool} answers with {[part['type'] for part in parts]}, not with one text")
        return str(parts[0]["text"]).rstrip()

    def close(self) -> None:
        """End the server and its browser, the hard way when they do not end by themselves."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.close()
            self._process.wait(END_SECONDS)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reader.join()
        self._process.stdout.close()
        self._directory.cleanup()

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        while True:
            answer = self._receive()
            if answer.get("id") != self._last or "method" in answer:
                continue  # notices of the server
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            result: dict[str, Any] = answer["result"]
            return result

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise BrowserError(f"no answer of the server within {ANSWER_SECONDS:g} s") from None
        if not line:
            raise BrowserError("the server ended before it answered")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")


def configuration(host: str, port: int) -> dict[str, Any]:
    """The server's configuration: a fresh headless browser in which only `host` exists."""
    rules = f"--host-resolver-rules=MAP {host} 127.0.0.1:{port}, MAP * ~NOTFOUND"
    return {
        "browser": {
            "browserName": "chromium",
            "isolated": True,
            "launchOptions": {
                "headless": True,
                "executablePath": str(CHROMIUM),
                "chromiumSandbox": False,
                "args": [*FLAGS, rules],
            },
            "contextOptions": {
                "viewport": {"width": 1280, "height": 900},
                "locale": "en-GB",
                "timezoneId": "UTC",
            },
        },
        "outputDir": ".playwright-mcp",
        "snapshot": {"mode": "full"},
        "timeouts": {"action": ACTION_SECONDS * 1000},
    }


def _environment(directory: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    }
