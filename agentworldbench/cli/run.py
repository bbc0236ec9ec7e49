"""`awb run`, `infer`, `judge`, `score`: an evaluation, whole or stage by stage."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentworldbench.cli.lazy import later

if TYPE_CHECKING:
    from agentworldbench.config import RunConfig
    from agentworldbench.plan import Plan
    from agentworldbench.run import Run

ASK_ABOVE_USD = 20.0
_MovedData = typer.Option("--data", help="Where the data are now, when they have moved.", show_default=False)
_RunArgument = typer.Argument(help="Run directory.", metavar="RUN", show_default=False)


def register(app: typer.Typer) -> None:
    """Add the commands of this group; those with many flags are built when they are invoked."""
    path = inspect.Parameter(
        "run_path", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Annotated[Path, _RunArgument]
    )
    app.command("run", short_help="Evaluate a model: predict, judge, score.")(
        later(["predict", "judge"], run)
    )
    app.command("infer", short_help="Predict only; judge later.")(later(["predict"], infer))
    data = inspect.Parameter(
        "data", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, _MovedData]
    )
    app.command("judge", short_help="Judge the stored predictions of a run.")(
        later(["judge"], judge, path, data)
    )
    app.command("score", short_help="Compute metrics and results of a run again.")(score)


def run(values: dict[str, Any], config_file: Path | None) -> None:
    """Evaluate a model: predict, judge (with --judge), score, print the tables.

    The same command resumes a stopped run; finished answers are never asked for again.
    """
    from agentworldbench.config import make_config

    _evaluate(make_config(values, config_file))


def infer(values: dict[str, Any], config_file: Path | None) -> None:
    """Predict only; judge the stored predictions later with `awb judge RUN`."""
    from agentworldbench.config import make_config

    _evaluate(make_config({**values, "no_judge": True}, config_file))


def judge(values: dict[str, Any], config_file: Path | None, run_path: Path, data: str | None = None) -> None:
    """Judge the stored predictions of a run; a further judge stands beside the earlier ones."""
    from agentworldbench.config import make_config
    from agentworldbench.run import plan_judging

    _carry_out(plan_judging(run_path, make_config(values, config_file), data))


def score(
    run_path: Annotated[Path, _RunArgument],
    data: Annotated[str | None, _MovedData] = None,
) -> None:
    """Compute metrics and results again from what a run has stored; no model is asked."""
    from agentworldbench.run import score_run

    _print_tables(score_run(run_path, data))


def _evaluate(config: RunConfig) -> None:
    from agentworldbench.plan import make_plan

    _carry_out(make_plan(config))


def _carry_out(plan: Plan) -> None:
    from agentworldbench.cli.display import display
    from agentworldbench.errors import EndpointError
    from agentworldbench.run import execute

    if _announce(plan):
        return
    try:
        with display(plan.config.display) as watch:
            finished = execute(plan, watch)
    except EndpointError:
        _say_server(plan.config)
        raise
    _report(finished, plan.config)


def _say_server(config: RunConfig) -> None:
    """How the recipe's server is started, when none answers."""
    if config.recipe and config.recipe.server:
        _say(f"The recipe's server ({config.recipe.needs}) is started with:")
        for line in config.recipe.server.rstrip().split("\n"):
            _say(f"    {line}")


def _announce(plan: Plan) -> bool:
    """Say what will be done and what it may cost; True when the command ends here (dry run)."""
    from agentworldbench.errors import ConfigError
    from agentworldbench.estimate import estimate

    if plan.config.recipe:
        _say(f"Recipe of {plan.config.recipe.published}, as the published table names it.")
    _say(_data_line(plan))
    if not plan.judges:
        _say("No --judge: predictions and rule metrics only; nothing is spent on judging.")
    _say(f"Run directory: {plan.path}")
    total = 0.0
    for stage in estimate(plan):
        if stage.local or not stage.requests:
            continue
        cost = "no price known" if stage.usd is None else f"about {stage.usd:.2f} USD at 2,000 tokens a reply"
        _say(
            f"Estimate, {stage.stage} with {stage.model}: {stage.requests} requests, "
            f"about {stage.prompt_tokens:,} prompt tokens, {cost}"
        )
        total += stage.usd or 0.0
    if plan.config.dry_run:
        _say("Dry run: nothing was asked.")
        return True
    ask = total > ASK_ABOVE_USD and not plan.config.yes and sys.stdin.isatty()
    if ask and not typer.confirm(f"This may cost about {total:.0f} USD. Go on?", err=True):
        raise ConfigError("not started; --yes skips the question, --limit makes the run smaller")
    return False


def _data_line(plan: Plan) -> str:
    samples = plan.samples
    counts = ", ".join(f"{domain} {count}" for domain, count in plan.selection.samples.items())
    words = {
        "mini": "mini, the bundled set (recorded by this project; not the benchmark: see --data official)"
    }
    name = words.get(samples.source.name, samples.source.name)
    revision = f" at {samples.source.revision}" if samples.source.revision else ""
    return f"Data: {name}{revision}. Samples: {counts}."


def _report(finished: Run, config: RunConfig) -> None:
    _print_tables(finished)
    results = finished.results
    if results is None:
        return
    if not any(results.predictions.predicted.values()):
        _say(f"Note: no sample has a prediction; the failures stand in {finished.path / 'predictions.jsonl'}")
    for judge in results.judges:
        if not judge.micro.scored:
            _say(
                f"Note: judge {judge.judge.model} gave no verdict; its replies stand in {finished.path / 'verdicts.jsonl'}"
            )
    if config.fail_on_error is None:
        return
    if results.judges:
        coverage = min(judge.micro.coverage for judge in results.judges)
    else:
        coverage = sum(results.predictions.predicted.values()) / sum(results.predictions.samples.values())
    if 1 - coverage > config.fail_on_error:
        _say(
            f"awb: {1 - coverage:.1%} of the samples have no score, more than --fail-on-error {config.fail_on_error:g}"
        )
        raise typer.Exit(3)


def _print_tables(finished: Run) -> None:
    from agentworldbench.cli.output import print_tables
    from agentworldbench.leaderboard.entries import load_entries
    from agentworldbench.leaderboard.tables import leaderboard_tables
    from agentworldbench.render.results import run_tables

    results = finished.results
    assert results is not None, "results are made before they are printed"
    print_tables(run_tables(results))
    if results.predict.data.name == "official":
        _say(
            "Published scores follow for orientation. They were made with another protocol and the judge named in "
            "their heading: they are no ranking together with the tables above."
        )
        print_tables(leaderboard_tables([entry for entry in load_entries() if entry.group.score == "judge"]))
    _say(f"Results: {finished.path / 'results.json'}")


def _say(line: str) -> None:
    from agentworldbench.render.table import printable

    typer.echo(printable(line), err=True)
