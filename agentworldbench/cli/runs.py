"""`awb runs list` and `awb runs merge`: run directories, many at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentworldbench.merge import Counts
    from agentworldbench.run_list import RunLine

app = typer.Typer(no_args_is_help=True, help="Run directories: list them, put parts together.")
_NUMBERS = ("Done", "Coverage", "Judge score", "Rule score", "USD")
_COLUMNS = ("Run", "Model", "Data", "Protocol", "Judges", *_NUMBERS, "Last worked on")


@app.command("list")
def list_(
    folder: Annotated[
        Path, typer.Argument(help="Folder of run directories, or one of them.", metavar="DIR")
    ] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON list.")] = False,
) -> None:
    """List runs with model, data, judges, how much is done, headline, cost; damaged ones are named."""
    import json

    from agentworldbench.cli.output import print_tables
    from agentworldbench.render.table import Table
    from agentworldbench.run_list import list_runs

    lines = list_runs(folder)
    if as_json:
        typer.echo(json.dumps([line.model_dump(mode="json") for line in lines], indent=2))
        return
    read = [line for line in lines if line.problem is None]
    damaged = [f"{line.path}: {line.problem}" for line in lines if line.problem is not None]
    notes = (
        "Done: samples with a record, of those selected. Coverage: of each judge, or else of the predictions. Scores "
        "0-100, as each protocol is headed; scores of unlike data, judges or protocols do not compare.",
        *(f"Cannot be read: {text}" for text in damaged),
    )
    rows = tuple(_row(line, folder) for line in read)
    left = tuple(name for name in _COLUMNS if name not in _NUMBERS)
    print_tables(
        [Table(f"Runs in {folder}", _COLUMNS, rows, left, notes=notes, fold=("Run", "Model", "Judges"))]
    )


def _row(line: RunLine, folder: Path) -> tuple[str, ...]:
    from agentworldbench.prices import dollars
    from agentworldbench.render.table import DASH, percent, points

    predicted = line.predicted / line.selected if line.selected else None
    part = f" (shard {line.shard})" if line.shard else ""
    path = Path(line.path)
    return (
        (path.name if path == folder else str(path.relative_to(folder))) + part,
        line.model or DASH,
        line.data or DASH,
        line.protocol or DASH,
        ", ".join(one.judge for one in line.judges) or DASH,
        f"{line.done}/{line.selected}",
        ", ".join(percent(one.coverage) for one in line.judges) or percent(predicted),
        ", ".join(points(one.score) for one in line.judges) or DASH,
        points(line.rule_score),
        DASH if line.cost_usd is None else dollars(line.cost_usd),
        (line.worked_on or DASH)[:16].replace("T", " "),
    )


@app.command("merge")
def merge(
    runs: Annotated[list[Path], typer.Argument(help="Run directories to merge.", metavar="RUN", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory of the whole; an existing one is one more part.",
                           metavar="DIR", show_default=False),
    ],
    data: Annotated[
        str | None,
        typer.Option("--data", help="Where the data are now, when they have moved.", show_default=False),
    ] = None,
) -> None:  # fmt: skip
    """Put shards, or other runs with equal settings, together; the results are those of one whole run."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.merge import merge_runs
    from agentworldbench.render.cost import cost_tables
    from agentworldbench.render.results import run_tables
    from agentworldbench.render.table import printable

    merged = merge_runs(runs, output, data)
    for name, counts in (("predictions", merged.predictions), ("verdicts", merged.verdicts)):
        typer.echo(_counted(name, counts), err=True)
    print_tables([*run_tables(merged.results), *cost_tables(merged.results)])
    typer.echo(printable(f"Results: {output / 'results.json'}"), err=True)


def _counted(name: str, counts: Counts) -> str:
    text = f"{counts.records} {name}"
    if counts.duplicates:
        text += f"; {counts.duplicates} stood in several runs with different content (a good one counts, then the earlier)"
    if counts.beside:
        text += f"; {counts.beside} superseded records are kept beside them, as they were paid for"
    return text
