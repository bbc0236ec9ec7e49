"""Prints tables and sentences: as wide as the terminal, in colour only where it is one, in characters that it has.

Results go to standard output unless that is for programs, what is said beside them to standard error.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

import typer

from agentworldbench.render.table import PROSE_WIDTH, Table, printable

LOG_WIDTH = 120
"""Columns where standard output is no terminal."""


def line_width(terminal: bool) -> int:
    """Columns of the terminal, or those of a log; COLUMNS sets both."""
    if not terminal and not os.environ.get("COLUMNS", "").isdecimal():
        return LOG_WIDTH
    return max(20, shutil.get_terminal_size((80, 24)).columns)


def print_tables(tables: Sequence[Table], form: str = "table", err: bool = False) -> None:
    """Print as `table` (aligned text) or `md` (Markdown), with `err` to standard error."""
    stream = sys.stderr if err else sys.stdout
    terminal = stream.isatty()
    width = line_width(terminal)
    for number, table in enumerate(tables):
        if form == "md":
            text = table.to_markdown()
        else:
            text = table.to_text(width, colour=terminal, encoding=stream.encoding)
        typer.echo(("\n" if number else "") + text, nl=False, err=err)


def put(text: str, err: bool = False) -> None:
    """Lines that are a result, to standard output (with `err` to standard error, where that is for programs), whole:
    paths in them are to be copied."""
    for line in text.split("\n"):
        typer.echo(printable(line), err=err)


def say(text: str) -> None:
    """Lines for people, to standard error: on a terminal wrapped between words, except those that are indented,
    because they are to be copied; in a log left as they are."""
    terminal = sys.stderr.isatty()
    width = min(line_width(terminal), PROSE_WIDTH)
    for line in text.split("\n"):
        shown = printable(line)
        if terminal and not shown.startswith(" "):
            shown = textwrap.fill(shown, width, break_long_words=False, break_on_hyphens=False)
        typer.echo(shown, err=True)
