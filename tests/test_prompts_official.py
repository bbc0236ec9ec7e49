"""The judge's messages of the protocol official.

Data: `cases/prompts/official_judge.yaml`, messages under a template of our own, written out; and
`cases/official/rows.jsonl`, which states length and hash of the official messages. The lengths hold for any
template as long as the official one, so they are checked everywhere; the hashes need the official files:
by hand, with the marker `shared` (`AWB_SHARED=FOLDER pytest -m shared`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import ConfigError
from agentworldbench.official import extract, without_marker
from agentworldbench.official_files import OfficialPrompts, official_prompts
from agentworldbench.prompts import messages_sha256
from agentworldbench.prompts_official import official_judge_messages
from agentworldbench.records import OFFICIAL_DOMAINS, Message, Sample, SampleRef
from agentworldbench.task import load_tasks
from agentworldbench.texts import sha256_text
from tests.test_official_files import shared_folder
from tests.test_prompts import BEYOND, REFUSED, ROWS, load_row

CASES = Path(__file__).parent / "cases"
TASKS = load_tasks()
OWN = yaml.safe_load((CASES / "prompts" / "official_judge.yaml").read_text(encoding="utf-8"))
JUDGED = [
    name for name, case in ROWS.items() if name not in REFUSED and "judge_user_length" in case["official"]
]
"""Rows that our loader takes and whose prediction the official code gives to a judge."""
OFFICIAL_LENGTH = 1871
_PARTS = "{context}\n\n{world_model_input}\n\n{predicted_observation}\n\n{ground_truth}\n\n"
_BRACES = "{{}}{{}}"  # the official template has two such pairs, which are written once each
LENGTH_TEMPLATE = (_PARTS + _BRACES).ljust(OFFICIAL_LENGTH, "x")
"""The parts as the official template has them, a blank line apart, and as long as that one."""


def prompts_with(template: str) -> OfficialPrompts:
    systems = {domain: f" Judge {domain}.\n" for domain in OFFICIAL_DOMAINS}
    return OfficialPrompts("c" * 40, Path("nowhere"), systems, template, {})


def sample_of(prompts: list[str], responses: list[str], action: str, system: str = "not shown") -> Sample:
    ref = SampleRef(
        id="terminal/1/1",
        domain="terminal",
        row_id=1,
        turn_idx=len(prompts),
        total_turns=len(prompts),
        cluster="c",
        task_key="t",
        row_hash="h",
        line=1,
        offset=0,
        length=1,
        context_chars=1,
    )
    return Sample(ref=ref, system=system, prompts=tuple(prompts), responses=tuple(responses), action=action)


def judged(name: str, prompts: OfficialPrompts, folder: Path) -> tuple[Message, ...]:
    """A vector's row and reply on the official way: extraction, marker step, messages."""
    sample, task = load_row(ROWS[name]["row"], folder)
    observation = without_marker(extract(ROWS[name]["gen"], task.prediction_tag), task.markers.observation)
    return official_judge_messages(prompts, task, sample, observation)


@pytest.mark.parametrize("name", OWN["cases"])
def test_messages_under_a_template_of_our_own(name: str) -> None:
    case: dict[str, Any] = OWN["cases"][name]
    sample = sample_of(case["prompts"], case["responses"], case["action"])
    system, user = official_judge_messages(
        prompts_with(OWN["template"]), TASKS["terminal"], sample, case["observation"]
    )
    assert (system.role, system.content) == ("system", " Judge terminal.\n")
    assert (user.role, user.content) == ("user", case["user"])


def test_the_rows_that_are_judged_are_counted() -> None:
    assert len(JUDGED) == 38
    assert not set(BEYOND) & set(JUDGED)


@pytest.mark.parametrize("name", JUDGED)
def test_lengths_equal_the_official_ones(name: str, tmp_path: Path) -> None:
    _, user = judged(name, prompts_with(LENGTH_TEMPLATE), tmp_path)
    assert len(user.content) == ROWS[name]["official"]["judge_user_length"]


texts = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from(["{", "}", "{{", "{context}", "{ground_truth}", "```", "\n", "a"])
).map("".join)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=3), texts, texts)
def test_every_part_is_text(turns: list[tuple[str, str]], action: str, observation: str) -> None:
    sample = sample_of([prompt for prompt, _ in turns], [response for _, response in turns], action)
    template = "<{context}|{world_model_input}|{predicted_observation}|{ground_truth}>"
    _, user = official_judge_messages(prompts_with(template), TASKS["terminal"], sample, observation)
    told = "".join(f"{prompt}\n{response}\n\n" for prompt, response in turns[:-1])
    context = "# Context (Historical Interactions):\n\n" + told if told else ""
    reference = without_marker(turns[-1][1], TASKS["terminal"].markers.observation)
    assert user.content == (
        f"<{context}|# Current Turn:\n\n{action}|**World Model Output (Simulated):**\n```\n{observation}\n```|"
        f"**Ground Truth (Real Output):**\n```\n{reference}\n```>"
    )


def test_a_domain_without_official_prompt_is_refused() -> None:
    task = TASKS["terminal"].model_copy(update={"domain": "shop"})
    with pytest.raises(ConfigError, match="no judge prompt for domain 'shop'"):
        official_judge_messages(prompts_with(OWN["template"]), task, sample_of(["a"], ["b"], "a"), "x")


@pytest.mark.shared
@pytest.mark.parametrize("name", JUDGED)
def test_messages_equal_the_official_ones(name: str, tmp_path: Path) -> None:
    official = ROWS[name]["official"]
    messages = judged(name, official_prompts(shared_folder() / "prompts"), tmp_path)
    assert sha256_text(messages[1].content) == official["judge_user_sha256"]
    assert messages_sha256(messages) == official["judge_messages_sha256"]
