"""From run directories to a finished report: of one run, or of several with a page above them.

In: paths of runs, and the folder of the report. Out: the folder. The report of one run stands in the folder itself; those
of several stand in folders of their own, named like the runs, below a page that puts side by side what may be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agentworldbench.errors import ConfigError
from agentworldbench.report.contents import Manifest, Reported
from agentworldbench.report.folder import MANIFEST, replaced
from agentworldbench.report.gather import open_run
from agentworldbench.report.several import RUNS_FILES, Listed, write_runs_page
from agentworldbench.report.site import write_report
from agentworldbench.texts import time_text
from agentworldbench.version import __version__

Told = Callable[[int, int], None]
"""Takes how many predictions of a run have their pages, and how many there are."""


@dataclass(frozen=True)
class Built:
    """A finished report: its first page, what it holds, and the bytes of all files."""

    index: Path
    reports: tuple[Reported, ...]
    size: int


def build_report(
    paths: Sequence[Path],
    output: Path,
    data: str | None = None,
    told: Told = lambda done, total: None,
    remark: str = "",
) -> Built:
    """Make the report of one run or of several in the folder `output`, in place of an older report there.

    `remark` is a sentence of its maker that stands at the head of every page about a run.
    Raises ConfigError where a run has no results or is named twice, or `output` is not a report, DataError where the
    data are not those of a run, StoreError where the disk refuses.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise ConfigError("a run is named twice")
    folders = ["."] if len(paths) == 1 else folder_names(paths)
    made: list[Reported] = []
    seen: list[Listed] = []
    with replaced(output) as folder:
        for path, name in zip(paths, folders, strict=True):
            opened = open_run(path, data)
            below = folder if name == "." else folder / name
            made.append(write_report(opened, below, name, told, remark))
            seen.append(Listed(name, path, opened.results))
        if len(paths) > 1:
            write_runs_page(folder, seen, data)
        manifest = Manifest(
            made_by=__version__,
            made_at=time_text(datetime.now(UTC)),
            reports=tuple(made),
        )
        (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    return Built(output / "index.html", tuple(made), size)


def folder_names(paths: Sequence[Path]) -> list[str]:
    """What the folder of each run's pages is called: names that differ whatever a file system makes of capitals."""
    names: list[str] = []
    taken = {MANIFEST, *RUNS_FILES}
    for path in paths:
        first = name = path.resolve().name
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{first}-{number}"
        taken.add(name.lower())
        names.append(name)
    return names
