"""`awb data`: looking at a data set, and `awb data pull`, which fetches the official files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworldbench.cli import look
from agentworldbench.cli.output import say
from agentworldbench.errors import AwbError
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from agentworldbench.pull import Pulled
    from agentworldbench.render.table import Table

app = typer.Typer(no_args_is_help=True, help="Data sets: what is in them, and fetching the official files.")


class What(StrEnum):
    """What can be pulled."""

    DATA = "official-data"
    PROMPTS = "official-prompts"
    ALL = "all"


app.command("info")(look.info)
app.command("show")(look.show)


@app.command("pull")
def pull(
    what: Annotated[
        What,
        typer.Argument(help="official-data, official-prompts or all.", metavar="WHAT", show_default=False),
    ],
    prompts_from: Annotated[
        Path | None,
        typer.Option(
            "--prompts-from",
            metavar="DIR",
            help="Take the prompts from this folder (a checkout of their repository, say), not from the network.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Fetch the official data set (402 MB) or the official judge prompts; every file is checked by its hash."""
    from agentworldbench.official_files import OFFICIAL
    from agentworldbench.pull import pull_data, pull_prompts

    if prompts_from is not None and what is What.DATA:
        raise typer.BadParameter("goes with official-prompts and all", param_hint="'--prompts-from'")
    parts: dict[str, Callable[[], Pulled]] = {}
    if what is not What.DATA:
        parts["Official prompts"] = lambda: pull_prompts(say, OFFICIAL, prompts_from)
    if what is not What.PROMPTS:
        parts["Official data"] = lambda: pull_data(say)
    _pull_each(parts, first_ends=prompts_from is not None)


def _pull_each(parts: Mapping[str, Callable[[], Pulled]], first_ends: bool) -> None:
    """Try every part, as the host of one may be down alone, and show at once what came.

    With `first_ends` the first failure ends it: a wrong folder is said before 402 MB are fetched.
    """
    from agentworldbench.cli.output import print_tables

    failures: list[AwbError] = []
    shown = False
    for title, pull_part in parts.items():
        try:
            pulled = pull_part()
        except AwbError as problem:
            if first_ends:
                raise
            failures.append(problem)
            continue
        if shown:
            typer.echo()
        print_tables([_table(title, pulled)])
        shown = True
    if len(failures) == 1:
        raise failures[0]
    if failures:  # one line; of one kind, so that it exits as the first does
        raise type(failures[0])("neither part came whole: " + "; and: ".join(map(str, failures)))


def _table(title: str, pulled: Pulled) -> Table:
    from agentworldbench.pull import size_text
    from agentworldbench.render.table import Table

    rows = [(file.name, size_text(file.size), file.sha256[:12], file.state) for file in pulled.files]
    total = size_text(sum(file.size for file in pulled.files))
    unchecked = [f"{file.name}: no stated hash to check it by" for file in pulled.files if not file.checked]
    return Table(
        f"{title} ({pulled.origin})",
        ("File", "Size", "SHA-256", "State"),
        tuple(rows),
        left=("File", "State"),
        notes=(f"{count_text(len(rows), 'file')}, {total}, in {pulled.folder}", *unchecked),
    )
