"""`awb report`: a run as pages that open from a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentworldbench.cli.arguments import MovedData, RunPath


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", short_help="A run as pages to look at: overview, plots, every sample.")(report)


def report(
    run: RunPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the report; default: RUN/report.", metavar="DIR", show_default=False),
    ] = None,
    data: MovedData = None,
) -> None:  # fmt: skip
    """Make pages of a run that open from a disk and ask no network; a report that is there already is replaced.

    An overview with plots (SVG for papers; PNG too with the extra `charts`), a list of samples with filters and search,
    and a page for each prediction. No model is asked.
    """
    import sys

    from agentworldbench.render.table import printable
    from agentworldbench.report.site import build_report

    terminal = sys.stderr.isatty()

    def told(done: int, total: int) -> None:
        if terminal and (done == total or done % 20 == 0):
            typer.echo(f"\rPages: {done} of {total}{chr(10) if done == total else ''}", err=True, nl=False)

    built = build_report(run, output or run / "report", data, told)
    pictures = "SVG and PNG" if built.pictures else "SVG (PNG: pip install 'agentworldbench[charts]')"
    typer.echo(f"{built.pages} pages of samples, {built.plots} plots as {pictures}", err=True)
    typer.echo(printable(str(built.index)))
