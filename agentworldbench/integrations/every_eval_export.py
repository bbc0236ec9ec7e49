"""A run as a record of Every Eval Ever (schema 0.3.0): an aggregate JSON file and its samples as JSON lines.

In: a run directory with results, and what a run does not know: who ran it, and the model's public name. Out: the
tree that the datastore has, `data/agentworldbench/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl`, ready for
`every_eval_ever validate`. The UUID has the form of version 4, as the schema wants it, and is made from the run, so
the same export again writes the same files, and `awb submit --to eee` writes under the same UUID. A sample row stands for one answer and one judge, or for the rules where
there is no judge. `is_correct`, which the schema demands, is a total of at least 4 of 5: 75 points.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from agentworldbench.errors import ConfigError
from agentworldbench.integrations.every_eval_results import (
    CORRECT,
    SCHEMA,
    Identity,
    Object,
    model_info,
    results_of,
    strings,
)
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
    reply_of,
    told,
)
from agentworldbench.prompts import messages_json, predict_messages, reference_observation
from agentworldbench.records import Prediction, Sample
from agentworldbench.stats.results import JudgeResults
from agentworldbench.submission.redact import Redactor
from agentworldbench.texts import digest

FOLDER: Final = "eee"
_MODEL_ID: Final = re.compile(r"[^\s/]+(/[^\s/]+)+")
Relationship = Literal["first_party", "third_party", "collaborative", "other"]


@dataclass(frozen=True)
class Submitter:
    """Who ran the evaluation, and the model's public name (`ORGANIZATION/NAME`; None: made from the model string)."""

    organization: str = "unknown"
    relationship: Relationship = "other"
    model_id: str | None = None


def export_every_eval(
    path: Path,
    folder: Path | None = None,
    *,
    judge: str | None = None,
    data: str | None = None,
    references: bool = False,
    submitter: Submitter | None = None,
) -> Written:
    """Write the record of a run into `folder` (default: `eee` in the run directory).

    `judge` names one judge (None: all). `data` says where the data are now, when they have moved. `references` puts
    prompts and reference observations into the samples. Raises ConfigError for a run without results, for files of
    others and for a name that is none.
    """
    source = open_source(path, judge, data)
    target, ours = check_folder(path, folder, FOLDER)
    who = submitter or Submitter()
    if who.model_id is not None and not _MODEL_ID.fullmatch(who.model_id):
        raise ConfigError(f"--model-id {who.model_id}: a public name is ORGANIZATION/NAME")
    identity = Identity(source, who.model_id)
    called = _uuid(source)
    place = Path("data") / BENCHMARK / _component(identity.developer) / _component(identity.model)
    samples_path = target / place / f"{called}_samples.jsonl"
    lines, running = 0, hashlib.sha256()
    with replacing(samples_path, ours) as part, part.open("wb") as file:
        for row in _rows(source, identity, references):
            line = json_bytes(row) + b"\n"
            running.update(line)
            file.write(line)
            lines += 1
    detailed = {
        "format": "jsonl",
        "file_path": (place / samples_path.name).as_posix(),
        "hash_algorithm": "sha256",
        "checksum": running.hexdigest(),
        "total_rows": lines,
    }
    results, without = results_of(source, identity)
    record = _record(source, identity, who, without) | {
        "evaluation_results": results,
        "detailed_evaluation_results": detailed,
    }
    file_path = target / place / f"{called}.json"
    with replacing(file_path, ours) as part:
        part.write_bytes(json_bytes(record, indent=2) + b"\n")
    return Written((file_path, samples_path), (*source.notes, *_notes(identity, who, without)))


def _notes(identity: Identity, who: Submitter, without: list[str]) -> Iterator[str]:
    if without:
        yield f"without a score, so without a result: {', '.join(without)}"
    if identity.developer == "unknown":
        yield (
            f"the model is called '{identity.id}' here, without a developer: name it with `awb export eee "
            "--model-id ORGANIZATION/NAME` before you submit the record"
        )
    if who.organization == "unknown":
        yield "nobody is named as who ran this: `awb export eee --organization NAME --relationship …` says it"


def _uuid(source: Source) -> uuid.UUID:
    """One for a run and the judges taken, whoever exports it, under which name, from the run or from its bundle: made of
    the record as it may be public, in which a bundle's already is."""
    public = Redactor(source.record).run(source.record)
    wanted = {one.judge.digest for one in source.judges}
    pairs = zip(source.record.judges, public.judges, strict=True)
    parts = [
        public.model_dump(mode="json", include={"created_at", "predict", "selection"}),
        [shown.digest for stored, shown in pairs if stored.digest in wanted],
    ]
    return uuid.UUID(bytes=bytes.fromhex(digest(parts)[:32]), version=4)


