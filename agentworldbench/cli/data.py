"""`awb data info` and `awb data pull`: what a data set holds; fetching the official files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentworldbench.pull import Pulled
    from agentworldbench.render.table import Table

app = typer.Typer(no_args_is_help=True, help="Data sets: what is in them, and fetching the official files.")


class What(StrEnum):
    """What can be pulled."""

    DATA = "official-data"
    PROMPTS = "official-prompts"
    ALL = "all"


@app.command("info")
def info(
    data: Annotated[
        str, typer.Argument(help="mini, official, hf:OWNER/NAME or a folder.", metavar="DATA")
    ] = "mini",
    tasks: Annotated[
        list[str] | None,
        typer.Option("--tasks", "-t", "--domains", help="Only these domains.", show_default=False),
    ] = None,
) -> None:
    """Check every row of a data set and count rows, trajectories, turns and sizes."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.dataset import open_dataset
    from agentworldbench.render.table import Table
    from agentworldbench.sources import resolve_source
    from agentworldbench.stats.aggregate import by_domain

    words = [word.strip() for item in tasks or () for word in item.split(",") if word.strip()]
    source = resolve_source(data, tuple(words))
    dataset = open_dataset(source.files, source.tasks)
    source.check({domain: file.sha256 for domain, file in dataset.files.items()})
    rows = []
    for domain, refs in by_domain(dataset.refs).items():
        chars = [ref.context_chars for ref in refs]
        turns = [ref.total_turns for ref in refs]
        rows.append(
            (
                domain,
                str(len(refs)),
                str(len({ref.cluster for ref in refs})),
                str(len({ref.task_key for ref in refs})),
                f"{sum(turns) / len(turns):.1f}",
                f"{sum(chars) / len(chars) / 1000:.1f}",
                f"{max(chars) / 1000:.1f}",
                f"{source.files[domain].stat().st_size / 1e6:.2f}",
                dataset.files[domain].sha256[:12],
            )
        )
    where = f" ({source.repository} at {source.revision})" if source.repository else ""
    columns = (
        "Domain", "Rows", "Trajectories", "Tasks", "Mean turns", "Mean context, k chars", "Largest", "MB", "SHA-256",
    )  # fmt: skip
    notes = tuple(f"{ref.id}: {', '.join(ref.flags)}" for ref in dataset.refs if ref.flags)
    print_tables([Table(f"Data {source.name}{where}", columns, tuple(rows), ("Domain",), notes=notes)])


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
    from agentworldbench.cli.output import print_tables
    from agentworldbench.official_files import OFFICIAL
    from agentworldbench.pull import pull_data, pull_prompts

    if prompts_from is not None and what is What.DATA:
        raise typer.BadParameter("goes with official-prompts and all", param_hint="'--prompts-from'")
    tables = []
    if what is not What.DATA:
        tables.append(_table("Official prompts", pull_prompts(_tell, OFFICIAL, prompts_from)))
    if what is not What.PROMPTS:
        tables.append(_table("Official data", pull_data(_tell)))
    print_tables(tables)


def _tell(line: str) -> None:
    from agentworldbench.render.table import printable

    typer.echo(printable(line), err=True)


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
        notes=(f"{len(rows)} files, {total}, in {pulled.folder}", *unchecked),
    )
