"""The readers of what tools answer to coding agents, and their metrics: each form, every bundled row, odd texts.

Values computed by hand stand in `cases/metrics/swe.yaml` (run by `test_metrics.py`), what the readers find in each
form in `cases/metrics/swe_texts.yaml`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
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
from agentworldbench.scoring.metrics.base import Unparsable
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.scoring.metrics.runners import summaries
from agentworldbench.scoring.metrics.swe import METRICS
from agentworldbench.scoring.metrics.swe_reader import diff_facts, exit_code, numbered_lines
from agentworldbench.task import load_tasks
from tests.test_metrics import made

TASK = load_tasks()["swe"]
TEXTS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "cases" / "metrics" / "swe_texts.yaml").read_text(encoding="utf-8")
)
CASES = [
    *TEXTS["numbered"].values(),
    *TEXTS["diffs"].values(),
    *TEXTS["exit_codes"],
    *TEXTS["summaries"],
]
SHAPES = [case["text"] for case in CASES if case["text"]]


def scored(facts: Facts, prediction: str) -> dict[str, float]:
    """Values of this family's applicable metrics."""
    text = normalise(prediction)
    found = {name: metric.score(facts, text) for name, metric in METRICS.items() if metric.applies(facts)}
    return {name: 0.0 if isinstance(value, Unparsable) else value for name, value in found.items()}


@pytest.mark.parametrize("name", TEXTS["numbered"])
def test_numbered_lines(name: str) -> None:
    case = TEXTS["numbered"][name]
    # A line without a path stands under the empty one.
    expected = [line if not line[0].isdigit() else f":{line}" for line in case["lines"]]
    assert numbered_lines(case["text"]) == Counter(expected)


@pytest.mark.parametrize("case", TEXTS["exit_codes"], ids=lambda case: case["text"][-40:])
def test_exit_codes(case: dict[str, str]) -> None:
    assert exit_code(case["text"]) == case.get("code")


@pytest.mark.parametrize("case", TEXTS["summaries"], ids=lambda case: case["text"][-40:])
def test_summaries(case: dict[str, Any]) -> None:
    assert summaries(case["text"]) == Counter(case["found"])


@pytest.mark.parametrize("name", TEXTS["diffs"])
def test_diffs(name: str) -> None:
    case = TEXTS["diffs"][name]
    assert diff_facts(case["text"]) == Counter(case["found"])


@pytest.mark.parametrize("text", SHAPES, ids=lambda text: text[:40])
def test_the_reference_is_right_in_every_shape(text: str) -> None:
    result = score_observation(made("swe", text), TASK, text)
    assert set(result.values.values()) == {1.0}
    assert result.reasons == {}


@cache
def mini() -> list[Sample]:
    dataset = open_dataset({"swe": mini_folder() / TASK.data_file}, {"swe": TASK})
    return [dataset.load(ref) for ref in dataset.refs]


def test_the_reference_is_right_on_every_bundled_row() -> None:
    counts = dict.fromkeys(METRICS, 0)
    for sample in mini():
        facts = Facts(sample, TASK)
        for name, value in scored(facts, facts.reference).items():
            assert value == 1.0, (sample.id, name)
            counts[name] += 1
    assert counts == {
        "numbered_line_f1": 18,
        "exit_code_match": 22,
        "test_counts_match": 14,
        "diff_f1": 0,
    }


@pytest.mark.shared
def test_the_reference_is_right_on_real_rows() -> None:
    rows = (Path(os.environ["AWB_SHARED"]) / "real_rows" / "ground_truths.jsonl").read_text(encoding="utf-8")
    texts = [
        row["ground_truth"].partition("\n")[2]
        for line in rows.split("\n")
        if line and (row := json.loads(line))["task"] == "swe"
    ]
    assert texts
    for text in texts:
        result = score_observation(made("swe", text), TASK, text)
        assert set(result.values.values()) == {1.0}
        assert result.reasons == {}


lines = st.lists(st.text(st.sampled_from("ab :+-→\t3"), max_size=8), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60)
@given(content=lines, start=st.integers(1, 10_000))
def test_a_numbered_file_is_read_back(content: list[str], start: int) -> None:
    shown = "\n".join(f"{start + index:6d}→{line}" for index, line in enumerate(content))
    expected = Counter(f":{start + index}:{line}" for index, line in enumerate(content))
    assert numbered_lines(shown) == expected == numbered_lines(shown.lstrip())


@settings(deadline=None, max_examples=60)
@given(old=lines, new=lines)
def test_a_diff_is_read_back(old: list[str], new: list[str]) -> None:
    ranges = f"1,{len(old)} 1,{len(new)}"
    head = "--- a/w/x\n+++ b/w/x\n@@ -" + ranges.replace(" ", " +") + " @@"
    changed = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    found = diff_facts("\n".join([head, *changed, "--- a/y"]))
    assert found == Counter([f"w/x @@ {ranges}", *(f"w/x {line}" for line in changed)])


odd = st.lists(
    st.sampled_from(["1→", "@@ -1,9 +1 @@", "--- a", "+++ b", "-", "+x", "Exit Code:", " ", "\n", "9" * 30, "a.py:3:", "\x00", "\ud800", "Ran 2 tests in 1s", "FAILED (", "2 passed in 1s", "3c3", "< a", "{", '"exit_code": 1', "文"]),
    max_size=12,
).map("".join)  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(reference=st.one_of(odd, st.sampled_from(SHAPES)), prediction=odd)
def test_odd_texts_are_scored(reference: str, prediction: str) -> None:
    facts = Facts(made("swe", reference), TASK)
    right = scored(facts, reference)
    assert set(right.values()) <= {1.0}
    for text in (prediction, reference + prediction, "\n".join([reference] * 4)):
        values = scored(facts, text)
        assert set(values) == set(right)
        assert all(0.0 <= value <= 1.0 for value in values.values())


READERS: dict[str, Callable[[str], Any]] = {
    "numbered_line_f1": numbered_lines,
    "exit_code_match": exit_code,
    "test_counts_match": summaries,
    "diff_f1": diff_facts,
}
BEGINNING = "\n".join(SHAPES)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["a", "src/a.py:12:x", "1 passed, " * 12])
@pytest.mark.parametrize("metric", METRICS)
def test_a_megabyte_is_read_in_time(metric: str, line: str) -> None:
    text = f"{BEGINNING}\n" + f"{line}\n" * (1_000_000 // (len(line) + 1))
    start = time.process_time()
    assert READERS[metric](text)
    assert time.process_time() - start < 2  # the law says 1; the rest is for slow machines
