"""What lies in a folder of runs, one line a run: for looking, so a damaged directory is named and never fatal.

In: a folder (or one run directory). Out: a `RunLine` for each directory with a `run.json`. Numbers are
those of `results.json`; where a run is still at work, or was stopped, its journals are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agentworldbench.errors import AwbError, ConfigError
from agentworldbench.prices import dollars
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import Record
from agentworldbench.render.table import DASH, Table, percent, points
from agentworldbench.run import Run, load_run
from agentworldbench.run_record import judge_names
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.results import JudgeResults
from agentworldbench.store import open_store
from agentworldbench.texts import time_text


class JudgeLine(Record):
    """One judge of a run: its coverage of the selection, and its headline (0-100), None while there is none."""

    judge: str
    protocol: str
    coverage: float | None = None
    score: float | None = None


class RunLine(Record):
    """One run directory. `done` of `selected` samples (in each epoch) have a record; `predicted` of them an answer.

    `rule_score` is the overall macro, 0-100; `cost_usd` None means unknown; `worked_on` is UTC.
    `problem` says why a directory could not be read; nothing else is known of it then.
    """

    schema_version: Literal[1] = 1
    path: str
    problem: str | None = None
    model: str | None = None
    data: str | None = None
    protocol: str | None = None
    shard: str | None = None
    judges: tuple[JudgeLine, ...] = ()
    selected: int = 0
    done: int = 0
    predicted: int = 0
    complete: bool = False
    rule_score: float | None = None
    cost_usd: float | None = None
    created_at: str | None = None
    worked_on: str | None = None


def list_runs(folder: Path) -> list[RunLine]:
    """The runs in a folder, the one worked on last at the end. Raises ConfigError where there is no folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; give the one that holds run directories")
    return in_order(run_line(path) for path in run_paths(folder))


def in_order(lines: Iterable[RunLine]) -> list[RunLine]:
    """The run worked on last at the end."""
    return sorted(lines, key=lambda line: (line.worked_on or "", line.path))


def run_paths(folder: Path) -> Iterator[Path]:
    """The run directories in a folder, itself among them. Raises ConfigError where it cannot be read.

    A run that a link in the folder leads to stands once, under the name that it has there itself; what lies outside of
    the folder is none of its runs (`links_out`).
    """
    root = folder.resolve()
    found = [folder] if _has_run(folder) else []
    for path in _folders(folder):
        real = path.resolve() if path.is_symlink() else root / path.name
        if real.is_relative_to(root):
            found.append(folder / real.relative_to(root))
    yield from dict.fromkeys(found)


def links_out(folder: Path) -> Iterator[Path]:
    """The links in a folder that lead to runs outside of it."""
    root = folder.resolve()
    for path in _folders(folder):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            yield path


