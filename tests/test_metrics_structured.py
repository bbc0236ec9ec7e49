"""Readers and metrics of structured output: envelopes, statuses, what Python prints, odd texts, bundled rows.

Values computed by hand stand in `cases/metrics/structured.yaml` (run by `test_metrics.py`), how each text is read in
`cases/metrics/tool_results.yaml`.
"""

from __future__ import annotations

import json
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.records import Sample
from agentworldbench.resources import mini_folder
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.scoring.metrics.json_payload import NotJson, Payload, flatten, read_payload
from agentworldbench.scoring.metrics.python_literal import read_literal
from agentworldbench.scoring.metrics.shell_envelope import read_shell_envelope
from agentworldbench.scoring.metrics.structured import METRICS
from agentworldbench.scoring.metrics.tool_status import status
from agentworldbench.task import Structured, Task, load_tasks
from tests.test_metrics import made
from tools.damage import OPERATORS, STRENGTHS, mean, rule_score

TASKS = load_tasks()
MCP = TASKS["mcp"]
CASES: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "cases" / "metrics" / "tool_results.yaml").read_text(encoding="utf-8")
)
STATUSES = [(end, text) for end, texts in CASES["status"].items() for text in texts]
TEXTS = [text for _, text in STATUSES] + [text for texts in CASES["same"].values() for text in texts]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
).filter(lambda value: isinstance(value, list | dict))


def score(metric: str, reference: str, prediction: str, task: Task = MCP) -> float | None:
    """Value of one metric; None where it does not apply."""
    return score_observation(made(task.domain, reference), task, prediction).values.get(metric)


@cache
def mini(domain: str) -> list[Sample]:
    task = TASKS[domain]
    dataset = open_dataset({domain: mini_folder() / task.data_file}, {domain: task})
    return [dataset.load(ref) for ref in dataset.refs]


@pytest.mark.parametrize(("end", "text"), STATUSES, ids=[f"{end}: {text[:40]!r}" for end, text in STATUSES])
def test_how_a_call_ended(end: str, text: str) -> None:
    found = read_payload(text)
    assert status(None if isinstance(found, NotJson) else found, text) == (end, "error" in end)


@pytest.mark.parametrize("name", CASES["same"])
def test_one_payload_in_many_envelopes(name: str) -> None:
    texts = CASES["same"][name]
    for text in texts:
        for other in texts:
            assert score("value_f1", text, other) == 1.0, other


@pytest.mark.parametrize("text", CASES["payload"])
def test_what_only_looks_like_an_envelope_is_payload(text: str) -> None:
    found = read_payload(text)
    assert isinstance(found, Payload)
    assert found.value == json.loads(text)
    assert not found.envelope


@pytest.mark.parametrize("case", CASES["literals"], ids=lambda case: str(case["text"]))
def test_what_python_prints(case: dict[str, Any]) -> None:
    assert read_literal(case["text"]) == case["says"]


def as_json(value: Any) -> Any:
    """A printed value as the reader gives it: keys are text."""
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    return [as_json(inner) for inner in value] if isinstance(value, list | tuple) else value


@settings(deadline=None, max_examples=60)
@given(documents)
def test_everything_python_prints_is_read(value: Any) -> None:
    assert read_literal(repr(value)) == as_json(value)
    assert read_literal(repr((value, 1))) == [as_json(value), 1]


@settings(deadline=None, max_examples=50)
@given(documents, st.integers(1, 3))
def test_json_in_strings_is_unpacked_to_the_end(value: Any, depth: int) -> None:
    text: Any = json.dumps(value)
    plain = flatten(value)
    for _ in range(depth):
        text = json.dumps(text)
        found = read_payload(text)
        assert isinstance(found, Payload)
        assert (found.flat.leaves, found.flat.schema) == (plain.leaves, plain.schema)
        assert flatten({"a": text}).leaves == flatten({"a": value}).leaves


@settings(deadline=None, max_examples=50)
@given(documents, documents, st.booleans())
def test_values_compare_as_they_should(one: Any, other: Any, wrapped: bool) -> None:
    def text(value: Any) -> str:
        part = {"type": "text", "text": json.dumps(value), "annotations": None}
        inner = {"content": [part], "structuredContent": {"result": value}, "isError": False}
        return json.dumps(inner if wrapped else value)

    for metric in ("schema_f1", "value_f1"):
        assert score(metric, text(one), text(one)) == 1.0
        forward, backward = score(metric, text(one), text(other)), score(metric, text(other), text(one))
        assert forward == backward or metric == "value_f1"  # floats lend their tolerance one way only
        assert forward is not None and 0.0 <= forward <= 1.0


odd = st.one_of(
    st.text(),
    st.text("[]{}(),:'\"\\ 01aeE.-\n\0\ud800"),
    st.sampled_from(TEXTS).flatmap(
        lambda text: st.builds(
            lambda cut, more: text[: len(text) - cut] + more, st.integers(0, 20), st.text("]}\"'x1")
        )
    ),
)


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(TEXTS), odd)
def test_odd_texts_score_from_0_to_1(text: str, prediction: str) -> None:
    facts = Facts(made("mcp", text), MCP)
    applicable = [metric for metric in METRICS.values() if metric.applies(facts)]
    for candidate in (prediction, text + prediction, json.dumps({"type": "text", "text": prediction})):
        for metric in applicable:
            value = metric.score(facts, normalise(candidate))
            assert not isinstance(value, float) or 0.0 <= value <= 1.0
    for metric in applicable:
        assert metric.score(facts, facts.reference) == 1.0


