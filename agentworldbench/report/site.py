"""The pages about one run, which open from a disk and ask no network (docs/reports.md lists the files).

In: an opened run, and a folder. Out: the folder's files. Trajectory after trajectory is read, shown and forgotten: what stays in memory is a `Line` of each prediction and
one domain's search texts. What is too large for a page stands in script files that only assign JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentworldbench.records import SampleRef
from agentworldbench.render.plot_files import png_file, svg_file
from agentworldbench.render.plots import Plot
from agentworldbench.render.shell import Site
from agentworldbench.report.contents import Line, Reported
from agentworldbench.report.figures import plots
from agentworldbench.report.gather import Item, Opened
from agentworldbench.report.history import Trajectory
from agentworldbench.report.lines import line_of, search_script, search_text, short_action
from agentworldbench.report.names import PLOTS, SAMPLES, TRAJECTORIES, page_name
from agentworldbench.report.overview import overview, summary
from agentworldbench.report.pages import Pages, overview_page
from agentworldbench.report.wholes import TEXTS
from agentworldbench.resources import asset
from agentworldbench.stats.aggregate import by_domain


def write_report(
    opened: Opened, folder: Path, name: str, told: Callable[[int, int], None], remark: str = ""
) -> Reported:
    """Write all pages of a run into a folder that is its own; `name` is what the manifest calls the folder.

    `told` takes how many predictions have their pages, and how many there are. Raises DataError where a row is not what it was.
    """
    for below in (SAMPLES, TRAJECTORIES, TEXTS, PLOTS):
        (folder / below).mkdir(parents=True, exist_ok=True)
    return _Builder(opened, folder, told, above=name != ".", remark=remark).build(name)


@dataclass
class _Builder:
    opened: Opened
    folder: Path
    told: Callable[[int, int], None]
    above: bool
    """Whether the page of several runs stands above."""
    remark: str = ""
    """Of the report's maker, for the head of every page."""
    lines: dict[str, Line] = field(default_factory=dict)
    actions: dict[str, str] = field(default_factory=dict)

    def build(self, name: str) -> Reported:
        """Write everything."""
        self._site = Site(asset("reports", "templates"), ["plots", "texts"])
        self._made = Pages(self.opened, self._site, {"above": self.above, "remark": self.remark})
        trajectories = 0
        for domain, refs in by_domain(self._refs).items():
            searched: dict[str, str] = {}
            for some in _by_trajectory(refs):
                self._trajectory(some, searched)
                trajectories += 1
            self._write(f"search-{domain}.js", search_script(searched))
        lines = [self.lines[page_name(ref.id, epoch)] for ref, epoch in self._made.order]
        drawn = plots(self.opened, lines)
        self._pictures(drawn)
        self._pages(lines, drawn)
        return Reported(
            folder=name,
            run=self.opened.path.resolve().name,
            model=self.opened.results.model,
            results_made_at=self.opened.results.made_at,
            pages=len(lines),
            trajectories=trajectories,
            plots=tuple(plot.name for plot in drawn),
        )

    @property
    def _refs(self) -> tuple[SampleRef, ...]:
        return self.opened.samples.refs

    def _trajectory(self, refs: Sequence[SampleRef], searched: dict[str, str]) -> None:
        """The pages of one trajectory's samples, and the file of its turns."""
        trajectory = Trajectory(refs[0].domain, refs[0].cluster)
        for item in self.opened.items(refs):
            name = page_name(item.ref.id, item.epoch)
            history = trajectory.add(item.sample, item.task)
            view = self._made.view(item, history, refs)
            self._write(f"{SAMPLES}/{name}.html", self._made.sample_page(view))
            for file, text in view.files.items():
                self._write(f"{TEXTS}/{file}", text)
            self._note(name, item, searched)
        self._write(f"{TRAJECTORIES}/{trajectory.name}.js", trajectory.script())

    def _note(self, name: str, item: Item, searched: dict[str, str]) -> None:
        self.lines[name] = line_of(self.opened, item)
        self.actions[name] = short_action(item)
        searched[name] = search_text(item)
        self.told(len(self.lines), len(self._made.order))

    def _pictures(self, drawn: Sequence[Plot]) -> None:
        for plot in drawn:
            self._write(f"{PLOTS}/{plot.name}.svg", svg_file(plot))
            (self.folder / PLOTS / f"{plot.name}.png").write_bytes(png_file(plot))

    def _pages(self, lines: Sequence[Line], drawn: Sequence[Plot]) -> None:
        first = overview(self.opened.numbers, len(lines), drawn)
        more = {"above": self.above, "remark": self.remark}
        self._write("summary.md", summary(first, self.remark))
        self._write("index.html", overview_page(self._site, first, more))
        self._write("list.js", self._made.list_script(lines, self.actions))
        self._write("samples.html", self._made.list_page(len(lines)))
        for name, text in self._site.files.items():
            self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _by_trajectory(refs: Sequence[SampleRef]) -> Iterator[list[SampleRef]]:
    clusters: dict[str, list[SampleRef]] = {}
    for ref in refs:
        clusters.setdefault(ref.cluster, []).append(ref)
    yield from clusters.values()
