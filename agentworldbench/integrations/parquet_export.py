"""A run as one Parquet table: a row for each (sample, epoch, judge, repeat), typed, for pandas, polars, DuckDB and SQL.

In: a run directory with results. Out: `samples.parquet`. Without a judge a row is a (sample, epoch). What failed or was
not asked has a row like any other, with stage, class and message of the failure and empty scores. What belongs to the
prediction stands in every row of it: sum tokens or USD over distinct (sample_id, epoch). Texts of models are in it
only when wanted, and texts of the data only when those are. What the whole run is about stands as JSON in the
table's metadata under `agentworldbench`. Needs pyarrow, and imports it inside a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.integrations.export_source import (
    BENCHMARK,
    Answer,
    Source,
    Written,
    check_folder,
    failure_of,
    json_bytes,
    open_source,
    policy_of,
    replacing,
)
from agentworldbench.prompts import messages_json, predict_messages, reference_observation
from agentworldbench.readings import BothReadings, Outcome
from agentworldbench.records import Asked, Sample
from agentworldbench.stats.aggregate import COLUMNS, RULE_SCORE, score_of
from agentworldbench.texts import moment, scrub

if TYPE_CHECKING:
    import pyarrow

FOLDER: Final = "parquet"
FILE: Final = "samples.parquet"
SCHEMA_VERSION: Final = 1
ROWS: Final = 1024
"""Rows that are in memory at once."""

Row = dict[str, Any]
_SAMPLE: Final = {
    "sample_id": "string", "domain": "string", "row_id": "string", "turn": "int32", "total_turns": "int32",
    "trajectory": "string", "task_key": "string", "row_sha256": "string", "epoch": "int32",
    "judge": "string", "judge_digest": "string", "repeat": "int32",
    "failure_stage": "string", "failure": "string", "failure_message": "string",
    "score": "float64", "strict_score": "float64", "official_score": "float64",
    **dict.fromkeys(COLUMNS, "float64"), "rule_score": "float64",
}  # fmt: skip
_ASKED: Final = {
    "finish_reason": "string", "model_served": "string", "prompt_sha256": "string", "started_at": "time",
    "seconds": "float64", "retries": "int32", "max_tokens": "int64", "prompt_tokens": "int64",
    "cached_tokens": "int64", "cache_write_tokens": "int64", "completion_tokens": "int64",
    "reasoning_tokens": "int64", "cost_usd": "float64", "from_cache": "bool",
}  # fmt: skip
_BITS: Final = {"int32": 32, "int64": 64}
_TEXTS: Final = {
    "text": "string", "observation": "string", "reasoning": "string",
    "judge_reply": "string", "judge_reasoning": "string", "strengths": "strings", "weaknesses": "strings",
}  # fmt: skip
_REFERENCES: Final = {"prompt": "string", "reference": "string"}


@dataclass(frozen=True)
class Wanted:
    """Which texts a table holds: those of models, and those of the data."""

    texts: bool = False
    references: bool = False


def export_parquet(
    path: Path,
    folder: Path | None = None,
    *,
    judge: str | None = None,
    data: str | None = None,
    wanted: Wanted | None = None,
) -> Written:
    """Write the table of a run into `folder` (default: `parquet` in the run directory).

    `judge` names one judge (None: all). `data` says where the data are now, when they have moved. Raises ConfigError
    for a run without results, for files of others, and where pyarrow is not installed.
    """
    source = open_source(path, judge, data)
    target, ours = check_folder(path, folder, FOLDER)
    chosen = wanted or Wanted()
    with replacing(target / FILE, ours) as part:
        _write(part, columns(source, chosen), rows(source, chosen), json_bytes(about(source)))
    return Written((target / FILE,), source.notes)


def columns(source: Source, wanted: Wanted) -> dict[str, str]:
    """Names and types of the columns. Metrics are those that any sample of the run has."""
    metrics = dict.fromkeys(name for one in source.metrics.values() for name in one.applicable)
    found = dict(_SAMPLE) | {f"metric.{name}": "float64" for name in metrics}
    found |= {"dropped_turns": "int32", **_ASKED}
    found |= {f"judge_{name}": kind for name, kind in _ASKED.items()}
    return found | (_TEXTS if wanted.texts else {}) | (_REFERENCES if wanted.references else {})


def rows(source: Source, wanted: Wanted) -> Iterator[Row]:
    """The rows, sample by sample; what a row has no value for is missing in it."""
    for domain in source.groups:
        task = source.samples.tasks[domain]
        for ref, answers in source.answers(domain):
            texts: Row = {}
            if wanted.references:
                sample = source.samples.dataset.load(ref)
                texts = {"prompt": _prompt(sample), "reference": reference_observation(sample, task)}
            for answer in answers:
                shared = _of_answer(answer, task.primary, wanted) | texts
                judged = list(_judged(source, answer, wanted))
                yield from ({**shared, **one} for one in judged or [_failed(failure_of(answer, None))])


def about(source: Source) -> Row:
    """What the table's metadata say of the run."""
    record, results = source.record, source.results
    return {
        "schema_version": SCHEMA_VERSION,
        "made_by": f"{BENCHMARK} {results.made_by}",
        "model": results.model,
        "protocol": results.protocol,
        "complete": results.complete,
        "data": record.predict.data.model_dump(mode="json"),
        "selection": record.selection.samples,
        "epochs": record.epochs,
        "judges": [
            {
                "name": source.names[one.judge.digest],
                "digest": one.judge.digest,
                "protocol": one.judge.protocol,
                "reading": one.judge.parse,
                "policy": policy_of(one),
                "repeats": source.repeats(one.judge),
                "coverage": one.micro.coverage,
            }
            for one in source.judges
        ],
    }


