"""What `awb leaderboard show` prints for other programs: CSV, LaTeX and HTML, with names that would break them."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.leaderboard.build import csv_text
from agentworldbench.leaderboard.entries import Entry, entry_text, load_entries
from agentworldbench.leaderboard.tables import leaderboard_tables
from agentworldbench.render.markup import latex_text, to_html, to_latex
from agentworldbench.render.table import printable
from tests.helpers.awb_command import HereAwb
from tests.helpers.board_entries import board, measured

STRANGE = "a & b \\input{x} $1_2^3 #% ~ <script>alert(1)</script> \"q\" 'r' \x1b[31m\u202e\n| {y}"


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_every_number_in_full(tmp_path: Path, awb: HereAwb) -> None:
    entries = [*board(6), *load_entries()]
    for one in entries:
        (tmp_path / f"{one.slug}.json").write_text(entry_text(one), encoding="utf-8")
    done = awb("leaderboard", "show", tmp_path, "--format", "csv")
    assert (done.code, done.err) == (0, "")
    found = {row["slug"]: row for row in rows_of(done.out)}
    assert set(found) == {one.slug for one in entries}
    for one in entries:
        row = found[one.slug]
        assert float(row["overall"]) == one.overall
        assert {domain: float(row[domain]) for domain in one.scores} == one.scores
        interval = one.intervals.get("web")
        assert row["web_low"] == ("" if interval is None else repr(interval.low))
        assert row["mcp_coverage"] == ("" if one.coverage is None else repr(one.coverage["mcp"]))
        assert row["judge_digest"] == (one.group.judge_digest or "")
        cost = one.costs.usd_per_thousand if one.costs else None
        assert row["usd_per_1000"] == ("" if cost is None else repr(cost)), "unknown is empty, never 0"
        if one.parse and one.policy:
            means = getattr(one.readings[one.parse], f"macro_{one.policy}")
            assert float(row["macro_factuality"]) == means["factuality"]
    groups: dict[str, set[str]] = {}
    for row in found.values():
        groups.setdefault(row["group"], set()).add(row["data"] + row["protocol"] + row["judge"])
    assert all(len(some) == 1 for some in groups.values()) and len(groups) == 5


@given(st.text(min_size=1, max_size=30))
def test_no_name_breaks_csv_or_is_a_formula(name: str) -> None:
    (row,) = rows_of(csv_text([measured(1, name=name)]))
    assert row["model"].removeprefix("'") == printable(name).removeprefix("'")
    assert not row["model"].lstrip().startswith(("=", "+", "-", "@"))


def tables(name: str) -> tuple[str, str]:
    (table,) = leaderboard_tables([measured(1, name=name)])
    return to_latex(table), to_html(table)


def test_latex_of_a_strange_name() -> None:
    latex, _ = tables(STRANGE)
    (row,) = [line for line in latex.splitlines() if "measured" in line]
    assert r"a \& b \textbackslash{}input\{x\} \$1\_2\textasciicircum{}3 \#\% \textasciitilde{}" in row
    assert len(re.findall(r"(?<!\\)&", row)) == 14
    assert row.endswith(r" \\")


@given(st.text(min_size=1, max_size=30))
def test_no_name_runs_a_command_in_latex(name: str) -> None:
    text = latex_text(name)
    plain = re.sub(
        r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|textquotedbl)\{\}|\\[{}$&#_%]|\$\\(?:pm|cdot)\$|\$-\$",
        "",
        text,
    )
    assert not set(plain) & set("\\{}$&#_%~^")


class Seen(HTMLParser):
    """Tags and texts of a fragment."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.cells += [""] * (tag in ("td", "th"))

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_html_of_a_strange_name() -> None:
    _, html = tables(STRANGE)
    seen = Seen()
    seen.feed(html)
    assert seen.tags == {"table", "caption", "thead", "tr", "th", "tbody", "td", "p"}
    assert any("<script>alert(1)</script>" in cell for cell in seen.cells), "shown as it is written"
    assert "\x1b" not in html and "\u202e" not in html


@pytest.mark.parametrize("form", ["latex", "html", "csv", "md", "table", "json"])
def test_every_form_shows_every_entry(awb: HereAwb, form: str) -> None:
    done = awb("leaderboard", "show", "--form", form)
    assert (done.code, done.err) == (0, "")
    entries: list[Entry] = load_entries()
    assert done.out.endswith("\n")
    for one in entries:
        assert one.model in done.out
        assert f"{one.overall:g}" in done.out
