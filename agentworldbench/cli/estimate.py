"""`awb estimate`: what a run would ask and cost, as tables or JSON; and the few lines of it before a run."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentworldbench.cli.lazy import later
from agentworldbench.cli.output import put, say

if TYPE_CHECKING:
    from agentworldbench.config import RunConfig
    from agentworldbench.pilot import Pilot

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
    from agentworldbench.estimated import closing_lines, estimate_tables
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
    print_tables(estimate_tables(made))
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
