"""One table, several faces: aligned text for terminals, GitHub Markdown for pages.

In: a title, columns, rows of strings, notes. Out: text. Cells from models or users are escaped:
control characters never reach a terminal, and pipes, backslashes and line breaks keep a Markdown
row in one piece.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field

DASH = "–"
"""Shown where a number is not available."""


@dataclass(frozen=True)
class Table:
    """`left` names the columns that are not numbers; `strong` the indices of summary rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[str, ...] = ()
    strong: tuple[int, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_text(self, width: int = 100, colour: bool = False) -> str:
        """Aligned text, at most `width` columns wide."""
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True
        )
        for name in self.columns:
            justify = "left" if name in self.left else "right"
            table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=name not in self.left)  # type: ignore[arg-type]
        for index, row in enumerate(self.rows):
            style = "bold" if index in self.strong else ""
            table.add_row(*(Text(printable(cell), style=style) for cell in row))
        console = Console(
            file=io.StringIO(), width=width, force_terminal=colour, color_system="auto" if colour else None
        )
        console.print(Text(self.title, style="bold"))
        console.print(table)
        for note in self.notes:
            console.print(Text(f"  {note}", style="dim"))
        assert isinstance(console.file, io.StringIO)
        lines = console.file.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"

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
        return "\n".join(lines).rstrip() + "\n"


def printable(text: str) -> str:
    """Text without control and bidirectional characters, safe on a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def markdown_cell(text: str) -> str:
    """Text that stays inside its cell and is shown literally."""
    escaped = re.sub(r"([\\|`*_<>\[\]])", r"\\\1", printable(" ".join(text.split("\n"))))
    return escaped.replace("&", "&amp;")


def points(value: float | None) -> str:
    """A score 0-100 with two decimals, or a dash."""
    return DASH if value is None else f"{value:.2f}"


def share(value: float | None) -> str:
    """A metric in [0, 1] with three decimals, or a dash."""
    return DASH if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """A share as percent with one decimal, never rounded up to 100 %."""
    if value is None:
        return DASH
    return "100 %" if value == 1 else f"{min(value * 100, 99.9):.1f} %"
