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
    "JP": (1, 2, 5, 6, 7, 8, 9, 10, 14, 15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 30),
    "MO": (2, 4, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19),
    "DS": (2, 3, 4, 5, 6, 8, 9, 10, 11),
    "PR": (2, 4, 6, 8, 9, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22, 24),
    "RM": (1, 3, 5, 6, 8, 9, 10, 11, 12, 13, 15, 16, 18, 19, 23),
    "RP": (1, 4, 5, 6, 7, 9),
    "ST": (2, 4, 7, 8, 9, 11, 12, 13, 14, 15),
    "TX": (1, 2, 4, 5, 7, 8, 11, 12, 13),
}


@lru_cache
def names_of_tests() -> frozenset[str]:
    """`NAME` and `MODULE.NAME` of every test."""
    found: set[str] = set()
    for path in HERE.glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= {node.name, f"{path.stem}.{node.name}"}
    return frozenset(found)


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


# Case files whose cases begin with the report's id, and the test that runs them.
CASES = {
    "stats/panel": "test_panel.test_worked_cases",
    "judge_bugs/replies": "test_judge_bugs.test_replies",
    "judge_bugs/cut": "test_judge_bugs.test_cut_replies",
    "judge_bugs/sizes": "test_judge_bugs.test_sizes",
    "judge_bugs/predictions": "test_judge_bugs.test_predictions_stay_text",
    "verdict/strict": "test_verdict.test_strict_cases",
    "observation/failures": "test_observation.test_replies",
    "observation/thinking": "test_observation.test_replies",
    "observation/answers": "test_observation.test_replies",
}


@pytest.mark.parametrize("file", CASES)
def test_reports_with_cases_in_files_are_the_listed_ones(file: str) -> None:
    cases = yaml.safe_load((HERE / "cases" / f"{file}.yaml").read_text(encoding="utf-8"))
    numbered = {name[:5] for case in cases if (name := case["id"] or "")[:2] in ("JP", "MO", "ST")}
    assert numbered
    listed = {report for report, held in REPORTS.items() if CASES[file] in held}
    alike = {name for name, test in CASES.items() if test == CASES[file]} - {file}
    assert numbered <= listed
    assert alike or listed == numbered
