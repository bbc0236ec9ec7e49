"""`awb compare`: two runs on the same samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworldbench.cli.arguments import Form, FormOption, MovedData

if TYPE_CHECKING:
    from agentworldbench.compare import Comparison, Measure
    from agentworldbench.render.table import Table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", short_help="Two runs on the same samples: what is better in which.")(compare)


def compare(
    first: Annotated[Path, typer.Argument(help="Run directory A.", metavar="RUN_A", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Run directory B.", metavar="RUN_B", show_default=False)],
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Compare by this judge alone (name or digest).", show_default=False),
    ] = None,
    data: MovedData = None,
    worst: Annotated[
        int, typer.Option("--worst", min=0, help="How many of the samples that got worse are listed.")
    ] = 10,
    force: Annotated[
        bool, typer.Option("--force", help="Compare unlike runs too; the result says that they are.")
    ] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Compare run B with run A on the samples that both were asked about, by every judge of both and by rules.

    Runs on unlike data, under unlike protocols or judges are refused. No model is asked.
    """
    from agentworldbench.cli.output import print_tables
    from agentworldbench.compare import compare_runs

    comparison = compare_runs(first, second, judge, data, force, worst)
    if form is Form.JSON:
        typer.echo(json.dumps(comparison.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    tables = [table for measure in comparison.measures for table in _tables(comparison, measure)]
    print_tables(tables, form.value)


def _tables(comparison: Comparison, measure: Measure) -> list[Table]:
    from agentworldbench.render.comparison import (
        FORCED,
        differences_table,
        regression_cells,
        regressions_table,
    )

    by = "rules" if measure.judge is None else f"judge {measure.name}"
    forced = f" — {FORCED}" if comparison.unlike else ""
    failed = "a failed sample counts 0" if measure.policy == "floor" else "samples that failed are left out"
    notes = [
        f"A: {comparison.first.model} ({comparison.first.path}). B: {comparison.second.model} "
        f"({comparison.second.path}). {comparison.shared} samples of both, 0-100; {measure.policy}: {failed}.",
        *comparison.notes,
    ]
    if comparison.same_answer:
        notes.append(
            f"{comparison.same_answer} predictions are the same answer in both, taken from a response cache."
        )
    notes += [f"Unlike: {what}." for what in comparison.unlike]
    rows = [
        regression_cells(one.sample_id, one.first, one.second, (one.first_failure, one.second_failure))
        for one in measure.regressions
    ]
    lost = regressions_table(f"Worse in B by {by}{forced}", rows)
    table = differences_table(f"B − A by {by}{forced}", measure.differences, notes)
    return [table, lost] if lost else [table]
