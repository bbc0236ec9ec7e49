"""Public reports RP-04, RP-07 and RP-09: cells of Markdown as GitHub reads them, templates filled once, numbers that are none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agentworldbench.render.shell import embedded_json
from agentworldbench.render.table import Table, csv_cell, printable
from agentworldbench.report.build import build_report
from agentworldbench.report.history import assigned
from agentworldbench.run import evaluate
from tests.helpers.report_pages import Page, assigned_json

MARKDOWN = MarkdownIt("commonmark").enable("table")
CELLS = ("a|b", "two\nlines", "x\\", "\\|", "```", "`a|b`", "<b>|</b>", "[x](javascript:alert(1))", "![x](//evil)", "&lt;|",
         "**|**", "~~|~~", "# h", "---|---", "<!-- | -->", "x\r\ny", "\\\\|", "https://a.invalid/|b")  # fmt: skip


def cells_of(markdown: str) -> list[list[str]]:
    """The texts of a Markdown table's rows, as a reader of its HTML sees them."""
    rows: list[list[str]] = []
    inside = False
    for token in MARKDOWN.parse(markdown):
        if token.type == "tr_open":
            rows.append([])
        inside = token.type in ("th_open", "td_open") or (
            inside and token.type not in ("th_close", "td_close")
        )
        if token.type == "inline" and inside:
            children = token.children or []
            assert {one.type for one in children} <= {"text", "text_special"}, "no markup comes out of a cell"
            rows[-1].append("".join(one.content for one in children))
    return rows


def shown(cell: str) -> str:
    return printable(cell.replace("\n", " ")).strip()


@given(st.lists(st.one_of(st.sampled_from(CELLS), st.text(max_size=12)), min_size=3, max_size=3))
def test_rp_04_rows_of_markdown_keep_their_columns(cells: list[str]) -> None:
    table = Table("t", ("a", "b", "c"), (tuple(cells), ("1", "2", "3")), left=("a",))
    rows = cells_of(table.to_markdown())
    assert [len(row) for row in rows] == [3, 3, 3]
    assert [cell.split() for cell in rows[1]] == [shown(cell).split() for cell in cells]
    assert rows[2] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "＝1", "\u202e=1", "\x00=1"]
)
def test_a_cell_of_csv_is_no_formula(text: str) -> None:
    cell = csv_cell(text)
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝"))
    assert cell.removeprefix("'") == printable(text)


@given(st.text())
def test_rp_01_no_text_ends_a_script_or_begins_a_comment(text: str) -> None:
    for made in (str(embedded_json({text: [text]})), assigned("x", {text: [text]})):
        assert not set("<>&\u2028\u2029") & set(made.replace("=> ", "").replace("??= {}", ""))
    assert json.loads(str(embedded_json([text]))) == [text]


def test_rp_07_templates_are_filled_once(tmp_path: Path) -> None:
    """What looks like a place of a template stays what it is, on every page and in Markdown."""
    remark = "__DATA__ {{ 7 * 7 }} {% raw %} {# x #} ${title} $title %(x)s %s {0} {title}"
    run = evaluate("baseline/copy-last", data="mini", tasks=("swe",), limit="1", output=tmp_path / "run", display="none")  # fmt: skip
    report = build_report([run.path], tmp_path / "report", remark=remark).index.parent
    for page in report.rglob("*.html"):
        assert remark in Page(page).text
    assert remark in re.sub(r"\\(.)", r"\1", (report / "summary.md").read_text(encoding="utf-8"))

    # RP-09: with one trajectory nothing can be estimated: no interval, no NaN in any file.
    def refuse(word: str) -> None:
        raise AssertionError(word)

    text = Page(report / "index.html").text
    assert "no interval" in text and "nan" not in text.lower().split()
    for path in (run.path / "results.json", report / "report.json"):
        json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert "NaN" not in json.dumps(assigned_json(report / "list.js", "list"))
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            assigned("x", value)
        with pytest.raises(ValueError, match="not JSON compliant"):
            embedded_json(value)
