"""The official text rules: equal to the official evaluator's on every committed vector, and linear.

Data: `cases/official/outputs.jsonl`, what the official functions return for replies of our own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.official import NOTHING_LEFT, extract, last_match, split_thinking, without_marker
from agentworldbench.records import OFFICIAL_DOMAINS

CASES = Path(__file__).parent / "cases"
TAG = "predicted_observation"
MARKER = "**Environment Observation:**"
UNKNOWN_TASKS = {"marker-unknown-task": "shopping", "marker-upper-task": "Terminal"}
"""Lines whose task the official code does not know: there its marker step does nothing."""

OUTPUTS = [
    json.loads(line) for line in (CASES / "official" / "outputs.jsonl").read_bytes().split(b"\n") if line
]
PARTS = [
    "<think>",
    "</think>",
    "<THINK>",
    f"<{TAG}>",
    f"</{TAG}>",
    MARKER,
    "a",
    " ",
    "\n",
    "<think",
    "\u212a",
]
soup = st.one_of(st.text(), st.lists(st.sampled_from(PARTS)).map("".join))


def test_the_official_lines_are_all_here() -> None:
    assert len(OUTPUTS) == 87
    unknown = {case["id"]: case["task"] for case in OUTPUTS if case["task"] not in OFFICIAL_DOMAINS}
    assert unknown == UNKNOWN_TASKS


@pytest.mark.parametrize("case", OUTPUTS, ids=lambda case: case["id"])
def test_extraction_equals_the_official_one(case: dict[str, Any]) -> None:
    parsed = extract(case["text"] or "", TAG)
    assert parsed == case["official"]["parsed"]
    if case["id"] in UNKNOWN_TASKS:
        assert case["official"]["cleaned"] == parsed  # the step is ours to take: our loader knows every task
    else:
        assert without_marker(parsed, MARKER) == case["official"]["cleaned"]


@settings(deadline=None)
@given(soup)
def test_thinking_is_taken_from_the_text_and_invents_nothing(text: str) -> None:
    answer, _ = split_thinking(text, TAG)
    rest = iter(text)
    assert all(char in rest for char in answer)  # a subsequence of the text
    assert extract(text, TAG) == extract(text, TAG).strip()
    if "think>" not in text.casefold():
        assert answer == text


ADVERSARIAL = {
    "openers": ("<think>" * 15_000, NOTHING_LEFT),
    "closers": ("</think>" * 13_000, NOTHING_LEFT),
    "openers then closers": ("<think>" * 7_000 + "</think>" * 7_000 + "x", "x"),
    "pairs": ("<think>a</think>b" * 6_000, "b" * 6_000),
    "openers and tags": (f"<think><{TAG}>" * 3_500, ""),
    "start tags": (f"<{TAG}>" * 4_300, ""),
    "start tags and a word": (f"<{TAG}>" * 4_300 + "x", "x"),
    "end tags": (f"</{TAG}>" * 4_000, f"</{TAG}>" * 4_000),
    "angle brackets": ("<" * 100_000, "<" * 100_000),
    "half openers": ("<think" * 17_000, "<think" * 17_000),
    "markers": (MARKER * 3_600, MARKER * 3_600),
    "white space": (" \n" * 50_000, NOTHING_LEFT),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_100_kilobytes_of_hostile_text(name: str) -> None:
    text, expected = ADVERSARIAL[name]
    assert extract(text, TAG) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{MARKER}\na", "a"),
        (f"{MARKER}{MARKER}a", f"{MARKER}a"),
        (f"a {MARKER} b {MARKER}", "a  b"),
        (f" {MARKER}a", "a"),
        ("a", "a"),
        (MARKER, ""),
    ],
)
def test_the_marker_is_cut_in_front_else_everywhere(text: str, expected: str) -> None:
    assert without_marker(text, MARKER) == expected


def test_the_last_match_or_none() -> None:
    found = last_match(re.compile("a."), "a1 a2 b3")
    assert found is not None
    assert found.group() == "a2"
    assert last_match(re.compile("x"), "a1") is None
