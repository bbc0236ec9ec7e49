"""What a report's pages put side by side: texts and screens.

The two texts of a difference can be put together again from its rows, whatever they are.
"""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.render.diff import MOST_BYTES, Piece, Row, beginning, difference, visible
from agentworldbench.render.nodes import MOST_BYTES as NODES_BYTES
from agentworldbench.render.nodes import ROW_BYTES, node_rows
from agentworldbench.render.sample import shown
from agentworldbench.scoring.metrics.ui_nodes import Node, Screen

LINES = st.lists(st.text(alphabet="ab 1\t.\x1b漢\u202e", max_size=8), max_size=9)


def text_of(rows: tuple[Row, ...], side: str) -> list[str]:
    kinds = {"same", "changed", side}
    return ["".join(piece.text for piece in getattr(row, side)) for row in rows if row.kind in kinds]


@settings(max_examples=40)
@given(LINES, LINES)
def test_both_texts_stand_in_the_rows(mine: list[str], theirs: list[str]) -> None:
    predicted, real = "\n".join(mine), "\n".join(theirs)
    found = difference(predicted, real)
    for text, side in ((predicted, "predicted"), (real, "real")):
        assert "\n".join(text_of(found.rows, side)) == visible(text)
    assert (found.predicted_left, found.real_left) == (0, 0)
    assert sum(found.counts.values()) == len(found.rows)
    assert found.equal == (predicted == real or not found.rows)
    for row in found.rows:
        if row.kind == "same":
            assert row.predicted == row.real and not any(piece.marked for piece in row.real)
        else:
            assert any(piece.marked for piece in (*row.predicted, *row.real))


@settings(max_examples=40)
@given(LINES)
def test_a_text_beside_itself_and_beside_nothing(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert {row.kind for row in difference(text, text).rows} <= {"same"}
    assert all(row.far for row in difference(text, text).rows)
    assert {row.kind for row in difference(text, "").rows} <= {"predicted"}
    assert {row.kind for row in difference("", text).rows} <= {"real"}


def test_words_are_marked_in_lines_that_resemble_each_other() -> None:
    rows = difference("first\nExit Code: 7 now\nlast", "first\nnew line here\nExit Code: 2 now\nlast").rows
    assert [row.kind for row in rows] == ["same", "real", "changed", "same"]
    assert rows[2].predicted == (Piece("Exit Code: "), Piece("7", True), Piece(" now"))
    assert rows[2].real == (Piece("Exit Code: "), Piece("2", True), Piece(" now"))
    unlike = difference("abc def", "xyz uvw").rows
    assert unlike[0].predicted == (Piece("abc def", True),) and unlike[0].real == (Piece("xyz uvw", True),)
    together = difference("the red old fox", "the tall new fox").rows[0]
    assert together.real == (Piece("the "), Piece("tall new", True), Piece(" fox")), (
        "a blank between is no agreement"
    )
    chinese = difference("天気は晴れ", "天気は曇り").rows[0]
    assert chinese.real == (Piece("天気は"), Piece("曇り", True))


def test_equal_lines_far_from_differences_can_be_hidden() -> None:
    lines = [str(n) for n in range(30)]
    rows = difference("\n".join(lines), "\n".join([*lines[:15], "x", *lines[16:]])).rows
    assert [at for at, row in enumerate(rows) if not row.far] == list(range(12, 19))


@pytest.mark.parametrize(
    "text", ["x" * 5_000_000, "\n" * 2_000_000, "&<>\x01" * 500_000, "漢" * 300_000, "ab\n" * 400_000]
)
def test_a_text_takes_no_more_than_a_page_may_hold(text: str) -> None:
    kept, left = beginning(text)
    assert len(escape(kept).encode()) <= MOST_BYTES
    assert left > 0 and kept.count("\n") < 1_200
    assert text.startswith(text[: len(text) - left]) and visible(text[: len(text) - left]) == kept
    found = difference(text, "x" + text)
    assert found.predicted_left > 0 and found.real_left > 0 and not found.equal


def screen(*nodes: Node) -> Screen:
    return Screen(nodes, known=True)


def test_elements_of_two_screens() -> None:
    button, field, note = Node("button", "Save"), Node("textbox", "Name", "Ada"), Node("text", "Saved")
    before = screen(button, field)
    found, left = node_rows(
        screen(button, Node("textbox", "Name", "Eve"), Node("link", "Help")),
        screen(button, field, note),
        before,
    )
    assert [(row.kind, row.role, row.real, row.predicted, row.stood) for row in found] == [
        ("same", "button", "Save", "Save", True),
        ("changed", "textbox", "Name = Ada", "Name = Eve", True),
        ("missing", "text", "Saved", "", False),
        ("made up", "link", "", "Help", False),
    ]
    assert left == 0
    many = screen(*(Node("text", str(n)) for n in range(1_999)))
    found, left = node_rows(many, screen(button, *many.nodes), None)
    assert ([row.kind for row in found], left) == (["missing"], 1_999), "those that differ come first"


def test_elements_take_no_more_than_a_page_may_hold() -> None:
    hostile = screen(*(Node("link", f"{n} " + '"\u202e' * 140) for n in range(9_000)))
    found, left = node_rows(hostile, screen(Node("button", "Save")), None)
    assert found[0].kind == "missing" and len(found) + left == 9_001
    assert sum(len(escape(shown(row.predicted))) + ROW_BYTES for row in found) < NODES_BYTES
