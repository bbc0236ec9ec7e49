"""The literal table of protocols: what stands behind one name in every result.

A protocol fixes the judge's prompts and defaults, how verdicts are read (`parse`), what a failed
sample counts (`policy`) and so which number is the headline. Results of different protocols never
share a ranking. `builtin` works offline with prompts in our own words; `official` is what the paper's
numbers were made with (github.com/QwenLM/Qwen-AgentWorld at cd0aa83), its prompt files downloaded and
checked by hash. Whatever the protocol, the same stored replies are read both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Parse = Literal["strict", "official"]
"""How replies become observations and verdicts: by our own strict rules, or as the official code does."""
Policy = Literal["exclude", "floor"]
"""What a failed sample counts: nothing, or 0."""


@dataclass(frozen=True)
class Protocol:
    """Temperatures are >= 0; `judge_max_tokens` counts tokens of one judge reply."""

    name: str
    version: int
    parse: Parse
    policy: Policy
    headline: Literal["macro", "micro"]
    judge_temperature: float
    judge_max_tokens: int


PROTOCOLS: Final[dict[str, Protocol]] = {
    "builtin": Protocol(
        name="builtin",
        version=1,
        parse="strict",
        policy="floor",
        headline="macro",
        judge_temperature=0.0,
        judge_max_tokens=8192,
    ),
    "official": Protocol(
        name="official",
        version=1,
        parse="official",
        policy="exclude",
        headline="macro",
        judge_temperature=0.6,
        judge_max_tokens=32768,
    ),
}
