"""Prints tables, to standard output unless that is for programs, as wide as the terminal, in colour only where it is one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import typer

from agentworldbench.render.table import Table

LOG_WIDTH = 120
"""Columns where standard output is no terminal."""


def line_width(terminal: bool) -> int:
    """Columns of the terminal, or those of a log."""
    return shutil.get_terminal_size((80, 24)).columns if terminal else LOG_WIDTH


def print_tables(tables: Sequence[Table], form: str = "table", err: bool = False) -> None:
    """Print as `table` (aligned text) or `md` (Markdown), with `err` to standard error."""
    terminal = (sys.stderr if err else sys.stdout).isatty()
    width = line_width(terminal)
    for number, table in enumerate(tables):
        text = table.to_markdown() if form == "md" else table.to_text(width, colour=terminal)
        typer.echo(("\n" if number else "") + text, nl=False, err=err)
