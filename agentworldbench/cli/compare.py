"""`awb compare`: runs on the same samples, or a run and a published number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworldbench.cli.arguments import Form, FormOption, MovedData

if TYPE_CHECKING:
    from agentworldbench.compare.reported import AgainstEntry
    from agentworldbench.compare.several import Ranking
    from agentworldbench.compare.two import Comparison
    from agentworldbench.leaderboard.entries import Entry
    from agentworldbench.render.table import Table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", short_help="Runs on the same samples: what is better in which.")(compare)


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Run directories A, B and more; or one run and a leaderboard entry (slug, file, or model).",
            metavar="RUN",
            show_default=False,
        ),
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            help='Compare by this judge alone (name or digest), or by the runs\' "panel" alone.',
            show_default=False,
        ),
    ] = None,
    data: MovedData = None,
    worst: Annotated[
        int,
        typer.Option("--worst", min=0, help="Two runs: how many of the samples that got worse are listed."),
    ] = 10,
    force: Annotated[
        bool, typer.Option("--force", help="Compare unlike runs too; the result says that they are.")
    ] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Compare runs on the samples that all of them were asked about, by every judge of all and by rules.

    Two runs: run B minus run A by domain, and the samples where B is worse. More: all pairs, and a rank for each
    run. A run and an entry (awb leaderboard show): what can be said of a published number. Runs on unlike data,
    under unlike protocols or judges are refused. No model is asked.
    """
    from agentworldbench.cli.output import print_tables

    found = _compared(runs, judge, data, worst, force)
    if form is Form.JSON:
        typer.echo(json.dumps(found.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    print_tables(_tables(found), form.value)


def _compared(
    words: list[str], judge: str | None, data: str | None, worst: int, force: bool
) -> Comparison | Ranking | AgainstEntry:
    """Compare what the words name. Raises ConfigError for words that name nothing to be compared."""
    from agentworldbench.compare.reported import against_entry
    from agentworldbench.compare.several import rank_runs
    from agentworldbench.compare.two import compare_runs
    from agentworldbench.errors import ConfigError

    if len(words) < 2:
        raise ConfigError("give two run directories or more, or a run and a leaderboard entry")
    entries = {word: entry for word in words if (entry := _entry(word)) is not None}
    paths = [Path(word) for word in words if word not in entries]
    if entries and len(words) > 2:
        raise ConfigError(f"{next(iter(entries))}: an entry compares with one run at a time")
    if len(entries) == 2 or (entries and not paths):
        raise ConfigError(
            "two entries hold no samples to compare; `awb leaderboard show` lists their numbers"
        )
    if entries:
        return against_entry(paths[0], next(iter(entries.values())), judge, force)
    if len(paths) == 2:
        return compare_runs(paths[0], paths[1], judge, data, force, worst)
    return rank_runs(paths, judge, data, force)


def _entry(word: str) -> Entry | None:
    """The entry that a word names, unless it is a run directory. Raises ConfigError where it is neither."""
    from agentworldbench.compare.reported import entry_hint, find_entry
    from agentworldbench.errors import ConfigError

    if (Path(word) / "run.json").exists():
        return None
    entry = find_entry(word)
    if entry is None and not Path(word).exists():
        raise ConfigError(
            f"{word}: no run directory, and no leaderboard entry of this name{entry_hint(word)}"
        )
    return entry


def _tables(found: Comparison | Ranking | AgainstEntry) -> list[Table]:
    from agentworldbench.compare.tables import entry_tables, several_tables, two_tables

    if found.kind == "two":
        return two_tables(found)
    return several_tables(found) if found.kind == "several" else entry_tables(found)
