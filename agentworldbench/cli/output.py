"""Prints tables to standard output, as wide as the terminal, in colour only where it is one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import typer

from agentworldbench.render.table import Table

LOG_WIDTH = 120
"""Columns where standard output is no terminal."""


def print_tables(tables: Sequence[Table], form: str = "table") -> None:
    """Print as `table` (aligned text) or `md` (Markdown)."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((80, 24)).columns if terminal else LOG_WIDTH
    for number, table in enumerate(tables):
        text = table.to_markdown() if form == "md" else table.to_text(width, colour=terminal)
        typer.echo(("\n" if number else "") + text, nl=False)
