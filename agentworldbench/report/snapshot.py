"""All predictions of a run as they are now: lines of the list, and the numbers and plots of the first page.

In: a run directory that another process may be writing. Out: `Noted` records, kept from one look to the next, and a
`Snapshot`. Each look opens the journals anew and keeps to what they held then. Only what is new is read from the data and
scored; results that are stored are taken, others are made in memory. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from agentworldbench.errors import AwbError
from agentworldbench.journal import Place
from agentworldbench.outcome import own_code, read_results, results_of
from agentworldbench.plan import Samples
from agentworldbench.records import SampleMetrics, SampleRef
from agentworldbench.render.plots import Plot
from agentworldbench.report.contents import Line
from agentworldbench.report.figures import plots
from agentworldbench.report.gather import Gathered, Opened
from agentworldbench.report.lines import line_of, search_text, short_action
from agentworldbench.resume import reopen_samples
from agentworldbench.run_record import RunRecord
from agentworldbench.scoring.metrics.own import OwnCode
from agentworldbench.scoring.parallel import score_all
from agentworldbench.scoring.worker import Item as Scored
from agentworldbench.scoring.worker import Job
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, open_store

AT_A_TIME: Final = 32
"""Samples that are scored and noted together: so often it is seen how far the work is."""
REPLACED: Final = "files were exchanged while they were read; they are read again"
Key = tuple[str, int]


@dataclass(frozen=True)
class Noted:
    """What the list says of one prediction; `marks` are the places of its records in the journals."""

    marks: Hashable
    line: Line
    action: str
    searched: str


@dataclass(frozen=True)
class Snapshot:
    """The numbers of a moment, made of so many predictions; `opened` holds the results, which were `stored` or are made
    for this moment."""

    opened: Opened
    plots: tuple[Plot, ...]
    predictions: int
    stored: bool


def marks_of(store: Store, run: RunRecord, key: Key) -> Hashable:
    """The places of a prediction's records, and the prompts that verdicts must have been given under: this changes when
    what a page says of the prediction does."""
    domain = key[0].partition("/")[0]
    verdicts = (
        (one.system_prompts.get(domain), store.verdicts.place((*key, one.digest, repeat)))
        for one in run.judges
        for repeat in range(1, run.repeats.get(one.digest, 1) + 1)
    )
    return store.predictions.place(key), *verdicts


class Looks:
    """Looks at a run again and again. One thread works, any may read.

    `samples` is None until the data have been read, `snapshot` until there are numbers; `progress` says how many
    predictions of all are noted in the look under way, `problem` why numbers are missing. `noting` and `numbering` change
    with the list and with the numbers.
    """

    def __init__(self, path: Path, data: str | None, allow_code: bool) -> None:
        self.path = path
        self.samples: Samples | None = None
        self.snapshot: Snapshot | None = None
        self.noted: dict[Key, Noted] = {}
        self.progress = (0, 0)
        self.noting = self.numbering = 0
        self.problem: str | None = None
        self._data, self._allow_code = data, allow_code
        self._own: dict[str, OwnCode] | AwbError = {}
        self._metrics: dict[Key, SampleMetrics] = {}
        self._scored: dict[Key, Place | None] = {}

    def forget(self) -> None:
        """Other files stand where those were that have been read: places in them say nothing of what is there now."""
        self._metrics, self._scored, self.noted = {}, {}, {}  # `noted` last: a look goes by it

    def look(self, read: Callable[[], None]) -> None:
        """Bring all up to date; `read` is called when the data have been read. What cannot be done is told by `problem`;
        what could be stays."""
        try:
            self.problem = self._look(read)
        except AwbError as problem:
            self.problem = str(problem)
        except (OSError, ValidationError):  # places in the journals are those of the files that were opened
            self.problem = f"{self.path}: {REPLACED}"

    def gathered(self, store: Store, run: RunRecord, refs: Sequence[SampleRef] = ()) -> Gathered | None:
        """What pages need, with the metrics of these samples as the store has them; None while the data are read."""
        if self.samples is None:
            return None
        self._score(store, run, self.samples, refs)
        return Gathered(self.path, run, store, self.samples, self._metrics)

    def _look(self, read: Callable[[], None]) -> str | None:
        """Returns why there are no numbers, where there could be some."""
        store = open_store(self.path)
        run, results = store.read_run(), read_results(store)
        assert run is not None, "open_store has found it"
        samples = self._reopened(run)
        read()
        noted, known = self.noted, self._metrics
        if results is not None:
            for one in store.read_metrics():
                self._keep(one, store.predictions.place((one.sample_id, one.epoch)))
        stored = results is not None
        self.progress = (0, len(samples.refs) * run.epochs)
        for some in _parts(samples.refs):
            gathered = self.gathered(store, run, some)
            assert gathered is not None, "the data have been read"
            self._note(gathered, some)
        if noted is not self.noted:  # forgotten meanwhile, by a thread that answers a browser
            return f"{self.path}: {REPLACED}"
        if results is None and len(store.predictions):
            if isinstance(self._own, AwbError):
                self.snapshot = None
                return f"there are no scores before the run is finished: {self._own}"
            results = self._computed(store, run, samples, known, self._own)
        if results is not None:
            opened = Opened(self.path, run, store, samples, known, results)
            drawn = plots(opened, [noted[key].line for key in _keys(samples, run)])
            self.snapshot = Snapshot(opened, tuple(drawn), len(store.predictions), stored)
            self.numbering += 1
        elif self.snapshot is not None:  # of files that stood here before
            self.snapshot = None
            self.numbering += 1
        return None

    def _computed(
        self,
        store: Store,
        run: RunRecord,
        samples: Samples,
        known: Mapping[Key, SampleMetrics],
        own: Mapping[str, OwnCode],
    ) -> Results:
        """What `awb score` would make of what is there."""
        metrics: dict[str, list[SampleMetrics]] = {}
        for key in _keys(samples, run):
            if key in known:
                metrics.setdefault(key[0], []).append(known[key])
        return results_of(store, run, samples, metrics, own)

    def _reopened(self, run: RunRecord) -> Samples:
        """The data, read again only where the run is about other samples than before."""
        known = self.samples
        if known is None or len(known.refs) != sum(run.selection.samples.values()):
            known = reopen_samples(self.path, run, self._data)
            try:
                self._own = own_code(known, self._allow_code)
            except AwbError as problem:
                self._own = problem
            self.samples = known
        return known

    def _keep(self, record: SampleMetrics, place: Place | None) -> None:
        key = (record.sample_id, record.epoch)
        self._metrics[key], self._scored[key] = record, place

    def _score(self, store: Store, run: RunRecord, samples: Samples, refs: Sequence[SampleRef]) -> None:
        """Metrics of predictions that have none yet, or older ones."""
        if isinstance(self._own, AwbError):
            return
        due = [
            Scored(ref, place)
            for ref in refs
            for epoch in range(1, run.epochs + 1)
            if (place := store.predictions.place((ref.id, epoch))) is not None
            and self._scored.get((ref.id, epoch)) != place
        ]
        job = Job(samples.tasks, samples.dataset.files, store.predictions.path, self._own)
        with closing(score_all(job, due, 1, lambda done, total: None)) as scored:
            for item, record in zip(due, scored, strict=True):
                self._keep(record, item.place)

    def _note(self, run: Gathered, refs: Sequence[SampleRef]) -> None:
        numbers = _epochs(run.run)
        due = [ref for ref in refs if any(self._marks(run, (ref.id, epoch)) != self._known((ref.id, epoch)) for epoch in numbers)]  # fmt: skip
        for item in run.items(due):
            key = (item.ref.id, item.epoch)
            self.noted[key] = Noted(self._marks(run, key), line_of(run, item), short_action(item), search_text(item))  # fmt: skip
            self.noting += 1
        self.progress = (self.progress[0] + len(refs) * run.run.epochs, self.progress[1])

    def _marks(self, run: Gathered, key: Key) -> Hashable:
        return marks_of(run.store, run.run, key), key in run.metrics

    def _known(self, key: Key) -> Hashable:
        found = self.noted.get(key)
        return None if found is None else found.marks


def _epochs(run: RunRecord) -> range:
    return range(1, run.epochs + 1)


def _keys(samples: Samples, run: RunRecord) -> Iterator[Key]:
    return ((ref.id, epoch) for ref in samples.refs for epoch in _epochs(run))


def _parts(refs: Sequence[SampleRef]) -> Iterator[Sequence[SampleRef]]:
    return (refs[at : at + AT_A_TIME] for at in range(0, len(refs), AT_A_TIME))
