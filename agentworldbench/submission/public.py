"""From a run directory to the folder that may be public: the same run, in one order, without what is private.

In: a complete run and its data. Out: a folder with the files of a bundle but its manifest, which is itself a run
directory. Journals are sorted, so that neither the order in which answers came nor a merge changes a byte; records of
samples or judges that the run is not about are left out. Results are computed from what is public and must be those
that the run has. Nothing is read from the clock, and of the machine nothing but the run and the data.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.journal import is_unfinished
from agentworldbench.outcome import Scoring, make_results
from agentworldbench.plan import Samples
from agentworldbench.prompts import reference_observation
from agentworldbench.records import Prediction, Verdict
from agentworldbench.render.conflicts import CANARY
from agentworldbench.run import Run
from agentworldbench.run_record import RunRecord, check_times
from agentworldbench.stats.results import Results
from agentworldbench.store import Store
from agentworldbench.submission.manifest import REFERENCES, Options, created
from agentworldbench.submission.redact import IDENTIFYING, Redactor
from agentworldbench.texts import count_text

TEXTS: Final = frozenset({"observation", "text", "reasoning", "reply", "strengths", "weaknesses", "refusal"})
"""Fields of records that hold what a model or judge wrote: published as they are, or not at all."""
ROUNDING: Final = 1e-9


def publish(run: Run, samples: Samples, folder: Path, options: Options, scoring: Scoring) -> Redactor:
    """Write the public files of `run` into the empty directory `folder`; returns what has redacted them.

    Raises DataError for a run that is not whole, ConfigError where its results are not those of its records.
    """
    stored = _whole(run)
    redactor = Redactor(run.record)
    public = redactor.run(run.record)
    store = Store(folder)
    store.write_run(public)
    ids = {ref.id for ref in samples.refs}
    source = Store(run.path)
    judges = {judge.digest for judge in run.record.judges}
    for journal in (source.predictions, source.verdicts):
        lines = _public_lines(journal.path, _places(journal, ids, judges), options, redactor)
        if journal is source.predictions or judges:
            store.replace_journal(journal.path.name, lines)
    store.write_json("environment.json", environment_of(public))
    if options.references:
        store.replace_journal(REFERENCES, _references(samples))
    store.replace_journal("NOTICE", [_notice(samples, options).encode("utf-8")])
    redactions = redactor.counts.copy()
    made = make_results(Store(folder), public, samples, scoring)
    before, now = (redactor.value(one.model_dump(mode="json"), IDENTIFYING) for one in (stored, made))
    redactor.counts = redactions  # those in the files, not those of the comparison
    _check_same(run.path, before, now)
    # Results can be made again at any time, and are the same: the bundle's are dated by its last session.
    dates = {"made_at": created(public), "made_by": stored.made_by}
    store.write_json("results.json", _as_stored(made.model_dump(mode="json"), before) | dates)
    return redactor


def _whole(run: Run) -> Results:
    """The results of a run that can be submitted. Raises DataError with the reason where it cannot."""
    if run.results is None:
        raise DataError(f"{run.path}: no results.json there; `awb score {run.path}` makes it")
    check_times(run.path, run.record)
    if not run.results.complete:
        raise DataError(
            f"{run.path}: not complete{_missing(run.results)}; the command that made the run goes on with it"
        )
    if run.record.selection.shard:
        raise DataError(
            f"{run.path}: a part of a run (shard {run.record.selection.shard}); put the parts together with "
            "`awb runs merge`"
        )
    if notices := Store(run.path).notices():
        raise DataError(f"{notices[0]}; a bundle holds every record, so this run cannot be one")
    return run.results


def _missing(results: Results) -> str:
    unasked = sum(counts.get("not_run", 0) for counts in results.predictions.failures.values())
    if unasked:
        return f" ({count_text(unasked, 'prediction has', 'predictions have')} not been asked for)"
    pending = {
        judge.judge.model: sum(sum(counts["pending"].values()) for counts in judge.failures.values())
        for judge in results.judges
    }
    return "".join(
        f" ({count_text(count, 'verdict')} of {judge} missing)" for judge, count in pending.items() if count
    )


Place = tuple[int, int]


def _places(journal: Any, ids: set[str], judges: set[str]) -> list[Place]:
    """Where the records stand that the run is about: by key, of one key those before that do not count."""
    found: list[tuple[Any, ...]] = []
    kind = Prediction if journal.path.name.startswith("predictions") else Verdict
    offset = 0
    if not journal.path.exists():
        return []
    with journal.path.open("rb") as file:
        for line in file:
            body = line.rstrip(b"\n")
            with suppress(
                ValidationError
            ):  # blank, or torn at the end of the file; others were refused before
                record = kind.model_validate_json(body)
                judge = getattr(record, "judge", None)
                if record.sample_id in ids and (judge is None or judge in judges):
                    counts = not is_unfinished(record) and journal.place(record.key) == (offset, len(body))
                    begun = record.started_at or ""
                    found.append(
                        (record.key, counts, begun, hashlib.sha256(body).digest(), offset, len(body))
                    )
            offset += len(line)
    return [entry[-2:] for entry in sorted(found)]


def _public_lines(
    path: Path, places: Iterable[Place], options: Options, redactor: Redactor
) -> Iterator[bytes]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for offset, length in places:
            file.seek(offset)
            fields: dict[str, Any] = json.loads(file.read(length))
            if not options.reasoning:
                fields.pop("reasoning", None)
            public = redactor.value(fields, TEXTS | IDENTIFYING)
            yield json.dumps(public, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def _references(samples: Samples) -> Iterator[bytes]:
    for ref in sorted(samples.refs, key=lambda ref: ref.id):
        observation = reference_observation(samples.dataset.load(ref), samples.tasks[ref.domain])
        fields = {
            "schema_version": 1,
            "sample_id": ref.id,
            "row_hash": ref.row_hash,
            "observation": observation,
        }
        yield json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def environment_of(run: RunRecord) -> dict[str, Any]:
    """With what each session worked: harness, packages, what served the models."""
    sessions = []
    for session in run.sessions:
        facts = {"model": session.model_facts, **session.judge_facts}
        served = {
            name: {"engine": one.engine, "engine_version": one.engine_version, "revision": one.revision}
            for name, one in facts.items()
            if one is not None
        }
        sessions.append(
            {
                "started_at": session.started_at,
                "harness": session.harness,
                "git_commit": session.git_commit,
                "git_dirty": session.git_dirty,
                "packages": session.packages,
                "served_by": served,
            }
        )
    return {"schema_version": 1, "sessions": sessions}


def _notice(samples: Samples, options: Options) -> str:
    data = samples.source.repository or samples.source.name
    lines = [
        f"Predictions and verdicts of one evaluation on the data set {data}, written by awb submit.",
        "",
        "Texts of the data set belong to its authors and are under its licence; predictions and verdicts may repeat parts",
        "of them. They were written by models, are wrong on purpose as often as not, and are data: nothing in them is an",
        "instruction or a fact.",
        "",
        f"{REFERENCES} holds the reference observations."
        if options.references
        else "The reference observations were left out.",
        "",
        "This folder holds benchmark data. Keep it out of training sets and search indexes:",
        CANARY,
    ]
    folders = {file.path.parent / "NOTICE" for file in samples.dataset.files.values()}
    for path in sorted(path for path in folders if options.references and path.is_file()):
        lines += ["", "The data set's own notice:", "", path.read_text(encoding="utf-8").rstrip()]
    return "\n".join(lines) + "\n"


def _check_same(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a run whose results are not what its records give. Raises ConfigError with the fields that differ."""
    for field in ("data", "tasks"):  # where they lay, which is redacted in one of the two
        before["selection"][field] = now["selection"][field]
    differing = list(_differences("", *({**one, "made_at": "", "made_by": ""} for one in (before, now))))
    if differing:
        more = "" if len(differing) <= 3 else f" and {len(differing) - 3} more"
        raise ConfigError(
            f"{path}: results.json is not what the stored replies give ({'; '.join(differing[:3])}{more}); `awb score {path}` "
            "makes it again"
        )


def _differences(where: str, before: Any, now: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from _differences(f"{where}.{name}" if where else name, before.get(name), now.get(name))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(f"{where}[{number}]", old, new)
    elif before != now and not _is_rounding(before, now):
        yield f"{where}: {before!r:.40} there, {now!r:.40} computed"


def _is_rounding(before: Any, now: Any) -> bool:
    """Another processor may round the last digit of an interval otherwise."""
    return (
        isinstance(before, float) and isinstance(now, float) and math.isclose(before, now, abs_tol=ROUNDING)
    )


def _as_stored(now: Any, before: Any) -> Any:
    """`now` with the numbers as they were stored, so that a bundle's bytes do not depend on the processor."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {name: _as_stored(one, before.get(name)) for name, one in now.items()}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_as_stored(new, old) for new, old in zip(now, before, strict=True)]
    return before if _is_rounding(before, now) else now
