"""Tests of numbers with their intervals in table cells, and of the notes that explain them."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.render.numbers import (
    DIFFERENCE,
    MOST,
    PLUS_MINUS,
    in_points,
    interval_notes,
    score_cell,
    share_cell,
)
from agentworldbench.render.table import points, share
from agentworldbench.stats.intervals import NONE_FOR, Flag, Interval
from agentworldbench.texts import count_text


def interval(half: float | None, *flags: Flag, around: float = 50.0) -> Interval:
    ends = (None, None) if half is None else (around - half, around + half)
    return Interval(method="clustered", low=ends[0], high=ends[1], half=half, clusters=12, flags=flags)


CELLS = {
    "one decimal": (57.14, 0.93, 1, "57.1 ± 0.9"),
    "from a share to points": (0.5714, 0.0093, 100, "57.1 ± 0.9"),
    "rounded": (99.96, 12.35, 1, "100.0 ± 12.3"),
    "a width that one decimal would show as 0": (57.123, 0.034, 1, "57.12 ± 0.03"),
    "narrower still": (57.12346, 0.00061, 1, "57.1235 ± 0.0006"),
    "just wide enough": (57.14, 0.05, 1, "57.1 ± 0.1"),
    "below 0": (-3.04, 4.0, 1, "-3.0 ± 4.0"),
    "no interval": (57.14, None, 1, "57.1 ± –"),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_score_and_its_interval(name: str) -> None:
    value, half, scale, cell = CELLS[name]
    assert score_cell(value, interval(half, around=value), scale) == cell


def test_without_a_number_or_without_an_estimate_of_its_interval() -> None:
    assert score_cell(None, None) == "–"
    assert score_cell(None, interval(1.0)) == "–"
    assert score_cell(57.14, None) == "57.14", "results of an earlier version have no intervals"
    assert share_cell(0.0426, interval(0.0874)) == "0.043 ± 0.087"
    assert share_cell(0.0, interval(None)) == "0.000 ± –"


def test_no_zero_has_a_sign() -> None:
    assert (points(-0.001), share(-0.0001)) == ("0.00", "0.000")
    assert score_cell(-0.01, interval(0.5)) == "0.0 ± 0.5"
    assert share_cell(-0.0001, interval(0.5)) == "0.000 ± 0.500"
    assert share_cell(0.5, None) == "0.500"
    assert share_cell(None, None) == "–"


@given(st.floats(0, 100), st.floats(1e-9, 100))
def test_no_width_is_shown_as_0(value: float, half: float) -> None:
    cell = score_cell(value, interval(half, around=value))
    if value - half <= 0 and value + half >= 100:
        assert cell == f"{value:.1f} ± –"
        return
    found = re.fullmatch(r"(\d+\.\d+) ± (\d+\.\d+)", cell)
    assert found is not None
    assert float(found[2]) > 0
    assert float(found[2]) == pytest.approx(half, rel=0.55, abs=0.05)
    assert float(found[1]) == pytest.approx(value, abs=0.06)


def test_nothing_is_less_than_0_after_rounding() -> None:
    assert score_cell(-1e-15, interval(1.0)) == "0.0 ± 1.0"
    assert score_cell(-1e-15, interval(None)) == "0.0 ± –"
    assert (points(-0.001), share(-1e-9)) == ("0.00", "0.000")


def test_notes_say_where_an_interval_is_missing_or_weak() -> None:
    shown = [
        ("MCP", interval(1.0)),
        ("MCP", interval(2.0, "few_clusters")),
        ("OS", interval(None, "one_cluster")),
        ("Web", interval(None, "no_spread")),
        ("SWE", interval(None, "no_spread")),
        ("Search", None),
        ("Overall, macro", interval(3.0, "no_spread_in_part")),
    ]
    assert interval_notes(shown) == (
        PLUS_MINUS,
        "± –: no interval: one trajectory alone (OS); no spread between trajectories (Web; SWE).",
        "Rough, because it rests on fewer than 10 trajectories: MCP.",
        "Too narrow, because domains without spread add nothing: Overall, macro.",
    )


def test_notes_are_short_where_all_is_well_or_all_alike() -> None:
    assert interval_notes([]) == interval_notes([("OS", None)]) == ()
    assert interval_notes([("OS", interval(1.0))]) == (PLUS_MINUS,)
    rows = [(name, interval(None, "no_spread")) for name in ("OS", "Web")]
    assert interval_notes(rows) == ("± –: no interval: no spread between trajectories (all rows).",)


@pytest.mark.parametrize("flag", get_args(Flag))
def test_every_flag_is_explained(flag: Flag) -> None:
    half = None if flag in NONE_FOR else 1.0
    notes = interval_notes([("OS", interval(half, flag))])
    assert len(notes) == (1 if half is None else 2)
    assert "OS" in notes[-1]


@given(
    st.floats(-100, 100),
    st.floats(0.001, 1000),
    st.sampled_from([1.0, 100.0]),
    st.sampled_from([0.0, DIFFERENCE]),
)
def test_ends_that_are_shown_lie_on_the_scale(value: float, half: float, scale: float, least: float) -> None:
    stored = interval(half / scale, around=value / scale)
    shown = in_points(stored, scale, least)
    assert shown is not None
    if value - half <= least - 1e-6 and value + half >= MOST + 1e-6:
        assert (shown.low, shown.high, shown.half, shown.flags) == (None, None, None, ("whole_scale",))
    elif shown.low is not None and shown.high is not None:
        assert (least <= shown.low <= MOST and least <= shown.high <= MOST) or value < least
        assert shown.half == pytest.approx(half)
    assert in_points(shown, 1, least) == shown, "what is shown is shown as it is"
    assert stored.half == half / scale, "what is stored stays"


def test_an_interval_wider_than_the_scale_is_none_and_says_so() -> None:
    wide = interval(254.1)
    assert score_cell(50.0, wide) == "50.0 ± –"
    assert score_cell(20.0, interval(90.0, around=20.0), least=DIFFERENCE) == "20.0 ± 90.0", (
        "a difference may be negative"
    )
    assert interval_notes([("Web", in_points(wide)), ("OS", None)]) == (
        "± –: no interval: so few trajectories, or so unlike, that the interval holds the whole scale and tells nothing "
        "(Web).",
    )
    assert in_points(None) is None


@pytest.mark.parametrize(
    ("count", "one", "many", "text"),
    [
        (1, "sample", None, "1 sample"),
        (0, "sample", None, "0 samples"),
        (2170, "sample", None, "2,170 samples"),
        (1, "line is", "lines are", "1 line is"),
        (2, "entry", "entries", "2 entries"),
    ],
)
def test_a_count_agrees_with_its_noun(count: int, one: str, many: str | None, text: str) -> None:
    assert count_text(count, one, many) == text
