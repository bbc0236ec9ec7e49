"""A run as an Inspect log (`.eval`), for `inspect view`, `inspect_ai.log` and what reads those.

In: a run directory with results. Out: one ZIP file with `header.json` (the `EvalLog` without samples), a JSON file an
answer under `samples/`, `summaries.json`, `reductions.json` and `_journal/start.json`, in version 2 of the format.
Samples are written one after the other. Inspect itself is not needed. Members are deflated, which every reader of
ZIP files takes; Inspect's own are zstandard. The headline is the judge's total, as the table of the run has it, and
the rule score where there is no judge. `status` is `cancelled` while samples have not been asked.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agentworldbench.integrations.export_source import (
    BENCHMARK,
    Source,
    Written,
    check_folder,
    json_bytes,
    open_source,
    policy_of,
    replacing,
)
from agentworldbench.integrations.inspect_samples import (
    GRADER,
    RULES,
    Object,
    inspect_sample,
    scorer_name,
    summary_of,
    usage_of,
)
from agentworldbench.integrations.inspect_scores import eval_scores, reductions
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.results import JudgeResults
from agentworldbench.texts import digest

FOLDER: Final = "inspect"
VERSION: Final = 2
"""Of the log format."""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every member: the same run makes the same file."""

_GENERATION: Final = ("temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty")
"""Parameters that Inspect has names for; all of them stand in the log's metadata."""


