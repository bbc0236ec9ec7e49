"""A file of the official script becomes a run directory: its replies replayed, its verdicts kept.

In: a predictions.jsonl or judged.jsonl, and perhaps the data it was made with. Out: a run directory whose
predictions are the file's replies, read anew by our rules; the verdicts of a judge that the file does not
name; and `imported/`, which holds the replies by sample id, and the rows where no data was named. What the
file does not say stays unknown: model, judge, sampling, finish reasons, times, why a judging failed. Lines
that belong to no sample, and verdicts that do not fit their own line, are counted and told.
"""

from __future__ import annotations

import filecmp
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from agentworldbench.config import RunConfig
from agentworldbench.dataset import Dataset
from agentworldbench.errors import ConfigError, DataError, StoreError
from agentworldbench.integrations.official_matching import Matching, Place, match, places_of, some
from agentworldbench.integrations.official_script import ScriptRow, data_line, json_line, read_line
from agentworldbench.official import official_observation, without_marker
from agentworldbench.plan import make_plan, open_samples
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.pull import Tell, data_sha256
from agentworldbench.readings import officially_read
from agentworldbench.records import Completion, Failure, FailureKind, Sample, SampleRef, Verdict
from agentworldbench.resources import expanded
from agentworldbench.run import execute
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.judge import strict_verdict
from agentworldbench.store import Store, locked_store
from agentworldbench.task import Task, load_tasks
from agentworldbench.texts import count_text, digest, scrub, sha256_text

FOLDER: Final = "imported"
ANSWERS: Final = "answers.jsonl"
OTHER_TEXT: Final = (
    "judged another text than the official rules make of the reply; these verdicts do not count"
)
OTHER_SCORES: Final = "hold other scores than the official rules read in the judge's reply; the reply counts"
TINY: Final = 1e-9


def import_file(file: Path, tell: Tell, output: Path | None = None, data: str | None = None) -> Path:
    """Import a file of the official script and return its run directory; done again, nothing changes.

    `output` is the run directory (default: one under `runs/`, named by the file's hash); where it is the
    file's own folder, `awb` in it. `data` names the data that the file was made with; default: the rows
    in the file. `tell` takes lines about what did not fit. Raises DataError with file:line and field,
    ConfigError for a directory that holds something else.
    """
    sha256 = data_sha256(file)
    path = _run_path(file, output, digest([sha256, data]))
    tasks = load_tasks(())
    places = list(places_of(file, tasks))
    if not places:
        raise DataError(f"{file}: holds no rows")
    domains = tuple(dict.fromkeys(place.domain for place in places))
    with locked_store(path) as store:
        matching = _prepare(store, file, places, data, domains)
    for line in matching.told(file.name):
        tell(line)
    folder = path / FOLDER
    config = RunConfig(
        model=f"replay/{folder / ANSWERS}",
        data=data or str(folder),
        tasks=domains,
        output=path,
        protocol="official",
        no_judge=True,
    )
    plan = make_plan(config, tell)
    execute(plan)
    judged = [pair for pair in matching.pairs if pair[0].judged]
    if judged:
        with locked_store(path) as store:
            judge = _judge_record(file, sha256, domains)
            for line in _keep_verdicts(store, file, judge, judged, plan.samples.dataset):
                tell(line)
    return path


def _run_path(file: Path, output: Path | None, identity: str) -> Path:
    if output is None:
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", file.stem).strip("-.")[:40]
        return Path("runs") / f"official-{stem}-{identity[:8]}"
    output = expanded(output, "--output-dir")
    return output / "awb" if file.resolve().parent == output.resolve() else output


def _prepare(
    store: Store, file: Path, places: Sequence[Place], data: str | None, domains: tuple[str, ...]
) -> Matching:
    """Write `imported/`, or find it there as it must be."""
    fresh = store.path / f".{FOLDER}.new"  # the lock is held: nobody else writes here
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir()
        tasks = load_tasks(domains)
        if data is None:
            _write_rows(file, places, fresh, tasks)
        samples = open_samples(RunConfig(data=data or str(fresh), tasks=domains))
        matching = match(places, samples.dataset)
        if not matching.pairs:
            reasons = "; ".join(matching.left)
            raise DataError(f"{file}: no line belongs to a sample of --data {data}: {reasons}")
        with (fresh / ANSWERS).open("wb") as answers:
            for line, (_, ref) in zip(
                _lines(file, (place for place, _ in matching.pairs), tasks), matching.pairs, strict=True
            ):
                answer = {"sample_id": ref.id, "text": line.predicted.gen, "finish_reason": None}
                answers.write(json_line(answer))
        _settle(store, fresh, store.path / FOLDER)
    except OSError as problem:
        raise StoreError(f"{problem.filename or store.path}: {problem.strerror}") from problem
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return matching


def _write_rows(file: Path, places: Sequence[Place], folder: Path, tasks: Mapping[str, Task]) -> None:
    """The rows that the file holds, as a folder of data."""
    lacking = next((place.line for place in places if place.texts is None), None)
    if lacking is not None:
        raise DataError(
            f"{file}:{lacking}: lacks the texts of its row (prompt, …); name the data with --data"
        )
    with ExitStack() as stack:
        files = {
            domain: stack.enter_context((folder / task.data_file).open("wb"))
            for domain, task in tasks.items()
        }
        for place, raw in zip(places, _raw(file, places), strict=True):
            files[place.domain].write(data_line(raw, file, place.line))


