"""The table of one reading: totals and dimensions by domain, under both failure policies, with both averages.

In: a `Reading` and the policy that heads it. Out: a `Table`; a judge and a panel of judges share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from agentworldbench.records import DIMENSIONS
from agentworldbench.render.names import domain_name
from agentworldbench.render.table import Table, percent, points
from agentworldbench.stats.results import Block, Reading, Scores


def by_domain_table(
    title: str, reading: Reading, policy: Literal["exclude", "floor"], notes: Iterable[str]
) -> Table:
    """A row a domain, below them macro and micro; coverage beside every mean."""
    other = "exclude" if policy == "floor" else "floor"
    rows = [_row(domain_name(domain), one, policy, other) for domain, one in reading.domains.items()]
    count = len(rows)
    macro: Scores = getattr(reading, f"macro_{policy}")
    second: Scores = getattr(reading, f"macro_{other}")
    micro = reading.micro
    rows.append(
        (
            "Overall, macro",
            f"{micro.scored}/{micro.samples}",
            percent(micro.coverage),
            points(macro["total"]),
            points(second["total"]),
            *_dimensions(macro),
        )
    )
    rows.append(_row("Overall, micro", micro, policy, other))
    told = [
        f"0-100. floor: a failed sample counts 0; exclude: failed samples are left out. Headline: macro, {policy}."
    ]
    if any(one.samples and one.scored / one.samples > one.coverage for one in reading.domains.values()):
        told.append("Scored: samples with a score of any of their answers. Coverage: answers with a score.")
    if macro["total"] is None:
        told.insert(0, "A domain without any scored sample makes the macro average not available.")
    return Table(
        title=title,
        columns=(
            "Domain",
            "Scored",
            "Coverage",
            policy.capitalize(),
            other.capitalize(),
            *(name.capitalize() for name in DIMENSIONS),
        ),
        rows=tuple(rows),
        left=("Domain",),
        together=(
            ("Scored", "Coverage"),
            (policy.capitalize(), other.capitalize()),
            tuple(name.capitalize() for name in DIMENSIONS),
        ),
        strong=(count,),
        notes=(*told, *notes),
    )


def _row(name: str, one: Block, policy: str, other: str) -> tuple[str, ...]:
    first: Scores = getattr(one, policy)
    second: Scores = getattr(one, other)
    return (
        name,
        f"{one.scored}/{one.samples}",
        percent(one.coverage),
        points(first["total"]),
        points(second["total"]),
        *_dimensions(first),
    )


def _dimensions(scores: Scores) -> tuple[str, ...]:
    return tuple(points(scores[name]) for name in DIMENSIONS)
