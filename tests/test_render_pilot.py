"""Tables of a pilot: what is not known is never shown as a number, and what is marked is what is meant."""

from __future__ import annotations

from typing import Any

import pytest

from agentworldbench.render.pilot import half_cell, mixes_table, shares_table
from agentworldbench.render.table import DASH
from agentworldbench.stats.macro_variance import macro_variance
from agentworldbench.stats.mixes import Half, Mix
from agentworldbench.stats.variance import Analysis, Score, analysed
from tests.test_mixes import EFFECTS
from tests.test_variance import design, drawn


@pytest.mark.parametrize(
    ("half", "cell"),
    [
        (None, DASH),
        (Half(low=1.234, high=1.234), "1.23"),
        (Half(low=1.2, high=1.9), "1.20 to 1.90"),
        (Half(low=1.2311, high=1.2344), "1.23"),
        (Half(low=0.0, high=0.8), "≤ 0.80"),
        (Half(low=254.1, high=254.1), "> 100"),
        (Half(low=40.0, high=254.1), "40.00 to > 100"),
        (Half(low=0.0, high=254.1), DASH),
    ],
)
def test_half_widths(half: Half | None, cell: str) -> None:
    assert half_cell(half) == cell


def shares(judged: bool = True, **domains: Analysis) -> dict[str, Any]:
    table = shares_table(
        "t", {name: one.components for name, one in domains.items()}, macro_variance(domains), judged
    )
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return {row["Domain"]: row for row in rows} | {"notes": " ".join(table.notes)}


def test_what_cannot_be_told_apart_stands_in_one_cell() -> None:
    found = shares(swe=analysed("swe", drawn(design(8, 2), **EFFECTS)))
    assert found["SWE"]["Turn"].endswith(")")
    assert (found["SWE"]["Generation"], found["SWE"]["Verdict"]) == ("with turn", "with turn")
    assert "--epochs 2 tells turns from answers; --judge-repeats 2 answers from verdicts" in found["notes"]
    assert "One judge" in found["notes"]


def test_a_negative_estimate_is_named_and_few_trajectories_are_said_to_be_few() -> None:
    """Turns that differ within trajectories and hardly between them."""
    scores = [
        Score(*place, 10.0 * int(place[1][1]) + place[2] + 0.01 * int(place[0][1]))
        for place in design(4, 2, 2)
    ]
    found = shares(swe=analysed("swe", scores))
    assert found["SWE"]["Trajectory"] == f"0 % ({DASH})"
    assert "Estimated below 0, so counted as 0: SWE trajectory." in found["notes"]
    assert f"({DASH}): too few trajectories for an interval" in found["notes"]


def test_domains_without_spread_and_rules() -> None:
    flat = analysed("flat", [Score(*place, 50.0) for place in design(5, 3, 2)])
    full = analysed("full", drawn(design(8, 3, 2), **EFFECTS))
    found = shares(judged=False, swe=full, web=flat)
    assert "Verdict" not in found["SWE"]
    assert found["Web"]["Trajectory"] == DASH
    assert "All scores are equal, so there is nothing to share out: Web." in found["notes"]


def mix(samples: int, **more: Any) -> Mix:
    common: dict[str, Any] = {
        "selection": "", "trajectories": 3, "epochs": 1, "repeats": 2, "population": None, "rerun": None, "requests": 9,
        "tokens_low": 1_000_000, "tokens_high": 2_500_000, "usd_low": None, "usd_high": None,
    }  # fmt: skip
    return Mix(samples=samples, **(common | more))


def test_marks_and_costs() -> None:
    some = [mix(1000, efficient=True), mix(2000, reaches=True), mix(3000, reaches=True, efficient=True)]
    table = mixes_table("t", some, cheapest=2, priced=False, notes=())
    assert [row[-1] for row in table.rows] == ["*", "✓", "* ◀"]
    assert table.strong == (2,)
    assert table.rows[0][:5] == ("1,000 × 1 × 2", "3", DASH, DASH, "1 to 2.5")
    priced = mixes_table("t", [mix(1, usd_low=0.5, usd_high=2.0)], None, True, ())
    assert (priced.columns[4], priced.rows[0][4]) == ("USD", "0.50 to 2.00")
    assert max(map(len, table.to_text(80).splitlines())) <= 80
