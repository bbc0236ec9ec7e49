"""`awb estimate`: what a run would ask and cost, as tables or JSON; and the few lines of it before a run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentworldbench.cli.lazy import later

if TYPE_CHECKING:
    from agentworldbench.estimate import Estimate, StageEstimate
    from agentworldbench.render.table import Table


_Json = typer.Option("--json", help="Print one JSON object.", rich_help_panel="Output")


def register(app: typer.Typer) -> None:
    """Add the command; it takes the flags of `awb run`."""
    as_json = inspect.Parameter(
        "as_json", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[bool | None, _Json]
    )
    app.command("estimate", short_help="Tokens and cost of a run, before anything is sent.")(
        later(["predict", "judge"], estimate_command, as_json)
    )


def estimate_command(values: dict[str, Any], config_file: Path | None, as_json: bool | None = None) -> None:
    """Say what a run would ask and cost, by stage and domain; no model is asked.

    Takes the flags of `awb run`: put `estimate` in place of `run`. On a run directory that exists, what is
    still due is counted. With --json one object is printed.
    """
    from agentworldbench.cli.output import print_tables
    from agentworldbench.config import make_config
    from agentworldbench.estimate import estimate
    from agentworldbench.plan import make_plan
    from agentworldbench.render.table import printable

    config = make_config(values, config_file)
    made = estimate(make_plan(config, lambda line: typer.echo(printable(line), err=True)))
    if as_json:
        typer.echo(made.model_dump_json(indent=2))
        return
    print_tables([_table(stage) for stage in made.stages])
    typer.echo()
    for line in closing_lines(made):
        typer.echo(printable(line))


def brief_lines(made: Estimate) -> Iterator[str]:
    """A line for each stage that asks a server, before a run."""
    from agentworldbench.prices import dollars

    for stage in made.stages:
        total = stage.total
        if stage.local or not total.requests:
            continue
        cached = f" ({total.cacheable_tokens:,} of them cacheable)" if total.cacheable_tokens else ""
        if total.usd_low is None or total.usd_high is None:
            cost = "no price known"
        else:
            cost = f"{dollars(total.usd_low)} to {dollars(total.usd_high)} USD"
        yield (
            f"Estimate, {stage.stage} with {stage.model}: {total.requests} requests, about {total.prompt_tokens:,} "
            f"prompt tokens{cached}, {cost}"
        )


def closing_lines(made: Estimate) -> Iterator[str]:
    """What all stages cost together, and what is not in that."""
    from agentworldbench.prices import dollars

    if made.stored_predictions:
        yield f"{made.stored_predictions} predictions are stored already and are not in these numbers."
    if made.unpriced:
        yield f"Unknown: what {', '.join(made.unpriced)} costs (--price MODEL=IN,OUT[,CACHED] gives a price)."
    if made.usd_high or not made.unpriced:
        rest = "The rest" if made.unpriced else "Together"
        yield f"{rest}: {dollars(made.usd_low)} to {dollars(made.usd_high)} USD."


def _table(stage: StageEstimate) -> Table:
    from agentworldbench.render.cost import estimate_table, price_note

    notes = [price_note(stage.price, stage.local)]
    if stage.tokens_from:
        notes.insert(0, f"Prompt tokens: {stage.tokens_from}.")
        notes.append(
            "Cacheable: what an earlier turn of the same trajectory has sent. Low: all of it cached, short answers. "
            "High: nothing cached, long answers."
        )
        flag = "--output-tokens" if stage.stage == "predict" else "--judge-output-tokens"
        notes.append(f"Lengths of answers are assumed, reasoning included; {flag} LOW-HIGH sets them.")
    title = "Predictions by" if stage.stage == "predict" else "Verdicts by"
    return estimate_table(f"{title} {stage.model}", stage.domains, stage.total, tuple(notes))
