"""`awb leaderboard add|show|build|check`: entries of runs, their tables, the page, and what is wrong with them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworldbench.cli.arguments import RunPath
from agentworldbench.cli.output import put
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentworldbench.leaderboard.adding import Said
    from agentworldbench.leaderboard.entries import Entry
    from agentworldbench.run import Run


class Form(StrEnum):
    """Output formats of `awb leaderboard show`."""

    TABLE = "table"
    MD = "md"
    CSV = "csv"
    JSON = "json"
    LATEX = "latex"
    HTML = "html"


app = typer.Typer(no_args_is_help=True, help="Leaderboards: entries by data, protocol and judge.")
Folder = Annotated[
    Path | None,
    typer.Argument(help="Folder of entries; default: the bundled ones.", metavar="DIR", show_default=False),
]
_ENTRIES = Path("leaderboards") / "entries"


@app.command("add")
def add(
    run: RunPath,
    entries: Annotated[Path, typer.Option("--entries", help="Folder of entries to add to.", metavar="DIR")] = _ENTRIES,
    name: Annotated[
        str | None,
        typer.Option("--name", help="What the model is called on the board; default: the model string.", metavar="TEXT", show_default=False),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Only the entry of this judge: its model or digest.", metavar="MODEL", show_default=False),
    ] = None,
    submitter: Annotated[
        str | None, typer.Option("--submitter", help="Who answers for the entry.", metavar="NAME", show_default=False)
    ] = None,
    submitter_url: Annotated[
        str | None, typer.Option("--submitter-url", help="The submitter's web address.", metavar="URL", show_default=False)
    ] = None,
    contact: Annotated[
        str | None, typer.Option("--contact", help="How to reach the submitter; it is public.", metavar="TEXT", show_default=False)
    ] = None,
    bundle: Annotated[
        str | None, typer.Option("--bundle", help="SHA-256 of the submitted bundle.", metavar="SHA256", show_default=False)
    ] = None,
    bundle_url: Annotated[
        str | None, typer.Option("--bundle-url", help="Where the bundle lies.", metavar="URL", show_default=False)
    ] = None,
    subset: Annotated[
        bool, typer.Option("--subset", help="Enter a run over a part of the data too: in a table of its own, never ranked.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the entry of another run.")] = False,
) -> None:  # fmt: skip
    """Enter a run: one entry for each judge, or one of rule scores. Twice is the same as once."""
    from agentworldbench.leaderboard.adding import add_entries
    from agentworldbench.run import load_run

    made = _entries_of(load_run(run), judge, subset)
    said = _said(name, (submitter, submitter_url, contact), (bundle, bundle_url))
    for one in add_entries(entries, made, said, force):
        put(f"{one.became}: {one.path} ({one.entry.model}, {one.entry.overall:.2f})")


def _entries_of(found: Run, judge: str | None, subset: bool) -> list[Entry]:
    """The entries of a run, or that of one judge; another judge's failure is then no matter."""
    from agentworldbench.errors import ConfigError
    from agentworldbench.leaderboard.measured import measured_entries
    from agentworldbench.run_record import check_times

    results = found.results
    if results is None:
        raise ConfigError(f"{found.path}: has no results yet; `awb score {found.path}` makes them")
    check_times(found.path, found.record)
    if judge is None:
        return measured_entries(results, found.record, subset)
    alone = tuple(one for one in results.judges if judge in (one.judge.model, one.judge.digest))
    some = results.model_copy(update={"judges": alone}) if alone else results
    made = [
        one
        for one in measured_entries(some, found.record, subset)
        if judge in (one.group.judge, one.group.judge_digest)
    ]
    if not made:
        known = ", ".join(f"{one.judge.model} ({one.judge.digest})" for one in results.judges)
        raise ConfigError(f"--judge {judge}: the run has no such judge; it has {known or 'none'}")
    return made


