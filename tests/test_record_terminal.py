"""What the terminal recorder computes: the screen after control sequences, silent keys, missing programs.

In: `tools/record/tty/screen.py` with small streams, `tools/record/terminal.py` with a small script. What real
programs answer is compared in `test_record.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.record import terminal
from tools.record.tty.screen import plain, render

SCREENS = [
    ("lines", "a\nb", "a\nb"),
    ("carriage return writes over", "12345\rab", "ab345"),
    ("erase to the end of the line", "12345\rab\x1b[K", "ab"),
    ("backspace moves only", "abc\b\bX", "aXc"),
    ("backspace stops at the first column", "\b\bX", "X"),
    ("bell and shift in show nothing", "a\x07\x0fb", "ab"),
    ("attributes show nothing", "\x1b[7m(END)\x1b[m\x1b[K", "(END)"),
    ("keypad modes show nothing", "\x1b[?1h\x1b=a\x1b[?1l\x1b>b", "ab"),
    ("the last column holds, the next character wraps", "123456789", "12345678\n9"),
    ("a full line and its end are one line", "12345678\n9", "12345678\n9"),
    ("the bottom scrolls", "1\n2\n3\n4", "2\n3\n4"),
    ("home", "a\nb\x1b[HX", "X\nb"),
    ("a place", "\x1b[2;3HX\x1b[1;1HY", "Y\n  X"),
    ("a place outside is the nearest inside", "\x1b[9;99HX", "\n\n       X"),
    ("one line up", "a\nb\x1bMX", "aX\nb"),
    ("up at the top scrolls back", "1\n2\n3\x1b[H\x1bMX", "X\n1\n2"),
    ("erase to the end of the screen", "1\n2\n3\x1b[2;1H\x1b[J", "1"),
]


@pytest.mark.parametrize(
    ("stream", "shown"), [case[1:] for case in SCREENS], ids=[case[0] for case in SCREENS]
)
def test_screen(stream: str, shown: str) -> None:
    assert render(stream, rows=3, columns=8) == shown


@pytest.mark.parametrize("stream", ["\x1b[2K", "\x1b[1J", "\x1b[5A", "\x1b(B", "\tx", "\x1b"])
def test_what_is_not_understood_is_an_error(stream: str) -> None:
    with pytest.raises(ValueError, match="unknown control sequence"):
        render(f"a{stream}", rows=3, columns=8)


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20), max_size=12))
def test_plain_text_shows_its_last_lines(lines: list[str]) -> None:
    shown = [line.rstrip() for line in lines][-5:]
    assert render("\n".join(lines), rows=5, columns=20) == "\n".join(shown).rstrip()


def test_prompts_stand_at_line_starts_of_the_plain_stream() -> None:
    assert plain("x\r\x1b[K\x07\r\x1b[K\x1b[7m(END)\x1b[m\x1b[K").endswith("\n(END)")


# From Python 3.12 on, forking a terminal in a process with threads (those of pytest-xdist) is warned of; the
# child becomes bash at once.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*forkpty:DeprecationWarning")


def script(**changes: Any) -> dict[str, Any]:
    return {
        "name": "trial",
        "user": "lea",
        "host": "bench",
        "start": "here",
        "task": "Try it.",
        "files": {"here/a.txt": {"text": "one\ntwo\n"}},
        "turns": [{"keys": ["read word\n", "tin\n", "echo $word\n"], "unprompted": [1]}],
        **changes,
    }


def test_a_silent_program_gets_the_next_line_after_the_echo() -> None:
    (turn,) = terminal.record(script()).turns
    prompt = "lea@bench:~/here$"
    assert turn.observation == f"{prompt} read word\ntin\n{prompt} echo $word\ntin\n{prompt}"


def test_a_whole_screen_keeps_what_earlier_turns_showed() -> None:
    turns = [{"keys": ["cat a.txt\n"]}, {"keys": ["echo three\n"]}]
    trajectory = terminal.record(script(turns=turns, whole_screen=True))
    first, second = (turn.observation for turn in trajectory.turns)
    assert second == f"{first} echo three\nthree\nlea@bench:~/here$"
    assert "24 lines and 80 columns" in trajectory.system


def test_a_missing_program_ends_the_recording_with_its_name() -> None:
    with pytest.raises(SystemExit, match="trial: not installed: no-such-editor"):
        terminal.record(script(needs=["no-such-editor", "ls"]))
