"""Reading a model's reply: equal to the official extraction, and failures that are never read as text.

Data: `cases/official/outputs.jsonl` (what the official functions return) and
`cases/observation/replies.yaml` (completions and what they are read as).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.models.chat import read_chat
from agentworldbench.observation import (
    NOTHING_LEFT,
    complete,
    extract,
    read_reply,
    split_thinking,
    thinking_open,
    without_marker,
)
from agentworldbench.records import OFFICIAL_DOMAINS, CallFailure, Completion, FailureKind

CASES = Path(__file__).parent / "cases"
TAG = "predicted_observation"
MARKER = "**Environment Observation:**"
UNKNOWN_TASKS = {"marker-unknown-task": "shopping", "marker-upper-task": "Terminal"}
"""Lines whose task the official code does not know: there its marker step does nothing."""

OUTPUTS = [
    json.loads(line) for line in (CASES / "official" / "outputs.jsonl").read_bytes().split(b"\n") if line
]
REPLIES = yaml.safe_load((CASES / "observation" / "replies.yaml").read_text(encoding="utf-8"))
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


def test_null_is_no_output_officially_and_a_failure_here() -> None:
    (null,) = (case for case in OUTPUTS if case["text"] is None)
    assert null["official"]["cleaned"] == NOTHING_LEFT
    observation, _, failure = read_reply(Completion(text=None, finish_reason="stop"), TAG, MARKER)
    assert observation is None
    assert failure is not None and failure.kind is FailureKind.EMPTY


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: case["id"])
def test_replies(case: dict[str, Any]) -> None:
    observation, reasoning, failure = read_reply(Completion(**case["completion"]), TAG, MARKER)
    if "failure" in case:
        assert failure is not None and failure.kind == case["failure"]
        assert case.get("message", "") in failure.message
        assert observation is None
    else:
        assert failure is None
        assert observation == case["observation"]
    if "reasoning" in case:
        assert reasoning == case["reasoning"]


@pytest.mark.parametrize(
    ("choices", "kind"),
    [
        ([], FailureKind.MALFORMED_RESPONSE),
        (None, FailureKind.MALFORMED_RESPONSE),
        ([{"message": None, "finish_reason": "content_filter"}], FailureKind.CONTENT_FILTER),
        ([{"message": {"content": None}, "finish_reason": "length"}], FailureKind.TRUNCATED),
        ([{"message": {"content": ""}, "finish_reason": "stop"}], FailureKind.EMPTY),
        ([{"message": {"content": None, "tool_calls": [{"id": "c"}]}}], FailureKind.TOOL_CALL),
    ],
)
def test_odd_chat_replies_become_failures(choices: Any, kind: FailureKind) -> None:
    reply = read_chat({"choices": choices, "usage": {"completion_tokens": 4096}})
    failure = reply.failure if isinstance(reply, CallFailure) else read_reply(reply, TAG, MARKER)[2]
    assert failure is not None and failure.kind is kind


def _is_plain(text: str) -> bool:
    words = ("<think>", "</think>", f"<{TAG}>", f"</{TAG}>", MARKER.casefold())
    return not any(word in text.casefold() for word in words)


@settings(deadline=None)
@given(st.text().filter(_is_plain))
def test_what_is_put_into_the_tag_comes_out(text: str) -> None:
    reply = f"Reasons first.\n<{TAG}>{text}</{TAG}>\nand a last word"
    assert extract(reply, TAG) == text.strip()
    assert read_reply(Completion(text=reply, finish_reason="length"), TAG, MARKER)[0] == text.strip()


@settings(deadline=None)
@given(soup, st.sampled_from(["stop", "length", "content_filter", None]))
def test_any_text_is_read_or_fails(text: str, reason: str | None) -> None:
    assert extract(text, TAG) == extract(text, TAG).strip()
    observation, _, failure = read_reply(Completion(text=text, finish_reason=reason), TAG, MARKER)
    assert (observation is None) == (failure is not None)
    if observation is not None:
        assert observation == without_marker(extract(text, TAG), MARKER)
        assert reason != "length" or complete(text, TAG)


@settings(deadline=None)
@given(soup)
def test_thinking_is_taken_from_the_text_and_invents_nothing(text: str) -> None:
    answer, _ = split_thinking(text, TAG)
    rest = iter(text)
    assert all(char in rest for char in answer)  # a subsequence of the text
    if "think>" not in text.casefold():
        assert answer == text


ADVERSARIAL = {
    "openers": ("<think>" * 15_000, NOTHING_LEFT, True),
    "closers": ("</think>" * 13_000, NOTHING_LEFT, False),
    "openers then closers": ("<think>" * 7_000 + "</think>" * 7_000 + "x", "x", False),
    "pairs": ("<think>a</think>b" * 6_000, "b" * 6_000, False),
    "openers and tags": (f"<think><{TAG}>" * 3_500, "", True),
    "start tags": (f"<{TAG}>" * 4_300, "", False),
    "start tags and a word": (f"<{TAG}>" * 4_300 + "x", "x", False),
    "end tags": (f"</{TAG}>" * 4_000, f"</{TAG}>" * 4_000, False),
    "angle brackets": ("<" * 100_000, "<" * 100_000, False),
    "half openers": ("<think" * 17_000, "<think" * 17_000, False),
    "markers": (MARKER * 3_600, MARKER * 3_600, False),
    "white space": (" \n" * 50_000, NOTHING_LEFT, False),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_100_kilobytes_of_hostile_text(name: str) -> None:
    text, expected, open_at_the_end = ADVERSARIAL[name]
    assert extract(text, TAG) == expected
    assert thinking_open(text) is open_at_the_end


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
