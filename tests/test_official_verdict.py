"""The official rules for a judge's reply: equal to the official evaluator's on every committed reply.

Data: `cases/official/verdicts.jsonl` and `verdicts_more.jsonl`, replies of our own with what the official
code returns for them. Linear work is shown by counting: instructions of our code and characters handed to
regular expressions and the JSON parser, on the hostile shapes of `benchmarks/reading.py`. A time limit
stands only against loops inside one call of those, which at 1 MB would take minutes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench import official
from agentworldbench.records import DIMENSIONS
from agentworldbench.scoring import official_verdict
from agentworldbench.scoring.official_verdict import OfficialVerdict, read_official
from benchmarks.reading import LARGE, SHAPES, SMALL
from tools import make_reading_table

CASES = Path(__file__).parent / "cases" / "official"
VECTORS = [
    json.loads(line)
    for name in ("verdicts.jsonl", "verdicts_more.jsonl")
    for line in (CASES / name).read_bytes().split(b"\n")
    if line
]
PIECES = [
    *(
        "{",
        "}",
        '"',
        "\\",
        "{",
        "}",
        '"',
        "```",
        "```json\n",
        "`",
        "json",
        " ",
        "\n",
        ",",
        ":",
        "'",
        "[",
        "]",
    ),
    *('"scores"', '{"scores":{"format":3}}', '"scores":{"quality":-2}', "'scores':", "scores:", "a", "1"),
    *("<think>", "</think>", "<final_evaluation>", "</final_evaluation>", "NaN", "1e999", '"4/5"'),
]
soup = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


def wholly(verdict: OfficialVerdict) -> dict[str, Any]:
    return {
        "success": verdict.success,
        "scores": verdict.scores,
        "total_score": verdict.total,
        "strengths": list(verdict.strengths),
        "weaknesses": list(verdict.weaknesses),
    }


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["id"])
def test_equal_to_the_official_reading(case: dict[str, Any]) -> None:
    verdict = read_official(case["reply"] or "")
    assert wholly(verdict) == case["official"]
    assert list(verdict.scores) == list(DIMENSIONS)
    assert all(type(score) is int for score in verdict.scores.values())
    assert bool(verdict.reason) != verdict.success


def test_the_cases_are_many_and_of_both_kinds() -> None:
    own = [case for case in VECTORS if case["id"].startswith("more-")]
    assert len({case["id"] for case in own}) == len(own) >= 40
    assert {case["official"]["success"] for case in own} == {True, False}


def balanced_by_definition(text: str) -> list[str]:
    """Each opening brace in turn: read on from it, strings apart, until as many are closed as opened."""
    found = []
    start = text.find("{")
    while start >= 0:
        depth, state, end = 0, "outside", None
        for at in range(start, len(text)):
            char = text[at]
            if state == "escaped":
                state = "inside"
            elif state == "inside":
                state = {"\\": "escaped", '"': "outside"}.get(char, "inside")
            elif char == '"':
                state = "inside"
            else:
                depth += {"{": 1, "}": -1}.get(char, 0)
                if depth == 0:
                    end = at + 1
                    break
        if end is not None:
            found.append(text[start:end])
        start = text.find("{", end or start + 1)
    return found


@settings(deadline=None, max_examples=500)
@given(st.text(alphabet='{}"\\a', max_size=60))
def test_one_pass_finds_what_the_trials_find(text: str) -> None:
    marks = [mark.start() for mark in re.finditer(r'[{}"\\]', text)]
    assert official_verdict._balanced(text, marks) == balanced_by_definition(text)


@settings(deadline=None, max_examples=500)
@given(soup)
def test_any_text_gives_a_verdict_or_a_reason(text: str) -> None:
    verdict = read_official(text)
    counted = [score for score in verdict.scores.values() if score > 0]
    assert all(score <= 5 for score in verdict.scores.values())
    assert verdict.total == (sum(counted) / len(counted) if counted else 0)
    assert verdict.success or verdict == OfficialVerdict(success=False, reason=verdict.reason)
    assert bool(verdict.reason) != verdict.success


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=5, max_size=5), soup.filter(lambda text: "think" not in text))
def test_a_plain_block_at_the_end_counts(scores: list[int], before: str) -> None:
    named = dict(zip(DIMENSIONS, scores, strict=True))
    verdict = read_official(f"{before}<final_evaluation>{json.dumps({'scores': named})}</final_evaluation>")
    assert verdict.scores == named
    assert verdict.total == sum(scores) / 5


class Counted:
    """Stands for a pattern or the JSON module, and counts the characters it is given."""

    def __init__(self, wrapped: Any, work: Work) -> None:
        self._wrapped, self._work = wrapped, work

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        if not callable(found) or isinstance(found, type):
            return found

        def counting(*arguments: Any) -> Any:
            # Text, and where it is looked at from: `find*` and `search` take them last.
            text = next((one for one in reversed(arguments) if isinstance(one, str)), "")
            begun = next((one for one in arguments if isinstance(one, int)), 0)
            self._work.done += max(0, len(text) - begun)
            return found(*arguments)

        return counting


class Work:
    """Counts the instructions that the two modules of the official rules run, and the characters they hand on."""

    def __init__(self) -> None:
        self.done = 0

    def of(self, reader: Callable[[str], object], text: str) -> int:
        self.done = 0
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            reader(text)
        finally:
            sys.settrace(before)
        return self.done

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "call":
            if frame.f_code.co_filename not in (official.__file__, official_verdict.__file__):
                return None
            frame.f_trace_opcodes = True
        elif event == "opcode":
            self.done += 1
        return self._trace


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    counter = Work()
    repairs = tuple((Counted(pattern, counter), by) for pattern, by in official_verdict._REPAIRS)
    monkeypatch.setattr(official_verdict, "_REPAIRS", repairs)
    for name in ("_MARK", "_SCORES", "json"):
        monkeypatch.setattr(official_verdict, name, Counted(getattr(official_verdict, name), counter))
    monkeypatch.setattr(official, "_THINK", Counted(official._THINK, counter))
    tags = official._tags
    monkeypatch.setattr(
        official, "_tags", lambda tag: tuple(Counted(pattern, counter) for pattern in tags(tag))
    )
    return counter


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "reader",
    [read_official, lambda text: official.extract(text, "predicted_observation")],
    ids=["verdict", "answer"],
)
def test_work_grows_with_the_length(work: Work, shape: str, reader: Callable[[str], object]) -> None:
    short, long = SHAPES[shape](1_000), SHAPES[shape](8_000)
    small, large = work.of(reader, short), work.of(reader, long)
    assert small >= len(short)  # the whole text was looked at
    assert large / len(long) <= 1.1 * small / len(short)


def test_the_counter_sees_steep_work(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at every rest of the text, as the official scan of braces does, is noticed."""
    mark = official_verdict._MARK

    def steep(text: str, marks: list[int]) -> list[str]:
        for at in marks:
            mark.search(text, at)
        return []

    monkeypatch.setattr(official_verdict, "_balanced", steep)
    small, large = (work.of(read_official, SHAPES["`{` then `}`"](size)) for size in (1_000, 8_000))
    assert large > 30 * small


