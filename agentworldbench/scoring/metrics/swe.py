"""Metrics of coding agents' tools: numbered lines, exit codes, test summaries, diffs.

Each applies where the reference holds what it reads; a prediction without any of it is unparsable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from agentworldbench.scoring.metrics.base import Metric, Unparsable
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1
from agentworldbench.scoring.metrics.runners import summaries
from agentworldbench.scoring.metrics.swe_reader import diff_facts, exit_code, numbered_lines

Reader = Callable[[str], Counter[str]]


def _by_facts(read: Reader, masked: bool, missing: str) -> Metric:
    """F1 of what `read` finds; applies where it finds something in the reference."""

    def found(facts: Facts, text: str) -> Counter[str]:
        return facts.once(read, facts.mask(text) if masked else text)

    def score(facts: Facts, prediction: str) -> float | Unparsable:
        predicted = found(facts, prediction)
        return multiset_f1(predicted, found(facts, facts.reference)) if predicted else Unparsable(missing)

    return Metric(score, lambda facts: bool(found(facts, facts.reference)))


def states_exit_code(facts: Facts) -> bool:
    """`exit_code_match` applies where the reference states an exit code."""
    return facts.once(exit_code, facts.reference) is not None


def exit_code_match(facts: Facts, prediction: str) -> float | Unparsable:
    """1 when the last stated exit code is that of the reference."""
    predicted = facts.once(exit_code, prediction)
    if predicted is None:
        return Unparsable("no exit code in the prediction")
    return float(predicted == facts.once(exit_code, facts.reference))


METRICS: Final[dict[str, Metric]] = {
    "numbered_line_f1": _by_facts(numbered_lines, True, "no numbered line in the prediction"),
    "exit_code_match": Metric(exit_code_match, states_exit_code),
    # Durations are no part of a summary, so nothing has to be masked.
    "test_counts_match": _by_facts(summaries, False, "no test summary in the prediction"),
    "diff_f1": _by_facts(diff_facts, True, "no hunk of a diff in the prediction"),
}
