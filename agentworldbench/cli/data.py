"""`awb data info`: what a data set holds."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Data sets: what is in them.")


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
