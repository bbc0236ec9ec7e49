"""`awb report`: runs as pages that open from a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentworldbench.cli.arguments import MovedData
from agentworldbench.cli.output import put, say
from agentworldbench.texts import count_text


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", short_help="Runs as pages to look at: overview, plots, every sample.")(report)


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.", metavar="RUN", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the report; default for one run: RUN/report.", metavar="DIR", show_default=False),
    ] = None,
    remark: Annotated[
        str,
        typer.Option("--remark", help="A sentence of yours at the head of every page.", metavar="TEXT", show_default=False),
    ] = "",
    data: MovedData = None,
) -> None:  # fmt: skip
    """Make pages of runs that open from a disk and ask no network; a report that is there already is replaced.

    An overview with plots (SVG and PNG for papers), a list of samples with filters and search, and a page for each
    prediction. Several runs have a page above them. No model is asked.
    """
    import sys

    from agentworldbench.errors import ConfigError
    from agentworldbench.report.build import build_report
    from agentworldbench.store import no_run

    if output is None and len(runs) > 1:
        raise ConfigError("--output is missing: several runs need a folder for their reports")
    for path in runs:
        if not (path / "run.json").is_file():  # before a folder is made in what may be a file
            raise no_run(path)
    terminal = sys.stderr.isatty()

    def told(done: int, total: int) -> None:
        if terminal and (done == total or done % 20 == 0):
            typer.echo(f"\rPages: {done} of {total}{chr(10) if done == total else ''}", err=True, nl=False)

    built = build_report(runs, output or runs[0] / "report", data, told, remark)
    for one in built.reports:
        name = f"{one.run}: " if len(runs) > 1 else ""
        pages = count_text(one.pages, "page of a sample", "pages of samples")
        plots = count_text(len(one.plots), "plot")
        told_of = f"{name}{pages}, {plots} as SVG and PNG"
        say(told_of)
    say(f"{built.size / 1e6:,.1f} MB")
    put(str(built.index))
