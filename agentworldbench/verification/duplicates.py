"""The same text for many samples, and the same answer twice, beyond what the samples themselves explain.

In: small facts of each case (hashes, never texts). Out: findings. One text for many samples is honest where it is
short, where it is the reference, or where it stands in the sample's own prompt (an environment that answers alike);
trajectories of one task count once. What is left are answers that were copied from one sample to others. Above 5 % of
all samples that cannot be a model's own work and is refused; below, a group of five tasks or more is shown as a
warning. Judge replies of at least 200 characters beside grades and form that are equal on unlike questions are counted
the same way.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agentworldbench.texts import sha256_text
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case
from agentworldbench.verification.replay import reference_of

SHORT: Final = 40
"""Shorter predictions recur honestly."""
SHORT_REPLY: Final = 200
"""Characters of a judge's own words below which replies recur honestly, as "matches the reference in all" does."""
_FORM: Final = re.compile(r"</?\w+>|```\w*|\"\w+\"\s*:|[\[\]{},\"]|\d")
"""What a reply has beside words: tags, fences, names of fields, brackets, grades."""
REFUSED: Final = 0.05
SEVERAL: Final = 5
COPIED: Final = "the same prediction for samples of unlike tasks, whose references differ"
SAME_REPLY: Final = "the same judge reply, word for word, to unlike questions"
SAME_DRAW: Final = "one draw of the response cache stands behind unlike questions"
SAME_RESPONSE: Final = "one response id stands behind unlike answers"


@dataclass(frozen=True)
class Copy:
    """One text that is not explained by its sample: what kind it is, its hash, where, and the task it belongs to."""

    kind: str
    sha256: str
    where: str
    task: str


def copies_of(case: Case) -> Iterator[Copy]:
    """What of a case may be a copy: its prediction, the replies of its judges, their draws and response ids."""
    prediction = case.prediction
    if prediction is None:
        return
    text = (prediction.observation or "").strip()
    if len(text) >= SHORT and not _explained(case, text):
        yield Copy("prediction", sha256_text(text), case.where, case.ref.task_key)
    yield from _marks("prediction", prediction.draw, prediction.response_id, prediction.text, case.where)
    for judge, verdict in case.verdicts:
        where = f"{case.where} by {judge.model}"
        asked = f"{verdict.prompt_sha256 or case.where}"
        if verdict.scores is not None and _words(verdict.reply or "") >= SHORT_REPLY:
            yield Copy(f"reply {judge.digest}", sha256_text(verdict.reply or ""), where, asked)
        yield from _marks(f"reply {judge.digest}", verdict.draw, verdict.response_id, verdict.reply, where)


def _words(reply: str) -> int:
    """Characters of a judge's reply that are its own words, blanks counted once."""
    return len(" ".join(_FORM.sub(" ", reply).split()))


def _marks(kind: str, draw: str | None, response: str | None, text: str | None, where: str) -> Iterator[Copy]:
    if draw:
        yield Copy(f"draw of {kind}", draw, where, where)
    if response and text:
        yield Copy(f"id of {kind}", response, where, sha256_text(text))


def _explained(case: Case, text: str) -> bool:
    sample = case.sample
    if sample is None:
        return False
    if text == (reference_of(case) or "").strip():
        return True
    return any(text in shown for shown in (sample.system, *sample.prompts, *sample.responses[:-1]))


def check_copies(copies: Iterable[Copy], samples: int) -> Iterator[Hit]:
    """Hits of all copies together; `samples` counts samples and epochs."""
    kinds: dict[str, dict[str, list[Copy]]] = defaultdict(lambda: defaultdict(list))
    for one in copies:
        kinds[one.kind][one.sha256].append(one)
    for kind, groups in kinds.items():
        doubled = [some for some in groups.values() if len({one.task for one in some}) > 1]
        if kind.startswith("draw of "):
            yield from (Hit("duplicates", "refused", SAME_DRAW, _places(some)) for some in doubled)
        elif kind.startswith("id of "):
            # A server without ids of its own gives one to all answers.
            if len(groups) > 1:
                yield from (Hit("duplicates", "warning", SAME_RESPONSE, _places(some)) for some in doubled)
        else:
            yield from _texts(COPIED if kind == "prediction" else SAME_REPLY, doubled, samples)


def _texts(message: str, doubled: list[list[Copy]], samples: int) -> Iterator[Hit]:
    """Copied texts: refused where the copies beyond the first of each are too many, a warning where one has many."""
    beyond = sum(len({one.task for one in some}) - 1 for some in doubled)
    large = [some for some in doubled if len({one.task for one in some}) >= SEVERAL]
    refused = beyond > REFUSED * samples and beyond >= SEVERAL
    for some in sorted(doubled if refused else large, key=len, reverse=True):
        told = f"{message} ({beyond} of {samples} are copies)"
        yield Hit("duplicates", "refused" if refused else "warning", told, _places(some))


def _places(some: list[Copy]) -> str:
    names = [one.where for one in some]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
