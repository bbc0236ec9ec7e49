"""The committed example report: it is what the tool makes today, small, and says that it is an example.

The version that pages name and the drawing of plots (their numbers are compared, not the paths of their lines) may differ.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentworldbench.report.contents import Manifest
from tests.helpers.report_pages import Page
from tools.make_example_report import FOLDER, REMARK, make

VERSION = re.compile(r"\bawb \d[\w.+-]*|(\"made_by\": )\"[^\"]*\"")
DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
NUMBER = re.compile(r">\s*([^<>\s][^<>]*)<")


def read(folder: Path) -> dict[str, str | list[str]]:
    """What may not differ, by file."""
    found: dict[str, str | list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            text = VERSION.sub("awb", path.read_text(encoding="utf-8"))
            texts = [one for svg in DRAWING.findall(text) for one in sorted(NUMBER.findall(svg))]
            found[str(path.relative_to(folder))] = [DRAWING.sub("", text), *texts]
    return found


@pytest.mark.slow
def test_it_is_what_the_tool_makes(tmp_path: Path) -> None:
    make(tmp_path / "made")
    stored, made = read(FOLDER), read(tmp_path / "made")
    assert list(stored) == list(made), "renew it: python -m tools.make_example_report"
    stale = [name for name in made if stored[name] != made[name]]
    assert stale == [], "renew it: python -m tools.make_example_report"


def test_it_says_what_it_is_on_every_page() -> None:
    pages = [*FOLDER.glob("*.html"), *FOLDER.glob("samples/*.html")]
    assert len(pages) > 20
    for path in pages:
        assert REMARK in Page(path).text
    assert REMARK in (FOLDER / "summary.md").read_text(encoding="utf-8").replace("\\", "")
    (one,) = Manifest.model_validate_json((FOLDER / "report.json").read_text(encoding="utf-8")).reports
    assert "scripted" in one.model


def test_it_is_small() -> None:
    sizes = [path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(sizes) < 1_500_000 and len(sizes) <= 70
    assert ".png" not in (FOLDER / "index.html").read_text(encoding="utf-8")
