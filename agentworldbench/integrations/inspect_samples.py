"""One answer of a run as a sample of an Inspect log, and its summary.

In: an `Answer` with its `Source`, and the sample's texts where they are wanted. Out: an `EvalSample` and an
`EvalSampleSummary` as JSON objects. A judge is a scorer whose values are `total` and the five dimensions, 0-100, so
that their means are those of the results; the integers 1-5 stand in the score's metadata. Rule metrics are the scorer
`rules`, 0-1. An answer that no judge scored is an error of the sample when it failed by itself, and a score without
values, with the reason, when the judge did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from agentworldbench.integrations.export_source import Answer, Source, failure_of, reply_of, told
from agentworldbench.prompts import predict_messages, reference_observation
from agentworldbench.readings import BothReadings, officially_read
from agentworldbench.records import DIMENSIONS, Asked, FailureKind, Prediction, Sample, Usage
from agentworldbench.stats.aggregate import COLUMNS, RULE_SCORE
from agentworldbench.stats.results import JudgeResults
from agentworldbench.texts import digest, moment

Object = dict[str, Any]
RULES: Final = "rules"
GRADER: Final = "grader"
"""What Inspect calls the role of a judge."""

SHOWN: Final = 1024
"""Characters of a text that a summary holds."""

_STOPS: Final = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
}
_REASONS: Final = {
    FailureKind.EMPTY.value: "no_response",
    FailureKind.REFUSED.value: "refusal",
    FailureKind.CONTENT_FILTER.value: "refusal",
    FailureKind.TRUNCATED.value: "invalid_response_format",
    FailureKind.TOOL_CALL.value: "invalid_response_format",
}
"""Inspect's words for failures of the model; those of a judge are `grader_failed`, the rest keep ours."""


def scorer_name(source: Source, judge: JudgeResults) -> str:
    """What a judge is called as a scorer."""
    return "judge" if len(source.record.judges) == 1 else source.names[judge.judge.digest]


def inspect_sample(source: Source, answer: Answer, sample: Sample | None) -> Object:
    """The sample of one answer that has been asked; `sample` is given where prompt and reference are wanted."""
    prediction = answer.prediction
    assert prediction is not None, "a sample that was not asked is not in the log"
    ref, model = answer.ref, source.results.model
    task = source.samples.tasks[ref.domain]
    prompt = [] if sample is None else [_message(one.role, one.content) for one in predict_messages(sample)]
    reply = [_reply(prediction, model)] if prediction.text is not None or prediction.observation else []
    verdicts = [one.verdict for judged in answer.judged.values() for one in judged.readings if one.verdict]
    usage = {name: some for name, some in _usages(source, answer) if some is not None}
    grading = _sum(verdicts)
    return {
        "id": ref.id,
        "epoch": answer.epoch,
        "input": prompt or f"{ref.id} (its texts are not in this log)",
        "target": "" if sample is None else reference_observation(sample, task),
        "messages": prompt + reply,
        "output": _output(prediction, model),
        "scores": _scores(source, answer),
        "metadata": _metadata(answer, prediction),
        "store": {},
        "events": [],
        "model_usage": usage,
        "role_usage": {} if grading is None else {GRADER: grading},
        **_times(prediction, verdicts),
        "uuid": digest([source.record.created_at, ref.id, answer.epoch])[:22],
        "error": _error(source, answer),
        "error_retries": _retries(prediction) or None,
        "attachments": {},
    }


