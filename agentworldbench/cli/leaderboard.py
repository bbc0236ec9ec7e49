"""`awb leaderboard show`: the entries of the bundled leaderboard, or of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from agentworldbench.cli.arguments import Form, FormOption

app = typer.Typer(no_args_is_help=True, help="Leaderboards: entries by data, protocol and judge.")


@app.command("show")
def show(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of entries; default: the bundled ones.", metavar="DIR", show_default=False
        ),
    ] = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Show the entries, one table for each group that may be compared."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.errors import DataError
    from agentworldbench.leaderboard.entries import grouped, load_entries, ranks
    from agentworldbench.leaderboard.tables import leaderboard_tables

    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder}: no such folder of leaderboard entries")
    entries = load_entries(folder)
    if not entries:
        raise DataError(f"{folder}: no leaderboard entry (*.json) in this folder")
    if form is not Form.JSON:
        print_tables(leaderboard_tables(entries), form.value)
        return
    groups = [
        {
            "group": group.model_dump(mode="json"),
            "entries": [
                {"rank": rank, **entry.model_dump(mode="json")}
                for rank, entry in zip(ranks(some), some, strict=True)
            ],
        }
        for group, some in grouped(entries)
    ]
    typer.echo(json.dumps({"schema_version": 1, "groups": groups}, indent=2, ensure_ascii=False))
