"""Whoever reads a formula in `stats/` finds where it comes from, in its docstring or that of its module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench import stats

MODULES = sorted(Path(stats.__file__).parent.glob("*.py"))
SOURCE = re.compile(r"\[[^\]]*\b(1[89]|20)\d\d\b[^\]]*\]|\[[^\]]* at [0-9a-f]{7}\]|github\.com")
FORMULA = re.compile(r"^\s*\w[\w()*]* = .*[-+*/^].*", re.MULTILINE)
NO_FORMULA = {
    "__init__": "a docstring",
    "costs": "sums of tokens and USD",
    "panel": "means and medians",
    "results": "the shape of a file",
    "unread": "counts",
    "warnings": "sentences",
}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node


def docstrings(path: Path) -> tuple[str, dict[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.name: ast.get_docstring(node) or "" for node in functions(tree)}
    return ast.get_docstring(tree) or "", found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_formula_names_its_source(path: Path) -> None:
    module, own = docstrings(path)
    cited = SOURCE.search(module) or any(SOURCE.search(text) for text in own.values())
    assert bool(cited) != (path.stem in NO_FORMULA), "a module computes something, or stands in the list"
    for name, text in own.items():
        if FORMULA.search(text):
            assert SOURCE.search(text) or SOURCE.search(module), name


def test_formulas_are_found() -> None:
    """The search above sees them."""
    with_one = [
        name for path in MODULES for name, text in docstrings(path)[1].items() if FORMULA.search(text)
    ]
    assert {"clustered", "stratified", "krippendorff"} & set(with_one)
