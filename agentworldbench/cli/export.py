"""`awb export …`: a run in the form of another program's files.

Each command names the files that it wrote on standard output, and what is not in them on standard error.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentworldbench.cli.arguments import MovedData, RunPath
from agentworldbench.cli.output import put, say
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from agentworldbench.integrations.export_source import Written

app = typer.Typer(no_args_is_help=True, help="Runs in the form of other programs' files.")


def _output(name: str) -> Any:
    return typer.Option(
        "--output", "-o", "--output-dir", metavar="DIR", help=f"Folder to write to; default: RUN/{name}.",
        show_default=False,
    )  # fmt: skip


OneJudge = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help="The verdicts of this judge alone, by model or digest; default: all.",
        show_default=False,
    ),
]
References = Annotated[
    bool,
    typer.Option(
        "--references",
        help="Also write texts of the data: prompts and reference observations. Else ids and hashes.",
    ),
]


class Relationship(StrEnum):
    """Who ran an evaluation, seen from the model's developer."""

    FIRST = "first_party"
    THIRD = "third_party"
    COLLABORATIVE = "collaborative"
    OTHER = "other"


@app.command("official")
def official(
    run_path: RunPath,
    output: Annotated[Path | None, _output("official")] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Whose verdicts, where the run has several judges.", show_default=False),
    ] = None,
    data: MovedData = None,
) -> None:
    """Write predictions.jsonl and judged.jsonl as the official script writes them; its `score` reads them."""
    from agentworldbench.integrations.official_export import export_run

    for written in export_run(run_path, output, judge, data):
        asked = (
            f"; {count_text(written.left_out, 'sample')} left out, not asked yet" if written.left_out else ""
        )
        put(f"{written.path}: {count_text(written.lines, 'line')}{asked}")
        if written.note:
            say(f"{written.path}: {written.note}")


@app.command("lm-eval")
def lm_eval(
    run_path: RunPath,
    output: Annotated[Path | None, _output("lm-eval")] = None,
    judge: OneJudge = None,
    references: References = False,
    data: MovedData = None,
) -> None:
    """Write results and samples as lm-evaluation-harness does.

    In a folder named by the model: results_TIME.json, and samples_TASK_TIME.jsonl for each domain.
    """
    from agentworldbench.integrations.lm_eval_export import export_lm_eval

    _tell(export_lm_eval(run_path, output, judge=judge, data=data, references=references))


@app.command("inspect")
def inspect(
    run_path: RunPath,
    output: Annotated[Path | None, _output("inspect")] = None,
    judge: OneJudge = None,
    references: References = False,
    data: MovedData = None,
) -> None:
    """Write an Inspect log (.eval).

    `inspect view --log-dir DIR` shows it sample by sample, and `inspect_ai.log` reads it.
    """
    from agentworldbench.integrations.inspect_export import export_inspect

    _tell(export_inspect(run_path, output, judge=judge, data=data, references=references))


@app.command("eee")
def every_eval_ever(
    run_path: RunPath,
    output: Annotated[Path | None, _output("eee")] = None,
    judge: OneJudge = None,
    references: References = False,
    model_id: Annotated[
        str | None,
        typer.Option(
            "--model-id", metavar="ORGANIZATION/NAME", help="The model's public name.", show_default=False
        ),
    ] = None,
    organization: Annotated[
        str, typer.Option("--organization", metavar="NAME", help="Who ran the evaluation.")
    ] = "unknown",
    relationship: Annotated[
        Relationship, typer.Option("--relationship", help="Of who ran it to the model's developer.")
    ] = Relationship.OTHER,
    data: MovedData = None,
) -> None:
    """Write a record of Every Eval Ever.

    An aggregate and its samples, in the tree of the datastore: data/agentworldbench/DEVELOPER/MODEL.
    """
    from agentworldbench.integrations.every_eval_export import Submitter, export_every_eval

    who = Submitter(organization, relationship.value, model_id)
    _tell(export_every_eval(run_path, output, judge=judge, data=data, references=references, submitter=who))


@app.command("parquet")
def parquet(
    run_path: RunPath,
    output: Annotated[Path | None, _output("parquet")] = None,
    judge: OneJudge = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Also write replies, observations and the words of judges.")
    ] = False,
    references: References = False,
    data: MovedData = None,
) -> None:
    """Write one Parquet table (needs pyarrow).

    A row for each sample, epoch, judge and repeat. pyarrow comes with agentworldbench[parquet].
    """
    from agentworldbench.integrations.parquet_export import Wanted, export_parquet

    _tell(export_parquet(run_path, output, judge=judge, data=data, wanted=Wanted(texts, references)))


def _tell(written: Written) -> None:
    for path in written.paths:
        put(str(path))
    for note in written.notes:
        say(note)
