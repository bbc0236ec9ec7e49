"""Notes on predictions that rule metrics could not read, below the table of those metrics."""

from __future__ import annotations

from agentworldbench.render.names import domain_name
from agentworldbench.render.table import percent
from agentworldbench.stats.results import RuleResults

_LONGEST = 160
"""Characters shown of a reason."""


def unread_notes(rules: RuleResults) -> tuple[str, ...]:
    """A line that names the domains, with the share that was read and the most frequent reason; none where all
    predictions could be read."""
    parts = [
        f"{domain_name(domain)} {one.unread} of {one.predictions} ({percent(1 - one.unread / one.predictions)} read; mostly: "
        f"{one.reason[:_LONGEST]})"
        for domain, one in rules.unread.items()
    ]
    if not parts:
        return ()
    return ("Predictions that a metric could not read and counts 0: " + "; ".join(parts) + ".",)