@pytest.mark.parametrize(
    "prediction", ["no bracket", '{"a": 1', '"text"', "[" * 100_000, "[1" + "0" * 5000 + "]"]
)
def test_what_cannot_be_read_is_0_with_a_reason(prediction: str) -> None:
    scored = score_observation(made("mcp", '["a", "b"]'), MCP, prediction)
    assert "payload_rouge_l" not in scored.reasons  # compared as it stands
    for metric in set(METRICS) - {"payload_rouge_l"}:
        assert scored.values[metric] == 0.0
        assert scored.reasons[metric].startswith("not JSON")


@pytest.mark.parametrize("case", CASES["envelopes"], ids=lambda case: str(case["text"])[:40])
def test_command_envelopes(case: dict[str, Any]) -> None:
    assert read_shell_envelope(case["text"]) == case["fields"]


def test_the_task_gives_tolerance_and_ordered_lists() -> None:
    wide = MCP.model_copy(update={"structured": Structured(tolerance=0.1, ordered=("tags[]",))})
    assert score("value_f1", '{"x": 10.5, "n": 10}', '{"x": 10.0, "n": 11}', wide) == 0.5
    assert score("value_f1", '{"x": 10.5}', '{"x": 9.0}', wide) == 0.0
    assert score("order_match", '{"tags": [1, 2]}', '{"tags": [2, 1]}', wide) == 0.5
    assert score("order_match", "[1, 2]", "[2, 1]", wide) is None


@pytest.mark.parametrize("domain", ["mcp", "swe"])
def test_bundled_rows_are_read_and_score_1(domain: str) -> None:
    for sample in mini(domain):
        facts = Facts(sample, TASKS[domain])
        for name, metric in METRICS.items():
            if metric.applies(facts):
                assert metric.score(facts, facts.reference) == 1.0, (sample.id, name)
        assert domain == "swe" or METRICS["value_f1"].applies(facts), sample.id


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_more_damage_never_scores_better(operator: str, metric: str) -> None:
    means = [mean("mcp", operator, strength, metric) or 0.0 for strength in STRENGTHS]
    assert means[0] == 1.0
    assert means == sorted(means, reverse=True)
    kept = {
        "wrong_number": {"status_match", "schema_f1"},
        "wrong_status": {"schema_f1", "value_f1", "payload_rouge_l", "order_match"},
    }
    assert (means[1] == 1.0) == (metric in kept.get(operator, set()))


def test_the_rule_score_falls_in_order() -> None:
    scores = {operator: rule_score("mcp", operator, 1) or 0.0 for operator in OPERATORS}
    assert 100 > scores["wrong_number"] > 90 > scores["wrong_status"] > 50
    assert scores["wrong_status"] > max(scores["another_observation"], scores["stale_copy"]) > scores["empty"]
    assert scores["padding"] < 20 and scores["empty"] == 0


HOSTILE = {
    "strings that look like lists": json.dumps(["[(", "[1)]"] * 20_000),
    "a list as Python prints it": json.dumps(["[" + "'a', " * 50_000 + "]"]),
    "deep, with lists that are long": "[" * 800 + "1," * 150_000 + "1" + "]" * 800,
    "keys of a deep object": '{"aaaaaaaa":' * 800
    + json.dumps({f"k{n}": n for n in range(20_000)})
    + "}" * 800,
    "fields": "Command: x\nDirectory: y\nOutput: " + "Error: x\n" * 40_000 + "Exit Code: 0",
    "quotes that do not end": json.dumps(["['" + "\\" * 150_000 + "]"]),
}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_long_texts_are_read_in_time(name: str) -> None:
    """Nothing may take time that grows with the square of the text; the timeout is generous."""
    facts = Facts(made("mcp", json.dumps([{"id": n, "name": f"n{n}"} for n in range(700)])), MCP)
    for metric in METRICS.values():
        value = metric.score(facts, HOSTILE[name])
        assert not isinstance(value, float) or 0.0 <= value < 1.0 or metric is METRICS["status_match"]


def test_calls_in_calls_are_read_in_time() -> None:
    text = "[" + "a(" * 100_000 + ")" * 100_000 + "]"
    start = time.process_time()
    assert read_literal(text) == [text[1:-1]]
    assert time.process_time() - start < 3  # ten seconds and more where every call's text is kept


@pytest.mark.shared
def test_real_rows_are_read_and_score_1() -> None:
    path = Path(os.environ["AWB_SHARED"]) / "real_rows" / "ground_truths.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["task"] in ("mcp", "swe")]
    assert len(rows) == 4
    for row in rows:
        text = row["ground_truth"].removeprefix("**Environment Observation:**\n")
        facts = Facts(made(row["task"], text), TASKS[row["task"]])
        applicable = {name for name, metric in METRICS.items() if metric.applies(facts)}
        assert all(METRICS[name].score(facts, facts.reference) == 1.0 for name in applicable)
        if row["task"] == "mcp" and row["complete"]:
            assert applicable >= {"status_match", "schema_f1", "value_f1"}
