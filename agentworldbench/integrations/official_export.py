"""A run as the two files of the official script: its `score` reads them, its `judge` takes the first.

In: a run directory. Out: `predictions.jsonl`, the rows of the data with the replies as they came, and for one
judge `judged.jsonl`, which adds what the official rules read in its replies: the script's own `score` prints
of it what our official reading says. A sample that was not asked yet is left out and counted, since the
files have no word for it. A failed one carries the class of its failure as `error_message`. Of several epochs and
repeats the files hold the first, which is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentworldbench.integrations.export_source import check_folder, chosen_judge, replacing, reply_of
from agentworldbench.integrations.official_script import JUDGED, PREDICTIONS, json_line
from agentworldbench.official import extract
from agentworldbench.plan import Samples
from agentworldbench.readings import BothReadings, both_readings, officially_read
from agentworldbench.records import Prediction, SampleRef
from agentworldbench.resume import reopen_samples
from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.stats.official import TOTAL
from agentworldbench.store import Store, open_store
from agentworldbench.task import Task

FOLDER: Final = "official"
Line = tuple[SampleRef, dict[str, Any]]


@dataclass(frozen=True)
class Exported:
    """One file that was written: its lines, the samples left out because they were not asked yet, and a line about
    epochs and repeats that it has no place for (empty: there are none)."""

    path: Path
    lines: int
    left_out: int
    note: str = ""


def export_run(
    path: Path, folder: Path | None = None, judge: str | None = None, data: str | None = None
) -> list[Exported]:
    """Write both files into `folder` (default: `official` in the run directory).

    `judge` names the judge (model or digest) where the run has several; a run without judge gives the
    predictions alone. `data` says where the data are now, when they have moved. Raises ConfigError for a
    folder that is a run directory or holds other files of these names.
    """
    run = _open(path, data)
    target, ours = check_folder(path, folder, FOLDER)
    written = [_write(target / PREDICTIONS, _predictions(run), run, ours)]
    if run.record.judges or judge is not None:
        chosen = chosen_judge(path, run.record.judges, judge)
        written.append(_write(target / JUDGED, _judged(run, chosen), run, ours, chosen.digest))
    return written


def export_judged(path: Path, judge: str, data: str | None = None) -> Exported:
    """Write `judged.jsonl` of one judge (its digest) into the run directory itself."""
    run = _open(path, data)
    chosen = chosen_judge(path, run.record.judges, judge)
    return _write(path / JUDGED, _judged(run, chosen), run, True, chosen.digest)


@dataclass(frozen=True)
class _Open:
    """A run with its data, domains in the order of the script: by file name."""

    store: Store
    record: RunRecord
    samples: Samples
    groups: Mapping[str, list[SampleRef]]

    @property
    def total(self) -> int:
        return sum(map(len, self.groups.values()))

    def left_aside(self, judge: str) -> str:
        """A line where there are more answers, or verdicts of this judge, than a file of the script holds."""
        epochs, repeats = self.record.epochs, self.record.repeats.get(judge, 1)
        more = [f"{epochs} epochs"] * (epochs > 1) + [f"{repeats} repeats of the judge"] * (repeats > 1)
        if not more:
            return ""
        return f"the run has {' and '.join(more)}, of which this file holds the first; `awb export parquet` has all"

    def row(self, ref: SampleRef) -> dict[str, Any]:
        """The row of the data, whole."""
        raw = self.samples.dataset.raw(ref)
        row: dict[str, Any] = json.loads(raw.decode("utf-8-sig" if ref.line == 1 else "utf-8"))
        return row


def _open(path: Path, data: str | None) -> _Open:
    store = open_store(path)
    record = store.read_run()
    assert record is not None, "open_store has seen it"
    samples = reopen_samples(path, record, data)
    groups = by_domain(samples.refs)
    names = sorted(groups, key=lambda domain: samples.tasks[domain].data_file)
    return _Open(store, record, samples, {name: groups[name] for name in names})


def _predictions(run: _Open) -> Iterator[dict[str, Any]]:
    for refs in run.groups.values():
        for ref in refs:
            prediction = run.store.predictions.get((ref.id, 1))
            if prediction is not None:
                yield run.row(ref) | {"gen": reply_of(prediction)}


def _judged(run: _Open, judge: JudgeRecord) -> Iterator[dict[str, Any]]:
    for both in both_readings(run.store, run.groups, judge):
        if both.prediction is not None and both.official.stage != "pending":
            added = _fields(both, both.prediction, judge, run.samples.tasks[both.ref.domain])
            yield run.row(both.ref) | {"gen": reply_of(both.prediction)} | added


def _fields(both: BothReadings, prediction: Prediction, judge: JudgeRecord, task: Task) -> dict[str, Any]:
    """What the script's `judge` adds to a row."""
    official, verdict = both.official, both.verdict
    shown = prediction.observation or ""
    if judge.parse == "official" and prediction.text:
        shown = extract(prediction.text, task.prediction_tag)
    if official.values is None:
        failed = {"failed": 1.0, "error_message": f"{official.stage}: {official.kind}: {official.message}"}
        return failed if verdict is None else {TOTAL: 0, **failed, "extracted_output": shown}
    assert verdict is not None, "scored, so it was judged"
    read = officially_read(verdict)
    assert read is not None
    fields: dict[str, Any] = {TOTAL: read.total, **read.scores, "failed": 0.0}
    fields |= {"strengths": read.strengths, "weaknesses": read.weaknesses, "extracted_output": shown}
    return fields if verdict.reply is None else fields | {"judge_raw_output": verdict.reply}


def _write(
    target: Path, lines: Iterable[dict[str, Any]], run: _Open, ours: bool, judge: str = ""
) -> Exported:
    """Replace a file atomically; one with other contents stays unless it is `ours` to replace."""
    count = 0
    with replacing(target, ours) as part, part.open("wb") as file:
        for count, line in enumerate(lines, start=1):  # noqa: B007 - counted for the report
            file.write(json_line(line))
    return Exported(target, count, run.total - count, run.left_aside(judge))
