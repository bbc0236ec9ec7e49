"""The parts of a reply: every family's markers, the bounds of the scan, and work linear in the text.

`cases/observation/families.yaml` holds an example of each row of the table in `markers.py`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.markers import END_OF_TURN, FIRST_CHARACTERS, REASONING, end_of_answer
from agentworldbench.observation import read_reply
from agentworldbench.records import Completion, Failure
from agentworldbench.reply import parts_of
from agentworldbench.scoring.verdict import TAG as VERDICT_TAG
from agentworldbench.scoring.verdict import ReadVerdict, read_verdict

CASES = Path(__file__).parent / "cases" / "observation"
FAMILIES = yaml.safe_load((CASES / "families.yaml").read_text(encoding="utf-8"))
TAG = "predicted_observation"
START, END = f"<{TAG}>", f"</{TAG}>"
MARKER = "**Environment Observation:**"
SCORES = '{"scores":{"format":4,"factuality":3,"consistency":4,"realism":3,"quality":3}}'
VERDICT = f"<{VERDICT_TAG}>{SCORES}</{VERDICT_TAG}>"


def read(text: str, reason: str = "stop", reasoning: str | None = None) -> str | Failure:
    found = read_reply(
        Completion(text=text, finish_reason=reason, reasoning=reasoning), TAG, MARKER, stops_sent=False
    )
    return found.failure if found.observation is None else found.observation  # type: ignore[return-value]


def test_every_row_of_the_table_has_its_example() -> None:
    rows: dict[str, set[str]] = {row.families: set() for row in REASONING}
    for case in FAMILIES:
        rows[case["families"]].add(case["opener"])
    assert all(rows.values())
    assert len({row.families for row in REASONING}) == len(REASONING)


@pytest.mark.parametrize("case", FAMILIES, ids=lambda case: f"{case['opener']} {case['closer']}")
def test_the_markers_of_every_family(case: dict[str, str]) -> None:
    opener, closer = case["opener"], case["closer"]
    (row,) = (row for row in REASONING if row.families == case["families"])
    assert re.fullmatch(row.opener, opener)
    assert re.fullmatch(row.closer, closer)
    assert [char in FIRST_CHARACTERS for char in opener[:2] + closer[:2]] == [True, False] * 2
    tagged = f"{START}\n  ok\n{END}"
    assert read(f"{opener}plan{closer}\n  ok") == "  ok"
    assert read(f"{opener}plan {START}draft{END}{closer}{tagged}") == "  ok"
    assert read(f"plan{closer}\n  ok") == "  ok"
    assert read(f"one{closer}\ntwo", reasoning="plan") == "one\ntwo"
    assert read(f"{opener}a{closer}one{opener}b{closer}two") == "onetwo"
    for reason, kind in (("stop", "empty"), ("length", "truncated")):
        for text in (f"{opener}plan", f"{opener}plan {START}draft{END}"):
            failure = read(text, reason)
            assert isinstance(failure, Failure)
            assert failure.kind == kind
    shown = f"$ cat t\n{opener}\nx\n{closer}\n$"
    for text in (shown, f"$ cat t\n{opener}", f"{closer}\n$"):
        assert read(f"{START}{text}{END}") == text
    for reply in (f"{opener}{VERDICT.replace('4', '5')}{closer}{VERDICT}", f"plan{closer}\n{SCORES}"):
        verdict = read_verdict(reply)
        assert isinstance(verdict, ReadVerdict), verdict
        assert verdict.scores["format"] == 4
    assert isinstance(read_verdict(f"{opener}{VERDICT}"), Failure)
    assert isinstance(read_verdict(f"{VERDICT}{opener}no, "), Failure)
    assert isinstance(read_verdict(f"a{closer}{VERDICT}", apart=True), ReadVerdict)


def test_markers_that_are_no_tags_count_as_they_are_written() -> None:
    for case in FAMILIES:
        for marker in (case["opener"].swapcase(), case["closer"].swapcase()):
            text = f"a {marker} b"
            folded = marker.startswith("<") and "|" not in marker
            parts = parts_of(text, TAG)
            assert bool(parts.thoughts or parts.closers) is folded, marker


@pytest.mark.parametrize("token", END_OF_TURN)
def test_a_token_that_ends_a_turn_is_cut_at_the_very_end_only(token: str) -> None:
    assert read(f"  a\n{token}") == "  a"
    assert read(f"a {token}\n{token}  \n") == "a "
    assert read(f"a {token} b") == f"a {token} b"
    assert read(f"{START}a{token}{END}") == f"a{token}"
    assert read(f"{START}a{END}{token}") == "a"


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", " ", "\n", "<|", *END_OF_TURN])).map("".join))
def test_cutting_tokens_twice_cuts_no_more(text: str) -> None:
    end = end_of_answer(text)
    assert 0 <= end <= len(text)
    assert end_of_answer(text[:end]) == end
    assert text[end:].strip() == "" or any(token in text[end:] for token in END_OF_TURN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"<think {'x' * 80}>plan</think>ok", "ok"),
        (f"<think {'x' * 81}>plan</think>ok", "ok"),  # damaged, then: its closer is there
        (f"<think {'x' * 80}>plan", "(empty)"),
        (f"<think {'x' * 81}>plan", f"<think {'x' * 81}>plan"),
        (f"plan</think{' ' * 9}>ok", "ok"),
        (f"plan</think{' ' * 10}>ok", f"plan</think{' ' * 10}>ok"),
        (f"plan<|channel|>final{' ' * 99}<|message|>ok", "ok"),
        (f"plan<|channel|>final{' ' * 100}<|message|>ok", f"plan<|channel|>final{' ' * 100}<|message|>ok"),
        (f"plan<|channel|>{' ' * 9}final<|message|>ok", "ok"),
        (f"plan<|channel|>{' ' * 10}final<|message|>ok", f"plan<|channel|>{' ' * 10}final<|message|>ok"),
        # A start tag alone on its line opens an answer, so the second one is text.
        (f"x\n{' ' * 79}{START}\na {START}\nb{END}", f"a {START}\nb"),
        (f"x\n{' ' * 80}{START}\na {START}\nb{END}", "b"),
        (f"x\n{START}{' ' * 79}\na {START}\nb{END}", f"{' ' * 79}\na {START}\nb"),
        (f"x\n{START}{' ' * 80}\na {START}\nb{END}", "b"),
    ],
)
def test_the_scan_looks_so_far_and_no_further(text: str, expected: str) -> None:
    found = read(text)
    assert (f"({found.kind})" if isinstance(found, Failure) else found) == expected


HOSTILE = [
    *(
        "<think>",
        "</think>",
        "<think",
        "<think ",
        "<think\n",
        "</think ",
        "<think></think>",
        "<think>a</think>b",
    ),
    *(START, END, START + END, f"{START}\n", f"x{START}", f"{START}</think>", f"</think>{START}"),
    *(f"{START}x{END}<think>", f"{START}x{END}</think>", f"{START}<think>{END}", f"<think>{START}x{END}"),
    *("<mm:think><think>", "<mm:think></think>", "[THINK]", "◁", "<", "[", "<|end|>", "<|channel|>analysis"),
    *("<|start|>assistant", "<|channel|>final" + " " * 90, "<|channel|>analysis<|message|>x<|end|>"),
    *("<|start|>assistant<|channel|>final<|message|>y", "<|im_end|>", "<|im_end|> \n", MARKER, f"{MARKER}\n"),
    *(" ", "\n", " \n", "\r\n", "a", "a ", "analysis", "assistantfinal"),
]
FRAMES: dict[str, Callable[[str, int], str]] = {
    "alone": lambda unit, times: unit * times,
    "in tags": lambda unit, times: f"{START}{unit * times}{END}",
    "behind start tags": lambda unit, times: START * times + unit * times,
    "before end tags": lambda unit, times: unit * times + END * times,
    "before closers": lambda unit, times: unit * times + "</think>" * times,
}
"""A unit so many times, in what could make reading it slow."""


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("frame", FRAMES)
def test_200_kilobytes_of_hostile_text_are_read_or_fail(frame: str) -> None:
    for unit in HOSTILE:
        text = FRAMES[frame](unit, min(25_000, 200_000 // len(unit)) if frame == "alone" else 2_000)
        found = read(text)
        assert isinstance(found, Failure) or len(found) <= len(text)
        assert isinstance(read_verdict(text.replace(TAG, VERDICT_TAG)), Failure)


def steps(work: Callable[[], Any]) -> int:
    """Lines of Python that `work` executes inside the modules that read replies."""
    count = 0

    def local(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def called(frame: FrameType, event: str, _: Any) -> Any:
        names = ("reply.py", "observation.py", "markers.py")
        return local if Path(frame.f_code.co_filename).name in names else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", HOSTILE)
def test_twice_the_text_is_at_most_twice_the_work(unit: str) -> None:
    for frame in FRAMES.values():
        few, many = (frame(unit, n) for n in (60, 120))
        first, second = steps(lambda: read(few)), steps(lambda: read(many))  # noqa: B023 - called at once
        assert first > 0
        assert second <= 2 * first, (unit, first, second)
