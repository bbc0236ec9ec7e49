"""Tables at every width and in every encoding: no number is lost or cut, columns are straight, names stay apart.

The golden files `golden/table_*.txt` show one table at 80 and 200 columns, and where a terminal has ASCII alone.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from agentworldbench.leaderboard.entries import load_entries
from agentworldbench.leaderboard.tables import leaderboard_tables
from agentworldbench.records import DIMENSIONS, OFFICIAL_DOMAINS
from agentworldbench.render.encoding import in_encoding
from agentworldbench.render.names import domain_name
from agentworldbench.render.table import PROSE_WIDTH, Table

GOLDEN = Path(__file__).parent / "golden"
NAMES = (
    "Qwen/Qwen3-8B",
    "模型/世界-7B",
    "模型/世界-8B",
    "naïve-🦙-70b",
    "provider/a-model-with-a-rather-long-name:free",
)
SHOWN = Table(
    title="Scores of five models — data mini, Android simulated",
    columns=("Rank", "Model", "Overall", "Coverage", *map(domain_name, OFFICIAL_DOMAINS), *map(str.capitalize, DIMENSIONS)),
    rows=tuple(
        (
            str(place + 1) if place < 3 else "–",
            name,
            f"{61.5 - place:.1f} ± {0.9 + place:.1f}",
            "100 %" if place < 3 else "97.4 %",
            *(f"{(37 * (place + 1) * (number + 3)) % 1000 / 10:.1f} ± {number / 2 + 1:.1f}" for number in range(7)),
            *(f"{(59 * (place + 1) * (number + 3)) % 1000 / 10:.2f}" for number in range(5)),
        )
        for place, name in enumerate(NAMES)
    ),
    left=("Model",),
    strong=(0,),
    notes=(
        "±: half of the 95 % interval for another draw of trajectories (population). Coverage: scored / all, of the domain that has "
        "the least; no rank below 99 %.",
    ),
)  # fmt: skip
FORMS = {"80": (80, None), "200": (200, None), "80_ascii": (80, "ascii")}


@pytest.mark.parametrize("form", FORMS)
def test_golden(form: str) -> None:
    width, encoding = FORMS[form]
    assert SHOWN.to_text(width, encoding=encoding) == (GOLDEN / f"table_{form}.txt").read_text("utf-8")


def numbers(table: Table) -> list[str]:
    """All cells of columns that hold numbers."""
    places = [place for place, name in enumerate(table.columns) if name not in table.left]
    return [row[place] for row in table.rows for place in places if row[place]]


def check(table: Table, width: int) -> None:
    """Every number stands on a line whole, as often as in the table, and no line is too long."""
    text = replace(table, notes=(), title="").to_text(width)
    assert max(map(cell_len, text.splitlines())) <= width
    for cell, count in Counter(numbers(table)).items():
        assert text.count(cell) >= count, (width, cell)


@pytest.mark.parametrize("width", range(40, 241, 25))
def test_no_number_is_lost(width: int) -> None:
    check(SHOWN, width)


@pytest.mark.parametrize("width", [40, 80, 137])
def test_no_published_number_is_lost(width: int) -> None:
    check(leaderboard_tables(load_entries())[0], width)


@pytest.mark.slow
@pytest.mark.parametrize("width", range(40, 241))
def test_no_number_is_lost_at_any_width(width: int) -> None:
    for table in (SHOWN, *leaderboard_tables(load_entries())):
        check(table, width)


@settings(max_examples=20)
@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=60), min_size=1, max_size=3),
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12),
    st.integers(40, 240),
)
def test_no_number_is_lost_whatever_the_names(names: list[str], values: list[int], width: int) -> None:
    rows = tuple((name, *(f"{value + place:,}" for value in values)) for place, name in enumerate(names))
    check(Table("T", ("Model", *(f"n{place}" for place in range(len(values)))), rows, ("Model",)), width)


@pytest.mark.parametrize("encoding", [None, "ascii", "cp1252"])
def test_columns_are_straight_whatever_letters_names_have(encoding: str | None) -> None:
    for block in SHOWN.to_text(100, encoding=encoding).split("\n\n"):
        lines = block.splitlines()
        rule = next(place for place, line in enumerate(lines) if set(line) <= {"─", "-"})
        ends = [cell_len(line) for line in lines[rule - 1 : rule + 1 + len(NAMES)]]
        assert len(set(ends)) == 1, "the last column is one of numbers, which end where its heading does"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "gbk", "utf-8"])
def test_names_stay_apart_in_every_encoding(encoding: str) -> None:
    text = SHOWN.to_text(120, encoding=encoding)
    assert text.encode(encoding).decode(encoding) == text
    assert len({in_encoding(name, encoding) for name in NAMES}) == len(NAMES)
    for name in NAMES:
        assert in_encoding(name, encoding) in text
    assert "?" not in text


@given(st.text(), st.sampled_from(["ascii", "cp1252", "latin-1", "gbk"]))
def test_a_text_in_an_encoding_can_be_written_and_keeps_what_it_has(text: str, encoding: str) -> None:
    shown = in_encoding(text, encoding)
    shown.encode(encoding)
    assert in_encoding(shown, encoding) == shown
    if text.isascii():
        assert shown == text


def test_columns_that_belong_together_are_not_torn_apart_for_a_last_one() -> None:
    columns = tuple(f"column {letter}" for letter in "abcdefgh")
    table = Table("T", ("Domain", *columns), (("swe", *("1.0",) * 8),), ("Domain",))
    heads = [line.split("  ") for line in table.to_text(80).splitlines() if line.startswith("Domain")]
    assert [len(head) - 1 for head in heads] == [4, 4]


def test_notes_are_no_longer_than_is_read_with_ease() -> None:
    last = SHOWN.to_text(240).splitlines()[-2:]
    assert max(map(len, last)) <= PROSE_WIDTH


def test_nothing_is_told_by_colour_alone() -> None:
    coloured = re.sub(r"\x1b\[[0-9;]*m", "", SHOWN.to_text(100, colour=True))
    assert [line.rstrip() for line in coloured.splitlines()] == SHOWN.to_text(100).splitlines()


JUDGES = Table(
    title="Three judges",
    columns=("Domain", *(f"{word} {letter}" for letter in "ABC" for word in ("Judged", "Judge")), "Skill"),
    rows=(("Overall, macro", *("105/105", "56.5 ± 5.0") * 3, "-0.238 ± 0.120"),),
    left=("Domain",),
    together=tuple((f"Judged {letter}", f"Judge {letter}") for letter in "ABC"),
)


def blocks(table: Table, width: int) -> list[str]:
    """The heading of each block."""
    lines = replace(table, title="", notes=()).to_text(width).splitlines()
    return [lines[place - 1] for place, line in enumerate(lines) if line and set(line) <= {"─"}]


@pytest.mark.parametrize("width", range(40, 241, 8))
def test_the_columns_of_a_judge_stand_in_one_block(width: int) -> None:
    check(JUDGES, width)
    for judged, judge in JUDGES.together:
        (block,) = [head for head in blocks(JUDGES, width) if judged in head]
        assert judge in block


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 30)), min_size=1, max_size=6),
    st.integers(40, 240),
)
def test_groups_are_torn_only_where_no_block_has_room(groups: list[tuple[int, int]], width: int) -> None:
    named = [tuple(f"c{place}.{column}" for column in range(size)) for place, (size, _) in enumerate(groups)]
    cells = ["7" * letters for size, letters in groups for _ in range(size)]
    columns = ("Domain", *(name for names in named for name in names))
    table = Table("T", columns, (("macro", *cells),), ("Domain",), together=tuple(named))
    check(table, width)
    heads = [head.split() for head in blocks(table, width)]
    assert sorted(name for head in heads for name in head if name != "Domain") == sorted(columns[1:])
    for names, (size, letters) in zip(named, groups, strict=True):
        taken = len("Domain") + size * (max(letters, len(names[0])) + 2)
        if taken <= width:
            assert any(set(names) <= set(head) for head in heads)