def _folders(folder: Path) -> list[Path]:
    """What in a folder is, or leads to, a run directory."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and _has_run(path))
    except OSError as problem:
        raise ConfigError(f"{folder}: cannot be read ({problem.strerror})") from problem


def _has_run(path: Path) -> bool:
    try:
        return (path / "run.json").exists()
    except OSError:
        return False


def run_line(path: Path) -> RunLine:
    """What is known of one run directory."""
    try:
        return _read(path)
    except (AwbError, OSError, ValidationError, ValueError) as problem:
        text = str(problem).removeprefix(f"{path}/").split("\n")[0]
        return RunLine(path=str(path), problem=text)


def _read(path: Path) -> RunLine:
    run = load_run(path)
    record, results = run.record, run.results
    names = judge_names(record.judges)
    line = RunLine(
        path=str(path),
        model=str(record.predict.model.get("model")),
        data=record.predict.data.name,
        protocol=record.protocol,
        shard=record.selection.shard,
        judges=tuple(JudgeLine(judge=names[one.digest], protocol=one.protocol) for one in record.judges),
        selected=sum(record.selection.samples.values()) * record.epochs,
        created_at=record.created_at,
        worked_on=_worked_on(run),
    )
    if results is None:
        return line.model_copy(update=_counted(path))
    counts = results.predictions
    missing = sum(some.get("not_run", 0) for some in counts.failures.values())
    score = results.rules.macro.get(RULE_SCORE)
    value = None if score is None else score.floor if results.policy == "floor" else score.exclude
    return line.model_copy(
        update={
            "judges": tuple(_judge(results.judge_names[one.judge.digest], one) for one in results.judges),
            "done": sum(counts.samples.values()) - missing,
            "predicted": sum(counts.predicted.values()),
            "complete": results.complete,
            "rule_score": None if value is None else 100 * value,
            "cost_usd": _sum([counts.spent.cost_usd, *(one.spent.cost_usd for one in results.judges)]),
        }
    )


def _judge(name: str, one: JudgeResults) -> JudgeLine:
    floor = PROTOCOLS[one.judge.protocol].policy == "floor"
    macro = one.macro_floor if floor else one.macro_exclude
    return JudgeLine(
        judge=name, protocol=one.judge.protocol, coverage=one.micro.coverage, score=macro["total"]
    )


def _counted(path: Path) -> dict[str, object]:
    """What the journals of a run without results say."""
    store = open_store(path)
    done = predicted = 0
    for prediction in store.predictions:
        done += 1
        predicted += prediction.failure is None
    costs = [one.cost_usd for one in store.predictions.every_line()]
    costs += [one.cost_usd for one in store.verdicts.every_line()]
    return {"done": done, "predicted": predicted, "cost_usd": _sum(costs)}


def _sum(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else fsum(cost for cost in known if cost is not None)


def _worked_on(run: Run) -> str:
    """The last session's beginning, or what was written since: a journal, or results."""
    moments = [run.record.created_at, *(session.started_at for session in run.record.sessions)]
    if run.results is not None:
        moments.append(run.results.made_at)
    else:
        for name in ("predictions.jsonl", "verdicts.jsonl"):
            file = run.path / name
            if file.exists():
                written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
                moments.append(time_text(written))
    return max(moments)


_NUMBERS = ("Done", "Coverage", "Judge score", "Rule score", "USD")
_COLUMNS = (
    "Run", "Model", "Data", "Protocol", "Done", "Judges", "Coverage", "Judge score", "Rule score", "USD", "Last worked on",
)  # fmt: skip


def runs_table(lines: Sequence[RunLine], folder: Path, out: Iterable[Path] = ()) -> Table:
    """A row a run that could be read, in the order given; the others are named below, and links `out` of the folder."""
    damaged = [f"{line.path}: {line.problem}" for line in lines if line.problem is not None]
    notes = (
        "Done: samples with a record, of those selected. Coverage: of each judge, or else of the predictions. Scores "
        "0-100, as each protocol is headed; scores of unlike data, judges or protocols do not compare.",
        *(f"Cannot be read: {text}" for text in damaged),
        *(f"Not followed, because it leads out of the folder: {link}; name it to see it." for link in out),
    )
    rows = tuple(_row(line, folder) for line in lines if line.problem is None)
    left = tuple(name for name in _COLUMNS if name not in _NUMBERS)
    return Table(f"Runs in {folder}", _COLUMNS, rows, left, notes=notes, fold=("Run", "Model", "Judges"),
                 together=(("Judges", "Coverage", "Judge score"),))  # fmt: skip


def _row(line: RunLine, folder: Path) -> tuple[str, ...]:
    predicted = line.predicted / line.selected if line.selected else None
    part = f" (shard {line.shard})" if line.shard else ""
    path = Path(line.path)
    inside = path != folder and path.is_relative_to(folder)
    return (
        (str(path.relative_to(folder)) if inside else path.name) + part,
        line.model or DASH,
        line.data or DASH,
        line.protocol or DASH,
        f"{line.done}/{line.selected}",
        ", ".join(one.judge for one in line.judges) or DASH,
        ", ".join(percent(one.coverage) for one in line.judges) or percent(predicted),
        ", ".join(points(one.score) for one in line.judges) or DASH,
        points(line.rule_score),
        DASH if line.cost_usd is None else dollars(line.cost_usd),
        (line.worked_on or DASH)[:16].replace("T", " "),
    )
