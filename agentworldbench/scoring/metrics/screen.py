"""Reads the text of a terminal screen: prompts, echoed keystrokes, output.

In: the text of an observation and what the action typed. Out: a `Screen`, which says of every shown
line whether it is an echo, a bare prompt or output. An echo is a typed line behind a prompt, or, where
no prompt stands before it, alone or behind a question; so prompts of unknown programs are found as well.
A typed line that was wrapped at the screen's edge is joined again. Every step is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

from agentworldbench.scoring.metrics.keystrokes import Typed
from agentworldbench.scoring.metrics.prompts import (
    is_continuation,
    is_named,
    is_program,
    is_shell,
    may_be_prompt,
)

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]+[0-~]|[0-~])?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_WIDTHS: Final = frozenset({80, 100, 120, 132, 140, 150, 160, 180, 200, 220, 240, 250, 256})
_STATUS_BAR = re.compile(r"\[[\w.-]{1,40}\] ?\d+:\S{1,60}[*-]?(?: |$)")
_INTERRUPTED = re.compile(r"^\^C(?=[^\s^])", re.MULTILINE)
FILLER: Final = "~"
"""What editors and pagers show below the end of a file."""
_HEAD: Final = 16
"""Characters by which a wrapped typed line is recognised."""
_FRONT: Final = 400
"""Characters of the longest prompt or question before a typed line."""
_MOST: Final = 20_000
"""Places at which typed lines are looked for; no screen shows more."""


def display(text: str) -> str:
    """The text as a screen shows it: no escape sequences, carriage returns and backspaces carried out.

    What is glued to the echo of an interrupt (`^CTraceback`) moves to a line of its own.
    """
    if "^C" in text:
        text = _INTERRUPTED.sub("^C\n", text)
    if not _CONTROL.search(text):
        return text
    lines = _ESCAPES.sub("", text).split("\n")
    lines = [_overwritten(line) if "\r" in line or "\b" in line else line for line in lines]
    return "\n".join(_CONTROL.sub("", line).rstrip(" \t") for line in lines).strip("\n")


def _overwritten(line: str) -> str:
    cells: list[str] = []
    cursor = start = 0
    for char in line:
        if char == "\r":
            # Readline breaks a long line with a blank and a carriage return at the screen's edge.
            if cells[-1:] == [" "] and len(cells) - 1 - start in _WIDTHS:
                cells.pop()
                start = len(cells)
            cursor = start
        elif char == "\b":
            cursor = max(start, cursor - 1)
        else:
            cells[cursor : cursor + 1] = [char]
            cursor += 1
    return "".join(cells)


@dataclass
class Screen:
    """Shown lines and what they are, by index."""

    lines: list[str]
    last: int = -1
    """The last line that is not blank and no status bar; -1 on an empty screen."""
    echoes: dict[int, str] = field(default_factory=dict)
    """Line of an echo to the typed text."""
    fronts: dict[int, str] = field(default_factory=dict)
    """Line of an echo to the prompt in front of it, which may be empty."""
    wrapped: set[int] = field(default_factory=set)
    """Lines that go on with an echo begun above."""
    bare: set[int] = field(default_factory=set)
    """Prompts with nothing behind them."""

    def output(self) -> Iterator[int]:
        """Lines that programs wrote."""
        for index, line in enumerate(self.lines):
            if line and not (index in self.echoes or index in self.wrapped or index in self.bare):
                yield index

    def commands(self) -> list[int]:
        """Echoes that begin a command; the rest of an unfinished one and what a program reads belong to it."""
        begun = [
            index for index, front in sorted(self.fronts.items()) if front and not is_continuation(front)
        ]
        return begun or sorted(self.fronts)

    @property
    def waits(self) -> bool:
        """Whether the last line is a prompt."""
        return self.last in self.bare

    @property
    def prompt(self) -> tuple[int, str] | None:
        """The last prompt and its line: the one at which the screen waits, else that of the last command."""
        if self.waits:
            return self.last, self.lines[self.last]
        fronts = [(index, self.fronts[index]) for index in self.commands() if self.fronts[index]]
        return fronts[-1] if fronts else None


@dataclass(frozen=True)
class ScreenReader:
    """Reads shown texts of one sample. `waiting` is the line at which the screen before ended."""

    typed: Typed
    waiting: str = ""

    def __call__(self, shown: str) -> Screen:
        screen = Screen(shown.split("\n"))
        screen.last = last_line(screen.lines)
        if screen.last < 0:
            return screen
        _Echoes(screen, shown, self.waiting).find(self.typed.lines)
        known = {front for front in screen.fronts.values() if front}
        for index, line in enumerate(screen.lines):
            if (line in known or is_named(line)) and index not in screen.wrapped:
                screen.bare.add(index)
        line = screen.lines[screen.last]
        if screen.last not in screen.echoes and (is_shell(line) or is_continuation(line) or is_program(line)):
            screen.bare.add(screen.last)
        return screen


def last_line(lines: list[str]) -> int:
    """Index of the last line that is not blank and no status bar of tmux or screen, or -1."""
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].strip() and not _STATUS_BAR.match(lines[index]):
            return index
    return -1


class _Line(NamedTuple):
    """A typed text on the screen: the line where it begins, the one behind its last, and what stands before it."""

    at: int
    end: int
    front: str


class _Echoes:
    """Finds the echoes of typed lines on one screen."""

    def __init__(self, screen: Screen, shown: str, waiting: str) -> None:
        self.screen = screen
        self.shown = shown + "\n"
        self.waiting = waiting
        self.left = _MOST
        self.starts = list(accumulate((len(line) + 1 for line in screen.lines), initial=0))

    def find(self, typed: tuple[str, ...]) -> None:
        """Longer typed lines first: the end of one may be another."""
        wanted = Counter(typed)
        for text in sorted(wanted, key=lambda text: (-len(text), text)):
            found = list(self._lines(text))
            echoes = [line for line in found if self._is_prompt(line.front)]
            if not echoes:
                whole = [line for line in found if line.end == line.at + 1]
                alone = [line._replace(front="") for line in whole if not line.front.strip()]
                asked = [line._replace(front="") for line in whole if _is_question(line.front)]
                echoes = (alone or asked)[: wanted[text]]
            for line in echoes:
                self.screen.echoes[line.at] = text
                self.screen.fronts[line.at] = line.front.rstrip()
                self.screen.wrapped.update(range(line.at + 1, line.end))

    def _lines(self, text: str) -> Iterator[_Line]:
        """The lines that end with a typed text, or begin it and go on below."""
        for place in self._places(text[:_HEAD] if len(text) > _HEAD else f"{text}\n"):
            index = bisect_right(self.starts, place) - 1
            taken = index in self.screen.echoes or index in self.screen.wrapped
            too_long = len(self.screen.lines[index]) > _FRONT + len(text)
            if taken or too_long:
                continue
            front = self.shown[self.starts[index] : place]
            shown = self.screen.lines[index][len(front) :]
            if shown != text and not self._is_prompt(front):
                continue
            if end := self._follow(index, shown, text):
                yield _Line(index, end, front)

    def _places(self, needle: str) -> Iterator[int]:
        place = self.shown.find(needle)
        while place >= 0 and self.left:
            self.left -= 1
            yield place
            place = self.shown.find(needle, place + 1)

    def _is_prompt(self, front: str) -> bool:
        prompt = front.rstrip()
        if prompt and prompt == self.waiting:
            return True
        return front != prompt and bool(prompt) and may_be_prompt(prompt)

    def _follow(self, index: int, shown: str, text: str) -> int:
        """The line behind a text that begins with `shown`; 0 where it does not go on as it should."""
        lines, done = self.screen.lines, 0
        while text.startswith(shown, done) and shown:
            done += len(shown)
            if done == len(text):
                return index + 1
            index += 1
            shown = lines[index] if index < len(lines) else ""
            # A blank at the edge is cut from the line above.
            while text.startswith(" ", done) and not text.startswith(shown, done):
                done += 1
        return 0


def _is_question(front: str) -> bool:
    return front.rstrip()[-1:] in {":", "?", ">", "]", ")"}
