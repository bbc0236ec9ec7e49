"""Readers of screens and pages, and their metrics: each form, every bundled row, odd texts, copies.

Values computed by hand stand in `cases/metrics/ui_tree.yaml` (run by `test_metrics.py`), what the readers make of
each form in `cases/metrics/screens.yaml`.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.models.baseline import copy_last
from agentworldbench.prompts import reference_observation
from agentworldbench.records import Sample
from agentworldbench.resources import mini_folder
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.facts import normalise
from agentworldbench.scoring.metrics.ui_nodes import Node, overlap
from agentworldbench.scoring.metrics.ui_tree import METRICS, READERS
from agentworldbench.task import load_tasks
from tests.test_metrics import made

TASKS = {domain: task for domain, task in load_tasks().items() if task.observation == "snapshot"}
BY_NAME = {reader.__name__: reader for reader in READERS}
SCREENS: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "cases" / "metrics" / "screens.yaml").read_text(encoding="utf-8")
)
CASES = [(reader, name) for reader, cases in SCREENS.items() for name in cases]
DOMAIN_OF = {"read_phone": "android", "read_table": "os", "read_playwright": "web"}
TEXTS = [case["text"] for cases in SCREENS.values() for case in cases.values()]


@cache
def mini(domain: str) -> list[Sample]:
    task = TASKS[domain]
    dataset = open_dataset({domain: mini_folder() / task.data_file}, {domain: task})
    return [dataset.load(ref) for ref in dataset.refs]


def shown(node: Node) -> list[Any]:
    """A node as the cases write it: what is empty at the end is left out."""
    values: list[Any] = [
        node.role,
        node.name,
        node.value,
        list(node.state),
        node.bounds and list(node.bounds),
    ]
    while len(values) > 2 and not values[-1]:
        values.pop()
    return values


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_each_form_is_read(reader: str, name: str) -> None:
    case = SCREENS[reader][name]
    screen = BY_NAME[reader](normalise(case["text"]))
    expected = [[*node[:4], *map(pytest.approx, node[4:])] for node in case["nodes"]]
    assert [shown(node) for node in screen.nodes] == expected
    assert [list(part) for part in screen.page] == case.get("page", [])
    assert (None if screen.focus is None else list(screen.focus)) == case.get("focus")
    assert screen.known == case.get("known", bool(case["nodes"]))


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_the_other_readers_leave_a_form_alone(reader: str, name: str) -> None:
    text = normalise(SCREENS[reader][name]["text"])
    known = [other for other, read in BY_NAME.items() if read(text).known]
    assert known in ([], [reader])


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_each_form_scores_1_against_itself(reader: str, name: str) -> None:
    text, domain = SCREENS[reader][name]["text"], DOMAIN_OF[reader]
    scored = score_observation(made(domain, text, previous="x"), TASKS[domain], text)
    assert set(scored.values.values()) == {1.0}
    assert not scored.reasons
    if any("<" not in node[0] for node in SCREENS[reader][name]["nodes"]):
        assert "node_f1" in scored.values


WRAPPINGS = {
    "a fence": "```\n{}\n```",
    "text around": "The screen is now:\n\n{}\n\nThat is all.",
    "a heading": "**Current State:**\n{}",
    "DOS line ends": "{}",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize(("reader", "name"), CASES)
def test_nodes_are_the_same_in_another_wrapping(reader: str, name: str, wrapping: str) -> None:
    text = SCREENS[reader][name]["text"]
    if wrapping == "DOS line ends":
        text = text.replace("\n", "\r\n")
    plain, wrapped = (BY_NAME[reader](normalise(some)) for some in (text, WRAPPINGS[wrapping].format(text)))
    assert wrapped.nodes == plain.nodes
    assert wrapped.page == plain.page


@pytest.mark.parametrize("domain", TASKS)
def test_every_bundled_row_is_read_and_scores_1(domain: str) -> None:
    task = TASKS[domain]
    listed = [name for name in task.metrics if name in METRICS]
    applied: set[str] = set()
    for sample in mini(domain):
        reference = reference_observation(sample, task)
        known = [DOMAIN_OF[name] for name, reader in BY_NAME.items() if reader(normalise(reference)).known]
        assert known == [domain], sample.id
        scored = score_observation(sample, task, reference)
        assert not scored.reasons
        values = {name: scored.values[name] for name in listed if name in scored.values}
        assert set(values.values()) <= {1.0}, sample.id
        applied |= set(values)
    assert applied == set(listed)


@pytest.mark.parametrize("domain", TASKS)
def test_copying_keeps_the_nodes_and_misses_every_change(domain: str) -> None:
    kinds = []
    for sample in mini(domain):
        values = score_observation(sample, TASKS[domain], copy_last(sample, TASKS[domain])).values
        assert values.get("active_change_f1", 0) == 0
        kinds += [values["node_f1"]] if "node_f1" in values else []
    assert len(kinds) >= 20
    assert fmean(kinds) > 0.7


FRAGMENTS = st.sampled_from(
    [line for text in TEXTS for line in text.split("\n")]
    + [
        "```",
        "```yaml",
        '"',
        "'",
        "- '",
        "[ 1] | ",
        "1. A:",
        "\t",
        "\\",
        "\\x4",
        '- a "',
        "<b ",
        "\ud800",
        "\0",
        "9" * 5000,
    ]
)
ODD = st.one_of(
    st.text(),
    st.lists(FRAGMENTS, max_size=12).map("\n".join),
    st.lists(FRAGMENTS, max_size=6).map("".join),
)


@settings(deadline=None, max_examples=60)
@given(ODD)
def test_any_text_can_be_read(text: str) -> None:
    for reader in READERS:
        screen = reader(text)
        assert screen == reader(text)
        assert len(screen.nodes) <= text.count("\n") + 1
        assert screen.known or not (screen.nodes or screen.page)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(CASES), ODD, ODD)
def test_any_prediction_has_a_value_or_a_reason(
    case: tuple[str, str], previous: str, prediction: str
) -> None:
    reference, domain = SCREENS[case[0]][case[1]]["text"], DOMAIN_OF[case[0]]
    sample = made(domain, reference, previous)
    for text in (prediction, reference + prediction, previous):
        scored = score_observation(sample, TASKS[domain], text)
        assert all(0 <= value <= 1 for value in scored.values.values())
        assert all(scored.values[name] == 0 for name in scored.reasons)


SIDES = st.floats(-2000, 2000, width=32)
BOXES = st.tuples(SIDES, SIDES, SIDES, SIDES)


@settings(deadline=None)
@given(BOXES, BOXES)
def test_overlap_is_symmetric_and_1_for_equals(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> None:
    assert overlap(one, one) == 1
    assert 0 <= overlap(one, other) == overlap(other, one) <= 1


@pytest.mark.shared
def test_real_rows_are_read_and_score_1() -> None:
    lines = (Path(os.environ["AWB_SHARED"]) / "real_rows" / "ground_truths.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in lines.strip("\n").split("\n")]
    read = 0
    for row in rows:
        if (domain := row["task"]) not in TASKS:
            continue
        task = TASKS[domain]
        text = row["ground_truth"].removeprefix(f"{task.markers.observation}\n")
        scored = score_observation(made(domain, text, previous="x"), task, text)
        assert set(scored.values.values()) == {1.0}
        assert {"node_f1", "active_change_f1"} & set(scored.values)
        read += 1
    assert read == 6
