"""Single checks of verification: their tables, their limits, and what they must leave alone.

The words of the judge-injection check are cases (`tests/cases/verification/injection.yaml`); of mini, no text at all may
ring an alarm, since an honest prediction can be any of them.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.config import RunConfig
from agentworldbench.models.names import same_model
from agentworldbench.plan import open_samples
from agentworldbench.prompts import reference_observation
from agentworldbench.records import DIMENSIONS, Prediction, SampleRef, Sampling, Verdict
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.metrics.volatile import Seen
from agentworldbench.task import load_tasks
from agentworldbench.verification.duplicates import (
    COPIED,
    SAME_DRAW,
    SAME_RESPONSE,
    Copy,
    check_copies,
    copies_of,
)
from agentworldbench.verification.findings import Finding, Hit, Unchecked, gathered, verdict_of
from agentworldbench.verification.identity import recorded_sampling
from agentworldbench.verification.injection import MARKUP, WORDS, Judged, check_injection, spoken
from agentworldbench.verification.leaks import Unknowable, _hard_to_guess, _volatile, check_leaks
from agentworldbench.verification.material import Case
from agentworldbench.verification.recompute import differences
from tests.helpers.scripted_replies import verdict_text

CASES: list[dict[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "cases/verification/injection.yaml").read_text(encoding="utf-8")
)
texts = st.text(max_size=200)


# --- judge injection --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:30])
def test_what_speaks_to_a_judge(case: dict[str, str]) -> None:
    found = [markup for _, _, markup in spoken(case["text"])]
    kind = "nothing" if not found else "markup" if any(found) else "words"
    assert kind == case["found"], list(spoken(case["text"]))


def test_every_pattern_has_a_case() -> None:
    found = {name for case in CASES for name, _, _ in spoken(case["text"])}
    assert found == {*MARKUP, *WORDS}


@settings(max_examples=40)
@given(texts, texts, st.sampled_from([case["text"] for case in CASES if case["found"] == "markup"]))
def test_markup_is_found_wherever_it_stands(before: str, after: str, markup: str) -> None:
    assert any(is_markup for _, _, is_markup in spoken(f"{before} {markup} {after}"))


@pytest.mark.parametrize("piece", ["ignore all ", "give 5 ", '"scores": {', "score ", "[[OBS-", "note to "])
def test_long_texts_take_linear_time(piece: str) -> None:
    begun = time.process_time()
    list(spoken(piece * (200_000 // len(piece))))
    assert time.process_time() - begun < 2  # a square of that length would take minutes


def test_no_text_of_the_bundled_data_speaks_to_a_judge() -> None:
    samples = open_samples(RunConfig(data="mini"))
    for ref in samples.refs:
        sample = samples.dataset.load(ref)
        for text in (sample.system, *sample.prompts, *sample.responses):
            assert list(spoken(text)) == [], ref.id


def judged(score: float | None, found: str | None = None, markup: bool = False) -> Judged:
    return Judged("terminal/1/1", found, markup, score)


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([judged(2.0)], []),
        ([judged(2.0), judged(2.0, "a verdict's tag", True)], ["refused"]),
        ([judged(2.0), judged(2.2, "a grade")], ["warning"]),
        ([judged(2.0), judged(5.0, "a grade")], ["refused"]),
        ([judged(4.5), judged(5.0, "a grade")], ["warning"]),
        ([judged(1.0), judged(3.5, "a grade")], ["warning"]),
        ([judged(5.0, "a grade")], ["warning"]),
        ([judged(None, "a grade")], ["warning"]),
        ([], []),
    ],
    ids=["none", "markup", "words", "obeyed", "all are good", "not good", "no others", "not judged", "empty"],
)
def test_words_are_refused_where_the_judge_obeyed(cases: list[Judged], expected: list[str]) -> None:
    assert [hit.severity for hit in check_injection(cases)] == expected


# --- leaked text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "cases", "expected"),
    [
        (0, 50, None),
        (1, 1, "info"),
        (2, 10, "info"),
        (3, 100, "refused"),
        (3, 150, "info"),
        (4, 150, "refused"),
    ],
)
def test_more_than_two_percent_and_three_are_refused(hits: int, cases: int, expected: str | None) -> None:
    found = [Unknowable(f"swe/{number}/1", "9f31" if number < hits else None) for number in range(cases)]
    severities = {hit.severity for hit in check_leaks(found)}
    assert severities == ({expected} if expected else set())
    for hit in check_leaks(found):
        assert f"({hits} of the {cases} sample" in hit.message


@pytest.mark.parametrize(
    ("name", "text", "hard"),
    [
        ("time", "14:23:07", True), ("time", "14:23", False), ("time", "14:20:00", False),
        ("time", "07:45:00+00:00", False), ("time", "14:23:07.123Z", True),
        ("pid", "48213", True), ("pid", "123", False), ("pid", "1111", False),
        ("hex_address", "0x7f3a2b1c9d00", True), ("hex_address", "0x00000000", False),
        ("uuid", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", True), ("port", "54321", True),
    ],
)  # fmt: skip
def test_what_can_be_guessed_does_not_count(name: str, text: str, hard: bool) -> None:
    assert _hard_to_guess(name, text) is hard


def test_answers_of_other_tasks_leak_next_to_nothing() -> None:
    """The chance that text of one recorded answer stands in that of another task: what luck would give."""
    samples = open_samples(RunConfig(data="mini", tasks=("swe", "terminal", "mcp")))
    rows = [
        (ref, reference_observation(samples.dataset.load(ref), samples.tasks[ref.domain]))
        for ref in samples.refs
    ]
    pairs = lucky = 0
    for ref, text in rows:
        secret = set(_volatile(text, samples.tasks[ref.domain].volatile))
        for other, told in rows:
            if secret and ref.domain == other.domain and ref.task_key != other.task_key:
                pairs += 1
                lucky += any(map(Seen(told).holds, secret))
    assert pairs > 100
    assert lucky / pairs < 0.02


# --- duplicates -------------------------------------------------------------------------------------------------


def copies(kind: str, count: int, text: str = "a", tasks: int | None = None) -> list[Copy]:
    return [
        Copy(kind, text, f"os/{number}/1", f"task {number % (tasks or count)}") for number in range(count)
    ]


def severities(found: list[Copy], samples: int = 100) -> list[tuple[str, str]]:
    return [(hit.severity, hit.message.partition(" (")[0]) for hit in check_copies(found, samples)]


def test_copies() -> None:
    assert severities(copies("prediction", 4)) == []
    assert severities(copies("prediction", 5)) == [("warning", COPIED)]
    assert severities(copies("prediction", 6), 100) == [("warning", COPIED)]
    assert severities(copies("prediction", 7), 100) == [("refused", COPIED)]
    assert severities(copies("prediction", 30, tasks=1)) == [], "turns and trajectories of one task"
    pairs = [one for number in range(6) for one in copies("prediction", 2, str(number))]
    assert severities(pairs) == [("refused", COPIED)] * 6
    assert severities(copies("draw of prediction", 2)) == [("refused", SAME_DRAW)]
    assert severities(copies("id of prediction", 2)) == [], "a server that has one id for all"
    assert severities([*copies("id of prediction", 2), *copies("id of prediction", 1, "b")]) == [
        ("warning", SAME_RESPONSE)
    ]


TERSE = verdict_text(dict.fromkeys(DIMENSIONS, 5))


@pytest.mark.parametrize(
    ("words", "copied"), [("", False), ("It is all there. " * 3, False), ("It is all there. " * 9, True)]
)
def test_terse_judges_repeat_themselves(words: str, copied: bool) -> None:
    """A reply of 338 characters may be form and grades but for two remarks."""
    (ref,) = [SampleRef.model_construct(id="os/1/1", domain="os", task_key="1")]
    judge = JudgeRecord.model_construct(digest="d", model="judge")
    verdict = Verdict.model_construct(scores={}, reply=words + TERSE, prompt_sha256="p")
    prediction = Prediction.model_construct(observation="short")
    case = Case(ref, load_tasks(["os"])["os"], None, 1, prediction, ((judge, verdict),))
    assert [one.kind for one in copies_of(case)] == (["reply d"] if copied else [])


# --- identity and numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claimed", "served", "same"),
    [
        ("openai/gpt-5.2-2025-12-11", "gpt-5.2-2025-12-11", True),
        ("openai/gpt-5.2", "gpt-5.2-2025-12-11", True),
        ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("openrouter/deepseek/deepseek-chat:free", "deepseek/deepseek-chat", True),
        ("openai-api/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", True),
        ("openai/gpt-5.2", "gpt-4o-mini", False),
        ("openai/gpt-5.2", "", False),
    ],
)
def test_names_of_one_model(claimed: str, served: str, same: bool) -> None:
    assert same_model(claimed, served) is same


samplings = st.builds(
    Sampling,
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0.1, 1),
    seed=st.none() | st.integers(0, 99),
    max_tokens=st.none() | st.integers(1, 99999),
    extra=st.dictionaries(
        st.sampled_from(["top_k", "stop", "reasoning", "chat_template_kwargs"]), st.integers(), max_size=3
    ),
    thinking=st.sampled_from(["on", "off", "default"]),
    reasoning_effort=st.none() | st.sampled_from(["low", "high"]),
)


@given(samplings)
def test_a_sampling_comes_back_from_its_record(sampling: Sampling) -> None:
    assert recorded_sampling(sampling.described()) == sampling


values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(values, values)
def test_differences_are_those_of_unequal_values(one: Any, other: Any) -> None:
    assert list(differences(one, one)) == []
    if list(differences(one, other)) == []:
        assert list(differences(other, one)) == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": 1.0}, {"a": 1.0 + 1e-12}, []),
        ({"a": 1.0}, {"a": 1.0 + 1e-8}, [("a", "1", "1.00000001")]),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("a", "1", "True")]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [("a.b[1]", "2", "3")]),
        ({"a": [1]}, {"a": [1, 2]}, [("a", "[1]", "[1, 2]")]),
        ({}, {"a": 0}, [("a", "None", "0")]),
    ],
)  # fmt: skip
def test_differences(one: Any, other: Any, expected: list[tuple[str, str, str]]) -> None:
    assert list(differences(one, other)) == expected


def test_what_is_not_claimed_is_not_compared() -> None:
    optional = frozenset({"later"})
    assert list(differences({"a": 1}, {"a": 1, "later": 2}, optional=optional)) == []
    assert list(differences({"later": 1}, {"later": 2}, optional=optional)) == [("later", "1", "2")]
    assert list(differences([{"b": {}}], [{"b": {"later": 2}}], optional=optional)) == []
    assert list(differences({"a": 1}, {"a": 1, "b": 2}, optional=optional)) == [("b", "None", "2")]


def test_not_a_number_is_no_number() -> None:
    assert list(differences({"a": 1.0}, {"a": math.nan})) == [("a", "1", "nan")]


# --- findings ---------------------------------------------------------------------------------------------------


def test_hits_of_one_kind_are_one_finding() -> None:
    hits = [
        Hit("prompts", "warning", "w", "0"),
        *(Hit("numbers", "refused", "m", str(number)) for number in range(30)),
    ]
    found = gathered(hits)
    assert [(one.severity, one.count, len(one.where)) for one in found] == [
        ("refused", 30, 20),
        ("warning", 1, 1),
    ]


@pytest.mark.parametrize(
    ("severity", "left", "expected"),
    [
        (None, False, "accepted"), ("info", False, "accepted"), ("warning", False, "accepted"), ("refused", False, "refused"),
        (None, True, "incomplete"), ("warning", True, "incomplete"), ("refused", True, "refused"),
    ],
)  # fmt: skip
def test_verdicts(severity: Any, left: bool, expected: str) -> None:
    findings = [Finding(check="c", severity=severity, message="m")] if severity else []
    assert verdict_of(findings, [Unchecked(check="data", why="w")] if left else []) == expected
