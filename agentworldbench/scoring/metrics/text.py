"""Metrics of every domain: equality, lines, longest common subsequence, length.

Each takes the sample's `Facts` and a normalised prediction and returns a number in [0, 1]; the
reference itself scores exactly 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agentworldbench.scoring.metrics.base import Metric
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1

_TOKEN: Final = re.compile(
    r"[a-z0-9]+"
    r"|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]"
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
    """Tokens of the `rouge-score` package without stemming; every CJK code point is one of its own.

    Found in one pass: the package's own function makes three over the whole text.
    """
    return _TOKEN.findall(text.lower())


def has_tokens(facts: Facts) -> bool:
    """ROUGE-L applies when the reference has a token."""
    return bool(facts.once(tokens, facts.reference))


def rouge_l(facts: Facts, prediction: str) -> float:
    """F of the longest common subsequence of tokens [Lin 2004], equal to the `rouge-score` package."""
    return rouge_of(facts.once(tokens, facts.reference), facts.once(tokens, prediction))


def rouge_of(reference: Sequence[str], predicted: Sequence[str]) -> float:
    """ROUGE-L of two lists of tokens; 0 where one is empty."""
    from rapidfuzz.distance import LCSseq

    if not reference or not predicted:
        return 0.0
    # Numbers instead of words: rapidfuzz compares the hashes of all else.
    numbers: dict[str, int] = {}
    numbered = [
        [numbers.setdefault(token, len(numbers)) for token in some] for some in (reference, predicted)
    ]
    common = LCSseq.similarity(*numbered)
    precision, recall = common / len(predicted), common / len(reference)
    return 2 * precision * recall / (precision + recall) if common else 0.0


def length_ratio(facts: Facts, prediction: str) -> float:
    """min/max of the character counts (both 0: 1). Diagnostic, never primary."""
    shorter, longer = sorted((len(prediction), len(facts.reference)))
    return shorter / longer if longer else 1.0


METRICS: Final = {
    "exact_match": Metric(exact_match),
    "masked_exact_match": Metric(masked_exact_match),
    "line_f1": Metric(line_f1),
    "rouge_l": Metric(rouge_l, has_tokens),
    "length_ratio": Metric(length_ratio),
}
