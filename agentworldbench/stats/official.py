"""What the official script prints of judged rows, and the macro mean beside it.

In: one `JudgedRow` a row. Out: an `OfficialResults`: the numbers that the script's `score` prints
(github.com/QwenLM/Qwen-AgentWorld at cd0aa83), unrounded. The means are those of `aggregate.py`; here are
the sides that only the printing has: which rows count, that a column without values is printed as -25, and
what its last lines count. "Overall" is the mean over all rows (micro); paper and README report the plain
mean of the domains (macro).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentworldbench.records import DIMENSIONS
from agentworldbench.stats.aggregate import score_of
from agentworldbench.stats.intervals import mean

TOTAL: Final = "total_score"
COLUMNS: Final = (*DIMENSIONS, TOTAL)
_NAMES: Final = {"mcp": "MCP", "swe": "SWE", "os": "OS"}
"""Printed names that are not the domain's with a capital."""
_NO_VALUE: Final = -25.0
"""What is printed for a column without values: the script takes 0 for their mean."""


@dataclass(frozen=True)
class JudgedRow:
    """A row after judging: its domain, and its value in each of `COLUMNS` (0 or absent: none)."""

    domain: str
    failed: bool
    values: Mapping[str, float]


@dataclass(frozen=True)
class OfficialDomain:
    """A domain's block: rows in all and valid ones, and the 0-100 scores (None without valid row).

    `counted` says on how many rows each column rests; a column that rests on none is printed as -25.
    """

    domain: str
    rows: int
    valid: int
    counted: Mapping[str, int]
    scores: Mapping[str, float] | None

    @property
    def name(self) -> str:
        """The domain as printed. Two domains can have the same name."""
        return _NAMES.get(self.domain, self.domain.capitalize())

    @property
    def failed(self) -> int:
        """Rows without verdict."""
        return self.rows - self.valid


@dataclass(frozen=True)
class OfficialResults:
    """Domains in printed order and the closing lines.

    `overall` is the micro mean, None (not printed) when no row has a total other than 0; `valid`
    counts the rows that have one. `macro` is the plain mean of the domains' totals, None unless every
    domain has one.
    """

    domains: tuple[OfficialDomain, ...]
    overall: float | None
    macro: float | None
    rows: int
    valid: int

    @property
    def failed(self) -> int:
        """Rows that `overall` leaves out, for whatever reason."""
        return self.rows - self.valid


def judged_row(row: Mapping[str, Any]) -> JudgedRow:
    """A row of the official script's `judged.jsonl`. Raises TypeError where a valid row holds no numbers.

    A row that does not say that it succeeded counts as failed, one without task as mcp; of a task
    with slashes the last part counts.
    """
    task = row.get("task", "mcp")
    if not isinstance(task, str):
        raise TypeError(f"task is {type(task).__name__}, not a text")
    failed = row.get("failed", 1.0) != 0.0
    values = {} if failed else {name: row[name] for name in COLUMNS if name in row}
    for name, value in values.items():
        if not isinstance(value, int | float):
            raise TypeError(f"{name} is {type(value).__name__}, not a number")
    return JudgedRow(domain=task.rpartition("/")[2], failed=failed, values=values)


def official_results(rows: Iterable[JudgedRow]) -> OfficialResults:
    """All that the official script prints of `rows`, and the macro mean."""
    groups: dict[str, list[JudgedRow]] = {}
    for row in rows:
        groups.setdefault(row.domain, []).append(row)
    domains: list[OfficialDomain] = []
    totals: list[float] = []
    for domain in sorted(groups):
        valid = [row for row in groups[domain] if not row.failed]
        columns = {
            name: [value for row in valid if (value := row.values.get(name, 0)) != 0] for name in COLUMNS
        }
        scores = {name: score_of(values) for name, values in columns.items()}
        totals += columns[TOTAL]
        domains.append(
            OfficialDomain(
                domain=domain,
                rows=len(groups[domain]),
                valid=len(valid),
                counted={name: len(values) for name, values in columns.items()},
                scores={name: _NO_VALUE if score is None else score for name, score in scores.items()}
                if valid
                else None,
            )
        )
    means = [one.scores[TOTAL] for one in domains if one.scores is not None and one.counted[TOTAL]]
    return OfficialResults(
        domains=tuple(domains),
        overall=score_of(totals),
        macro=mean(means) if len(means) == len(domains) else None,
        rows=sum(one.rows for one in domains),
        valid=len(totals),
    )
