"""`awb tasks list|show|validate`: the task files, bundled or one's own."""

from __future__ import annotations

from typing import Annotated

import typer

from agentworldbench.cli.arguments import AllowCode
from agentworldbench.cli.output import put
from agentworldbench.texts import count_text

app = typer.Typer(no_args_is_help=True, help="Task files: how each domain is evaluated.")
_Names = typer.Argument(
    help="Domains, task files or folders of task files; default: the bundled ones.", metavar="TASKS…", show_default=False
)  # fmt: skip


@app.command("list")
def list_tasks(names: Annotated[list[str] | None, _Names] = None) -> None:
    """List tasks with observation kind, version and primary metrics."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.render.table import Table
    from agentworldbench.task import load_tasks

    tasks = load_tasks(names or ())
    rows = [
        (
            task.domain,
            str(task.version),
            task.observation,
            ", ".join(task.primary),
            task.description,
        )
        for task in tasks.values()
    ]
    columns = ("Domain", "Version", "Observation", "Primary metrics", "What it is")
    left = ("Domain", "Observation", "Primary metrics", "What it is")
    notes = (
        "Observation: a stream is what came of an action, a snapshot the state of the whole screen after it. Primary "
        "metrics: their mean is the rule score (docs/metrics.md).",
    )
    print_tables([Table("Tasks", columns, tuple(rows), left, notes=notes, fold=left[2:])])


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Domain or task file.", metavar="TASK")]) -> None:
    """Print a task file as it stands, with its path and hash."""
    from agentworldbench.task import load_tasks

    for task in load_tasks([name]).values():
        put(f"# {task.path}  sha256 {task.file_sha256()}")
        typer.echo(task.path.read_text(encoding="utf-8"), nl=False)


@app.command("validate")
def validate(
    names: Annotated[list[str] | None, _Names] = None,
    data: Annotated[
        str, typer.Option("--data", help="Data whose references are scored with every metric.")
    ] = "mini",
    allow_code: AllowCode = False,
) -> None:
    """Check task files, and that the true observation scores 1 on every metric of its task."""
    from agentworldbench.dataset import open_dataset
    from agentworldbench.errors import TaskError
    from agentworldbench.prompts import reference_observation
    from agentworldbench.scoring.metrics import score_observation
    from agentworldbench.scoring.metrics.own import read_own
    from agentworldbench.sources import resolve_source
    from agentworldbench.task import load_tasks

    tasks = load_tasks(names or ())
    own = {domain: read_own(task, allow_code).metrics() for domain, task in tasks.items()}
    source = resolve_source(data, tuple(names or ()), missing_ok=True)
    dataset = open_dataset(source.files, source.tasks)
    checked = dict.fromkeys(tasks, 0)
    for ref in dataset.refs:
        sample, task = dataset.load(ref), tasks[ref.domain]
        scored = score_observation(sample, task, reference_observation(sample, task), own=own[ref.domain])
        for name, value in scored.values.items():
            if value != 1.0:
                raise TaskError(f"{task.path}: the reference of {ref.id} scores {value} on {name}, not 1")
        checked[ref.domain] += 1
    for domain, task in tasks.items():
        gold = (
            f"{count_text(checked[domain], 'reference scores', 'references score')} 1"
            if checked[domain]
            else f"no rows in {data} to check against"
        )
        put(f"ok  {domain:<10} {task.path}  ({gold})")
