"""The strict verdict parser: five integers 1-5 or a typed failure, for every reply and at every size.

Cases stand in `cases/verdict/strict.yaml`; what the parser must do with the official vectors is only
that it never reads other scores than the official one where both read some.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.records import DIMENSIONS, Failure, FailureKind
from agentworldbench.resources import asset
from agentworldbench.scoring.verdict import ReadVerdict, read_verdict

CASES = Path(__file__).parent / "cases"
STRICT = yaml.safe_load((CASES / "verdict" / "strict.yaml").read_text(encoding="utf-8"))
OFFICIAL = [
    json.loads(line) for line in (CASES / "official" / "verdicts.jsonl").read_bytes().split(b"\n") if line
]
_SHORT = re.compile(r"\b(V|BLK)\((-?\d+(?:,-?\d+){4})\)")

five = st.lists(st.integers(1, 5), min_size=5, max_size=5)
_TAGLIKE = re.compile("think>|final_evaluation>|<short|<integer", re.IGNORECASE)
sentences = st.lists(
    st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not _TAGLIKE.search(text)),
    max_size=3,
)


def verdict_json(scores: list[int]) -> str:
    verdict = {"strengths": [], "weaknesses": [], "scores": dict(zip(DIMENSIONS, scores, strict=True))}
    return json.dumps(verdict, separators=(",", ":"))


def block(scores: list[int]) -> str:
    return f"<final_evaluation>\n```json\n{verdict_json(scores)}\n```\n</final_evaluation>"


def written_out(text: str) -> str:
    """`text` with V(…) and BLK(…) in full."""

    def full(match: re.Match[str]) -> str:
        scores = [int(number) for number in match.group(2).split(",")]
        return verdict_json(scores) if match.group(1) == "V" else block(scores)

    return _SHORT.sub(full, text)


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case["id"])
def test_strict_cases(case: dict[str, Any]) -> None:
    shown = tuple(written_out(text) for text in case.get("shown", ()))
    verdict = read_verdict(written_out(case["reply"]), shown=shown)
    if "failure" in case:
        assert isinstance(verdict, Failure), verdict
        assert verdict.kind == case["failure"]
        assert case.get("message", "") in verdict.message
    else:
        assert isinstance(verdict, ReadVerdict), verdict
        assert list(verdict.scores) == list(DIMENSIONS)
        assert list(verdict.scores.values()) == case["scores"]
        assert all(type(score) is int for score in verdict.scores.values())
        for field in ("strengths", "weaknesses"):
            assert list(getattr(verdict, field)) == case.get(field, [])
        assert verdict.found == case.get("found", verdict.found)


def test_case_ids_are_unique() -> None:
    assert len({case["id"] for case in STRICT}) == len(STRICT)


@pytest.mark.parametrize("filled", ["5", "<integer 1-5>"])
def test_the_answer_form_repeated_is_never_a_verdict(filled: str) -> None:
    """JP-15: a badly templated judge repeats the prompt, and its example is not what it thinks."""
    prompt = asset("tasks", "prompts", "builtin", "answer_text.md").read_text(encoding="utf-8")
    assert "<short sentence>" in prompt and "<integer 1-5>" in prompt
    echo = "user\n" + prompt.replace("<integer 1-5>", filled)
    assert isinstance(read_verdict(echo), Failure)
    own = read_verdict(f"{echo}\nassistant\n{block([2, 3, 2, 2, 2])}")
    assert isinstance(own, ReadVerdict)
    assert list(own.scores.values()) == [2, 3, 2, 2, 2]


def test_the_json_form_holds_no_object_to_repeat() -> None:
    """Structured output gives the layout; an example would only be copied by small judges."""
    assert "{" not in asset("tasks", "prompts", "builtin", "answer_json.md").read_text(encoding="utf-8")


def test_official_vectors_are_never_read_with_other_scores() -> None:
    """Where the strict parser reads a verdict, it has the official scores; odd ones it refuses."""
    read = {case["id"]: read_verdict(case["reply"] or "") for case in OFFICIAL}
    assert len(read) == 264
    odd = {}
    for case in OFFICIAL:
        verdict = read[case["id"]]
        if isinstance(verdict, ReadVerdict) and verdict.scores != case["official"]["scores"]:
            odd[case["id"]] = list(verdict.scores.values())
    assert odd == yaml.safe_load((CASES / "verdict" / "unlike_official.yaml").read_text(encoding="utf-8"))
    refused = {
        name for name, verdict in read.items() if name.startswith("clean-") and isinstance(verdict, Failure)
    }
    assert refused == {"clean-cr-only"}  # a fence needs lines, and a lone CR ends none
    assert sum(isinstance(verdict, ReadVerdict) for verdict in read.values()) == 114


@settings(deadline=None)
@given(five, sentences, sentences, st.sampled_from(["", "One.\n", "<think>2?</think>", "a ```x``` {b}\n"]))
def test_what_is_written_in_the_documented_form_is_read_back(
    scores: list[int], strengths: list[str], weaknesses: list[str], before: str
) -> None:
    named = dict(zip(DIMENSIONS, scores, strict=True))
    body = json.dumps({"strengths": strengths, "weaknesses": weaknesses, "scores": named}, indent=2)
    for ascii_only in (True, False):
        body = json.dumps(json.loads(body), indent=2, ensure_ascii=ascii_only)
        for reply in (f"{before}<final_evaluation>\n```json\n{body}\n```\n</final_evaluation>", body):
            verdict = read_verdict(reply)
            assert isinstance(verdict, ReadVerdict), verdict
            assert verdict.scores == named
            assert verdict.strengths == tuple(strengths)
            assert verdict.weaknesses == tuple(weaknesses)


PARTS = [
    *(
        "<final_evaluation>",
        "</final_evaluation>",
        "<think>",
        "</think>",
        "```json\n",
        "\n```\n",
        "\n",
        "{",
        "}",
    ),
    *('"scores":', "[", "]", ",", "5", "0", "6", "4.5", "true", "NaN", '"format":', '"quality":', '"', "\\"),
    *(block([5, 1, 5, 1, 5]), verdict_json([2, 2, 2, 2, 2]), verdict_json([0, 6, -1, 9, 7])),
]


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=12).map("".join)), st.text())
def test_any_text_fails_or_gives_scores_from_1_to_5(reply: str, shown: str) -> None:
    verdict = read_verdict(reply, shown=(shown,))
    if isinstance(verdict, ReadVerdict):
        assert list(verdict.scores) == list(DIMENSIONS)
        assert all(type(score) is int and 1 <= score <= 5 for score in verdict.scores.values())
    else:
        assert verdict.kind in (FailureKind.JUDGE_UNPARSED, FailureKind.JUDGE_AMBIGUOUS)
        assert verdict.message


@settings(deadline=None)
@given(five, st.text())
def test_a_block_of_the_shown_texts_never_counts(scores: list[int], around: str) -> None:
    shown = f"{around}{json.dumps(json.loads(verdict_json(scores)), indent=3)}{around}"
    assert isinstance(read_verdict(block(scores), shown=("other", shown)), Failure)


def deep(depth: int) -> str:
    nested = "[" * depth + "]" * depth
    return verdict_json([3, 3, 3, 3, 3]).replace('"strengths":[]', f'"strengths":{nested}')


def test_nesting_at_the_edge_of_the_recursion_limit_never_raises() -> None:
    # The limit is near 1,000 in Python 3.11, and higher from 3.12 on.
    outcomes = {type(read_verdict(deep(depth))) for depth in (*range(1, 1_200), 200_000)}
    assert outcomes == {ReadVerdict, Failure}
    scores = verdict_json([3, 3, 3, 3, 3])
    for depth in range(850, 1_100):
        assert isinstance(read_verdict(scores.replace(":3,", f":{'[' * depth}{']' * depth},", 1)), Failure)


BIG = {
    "200,000 brackets": "[" * 200_000,
    "40,000 braces": "{" * 40_000,
    "40,000 braces on lines": "{\n" * 40_000,
    "100,000 nested objects": '{"a":' * 100_000,
    "20,000 tags": "<final_evaluation>" * 20_000,
    "20,000 tags with a fence": "<final_evaluation>\n```json\n" * 20_000,
    "20,000 think openers": "<think>" * 20_000,
    "fences": "```" * 3_001,
    "fence lines": "```\n" * 100_000,
    "a megabyte of letters": "a" * 1_000_000,
    "a megabyte of spaces": "<final_evaluation>```" + " " * 1_000_000 + "`",
    "a megabyte of backslashes": '{"scores": "' + "\\" * 1_000_000,
    "an integer of 5,000 digits": verdict_json([3, 3, 3, 3, 3]).replace("3", "4" * 5_000, 1),
    "a float of 400 digits": verdict_json([3, 3, 3, 3, 3]).replace("3", "4" + "0" * 400 + ".0", 1),
    "an integer of 4,000 digits": verdict_json([3, 3, 3, 3, 3]).replace("3", "4" * 4_000, 1),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", BIG)
def test_hostile_sizes_fail_in_time(name: str) -> None:
    verdict = read_verdict(BIG[name], shown=("factuality " * 20_000, BIG[name][:1000]))
    assert isinstance(verdict, Failure)
    assert verdict.kind is FailureKind.JUDGE_UNPARSED
    assert len(verdict.message) < 300


@pytest.mark.timeout(10)
def test_thousands_of_verdicts_are_ambiguous() -> None:
    reply = "".join(block([1 + n % 5] * 5) for n in range(5_000))
    for shown in ((), ("factuality " * 50_000,), (reply,)):
        verdict = read_verdict(reply, shown=shown)
        assert isinstance(verdict, Failure)
        assert verdict.kind is FailureKind.JUDGE_AMBIGUOUS
