"""Prompts of our own wording in the shape of the official files, and what a judge was asked with them.

`own_prompts()` stands in for the fetched files: tests set it as `agentworldbench.plan.prompts_for_run`
(`use_prompts`). `judge_texts` takes a judge call's user message apart again, by plain text search.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from agentworldbench.official_files import OfficialPrompts

from .official_folder import DOMAINS
from .scripted_server import ChatCall

TEMPLATE: Final = (
    "\nTwo texts are compared.\n\n{context}\n\n{world_model_input}\n\n{predicted_observation}\n\n{ground_truth}\n\n"
    'Close with <final_evaluation>{{"scores": {{"format": 1}}}}</final_evaluation>.\n'
)
HISTORY: Final = "# Context (Historical Interactions):\n\n"
CURRENT: Final = "# Current Turn:\n\n"
PREDICTION: Final = "\n\n**World Model Output (Simulated):**\n```\n"
REFERENCE: Final = "\n```\n\n**Ground Truth (Real Output):**\n```\n"
_ENCLOSED: Final = re.compile(
    r"^\[\[[^\n]*begin: ([a-z ]+)\]\]\n(.*?)\n\[\[OBS-[0-9a-f]{20} end\]\]$", re.DOTALL | re.MULTILINE
)
END: Final = "\n```\n\nClose with "


def own_prompts(
    template: str = TEMPLATE, word: str = "rules", domains: Iterable[str] = DOMAINS
) -> OfficialPrompts:
    """Prompts for `domains`; `word` stands in each system prompt and makes it another one."""
    systems = {domain: f"You judge {domain} by these {word}.\n" for domain in domains}
    hashes = {name: _sha256(text) for name, text in [*systems.items(), ("user", template)]}
    return OfficialPrompts("c" * 40, Path("own"), systems, template, hashes)


def use_prompts(patch: pytest.MonkeyPatch, prompts: OfficialPrompts | None = None) -> None:
    """Hand `prompts` (default: `own_prompts()`) to every run of the protocol official."""
    made = prompts or own_prompts()
    patch.setattr("agentworldbench.plan.prompts_for_run", lambda folder, tell: made)


@dataclass(frozen=True)
class JudgeTexts:
    """The parts of a judge's user message under `TEMPLATE`; `history` is empty at turn 1."""

    history: str
    current: str
    prediction: str
    reference: str


def judge_texts(call: ChatCall) -> JudgeTexts:
    """The parts of one judge call; the texts themselves must not hold the headings."""
    if PREDICTION not in call.last_user:
        return _builtin_texts(call)
    before, _, rest = call.last_user.partition(PREDICTION)
    prediction, _, rest = rest.partition(REFERENCE)
    reference, end, _ = rest.rpartition(END)
    assert end, call.last_user
    history, _, current = before.partition(CURRENT)
    told = history.partition(HISTORY)[2].removesuffix("\n\n")
    return JudgeTexts(told, current, prediction, reference)


def _builtin_texts(call: ChatCall) -> JudgeTexts:
    """The same of a call of the protocol builtin; history and reference as the official code lays them out."""
    found = dict(_ENCLOSED.findall(call.last_user))
    texts = (found[name] for name in ("history", "action", "predicted observation", "reference observation"))
    history, current, prediction, reference = texts
    told = "" if history.startswith("(none") else f"{history}\n\n"
    return JudgeTexts(told, current, prediction, reference.strip())


def row_messages(row: dict[str, Any]) -> list[dict[str, str]]:
    """What a model is asked about a row of the data, from the row alone."""
    messages = [{"role": "system", "content": row["system_str"]}] if row["system_str"] else []
    for prompt, response in zip(row["prompt"][:-1], row["response"][:-1], strict=True):
        messages += [{"role": "user", "content": prompt}, {"role": "assistant", "content": response}]
    return [*messages, {"role": "user", "content": row["prompt"][-1]}]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
