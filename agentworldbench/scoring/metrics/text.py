"""Metrics of every domain: equality, lines, longest common subsequence, length.

Each takes the sample's `Facts` and a normalised prediction and returns a number in [0, 1]; the
reference itself scores exactly 1.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agentworldbench.scoring.metrics.facts import Facts, multiset_f1

_CJK = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f])"
)


def exact_match(facts: Facts, prediction: str) -> float:
    """1 when N(prediction) = N(reference)."""
    return float(prediction == facts.reference)


def masked_exact_match(facts: Facts, prediction: str) -> float:
    """1 when both are equal once volatile text is masked."""
    return float(facts.mask(prediction) == facts.masked_reference)


def line_f1(facts: Facts, prediction: str) -> float:
    """F1 of the multisets of masked non-blank lines."""
    return multiset_f1(facts.lines(prediction), facts.reference_lines)


def tokens(text: str) -> list[str]:
    """Tokens of the `rouge-score` package without stemming; every CJK code point is one of its own."""
    from rouge_score.tokenize import tokenize

    found: list[str] = []
    for part in _CJK.split(text):
        if len(part) == 1 and _CJK.match(part):
            found.append(part)
        elif part:
            found.extend(tokenize(part, None))
    return found


@lru_cache(maxsize=4)
def _reference_tokens(reference: str) -> tuple[str, ...]:
    return tuple(tokens(reference))


def has_tokens(facts: Facts) -> bool:
    """ROUGE-L applies when the reference has a token."""
    return bool(_reference_tokens(facts.reference))


def rouge_l(facts: Facts, prediction: str) -> float:
    """F of the longest common subsequence of tokens [Lin 2004], equal to the `rouge-score` package."""
    from rapidfuzz.distance import LCSseq

    reference, predicted = _reference_tokens(facts.reference), tokens(prediction)
    if not predicted:
        return 0.0
    numbers: dict[str, int] = {}
    interned = [
        [numbers.setdefault(token, len(numbers)) for token in some] for some in (reference, predicted)
    ]
    common = LCSseq.similarity(*interned)
    precision, recall = common / len(predicted), common / len(reference)
    return 2 * precision * recall / (precision + recall) if common else 0.0


def length_ratio(facts: Facts, prediction: str) -> float:
    """min/max of the character counts (both 0: 1). Diagnostic, never primary."""
    shorter, longer = sorted((len(prediction), len(facts.reference)))
    return shorter / longer if longer else 1.0
