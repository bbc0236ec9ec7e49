"""Writes docs/ordering.md: how the rule score of each domain falls when a true observation is damaged.

In: the bundled rows and the operators of `damage.py`. Out: a page with one table, and which of the wanted orders hold
with the metrics of today. From the repository root: `python -m tools.make_ordering_table`; a test fails when the
page is stale.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from agentworldbench.dataset import open_dataset
from agentworldbench.models.baseline import copy_last
from agentworldbench.prompts import reference_observation
from agentworldbench.records import Sample
from agentworldbench.render.results import domain_name
from agentworldbench.render.table import DASH
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.sources import resolve_source
from agentworldbench.task import Task
from tools.damage import OPERATORS, wrong_status

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "ordering.md"
LEAST_GAP: Final = 10.0
"""Points that an over-long answer must lie below the reference."""

Damage = Callable[[Sequence[Sample], int, Task], str | None]


def _by_operator(name: str, strength: int) -> Damage:
    def damaged(samples: Sequence[Sample], index: int, task: Task) -> str:
        others = (
            reference_observation(samples[(index + step) % len(samples)], task)
            for step in range(1, len(samples))
        )
        sample = samples[index]
        text = reference_observation(sample, task)
        return OPERATORS[name](text, strength, random.Random(sample.id), others)

    return damaged


def _another(samples: Sequence[Sample], index: int, task: Task) -> str:
    return reference_observation(samples[(index + 7) % len(samples)], task)


def _status(samples: Sequence[Sample], index: int, task: Task) -> str | None:
    return wrong_status(reference_observation(samples[index], task))


COLUMNS: Final[dict[str, Damage]] = {
    "Reference": _by_operator("wrong_numbers", 0),
    "1 wrong number": _by_operator("wrong_numbers", 1),
    "4 wrong numbers": _by_operator("wrong_numbers", 4),
    "1 line missing": _by_operator("dropped_lines", 1),
    "4 lines missing": _by_operator("dropped_lines", 4),
    "Wrong status": _status,
    "Padded × 4": _by_operator("padding", 1),
    "Screen before": lambda samples, index, task: copy_last(samples[index], task),
    "Another's": _another,
    "Empty": lambda samples, index, task: "",
}


@dataclass(frozen=True)
class Row:
    """Rule scores (0-100) of one domain by damage; None where the damage does not exist there."""

    domain: str
    scores: dict[str, float | None]


def rule_score(samples: Sequence[Sample], task: Task, damage: Damage) -> float | None:
    """Mean over the samples that can be damaged so, of the mean of their applicable primary metrics."""
    found = []
    for index, sample in enumerate(samples):
        text = damage(samples, index, task)
        if text is not None:
            values = score_observation(sample, task, text).values
            if primary := [values[name] for name in task.primary if name in values]:
                found.append(fmean(primary))
    return 100 * fmean(found) if found else None


def measure() -> Iterator[Row]:
    """One row a domain of the bundled set."""
    source = resolve_source("mini")
    dataset = open_dataset(source.files, source.tasks)
    for domain, task in source.tasks.items():
        samples = [dataset.load(ref) for ref in dataset.refs if ref.domain == domain]
        yield Row(domain, {name: rule_score(samples, task, damage) for name, damage in COLUMNS.items()})


def faults(row: Row) -> list[str]:
    """Which of the wanted orders do not hold in this domain."""
    scores = row.scores
    found = []

    def below(lower: str, upper: str, gap: float = 0.0) -> None:
        low, high = scores[lower], scores[upper]
        if low is not None and high is not None and not low < high - gap:
            found.append(f"{lower.lower()} ({low:.1f}) is not below {upper.lower()} ({high:.1f})")

    below("1 wrong number", "Reference")
    below("Wrong status", "1 wrong number")
    below("Another's", "Wrong status")
    below("Empty", "1 wrong number")
    below("Screen before", "1 wrong number")
    below("Padded × 4", "Reference", LEAST_GAP)
    return found


def page() -> str:
    """The page's text."""
    rows = list(measure())
    names = list(COLUMNS)
    lines = [
        "# What damage does to the rule score",
        "",
        "Every true observation of the bundled set `mini` is damaged in one way and scored like a prediction: the mean rule",
        "score (0-100) by domain. Padded: the whole text three times more. Wrong status: success and failure exchanged where",
        "the observation writes its status out. Screen before: the observation of the turn before, which is what",
        "`baseline/copy-last` predicts. Another's: the observation of another sample of the domain.",
        "",
        "Written by `python -m tools.make_ordering_table`; not edited by hand.",
        "",
        "| Domain | " + " | ".join(names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    for row in rows:
        cells = [DASH if (value := row.scores[name]) is None else f"{value:.1f}" for name in names]
        lines.append(f"| {domain_name(row.domain)} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Wanted: reference above one wrong number above a wrong status above another's observation; the screen before and the",
        f"empty answer below one wrong number; the padded one at least {LEAST_GAP:.0f} points below the reference. Not so yet:",
        "",
    ]
    missing = [f"- {domain_name(row.domain)}: {'; '.join(found)}." for row in rows if (found := faults(row))]
    return "\n".join([*lines, *(missing or ["- nothing: all of it holds."])]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
    print(f"{PAGE.name}: written")
