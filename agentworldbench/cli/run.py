"""`awb run`, `infer`, `judge`, `score`: an evaluation, whole or stage by stage."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agentworldbench.cli.arguments import AllowCode, MovedData, OptionalRunPath
from agentworldbench.cli.lazy import later
from agentworldbench.cli.official import option, parameters
from agentworldbench.cli.output import say
from agentworldbench.cli.streams import let_go

if TYPE_CHECKING:
    from agentworldbench.cli.events import Events
    from agentworldbench.config import RunConfig
    from agentworldbench.plan import Plan
    from agentworldbench.run import Run
    from agentworldbench.stats.results import Results

ASK_ABOVE_USD = 20.0
_Processes = typer.Option(
    "--processes",
    min=1,
    max=1024,
    help="Processes that compute the metrics; default: as many as there are cores, and one for a small run.",
    metavar="N",
    show_default=False,
)
_Panel = typer.Option(
    "--panel",
    help="Combine the verdicts of the run's judges in each sample; none drops the panel. The run remembers it.",
    metavar="median|mean|none",
    show_default=False,
)
_MinJudges = typer.Option(
    "--min-judges",
    min=1,
    help="With --panel: judges that must have a valid verdict on a prediction; default: more than half.",
    metavar="N",
    show_default=False,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this group; those with many flags are built when they are invoked."""
    path = inspect.Parameter(
        "run_path",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=OptionalRunPath,
    )
    app.command("run", short_help="Evaluate a model: predict, judge, score.")(
        later(["predict", "judge", "events"], run)
    )
    app.command("infer", short_help="Predict only; judge later.")(
        later(["predict", "events"], infer, *parameters("infer"))
    )
    data = inspect.Parameter("data", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=MovedData)
    app.command("judge", short_help="Judge the stored predictions of a run.")(
        later(["judge", "events"], judge, path, data, *parameters("judge"))
    )
    app.command("score", short_help="Compute metrics and results of a run again.")(score)


def run(values: dict[str, Any], config_file: Path | None) -> None:
    """Evaluate a model: predict, judge (with --judge), score, print the tables.

    The same command resumes a stopped run; finished answers are never asked for again.
    """
    from agentworldbench.cli.events import events
    from agentworldbench.config import make_config

    with events(_wants_events(values)) as stream:
        _evaluate(make_config(values, config_file), stream)


def infer(values: dict[str, Any], config_file: Path | None, **given: Any) -> None:
    """Predict only; judge the stored predictions later with `awb judge RUN`."""
    from agentworldbench.cli.events import events
    from agentworldbench.cli.official import in_our_words, make_official_config

    with events(_wants_events(values)) as stream:
        asked = in_our_words("infer", {**values, "no_judge": True}, given, say)
        _evaluate(make_official_config(asked, config_file, say), stream)


def judge(values: dict[str, Any], config_file: Path | None, **given: Any) -> None:
    """Judge the stored predictions of a run; a further judge stands beside the earlier ones."""
    from agentworldbench.cli.events import events
    from agentworldbench.cli.official import in_our_words, make_official_config, run_directory, write_judged
    from agentworldbench.run import plan_judging

    with events(_wants_events(values)) as stream:
        asked = in_our_words("judge", values, given, say)
        config = make_official_config(asked, config_file, say)
        path, data = run_directory(asked, say)
        plan = plan_judging(path, config, data, say)
        _carry_out(plan, stream, lambda: write_judged(plan, data, say) if asked.used else None)


def score(
    run_path: OptionalRunPath = None,
    data: MovedData = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="List the samples that the two readings do not score alike, and why."),
    ] = False,
    processes: Annotated[int | None, _Processes] = None,
    panel: Annotated[Literal["median", "mean", "none"] | None, _Panel] = None,
    min_judges: Annotated[int | None, _MinJudges] = None,
    allow_code: AllowCode = False,
    predictions: Annotated[Path | None, option("score", "predictions")] = None,
    data_dir: Annotated[Path | None, option("score", "data_dir")] = None,
    output_dir: Annotated[Path | None, option("score", "output_dir")] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Events for programs on standard output; tables go to standard error."),
    ] = False,
) -> None:
    """Compute metrics and results again from what a run has stored; no model is asked."""
    from agentworldbench.cli.display import display
    from agentworldbench.cli.events import events
    from agentworldbench.cli.official import in_our_words, run_directory, script_tables
    from agentworldbench.cli.output import print_tables
    from agentworldbench.run import explain_run, score_run

    given = {"run_path": run_path, "data": data}
    given |= {"predictions": predictions, "data_dir": data_dir, "output_dir": output_dir}
    with events(as_json) as stream:
        asked = in_our_words("score", {}, given, say)
        as_printed = script_tables(asked)
        path, data = run_directory(asked, say)
        if as_printed:
            print_tables(as_printed, err=as_json)
            typer.echo(err=as_json)
        with display("auto") as watch:
            finished = score_run(
                path,
                data,
                allow_code=allow_code,
                processes=processes,
                panel=panel,
                min_judges=min_judges,
                watch=watch,
            )
        _print_tables(finished, stream)
        if explain:
            typer.echo(err=as_json)
            print_tables(explain_run(path, data), err=as_json)
        stream.results(finished)


