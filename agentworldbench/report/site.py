"""A report: a folder of pages about one run, which opens from a disk and asks no network (docs/reports.md lists the files).

In: a run directory. Out: the folder, put in place when it is whole, so that a report that was there before stays until
then. Trajectory after trajectory is read, shown and forgotten: what stays in memory is a `Line` of each prediction and
one domain's search texts. What is too large for a page stands in script files that only assign JSON.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.records import SampleRef
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.plot_files import can_make_png, png_file, svg_file
from agentworldbench.render.plots import Plot
from agentworldbench.render.shell import Site
from agentworldbench.report.contents import Line, Manifest, Neighbour
from agentworldbench.report.figures import plots
from agentworldbench.report.gather import Item, Opened, open_run
from agentworldbench.report.history import Trajectory
from agentworldbench.report.lines import line_of, list_script, search_script, search_text, short_action
from agentworldbench.report.names import SAMPLES, TRAJECTORIES, page_name
from agentworldbench.report.overview import overview, summary
from agentworldbench.report.views import sample_view
from agentworldbench.resources import asset
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.version import __version__

MANIFEST: Final = "report.json"
PLOTS: Final = "plots"
_MAKING: Final = ".making-"
"""How the name of a folder begins in which a report is made."""
Told = Callable[[int, int], None]
"""Takes how many predictions have their pages, and how many there are."""


@dataclass(frozen=True)
class Built:
    """A finished report: its first page, how many pages of samples and plots it has, and whether these are PNG too."""

    index: Path
    pages: int
    plots: int
    pictures: bool


def build_report(
    path: Path, output: Path, data: str | None = None, told: Told = lambda done, total: None
) -> Built:
    """Make the report of the run at `path` in the folder `output`, in place of an older report there.

    Raises ConfigError where the run has no results or `output` is not a report, DataError where the data are not
    those of the run, StoreError where the disk refuses.
    """
    check_output(output)
    opened = open_run(path, data)
    making = output / f"{_MAKING}{os.getpid()}"
    try:
        for folder in (making, making / SAMPLES, making / TRAJECTORIES, making / PLOTS):
            folder.mkdir(parents=True)
        made = _Builder(opened, making, told).build()
        _put_in_place(making, output)
    except OSError as problem:
        raise StoreError(f"{problem.filename or output}: cannot be written ({problem.strerror})") from problem
    finally:
        shutil.rmtree(making, ignore_errors=True)
        with suppress(OSError):
            output.rmdir()  # empty: it was made for a report that did not come about
    return Built(output / "index.html", made.pages, len(made.plots), can_make_png())


def check_output(output: Path) -> None:
    """Refuse a folder that holds anything but a report, or what is left of one. Raises ConfigError."""
    if output.exists() and not output.is_dir():
        raise ConfigError(f"--output {output}: is a file; name a folder")
    if not output.is_dir() or (output / MANIFEST).is_file():
        return
    if any(not one.name.startswith(_MAKING) for one in output.iterdir()):
        raise ConfigError(
            f"--output {output}: holds files but no report; name an empty folder or an older report"
        )


def _put_in_place(making: Path, output: Path) -> None:
    """Exchange what is in the folder, which may be a mounted one that cannot be exchanged itself.

    The old manifest stays until the new one takes its place, first of all: whatever stops this, the folder is known to be
    a report.
    """
    for old in list(output.iterdir()):
        if old.is_dir() and not old.is_symlink():
            if old != making:
                shutil.rmtree(old)
        elif old.name != MANIFEST:
            old.unlink()
    for new in sorted(making.iterdir(), key=lambda one: one.name != MANIFEST):
        new.replace(output / new.name)


@dataclass
class _Builder:
    opened: Opened
    folder: Path
    told: Told
    lines: dict[str, Line] = field(default_factory=dict)
    actions: dict[str, str] = field(default_factory=dict)

    def build(self) -> Manifest:
        """Write everything."""
        self._site = Site(asset("reports", "templates"), ["plots"])
        self._order = [(ref, epoch) for ref in self._refs for epoch in range(1, self.opened.run.epochs + 1)]
        self._places = {page_name(ref.id, epoch): at for at, (ref, epoch) in enumerate(self._order)}
        trajectories = 0
        for domain, refs in by_domain(self._refs).items():
            searched: dict[str, str] = {}
            for some in _by_trajectory(refs):
                self._trajectory(some, searched)
                trajectories += 1
            self._write(f"search-{domain}.js", search_script(searched))
        lines = [self.lines[name] for name in self._places]
        drawn = plots(self.opened, lines)
        self._pictures(drawn)
        self._pages(lines, drawn)
        manifest = self._manifest(len(lines), trajectories, drawn)
        self._write(MANIFEST, manifest.model_dump_json(indent=2) + "\n")
        return manifest

    @property
    def _refs(self) -> tuple[SampleRef, ...]:
        return self.opened.samples.refs

    def _trajectory(self, refs: Sequence[SampleRef], searched: dict[str, str]) -> None:
        """The pages of one trajectory's samples, and the file of its turns."""
        trajectory = Trajectory(refs[0].domain, refs[0].cluster)
        same = [
            Neighbour(page_name(ref.id), f"turn {ref.turn_idx}")
            for ref in sorted(refs, key=lambda ref: ref.turn_idx)
        ]
        for item in self.opened.items(refs):
            name = page_name(item.ref.id, item.epoch)
            history = trajectory.add(item.sample, item.task)
            view = sample_view(self.opened, item, history, self._around(name), same if len(same) > 1 else [])
            title = f"{item.ref.id} · {self.opened.results.model}"
            self._write(
                f"{SAMPLES}/{name}.html",
                self._page("sample", title, "../", view=view, model=self.opened.results.model),
            )
            self._note(name, item, searched)
        self._write(f"{TRAJECTORIES}/{trajectory.name}.js", trajectory.script())

    def _note(self, name: str, item: Item, searched: dict[str, str]) -> None:
        self.lines[name] = line_of(self.opened, item)
        self.actions[name] = short_action(item)
        searched[name] = search_text(item)
        self.told(len(self.lines), len(self._order))

    def _around(self, name: str) -> tuple[Neighbour | None, Neighbour | None]:
        at = self._places[name]
        return self._neighbour(at - 1), self._neighbour(at + 1)

    def _neighbour(self, at: int) -> Neighbour | None:
        if not 0 <= at < len(self._order):
            return None
        ref, epoch = self._order[at]
        return Neighbour(page_name(ref.id, epoch), ref.id)

    def _pictures(self, drawn: Sequence[Plot]) -> None:
        for plot in drawn:
            self._write(f"{PLOTS}/{plot.name}.svg", svg_file(plot))
            if can_make_png():
                (self.folder / PLOTS / f"{plot.name}.png").write_bytes(png_file(plot))

    def _pages(self, lines: Sequence[Line], drawn: Sequence[Plot]) -> None:
        model = self.opened.results.model
        kinds = ("svg", "png") if can_make_png() else ("svg",)
        first = overview(self.opened, lines, drawn, kinds)
        self._write("summary.md", summary(first))
        self._write("index.html", self._page("overview", f"Report of {model}", view=first, model=model))
        self._write("list.js", list_script(self.opened, lines, self.actions))
        self._write("samples.html", self._page("list", f"Samples of {model}", model=model, count=len(lines)))
        for name, text in self._site.files.items():
            self._write(name, text)

    def _page(self, name: str, title: str, root: str = "", **values: object) -> str:
        return self._site.page(name, title, root, canary=CANARY, **values)

    def _manifest(self, pages: int, trajectories: int, drawn: Sequence[Plot]) -> Manifest:
        return Manifest(
            run=self.opened.path.resolve().name,
            model=self.opened.results.model,
            made_by=__version__,
            made_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            results_made_at=self.opened.results.made_at,
            pages=pages,
            trajectories=trajectories,
            plots=tuple(plot.name for plot in drawn),
        )

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _by_trajectory(refs: Sequence[SampleRef]) -> Iterator[list[SampleRef]]:
    clusters: dict[str, list[SampleRef]] = {}
    for ref in refs:
        clusters.setdefault(ref.cluster, []).append(ref)
    yield from clusters.values()
