"""Several run directories made one: the shards of a run, or runs that may stand for one.

In: run directories with equal `predict` sections, and where to put the whole. Out: a run directory with
the records of all of them, as if one run had asked for everything: its results are those of that run.
Merging again changes nothing, in whatever order the runs are named, and an output that exists is one more
of the runs, so that nothing it holds is lost.

Where runs have different records of one key, one counts: a good one before a failure, then the one that
was begun earlier; of verdicts, those on the prediction that counts come first. The others stay in the
journal before it, because they were paid for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.journal import is_unfinished
from agentworldbench.outcome import Scoring, make_results, try_own
from agentworldbench.panels import check_panel
from agentworldbench.plan import SELECTION_FIELDS, Samples, open_samples
from agentworldbench.readings import officially_read
from agentworldbench.records import Prediction, SampleRef, Verdict
from agentworldbench.resume import differences, grown
from agentworldbench.run_record import JudgeRecord, PanelRule, RunRecord, SelectionRecord, Session
from agentworldbench.selection import select, united_shards
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, locked_store, open_store
from agentworldbench.texts import sha256_text

R = TypeVar("R", Prediction, Verdict)
Rank = tuple[tuple[Any, ...], tuple[str | None, ...]]
"""How a record ranks, and the hashes of what judges see of it."""


@dataclass(frozen=True)
class Place:
    """Where a record stands, how it ranks among others of its key (the least counts), and its hash."""

    path: Path
    offset: int
    length: int
    rank: tuple[Any, ...]
    sha256: bytes
    shown: tuple[str | None, ...] = ()


@dataclass
class Counts:
    """Of one journal: records that count, keys of which runs have different records, lines kept beside."""

    records: int = 0
    duplicates: int = 0
    beside: int = 0


@dataclass(frozen=True)
class Merged:
    """A merged run: its directory, the runs it was made of, what was counted, its results."""

    path: Path
    runs: tuple[Path, ...]
    predictions: Counts
    verdicts: Counts
    results: Results


@dataclass
class _Gathered:
    """Places of one journal over all runs: by key those that counted in their run, and every other line."""

    counting: dict[Hashable, dict[bytes, Place]] = field(default_factory=dict)
    lines: dict[bytes, Place] = field(default_factory=dict)

    def winners(self) -> dict[Hashable, Place]:
        """The record of each key that counts."""
        return {key: min(some.values(), key=lambda one: one.rank) for key, some in self.counting.items()}


def merge_runs(
    runs: Sequence[Path], output: Path, data: str | None = None, *, allow_code: bool = False
) -> Merged:
    """Merge `runs` into `output`; `data` says where the data are now, when they have moved. `allow_code` lets
    metrics run that stand beside task files.

    Raises ConfigError, with the fields named, for runs that are not parts of one; DataError when the data
    are not those of the runs; StoreError when a directory cannot be read or written.
    """
    sources = list({path.resolve(): path for path in runs}.values())
    kept = output.resolve() not in {path.resolve() for path in sources} and (output / "run.json").is_file()
    stores = [open_store(path) for path in (*sources, *([output] if kept else ()))]
    named = {store.path: _record(store) for store in stores}
    _check_alike(named)
    # So that it does not matter in which order they are named.
    records = dict(sorted(named.items(), key=_age))
    whole = _one_run(records).model_copy(update={"sessions": _sessions(records, output if kept else None)})
    if whole.judges:
        check_panel(whole.panel, whole.judges)
    samples, selection = _union(list(records.values()), data)
    try_own(samples, allow_code)
    whole = whole.model_copy(update={"selection": selection})
    judges = {judge.digest: judge for judge in whole.judges}
    with locked_store(output) as store:  # from here on nobody adds a record to what is replaced
        predictions = _gather(stores, "predictions.jsonl", Prediction, _rank_prediction)
        shown = {key: place.shown for key, place in predictions.winners().items()}
        verdicts = _gather(stores, "verdicts.jsonl", Verdict, lambda one: _rank_verdict(one, judges, shown))
        store.forget_results()
        store.write_run(whole)
        counted = _write(store, "predictions.jsonl", predictions), _write(store, "verdicts.jsonl", verdicts)
        results = make_results(Store(output), whole, samples, Scoring(allow_code))
    return Merged(output, tuple(sources), *counted, results)


def _age(found: tuple[Path, RunRecord]) -> tuple[str, str]:
    return found[1].created_at, found[1].model_dump_json()


def _record(store: Store) -> RunRecord:
    run = store.read_run()
    assert run is not None, "open_store asks for it"
    return run


# --- what the runs are ---------------------------------------------------------------------------


def _check_alike(records: Mapping[Path, RunRecord]) -> None:
    """Raise ConfigError, with the fields named, for a run that was not made as the first one."""
    (first, run), *others = records.items()
    for path, other in others:
        found = differences(run.predict, other.predict)
        if found:
            raise ConfigError(
                f"{path}: not made as {first}: {'; '.join(found[:6])}; only runs with equal settings of their "
                "predictions can be merged"
            )


def _one_run(records: Mapping[Path, RunRecord]) -> RunRecord:
    """The record of all runs together, without selection and sessions. Raises ConfigError for unlike judges."""
    runs = list(records.values())
    first = runs[0]
    return RunRecord(
        created_at=first.created_at,
        protocol=first.protocol,
        predict=reduce(grown, (run.predict for run in runs)),
        selection=first.selection,
        judges=tuple(_judges(records)),
        sessions=(),
        epochs=max(run.epochs for run in runs),
        repeats={
            digest: max(run.repeats.get(digest, 1) for run in runs)
            for digest in dict.fromkeys(digest for run in runs for digest in run.repeats)
        },
        panel=_panel(records),
    )


def _panel(records: Mapping[Path, RunRecord]) -> PanelRule | None:
    """The panel of all runs that have one. Raises ConfigError where they have unlike ones."""
    having = [(path, run.panel) for path, run in records.items() if run.panel]
    for path, panel in having:
        if panel != having[0][1]:
            raise ConfigError(
                f"{path}: has another panel of judges than {having[0][0]}; `awb score RUN --panel … --min-judges …` "
                "gives both the same one, --panel none none"
            )
    return having[0][1] if having else None


def _judges(records: Mapping[Path, RunRecord]) -> list[JudgeRecord]:
    """The judges of all runs; a judge's system prompts must agree where both runs have them."""
    judges: dict[str, JudgeRecord] = {}
    for path, run in records.items():
        for judge in run.judges:
            before = judges.setdefault(judge.digest, judge)
            prompts, now = before.system_prompts, judge.system_prompts
            unlike = sorted(
                domain for domain in prompts.keys() & now.keys() if prompts[domain] != now[domain]
            )
            if unlike:
                raise ConfigError(
                    f"{path}: judge {judge.model} was given another system prompt there: "
                    f"{', '.join(f'judges.system_prompts.{domain}' for domain in unlike)}; judge one of the runs again"
                )
            judges[judge.digest] = before.model_copy(update={"system_prompts": prompts | now})
    return list(judges.values())


