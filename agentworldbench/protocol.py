"""The literal table of protocols: what stands behind one name in every result.

A protocol fixes the judge's prompts and defaults, how verdicts are read (`parse`), what a failed
sample counts (`policy`) and so which number is the headline. Results of different protocols never
share a ranking. `builtin` works offline with prompts in our own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True)
class Protocol:
    """Temperatures are >= 0; `judge_max_tokens` counts tokens of one judge reply."""

    name: str
    version: int
    parse: Literal["strict"]
    policy: Literal["exclude", "floor"]
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
}
