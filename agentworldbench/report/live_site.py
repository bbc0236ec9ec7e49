"""What `awb view` answers: the pages of `awb report` and their files, made when they are asked for.

In: the path of a request, already decoded, and its query. Out: an `Answer`, or None where there is no such page. A path
is looked up among the names of what there is; none ever becomes the name of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from agentworldbench.errors import StoreError
from agentworldbench.records import SampleRef
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.plot_files import png_file, svg_file
from agentworldbench.render.shell import Site
from agentworldbench.report.activity import LAST_FAILURES, Activity
from agentworldbench.report.contents import Overview
from agentworldbench.report.lines import search_script
from agentworldbench.report.live import LiveRun
from agentworldbench.report.names import PLOTS, SAMPLES, TRAJECTORIES
from agentworldbench.report.overview import overview, summary
from agentworldbench.report.pages import Pages, overview_page
from agentworldbench.report.progress import Shown, domain_names, shown_activity, stage_names
from agentworldbench.report.snapshot import REPLACED
from agentworldbench.report.wholes import TEXTS
from agentworldbench.resources import asset
from agentworldbench.texts import count_text

PATIENCE: Final = 0.7
"""Seconds that a first page waits for numbers and plots before it comes without them."""
HTML: Final = "text/html; charset=utf-8"
KINDS: Final = {
    "html": HTML,
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True)
class Answer:
    """A body and its kind; `place` is where it stands instead."""

    kind: str
    body: bytes = b""
    place: str | None = None


class Told(Activity):
    """`progress.json` of a run: its `Activity`, and for the pages their texts, which version there is of each kind of page,
    and what to say when that is another one. `scored` predictions stand behind the scores."""

    scored: int
    looked: bool
    problem: str | None
    waiting: str
    shown: Shown
    made: dict[str, str]
    offers: dict[str, str]


@dataclass(frozen=True)
class _Live:
    """What templates get of the moment: of which kind of page it is, and the version of what it shows (`made`)."""

    kind: str
    name: str
    made: str
    state: str
    problem: str
    texts: Mapping[str, str]
    bars: Mapping[str, tuple[int, int]]
    stages: Sequence[str]
    domains: Sequence[tuple[str, str]]
    last: int = LAST_FAILURES


def served_site() -> Site:
    """The templates and files of pages that a server shows."""
    folder = asset("reports", "templates")
    site = Site(folder, ["plots", "texts"], served=True)
    site.files["style.css"] += (folder / "live.css").read_text(encoding="utf-8")
    site.files["live.js"] = (folder / "live.js").read_text(encoding="utf-8")
    return site


def _offer(scored: int | None, plots_alone: bool) -> str:
    """What a first page that shows other numbers is told; None: there are none any more, or not yet."""
    if scored is None:
        return "The files of this run were exchanged: the scores here are not theirs."
    return (
        "The plots are ready."
        if plots_alone
        else f"Scores and plots of {count_text(scored, 'prediction')} are ready."
    )


class RunSite:
    """The pages of one run; `above` says whether a list of runs stands above them."""

    def __init__(self, live: LiveRun, above: bool = False) -> None:
        self.live = live
        self._above = above
        self._site = served_site()
        self._fixed: Mapping[str, Callable[[], str | None]] = {
            "": self._overview,
            "index.html": self._overview,
            "samples.html": self._list,
            "list.js": self._list_script,
            "summary.md": self._summary,
        }

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """The page or file at a path. Raises an `AwbError` where the run or its data cannot be read."""
        kind = KINDS.get(path.rpartition(".")[2] if path else "html")
        if kind is None:
            return None
        try:
            text = self._text(path, query)
        except (OSError, ValidationError) as problem:
            raise StoreError(f"{self.live.path}: {REPLACED}") from problem
        if text is None or isinstance(text, bytes):
            return None if text is None else Answer(kind, text)
        return Answer(kind, text.encode("utf-8", "replace"))

    def _text(self, path: str, query: Mapping[str, str]) -> str | bytes | None:
        if path == "progress.json":
            return self.told(query.get("page", "")).model_dump_json()
        if path in self._site.files:
            return self._site.files[path]
        return self._fixed[path]() if path in self._fixed else self._one_of_many(path)

    def told(self, page: str = "") -> Told:
        """What is known now; `page` is the name of the sample's page that asks."""
        activity, looks = self.live.activity(), self.live.looks
        made = {"overview": str(looks.numbering), "list": str(looks.noting)}
        if page and looks.samples is not None and (found := self._pages().ref_named(page)):
            made["sample"] = self.live.marks(*found)
        snapshot = looks.snapshot
        scored = snapshot.predictions if snapshot else None
        plots_alone = snapshot is not None and snapshot.stored and looks.numbering == 1
        return Told(
            **{name: getattr(activity, name) for name in Activity.model_fields},
            scored=scored or 0,
            looked=self.live.looked,
            problem=looks.problem,
            waiting=self._waiting(activity),
            shown=shown_activity(activity),
            made=made,
            offers={
                "overview": _offer(scored, plots_alone),
                "list": "There are newer answers than this list has.",
                "sample": "There is a newer answer than this page has.",
            },
        )

    def _waiting(self, activity: Activity) -> str:
        """Why the first page has no numbers."""
        done, total = self.live.looks.progress
        if not activity.stages[0].done:
            return "There are no scores: no prediction yet."
        if self.live.looks.problem:
            return ""
        if not total:
            return "The data are being read; scores and plots follow."
        return f"Scores and plots are being made: {done:,} of {count_text(total, 'prediction')} read."

    def _one_of_many(self, path: str) -> str | bytes | None:
        folder, _, name = path.rpartition("/")
        stem, _, ending = name.rpartition(".")
        match folder, ending:
            case (_, "html") if folder == SAMPLES:
                return self._sample(stem)
            case (_, "js") if folder == TRAJECTORIES:
                return self._pages().trajectory_named(stem)
            case (_, "svg" | "png") if folder == PLOTS:
                drawn = self.live.looks.snapshot.plots if self.live.looks.snapshot else ()
                as_file = svg_file if ending == "svg" else png_file
                return next((as_file(plot) for plot in drawn if plot.name == stem), None)
            case (_, "txt") if folder == TEXTS:
                view = self._pages().view_named(stem.rpartition(".")[0])
                return None if view is None else view.files.get(name)
            case ("", "js") if stem.startswith("search-"):
                return self._search(stem.removeprefix("search-"))
        return None

    def _overview(self) -> str:
        self.live.wait(PATIENCE)
        live = self._live("overview", str(self.live.looks.numbering))
        view = self._view()
        if view is not None:
            return overview_page(self._site, view, self._more(live))
        return self._site.page(
            "waiting",
            f"Report of {self.live.run.predict.model['model']}",
            canary=CANARY,
            model=str(self.live.run.predict.model["model"]),
            scope=f"data {self.live.run.predict.data.name}",
            why=self._waiting(self.live.activity()),
            **self._more(live),
        )

    def _view(self) -> Overview | None:
        """What the first page says of the last numbers; plots only where the data have been read."""
        snapshot, numbers = self.live.looks.snapshot, self.live.numbers()
        if numbers is None:
            return None
        count = sum(numbers.results.predictions.samples.values())
        return overview(numbers, count, snapshot.plots if snapshot else None)

    def _summary(self) -> str | None:
        view = self._view()
        return None if view is None else summary(view)

    def _list(self) -> str:
        self.live.wait(PATIENCE)
        live = self._live("list", str(self.live.looks.noting))
        pages = self._pages(live=live)
        return pages.list_page(len(pages.order))

    def _list_script(self) -> str:
        """The predictions that have been looked at; where that is not all of them, the page offers more."""
        pages, noted = self._pages(), self.live.looks.noted
        known = [one for ref, epoch in pages.order if (one := noted.get((ref.id, epoch)))]
        return pages.list_script([one.line for one in known], {one.line.page: one.action for one in known})

    def _search(self, domain: str) -> str | None:
        if domain not in self.live.run.selection.samples:
            return None
        noted = list(self.live.looks.noted.values())
        return search_script({one.line.page: one.searched for one in noted if one.line.domain == domain})

    def _sample(self, name: str) -> str | None:
        found = self._pages().ref_named(name)
        if found is None:
            return None
        live = self._live("sample", self.live.marks(*found), name)
        pages = self._pages([found[0]], live)
        view = pages.view_named(name)
        return None if view is None else pages.sample_page(view)

    def _pages(self, refs: Sequence[SampleRef] = (), live: _Live | None = None) -> Pages:
        return Pages(self.live.gathered(refs), self._site, self._more(live))

    def _more(self, live: _Live | None) -> dict[str, Any]:
        return {"above": self._above} | ({} if live is None else {"live": live})

    def _live(self, kind: str, made: str, name: str = "") -> _Live:
        told = self.told()
        return _Live(
            kind=kind,
            name=name,
            made=made,
            state=told.state,
            problem=told.problem or "",
            texts=told.shown.texts,
            bars=told.shown.bars,
            stages=stage_names(told),
            domains=domain_names(told),
        )