def _component(name: str) -> str:
    """A part of a path that every file system takes, as the datastore makes it."""
    cleaned = re.sub(r'[<>:"\\|?*\x00-\x1f]', "_", name.replace("/", "_")).rstrip(". ")
    return cleaned if cleaned not in ("", "data") else f"_{cleaned}"


def _record(source: Source, identity: Identity, who: Submitter, without: list[str]) -> Object:
    """The aggregate without results."""
    results, record = source.results, source.record
    details = {
        "protocol": results.protocol,
        "complete": results.complete,
        "warnings": list(results.warnings) or None,
        "results_without_a_score": without or None,
        "git_commit": record.sessions[-1].git_commit,
        "task_files_sha256": results.task_files,
        "own_metrics": results.own_metrics or None,
    }
    return {
        "schema_version": SCHEMA,
        "evaluation_id": identity.evaluation_id,
        "evaluation_timestamp": record.created_at,
        "retrieved_timestamp": identity.retrieved,
        "source_metadata": {
            "source_name": f"{BENCHMARK} {results.made_by}",
            "source_type": "evaluation_run",
            "source_organization_name": who.organization,
            "evaluator_relationship": who.relationship,
        },
        "eval_library": {
            "name": BENCHMARK,
            "version": results.made_by,
            "additional_details": strings(details),
        },
        "model_info": model_info(source, identity),
    }


def _rows(source: Source, identity: Identity, references: bool) -> Iterator[Object]:
    judges: tuple[JudgeResults | None, ...] = source.judges or (None,)
    for domain in source.groups:
        task = source.samples.tasks[domain]
        for ref, answers in source.answers(domain):
            sample = source.samples.dataset.load(ref) if references else None
            for answer in answers:
                if answer.prediction is None:
                    continue
                shared = _shared(source, answer, answer.prediction, sample)
                for judge in judges:
                    evaluation = _evaluated(answer, judge, task.primary)
                    if evaluation is not None:
                        yield identity.row(domain, judge) | shared | evaluation


def _shared(source: Source, answer: Answer, prediction: Prediction, sample: Sample | None) -> Object:
    """What rows of one answer have in common."""
    ref, usage = answer.ref, prediction.usage
    task = source.samples.tasks[ref.domain]
    raw = f"sample {ref.id} of {source.repository}: its texts are not in this record"
    tokens = None
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        tokens = {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            "input_tokens_cache_write": usage.cache_write_tokens,
            "input_tokens_cache_read": usage.cached_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        }
    seconds = prediction.seconds
    return {
        "sample_id": ref.id,
        "sample_hash": ref.row_hash,
        "interaction_type": "single_turn",
        "input": {
            "raw": raw if sample is None else messages_json(predict_messages(sample)).decode(),
            "reference": [] if sample is None else [reference_observation(sample, task)],
        },
        "output": {"raw": [reply_of(prediction)]},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": prediction.observation,
                "extraction_method": f"{source.record.predict.extraction}, tag {task.prediction_tag}",
                "is_terminal": True,
            }
        ]
        if prediction.observation is not None
        else [],
        "token_usage": tokens,
        "performance": None if seconds is None else {"latency_ms": 1000 * seconds},
    }


def _evaluated(answer: Answer, judge: JudgeResults | None, primary: tuple[str, ...]) -> Object | None:
    """Score, failure and what they rest on; None where the verdict is still to be asked for, or where there is no
    judge and no rule applies."""
    failure = failure_of(answer, judge.judge if judge else None)
    prediction, metadata = answer.prediction, dict[str, Any]()
    assert prediction is not None
    score: float | None
    if judge is not None:
        judged = answer.judged[judge.judge.digest]
        score = judged.score.exclude["total"]
        metadata = {f"score_{name}": value for name, value in judged.score.exclude.items()}
        metadata |= {"policy": policy_of(judge), "repeats": len(judged.readings)}
    else:
        rule_score = answer.rule_score(primary)
        score = None if rule_score is None else 100 * rule_score
        if failure is None and score is None:
            return None
    if failure is not None and failure.stage == "pending":
        return None
    metadata |= {
        "epoch": answer.epoch,
        "domain": answer.ref.domain,
        "trajectory": answer.ref.cluster,
        "failure": f"{failure.stage}: {failure.kind}" if failure else None,
        "finish_reason": prediction.finish_reason,
        "prompt_sha256": prediction.prompt_sha256,
        "cost_usd": prediction.cost_usd,
    }
    return {
        # A failed answer has no score. The schema wants a number: 0, with the failure beside it.
        "evaluation": {
            "score": score or 0.0,
            "is_correct": score is not None and score >= CORRECT,
            "num_turns": 1,
        },
        "error": told(failure) if failure else None,
        "metadata": strings(metadata),
    }
