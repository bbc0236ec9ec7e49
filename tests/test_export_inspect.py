"""`awb export inspect`: the log has the form that Inspect prints as its schema, and the run's own numbers.

inspect-ai is in no lock of this project: `tools/check_exports.py` opens a log with it, by hand.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentworldbench.integrations.export_source import open_source
from agentworldbench.integrations.inspect_export import export_inspect
from agentworldbench.integrations.inspect_samples import SHOWN, summary_of, usage_of
from agentworldbench.records import Usage
from agentworldbench.run import Run
from tests.helpers.export_runs import EACH, EPOCHS, REPEATS, TASKS, THOUGHT, make_runs, members_of, trimmed

pytestmark = pytest.mark.usefixtures("quick_retries")
CASES = Path(__file__).parent / "cases" / "export"
NAMES = ("one", "many", "two", "none", "part")
COLUMNS = ("total", "format", "factuality", "consistency", "realism", "quality")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, quick_retries: None) -> dict[str, Run]:
    return make_runs(tmp_path_factory.mktemp("runs"), *NAMES)


@pytest.fixture(scope="module")
def logs(runs: dict[str, Run], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The members of each run's log by name."""
    folder = tmp_path_factory.mktemp("logs")
    return {name: members_of(export_inspect(run.path, folder / name).paths[0]) for name, run in runs.items()}


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((CASES / "inspect_log.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema | {"$ref": f"#/$defs/{kind}"})


def samples_of(log: dict[str, Any]) -> list[dict[str, Any]]:
    return [value for name, value in log.items() if name.startswith("samples/")]


@pytest.mark.parametrize("name", NAMES)
def test_every_member_fits_inspects_schema(logs: dict[str, dict[str, Any]], name: str) -> None:
    log = logs[name]
    validator("EvalLog").validate(log["header.json"])
    for sample in samples_of(log):
        validator("EvalSample").validate(sample)
    for summary in log["summaries.json"]:
        validator("EvalSampleSummary").validate(summary)
    for reduction in log["reductions.json"]:
        validator("EvalSampleReductions").validate(reduction)
    start = log["_journal/start.json"]
    assert start == {key: log["header.json"][key] for key in ("version", "eval", "plan")}
    kinds = {"header.json", "summaries.json", "reductions.json", "_journal/start.json"}
    named = {f"samples/{one['id']}_epoch_{one['epoch']}.json" for one in log["summaries.json"]}
    assert set(log) == kinds | named


def test_the_schema_would_notice_a_field_that_inspect_does_not_have(logs: dict[str, dict[str, Any]]) -> None:
    header = logs["one"]["header.json"]
    with pytest.raises(jsonschema.ValidationError):
        validator("EvalLog").validate(header | {"verdict": 1})
    with pytest.raises(jsonschema.ValidationError):
        validator("EvalLog").validate(header | {"eval": {**header["eval"], "created": None}})


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_a_sample_and_failures_are_errors(
    runs: dict[str, Run], logs: dict[str, dict[str, Any]], name: str
) -> None:
    run, log = runs[name], logs[name]
    stored = {one.key: one for one in run.predictions()}
    samples = {(one["id"], one["epoch"]): one for one in samples_of(log)}
    assert samples.keys() == stored.keys()
    for key, sample in samples.items():
        failure = stored[key].failure
        if failure is None:
            assert sample["error"] is None
        else:
            assert sample["error"]["message"] == f"prediction: {failure.kind.value}: {failure.message}"
            assert sample["scores"] == {}
    results = log["header.json"]["results"]
    assert results["total_samples"] == len(TASKS) * EACH * (EPOCHS if name == "many" else 1)
    assert results["completed_samples"] == sum(one.failure is None for one in stored.values())
    assert log["header.json"]["status"] == ("cancelled" if name == "part" else "success")
    assert {one["failure"] for one in (sample["metadata"] for sample in samples.values())} == {
        None, "empty", "bad_request", "truncated",
    }  # fmt: skip
    assert [one["id"] for one in log["summaries.json"]] == [one["id"] for one in samples_of(log)]


@pytest.mark.parametrize("name", ["one", "many", "two"])
def test_scores_are_the_judges_and_their_means_the_results(
    runs: dict[str, Run], logs: dict[str, dict[str, Any]], name: str
) -> None:
    run, log = runs[name], logs[name]
    assert run.results is not None
    verdicts = {one.key: one for one in run.verdicts()}
    scores = {(one["scorer"], one["name"]): one for one in log["header.json"]["results"]["scores"]}
    for judge in run.results.judges:
        scorer = "judge" if name != "two" else judge.judge.model
        values: dict[str, list[dict[str, float]]] = {}
        for sample in samples_of(log):
            score = sample["scores"].get(scorer)
            if score is None:
                continue
            repeats = range(1, (REPEATS if name == "many" else 1) + 1)
            given = [
                verdicts[sample["id"], sample["epoch"], judge.judge.digest, repeat].scores
                for repeat in repeats
            ]
            assert score["metadata"]["verdicts"] == given
            if given[0] is None:
                assert set(score["value"].values()) == {None}
                assert (score["reason"], "judge_unparsed" in score["explanation"]) == ("grader_failed", True)
            else:
                assert "Strengths:\n\n- keeps the layout" in score["explanation"]
                assert score["value"]["format"] == (given[0]["format"] - 1) * 25
                values.setdefault(sample["id"], []).append(score["value"])
        whole = judge.strict.micro.exclude
        for column in COLUMNS:
            means = [sum(one[column] for one in some) / len(some) for some in values.values()]
            assert sum(means) / len(means) == pytest.approx(whole[column])
            metrics = scores[scorer, column]["metrics"]
            assert metrics["micro_exclude"]["value"] == whole[column]
            assert metrics["macro_floor"]["value"] == judge.macro_floor[column]
            assert metrics["swe_floor"] == {
                "name": "floor",
                "group": "swe",
                "value": judge.strict.domains["swe"].floor[column],
                "params": {},
            }
        interval = judge.macro_intervals.floor
        assert interval is not None
        total = scores[scorer, "total"]["metrics"]
        assert (total["stderr"]["value"], total["ci95_high"]["value"]) == (interval.se, interval.high)
        assert list(total)[:2] == ["macro_floor", "stderr"]
    headline = log["header.json"]["results"]["headline"]
    assert (headline["score"], headline["metric"]) == ("total", "macro_floor")
    assert (headline["scorer"], headline["score"]) in scores


def test_rules_are_a_scorer_and_the_headline_where_there_is_no_judge(
    runs: dict[str, Run], logs: dict[str, dict[str, Any]]
) -> None:
    results = runs["none"].results
    assert results is not None
    log = logs["none"]["header.json"]
    assert log["results"]["headline"] == {"scorer": "rules", "score": "rule_score", "metric": "macro_floor"}
    assert log["eval"]["model_roles"] is None
    first = log["results"]["scores"][0]
    assert (first["scorer"], first["name"]) == ("rules", "rule_score")
    assert first["metrics"]["macro_floor"]["value"] == results.rules.macro["rule_score"].floor
    stored = {one.sample_id: one.values for one in runs["none"].metrics() if one.failed is None}
    for sample in samples_of(logs["none"]):
        if sample["error"] is None:
            value = sample["scores"]["rules"]["value"]
            assert stored[sample["id"]].items() <= value.items()
            assert set(value) - set(stored[sample["id"]]) <= {"rule_score"}


def test_a_sample_holds_reply_reasoning_tokens_times_and_retries(
    runs: dict[str, Run], logs: dict[str, dict[str, Any]]
) -> None:
    stored = {one.sample_id: one for one in runs["one"].predictions()}
    told: list[str] = []
    for sample in samples_of(logs["one"]):
        prediction = stored[sample["id"]]
        retries = sample["error_retries"] or []
        assert len(retries) == max(0, len(prediction.attempts) - 1)
        told += [one["message"] for one in retries]
        usage, tokens = prediction.usage, sample["output"]["usage"]
        if usage.prompt_tokens is not None and usage.completion_tokens is not None:
            cached = usage.cached_tokens or 0
            assert tokens["input_tokens"] + cached == usage.prompt_tokens
            assert tokens["total_tokens"] == usage.prompt_tokens + usage.completion_tokens
            assert sample["model_usage"]["openai-api/world"] == tokens
        if prediction.text:
            reply = sample["messages"][-1]
            content = reply["content"]
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            assert parts[-1]["text"] == prediction.text == sample["output"]["completion"]
            assert [one["reasoning"] for one in parts[:-1]] == [THOUGHT] * bool(prediction.reasoning)
        assert sample["output"]["choices"][0]["stop_reason"] == (
            {"stop": "stop", "length": "max_tokens"}.get(prediction.finish_reason or "", "unknown")
        )
        assert sample["started_at"] <= sample["completed_at"]
        assert sample["total_time"] >= 0 and sample["working_time"] >= 0
    assert any(one.startswith("provider_error: ") for one in told), "one must come at the second try"


def test_references_become_input_and_target(runs: dict[str, Run], tmp_path: Path) -> None:
    written = export_inspect(runs["one"].path, tmp_path, references=True)
    for sample in samples_of(members_of(written.paths[0])):
        validator("EvalSample").validate(sample)
        validator("EvalSampleSummary").validate(summary_of(sample))
        assert sample["target"]
        assert sample["input"][-1]["role"] == "user"
        assert sample["messages"][: len(sample["input"])] == sample["input"]
        summary = summary_of(sample)
        assert max(len(one["content"]) for one in summary["input"]) <= SHOWN + 1


def test_one_judge_can_be_chosen(runs: dict[str, Run], tmp_path: Path) -> None:
    written = export_inspect(runs["two"].path, tmp_path, judge="openai-api/judge-b")
    header = members_of(written.paths[0])["header.json"]
    assert {one["scorer"] for one in header["results"]["scores"]} == {"openai-api/judge-b", "rules"}
    assert [one["model"] for one in header["eval"]["model_roles"]["grader"]] == ["openai-api/judge-b"]


def test_tokens_are_counted_as_inspect_counts_them() -> None:
    usage = Usage(
        prompt_tokens=100, cached_tokens=60, cache_write_tokens=10, completion_tokens=7, reasoning_tokens=3
    )
    found = usage_of(usage, 0.5)
    assert found is not None
    assert (found["input_tokens"], found["total_tokens"], found["total_cost"]) == (30, 107, 0.5)
    assert usage_of(Usage()) is None


def test_the_header(runs: dict[str, Run], logs: dict[str, dict[str, Any]]) -> None:
    header = logs["one"]["header.json"]
    assert header["eval"]["dataset"]["sample_ids"] == [
        ref.id for ref in open_source(runs["one"].path).samples.refs
    ]
    scores = header["results"]["scores"]
    kept = {**header, "results": {**header["results"], "scores": [scores[0], scores[6]]}}
    gone = {"packages", "sample_ids", "harness", "revision", "metadata", "model_usage", "params"}
    found = trimmed(kept, gone)
    golden = CASES / "inspect_header.json"
    text = json.dumps(found, indent=1) + "\n"
    assert text == golden.read_text(encoding="utf-8"), f"when the change is wanted, {golden} is:\n{text}"
