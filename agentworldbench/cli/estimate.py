"""`awb estimate`: what a run would ask and cost, as tables or JSON; and the few lines of it before a run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentworldbench.cli.lazy import later
from agentworldbench.cli.output import put, say
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from agentworldbench.config import RunConfig
    from agentworldbench.estimate import Estimate, StageEstimate
    from agentworldbench.pilot import Pilot
    from agentworldbench.render.table import Table

_PANEL = "How many samples, epochs and repeats"
_Pilot = typer.Option(
    "--pilot",
    help="A finished run, often a small one: where its scores' variance comes from, and what ± each mix of samples, epochs "
    "and judge repeats would give at which cost. What is not given is taken from it; --judge names one of its judges, "
    "--no-judge its rule scores.",
    metavar="RUN",
    show_default=False,
    rich_help_panel=_PANEL,
)
_Target = typer.Option(
    "--target-half-width",
    help="With --pilot: mark the cheapest mix whose macro score has at most this ± (population), in points.",
    metavar="POINTS",
    show_default=False,
    rich_help_panel=_PANEL,
)
_Json = typer.Option("--json", help="Print one JSON object.", rich_help_panel="Output")


def register(app: typer.Typer) -> None:
    """Add the command; it takes the flags of `awb run`."""
    further = {"pilot": (Path, _Pilot), "target_half_width": (float, _Target), "as_json": (bool, _Json)}
    parameters = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
        )
        for name, (kind, option) in further.items()
    ]
    app.command("estimate", short_help="Tokens and cost of a run, before anything is sent.")(
        later(["predict", "judge"], estimate_command, *parameters)
    )


def estimate_command(
    values: dict[str, Any],
    config_file: Path | None,
    pilot: Path | None = None,
    target_half_width: float | None = None,
    as_json: bool | None = None,
) -> None:
    """Say what a run would ask and cost, by stage and domain; no model is asked.

    Takes the flags of `awb run`: put `estimate` in place of `run`. On a run directory that
    exists, what is still due is counted. With --pilot RUN: what ± each mix of samples, epochs and
    judge repeats would leave, and its cost. With --json one object is printed.
    """
    from agentworldbench.cli.output import print_tables
    from agentworldbench.config import make_config
    from agentworldbench.estimate import estimate
    from agentworldbench.plan import make_plan

    config = make_config(values, config_file)
    opened = _open_pilot(pilot, target_half_width, config)
    if opened is not None:
        from agentworldbench.pilot import planned_config

        config = planned_config(opened, config)
    plan = make_plan(config, say)
    told = None
    if opened is not None:
        from agentworldbench.pilot_estimate import pilot_estimate

        told = pilot_estimate(opened, plan, target_half_width)
    made = estimate(plan)
    if as_json:
        more = {} if told is None else {"pilot": told.model_dump(mode="json")}
        typer.echo(json.dumps(made.model_dump(mode="json") | more, indent=2, ensure_ascii=False))
        return
    print_tables([_table(stage) for stage in made.stages])
    typer.echo()
    for line in closing_lines(made):
        put(line)
    if told is not None:
        from agentworldbench.cli.pilot import pilot_tables

        typer.echo()
        print_tables(pilot_tables(told))


def _open_pilot(path: Path | None, target: float | None, config: RunConfig) -> Pilot | None:
    """The run that --pilot names. Raises ConfigError."""
    from agentworldbench.errors import ConfigError

    if path is None:
        if target is not None:
            raise ConfigError(
                "--target-half-width: needs --pilot RUN, from whose scores widths are predicted"
            )
        return None
    if target is not None and not 0 < target < 100:
        raise ConfigError(f"--target-half-width {target:g}: half a width in points, between 0 and 100")
    if len(config.judge) > 1:
        raise ConfigError("--pilot: one --judge at a time; each judge's scores vary in their own way")
    from agentworldbench.pilot import open_pilot

    return open_pilot(path, next(iter(config.judge), None), rules=config.no_judge)


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
            f"Estimate, {stage.stage} with {stage.model}: {count_text(total.requests, 'request')}, about {total.prompt_tokens:,} "
            f"prompt tokens{cached}, {cost}"
        )


def closing_lines(made: Estimate) -> Iterator[str]:
    """What all stages cost together, and what is not in that."""
    from agentworldbench.prices import dollars

    if made.stored_predictions:
        yield f"{count_text(made.stored_predictions, 'prediction is', 'predictions are')} stored already and not in these numbers."
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