def _sessions(records: Mapping[Path, RunRecord], earlier: Path | None) -> tuple[Session, ...]:
    """All sessions in order of time. Those of an `earlier` merge that a run still has stand there as they are
    now; equal ones of several runs count once."""
    kept = {
        session.model_dump_json(): session
        for path, run in records.items()
        if path != earlier
        for session in run.sessions
    }
    known = {_without_facts(session) for session in kept.values()}
    before = records[earlier].sessions if earlier else ()
    kept |= {one.model_dump_json(): one for one in before if _without_facts(one) not in known}
    return tuple(kept[text] for text in sorted(kept, key=lambda text: (kept[text].started_at, text)))


def _without_facts(session: Session) -> str:
    """What is known of a session from its beginning: facts are learned until its end."""
    return session.model_dump_json(exclude={"model_facts", "judge_facts"})


# --- which samples -------------------------------------------------------------------------------


def _union(runs: Sequence[RunRecord], data: str | None) -> tuple[Samples, SelectionRecord]:
    """The samples of all runs, and a selection that selects just these."""
    words = [run.selection.tasks for run in runs]
    tasks = () if () in words else tuple(dict.fromkeys(word for some in words for word in some))
    everything = open_samples(RunConfig(data=data or runs[0].selection.data, tasks=tasks))
    wanted: dict[str, SampleRef] = {}
    for run in runs:
        _check_data(run, everything)
        wanted |= {ref.id: ref for ref in _chosen(run.selection, everything.refs)}
    refs = tuple(ref for ref in everything.refs if ref.id in wanted)
    counts = dict.fromkeys(everything.tasks, 0)
    for ref in refs:
        counts[ref.domain] += 1
    common = {"tasks": tasks, "samples": counts, "data": runs[0].selection.data}
    for fields in _candidates([run.selection for run in runs]):
        selection = SelectionRecord(**fields | common)
        if [ref.id for ref in _chosen(selection, everything.refs)] == [ref.id for ref in refs]:
            break
    else:
        nothing = dict.fromkeys(SELECTION_FIELDS)
        ids = {"sample_id": tuple(ref.id for ref in refs), "seed": runs[0].selection.seed}
        selection = SelectionRecord(**nothing | common | ids)
    return Samples(everything.source, everything.dataset, refs), selection


