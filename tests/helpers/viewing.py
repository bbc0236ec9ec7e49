"""A site of `awb view` behind its server in this process, and what it answers.

In: a site. Out: `Viewed`, which asks over loopback as a browser would. `grown` plays the writer of a run: it puts as many
lines of a finished run's journals into a directory as a test wants, whole or cut.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentworldbench.report.live import LiveRun
from agentworldbench.report.live_site import RunSite
from agentworldbench.report.serve import Server, Site, open_server
from agentworldbench.run import Run
from tests.helpers.report_pages import Page, played_run
from tools.damage import scenes

LIMIT_S = 60.0


@dataclass(frozen=True)
class Viewed:
    """A server that answers."""

    server: Server

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; `path` is sent as it stands. `Host` may be another than the server's."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=LIMIT_S)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def text(self, path: str) -> str:
        """The body of a page that is there."""
        status, _, body = self.ask(path)
        assert status == 200, (path, status, body)
        return body.decode()

    def told(self, place: str = "/progress.json") -> dict[str, Any]:
        """What programs are told."""
        found: dict[str, Any] = json.loads(self.text(place))
        return found

    def until(
        self, condition: Callable[[dict[str, Any]], bool], place: str = "/progress.json"
    ) -> dict[str, Any]:
        """Ask until it is so; the thread behind the pages works meanwhile."""
        wait = threading.Event()
        for _ in range(int(LIMIT_S * 50)):
            told = self.told(place)
            if condition(told):
                return told
            wait.wait(0.02)
        raise AssertionError(told)


def small_run(folder: Path) -> Run:
    """A finished run of ten samples of two domains, with a judge, a hostile prediction, and failures of both stages."""
    terminal, web = scenes()["terminal"], scenes()["web"]
    chosen = tuple(one.sample.id for one in (*terminal[:3], *terminal[13:15], *terminal[23:25], *web[:3]))
    return played_run(folder, tasks=("terminal", "web"), sample_id=chosen)


def page_of(text: str, folder: Path) -> Page:
    """A page as its HTML says."""
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return Page(path)


@contextmanager
def served(site: Site) -> Iterator[Viewed]:
    """Answer on any free port while the context lasts."""
    with open_server(site, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield Viewed(server)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def viewed(path: Path) -> Iterator[Viewed]:
    """The same for one run."""
    live = LiveRun(path, rest=0.01)
    try:
        with served(RunSite(live)) as found:
            yield found
    finally:
        live.close()


def grown(run: Path, target: Path, predictions: int, verdicts: int, more: bytes = b"") -> None:
    """Let the journals in `target` be the beginnings of those of `run`, in place, as one process appends to them; `more`
    stands behind the predictions."""
    target.mkdir(exist_ok=True)
    (target / "run.json").exists() or (target / "run.json").write_bytes((run / "run.json").read_bytes())
    for name, count, rest in (("predictions.jsonl", predictions, more), ("verdicts.jsonl", verdicts, b"")):
        lines = (run / name).read_bytes().splitlines(keepends=True) if count else []
        wanted = b"".join(lines[:count]) + rest
        known = (target / name).read_bytes() if (target / name).exists() else b""
        assert wanted.startswith(known), "journals only grow"
        if wanted:
            with (target / name).open("ab") as file:
                file.write(wanted[len(known) :])


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Times and bytes of all files: what must be as before when nobody may have touched them."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
