"""What `awb view` answers for several runs: their list, and below the name of each its pages.

In: where runs may be found, asked again for each list, so that new ones come up. Out: `Answer`s. A run is opened when its
pages are asked for; only the last few are kept open, because each holds its data's index and the texts of its search.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agentworldbench.report.build import folder_names
from agentworldbench.report.live import LiveRun, file_marks
from agentworldbench.report.live_site import KINDS, Answer, RunSite, served_site
from agentworldbench.report.owner import worker_of
from agentworldbench.run_list import RunLine, in_order, run_line, runs_table

KEPT: Final = 4
"""Runs that stay open."""


class FolderSite:
    """The pages of runs; `folder` is what the list calls the place that they lie in, `out` tells the links in it that
    are not followed."""

    def __init__(
        self,
        find: Callable[[], Iterable[Path]],
        folder: Path,
        data: str | None,
        allow_code: bool,
        out: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        self._find, self._folder, self._out = find, folder, out
        self._data, self._allow_code = data, allow_code
        self._site = served_site()
        self._lock = threading.Lock()
        self._open: dict[Path, RunSite] = {}
        self._lines: dict[Path, tuple[object, RunLine]] = {}

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """The page or file at a path. Raises an `AwbError` where a run cannot be read."""
        name, below, rest = path.partition("/")
        runs = self._runs()
        if name in runs:
            return (
                self._run(runs[name]).answer(rest, query)
                if below
                else Answer(KINDS["html"], place=f"/{quote(name)}/")
            )
        if path in ("", "index.html"):
            return Answer(KINDS["html"], self._list(runs).encode("utf-8", "replace"))
        if path == "progress.json":
            lines = [line.model_dump(mode="json") for line in self._known(runs.values())]
            return Answer(KINDS["json"], json.dumps({"schema_version": 1, "runs": lines}).encode())
        text = self._site.files.get(path)
        return None if text is None else Answer(KINDS[path.rpartition(".")[2]], text.encode())

    def _runs(self) -> dict[str, Path]:
        """Run directories by the name of their pages."""
        paths = list(self._find())
        return dict(zip(folder_names(paths), paths, strict=True))

    def _run(self, path: Path) -> RunSite:
        with self._lock:
            site = self._open.pop(path, None) or RunSite(LiveRun(path, self._data, self._allow_code), True)
            self._open[path] = site
            while len(self._open) > KEPT:
                self._open.pop(next(iter(self._open))).live.close()
            return site

    def _known(self, paths: Iterable[Path]) -> list[RunLine]:
        """A line a run, the one worked on last first; read again where its files have changed."""
        with self._lock:
            for path in paths:
                marks = file_marks(path)
                if self._lines.get(path, (None,))[0] != marks:
                    self._lines[path] = marks, run_line(path)
            return in_order(self._lines[path][1] for path in paths)[::-1]

    def _list(self, runs: Mapping[str, Path]) -> str:
        lines = self._known(runs.values())
        names = {str(path): name for name, path in runs.items()}
        read = [line for line in lines if line.problem is None]
        return self._site.page(
            "folder",
            "Runs",
            live=None,
            folder=str(self._folder),
            moment=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            table=runs_table(lines, self._folder, self._out()),
            links=[names[line.path] for line in read],
            states=[_state(line) for line in read],
        )


def _state(line: RunLine) -> tuple[str, str]:
    """Whether somebody works on a run, for the style sheet and in words."""
    worker, works = worker_of(Path(line.path))
    if worker is not None and works is not False:
        return ("running", "running") if works else ("elsewhere", "perhaps running")
    return ("finished", "finished") if line.complete else ("stopped", "not finished")
