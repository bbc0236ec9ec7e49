"""`awb runs list`, `merge` and `conflicts`: run directories, many at once, and one looked through."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworldbench.cli.arguments import AllowCode, MovedData, RunPath
from agentworldbench.cli.output import say
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from agentworldbench.conflicts import RunConflicts
    from agentworldbench.merge import Counts


class Form(StrEnum):
    """Output formats of `awb runs conflicts`."""

    TABLE = "table"
    MD = "md"
    CSV = "csv"
    JSON = "json"


app = typer.Typer(
    no_args_is_help=True,
    help="Run directories: list them, merge parts, see conflicts.",
)
_LISTED = 50
"""Conflicts that are shown of each judge, unless --limit says otherwise."""


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
    from agentworldbench.run_list import links_out, list_runs, runs_table

    lines = list_runs(folder)
    if as_json:
        typer.echo(json.dumps([line.model_dump(mode="json") for line in lines], indent=2))
        return
    print_tables([runs_table(lines, folder, links_out(folder))])


@app.command("merge")
def merge(
    runs: Annotated[list[Path], typer.Argument(help="Run directories to merge.", metavar="RUN", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory of the whole; an existing one is one more part.",
                           metavar="DIR", show_default=False),
    ],
    data: MovedData = None,
    allow_code: AllowCode = False,
) -> None:  # fmt: skip
    """Put shards, or other runs with equal settings, together; the results are those of one whole run."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.merge import merge_runs
    from agentworldbench.render.cost import cost_tables
    from agentworldbench.render.results import run_tables

    merged = merge_runs(runs, output, data, allow_code=allow_code)
    for name, counts in (("prediction", merged.predictions), ("verdict", merged.verdicts)):
        say(_counted(name, counts))
    print_tables([*run_tables(merged.results), *cost_tables(merged.results)])
    say(f"Results: {output / 'results.json'}")


def _counted(name: str, counts: Counts) -> str:
    text = count_text(counts.records, name)
    if counts.duplicates:
        text += f"; {counts.duplicates} stood in several runs with different content (a good one counts, then the earlier)"
    if counts.beside:
        text += f"; {count_text(counts.beside, 'superseded record')} kept beside them, paid for too"
    return text


@app.command("conflicts")
def conflicts(
    run: RunPath,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Only this judge of the run: its model or digest.", metavar="MODEL", show_default=False),
    ] = None,
    form: Annotated[Form, typer.Option("--format", "-f", help="How to print.")] = Form.TABLE,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Also write a page with the texts of each conflict.", metavar="FILE", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Conflicts of each judge that are listed; default: 50, in CSV and JSON "
                     "all.", metavar="N", show_default=False),
    ] = None,
    data: MovedData = None,
) -> None:  # fmt: skip
    """Samples on which judge and rules disagree most, and how often they do, by domain."""
    from agentworldbench.conflicts import find_conflicts

    found = find_conflicts(run, data, judge)
    _print_conflicts(found, form, limit)
    if html is not None:
        _write_page(found, html, limit or _LISTED)


def _print_conflicts(found: RunConflicts, form: Form, limit: int | None) -> None:
    import csv
    import io
    import json

    from agentworldbench.cli.output import print_tables
    from agentworldbench.render.conflicts import conflicts_table, csv_rows, rates_table

    if form is Form.JSON:
        judges = [
            one.model_copy(update={"conflicts": one.conflicts[:limit]}).model_dump(mode="json")
            for one in found.judges
        ]
        typer.echo(
            json.dumps({"schema_version": 1, "run": str(found.store.path), "judges": judges}, indent=2)
        )
    elif form is Form.CSV:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(csv_rows(found.judges, limit))
        typer.echo(text.getvalue(), nl=False)
    else:
        tables = []
        for one in found.judges:
            tables += [rates_table(one), conflicts_table(one, limit or _LISTED)]
        print_tables(tables, form.value)


def _write_page(found: RunConflicts, path: Path, most: int) -> None:
    from agentworldbench.errors import StoreError
    from agentworldbench.render.conflicts import conflicts_page

    judges = [(one, found.evidence(one, most)) for one in found.judges]
    predict = found.run.predict
    simulated = f" ({', '.join(predict.data.simulated)} simulated)" if predict.data.simulated else ""
    page = conflicts_page(str(predict.model["model"]), predict.data.name + simulated, judges)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as problem:
        raise StoreError(f"{path}: cannot be written ({problem.strerror})") from problem
    say(f"Page: {path}")
