"""A run as lm-evaluation-harness writes its own: `results_TIME.json` and `samples_TASK_TIME.jsonl` in a folder a model.

In: a run directory with results. Out: files that lm-eval's table and the readers of its results take. A task is a
domain (`agentworldbench_mcp`), the group `agentworldbench` holds the means over domains. Scores are 0-100. A filter
says which reading of which text and which failure policy: `strict-floor`, `official-exclude`, `rules-floor`; with
several judges the judge's name stands before it. Standard errors are those of our intervals by trajectory; where there
is none it is `N/A`, as lm-eval has it. A sample is a row a filter, its epochs are the row's repeats; a failed one has
its failures under `failures`, and under the policy `exclude` no value.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

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
from agentworldbench.integrations.lm_eval_scores import Metrics, domain_metrics, filter_name, group_metrics
from agentworldbench.prompts import messages_json, predict_messages, reference_observation
from agentworldbench.protocol import Policy
from agentworldbench.readings import epochs_of
from agentworldbench.records import Sample, SampleRef
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.intervals import mean
from agentworldbench.stats.results import JudgeResults
from agentworldbench.texts import sha256_text

FOLDER: Final = "lm-eval"
Row = dict[str, Any]


def export_lm_eval(
    path: Path,
    folder: Path | None = None,
    *,
    judge: str | None = None,
    data: str | None = None,
    references: bool = False,
) -> Written:
    """Write the results and the samples of a run into `folder`/MODEL (default: `lm-eval` in the run directory).

    `judge` names one judge (None: all). `data` says where the data are now, when they have moved. `references` puts
    prompts and reference observations into the samples; else the files hold ids and hashes of them. Raises
    ConfigError for a run without results and for files of others.
    """
    source = open_source(path, judge, data)
    target, ours = check_folder(path, folder, FOLDER)
    model = source.model_name
    target /= folder_name(model)
    time = _time(source)
    written, counts, hashes = [], dict[str, int](), dict[str, str]()
    for domain in source.groups:
        name = task_name(domain)
        file_path = target / f"samples_{name}_{time}.jsonl"
        running = hashlib.sha256()
        counts[name] = 0
        with replacing(file_path, ours) as part, part.open("wb") as file:
            for rows in _sample_rows(source, domain, references):
                counts[name] += bool(rows)
                for row in rows:
                    running.update(
                        "".join(row[f"{what}_hash"] for what in ("doc", "prompt", "target")).encode()
                    )
                    file.write(json_bytes(row) + b"\n")
        hashes[name] = running.hexdigest()
        written.append(file_path)
    results = _results(source, model, counts, hashes)
    file_path = target / f"results_{time}.json"
    with replacing(file_path, ours) as part:
        part.write_bytes(json_bytes(results, indent=2) + b"\n")
    return Written((file_path, *written), source.notes)


def task_name(domain: str) -> str:
    """What a domain is called as a task."""
    return f"{BENCHMARK}_{domain}"


def folder_name(model: str) -> str:
    """The folder of a model, as lm-eval names it."""
    return re.sub(r'["<>:/|\\?*\[\]]+', "__", model)


def _time(source: Source) -> str:
    """When the run was begun, as lm-eval writes times in names of files."""
    begun = datetime.fromisoformat(source.record.created_at).replace(tzinfo=None)
    return begun.isoformat(timespec="microseconds").replace(":", "-")


def _results(source: Source, model: str, counts: dict[str, int], hashes: dict[str, str]) -> dict[str, Any]:
    tasks = {domain: task_name(domain) for domain in source.groups}
    scores = {tasks[domain]: domain_metrics(source, domain) for domain in tasks}
    group = group_metrics(source)
    rows = {
        name: {"name": name, "alias": name, "sample_len": counts[name], **scores[name]} for name in scores
    }
    whole = {"name": BENCHMARK, "alias": BENCHMARK, "sample_len": sum(counts.values()), **group}
    everything = {BENCHMARK: group, **scores}
    record, session = source.record, source.record.sessions[-1]
    # lm-eval's own classes run the models `hf/` and `vllm/`, no others; its tasks and metrics take no part.
    in_process = session.packages if source.backend in ("hf", "vllm") else {}
    versions = {tasks[domain]: source.samples.tasks[domain].version for domain in tasks}
    return {
        "results": {BENCHMARK: whole, **rows},
        "groups": {BENCHMARK: whole},
        "group_subtasks": {BENCHMARK: list(tasks.values())},
        "configs": {tasks[domain]: _task_config(source, domain) for domain in tasks},
        "versions": {BENCHMARK: None, **versions},
        "n-shot": dict.fromkeys(tasks.values(), 0),
        "higher_is_better": {name: _names(some) for name, some in everything.items()},
        "n-samples": {
            tasks[domain]: {"original": _original(source, domain), "effective": counts[tasks[domain]]}
            for domain in tasks
        },
        "config": _config(source),
        "git_hash": session.git_commit,
        "date": datetime.fromisoformat(record.created_at).timestamp(),
        "pretty_env_info": "\n".join(
            f"{name} {version}" for name, version in sorted(session.packages.items())
        ),
        "transformers_version": in_process.get("transformers"),
        "lm_eval_version": in_process.get("lm-eval"),
        "agentworldbench_version": source.results.made_by,
        "upper_git_hash": None,
        "task_hashes": hashes,
        "model_source": source.backend,
        "model_name": model,
        "model_name_sanitized": folder_name(model),
        "system_instruction": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": False,
        "chat_template": None,
        "chat_template_sha": session.model_facts.chat_template_sha256 if session.model_facts else None,
        "total_evaluation_time_seconds": None,
    }


def _names(scores: Metrics) -> dict[str, bool]:
    """Of all metrics more is better."""
    names = dict.fromkeys(key.partition(",")[0] for key in scores)
    return {name: True for name in names if not name.endswith("_stderr")}


def _original(source: Source, domain: str) -> int:
    return sum(ref.domain == domain for ref in source.samples.dataset.refs)


def _config(source: Source) -> dict[str, Any]:
    model = dict(source.record.predict.model)
    facts = source.record.sessions[-1].model_facts
    return {
        "model": model.pop("backend", None),
        "model_args": {name: value for name, value in model.items() if value is not None},
        "model_dtype": facts.dtype if facts else None,
        "model_revision": facts.revision if facts else None,
        "batch_size": None,
        "device": None,
        "use_cache": None,
        "limit": source.record.selection.limit,
        "bootstrap_iters": 0,
        "gen_kwargs": None,
        "random_seed": source.record.selection.seed,
    }


def _task_config(source: Source, domain: str) -> dict[str, Any]:
    """The task as lm-eval would describe it, with what else its numbers rest on under `metadata`."""
    record, results, task = source.record, source.results, source.samples.tasks[domain]
    data = record.predict.data
    return {
        "task": task_name(domain),
        "tag": BENCHMARK,
        "dataset_path": source.repository,
        "dataset_name": domain,
        "dataset_kwargs": {"revision": data.revision},
        "test_split": "test",
        "output_type": "generate_until",
        "generation_kwargs": source.sampling(domain),
        "repeats": record.epochs,
        "num_fewshot": 0,
        "metric_list": [
            {"metric": name, "aggregation": "mean", "higher_is_better": True}
            for name in _names(domain_metrics(source, domain))
        ],
        "metadata": {
            "version": task.version,
            "score_range": [0, 100],
            "data": {"name": data.name, "file_sha256": data.files[domain]},
            "task_file_sha256": results.task_files[domain],
            "protocol": results.protocol,
            "complete": results.complete,
            "failed_predictions": results.predictions.failures[domain],
            "judges": [_judge(source, one, domain) for one in source.judges],
        },
    }


def _judge(source: Source, judge: JudgeResults, domain: str) -> dict[str, Any]:
    block = judge.domains[domain]
    return {
        "model": judge.judge.model,
        "digest": judge.judge.digest,
        "protocol": judge.judge.protocol,
        "policy": policy_of(judge),
        "repeats": source.repeats(judge.judge),
        "sampling": judge.judge.sampling,
        "samples": block.samples,
        "scored": block.scored,
        "coverage": block.coverage,
        "failures": judge.failures[domain],
    }


def _sample_rows(source: Source, domain: str, references: bool) -> Iterator[list[Row]]:
    """The rows of each sample that has been asked, one a filter."""
    task = source.samples.tasks[domain]
    for number, (ref, answers) in enumerate(source.answers(domain)):
        asked = [one for one in answers if one.prediction is not None]
        if not asked:
            yield []
            continue
        sample = source.samples.dataset.load(ref)
        reference = reference_observation(sample, task)
        shared = _shared(source, ref, asked, sample if references else None) | {
            "doc_id": number,
            "target": reference if references else "",
            "target_hash": sha256_text(reference),
        }
        rows = [_judged_row(source, one, asked) for one in source.judges]
        rows.append(_rules_row(source, asked, task.primary))
        yield [shared | row for row in rows]


def _shared(source: Source, ref: SampleRef, asked: Sequence[Answer], sample: Sample | None) -> Row:
    """What is the same in all rows of a sample; `sample` is given where its texts are wanted."""
    doc: Row = {"sample_id": ref.id}
    prompt = ""
    if sample is not None:
        doc |= {"turn_idx": ref.turn_idx, "total_turns": ref.total_turns, "cluster": ref.cluster}
        prompt = messages_json(predict_messages(sample)).decode()
    predictions = [one.prediction for one in asked if one.prediction is not None]
    return {
        "doc": doc,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": json.dumps(source.sampling(ref.domain))}},
        "resps": [[reply_of(one) for one in predictions]],
        "filtered_resps": [one.observation or "" for one in predictions],
        "doc_hash": ref.row_hash,
        "prompt_hash": next((one.prompt_sha256 for one in predictions if one.prompt_sha256), ""),
    }


def _judged_row(source: Source, judge: JudgeResults, asked: Sequence[Answer]) -> Row:
    policy = policy_of(judge)
    score = epochs_of([one.judged[judge.judge.digest].outcomes for one in asked]).score
    known = {name: value for name, value in getattr(score, policy).items() if value is not None}
    return _row(filter_name(source, judge, judge.judge.parse, policy), known, asked, judge)


def _rules_row(source: Source, asked: Sequence[Answer], primary: Sequence[str]) -> Row:
    policy: Policy = source.results.policy
    applies = any(one.metrics is not None and set(primary) & set(one.metrics.applicable) for one in asked)
    values = [one.rule_score(primary) for one in asked]
    known = [value for value in values if value is not None]
    if policy == "floor" and applies:
        known += [0.0] * (len(values) - len(known))
    average = mean(known)
    scores = {} if average is None or not applies else {RULE_SCORE: 100 * average}
    return _row(filter_name(source, None, "rules", policy), scores, asked, None)


def _row(name: str, scores: dict[str, float], asked: Sequence[Answer], judge: JudgeResults | None) -> Row:
    failed = [
        f"epoch {one.epoch}: {told(failure)}"
        for one in asked
        if (failure := failure_of(one, judge.judge if judge else None)) is not None
    ]
    return {"filter": name, "metrics": list(scores), **scores, "failures": failed}
