"""`awb data info` and `awb data show`: what a data set holds, in numbers and sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentworldbench.dataset import Dataset
    from agentworldbench.render.table import Table
    from agentworldbench.sources import Source

DATA = typer.Argument(help="mini, official, hf:OWNER/NAME or a folder.", metavar="DATA")
TASKS = typer.Option("--tasks", "-t", "--domains", help="Only these domains.", show_default=False)


def info(data: Annotated[str, DATA] = "mini", tasks: Annotated[list[str] | None, TASKS] = None) -> None:
    """Check every row of a data set; count rows, trajectories, turns, sizes and tokens; say where they come from."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.config import make_config
    from agentworldbench.plan import open_samples

    samples = open_samples(make_config({"data": data, "tasks": tasks}))
    tables = [_counts(samples.source, samples.dataset)]
    if samples.source.origins:
        tables.append(_origins(samples.source))
    print_tables(tables)


def show(
    data: Annotated[str, DATA] = "mini",
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Samples to show, as DOMAIN/ID/TURN.", metavar="[SAMPLE]…", show_default=False),
    ] = None,
    tasks: Annotated[list[str] | None, TASKS] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            "--limit",
            "-n",
            help="Samples a domain: a number, a range 3-5 or a share 0.1; else one.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Draw others.", show_default=False)] = None,
    full: Annotated[bool, typer.Option("--full", help="Fold nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The rows as they stand in their files.")] = False,
) -> None:
    """Print samples as a person reads them: task, history, action, and what the environment answered."""
    from agentworldbench.config import make_config
    from agentworldbench.plan import open_samples
    from agentworldbench.render.sample import sample_text

    given = {"data": data, "tasks": tasks, "sample_id": ids or None, "seed": seed}
    samples = open_samples(make_config(given | {"limit": limit if limit or ids else "1"}))
    for number, ref in enumerate(samples.refs):
        if as_json:
            typer.echo(samples.dataset.raw(ref).decode("utf-8"))
            continue
        origin = samples.source.origins.get(ref.domain)
        text = sample_text(samples.dataset.load(ref), samples.tasks[ref.domain], origin, full)
        typer.echo(("\n" if number else "") + text, nl=False)


def _counts(source: Source, dataset: Dataset) -> Table:
    from agentworldbench.engine.fitting import estimate_tokens
    from agentworldbench.prompts import predict_messages
    from agentworldbench.render.table import Table
    from agentworldbench.stats.aggregate import by_domain

    rows = []
    for domain, refs in by_domain(dataset.refs).items():
        turns = [ref.total_turns for ref in refs]
        chars = [ref.context_chars for ref in refs]
        tokens = [estimate_tokens(predict_messages(dataset.load(ref))) for ref in refs]
        rows.append(
            (
                f"{domain} (simulated)" if domain in source.simulated else domain,
                str(len(refs)),
                str(len({ref.cluster for ref in refs})),
                str(len({ref.task_key for ref in refs})),
                f"{min(turns)}-{max(turns)}" if min(turns) < max(turns) else str(turns[0]),
                f"{sum(chars) / len(chars) / 1000:.1f}",
                f"{max(chars) / 1000:.1f}",
                f"{sum(tokens) / len(tokens) / 1000:.1f}",
                f"{sum(tokens) / 1000:.0f}",
                f"{source.files[domain].stat().st_size / 1e6:.2f}",
                dataset.files[domain].sha256[:12],
            )
        )
    where = f" ({source.repository} at {source.revision})" if source.repository else ""
    columns = (
        "Domain", "Rows", "Trajectories", "Tasks", "Turns", "k chars", "Longest", "k tokens", "All", "MB", "SHA-256",
    )  # fmt: skip
    notes = (
        "A sample's prompt in thousands of characters, mean and longest; about how many thousands of tokens that is, a "
        "sample and all together.",
        *(f"{ref.id}: {', '.join(ref.flags)}" for ref in dataset.refs if ref.flags),
    )
    return Table(f"Data {source.name}{where}", columns, tuple(rows), ("Domain",), notes=notes)


def _origins(source: Source) -> Table:
    from agentworldbench.render.table import Table

    rows = [
        (
            domain,
            origin.kind,
            origin.recorded,
            origin.licence,
            origin.how,
            ", ".join(
                version if version.lower().startswith(name.lower()) else f"{name} {version}"
                for name, version in origin.programs.items()
            ),
        )
        for domain, origin in source.origins.items()
        if domain in source.files
    ]
    columns = ("Domain", "Kind", "Recorded", "Licence", "How", "Programs")
    return Table("Where it comes from", columns, tuple(rows), columns, fold=("How", "Programs"))