def summary_of(sample: Object) -> Object:
    """What `summaries.json` holds of a sample: its long texts cut."""
    kept = (
        "id", "epoch", "model_usage", "role_usage", "started_at", "completed_at", "total_time", "working_time", "uuid",
    )  # fmt: skip
    scores = {
        name: {
            "value": score["value"],
            "answer": _cut(score["answer"]),
            "explanation": _cut(score["explanation"]),
            "reason": score["reason"],
            "metadata": {},
            "history": [],
        }
        for name, score in sample["scores"].items()
    }
    first = sample["input"]
    return {name: sample[name] for name in kept} | {
        "input": _cut(first)
        if isinstance(first, str)
        else [{**one, "content": _cut(one["content"])} for one in first],
        "target": _cut(sample["target"]),
        "metadata": {
            name: _cut(value) if isinstance(value, str) else value
            for name, value in sample["metadata"].items()
            if not isinstance(value, list | dict)
        },
        "scores": scores,
        "error": _cut(sample["error"]["message"]) if sample["error"] else None,
        "retries": len(sample["error_retries"]) if sample["error_retries"] else None,
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def usage_of(usage: Usage, cost: float | None = None) -> Object | None:
    """Tokens as Inspect counts them (`input_tokens` without those of a cache); None where nothing is known."""
    if usage == Usage():
        return None
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {
        "input_tokens": max(0, prompt - cached - written),
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "input_tokens_cache_write": usage.cache_write_tokens,
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_cost": cost,
    }


def _message(role: str, content: Any) -> Object:
    return {"role": role, "content": content}


def _reply(prediction: Prediction, model: str) -> Object:
    content: Any = reply_of(prediction)
    if prediction.reasoning:
        thought = {"type": "reasoning", "reasoning": prediction.reasoning, "redacted": False}
        content = [thought, {"type": "text", "text": content}]
    return _message("assistant", content) | {"source": "generate", "model": model}


def _output(prediction: Prediction, model: str) -> Object:
    failure = prediction.failure
    stop = _STOPS.get(prediction.finish_reason or "", "unknown")
    if failure is not None and failure.kind is FailureKind.CONTEXT_OVERFLOW:
        stop = "model_length"
    output: Object = {
        "model": prediction.model_served or model,
        "choices": [{"message": _reply(prediction, model), "stop_reason": stop}],
        "completion": reply_of(prediction),
        "usage": usage_of(prediction.usage, prediction.cost_usd),
        "time": prediction.seconds,
        "response_id": prediction.response_id,
    }
    if failure is not None:
        output["error"] = f"{failure.kind.value}: {failure.message}"
    return output


def _scores(source: Source, answer: Answer) -> Object:
    found = {}
    for judge in source.judges:
        if answer.judged[judge.judge.digest].outcome.stage in ("", "judge"):
            found[scorer_name(source, judge)] = _judged(answer, judge)
    metrics = answer.metrics
    if metrics is not None and metrics.failed is None:
        rule_score = answer.rule_score(source.samples.tasks[answer.ref.domain].primary)
        value = metrics.values if rule_score is None else {RULE_SCORE: rule_score, **metrics.values}
        why = [f"{name}: {reason}" for name, reason in metrics.reasons.items()]
        found[RULES] = _score(value, "\n".join(why) or None, {"copying_before": metrics.baseline})
    return found


def _judged(answer: Answer, judge: JudgeResults) -> Object:
    judged = answer.judged[judge.judge.digest]
    observation = answer.prediction.observation if answer.prediction else None
    explanation = "\n\n".join(_explained(one, judged.official) for one in judged.readings)
    metadata: Object = {
        "judge": judge.judge.model,
        "digest": judge.judge.digest,
        "protocol": judge.judge.protocol,
        "reading": judge.judge.parse,
        "verdicts": [_integers(one, judged.official) for one in judged.readings],
    }
    values: Mapping[str, float | None] = judged.score.exclude
    reason = None
    if judged.outcome.values is None:
        values, reason = dict.fromkeys(COLUMNS), "grader_failed"
    return _score(dict(values), explanation, metadata) | {"answer": observation, "reason": reason}


def _score(value: Mapping[str, float | None], explanation: str | None, metadata: Object) -> Object:
    return {
        "value": dict(value),
        "answer": None,
        "explanation": explanation,
        "reason": None,
        "metadata": metadata,
        "history": [],
    }


def _integers(both: BothReadings, official: bool) -> dict[str, int] | None:
    """The judge's own numbers, 1-5 by dimension."""
    verdict = both.verdict
    if verdict is None:
        return None
    if not official:
        return verdict.scores
    read = officially_read(verdict)
    return read.scores if read is not None and read.success else None


def _explained(both: BothReadings, official: bool) -> str:
    """A verdict in words, as Markdown: its numbers, strengths and weaknesses, or why there are no numbers."""
    outcome = both.official if official else both.strict
    head = f"Repeat {both.repeat}: " if both.repeat > 1 else ""
    verdict, scores = both.verdict, _integers(both, official)
    if verdict is None or scores is None or outcome.values is None:
        return f"{head}no score: {told(outcome)}"
    lines = [head + ", ".join(f"{name} {scores.get(name)}" for name in DIMENSIONS)]
    read = officially_read(verdict) if official else None
    parts: tuple[tuple[str, Sequence[str]], ...] = (
        ("Strengths", read.strengths if read else verdict.strengths),
        ("Weaknesses", read.weaknesses if read else verdict.weaknesses),
    )
    for title, some in parts:
        lines += ["", f"{title}:", "", *(f"- {one}" for one in some)] if some else []
    return "\n".join(lines)


def _error(source: Source, answer: Answer) -> Object | None:
    """The error of a sample: its prediction failed, and no judge that was chosen scored it all the same."""
    outcomes = [failure_of(answer, one.judge) for one in source.judges] or [failure_of(answer, None)]
    failed = [one for one in outcomes if one is not None and one.stage == "prediction"]
    if not failed or len(failed) < len(outcomes):
        return None
    return {"message": told(failed[0]), "traceback": "", "traceback_ansi": ""}


def _retries(prediction: Prediction) -> list[Object]:
    """Requests that failed and were followed by another."""
    return [
        {"message": f"{one.outcome}: {one.message or ''}", "traceback": "", "traceback_ansi": ""}
        for one in prediction.attempts[:-1]
        if one.outcome != "ok"
    ]


def _metadata(answer: Answer, prediction: Prediction) -> Object:
    ref, failure = answer.ref, prediction.failure
    return {
        "domain": ref.domain,
        "turn": ref.turn_idx,
        "turns": ref.total_turns,
        "trajectory": ref.cluster,
        "row_sha256": ref.row_hash,
        "prompt_sha256": prediction.prompt_sha256,
        "failure": failure.kind.value if failure else None,
        "failure_reason": _REASONS.get(failure.kind.value, failure.kind.value) if failure else None,
        "finish_reason": prediction.finish_reason,
        "model_served": prediction.model_served,
        "dropped_turns": prediction.dropped_turns,
        "from_cache": prediction.cached_usage is not None,
        "notes": list(prediction.notes),
        "adapted": prediction.adapted,
    }


def _usages(source: Source, answer: Answer) -> list[tuple[str, Object | None]]:
    """Usage by model string: the model's, and each judge's."""
    prediction = answer.prediction
    assert prediction is not None
    asked: dict[str, list[Asked]] = {source.results.model: [prediction]}
    for judge in source.judges:
        for one in answer.judged[judge.judge.digest].readings:
            if one.verdict is not None:
                asked.setdefault(judge.judge.model, []).append(one.verdict)
    return [(name, _sum(some)) for name, some in asked.items()]


def _sum(asked: Sequence[Asked]) -> Object | None:
    """Usage of several requests together; their cost only where each is known."""
    costs = [one.cost_usd for one in asked if one.cost_usd is not None]
    usage = sum((one.usage for one in asked), Usage())
    return usage_of(usage, sum(costs) if costs and len(costs) == len(asked) else None)


def _times(prediction: Prediction, verdicts: Sequence[Asked]) -> Object:
    """From the first request to the last answer; working time is what the requests took. A record without a time, or with
    one that no calendar has, takes no part."""
    told = [(moment(one.started_at or ""), one.seconds or 0.0) for one in (prediction, *verdicts)]
    known = [(start, _after(start, seconds)) for start, seconds in told if start is not None]
    if not known:
        return dict.fromkeys(("started_at", "completed_at", "total_time", "working_time"))
    begun = min(start for start, _ in known)
    ended = max(end for _, end in known)
    return {
        "started_at": begun.isoformat(),
        "completed_at": ended.isoformat(),
        "total_time": (ended - begun).total_seconds(),
        "working_time": sum((end - start).total_seconds() for start, end in known),
    }


def _after(start: datetime, seconds: float) -> datetime:
    """So many seconds later; the start itself where that is before it, or after all that a calendar has."""
    try:
        return start + timedelta(seconds=max(0.0, seconds))
    except OverflowError:
        return start


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= SHOWN else text[:SHOWN] + "…"
