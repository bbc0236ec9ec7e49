"""The counts that the official GUI prompts speak of: our definitions, and where they stand in the message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.official_diagnostics import diagnostics_block
from agentworldbench.official_files import OfficialPrompts
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import OFFICIAL_DOMAINS, Sampling
from agentworldbench.scoring.judge import Judge
from tests.helpers.asking import TASKS, make_sample
from tests.helpers.fake_model import FakeModel, says

TAG = "predicted_observation"
PROMPTS = OfficialPrompts(
    commit="0" * 40,
    folder=Path("nowhere"),
    systems={domain: f"Judge the {domain} answer." for domain in OFFICIAL_DOMAINS},
    user="{context}\n\n{world_model_input}\n\n{predicted_observation}\n\n{ground_truth}",
    sha256={"user": "f" * 64},
)
CASES: list[tuple[str | None, str, dict[str, Any]]] = [
    (
        f"It would likely open. Maybe not. <{TAG}>a button</{TAG}>",
        "a button",
        {"raw_would_word_count": 1, "raw_likely_word_count": 1, "raw_speculative_word_count": 3,
         "response_start_tag_count": 1, "response_end_tag_count": 1, "extracted_output_chars": 8,
         "extracted_no_output": False},
    ),
    (f"<{TAG}>x<{TAG}>y", "y", {"response_start_tag_count": 2, "response_end_tag_count": 0}),
    ("<think>cut", "No output", {"extracted_no_output": True, "raw_chars": 10}),
    ("wouldn't mightily", "wouldn't mightily", {"raw_would_word_count": 0, "raw_nonfinal_chars": 0}),
    (None, "", {"raw_chars": 0, "extracted_no_output": True}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "observation", "expected"), CASES)
def test_counts(text: str | None, observation: str, expected: dict[str, Any]) -> None:
    heading, _, block = diagnostics_block(text, observation, TAG).partition("\n")
    assert heading == "**World Model Output Diagnostics:**"
    counts = json.loads(block)
    assert {name: counts[name] for name in expected} == expected


def judge_of(diagnostics: bool) -> Judge:
    model = FakeModel(lambda request, number: says("unused"))
    return Judge(
        model, Sampling(), PROTOCOLS["official"], TASKS, False, 3, official=PROMPTS, diagnostics=diagnostics
    )


@pytest.mark.parametrize(("domain", "diagnostics", "there"), [
    ("web", True, True), ("android", True, True), ("os", True, True),
    ("terminal", True, False), ("web", False, False),
])  # fmt: skip
def test_the_block_stands_behind_the_prediction_of_gui_domains(
    domain: str, diagnostics: bool, there: bool
) -> None:
    request = judge_of(diagnostics).request(
        make_sample(domain=domain), "a button", raw="it would be: a button"
    )
    user = request.messages[1].content
    assert ("Diagnostics" in user) is there
    if there:
        assert user.index("a button\n```") < user.index("Diagnostics") < user.index("**Ground Truth")
        assert '"raw_would_word_count": 1' in user


def test_such_a_judge_is_another_judge() -> None:
    assert judge_of(True).digest() != judge_of(False).digest()
    assert "diagnostics" in judge_of(True).record().prompts