def _candidates(selections: Sequence[SelectionRecord]) -> Iterator[dict[str, Any]]:
    """Selection fields that may select what all runs hold: the parts put together, then the largest of them."""
    fields = [{name: getattr(one, name) for name in SELECTION_FIELDS} for one in selections]
    without = [some | {"shard": None} for some in fields]
    if all(some == without[0] for some in without):
        yield without[0] | {"shard": united_shards([one.shard for one in selections])}
    yield from fields


def _chosen(selection: SelectionRecord, refs: Sequence[SampleRef]) -> list[SampleRef]:
    config = RunConfig.model_validate({name: getattr(selection, name) for name in SELECTION_FIELDS})
    return [ref for ref in select(refs, config) if selection.samples.get(ref.domain)]


def _check_data(run: RunRecord, samples: Samples) -> None:
    for domain, count in run.selection.samples.items():
        file = samples.dataset.files.get(domain)
        if count and (file is None or file.sha256 != run.predict.data.files.get(domain)):
            raise DataError(
                f"{run.selection.data}: the data of domain '{domain}' is not the one these runs were made with"
            )


# --- which records -------------------------------------------------------------------------------


def _gather(stores: Iterable[Store], name: str, record: type[R], rank: Callable[[R], Rank]) -> _Gathered:
    """Places of all records; texts are read one at a time and forgotten."""
    found = _Gathered()
    for store in stores:
        last: dict[Hashable, Place] = {}
        path = store.path / name
        for offset, body in _lines(path):
            try:
                one = record.model_validate_json(body)
            except ValidationError:
                continue  # the store has told of it
            ranked: Rank = rank(one)
            sha256 = hashlib.sha256(body).digest()
            order = (*ranked[0], one.started_at or "", sha256)
            place = Place(path, offset, len(body), order, sha256, ranked[1])
            found.lines.setdefault(sha256, place)
            if not is_unfinished(one):
                last[one.key] = place
        for key, place in last.items():
            found.counting.setdefault(key, {}).setdefault(place.sha256, place)
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(offset, line without its end) of every line of a journal."""
    offset = 0
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                yield offset, line.rstrip(b"\n")
                offset += len(line)


def _rank_prediction(one: Prediction) -> Rank:
    observation = None if one.observation is None else sha256_text(one.observation)
    failed = one.failure is not None
    return (failed, failed and one.official_sha256 is None), (observation, one.official_sha256)


def _rank_verdict(
    one: Verdict, judges: Mapping[str, JudgeRecord], shown: Mapping[Hashable, tuple[str | None, ...]]
) -> Rank:
    judge = judges.get(one.judge)
    official = judge is not None and judge.parse == "official"
    strict_sha256, official_sha256 = shown.get((one.sample_id, one.epoch), (None, None))
    prompt = judge.system_prompts.get(one.sample_id.partition("/")[0]) if judge else None
    about = one.observation_sha256 == (official_sha256 if official else strict_sha256)
    failed = one.failure is not None
    if official:
        read = officially_read(one)
        failed = read is None or not read.success
    return (not (about and one.system_sha256 == prompt), failed), ()


def _write(store: Store, name: str, gathered: _Gathered) -> Counts:
    """Replace a journal: what was superseded first, then what counts, each in order of time."""
    winners = gathered.winners().values()
    counting = {place.sha256 for place in winners}
    beside = [place for sha256, place in gathered.lines.items() if sha256 not in counting]
    in_order = [*sorted(beside, key=_when), *sorted(winners, key=_when)]
    if in_order or (store.path / name).exists():
        store.replace_journal(name, _bodies(in_order))
    duplicates = sum(len(some) > 1 for some in gathered.counting.values())
    return Counts(len(counting), duplicates, len(beside))


def _when(place: Place) -> tuple[Any, ...]:
    return place.rank[-2:]


def _bodies(places: Iterable[Place]) -> Iterator[bytes]:
    for place in places:
        with place.path.open("rb") as file:
            file.seek(place.offset)
            yield file.read(place.length) + b"\n"
