"""Notes on the intervals of a run: what else they might have been, and what they do not say of the whole data.

In: `Results`. Out: lines below the first table, none where there is nothing to say: rows that clusters of tasks
make more than a tenth wider, rows whose bootstrap lies elsewhere, subsets that were chosen and not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import score_cell
from agentworldbench.stats.checks import APART, WIDER, Check, Checks
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import Results


def check_notes(results: Results) -> Iterator[str]:
    """What the checks of the headline intervals found, then what a subset's intervals leave out."""
    for name, checks, scale in _all_checks(results):
        rows = [
            *((domain_name(domain), one) for domain, one in checks.domains.items()),
            ("Overall, macro", checks.macro),
        ]
        wider = [f"{row} ± {_half(one, scale)}" for row, one in rows if one.wider_by_task]
        if wider:
            yield (
                f"{name}, with all episodes of one task as one cluster (more than {100 * (WIDER - 1):.0f} % wider): "
                f"{'; '.join(wider)}."
            )
        apart = [f"{row} {_bounds(one.bootstrap, scale)}" for row, one in rows if one.apart]
        if apart:
            yield (
                f"{name}, by drawing trajectories again (a bound more than {100 * APART:.0f} % of ± from the one above, so "
                f"take the interval for rough): {'; '.join(apart)}."
            )
    if results.subset and (results.selection.sample_id or "-" in (results.selection.limit or "")):
        yield "The samples were chosen, not drawn: no interval says anything of the rest of the data."


def _all_checks(results: Results) -> Iterator[tuple[str, Checks, float]]:
    for judge in results.judges:
        if judge.checks:
            yield f"Judge {results.judge_names[judge.judge.digest]}", judge.checks, 1
    if results.panel and results.panel.checks:
        yield f"Panel ({results.panel.rule})", results.panel.checks, 1
    if results.rules.checks:
        yield "Rule score", results.rules.checks, 100


def _half(one: Check, scale: float) -> str:
    """Half the width by tasks, as tables write it."""
    return score_cell(0.0, one.by_task, scale).partition("± ")[2]


def _bounds(interval: Interval | None, scale: float) -> str:
    assert interval is not None and interval.low is not None and interval.high is not None
    return f"{interval.low * scale:z.1f} to {interval.high * scale:z.1f}"
