"""All numbers made again from what the raw replies say, and every one compared with what is claimed.

In: the material and the records that were read again. Out: results as this harness computes them, and hits for each
field of `results.json`, of `metrics.jsonl` and of a leaderboard entry that differs. Numbers are equal if they are the
same, or differ by at most 1e-9 (absolute or relative): sums of floats may round in another order elsewhere. What
says when and by which version results were made is not compared.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from agentworldbench.errors import DataError
from agentworldbench.leaderboard.entries import SAID, Entry, read_entry
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.outcome import Scoring, make_results
from agentworldbench.panels import panel_results
from agentworldbench.readings import Outcomes, both_readings, reading_of_all
from agentworldbench.records import Prediction, Record, SampleMetrics
from agentworldbench.run_record import RunRecord
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.stats.results import Block, PanelResults, Reading, Results, RuleResults
from agentworldbench.store import Store
from agentworldbench.submission.manifest import Manifest
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Material

TOLERANCE: Final = 1e-9
NOT_COMPARED: Final = frozenset({"made_at", "made_by"})
NEEDS_CLUSTERS: Final = re.compile(r"(^|[._])(intervals?|checks|rerun|clusters)\b")
"""Fields of a reading that rest on which samples belong together, which only the data tell."""
NOT_CLAIMED: Final = frozenset(
    name for record in (Block, Reading, PanelResults, RuleResults, Results) for name in record.LATER
)
"""Fields that results have got since; a bundle of an earlier version does not claim them."""
OTHER_NUMBER: Final = "a claimed number is not what the raw replies give"
CALLED_VERIFIED: Final = "the entry calls itself verified; only a maintainer says that"
OTHER_SUBMITTER: Final = "the entry names another submitter than the bundle"
NAMED: Final = "the name that the entry shows is its submitter's choice"
NO_RESULTS: Final = "there are no results to be compared (`awb score` makes them)"
Changed = Mapping[tuple[Any, ...], Record]
"""Records that read otherwise than they are stored, by key."""


def recomputed(
    material: Material, changed: Changed, told: Callable[[int, int], None]
) -> tuple[Results, list[Hit]]:
    """Results of the replayed records, with every difference to the claimed ones. The data must be at hand."""
    assert material.samples is not None, "results rest on the data"
    with tempfile.TemporaryDirectory(prefix="awb-verify-") as folder:
        store = _replayed(material, changed, Path(folder))
        results = make_results(store, material.record, material.samples, Scoring(told=told))
        again = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
        hits = [*_against_results(material, again, bool(changed)), *_against_metrics(material, store)]
    return results, hits


def _replayed(material: Material, changed: Changed, folder: Path) -> Store:
    """A run directory with the journals of the material, each record as its raw reply reads."""
    for name in ("run.json", "predictions.jsonl", "verdicts.jsonl"):
        if (material.path / name).is_file():
            shutil.copyfile(material.path / name, folder / name)
    with (
        (folder / "predictions.jsonl").open("ab") as predictions,
        (folder / "verdicts.jsonl").open("ab") as verdicts,
    ):
        for record in changed.values():
            line = record.model_dump_json(exclude_none=True).encode("utf-8") + b"\n"
            (predictions if isinstance(record, Prediction) else verdicts).write(line)
    return Store(folder)


def _against_results(material: Material, again: Any, changed: bool) -> Iterator[Hit]:
    """`results.json`. A record that reads otherwise stands twice in the journal and would be paid twice, so that
    where there are such (each refused by itself) what was spent is not compared."""
    stored = material.store.read_results()
    if stored is None:
        yield Hit("numbers", "refused", NO_RESULTS, "results.json")
        return
    for place, claimed, found in differences(stored, again, optional=NOT_CLAIMED):
        if place.partition(".")[0] not in NOT_COMPARED and not (changed and ".spent" in place):
            yield Hit(
                "numbers", "refused", OTHER_NUMBER, f"results.json: {place} is {claimed}, should be {found}"
            )


def _against_metrics(material: Material, store: Store) -> Iterator[Hit]:
    """`metrics.jsonl`, line by line, where there is one."""
    if not (material.path / "metrics.jsonl").exists():
        return
    try:
        claimed = {(one.sample_id, one.epoch): one for one in material.store.read_metrics()}
    except ValidationError:
        yield Hit("numbers", "refused", "metrics.jsonl holds a line that is no record", "metrics.jsonl")
        return
    found = {(one.sample_id, one.epoch): one for one in store.read_metrics()}
    for key in sorted({*claimed, *found}):
        pair = [_dumped(some.get(key)) for some in (claimed, found)]
        for place, before, now in differences(*pair):
            where = f"metrics.jsonl: {key[0]} (epoch {key[1]}): {place} is {before}, should be {now}"
            yield Hit("numbers", "refused", OTHER_NUMBER, where)


def _dumped(record: SampleMetrics | None) -> Any:
    return None if record is None else record.model_dump(mode="json")


def without_data(material: Material, changed: Changed) -> list[Hit]:
    """Scores of judges and panel made again from the verdicts alone; intervals and rule metrics need the data."""
    hits: list[Hit] = []
    if material.results is None:
        return [Hit("numbers", "refused", NO_RESULTS, "results.json")]
    groups = by_domain(material.refs())
    record = material.record
    with tempfile.TemporaryDirectory(prefix="awb-verify-") as folder:
        store = _replayed(material, changed, Path(folder))
        headlines: dict[str, Outcomes] = {}
        for number, judge in enumerate(material.results.judges):
            repeats = record.repeats.get(judge.judge.digest, 1)
            outcomes: dict[str, dict[str, list[list[Any]]]] = {"strict": {}, "official": {}}
            for both in both_readings(store, groups, judge.judge, record.epochs, repeats):
                for name, one in (("strict", both.strict), ("official", both.official)):
                    mine = outcomes[name].setdefault(both.ref.id, [])
                    mine += [[]] if both.repeat == 1 else []
                    mine[-1].append(one)
            for name, some in outcomes.items():
                found = reading_of_all(groups, some)
                hits += _other_numbers(f"judges[{number}].{name}", getattr(judge, name), found)
            headlines[judge.judge.digest] = outcomes[judge.judge.parse]
        if all(judge.digest in headlines for judge in record.judges):
            panel = panel_results(record, groups, headlines)
            hits += _other_numbers("panel", material.results.panel, panel)
    return hits


def _other_numbers(name: str, claimed: Record | None, found: Record | None) -> Iterator[Hit]:
    """What differs of one part of the results, but for numbers that need the data."""
    before, now = ({} if one is None else one.model_dump(mode="json") for one in (claimed, found))
    for place, was, is_now in differences(before, now, optional=NOT_CLAIMED):
        if not NEEDS_CLUSTERS.search(place):
            where = f"results.json: {name}.{place} is {was}, should be {is_now}"
            yield Hit("numbers", "refused", OTHER_NUMBER, where)


def check_entry(
    path: Path, results: Results, run: RunRecord, sha256: str | None, manifest: Manifest | None = None
) -> Iterator[Hit]:
    """A leaderboard entry against the entries that the recomputed results give; `sha256` and `manifest` are the bundle's.

    Raises DataError when it is no entry.
    """
    try:
        entry = read_entry(path)
    except DataError as problem:
        raise DataError(f"--entry {problem}") from problem
    if sha256 is not None and entry.bundle is not None and entry.bundle.sha256 != sha256:
        message = "the entry names another bundle"
        yield Hit("entry", "refused", message, f"{path.name}: {entry.bundle.sha256}, should be {sha256}")
    if entry.status == "verified":
        by = "nobody" if entry.verification is None else entry.verification.by
        yield Hit("entry", "warning", CALLED_VERIFIED, by)
    yield from _said(entry, results, manifest, path.name)
    try:
        made = measured_entries(results, run, subset=True)
    except DataError as problem:
        yield Hit("entry", "refused", "the run has no entry", str(problem))
        return
    one = next((one for one in made if one.group == entry.group), None)
    if one is None:
        message = "the entry is about other data, another protocol or another judge than the run"
        yield Hit(
            "entry", "refused", message, f"{path.name}: {entry.group.protocol}, judge {entry.group.judge}"
        )
        return
    claimed, found = (some.model_dump(mode="json", exclude={*SAID, "model"}) for some in (entry, one))
    for place, before, now in differences(claimed, found):
        yield Hit("entry", "refused", OTHER_NUMBER, f"{path.name}: {place} is {before}, should be {now}")


def _said(entry: Entry, results: Results, manifest: Manifest | None, file: str) -> Iterator[Hit]:
    """What people say of an entry, beside what the bundle says: no file shows who is right."""
    if entry.model != results.model:
        yield Hit("entry", "info", NAMED, f"{file}: {entry.model}, model string {results.model}")
    if manifest is None:
        return
    mine, theirs = (None if one is None else one.name for one in (entry.submitter, manifest.submitter))
    if mine != theirs:
        yield Hit("entry", "warning", OTHER_SUBMITTER, f"{file}: {mine}, the bundle: {theirs}")


def differences(
    claimed: Any, found: Any, where: str = "", optional: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Any, Any]]:
    """(field, claimed, found) wherever two JSON-like values are not the same number, text or list; fields that are
    `optional` may be missing in what is claimed."""
    if isinstance(claimed, dict) and isinstance(found, dict):
        for name in sorted({*claimed, *found}):
            place = f"{where}.{name}" if where else name
            if name in claimed or name not in optional:
                yield from differences(claimed.get(name), found.get(name), place, optional)
    elif isinstance(claimed, list | tuple) and isinstance(found, list | tuple) and len(claimed) == len(found):
        for number, (one, other) in enumerate(zip(claimed, found, strict=True)):
            yield from differences(one, other, f"{where}[{number}]", optional)
    elif not _equal(claimed, found):
        yield where, _told(claimed), _told(found)


def _equal(one: Any, other: Any) -> bool:
    numbers = [
        value for value in (one, other) if isinstance(value, float | int) and not isinstance(value, bool)
    ]
    if len(numbers) == 2:
        try:
            return math.isclose(numbers[0], numbers[1], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        except OverflowError:  # integers beyond the range of floats
            return bool(one == other)
    return type(one) is type(other) and bool(one == other)


def _told(value: Any) -> str:
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
