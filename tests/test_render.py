"""Tests of `render/`: tables fit their width, lose no digit, and let nothing through to a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agentworldbench.leaderboard.entries import load_entries
from agentworldbench.leaderboard.tables import leaderboard_tables
from agentworldbench.records import DIMENSIONS, OFFICIAL_DOMAINS
from agentworldbench.render.names import domain_name
from agentworldbench.render.table import Table, markdown_cell, percent, points, printable, share
from agentworldbench.task import METRIC_NAMES

WIDE = Table(
    title="Rule metrics of a model with a rather long name — data official, all seven domains, a subset (limit)",
    columns=("Domain", "Scored", "Coverage", "Rule score", *METRIC_NAMES, *(name.capitalize() for name in DIMENSIONS)),
    rows=tuple(
        (name, "472/472", "99.9 %", "100.00", *(f"0.{n:03d}" for n in range(len(METRIC_NAMES) + len(DIMENSIONS))))
        for name in [*map(domain_name, OFFICIAL_DOMAINS), "Overall, macro"]
    ),
    left=("Domain",),
    strong=(7,),
    notes=("A note that is long enough to be wrapped, because it explains at length what the numbers mean.",),
)  # fmt: skip
ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x7f\x08\x00 a\rb\nc\u202ed\u2066e\u2028f"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def widest(text: str) -> int:
    return max(cell_len(line) for line in text.splitlines())


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_line_is_wider_than_asked_and_no_cell_is_lost(width: int) -> None:
    text = WIDE.to_text(width)
    assert widest(text) <= width
    for row in WIDE.rows:
        for cell in row:
            assert cell in text
    for column in WIDE.columns:
        assert column in text


@pytest.mark.parametrize("width", [80, 120])
def test_published_tables_fit(width: int) -> None:
    for table in leaderboard_tables(load_entries()):
        text = table.to_text(width)
        assert widest(text) <= width
        for row in table.rows:
            for cell in row:
                assert cell in text


def test_commands_are_never_wrapped() -> None:
    command = "sed -n 7p " + "a" * 100 + "/predictions.jsonl | python3 -m json.tool\x1b[31m"
    table = Table("t", ("A",), (("1",),), commands=(command,))
    shown = command.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert f"\n  {shown}\n" in table.to_text(40)
    assert f"\n    {shown}\n" in table.to_markdown(), "a block of code"


def test_each_block_begins_with_the_name_of_the_row() -> None:
    blocks = [block.splitlines() for block in WIDE.to_text(80).split("\n\n")]
    assert len(blocks) > 1
    for number, lines in enumerate(blocks):
        head = lines[next(n for n, line in enumerate(lines) if line.startswith("Domain"))]
        assert head.split().count("Domain") == 1, number
        assert sum(line.startswith("Terminal ") for line in lines) == 1


@pytest.mark.parametrize("length", [10, 60, 75, 80, 200])
def test_a_long_name_in_the_second_column(length: int) -> None:
    name = "m" * length
    table = Table("T", ("Rank", "Model", "Score"), (("1", name, "12.34"),), ("Model",))
    text = table.to_text(80)
    assert widest(text) <= 80
    assert "12.34" in text
    heads = [line for line in text.splitlines() if "Model" in line]
    assert all(line.count("Model") == 1 for line in heads)
    assert text.count("m") % length == 0


@given(
    st.lists(st.tuples(st.text(max_size=100), st.floats(0, 100).map(points)), min_size=1, max_size=4),
    st.integers(60, 130),
)
def test_any_name_fits(rows: list[tuple[str, str]], width: int) -> None:
    table = Table(
        "T " + rows[0][0], ("Model", "Score", "More"), tuple((*row, "1.00") for row in rows), ("Model",), notes=(rows[0][0],)
    )  # fmt: skip
    text = table.to_text(width)
    assert widest(text) <= width
    for _, score in rows:
        assert score in text


@pytest.mark.parametrize("colour", [False, True])
def test_escapes_never_reach_a_terminal(colour: bool) -> None:
    table = Table(
        ESCAPES, (ESCAPES, "Number"), ((ESCAPES, ESCAPES), ("x", "1")), (ESCAPES,), strong=(1,), notes=(ESCAPES,)
    )  # fmt: skip
    own = table.to_text(200, colour)
    assert bool(ANSI.search(own)) == colour
    text = ANSI.sub("", own)
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert "red" in text, "neutralised, not swallowed"
    assert all(char.isprintable() for char in table.to_markdown().replace("\n", ""))


@given(st.text())
def test_printable_is_one_line_of_the_same_length(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


@given(st.text())
def test_a_markdown_cell_is_one_line_and_shows_the_text(text: str) -> None:
    cell = markdown_cell(text)
    assert cell.isprintable()
    literal = re.sub(r"\\(.)", r"\1", cell.replace("&amp;", "&"))
    assert literal == printable(text.replace("\n", " "))
    assert not re.search(r"(?<!\\)(\\\\)*[|`*_<>\[\]]", cell)


def test_numbers_as_text() -> None:
    assert [points(value) for value in (None, 0, 56.389, 100)] == ["–", "0.00", "56.39", "100.00"]
    assert [share(value) for value in (None, 0, 0.12345, 1)] == ["–", "0.000", "0.123", "1.000"]
    assert [percent(value) for value in (None, 0, 0.5, 1)] == ["–", "0.0 %", "50.0 %", "100 %"]
    assert percent(0.99999) == "99.9 %", "never rounded up to all"
