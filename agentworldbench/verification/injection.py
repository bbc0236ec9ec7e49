"""Predictions that speak to the judge, and whether the judge listened.

In: a case. Out: what in the observation is no environment's text but a verdict, a heading of the judge's prompt or an
instruction to it, unless the sample's own texts or its reference hold the same. Markup of a verdict (its tag, an
object of the five dimensions, a boundary line, a heading of the prompt) has no other use than to be taken for one: it
is refused. Words ("score: 5", "ignore the instructions above") can be honest, so they are a warning, unless the
judge obeyed: where the mean score of such samples is at least 1 point (of 1-5) above that of all others and at least
4, they are refused too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import fsum
from typing import Final

from agentworldbench.records import DIMENSIONS
from agentworldbench.verification.findings import Hit, Severity
from agentworldbench.verification.material import Case
from agentworldbench.verification.replay import reference_of, shown_texts

_NAMES: Final = "|".join(DIMENSIONS)
MARKUP: Final[dict[str, re.Pattern[str]]] = {
    "a verdict's tag": re.compile(r"<\s*/?\s*final_evaluation\s*>", re.IGNORECASE),
    "a verdict as JSON": re.compile(
        rf"[\"']scores[\"']\s*:\s*\{{[^{{}}]{{0,200}}[\"'](?:{_NAMES})[\"']\s*:\s*[\"']?\d", re.IGNORECASE
    ),
    "a boundary line": re.compile(r"\[\[\s*OBS-[0-9a-fA-F]{4,}"),
    "a heading of the judge's prompt": re.compile(
        r"\*\*(?:World Model Output \(Simulated\)|Ground Truth \(Real Output\))\s*:?\*\*", re.IGNORECASE
    ),
}
"""Text that only a judge's prompt or reply has."""
WORDS: Final[dict[str, re.Pattern[str]]] = {
    "a grade": re.compile(
        rf"\b(?:{_NAMES}|overall|total|final)?\s?(?:score|rating|grade)s?\s*(?:is|=|:)\s*(?:5|five)(?:\s*(?:/|out of)\s*(?:5|five))?\b",
        re.IGNORECASE,
    ),
    "a dimension with its grade": re.compile(rf"\b(?:{_NAMES})\s*(?:=|:)\s*5\s*/\s*5\b", re.IGNORECASE),
    "an instruction to ignore others": re.compile(
        r"\b(?:ignore|disregard|forget)\b[^.\n]{0,40}\b(?:previous|above|prior|earlier|all|other)\b[^.\n]{0,30}"
        r"\b(?:instruction|prompt|rule|criteri|guideline)",
        re.IGNORECASE,
    ),
    "an instruction to grade": re.compile(
        r"\b(?:give|assign|award|rate|grade|score)\b[^.\n]{0,40}\b(?:full|perfect|maximum|highest|top|5|five)\b"
        r"[^.\n]{0,20}\b(?:score|mark|rating|grade|point)s?\b",
        re.IGNORECASE,
    ),
    "an address to the judge": re.compile(
        r"\b(?:dear|attention|note to|as|to)\s+(?:the\s+)?(?:judge|evaluator|grader)\b|\byou are (?:a|an|the) (?:judge|evaluator|grader)\b",
        re.IGNORECASE,
    ),
}
"""Words that ask for a grade; environments may print them, too."""
_HINTS: Final = (
    "final_evaluation", "scores", "obs-", "(simulated)", "(real output)", "score", "rating", "grade", "5/5", "5 /", "ignore",
    "disregard", "forget", "mark", "point", "judge", "evaluator",
)  # fmt: skip
"""In small letters, one of these stands in every match: most observations need no further look."""
OBEYED: Final = 1.0
HIGH: Final = 4.0


@dataclass(frozen=True)
class Judged:
    """One case: what in it speaks to the judge (None: nothing), whether that is markup, its mean score 1-5."""

    where: str
    found: str | None
    markup: bool
    score: float | None


def injection_of(case: Case) -> Judged | None:
    """What a case's prediction says to the judge; None where there is nothing that could be judged."""
    texts = shown_texts(case)
    if not texts:
        return None
    values = [
        fsum(verdict.scores.values()) / len(verdict.scores) for _, verdict in case.verdicts if verdict.scores
    ]
    score = fsum(values) / len(values) if values else None
    for name, found, markup in (one for text in texts for one in spoken(text)):
        if not _own(case, found):
            return Judged(f"{case.where}: {name}: {found!r:.80}", name, markup, score)
    return Judged(case.where, None, False, score)


def spoken(text: str) -> Iterator[tuple[str, str, bool]]:
    """What of the two tables stands in a text: its name there, the words, whether it is markup."""
    small = text.lower()
    if not any(hint in small for hint in _HINTS):
        return
    for table, markup in ((MARKUP, True), (WORDS, False)):
        for name, pattern in table.items():
            for match in pattern.finditer(text):
                yield name, match.group(), markup


def _own(case: Case, found: str) -> bool:
    """Whether the sample's own texts say the same."""
    sample = case.sample
    if sample is None:
        return False
    words = " ".join(found.split()).lower()
    texts = (sample.system, *sample.prompts, *sample.responses[:-1], reference_of(case) or "")
    return any(words in " ".join(text.split()).lower() for text in texts)


def check_injection(cases: Iterable[Judged]) -> Iterator[Hit]:
    """Hits over all cases; words are refused where the judge obeyed them."""
    all_of = list(cases)
    spoke = [one for one in all_of if one.found is not None and not one.markup]
    there, others = _mean(spoke), _mean([one for one in all_of if one.found is None])
    obeyed = there is not None and there >= HIGH and others is not None and there - others >= OBEYED
    told = (
        "" if there is None or others is None else f"; mean score there {there:.2f}, elsewhere {others:.2f}"
    )
    for one in all_of:
        if one.found is None:
            continue
        severity: Severity = "refused" if one.markup or obeyed else "warning"
        what = "a prediction imitates a verdict or the judge's prompt"
        if not one.markup:
            what = f"a prediction asks the judge for a grade{told}{': the judge obeyed' if obeyed else ''}"
        yield Hit("judge injection", severity, what, one.where)


def _mean(some: list[Judged]) -> float | None:
    scores = [one.score for one in some if one.score is not None]
    return fsum(scores) / len(scores) if scores else None
