"""Predictions that hold what no model could know: clocks, process ids, hashes and ids of the recorded answer.

In: a case with its sample. Out: whether its reference holds such text that the model was never shown, and which of it
the prediction repeats. A model that answers honestly hits one now and then (a second that passes, a small process
id), so single hits are told and no more. More than 2 % of the samples that have such text, and at least 3, cannot be
luck: the answers were seen. The classes are those of the tasks' masks, without what can be guessed (sizes, durations,
today's date, a clock without seconds).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agentworldbench.scoring.metrics.volatile import PATTERNS, Seen
from agentworldbench.texts import count_text
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case
from agentworldbench.verification.replay import reference_of, shown_texts

UNKNOWABLE: Final = ("uuid", "hex_address", "container_id", "temp_path", "git_hash", "time", "pid", "port")
REFUSED: Final = 0.02
LEAST: Final = 3
_SECONDS: Final = re.compile(r"\d{1,2}:\d\d:\d\d")
_ROUND: Final = re.compile(r":00(:00)?(?!\d)")
LEAKED: Final = "predictions repeat text of the recorded answer that no model can know"


@dataclass(frozen=True)
class Unknowable:
    """One case whose reference holds text that the model was not shown; `hit` is what the prediction has of it."""

    where: str
    hit: str | None


def unknowable_of(case: Case) -> Unknowable | None:
    """None where the reference holds no such text, or the sample is not at hand."""
    sample = case.sample
    if sample is None or case.prediction is None:
        return None
    texts = set(_volatile(reference_of(case) or "", case.task.volatile))
    if not texts:
        return None
    seen = Seen("\n".join((sample.system, *sample.prompts, *sample.responses[:-1])))
    told = Seen("\n".join(shown_texts(case)))
    # What the prediction has comes first: in an honest one there is little of it, and the history is long.
    for text in sorted(filter(told.holds, texts)):
        if not seen.holds(text):
            return Unknowable(case.where, text)
    return None if all(map(seen.holds, texts)) else Unknowable(case.where, None)


def _volatile(text: str, classes: Iterable[str]) -> Iterator[str]:
    for name in classes:
        if name in UNKNOWABLE:
            for match in PATTERNS[name].finditer(text):
                found = match.group().strip()
                if _hard_to_guess(name, found):
                    yield found


def _hard_to_guess(name: str, text: str) -> bool:
    """Clocks need seconds that are not round, numbers at least four digits that are not all the same."""
    if name == "time":
        return _SECONDS.match(text) is not None and _ROUND.search(text) is None
    bare = re.sub(r"[^0-9A-Za-z]", "", text.removeprefix("0x"))
    return len(bare) >= 4 and len(set(bare)) > 2


def check_leaks(found: Iterable[Unknowable]) -> Iterator[Hit]:
    """One finding over all cases, with the number of samples that have such text."""
    cases = list(found)
    hits = [one for one in cases if one.hit is not None]
    if not hits:
        return
    refused = len(hits) > REFUSED * len(cases) and len(hits) >= LEAST
    message = f"{LEAKED} ({len(hits):,} of the {count_text(len(cases), 'sample')} that have such text)"
    for one in hits:
        yield Hit("leaked text", "refused" if refused else "info", message, f"{one.where}: {one.hit!r:.80}")
