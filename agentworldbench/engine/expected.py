"""How long answers are assumed to be before any has come: tokens, low to high.

In: the configuration and, for a prediction, the length of its real reference. Out: a range, reasoning
included. The low end of a prediction is its reference in tags without any reasoning; the high end is
twice that, since models also say too much, and the most reasoning that is usual: others paid 361 to 744 USD
for a pass with a frontier model, about half of it for output, which is some thousand tokens a sample. A
verdict has five integers and a few sentences. `--output-tokens` and `--judge-output-tokens` replace these
ranges.
"""

from __future__ import annotations

from typing import Final

from agentworldbench.config import RunConfig
from agentworldbench.records import Thinking

REASONING: Final[dict[Thinking, tuple[int, int]]] = {"off": (0, 0), "default": (0, 8000), "on": (1000, 16000)}
"""Tokens of reasoning before a prediction, by --thinking."""
JUDGE_REASONING: Final[dict[Thinking, tuple[int, int]]] = {"off": (0, 0), "default": (0, 1000), "on": (200, 4000)}  # fmt: skip
"""The same before a verdict."""
VERDICT: Final = (200, 700)
"""Tokens of a verdict's text."""
TAGS: Final = 30
"""Tokens around an observation."""
LONGEST_REFERENCE: Final = 4096
"""Tokens of the longest real observations (16 KB)."""

Range = tuple[int, int]


def prediction_tokens(config: RunConfig, reference: int, most: int | None = None) -> Range:
    """Output of one prediction whose reference has so many tokens; `most` bounds it."""
    if config.output_tokens:
        return _bounded(_given(config.output_tokens), most)
    low, high = REASONING[_thinking(config.thinking, config.reasoning_effort)]
    return _bounded((reference + TAGS + low, 2 * reference + TAGS + high), most)


def verdict_tokens(config: RunConfig, most: int | None = None) -> Range:
    """Output of one reply of a judge."""
    if config.judge_output_tokens:
        return _bounded(_given(config.judge_output_tokens), most)
    low, high = JUDGE_REASONING[_thinking(config.judge_thinking, config.judge_reasoning_effort)]
    return _bounded((VERDICT[0] + low, VERDICT[1] + high), most)


def _thinking(switch: Thinking, effort: str | None) -> Thinking:
    """What a flag about effort says, where there is none about thinking."""
    if switch != "default" or effort is None:
        return switch
    return "off" if effort == "none" else "on"


def _given(text: str) -> Range:
    low, _, high = text.partition("-")
    return int(low), int(high)


def _bounded(tokens: Range, most: int | None) -> Range:
    return tokens if most is None else (min(tokens[0], most), min(tokens[1], most))
