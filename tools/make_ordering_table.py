"""Writes docs/ordering.md: how rule scores and metrics fall when a true observation is damaged.

In: the bundled rows and the operators of `damage.py`. Out: a page with the rule score by domain and damage, which of the
wanted orders hold, and each metric by damage. From the repository root: `python -m tools.make_ordering_table`; a test
fails when the page is stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agentworldbench.render.names import domain_name
from agentworldbench.render.table import DASH
from tools.damage import OPERATORS, STATUS, mean, rule_score, scenes, scored

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "ordering.md"
LEAST_GAP: Final = 10.0
"""Points that an over-long answer must lie below the reference."""

NAMES: Final[Mapping[str, str]] = {
    "wrong_number": "wrong number",
    "dropped_line": "line missing",
    "wrong_status": "wrong status",
    "stale_copy": "screen before",
    "another_observation": "another's",
    "padding": "padded",
    "empty": "empty",
}
"""What the page calls each operator."""

COLUMNS: Final[Mapping[str, tuple[str, int]]] = {
    "Reference": ("wrong_number", 0),
    "1 wrong number": ("wrong_number", 1),
    "4 wrong numbers": ("wrong_number", 4),
    "1 line missing": ("dropped_line", 1),
    "4 lines missing": ("dropped_line", 4),
    "Wrong status": ("wrong_status", 1),
    "Padded": ("padding", 1),
    "Screen before": ("stale_copy", 1),
    "Another's": ("another_observation", 1),
    "Empty": ("empty", 1),
}
"""Operator and strength of each column of rule scores."""


def faults(domain: str) -> Iterator[str]:
    """Which of the wanted orders do not hold in a domain."""

    def unless(
        low: str, high: str, among: str | None = None, gap: float = 0.0, equal: bool = False
    ) -> Iterator[str]:
        lower = rule_score(domain, low, 1, among)
        upper = 100.0 if high == "reference" else rule_score(domain, high, 1, among)
        if lower is None or upper is None or lower < upper - gap or (equal and lower == upper):
            return
        yield f"{NAMES[low]} ({lower:.1f}) is not below {NAMES.get(high, high)} ({upper:.1f})"

    yield from unless("wrong_number", "reference")
    if domain in STATUS:
        yield from unless("wrong_status", "wrong_number", "wrong_status")
        yield from unless("another_observation", "wrong_status", "wrong_status", equal=True)
    yield from unless("another_observation", "wrong_number")
    yield from unless("empty", "wrong_number")
    if scenes()[domain][0].task.observation == "snapshot":
        yield from unless("stale_copy", "wrong_number")
    yield from unless("padding", "reference", gap=LEAST_GAP)


def page() -> str:
    """The page's text."""
    lines = [
        "# What damage does to rule scores and metrics",
        "",
        "Every true observation of the bundled set `mini` is damaged in one way and scored like a prediction. Padded: the whole",
        "text three times more. Wrong status: success and failure exchanged where the observation writes its status out (the",
        "flag of a tool's envelope, exit code and summary of tests, an error message of a shell, the heading of a browser's",
        "result or error; the other domains write none). Screen before: the observation of the turn before, which is what",
        "`baseline/copy-last` predicts. Another's: the observation of another sample of the domain.",
        "",
        "Written by `python -m tools.make_ordering_table`; not edited by hand.",
        "",
        "## Rule score",
        "",
        "| Domain | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---:|" * len(COLUMNS),
    ]
    for domain in scenes():
        scores = [
            rule_score(domain, name, strength, name if name == "wrong_status" else None)
            for name, strength in COLUMNS.values()
        ]
        lines.append(f"| {domain_name(domain)} | {' | '.join(map(_cell, scores))} |")
    lines += [
        "",
        "The column of the wrong status counts the samples that write one. Wanted, and tested: reference above one wrong",
        "number above a wrong status (on those samples) not below another's observation; the screen before (android, web, os)",
        f"and the empty answer below one wrong number; the padded one at least {LEAST_GAP:.0f} points below the reference.",
    ]
    missing = [
        f"- {domain_name(domain)}: {'; '.join(found)}."
        for domain in scenes()
        if (found := list(faults(domain)))
    ]
    lines += ["", *(["Not so yet:", "", *missing] if missing else ["All of it holds."])]
    lines += [
        "",
        "## Metrics",
        "",
        "Mean × 100 over the samples where the metric applies (n), each damage at strength 1.",
    ]
    for domain in scenes():
        lines += ["", f"### {domain_name(domain)}", "", *_metrics(domain)]
    return "\n".join(lines) + "\n"


def _metrics(domain: str) -> Iterator[str]:
    """The table of a domain's metrics, the primary ones in bold."""
    task = scenes()[domain][0].task
    shown = [name for name in OPERATORS if name != "wrong_status" or domain in STATUS]
    yield "| Metric | n | " + " | ".join(NAMES[name].capitalize() for name in shown) + " |"
    yield "|---|" + "---:|" * (1 + len(shown))
    for metric in task.metrics:
        label = f"**`{metric}`**" if metric in task.primary else f"`{metric}`"
        count = sum(metric in values for values in scored(domain, "empty", 1))
        means = [mean(domain, name, 1, metric) for name in shown]
        cells = [_cell(None if value is None else 100 * value) for value in means]
        yield f"| {label} | {count} | {' | '.join(cells)} |"


def _cell(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
    print(f"{PAGE.name}: written")
