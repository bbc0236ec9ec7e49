"""The pages of one run as texts: made when they are asked for, whether a folder is filled or a browser waits.

In: a run that was opened, with results or without. Out: HTML and script files. What is about all predictions at once
(lines, plots) is handed in; a page of a sample is made from the files alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from agentworldbench.records import SampleRef
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.shell import Site
from agentworldbench.report.contents import HistoryView, Line, Neighbour, Overview, SampleView
from agentworldbench.report.gather import Gathered, Item
from agentworldbench.report.history import Trajectory
from agentworldbench.report.lines import list_script
from agentworldbench.report.names import page_name, trajectory_name
from agentworldbench.report.views import sample_view


class Pages:
    """Writes pages of a run; `more` are values that every template gets."""

    def __init__(self, run: Gathered, site: Site, more: Mapping[str, Any]) -> None:
        self._run, self._site, self._more = run, site, more
        self.order = [(ref, epoch) for ref in run.samples.refs for epoch in range(1, run.run.epochs + 1)]
        """Samples and epochs as they follow each other."""
        self._places = {page_name(ref.id, epoch): at for at, (ref, epoch) in enumerate(self.order)}

    def view(self, item: Item, history: HistoryView | None, same: Sequence[SampleRef]) -> SampleView:
        """What the page of one prediction says; `same` are the samples of its trajectory."""
        around = self._around(page_name(item.ref.id, item.epoch))
        turns = [
            Neighbour(page_name(ref.id), f"turn {ref.turn_idx}")
            for ref in sorted(same, key=lambda ref: ref.turn_idx)
        ]
        return sample_view(self._run, item, history, around, turns if len(turns) > 1 else [])

    def view_named(self, name: str) -> SampleView | None:
        """The same, by the name of the page; None where no prediction has it."""
        if name not in self._places:
            return None
        ref, epoch = self.order[self._places[name]]
        same = self._trajectories[trajectory_name(ref.domain, ref.cluster)]
        trajectory, history = Trajectory(ref.domain, ref.cluster), None
        for one in same[: same.index(ref) + 1]:  # a turn's place in the file depends on those before it alone
            history = trajectory.add(self._run.samples.dataset.load(one), self._run.samples.tasks[one.domain])
        (item,) = (item for item in self._run.items([ref]) if item.epoch == epoch)
        return self.view(item, history, same)

    def sample_page(self, view: SampleView) -> str:
        """The page of one prediction."""
        title = f"{view.sample_id} · {self._run.model}"
        return self._page("sample", title, "../", view=view, model=self._run.model)

    def trajectory_named(self, name: str) -> str | None:
        """The turns of a trajectory as a script file; None where none is called so."""
        same = self._trajectories.get(name)
        if same is None:
            return None
        trajectory = Trajectory(same[0].domain, same[0].cluster)
        for ref in same:
            trajectory.add(self._run.samples.dataset.load(ref), self._run.samples.tasks[ref.domain])
        return trajectory.script()

    def ref_named(self, name: str) -> tuple[SampleRef, int] | None:
        """Which sample and epoch a page is about."""
        return self.order[self._places[name]] if name in self._places else None

    def list_page(self, count: int) -> str:
        """The list of samples."""
        return self._page("list", f"Samples of {self._run.model}", model=self._run.model, count=count)

    def list_script(self, lines: Sequence[Line], actions: Mapping[str, str]) -> str:
        """What the list shows."""
        return list_script(self._run, lines, actions)

    def _page(self, name: str, title: str, root: str = "", **values: object) -> str:
        return self._site.page(name, title, root, canary=CANARY, **self._more, **values)

    @cached_property
    def _trajectories(self) -> dict[str, list[SampleRef]]:
        found: dict[str, list[SampleRef]] = {}
        for ref in self._run.samples.refs:
            found.setdefault(trajectory_name(ref.domain, ref.cluster), []).append(ref)
        return found

    def _around(self, name: str) -> tuple[Neighbour | None, Neighbour | None]:
        at = self._places[name]
        return self._neighbour(at - 1), self._neighbour(at + 1)

    def _neighbour(self, at: int) -> Neighbour | None:
        if not 0 <= at < len(self.order):
            return None
        ref, epoch = self.order[at]
        return Neighbour(page_name(ref.id, epoch), ref.id)


def overview_page(site: Site, view: Overview, more: Mapping[str, Any]) -> str:
    """The first page, which needs no data."""
    title = f"Report of {view.model}"
    return site.page("overview", title, canary=CANARY, view=view, model=view.model, **more)