def _wants_events(values: dict[str, Any]) -> bool:
    """Whether --json stands on the command line; a configuration file is heard once it is read."""
    return bool(values.get("json_events"))


def _evaluate(config: RunConfig, stream: Events) -> None:
    from agentworldbench.plan import make_plan

    stream.want(config.json_events)
    _carry_out(make_plan(config, say), stream)


def _carry_out(plan: Plan, stream: Events, then: Callable[[], None] = lambda: None) -> None:
    from agentworldbench.cli.display import display
    from agentworldbench.errors import EndpointError
    from agentworldbench.run import check_own_metrics, execute

    check_own_metrics(plan)
    if _announce(plan):
        return
    gc.freeze()  # what was imported stays: nothing is gained by looking through it again and again
    try:
        with display(plan.config.display) as watch:
            finished = execute(plan, stream.watcher(plan, watch))
    except EndpointError:
        _say_server(plan.config)
        raise
    then()
    stream.last_progress()
    stream.results(finished)
    _report(finished, plan.config, stream)


def _say_server(config: RunConfig) -> None:
    """How the recipe's server is started, when none answers."""
    if config.recipe and config.recipe.server:
        say(f"The recipe's server ({config.recipe.needs}) is started with:")
        for line in config.recipe.server.rstrip().split("\n"):
            say(f"    {line}")


def _announce(plan: Plan) -> bool:
    """Say what will be done and what it may cost; True when the command ends here (dry run)."""
    from agentworldbench.errors import ConfigError
    from agentworldbench.estimate import estimate
    from agentworldbench.estimated import brief_lines

    if plan.config.recipe:
        say(f"Recipe of {plan.config.recipe.published}, as the published table names it.")
    say(_data_line(plan))
    if not plan.judges:
        say("No --judge: predictions and rule metrics only; nothing is spent on judging.")
    say(f"Run directory: {plan.path}")
    made = estimate(plan)
    for line in brief_lines(made):
        say(line)
    total = min(made.usd_high, plan.config.max_cost or made.usd_high)
    if plan.config.dry_run:
        say("Dry run: nothing was asked.")
        return True
    ask = total > ASK_ABOVE_USD and not plan.config.yes and sys.stdin.isatty()
    if ask and not typer.confirm(f"This may cost up to {total:.0f} USD. Go on?", err=True):
        raise ConfigError("not started; --yes skips the question, --limit makes the run smaller")
    return False


def _data_line(plan: Plan) -> str:
    samples = plan.samples
    counts = ", ".join(f"{domain} {count}" for domain, count in plan.selection.samples.items() if count)
    words = {
        "mini": "mini, the bundled set (recorded by this project; not the benchmark: see --data official)"
    }
    name = words.get(samples.source.name, samples.source.name)
    revision = f" at {samples.source.revision}" if samples.source.revision else ""
    return f"Data: {name}{revision}. Samples: {counts}."


def _report(finished: Run, config: RunConfig, stream: Events) -> None:
    results = finished.results
    if results is None:
        return
    try:
        _print_tables(finished, stream)
    except BrokenPipeError:  # `| head`: what the run came to is still told by the exit code
        let_go(sys.stdout)
    if results.predictions.spent.records and not any(results.predictions.predicted.values()):
        say(f"Note: no sample has a prediction; the failures stand in {finished.path / 'predictions.jsonl'}")
    for judge in results.judges:
        if judge.spent.records and not judge.micro.scored:
            say(
                f"Note: judge {results.judge_names[judge.judge.digest]} gave no verdict; its replies stand in "
                f"{finished.path / 'verdicts.jsonl'}"
            )
    if finished.stopped:
        stream.warn(finished.stopped)
        say(f"awb: {finished.stopped}")
        raise typer.Exit(4)
    if config.fail_on_error is None:
        return
    coverage = _coverage(results)
    if 1 - coverage > config.fail_on_error:
        say(
            f"awb: {1 - coverage:.1%} of the samples have no score, more than --fail-on-error {config.fail_on_error:g}"
        )
        raise typer.Exit(3)


def _coverage(results: Results) -> float:
    """The share of samples with a score: of the panel, because a judge who fails is what it is there for, else of the
    judge who has fewest, else of the predictions."""
    if results.panel:
        return results.panel.reading.micro.coverage
    if results.judges:
        return min(judge.micro.coverage for judge in results.judges)
    return sum(results.predictions.predicted.values()) / sum(results.predictions.samples.values())


def _print_tables(finished: Run, stream: Events) -> None:
    from agentworldbench.cli.output import print_tables
    from agentworldbench.leaderboard.entries import load_entries
    from agentworldbench.leaderboard.tables import leaderboard_tables
    from agentworldbench.render.cost import cost_tables
    from agentworldbench.render.results import run_tables

    results = finished.results
    assert results is not None, "results are made before they are printed"
    print_tables([*run_tables(results), *cost_tables(results)], err=stream.wanted)
    if results.predict.data.name == "official":
        say(
            "Published scores follow for orientation. They were made with the judge named in their heading, under "
            "settings that are partly undisclosed: they are no ranking together with the tables above."
        )
        published = leaderboard_tables([entry for entry in load_entries() if entry.group.score == "judge"])
        print_tables(published, err=stream.wanted)
    say(f"Results: {finished.path / 'results.json'}")