def _raw(file: Path, places: Iterable[Place]) -> Iterator[bytes]:
    with file.open("rb") as handle:
        for place in places:
            handle.seek(place.offset)
            yield handle.read(place.length)


def _lines(file: Path, places: Iterable[Place], tasks: dict[str, Task]) -> Iterator[ScriptRow]:
    known = list(places)
    for place, raw in zip(known, _raw(file, known), strict=True):
        yield read_line(raw, file, place.line, tasks)


def _settle(store: Store, fresh: Path, folder: Path) -> None:
    """Put the new folder in its place, unless an equal one is there."""
    if folder.is_dir():
        names = sorted(path.name for path in fresh.iterdir())
        same = names == sorted(path.name for path in folder.iterdir())
        if not same or not all(filecmp.cmp(fresh / name, folder / name, shallow=False) for name in names):
            raise ConfigError(
                f"{store.path}: holds the import of another file or with other data; choose another --output-dir"
            )
    elif store.read_run() is not None:
        raise ConfigError(f"{store.path}: holds a run that was not imported; choose another --output-dir")
    else:
        fresh.rename(folder)


def _keep_verdicts(
    store: Store, file: Path, judge: JudgeRecord, pairs: Sequence[tuple[Place, SampleRef]], dataset: Dataset
) -> list[str]:
    """Store the judge and those of its verdicts that are not stored yet; tell which do not fit their line."""
    run = store.read_run()
    assert run is not None, "the replies were imported before"
    if judge.digest not in {one.digest for one in run.judges}:
        store.write_run(run.model_copy(update={"judges": (*run.judges, judge)}))
    odd: dict[str, list[int]] = defaultdict(list)
    tasks = load_tasks(())
    lines = _lines(file, (place for place, _ in pairs), tasks)
    for line, (_, ref) in zip(lines, pairs, strict=True):
        task = tasks[ref.domain]
        verdict = _verdict(line, dataset.load(ref), task, judge.digest)
        if verdict is None:
            continue
        if verdict.key not in store.verdicts:
            store.verdicts.append(verdict)
        for reason in _misfits(line, verdict, task):
            odd[reason].append(line.line)
    store.forget_results()
    return [
        f"{file.name}: {count_text(len(some_lines), 'line')} {why} (line {some(some_lines)})"
        for why, some_lines in odd.items()
    ]


def _verdict(line: ScriptRow, sample: Sample, task: Task, judge: str) -> Verdict | None:
    """What a judged line says, or None where no reply was there to be judged."""
    judged = line.judged
    assert judged is not None, "asked for judged lines only"
    reply = judged.judge_raw_output
    if judged.failed and reply is None and not line.predicted.gen:
        return None
    observation = _judged_text(line, task) or ""
    known = {
        "sample_id": sample.id,
        "row_hash": sample.ref.row_hash,
        "judge": judge,
        "observation_sha256": sha256_text(observation),
    }
    if reply is not None:
        read = strict_verdict(Completion(text=reply), sample, observation, task)
        if isinstance(read, Failure):
            return Verdict(**known, reply=reply, failure=read)
        notes = () if read.found == "tag" else (f"verdict found by: {read.found}",)
        texts = {"strengths": read.strengths, "weaknesses": read.weaknesses}
        return Verdict(**known, reply=reply, scores=read.scores, notes=notes, **texts)
    if judged.failed:
        told = f" ({judged.error_message})" if judged.error_message else ""
        return Verdict(**known, failure=_unknown(f"the file says that judging failed, not why{told}"))
    texts = {"strengths": judged.strengths, "weaknesses": judged.weaknesses}
    valid = all(1 <= score <= 5 for score in judged.scores.values())
    failure = None if valid else _unknown("scores without the judge's reply, and not five of 1 to 5")
    return Verdict(**known, scores=judged.scores, failure=failure, **texts)


def _unknown(message: str) -> Failure:
    return Failure(kind=FailureKind.UNKNOWN, message=scrub(message))


def _judged_text(line: ScriptRow, task: Task) -> str | None:
    """What the judge was shown: as the line says, else what the official rules make of the reply."""
    assert line.judged is not None
    if line.judged.extracted_output is None:
        return _official_text(line, task)
    return without_marker(line.judged.extracted_output, task.markers.observation)


def _official_text(line: ScriptRow, task: Task) -> str | None:
    return official_observation(line.predicted.gen, None, task.prediction_tag, task.markers.observation)


def _misfits(line: ScriptRow, verdict: Verdict, task: Task) -> Iterator[str]:
    judged = line.judged
    assert judged is not None
    if _judged_text(line, task) != _official_text(line, task):
        yield OTHER_TEXT
    read = officially_read(verdict)
    if read is None or not read.success:
        fits = bool(judged.failed)
    else:
        total = read.total if judged.total_score is None else judged.total_score
        same = all(read.scores[name] == score for name, score in judged.scores.items())
        fits = not judged.failed and same and abs(total - read.total) < TINY
    if not fits:
        yield OTHER_SCORES


def _judge_record(file: Path, sha256: str, domains: Sequence[str]) -> JudgeRecord:
    """All that the file tells of its judge: nothing but its verdicts."""
    return JudgeRecord(
        digest=digest({"official script": sha256})[:16],
        model=f"unknown ({file.name})",
        identity={"backend": "official script", "name": sha256},
        protocol="official",
        protocol_version=PROTOCOLS["official"].version,
        sampling={},
        schema_sha256=None,
        prompts={},
        system_prompts=dict.fromkeys(domains),
        parse="official",
        attempts=None,
        min_output=None,
        max_context=None,
    )
