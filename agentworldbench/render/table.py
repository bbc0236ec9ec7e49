"""One table, several faces: aligned text for terminals, GitHub Markdown for pages.

In: a title, columns, rows of strings, notes. Out: text. Cells from models or users are escaped:
control characters never reach a terminal, and pipes, backslashes and line breaks keep a Markdown
row in one piece.
"""

from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from agentworldbench.render.encoding import in_encoding

DASH = "–"
"""Shown where a number is not available."""
GAP = 2
"""Blanks between columns."""
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with, in wide letters too."""
PROSE_WIDTH = 120
"""Longest lines of notes, however wide the terminal: longer ones are hard to read."""
FOLDED_WIDTH = 24
"""Least width of a column that may be wrapped."""


@dataclass(frozen=True)
class Table:
    """`left` names the columns that are not numbers, the first of them identifies a row; `fold`
    those that may be wrapped; `strong` the indices of summary rows, `commands` lines to be copied, never wrapped;
    `lead` counts the columns that stand in the first block wherever they fit; `together` names columns that follow
    each other and stand in one block wherever one is wide enough for them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[str, ...] = ()
    strong: tuple[int, ...] = ()
    notes: tuple[str, ...] = field(default=())
    fold: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    lead: int = 0
    together: tuple[tuple[str, ...], ...] = ()

    def to_text(self, width: int = 100, colour: bool = False, encoding: str | None = None) -> str:
        """Aligned text, at most `width` columns wide, in characters that `encoding` has (None: all).

        Columns that do not fit follow in further blocks that begin with the row's name.
        """
        text = self._in(encoding)._text(width, colour)
        return in_encoding(text, encoding)

    def _in(self, encoding: str | None) -> Table:
        """The same as it is shown: without control characters, in those that `encoding` has, so that they are
        measured as they will be."""

        def told(texts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(in_encoding(printable(text), encoding) for text in texts)

        return Table(
            title=in_encoding(printable(self.title), encoding),
            columns=told(self.columns),
            rows=tuple(map(told, self.rows)),
            left=told(self.left),
            strong=self.strong,
            notes=told(self.notes),
            fold=told(self.fold),
            commands=told(self.commands),
            lead=self.lead,
            together=tuple(map(told, self.together)),
        )

    def _text(self, width: int, colour: bool) -> str:
        from rich.console import Console
        from rich.text import Text

        console = Console(
            file=io.StringIO(), width=width, force_terminal=colour, color_system="auto" if colour else None
        )
        console.print(Text(self.title, style="bold"))
        for number, columns in enumerate(self._blocks(width)):
            if number:
                console.print()
            console.print(self._block(columns))
        for note in self.notes:
            console.print(Text(note, style="dim"), width=min(width, PROSE_WIDTH))
        for command in self.commands:
            console.print(Text(f"  {command}", style="dim"), soft_wrap=True)
        assert isinstance(console.file, io.StringIO)
        lines = console.file.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"

    def _blocks(self, width: int) -> list[list[int]]:
        """Column indices of each block: as few blocks as fit, and of these the most even, so that columns that
        belong together are not torn apart for a last one."""
        needed = self._needed()
        groups = self._groups(needed, width)
        blocks = self._filled(groups, needed, width)
        for narrower in range(width - 1, 0, -1):
            more_even = self._filled(groups, needed, narrower)
            if len(more_even) > len(blocks) or len(more_even[0]) < min(self.lead, len(blocks[0])):
                break
            blocks = more_even
        return blocks

    def _needed(self) -> list[int]:
        """Columns of the terminal that each of the table's columns takes."""
        from rich.cells import cell_len

        needed = []
        for index, name in enumerate(self.columns):
            natural = max(map(cell_len, (name, *(row[index] for row in self.rows))))
            needed.append(min(natural, FOLDED_WIDTH) if name in self.fold else natural)
        return needed

    def _filled(self, groups: list[list[int]], needed: list[int], width: int) -> list[list[int]]:
        """Blocks of which each takes as many groups of columns as fit into `width`, the row's name first."""
        blocks: list[list[int]] = [[]]
        used = 0
        for group in groups:
            need = sum(needed[index] for index in group) + GAP * (len(group) - 1)
            if blocks[-1] and used + need + GAP > width and blocks[-1] != [self._key]:
                begun = [] if self._key in group else [self._key]
                blocks.append(begun)
                used = sum(needed[index] for index in begun)
            used += need + (GAP if blocks[-1] else 0)
            blocks[-1] += group
        return blocks

    def _groups(self, needed: list[int], width: int) -> list[list[int]]:
        """The columns in their order, those that belong together as one group; of a group that no block has room for
        each column by itself."""
        group_of = {name: number for number, names in enumerate(self.together) for name in names}
        groups: list[list[int]] = []
        for index, name in enumerate(self.columns):
            before = group_of.get(self.columns[index - 1]) if index else None
            if before is not None and before == group_of.get(name):
                groups[-1].append(index)
            else:
                groups.append([index])
        fitting: list[list[int]] = []
        for group in groups:
            taken = sum(needed[index] + GAP for index in {self._key, *group}) - GAP
            fitting += [group] if taken <= width else [[index] for index in group]
        return fitting

    @property
    def _key(self) -> int:
        """The column that names a row."""
        return self.columns.index(self.left[0]) if self.left else 0

    def _block(self, columns: list[int]) -> Any:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True
        )
        for index in columns:
            name = self.columns[index]
            table.add_column(
                Text(name),
                justify="left" if name in self.left else "right",
                overflow="fold",
                no_wrap=name not in self.left,
            )
        for number, row in enumerate(self.rows):
            style = "bold" if number in self.strong else ""
            table.add_row(*(Text(row[index], style=style) for index in columns))
        return table

    def _repr_html_(self) -> str:
        """Below a notebook's cell."""
        from agentworldbench.render.cells import cell_html

        return cell_html([self])

    def to_markdown(self) -> str:
        """A GitHub table under a heading, notes below."""
        lines = [f"### {markdown_cell(self.title)}", ""]
        lines.append("| " + " | ".join(map(markdown_cell, self.columns)) + " |")
        lines.append("|" + "|".join("---" if name in self.left else "---:" for name in self.columns) + "|")
        for index, row in enumerate(self.rows):
            cells = [markdown_cell(cell) for cell in row]
            if index in self.strong:
                cells = [f"**{cell}**" if cell else "" for cell in cells]
            lines.append("| " + " | ".join(cells) + " |")
        lines += [""] + [f"{markdown_cell(note)}  " for note in self.notes]
        if self.commands:
            lines += ["", *(f"    {printable(command)}" for command in self.commands)]
        return "\n".join(lines).rstrip() + "\n"