def _said(
    name: str | None, who: tuple[str | None, str | None, str | None], where: tuple[str | None, str | None]
) -> Said:
    """What the flags say. Raises ConfigError naming the flag that does not fit."""
    from pydantic import ValidationError

    from agentworldbench.errors import ConfigError
    from agentworldbench.leaderboard.adding import Said
    from agentworldbench.leaderboard.provenance import Bundle, Submitter
    from agentworldbench.submission.deliver import check_address, check_words

    if who[0] is None and any(who):
        raise ConfigError("--submitter-url and --contact need --submitter NAME")
    if where[0] is None and where[1]:
        raise ConfigError("--bundle-url needs --bundle SHA256, so that the file can be told from others")
    for flag, text, longest in (
        ("--name", name, 300),
        ("--submitter", who[0], 200),
        ("--contact", who[2], 200),
    ):
        check_words(flag, text, longest)
    check_address("--submitter-url", who[1])
    check_address("--bundle-url", where[1])
    submitter = None if who[0] is None else Submitter(name=who[0], url=who[1], contact=who[2])
    try:
        bundle = None if where[0] is None else Bundle(sha256=where[0].lower(), url=where[1])
    except ValidationError:
        raise ConfigError(f"--bundle {where[0]}: no SHA-256, which has 64 hex digits") from None
    return Said(name, submitter, bundle)


@app.command("show")
def show(
    folder: Folder = None,
    form: Annotated[Form, typer.Option("--format", "--form", "-f", help="How to print.")] = Form.TABLE,
) -> None:
    """Show the entries, one table for each group that may be compared."""
    import json

    from agentworldbench.cli.output import print_tables
    from agentworldbench.leaderboard.build import as_json, csv_text, visible_json
    from agentworldbench.leaderboard.tables import leaderboard_tables
    from agentworldbench.render.markup import to_html, to_latex

    entries = _loaded(folder)
    if form is Form.JSON:
        typer.echo(visible_json(json.dumps(as_json(entries), indent=2, ensure_ascii=False)))
    elif form is Form.CSV:
        typer.echo(csv_text(entries), nl=False)
    elif form in (Form.LATEX, Form.HTML):
        write = to_latex if form is Form.LATEX else to_html
        typer.echo("\n".join(map(write, leaderboard_tables(entries))), nl=False)
    else:
        print_tables(leaderboard_tables(entries), form.value)


def _loaded(folder: Path | None) -> Sequence[Entry]:
    from agentworldbench.errors import DataError
    from agentworldbench.leaderboard.entries import load_entries

    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder}: no such folder of leaderboard entries")
    entries = load_entries(folder)
    if not entries:
        raise DataError(f"{folder}: no leaderboard entry (*.json) in this folder")
    return entries


@app.command("build")
def build(
    folder: Folder = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for README.md, index.html and the schema; default: the one that DIR lies in.",
                     metavar="FOLDER", show_default=False),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Heading of the page.")] = "AgentWorldBench leaderboard",
) -> None:  # fmt: skip
    """Make README.md, the schema and the page (index.html: one file, no request) from the entries."""
    from agentworldbench.errors import ConfigError, StoreError
    from agentworldbench.leaderboard.build import README_FILE, SCHEMA_FILE, readme_text, schema_text
    from agentworldbench.leaderboard.page import PAGE_FILE, page_text

    if folder is None and output is None:
        raise ConfigError("--output is missing: name the folder to write to")
    target = output or (folder or Path()).resolve().parent
    entries = _loaded(folder)
    texts = {
        README_FILE: readme_text(entries),
        SCHEMA_FILE: schema_text(),
        PAGE_FILE: page_text(entries, title),
    }
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (target / name).write_text(text, encoding="utf-8", newline="\n")
            put(str(target / name))
    except OSError as problem:
        raise StoreError(f"{problem.filename or target}: cannot be written ({problem.strerror})") from problem


@app.command("check")
def check(
    folder: Folder = None,
    entries_only: Annotated[
        bool, typer.Option("--entries-only", help="Do not look at the README beside the folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
) -> None:
    """Check all entries, and that README.md beside their folder is what they give; exit code 2 where not."""
    from agentworldbench.leaderboard.check import check_folder
    from agentworldbench.resources import asset

    report = check_folder(folder or asset("leaderboards", "entries"), readme=not entries_only)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        for problem in report.problems:
            where = (
                "" if problem.kind == "schema" else f"{problem.file}: "
            )  # reading says file and line itself
            put(where + " ".join(filter(None, (problem.field, problem.message))))
        count = len(report.problems)
        typer.echo(
            f"{count_text(report.entries, 'entry', 'entries')}, {count_text(count, 'problem') if count else 'no problems'}"
        )
    if not report.ok:
        raise typer.Exit(2)
