"""The official aggregation: what the official script prints for every committed set of rows, and the macro mean.

Data: `cases/official/aggregates.jsonl`, rows of our own with the numbers that the official script prints.
"""

from __future__ import annotations

import builtins
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.stats.official import (
    COLUMNS,
    TOTAL,
    JudgedRow,
    OfficialResults,
    judged_row,
    official_results,
)

CASES = Path(__file__).parent / "cases" / "official"
VECTORS = [json.loads(line) for line in (CASES / "aggregates.jsonl").read_bytes().split(b"\n") if line]


def row(domain: str, *values: float, failed: bool = False) -> JudgedRow:
    """A row whose columns hold `values`, the last one repeated."""
    filled = [*values, *[values[-1]] * (len(COLUMNS) - len(values))] if values else []
    return JudgedRow(domain, failed, dict(zip(COLUMNS, filled, strict=False)))


def printed(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2f}")


def as_printed(results: OfficialResults) -> dict[str, Any]:
    ends = results.overall is not None
    return {
        "domains": [
            {
                "name": one.name,
                "rows": one.rows,
                "valid": one.valid,
                "failed": one.failed,
                "scores": one.scores and {name: printed(value) for name, value in one.scores.items()},
            }
            for one in results.domains
        ],
        "overall": printed(results.overall),
        "total": results.rows if ends else None,
        "valid": results.valid if ends else None,
        "failed": results.failed if ends else None,
    }


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["id"])
def test_equal_to_what_the_official_script_prints(case: dict[str, Any]) -> None:
    if "error" in case["official"]:
        with pytest.raises(getattr(builtins, case["official"]["error"])):
            official_results([judged_row(one) for one in case["rows"]])
        return
    printed_now = as_printed(official_results([judged_row(one) for one in case["rows"]]))
    assert printed_now == case["official"]
    for one in printed_now["domains"]:
        assert one["scores"] is None or list(one["scores"]) == list(COLUMNS)  # in printed order


def test_there_are_vectors() -> None:
    assert len(VECTORS) >= 10


def test_macro_is_the_plain_mean_of_domains_and_micro_that_of_rows() -> None:
    results = official_results([row("web", 5), *[row("os", 1)] * 3])
    assert [one.name for one in results.domains] == ["OS", "Web"]
    assert results.overall == 25.0
    assert results.macro == 50.0
    assert (results.rows, results.valid, results.failed) == (4, 4, 0)


def test_columns_can_rest_on_different_rows() -> None:
    values = dict.fromkeys(COLUMNS, 3.0)
    rows = [JudgedRow("swe", False, values | {"format": 0}), JudgedRow("swe", False, values | {TOTAL: 5})]
    (domain,) = official_results(rows).domains
    assert domain.counted == dict.fromkeys(COLUMNS, 2) | {"format": 1}
    assert domain.scores == dict.fromkeys(COLUMNS, 50.0) | {TOTAL: 75.0}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(row("os", 4, failed=True), id="only failed rows"),
        pytest.param(row("os", 0), id="only totals of 0, printed as -25"),
    ],
)
def test_macro_needs_a_total_in_every_domain(other: JudgedRow) -> None:
    results = official_results([row("web", 5), other])
    assert results.macro is None
    assert results.overall == 100.0
    assert (results.rows, results.valid, results.failed) == (2, 1, 1)


def test_nothing_gives_nothing() -> None:
    assert official_results([]) == OfficialResults(domains=(), overall=None, macro=None, rows=0, valid=0)


@pytest.mark.parametrize(
    ("given_row", "domain", "failed"),
    [
        ({"task": "a/b/web", "failed": 0.0}, "web", False),
        ({"task": "web/", "failed": 0}, "", False),
        ({"failed": False}, "mcp", False),
        ({"task": "os"}, "os", True),
        ({"task": "os", "failed": 1.0, "total_score": "n/a"}, "os", True),
        ({"task": "os", "failed": "0.0"}, "os", True),
    ],
)
def test_rows_as_the_script_takes_them(given_row: dict[str, Any], domain: str, failed: bool) -> None:
    assert judged_row(given_row) == JudgedRow(domain, failed, {})


@pytest.mark.parametrize(
    "given_row",
    [
        {"task": None, "failed": 0.0},
        {"task": 3, "failed": 1.0},
        {"task": "os", "failed": 0.0, "format": None},
        {"task": "os", "failed": 0.0, "total_score": "4"},
        {"task": "os", "failed": 0.0, "quality": [4]},
    ],
)
def test_rows_that_end_the_official_run(given_row: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="is"):
        judged_row(given_row)


rows = st.lists(
    st.builds(
        row,
        st.sampled_from(["mcp", "web", "os"]),
        st.sampled_from([0, 1, 2.6, 4, 5]),
        st.sampled_from([0, 1, 3, 5]),
        failed=st.booleans(),
    ),
    max_size=20,
)


@given(rows, st.randoms())
def test_order_never_shows_and_means_stay_in_range(some: list[JudgedRow], random: Any) -> None:
    results = official_results(some)
    shuffled = some[:]
    random.shuffle(shuffled)
    assert official_results(shuffled) == results
    assert sum(one.rows for one in results.domains) == results.rows == len(some)
    assert sum(one.counted[TOTAL] for one in results.domains) == results.valid
    for one in results.domains:
        assert (one.scores is None) == (one.valid == 0)
        for name, value in (one.scores or {}).items():
            assert 0 <= value <= 100 if one.counted[name] else value == -25.0
    if results.macro is not None:
        totals = [one.scores[TOTAL] for one in results.domains if one.scores]
        assert math.isclose(results.macro, sum(totals) / len(totals))
