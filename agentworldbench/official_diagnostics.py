"""The block of counts that the official GUI judge prompts speak of and the released code never sends.

In: a reply as it came, the observation extracted from it, the answer tag. Out: a text to stand behind
the prediction in the judge's message. The prompts name the counts and not how they are made, nor is any
published number known to rest on them: the definitions are ours, a run with them says so
(`--gui-diagnostics`), and its numbers are not those of the official protocol.
"""

from __future__ import annotations

import json
import re
from typing import Final

from agentworldbench.official import NOTHING_LEFT

VERSION: Final = "ours, version 1"
DOMAINS: Final = frozenset({"android", "web", "os"})
"""Domains whose official prompt speaks of the block."""
_HEADING: Final = "**World Model Output Diagnostics:**"
_SPECULATIVE: Final = ("would", "likely", "might", "may", "could", "maybe", "perhaps", "probably", "possibly")


def diagnostics_block(text: str | None, observation: str, tag: str) -> str:
    """Counts of a reply, as JSON under a heading; words count whole, in any case."""
    raw = text or ""
    words = re.findall(r"[a-z]+", raw.lower())
    counts = {
        "raw_chars": len(raw),
        "raw_nonfinal_chars": max(len(raw) - len(observation), 0),
        "raw_speculative_word_count": sum(word in _SPECULATIVE for word in words),
        "raw_would_word_count": words.count("would"),
        "raw_likely_word_count": words.count("likely"),
        "response_start_tag_count": len(re.findall(f"<{tag}>", raw, re.IGNORECASE)),
        "response_end_tag_count": len(re.findall(f"</{tag}>", raw, re.IGNORECASE)),
        "extracted_output_chars": len(observation),
        "extracted_no_output": observation in ("", NOTHING_LEFT),
    }
    return f"{_HEADING}\n{json.dumps(counts, indent=2)}"