def _prompt(sample: Sample) -> str:
    return messages_json(predict_messages(sample)).decode()


def _of_answer(answer: Answer, primary: tuple[str, ...], wanted: Wanted) -> Row:
    """Sample, rule metrics and prediction."""
    ref, prediction = answer.ref, answer.prediction
    row: Row = {
        "sample_id": ref.id,
        "domain": ref.domain,
        "row_id": str(ref.row_id),
        "turn": ref.turn_idx,
        "total_turns": ref.total_turns,
        "trajectory": ref.cluster,
        "task_key": ref.task_key,
        "row_sha256": ref.row_hash,
        "epoch": answer.epoch,
    }
    if answer.metrics is not None:
        row |= {f"metric.{name}": value for name, value in answer.metrics.values.items()}
        row[RULE_SCORE] = answer.rule_score(primary)
    if prediction is not None:
        row |= {"dropped_turns": prediction.dropped_turns, **_asked(prediction)}
        if wanted.texts:
            row |= {name: getattr(prediction, name) for name in ("text", "observation", "reasoning")}
    return row


def _asked(asked: Asked) -> Row:
    usage = asked.usage.model_dump()
    plain = ("finish_reason", "model_served", "prompt_sha256", "seconds", "max_tokens", "cost_usd")
    return (
        {name: getattr(asked, name) for name in plain}
        | usage
        | {
            "started_at": moment(asked.started_at or ""),
            "retries": max(0, len(asked.attempts) - 1),
            "from_cache": asked.cached_usage is not None,
        }
    )


def _judged(source: Source, answer: Answer, wanted: Wanted) -> Iterator[Row]:
    for judge in source.judges:
        judged = answer.judged[judge.judge.digest]
        for both, outcome in zip(judged.readings, judged.outcomes, strict=True):
            named = {
                "judge": source.names[judge.judge.digest],
                "judge_digest": judge.judge.digest,
                "repeat": both.repeat,
            }
            yield named | _failed(outcome) | _scored(both, outcome) | _verdict(both, wanted)


def _failed(outcome: Outcome | None) -> Row:
    if outcome is None or outcome.values is not None:
        return {}
    return {
        "failure_stage": outcome.stage,
        "failure": outcome.kind,
        "failure_message": outcome.message or None,
    }


def _scored(both: BothReadings, outcome: Outcome) -> Row:
    """The judge's values, 1-5, by the reading of its protocol, and the score of both readings, 0-100."""
    scores = {
        name: _points(one)
        for name, one in (
            ("score", outcome),
            ("strict_score", both.strict),
            ("official_score", both.official),
        )
    }
    return scores | dict(outcome.values or {})


def _points(outcome: Outcome) -> float | None:
    values: Mapping[str, float] = outcome.values or {}
    return score_of([values["total"]]) if "total" in values else None


def _verdict(both: BothReadings, wanted: Wanted) -> Row:
    verdict = both.verdict
    if verdict is None:
        return {}
    row = {f"judge_{name}": value for name, value in _asked(verdict).items()}
    if wanted.texts:
        row |= {"judge_reply": verdict.reply, "judge_reasoning": verdict.reasoning}
        row |= {"strengths": list(verdict.strengths), "weaknesses": list(verdict.weaknesses)}
    return row


def _write(part: Path, kinds: Mapping[str, str], found: Iterator[Row], metadata: bytes) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as problem:
        raise ConfigError(
            "awb export parquet needs pyarrow: pip install 'agentworldbench[parquet]'"
        ) from problem
    schema = pyarrow.schema(
        [(name, _kind(kind)) for name, kind in kinds.items()], metadata={BENCHMARK.encode(): metadata}
    )
    batch: list[Row] = []
    with pyarrow.parquet.ParquetWriter(part, schema) as writer:
        for row in found:
            batch.append({name: _clean(_held(row, name, kind)) for name, kind in kinds.items()})
            if len(batch) == ROWS:
                writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
                batch = []
        writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))


def _kind(name: str) -> pyarrow.DataType:
    import pyarrow

    if name == "time":
        return pyarrow.timestamp("ms", tz="UTC")
    if name == "strings":
        return pyarrow.list_(pyarrow.string())
    return getattr(pyarrow, {"bool": "bool_"}.get(name, name))()


def _held(row: Row, name: str, kind: str) -> Any:
    """The value of a column. Raises DataError for a number that no column of its kind holds, which no model has sent."""
    value = row.get(name)
    if value is not None and kind in _BITS and abs(value) >= 1 << (_BITS[kind] - 1):
        raise DataError(
            f"{row['sample_id']}: {name}: {value!s:.30} has more than the {_BITS[kind]} bits of a column"
        )
    return value


def _clean(value: Any) -> Any:
    """Text that UTF-8 can hold."""
    if isinstance(value, str):
        return scrub(value)
    return [scrub(one) for one in value] if isinstance(value, list) else value