def export_inspect(
    path: Path,
    folder: Path | None = None,
    *,
    judge: str | None = None,
    data: str | None = None,
    references: bool = False,
) -> Written:
    """Write the log of a run into `folder` (default: `inspect` in the run directory).

    `judge` names one judge (None: all, each a scorer). `data` says where the data are now, when they have moved.
    `references` puts prompts and reference observations into the samples; else the log holds ids and hashes of them.
    Raises ConfigError for a run without results and for files of others.
    """
    source = open_source(path, judge, data)
    target, ours = check_folder(path, folder, FOLDER)
    head = _head(source)
    created = source.record.created_at.partition(".")[0].rstrip("Z").replace(":", "-")
    file_path = target / f"{created}+00-00_{BENCHMARK}_{head['eval']['task_id']}.eval"
    with replacing(file_path, ours) as part, zipfile.ZipFile(part, "w") as archive:
        start = {name: head[name] for name in ("version", "eval", "plan")}
        _add(archive, "_journal/start.json", start)
        summaries = []
        for sample in _samples(source, references):
            _add(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(summary_of(sample))
        _add(archive, "summaries.json", summaries)
        _add(archive, "reductions.json", reductions(source, summaries))
        _add(
            archive,
            "header.json",
            head | {"results": _results(source, summaries), "stats": _stats(source, summaries)},
        )
    return Written((file_path,), source.notes)


def _add(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    member = zipfile.ZipInfo(name, _EPOCH)
    archive.writestr(member, json_bytes(value, indent=2), zipfile.ZIP_DEFLATED)


def _samples(source: Source, references: bool) -> Iterator[Object]:
    for domain in source.groups:
        for ref, answers in source.answers(domain):
            sample = source.samples.dataset.load(ref) if references else None
            for answer in answers:
                if answer.prediction is not None:
                    yield inspect_sample(source, answer, sample)


def _head(source: Source) -> Object:
    """The log without samples, results and statistics."""
    return {
        "version": VERSION,
        "status": "success" if source.results.complete else "cancelled",
        "eval": _eval(source),
        "plan": {
            "name": "plan",
            "steps": [{"solver": "predict_observation", "params": {}, "params_passed": {}}],
            "config": _generation(source),
        },
        "error": None,
        "invalidated": False,
        "tags": [],
        "metadata": _metadata(source),
    }


def _eval(source: Source) -> Object:
    record, results, session = source.record, source.results, source.record.sessions[-1]
    data = record.predict.data
    called = {
        what: digest([what, record.created_at, record.predict.model_dump(mode="json")])[:22]
        for what in ("eval", "run", "task")
    }
    model = {name: value for name, value in record.predict.model.items() if value is not None}
    return {
        **{f"{what}_id": value for what, value in called.items()},
        "created": record.created_at,
        "task": BENCHMARK,
        "task_version": max(source.samples.tasks[domain].version for domain in source.groups),
        "task_display_name": "AgentWorldBench",
        "task_attribs": {},
        "task_args": {"data": data.name, "protocol": results.protocol},
        "task_args_passed": {},
        "dataset": {
            "name": data.name,
            "location": source.repository,
            "samples": len(source.samples.refs),
            "sample_ids": [ref.id for ref in source.samples.refs],
            "shuffled": False,
        },
        "model": results.model,
        "model_generate_config": _generation(source),
        "model_args": model,
        "model_roles": {GRADER: [_role(one) for one in source.judges]} if source.judges else None,
        "config": {
            "epochs": record.epochs,
            "epochs_reducer": ["mean"],
            "fail_on_error": False,
        },
        "revision": {
            "type": "git",
            "origin": "",
            "commit": session.git_commit,
            "dirty": session.git_dirty,
        }
        if session.git_commit
        else None,
        "packages": {BENCHMARK: results.made_by, **session.packages},
        "metadata": _metadata(source),
        "scorers": [{"name": scorer_name(source, one)} for one in source.judges] + [{"name": RULES}],
        "headline_metric": _headline(source),
    }


def _generation(source: Source) -> Object:
    """The sampling parameters that all domains share, by Inspect's names."""
    every = [source.sampling(domain) for domain in source.groups]
    first = every[0]
    return {
        name: first[name]
        for name in _GENERATION
        if isinstance(first.get(name), int | float) and all(some.get(name) == first[name] for some in every)
    }


def _role(judge: JudgeResults) -> Object:
    sampling = {name: value for name, value in judge.judge.sampling.items() if isinstance(value, int | float)}
    config = {name: sampling[name] for name in _GENERATION if name in sampling}
    args = {"digest": judge.judge.digest, "protocol": judge.judge.protocol}
    return {"model": judge.judge.model, "config": config, "args": args}


def _headline(source: Source) -> Object:
    if not source.judges:
        return {"scorer": RULES, "score": RULE_SCORE, "metric": f"macro_{source.results.policy}"}
    first = source.judges[0]
    return {"scorer": scorer_name(source, first), "score": "total", "metric": f"macro_{policy_of(first)}"}


def _metadata(source: Source) -> Object:
    """What else the numbers rest on."""
    record, results = source.record, source.results
    data = record.predict.data
    return {
        "harness": f"{BENCHMARK} {results.made_by}",
        "results_made_at": results.made_at,
        "complete": results.complete,
        "data": data.model_dump(mode="json"),
        "sampling": {domain: source.sampling(domain) for domain in source.groups},
        "context_policy": record.predict.context_policy,
        "task_files": results.task_files,
        "failed_predictions": results.predictions.failures,
        "warnings": list(results.warnings),
        "judges": [
            {
                "scorer": scorer_name(source, one),
                "model": one.judge.model,
                "digest": one.judge.digest,
                "protocol": one.judge.protocol,
                "policy": policy_of(one),
                "sampling": one.judge.sampling,
                "repeats": source.repeats(one.judge),
                "served": list(one.served),
                "coverage": {domain: block.coverage for domain, block in one.domains.items()},
                "failures": one.failures,
            }
            for one in source.judges
        ],
    }


def _results(source: Source, summaries: list[Object]) -> Object:
    return {
        "total_samples": len(source.samples.refs) * source.record.epochs,
        "completed_samples": sum(one["error"] is None for one in summaries),
        "scores": eval_scores(source, summaries),
        "headline": _headline(source),
    }


def _stats(source: Source, summaries: list[Object]) -> Object:
    """Times of the samples, and tokens of all requests of the run, also those whose answers were replaced."""
    begun = [datetime.fromisoformat(one["started_at"]) for one in summaries if one["started_at"]]
    ended = [datetime.fromisoformat(one["completed_at"]) for one in summaries if one["completed_at"]]
    spent = [(source.results.model, source.results.predictions.spent)]
    spent += [(one.judge.model, one.spent) for one in source.judges]
    usage: dict[str, Object] = {}
    for name, one in spent:
        found = usage_of(one.usage, one.cost_usd)
        if found is not None:
            usage[name] = found if name not in usage else _added(usage[name], found)
    return {
        "started_at": min(begun).isoformat() if begun else source.record.created_at,
        "completed_at": max(ended).isoformat() if ended else "",
        "model_usage": usage,
        "role_usage": {},
        "connection_limit_history": [],
    }


def _added(one: Object, other: Object) -> Object:
    """Two usages of one model."""
    return {
        name: None if one[name] is None or other[name] is None else one[name] + other[name] for name in one
    }
