"""The two files of the official script as records: `predictions.jsonl` and `judged.jsonl`.

In: a file. Out: what it is (`stored_run`), and its lines as `ScriptRow`s. The script's `infer` writes each
row of the data with the reply under `gen`; its `judge` adds scores and the judge's reply to the same lines
(github.com/QwenLM/Qwen-AgentWorld at cd0aa83). Neither says which model answered, how or when. Our own
journals have the same names; their records carry `schema_version`, and by that they are told apart. What is
malformed is a DataError with file:line and field. `official_import.py` and `official_export.py` lead from
these files to runs and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, StrictStr, ValidationError

from agentworldbench.dataset import Row, check_row, lines_of, parse_row, row_id, sample_id
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.records import DIMENSIONS, RowId
from agentworldbench.render.table import Table, points
from agentworldbench.stats.official import COLUMNS, TOTAL, OfficialResults, judged_row, official_results
from agentworldbench.task import Task
from agentworldbench.texts import scrub
from agentworldbench.yamlfile import did_you_mean

PREDICTIONS: Final = "predictions.jsonl"
JUDGED: Final = "judged.jsonl"
TEXTS: Final = ("prompt", "response", "current_prompt", "system_str", "total_turns")
"""Fields of a data row that a shortened file may lack."""


def _number(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError("expected a number")
    return value


def _text(value: Any) -> Any:
    return "" if value is None else value


Whole = Annotated[int, BeforeValidator(_number)]
Value = Annotated[float, BeforeValidator(_number)]
Texts = Annotated[tuple[StrictStr, ...], BeforeValidator(lambda value: value or ())]


class _Form(BaseModel):
    """Frozen; further fields are allowed and ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Predicted(_Form):
    """What `infer` adds to a row, with what names the row. An empty `gen` means that no reply came."""

    task: StrictStr
    id: Annotated[RowId, PlainValidator(row_id)]
    turn_idx: Whole
    gen: Annotated[StrictStr, BeforeValidator(_text)]


class Judged(_Form):
    """What `judge` adds. Scores are 0 where the script read none; a line that does not say counts as failed."""

    failed: Value = 1.0
    total_score: Value | None = None
    format: Whole | None = None
    factuality: Whole | None = None
    consistency: Whole | None = None
    realism: Whole | None = None
    quality: Whole | None = None
    strengths: Texts = ()
    weaknesses: Texts = ()
    extracted_output: StrictStr | None = None
    judge_raw_output: StrictStr | None = None
    error_message: StrictStr | None = None

    @property
    def scores(self) -> dict[str, int]:
        """The five scores, 0 for none."""
        return {name: getattr(self, name) or 0 for name in DIMENSIONS}


ADDED: Final = ("gen", *Judged.model_fields)
"""Fields that the script adds to a row of the data."""


@dataclass(frozen=True)
class ScriptRow:
    """One line. `name` is the sample id without ordinal; `row` is None where the texts were left out."""

    line: int
    domain: str
    name: str
    predicted: Predicted
    judged: Judged | None
    row: Row | None


F = TypeVar("F", bound=_Form)


def read_line(raw: bytes, path: Path, line: int, tasks: dict[str, Task]) -> ScriptRow:
    """One line of either file. Raises DataError with file:line and field."""
    value = _object(raw, path, line)
    predicted = _checked(Predicted, value, path, line)
    domain = predicted.task.rpartition("/")[2]
    if domain not in tasks:
        raise DataError(
            f"{path}:{line}: field 'task': unknown domain '{domain}'{did_you_mean(domain, tasks)} "
            f"(known: {', '.join(tasks)})"
        )
    row = None
    if any(name in value for name in TEXTS):
        row, _ = parse_row(raw, path, line)
        check_row(row, tasks[domain], path, line)
    judged = _checked(Judged, value, path, line) if {"failed", TOTAL} & value.keys() else None
    name = sample_id(domain, predicted.id, predicted.turn_idx)
    return ScriptRow(line, domain, name, predicted, judged, row)


def data_line(raw: bytes, path: Path, line: int) -> bytes:
    """The row of the data that a line holds: without the fields that the script adds."""
    value = _object(raw, path, line)
    return json_line({name: value[name] for name in value if name not in ADDED})


def json_line(value: dict[str, Any]) -> bytes:
    """An object as the script writes it, with the line's end."""
    return scrub(json.dumps(value, ensure_ascii=False)).encode() + b"\n"


def stored_run(path: Path) -> Path | None:
    """The run directory that a path stands for, or None for a file of the official script.

    That is whatever is no file, the directory of a journal of ours (`schema_version`), or the one that a
    `judged.jsonl` was written into. Raises DataError for a file that is neither, ConfigError for a journal
    without its run.
    """
    if not path.is_file():
        return path
    number, raw = next(((number, raw) for number, _, raw in lines_of(path)), (1, b""))
    if not raw:
        raise DataError(f"{path}: holds no rows")
    ours = "schema_version" in _object(raw, path, number)
    beside = (path.parent / "run.json").is_file()
    if ours and not beside:
        raise ConfigError(f"--predictions {path}: a journal of a run, but its run.json is not beside it")
    return path.parent if ours or (beside and path.name == JUDGED) else None


def script_results(path: Path) -> OfficialResults:
    """What the script's `score` makes of a judged.jsonl. Raises DataError for what it cannot read or sum up."""

    def rows() -> Iterator[Any]:
        for number, _, raw in lines_of(path):
            try:
                yield judged_row(_object(raw, path, number))
            except TypeError as problem:
                raise DataError(f"{path}:{number}: {problem}") from None

    try:
        return official_results(rows())
    except OverflowError:  # ends the script, too
        raise DataError(f"{path}: holds scores too large for a mean") from None


def script_table(name: str, results: OfficialResults) -> Table:
    """The numbers that the official script prints, with the macro mean that it does not print."""
    rows = [
        (
            one.name,
            f"{one.valid}/{one.rows}",
            *(points(one.scores[column] if one.scores else None) for column in (TOTAL, *DIMENSIONS)),
        )
        for one in results.domains
    ]
    for label, value in (("macro", results.macro), ("micro", results.overall)):
        rows.append((f"Overall, {label}", f"{results.valid}/{results.rows}", points(value), *[""] * 5))
    return Table(
        title=f"{name} as the official script sums it up",
        columns=("Domain", "Valid", "Total", *(column.capitalize() for column in COLUMNS[:-1])),
        rows=tuple(rows),
        left=("Domain",),
        strong=(len(rows) - 1,),
        notes=(
            "From the scores in the file as they stand. The script prints the micro mean as its overall.",
        ),
    )


def _object(raw: bytes, path: Path, line: int) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8-sig" if line == 1 else "utf-8"))
    except (ValueError, RecursionError) as problem:
        raise DataError(f"{path}:{line}: not a JSON object on one line ({problem})") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}:{line}: expected a JSON object, got {type(value).__name__}")
    return value


def _checked(form: type[F], value: dict[str, Any], path: Path, line: int) -> F:
    try:
        return form.model_validate(value)
    except ValidationError as problem:
        detail = problem.errors()[0]
        field = str(detail["loc"][0])
        message = "is missing" if detail["type"] == "missing" else detail["msg"].removeprefix("Value error, ")
        raise DataError(f"{path}:{line}: field '{field}': {message}") from None
