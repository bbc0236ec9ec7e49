"""The table of a run against a published number, with the assumption that its last columns rest on.

In: `Against` by row. Out: a table. What cannot be known without the samples behind the published number is not
printed as if it were: between two ends, and no p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import DIFFERENCE, MOST, in_points, interval_notes, score_cell
from agentworldbench.render.table import DASH, Table, percent, points
from agentworldbench.stats.against import Against


def against_table(
    title: str,
    domains: Mapping[str, Against],
    overall: Against,
    coverage: Mapping[str, float],
    notes: Sequence[str],
) -> Table:
    """A row a domain, then the overall score (macro)."""
    named = [*((domain_name(domain), one) for domain, one in domains.items()), ("Overall, macro", overall)]
    shares = [*(coverage[domain] for domain in domains), min(coverage.values(), default=0.0)]
    assumed = any(one.assumed for _, one in named if one.difference is not None)
    # With equal standard errors nothing but the difference is left at r = 1.
    ends = ("If independent",) if assumed else ("If correlated", "If independent")
    return Table(
        title=title,
        columns=("Domain", "Coverage", "Run", "Published", "Difference", *ends, "Told from 0 if r ≥"),
        rows=tuple(
            (
                name,
                percent(share),
                score_cell(one.run, one.interval),
                points(one.published),
                DASH if one.difference is None else f"{one.difference:+.2f}",
                *((_ends(one.independent),) if assumed else (_ends(one.correlated), _ends(one.independent))),
                _least(one),
            )
            for (name, one), share in zip(named, shares, strict=True)
        ),
        left=("Domain",),
        together=(("Run", "Published", "Difference"), ends),
        strong=(len(named) - 1,),
        notes=(
            *notes,
            *_assumption(assumed),
            *interval_notes([(name, in_points(one.interval)) for name, one in named]),
        ),
    )


def _ends(bounds: tuple[float, float] | None) -> str:
    """The ends of a difference, cut at those of its scale; a dash where they hold the whole of it."""
    if bounds is None or (bounds[0] <= DIFFERENCE and bounds[1] >= MOST):
        return DASH
    return f"{max(bounds[0], DIFFERENCE):+z.1f} to {min(bounds[1], MOST):+z.1f}"


def _least(one: Against) -> str:
    """The least correlation that would tell the difference from 0."""
    if one.independent is None:
        return DASH
    if one.told_from is None:
        return "never"
    return f"{one.told_from:.2f}"


def _assumption(assumed: bool) -> tuple[str, ...]:
    known = (
        "its uncertainty is not published and assumed to be the run's (the same number of samples, a like spread)"
        if assumed
        else "its own interval is known"
    )
    alone = "the difference alone is left" if assumed else "If correlated"
    return (
        f"Published: one number; {known}. How far its luck with trajectories and the run's are one (their correlation r, "
        "taken to be between 0 and 1) cannot be known without its score of each sample, so there is no p here.",
        f"The 95 % interval of the difference lies between two ends: r = 1, {alone}; r = 0, If independent. Told from 0 "
        "if r ≥: the least correlation with which the difference is more than luck; 0.00 is with any, near 1 says nothing. "
        "Many rows are many chances: go by the overall one. Two runs on the same samples tell more.",
    )
