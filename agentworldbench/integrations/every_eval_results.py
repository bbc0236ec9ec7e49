"""What a record of Every Eval Ever says of models, judges, data and scores.

In: a `Source`. Out: the parts of an aggregate (schema 0.3.0) as JSON objects. A result is one number: of each domain the
judge's total and its five dimensions, over all domains the macro and the micro mean, and the same of the rule score.
Scores are points from 0 to 100 under the policy of the headline; the other policy's, the coverage and the counts stand
in the details, whose values are texts, as the schema wants them. A number that is not available is no result; its
name is handed back. Prompts of judges are named by their hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from agentworldbench.integrations.export_source import BENCHMARK, Source, policy_of
from agentworldbench.protocol import Policy
from agentworldbench.stats.aggregate import COLUMNS, RULE_SCORE
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import JudgeResults, MetricMean
from agentworldbench.submission.manifest import created

SCHEMA: Final = "0.3.0"
CORRECT: Final = 75.0
"""Points from which a sample counts as correct: a total of 4 of 5."""

RULES: Final = "rules"
OVERALL: Final = "overall"
Object = dict[str, Any]
_LOCAL: Final = ("hf", "vllm")
_ARGUMENTS: Final = ("temperature", "top_p", "top_k", "max_tokens")


@dataclass(frozen=True)
class Identity:
    """A run's names in a record. `given` is the model's public name, if the user gave one."""

    source: Source
    given: str | None

    @property
    def id(self) -> str:
        """The model's name: `DEVELOPER/MODEL` where that is known."""
        if self.given:
            return self.given.strip("/")
        name = self.source.model_name
        return f"{BENCHMARK}/{name}" if self.source.backend == "baseline" else name

    @property
    def developer(self) -> str:
        """The first part of the name, or `unknown`."""
        return self.id.partition("/")[0] if "/" in self.id else "unknown"

    @property
    def model(self) -> str:
        """The rest of the name."""
        return self.id.partition("/")[2] or self.id

    @property
    def retrieved(self) -> str:
        """When the run's last session began, in seconds since 1970: computing the results again changes nothing."""
        return str(int(datetime.fromisoformat(created(self.source.record)).timestamp()))

    @property
    def evaluation_id(self) -> str:
        """Benchmark, model and time."""
        return f"{BENCHMARK}/{self.id}/{self.retrieved}"

    def result_id(self, part: str, metric: str, judge: JudgeResults | None) -> str:
        """The name of one result; samples refer to it."""
        return "/".join((self.evaluation_id, part, metric, judge.judge.digest if judge else RULES))

    def row(self, domain: str, judge: JudgeResults | None) -> Object:
        """What ties a sample row to its result, the judge's total of the domain or its rule score."""
        metric = "total" if judge else RULE_SCORE
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self.evaluation_id,
            "model_id": self.id,
            "evaluation_name": task_id(domain),
            "evaluation_result_id": self.result_id(domain, metric, judge),
        }


def task_id(domain: str) -> str:
    """What a domain is called as an evaluation."""
    return f"{BENCHMARK}_{domain}"


