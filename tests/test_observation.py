"""Reading a model's reply: the observation, or a failure that is never read as text.

Cases stand in `cases/observation/*.yaml` (form: `failures.yaml`). Where the reply's parts are, and that
no text takes long: `test_reply.py`. The official rules: `test_official.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agentworldbench.models.chat import read_chat
from agentworldbench.observation import Reading, read_reply, without_blank_lines, without_marker
from agentworldbench.official import NOTHING_LEFT
from agentworldbench.records import CallFailure, Completion, FailureKind
from agentworldbench.scoring.metrics.facts import normalise

CASES = Path(__file__).parent / "cases"
TAG = "predicted_observation"
START, END = f"<{TAG}>", f"</{TAG}>"
MARKER = "**Environment Observation:**"
REPLIES = [
    case
    for name in ("failures", "thinking", "answers")
    for case in yaml.safe_load((CASES / "observation" / f"{name}.yaml").read_text(encoding="utf-8"))
]
OUTPUTS = [
    json.loads(line) for line in (CASES / "official" / "outputs.jsonl").read_bytes().split(b"\n") if line
]
PARTS = [
    *("<think>", "</think>", "<THINK>", "<think\n", "</think\n", "<think", "[THINK]", "[/THINK]"),
    *("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>"),
    *(START, END, f"\n{START}\n", f"\n{END}\n", MARKER, "<|im_end|>", "a", "b", " ", "\n", "\r\n", "..."),
]
soup = st.one_of(st.text(), st.lists(st.sampled_from(PARTS)).map("".join))
no_end = soup.map(lambda text: text.replace(END, "")).filter(
    lambda text: not (text.endswith("\r") or text.lstrip().startswith(MARKER))
)


def read(text: str | None, reason: str | None = "stop", **fields: Any) -> Reading:
    return read_reply(Completion(text=text, finish_reason=reason, **fields), TAG, MARKER, stops_sent=False)


def one_newline_less(text: str) -> str:
    """`text` without one newline at each end, where it has one."""
    for newline in ("\r\n", "\n"):
        if text.startswith(newline):
            text = text[len(newline) :]
            break
    for newline in ("\r\n", "\n"):
        if text.endswith(newline):
            return text[: -len(newline)]
    return text


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: case["id"])
def test_replies(case: dict[str, Any]) -> None:
    completion = Completion(**case["completion"])
    found = read_reply(completion, TAG, MARKER, stops_sent=case.get("stops_sent", False))
    if "failure" in case:
        assert found.failure is not None
        assert found.failure.kind == case["failure"]
        assert case.get("message", "") in found.failure.message
        assert found.observation is None
    else:
        assert (found.observation, found.failure) == (case["observation"], None)
    assert list(found.notes) == case.get("notes", [])
    if "reasoning" in case:
        assert found.reasoning == case["reasoning"]


def test_case_ids_are_unique_and_every_public_report_is_there() -> None:
    ids = [case["id"] for case in REPLIES]
    assert len(set(ids)) == len(ids)
    reports = ("02", "04", "08", "09", "11", "12", "13", "14", "16", "18", "19")
    assert {name[3:5] for name in ids if name.startswith("MO-")} == set(reports)


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
def test_mo_07_odd_chat_replies_become_failures(choices: Any, kind: FailureKind) -> None:
    reply = read_chat({"choices": choices, "usage": {"completion_tokens": 4096}})
    if isinstance(reply, Completion):
        failure = read_reply(reply, TAG, MARKER, stops_sent=False).failure
    else:
        assert isinstance(reply, CallFailure)
        failure = reply.failure
    assert failure is not None
    assert failure.kind is kind


def test_null_is_no_output_officially_and_a_failure_here() -> None:
    (null,) = (case for case in OUTPUTS if case["text"] is None)
    assert null["official"]["cleaned"] == NOTHING_LEFT
    failure = read(None).failure
    assert failure is not None
    assert failure.kind is FailureKind.EMPTY


def test_where_the_strict_reading_differs_from_the_official_one() -> None:
    """By more than white space at the ends. A changed rule shows here, on texts that nobody chose for it."""
    odd = {}
    for case in OUTPUTS:
        found = read(case["text"])
        text = f"({found.failure.kind})" if found.failure else (found.observation or "").strip()
        if text != case["official"]["cleaned"]:
            odd[case["id"]] = text
    file = CASES / "observation" / "unlike_official.yaml"
    assert odd == yaml.safe_load(file.read_text(encoding="utf-8"))


@settings(deadline=None)
@given(no_end, st.sampled_from(["", "\n", "<think>plan</think>\n\n", "plan</think>", "[THINK]x[/THINK]"]))
@example(f"a</think>{START}b", "")
@example(f"{START}\n{START}", "")
def test_what_is_wrapped_comes_out_again(text: str, before: str) -> None:
    """Whatever it holds but the end tag: markers, start tags, tokens. (The marker's line is no content, and a
    carriage return before the newline of the end tag is part of that newline.)"""
    found = read(f"{before}{START}{text}{END}\nand a last word", "stop")
    assert found.failure is None
    assert found.observation == one_newline_less(text)
    assert read(f"{before}{START}\n{text}\n{END}").observation == text


@settings(deadline=None)
@given(soup, st.sampled_from(["stop", "length", "content_filter", None]), st.sampled_from([None, "x", "a"]))
def test_any_text_is_read_or_fails(text: str, reason: str | None, reasoning: str | None) -> None:
    found = read(text, reason, reasoning=reasoning)
    assert (found.observation is None) == (found.failure is not None)
    assert len(set(found.notes)) == len(found.notes)
    if found.observation is not None:
        rest = iter(text)
        assert all(char in rest for char in found.observation)  # a subsequence: nothing is invented
        assert reason != "length" or END in text
        assert reason != "content_filter"
    if reasoning:
        assert found.reasoning is not None
        assert found.reasoning.startswith(reasoning)


@settings(deadline=None)
@given(soup, st.sampled_from(["stop", "length"]), st.sampled_from([None, "x", "a\nb"]))
def test_a_stored_reply_is_read_the_same_again(text: str, reason: str, reasoning: str | None) -> None:
    """A replay hands over the text and all the reasoning that was found then."""
    first = read(text, reason, reasoning=reasoning)
    again = read(text, reason, reasoning=first.reasoning)
    assert again == first


@settings(deadline=None)
@example("0\r\r")
@given(st.text().filter(lambda text: not any(char in text for char in "<[◁*") and "analysis" not in text))
def test_a_text_without_markers_is_itself_but_for_blank_lines(text: str) -> None:
    found = read(text)
    assert (found.observation or "") == without_blank_lines(text)
    assert (found.failure is None) == bool(text.strip())
    assume(found.observation is not None)
    assert found.observation is not None
    assert found.observation.strip() == text.strip()
    assert read(found.observation).observation == found.observation
    assert found.notes == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{MARKER}\na", "a"),
        (f"{MARKER}\n  a\n", "  a"),
        (f"{MARKER}\n\n  a\n\n", "\n  a\n"),
        (f"{MARKER} \t\na", "a"),
        (f"{MARKER}\r\na\r\n", "a"),
        (f"{MARKER}a", "a"),
        (f"{MARKER}  a", " a"),
        (f" \n{MARKER}\na", "a"),
        (f"{MARKER}{MARKER}a", f"{MARKER}a"),
        (f"a {MARKER} b", f"a {MARKER} b"),
        ("\n  a \n", "  a "),
        ("\r\n\r\na", "\r\na"),
        ("\ra\r", "\ra\r"),
        (MARKER, ""),
        ("\n", ""),
        ("", ""),
    ],
)
def test_the_line_of_a_leading_marker_is_cut(text: str, expected: str) -> None:
    assert without_marker(text, MARKER) == expected


@settings(deadline=None)
@given(st.lists(st.sampled_from([" ", "\t", "\r\n", "\n", "a", "\u2028"])).map("".join))
def test_the_metrics_see_no_difference_in_blank_lines_at_the_ends(text: str) -> None:
    """`wrap` and a reference differ in newlines at their ends at most, and metrics do not see those."""
    assert normalise(without_marker(f"\n{text}\n", MARKER)) == normalise(text)
    if "\u2028" not in text:
        assert normalise(without_blank_lines(text)) == normalise(text)
    assert without_blank_lines(without_blank_lines(text)) == without_blank_lines(text)
