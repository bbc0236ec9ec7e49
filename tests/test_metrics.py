"""Each metric against values computed by hand, ROUGE-L against the `rouge-score` package, hostile sizes.

Cases stand in `cases/metrics/`: `values.yaml` and a file a family, read here together. What all metrics must
obey together is in `test_metric_laws.py`.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.records import FailureKind, Sample, SampleRef
from agentworldbench.scoring.metrics import MAX_CHARACTERS, METRICS, score_observation
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1, normalise
from agentworldbench.scoring.metrics.text import rouge_l, tokens
from agentworldbench.task import METRIC_NAMES, load_tasks

TASKS = load_tasks()
FILES = [
    yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "cases" / "metrics").glob("*.yaml"))
]
VALUES = [case for cases in FILES if isinstance(cases, list) for case in cases]
SHAPES = [
    "the cat sat",
    "cat",
    "The",
    "ran,",
    "x1",
    "\n",
    "...",
    "it's",
    "naïve",
    "A_B",
    "3.14",
    "\u212a",
    "İ",
]
latin = st.one_of(st.lists(st.sampled_from(SHAPES)).map(" ".join), st.text(st.characters(codec="latin-1")))


def made(
    domain: str,
    reference: str,
    previous: str | None = None,
    action: str | None = None,
    state: str | None = None,
) -> Sample:
    """A sample of turn 2 behind `previous`, or of turn 1: with the block `state`, or without one."""
    marker = "**Environment Observation:**\n"
    texts = [reference] if previous is None else [previous, reference]
    heads = ["" if state is None else f"**Current State:**\n{state}\n\n", ""]
    acts = [action or f"go {n}" for n in range(len(texts))]
    prompts = tuple(f"### Turn {n}\n{heads[n]}**Action:**\n```\n{act}\n```" for n, act in enumerate(acts))
    ref = SampleRef(
        id=f"{domain}/1/{len(texts)}", domain=domain, row_id=1, turn_idx=len(texts), total_turns=2, cluster="c",
        task_key="k", row_hash="0" * 64, line=1, offset=0, length=1, context_chars=1,
    )  # fmt: skip
    return Sample(
        ref=ref,
        system="",
        prompts=prompts,
        responses=tuple(marker + text for text in texts),
        action=prompts[-1],
    )


def scores(
    domain: str, reference: str, prediction: str | None, previous: str | None = None
) -> dict[str, float]:
    return score_observation(made(domain, reference, previous), TASKS[domain], prediction).values


@pytest.mark.parametrize("case", VALUES, ids=lambda case: f"{case['metric']}: {case['id']}")
def test_values_computed_by_hand(case: dict[str, Any]) -> None:
    sample = made(
        case["domain"], case["reference"], case.get("previous"), case.get("action"), case.get("state")
    )
    scored = score_observation(sample, TASKS[case["domain"]], case["prediction"])
    if case["value"] is None:
        assert case["metric"] not in scored.applicable
        assert case["metric"] not in scored.values
    else:
        assert scored.values[case["metric"]] == pytest.approx(float(Fraction(case["value"])), abs=1e-12)


def test_every_metric_has_a_function_and_cases() -> None:
    assert set(METRICS) == set(METRIC_NAMES)
    assert {case["metric"] for case in VALUES} == set(METRICS)


@settings(max_examples=50)
@given(latin, latin.filter(lambda text: tokens(text)))
def test_rouge_l_equals_the_package(prediction: str, reference: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer(["rougeL"], use_stemmer=False).score(reference, prediction)["rougeL"].fmeasure
    sample = made("terminal", "x")
    facts = Facts(sample, TASKS["terminal"])
    facts.reference = reference
    assert rouge_l(facts, prediction) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("文件 a.txt 不存在", ["文", "件", "a", "txt", "不", "存", "在"]),
        ("カタカナとひらがな", list("カタカナとひらがな")),
        ("한국어 text", ["한", "국", "어", "text"]),
        ("x文y", ["x", "文", "y"]),
        ("\U00020000\U0002a6df", ["\U00020000", "\U0002a6df"]),
        ("，。！", []),
        ("naïve Straße", ["na", "ve", "stra", "e"]),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@settings(deadline=None)
@given(st.text())
def test_normalise_cuts_only_what_it_says(text: str) -> None:
    clean = normalise(text)
    assert normalise(clean) == clean
    lines = [line.rstrip(" \t") for line in text.replace("\r\n", "\n").split("\n")]
    kept = clean.split("\n")
    assert not clean or (kept[0] and kept[-1])
    assert [line for line in lines if line] == [line for line in kept if line]
    inner = "\n".join(lines)
    assert clean in inner and not inner.replace(clean, "", 1).strip("\n")


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 5)),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 5)),
)
def test_multiset_f1_is_symmetric_and_one_only_for_equals(one: dict[str, int], other: dict[str, int]) -> None:
    from collections import Counter

    value = multiset_f1(Counter(one), Counter(other))
    assert value == multiset_f1(Counter(other), Counter(one))
    assert 0 <= value <= 1
    assert (value == 1) == (one == other)


def test_a_failed_prediction_has_no_values_but_keeps_what_applies() -> None:
    sample = made("web", "a\nb", "a")
    good = score_observation(sample, TASKS["web"], "a")
    failed = score_observation(sample, TASKS["web"], None, failed=FailureKind.TRUNCATED, epoch=2)
    assert failed.applicable == good.applicable != ()
    assert failed.values == {}
    assert (failed.failed, failed.epoch) == (FailureKind.TRUNCATED, 2)


def test_an_over_long_prediction_is_cut_and_flagged() -> None:
    limit = "a" * MAX_CHARACTERS
    sample = made("terminal", limit)
    for text, flags in ((limit, ()), (limit + "b", ("cut_to_1_MB",))):
        scored = score_observation(sample, TASKS["terminal"], text)
        assert scored.values["exact_match"] == 1
        assert scored.flags == flags


@pytest.mark.parametrize("domain", ["android", "web", "os"])
def test_the_heading_of_a_state_is_no_change(domain: str) -> None:
    """One android source puts `**Current Phone State:**` into every response and above the block of turn 1."""
    heading = TASKS[domain].markers.state[-1]
    base = made(domain, f"{heading}\n• app\n• keyboard")
    first = f"### Turn 1\n**Task Instruction:**\nx\n\n{heading}\n• app\n• keyboard\n\n**Action:**\ny"
    sample = base.model_copy(update={"prompts": (first,), "action": first})
    scored = score_observation(sample, TASKS[domain], "• app\n• keyboard")
    assert "change_f1" not in scored.applicable
    assert scored.values["noop_match"] == 1


HOSTILE = {
    "a million line breaks": "a" + "\n" * 1_000_000 + "b",
    "blank lines in front": " \n" * 500_000 + "b",
    "clocks on one line": 'text="12:34"' * 90_000,
    "Chinese": "文" * 1_000_000,
    "short words": "a b " * 250_000,
    "numbers": "1." * 500_000,
}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("domain", ["terminal", "android"])
def test_a_megabyte_is_scored_in_time(domain: str, name: str) -> None:
    """Nothing may take time that grows with the square of the text; the timeout is generous."""
    reference = "\n".join(f"line {n} of the reference, 12:34" for n in range(500))
    values = scores(domain, reference, HOSTILE[name], previous="x\ny")
    assert set(values) >= {"exact_match", "line_f1", "rouge_l", "length_ratio"}
    assert all(0 <= value <= 1 for value in values.values())
    assert values["line_f1"] < 1
