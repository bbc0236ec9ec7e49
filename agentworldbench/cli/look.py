"""`awb data info` and `awb data show`: what a data set holds, in numbers and sample by sample."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from agentworldbench.dataset import Dataset
    from agentworldbench.records import SampleRef
    from agentworldbench.render.table import Table
    from agentworldbench.sources import Source

DATA = typer.Argument(help="mini, official, hf:OWNER/NAME or a folder.", metavar="DATA")
TASKS = typer.Option("--tasks", "-t", "--domains", help="Only these domains.", show_default=False)


def info(
    data: Annotated[str, DATA] = "mini",
    tasks: Annotated[list[str] | None, TASKS] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
) -> None:
    """Check every row of a data set; count rows, trajectories, turns, sizes and tokens; say where they come from."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.config import make_config
    from agentworldbench.plan import open_samples

    samples = open_samples(make_config({"data": data, "tasks": tasks}))
    counted = _counted(samples.dataset)
    if as_json:
        typer.echo(json.dumps(_for_programs(samples.source, samples.dataset, counted), indent=2))
        return
    tables = [_counts(samples.source, samples.dataset, counted)]
    if samples.source.origins:
        tables.append(_origins(samples.source))
    print_tables(tables)


def show(
    data: Annotated[str, DATA] = "mini",
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Samples to show, as DOMAIN/ID/TURN.", metavar="[SAMPLE]…", show_default=False),
    ] = None,
    tasks: Annotated[list[str] | None, TASKS] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            "--limit",
            "-n",
            help="Samples a domain: a number, a range 3-5 or a share 0.1; else one.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Draw others.", show_default=False)] = None,
    full: Annotated[bool, typer.Option("--full", help="Fold nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The rows as they stand in their files.")] = False,
) -> None:
    """Print samples as a person reads them: task, history, action, and what the environment answered."""
    from agentworldbench.cli.output import line_width
    from agentworldbench.config import make_config
    from agentworldbench.errors import ConfigError
    from agentworldbench.plan import open_samples
    from agentworldbench.render.sample import sample_text

    given = {"data": data, "tasks": tasks, "sample_id": ids or None, "seed": seed}
    try:
        samples = open_samples(make_config(given | {"limit": limit if limit or ids else "1"}))
    except ConfigError as problem:  # here samples are named without a flag
        raise ConfigError(str(problem).removeprefix("--sample-id ")) from None
    width = line_width(sys.stdout.isatty())
    for number, ref in enumerate(samples.refs):
        if as_json:
            typer.echo(samples.dataset.raw(ref).decode("utf-8"))
            continue
        origin = samples.source.origins.get(ref.domain)
        text = sample_text(samples.dataset.load(ref), samples.tasks[ref.domain], origin, full, width)
        typer.echo(("\n" if number else "") + text, nl=False)


@dataclass(frozen=True)
class Counted:
    """What is in one domain's file: turns of each row, and its prompt in characters and in tokens, estimated."""

    refs: Sequence[SampleRef]
    turns: Sequence[int]
    chars: Sequence[int]
    tokens: Sequence[int]

    @property
    def trajectories(self) -> int:
        return len({ref.cluster for ref in self.refs})

    @property
    def tasks(self) -> int:
        return len({ref.task_key for ref in self.refs})


def _counted(dataset: Dataset) -> dict[str, Counted]:
    from agentworldbench.engine.fitting import estimate_tokens
    from agentworldbench.prompts import predict_messages
    from agentworldbench.stats.aggregate import by_domain

    return {
        domain: Counted(
            refs,
            [ref.total_turns for ref in refs],
            [ref.context_chars for ref in refs],
            [estimate_tokens(predict_messages(dataset.load(ref))) for ref in refs],
        )
        for domain, refs in by_domain(dataset.refs).items()
    }


def _for_programs(source: Source, dataset: Dataset, counted: Mapping[str, Counted]) -> dict[str, Any]:
    """What the tables show, in whole numbers."""
    domains = {
        domain: {
            "rows": len(one.refs),
            "trajectories": one.trajectories,
            "tasks": one.tasks,
            "turns": {"least": min(one.turns), "most": max(one.turns)},
            "prompt_chars": {"total": sum(one.chars), "longest": max(one.chars)},
            "prompt_tokens_estimated": {"total": sum(one.tokens), "longest": max(one.tokens)},
            "bytes": source.files[domain].stat().st_size,
            "sha256": dataset.files[domain].sha256,
            "simulated": domain in source.simulated,
            "origin": source.origins[domain].model_dump(mode="json") if domain in source.origins else None,
        }
        for domain, one in counted.items()
    }
    return {
        "schema_version": 1,
        "data": source.name,
        "repository": source.repository,
        "revision": source.revision,
        "domains": domains,
        "flags": {ref.id: list(ref.flags) for ref in dataset.refs if ref.flags},
    }


def _counts(source: Source, dataset: Dataset, counted: Mapping[str, Counted]) -> Table:
    from agentworldbench.render.table import Table

    rows = [
        (
            f"{domain} (simulated)" if domain in source.simulated else domain,
            str(len(one.refs)),
            str(one.trajectories),
            str(one.tasks),
            f"{min(one.turns)}-{max(one.turns)}" if min(one.turns) < max(one.turns) else str(one.turns[0]),
            f"{sum(one.chars) / len(one.chars) / 1000:.1f}",
            f"{max(one.chars) / 1000:.1f}",
            f"{sum(one.tokens) / len(one.tokens) / 1000:.1f}",
            f"{sum(one.tokens) / 1000:.0f}",
            f"{source.files[domain].stat().st_size / 1e6:.2f}",
            dataset.files[domain].sha256[:12],
        )
        for domain, one in counted.items()
    ]
    where = f" ({source.repository} at {source.revision})" if source.repository else ""
    columns = (
        "Domain", "Rows", "Trajectories", "Tasks", "Turns", "k chars", "Longest", "k tokens", "All", "MB", "SHA-256",
    )  # fmt: skip
    notes = (
        "A sample's prompt in thousands of characters, mean and longest; about how many thousands of tokens that is, a "
        "sample and all together.",
        *(f"{ref.id}: {', '.join(ref.flags)}" for ref in dataset.refs if ref.flags),
    )
    return Table(f"Data {source.name}{where}", columns, tuple(rows), ("Domain",), notes=notes)


def _origins(source: Source) -> Table:
    from agentworldbench.render.table import Table

    rows = [
        (
            domain,
            origin.kind,
            origin.recorded,
            origin.licence,
            origin.how,
            ", ".join(
                version if version.lower().startswith(name.lower()) else f"{name} {version}"
                for name, version in origin.programs.items()
            ),
        )
        for domain, origin in source.origins.items()
        if domain in source.files
    ]
    columns = ("Domain", "Kind", "Recorded", "Licence", "How", "Programs")
    return Table("Where it comes from", columns, tuple(rows), columns, fold=("How", "Programs"))
