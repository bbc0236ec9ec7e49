"""`awb export official`: a run in the form of another program's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentworldbench.cli.arguments import MovedData, RunPath

app = typer.Typer(no_args_is_help=True, help="Runs in the form of other programs' files.")


@app.command("official")
def official(
    run_path: RunPath,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", "--output-dir", metavar="DIR", help="Folder to write to; default: RUN/official.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Whose verdicts, where the run has several judges.", show_default=False),
    ] = None,
    data: MovedData = None,
) -> None:  # fmt: skip
    """Write predictions.jsonl and judged.jsonl as the official script writes them; its `score` reads them."""
    from agentworldbench.integrations.official_export import export_run
    from agentworldbench.render.table import printable

    for written in export_run(run_path, output, judge, data):
        asked = f"; {written.left_out} samples left out, not asked yet" if written.left_out else ""
        typer.echo(printable(f"{written.path}: {written.lines} lines{asked}"))