def printable(text: str) -> str:
    """Text without control and bidirectional characters, safe on a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def wrapped(text: str, columns: int) -> list[str]:
    """The text in lines of so many columns at most, between words where it can be: letters of Chinese take two columns,
    and accents none. Not an empty line."""
    from rich.console import Console
    from rich.text import Text

    lines = (line.plain.strip() for line in Text(text).wrap(Console(), columns))
    return [line for line in lines if line]


def unseen(text: str) -> str | None:
    """The first character of a text that nobody sees or that turns its line around, by code point and name; None
    where every one is shown as it stands."""
    char = next((char for char in text if not char.isprintable()), None)
    return None if char is None else f"U+{ord(char):04X} {unicodedata.name(char, 'a control character')}"


def markdown_cell(text: str) -> str:
    """Text that stays inside its cell and is shown literally."""
    escaped = re.sub(r"([\\|`*_<>\[\]])", r"\\\1", printable(" ".join(text.split("\n"))))
    return escaped.replace("&", "&amp;")


def csv_cell(text: str) -> str:
    """Text for a cell of CSV. A spreadsheet would compute what begins like a formula: a quote before it keeps it text."""
    line = printable(text)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line


def points(value: float | None) -> str:
    """A score 0-100 with two decimals, never `-0.00`, or a dash."""
    return DASH if value is None else f"{value:z.2f}"


def share(value: float | None) -> str:
    """A metric in [0, 1] with three decimals, or a dash."""
    return DASH if value is None else f"{value:z.3f}"


def percent(value: float | None) -> str:
    """A share as percent with one decimal, never rounded up to 100 %."""
    if value is None:
        return DASH
    return "100 %" if value == 1 else f"{min(value * 100, 99.9):.1f} %"