READ = {"a verdict behind it", "verdicts", "empty scores", "a long fraction", "a long string score"}
"""Shapes in which the official rules find a verdict, if an odd one."""


@pytest.mark.timeout(20)
@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_reply_is_read(shape: str, size: int) -> None:
    verdict = read_official(SHAPES[shape](size))
    assert verdict.success == (shape in READ)


def from_a_deep_stack(calls: int, reply: str) -> bool:
    """Whether a verdict is read in `reply` with so many calls on the stack."""
    return from_a_deep_stack(calls - 1, reply) if calls else read_official(reply).success


NESTS = {
    "lists": lambda levels: "[" * levels + "]" * levels,
    "objects": lambda levels: '{"a":' * levels + "1" + "}" * levels,
    "lists behind brackets in strings": lambda levels: '["[[{{ \\" [", ' * levels + "1" + "]" * levels,
}


@pytest.mark.parametrize("calls", [0, 800])
@pytest.mark.parametrize("key", ["x", "strengths"])
@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("levels", [40, 800, 992, 993, 5_000])
def test_the_bound_on_nesting(levels: int, nest: str, key: str, calls: int) -> None:
    """992 levels are read and no more: that many `eval.py` reads on CPython 3.11, whoever calls, on any Python."""
    inner = NESTS[nest](levels - 1)
    reply = f'<final_evaluation>{{"scores":{{"format":4}},"{key}":{inner}}}</final_evaluation>'
    assert from_a_deep_stack(calls, reply) is (levels <= 992)
    assert "levels of nesting" in read_official(reply).reason or levels <= 992


@pytest.mark.parametrize(("levels", "success"), [(900, True), (992, True), (993, False), (50_000, False)])
def test_a_fault_behind_too_many_levels_is_not_mended(levels: int, success: bool) -> None:
    """Where the text breaks off within the bound, the scores alone count; a newer Python comes further."""
    nested = "[" * (levels - 1) + "?" + "]" * (levels - 1)
    verdict = read_official(f'{{"x":{nested},"scores":{{"format":4}}}}')
    assert verdict.success is success
    broken_before = read_official(f'{{"y": ?, "x":{nested},"scores":{{"format":4}}}}')
    assert broken_before.success, "no level too many was reached"


def test_the_page_of_both_readings_is_of_today() -> None:
    """Write it anew with `python -m tools.make_reading_table`."""
    assert make_reading_table.PAGE.read_text(encoding="utf-8") == make_reading_table.page()


def test_the_page_shows_many_replies_on_which_the_readings_differ() -> None:
    rows = [row for _, _, some in make_reading_table.groups() for row in some]
    assert len({row.id for row in rows}) == len(rows) >= 60
    assert [row.id for row in rows if row.official == row.strict] == []
    assert all(row.what and row.why.startswith(("Officially", "The official", "Neither")) for row in rows)
    kinds = {kind: title for title, kind, _ in make_reading_table.groups()}
    assert set(kinds) == {"predictions", "verdicts"}
