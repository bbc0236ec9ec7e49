"""What a terminal shows after a stream of text and vt100 control sequences.

In: the stream a program wrote to a terminal, line ends as `\\n`. Out: the screen as lines of text
(`render`), or the stream as plain lines to look for prompts in (`plain`). Only what bash and
`less` write with TERM=vt100 is understood: text, `\\r`, `\\b`, bell, cursor position, erase, scroll
back by one line, attributes (dropped). Anything else is an error, so that no recording is wrong unseen.
"""

from __future__ import annotations

import re

SEQUENCE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|\x1b([=>M])|([\r\n\b\x07\x0f])|([^\x00-\x1f])")
IGNORED = {"m", "h", "l"}


def plain(stream: str) -> str:
    """`stream` without control sequences; every return to the first column begins a line."""
    return re.sub(r"\x1b\[\??[\d;]*[A-Za-z]|\x1b[=>M]|[\x07\x0f]", "", stream).replace("\r", "\n")


def render(stream: str, rows: int, columns: int) -> str:
    """The screen after `stream`, blanks at the ends of lines and lines at its end cut."""
    screen = Screen(rows, columns)
    position = 0
    while position < len(stream):
        match = SEQUENCE.match(stream, position)
        if match is None:
            raise ValueError(f"unknown control sequence {stream[position : position + 8]!r}")
        screen.apply(match)
        position = match.end()
    return "\n".join("".join(line).rstrip() for line in screen.lines).rstrip()


class Screen:
    """Lines of characters and a cursor."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.lines = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0

    def apply(self, match: re.Match[str]) -> None:
        """One character or control sequence, as `SEQUENCE` takes it apart."""
        arguments, command, escape, control, character = match.groups()
        if character:
            self.put(character)
        elif control:
            self.control(control)
        elif escape == "M":
            self.back()
        elif command and command not in IGNORED:
            self.command(command, [int(number) for number in arguments.split(";") if number])

    def put(self, character: str) -> None:
        """Write at the cursor; a character behind the last column goes to the next line."""
        if self.column == self.columns:
            self.feed()
        self.lines[self.row][self.column] = character
        self.column += 1

    def control(self, character: str) -> None:
        if character == "\n":
            self.feed()
        elif character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(0, self.column - 1)

    def feed(self) -> None:
        """To the first column of the next line; at the bottom the screen scrolls."""
        self.column = 0
        if self.row < self.rows - 1:
            self.row += 1
        else:
            self.lines = [*self.lines[1:], [" "] * self.columns]

    def back(self) -> None:
        """One line up; at the top the screen scrolls down."""
        if self.row > 0:
            self.row -= 1
        else:
            self.lines = [[" "] * self.columns, *self.lines[:-1]]

    def command(self, name: str, numbers: list[int]) -> None:
        """Cursor position (H) and erasing from the cursor on (J, K)."""
        if name == "H":
            row, column = [*numbers, 1, 1][:2] if numbers else (1, 1)
            self.row, self.column = min(row, self.rows) - 1, min(column, self.columns) - 1
        elif name in "JK" and not any(numbers):
            self.lines[self.row][self.column :] = [" "] * (self.columns - self.column)
            if name == "J":
                self.lines[self.row + 1 :] = [[" "] * self.columns for _ in self.lines[self.row + 1 :]]
        else:
            raise ValueError(f"unknown control sequence {name} {numbers}")