def strings(values: Mapping[str, Any]) -> dict[str, str]:
    """Details as the schema wants them: texts alone; what is None is left out."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
        if value is not None
    }


def model_info(source: Source, identity: Identity) -> Object:
    """The model."""
    facts = source.record.sessions[-1].model_facts
    details = {
        "model_string": None if source.backend in (*_LOCAL, "replay") else source.results.model,
        "served_as": list(source.results.predictions.served) or None,
        "revision": facts.revision if facts else None,
        "quantization": facts.quantization if facts else None,
        "dtype": facts.dtype if facts else None,
        "chat_template_sha256": facts.chat_template_sha256 if facts else None,
    }
    info = {
        "name": identity.model,
        "id": identity.id,
        "developer": identity.developer,
        "additional_details": _deployment(source.backend) | strings(details),
    }
    if facts is not None and facts.engine:
        engine = {"name": facts.engine} | ({"version": facts.engine_version} if facts.engine_version else {})
        info["inference_engine"] = engine
    return info


def judge_info(source: Source, judge: JudgeResults) -> Object:
    """A judge, with everything its digest covers."""
    one = judge.judge
    details = {
        "digest": one.digest,
        "protocol": f"{one.protocol} {one.protocol_version}",
        "reading": one.parse,
        "sampling": one.sampling,
        "attempts": one.attempts,
        "repeats": source.repeats(one),
        "served_as": list(judge.served) or None,
    }
    info: Object = {
        "model_info": {
            "name": one.model,
            "id": str(one.identity.get("name", one.model)),
            "additional_details": _deployment(str(one.identity.get("backend"))),
        },
        "additional_details": strings(details),
    }
    temperature = one.sampling.get("temperature")
    return info | ({"temperature": temperature} if isinstance(temperature, int | float) else {})


def _deployment(backend: str) -> dict[str, str]:
    kind = "self_deployed" if backend in (*_LOCAL, "baseline") else "unknown"
    return {"deployment_type": kind, "model_availability": "unknown"}


def results_of(source: Source, identity: Identity) -> tuple[list[Object], list[str]]:
    """(results, names of those that have no score)."""
    results, without = [], []
    for number in _numbers(source):
        if number.value is None:
            without.append(f"{number.part} {number.metric}")
        else:
            results.append(_result(source, identity, number))
    return results, without


@dataclass(frozen=True)
class _Number:
    """One result in points: of a domain or `overall`, by a judge or the rules."""

    part: str
    metric: str
    judge: JudgeResults | None
    policy: Policy
    value: float | None
    interval: Interval | None
    samples: int
    details: Mapping[str, Any]


def _numbers(source: Source) -> Iterator[_Number]:
    for judge in source.judges:
        yield from _judged(judge)
    rules, policy = source.results.rules, source.results.policy
    for domain, found in rules.score.items():
        interval = getattr(rules.intervals[domain], policy) if domain in rules.intervals else None
        yield _rule(domain, RULE_SCORE, policy, found, interval)
    macro, micro = rules.macro[RULE_SCORE], rules.micro[RULE_SCORE]
    yield _rule(OVERALL, f"{RULE_SCORE}.macro", policy, macro, getattr(rules.macro_intervals, policy))
    yield _rule(OVERALL, f"{RULE_SCORE}.micro", policy, micro, getattr(rules.micro_intervals, policy))


def _judged(judge: JudgeResults) -> Iterator[_Number]:
    policy = policy_of(judge)
    for domain, block in judge.domains.items():
        for column in COLUMNS:
            details: Object = {"exclude": block.exclude[column], "floor": block.floor[column]}
            details |= {"coverage": block.coverage, "scored": block.scored, "samples": block.samples}
            details |= {"trajectories": block.clusters, "failures": judge.failures[domain]}
            interval = getattr(block.intervals, policy) if column == "total" else None
            count = block.asked if policy == "floor" else block.scored
            value = getattr(block, policy)[column]
            yield _Number(domain, column, judge, policy, value, interval, count, details)
    micro = judge.micro
    count = micro.asked if policy == "floor" else micro.scored
    macro = {"exclude": judge.macro_exclude["total"], "floor": judge.macro_floor["total"]}
    shared = {"coverage": micro.coverage, "scored": micro.scored, "samples": micro.samples}
    interval = getattr(judge.macro_intervals, policy)
    yield _Number(OVERALL, "macro", judge, policy, macro[policy], interval, count, macro | shared)
    every = {"exclude": micro.exclude["total"], "floor": micro.floor["total"]}
    interval = getattr(micro.intervals, policy)
    yield _Number(OVERALL, "micro", judge, policy, every[policy], interval, count, every | shared)


def _rule(part: str, metric: str, policy: Policy, found: MetricMean, interval: Interval | None) -> _Number:
    points = {
        name: None if value is None else 100 * value
        for name, value in (("exclude", found.exclude), ("floor", found.floor))
    }
    if interval is not None and interval.se is not None:
        scaled = {name: 100 * getattr(interval, name) for name in ("se", "low", "high")}
        interval = interval.model_copy(update=scaled)
    count = found.n if policy == "floor" else found.scored
    details = points | {"scored": found.scored, "samples": found.n, "unreadable": found.unparsed}
    return _Number(part, metric, None, policy, points[policy], interval, count, details)


def _result(source: Source, identity: Identity, number: _Number) -> Object:
    assert number.value is not None
    domain = None if number.part == OVERALL else number.part
    details: Object = {"score": number.value, "details": strings(number.details)}
    if number.interval is not None and number.interval.se is not None:
        details["uncertainty"] = _uncertainty(number.interval, number.samples)
    return {
        "evaluation_result_id": identity.result_id(number.part, number.metric, number.judge),
        "evaluation_name": task_id(domain) if domain else BENCHMARK,
        "source_data": _data(source, domain, listed=number.metric in ("total", RULE_SCORE)),
        "evaluation_timestamp": source.record.created_at,
        "metric_config": _metric(source, number),
        "score_details": details,
        "generation_config": _generation(source, domain or next(iter(source.groups))),
    }


def _uncertainty(interval: Interval, samples: int) -> Object:
    how = {
        "clustered": "clusters of trajectories",
        "stratified": "clusters of trajectories, domains as strata",
    }
    method = how.get(interval.method, interval.method)
    return {
        "standard_error": {"value": interval.se, "method": method},
        "confidence_interval": {
            "lower": interval.low,
            "upper": interval.high,
            "confidence_level": interval.level,
            "method": f"Student's t, {method}",
        },
        "num_samples": samples,
    }


def _metric(source: Source, number: _Number) -> Object:
    judge, value = number.judge, number.value or 0.0
    # The official rules take values beyond 1-5 from a judge; such a score has no bounds.
    inside = 0 <= value <= 100
    metric: Object = {
        "metric_id": f"{BENCHMARK}.{number.metric}",
        "metric_name": number.metric.replace("_", " ").replace(".", ", "),
        "metric_kind": "rule_score" if judge is None else "llm_judge_score",
        "metric_unit": "points",
        "metric_parameters": {"failure_policy": number.policy},
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0 if inside else "-Infinity",
        "max_score": 100 if inside else "Infinity",
    }
    if judge is not None:
        metric["metric_parameters"]["reading"] = judge.judge.parse
        domain = None if number.part == OVERALL else number.part
        metric["llm_scoring"] = {
            "judges": [judge_info(source, judge)],
            "input_prompt": _prompt(judge, domain),
            "aggregation_method": "average",
        }
    return metric


def _prompt(judge: JudgeResults, domain: str | None) -> str:
    """Which prompt a judge was asked with: its files by hash."""
    files = dict(judge.judge.prompts)
    system = judge.judge.system_prompts
    files |= {f"system, {name}": sha or "unknown" for name, sha in system.items() if domain in (None, name)}
    listed = "; ".join(f"{name}: sha256 {sha}" for name, sha in files.items())
    return f"{BENCHMARK}, protocol {judge.judge.protocol} {judge.judge.protocol_version}: {listed}"


def _data(source: Source, domain: str | None, listed: bool) -> Object:
    """The data of a domain, or of all; sample ids only where they are `listed`, once a domain and score."""
    data = source.record.predict.data
    refs = [ref for name, some in source.groups.items() for ref in some if domain in (None, name)]
    details: Object = {
        "revision": data.revision,
        "files_sha256": {name: sha for name, sha in data.files.items() if domain in (None, name)},
        "simulated": [name for name in data.simulated if domain in (None, name)] or None,
    }
    ids = [ref.id for ref in refs] if domain and listed else None
    if data.repository is None:
        details |= {"samples_number": len(refs), "sample_ids": ids}
        return {"dataset_name": data.name, "source_type": "other", "additional_details": strings(details)}
    return {
        "dataset_name": data.name,
        "source_type": "hf_dataset",
        "hf_repo": data.repository,
        "hf_split": "test",
        "samples_number": len(refs),
        **({"sample_ids": ids} if ids else {}),
        "additional_details": strings(details),
    }


def _generation(source: Source, domain: str) -> Object:
    sampling = source.sampling(domain)
    arguments = {
        name: sampling.pop(name) for name in _ARGUMENTS if isinstance(sampling.get(name), int | float)
    }
    thinking = sampling.pop("thinking", None)
    if thinking in ("on", "off"):
        arguments["reasoning"] = thinking == "on"
    arguments["prompt_template"] = (
        "the row's system text, its earlier turns as user and assistant messages, its last prompt with its instruction"
    )
    details = sampling | {
        "context_policy": source.record.predict.context_policy,
        "epochs": source.record.epochs,
    }
    return {"generation_args": arguments, "additional_details": strings(details)}
