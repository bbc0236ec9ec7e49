"""`cases/public_reports.yaml` names, for each public bug report, tests that are there."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
REPORTS: dict[str, Any] = yaml.safe_load((HERE / "cases" / "public_reports.yaml").read_text(encoding="utf-8"))
NUMBERS = {
    "PR": (2, 4, 6, 8, 9, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22, 24),
    "RM": (1, 3, 5, 6, 8, 9, 10, 11, 12, 13, 15, 16, 18, 19, 23),
    "TX": (1, 2, 4, 5, 7, 8, 11, 12, 13),
}


@lru_cache
def names_of_tests() -> frozenset[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in HERE.glob("test_*.py")]
    nodes = (node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in nodes if node.name.startswith("test_"))


def test_every_report_is_there() -> None:
    assert set(REPORTS) == {f"{group}-{n:02}" for group, numbers in NUMBERS.items() for n in numbers}


@pytest.mark.parametrize("report", sorted(REPORTS))
def test_a_report_is_held_by_tests_that_exist(report: str) -> None:
    held = REPORTS[report]
    if isinstance(held, dict):
        assert set(held) == {"none"}
        assert len(held["none"]) > 40, "the reason"
        return
    assert held
    assert set(held) <= names_of_tests()
