"""`awb submit`: shows what of a run would become public, asks, and hands it to a file, a repository or a hub."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworldbench.cli.arguments import AllowCode, MovedData, RunPath
from agentworldbench.cli.output import put

if TYPE_CHECKING:
    from agentworldbench.leaderboard.provenance import Submitter
    from agentworldbench.submission.deliver import Target
    from agentworldbench.submission.pack import Prepared


class To(StrEnum):
    """Where a run is submitted to."""

    FILE = "file"
    LEADERBOARD = "leaderboard"
    HUB = "hub"
    EEE = "eee"
    LM_EVAL = "lm-eval"


@dataclass(frozen=True)
class _Words:
    """The flags that say where to."""

    run: Path
    data: str | None
    output: Path | None
    repository: str | None
    model_repository: str | None
    judge: str | None
    create_pr: bool
    private: bool
    push: bool
    remote: str
    bundle_url: str | None
    name: str | None
    subset: bool


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("submit", short_help="Make a run public: a bundle, a leaderboard's branch, a hub upload.")(
        submit
    )


def submit(
    run_path: RunPath,
    to: Annotated[To, typer.Option("--to", help="Where to.")] = To.FILE,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", show_default=False,
                     help="File of the bundle or patch, or folder of exported files; default: named after the run, here."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask after the preview.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the preview and stop.")] = False,
    data: MovedData = None,
    allow_code: AllowCode = False,
    submitter: Annotated[
        str | None, typer.Option("--submitter", metavar="NAME", show_default=False,
                                 help="Who submits, as it shall be shown; default: nobody is named."),
    ] = None,
    submitter_url: Annotated[
        str | None, typer.Option("--submitter-url", metavar="URL", show_default=False,
                                 help="A page of the submitter."),
    ] = None,
    contact: Annotated[
        str | None, typer.Option("--contact", metavar="TEXT", show_default=False,
                                 help="How the submitter can be reached; it is public."),
    ] = None,
    reasoning: Annotated[
        bool, typer.Option("--reasoning", help="Publish reasoning that came apart from answers.")
    ] = False,
    no_references: Annotated[
        bool, typer.Option("--no-references", help="Leave the reference observations out.")
    ] = False,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="FINDING", show_default=False,
                                       help="Publish what looks like a secret, by the id in the preview (e-mail: all addresses); may be repeated."),
    ] = None,
    repository: Annotated[
        str | None, typer.Option("--repository", metavar="WHERE", show_default=False,
                                 help="--to leaderboard: directory of your clone; --to hub: dataset OWNER/NAME."),
    ] = None,
    push: Annotated[
        bool, typer.Option("--push", help="Leaderboard: push the branch, with the credentials that git has.")
    ] = False,
    remote: Annotated[
        str, typer.Option("--remote", metavar="NAME", help="Leaderboard: remote to push to.")
    ] = "origin",
    bundle_url: Annotated[
        str | None, typer.Option("--bundle-url", metavar="URL", show_default=False,
                                 help="Leaderboard: where the bundle is public; default: it is committed beside the entry."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", show_default=False,
                                 help="Leaderboard: the model's name to show; default: the model string."),
    ] = None,
    subset: Annotated[
        bool, typer.Option("--subset",
                           help="Leaderboard: enter a run over a part of the data, in a table of its own and without a rank."),
    ] = False,
    model_repository: Annotated[
        str | None, typer.Option("--model-repository", metavar="OWNER/NAME", show_default=False,
                                 help="Hub: write the scores into this model's .eval_results too."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", show_default=False,
                                 help="Hub and exports: whose scores, where the run has several judges."),
    ] = None,
    create_pr: Annotated[
        bool, typer.Option("--create-pr", help="Hub: open a pull request at the model (or dataset).")
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Hub: a dataset repository that is made is private.")
    ] = False,
) -> None:  # fmt: skip
    """Make a run public. The preview shows every file, the first records, all addresses and what looks like a secret;
    nothing leaves this machine before you have agreed to it.

    Only a complete run is submitted, and only with results that its stored replies give again.
    """
    from agentworldbench.cli.display import display
    from agentworldbench.engine.progress import Progress
    from agentworldbench.outcome import Scoring
    from agentworldbench.submission.manifest import Options
    from agentworldbench.submission.pack import prepare

    words = _Words(
        run_path, data, output, repository, model_repository, judge, create_pr, private, push, remote, bundle_url, name, subset
    )  # fmt: skip
    target = _target(to, words)
    who = _submitter(submitter, submitter_url, contact)
    target.check()
    with tempfile.TemporaryDirectory(prefix="awb-submit-") as scratch:
        folder = Path(scratch) / "bundle"
        folder.mkdir()
        with display("auto") as watch:
            prepared = prepare(
                run_path,
                folder,
                Options(reasoning=reasoning, references=not no_references),
                submitter=who,
                allow=allow or (),
                data=data,
                scoring=Scoring(allow_code=allow_code, told=Progress(watch).scoring),
            )
        _show(prepared, target)
        if not dry_run:
            _ask(target, yes)
            put("\n".join(target.deliver(prepared)))


def _target(to: To, words: _Words) -> Target:
    """The place that the flags name. Raises ConfigError for flags of another one."""
    from agentworldbench.errors import ConfigError
    from agentworldbench.submission.deliver import FileTarget
    from agentworldbench.submission.pack import SUFFIX

    _check_flags(to, words)
    if to is To.FILE:
        return FileTarget(words.output or Path(words.run.resolve().name + SUFFIX))
    if to is To.LEADERBOARD:
        from agentworldbench.submission.repository import RepositoryTarget

        if words.repository is None:
            raise ConfigError(
                "--repository is missing: the directory of your clone of the leaderboard's repository"
            )
        return RepositoryTarget(
            Path(words.repository),
            words.output,
            words.push,
            words.remote,
            words.bundle_url,
            words.name,
            words.subset,
        )
    if to is To.HUB:
        from agentworldbench.submission.hub_upload import HubTarget

        if words.repository is None:
            raise ConfigError("--repository is missing: the dataset repository OWNER/NAME for the bundle")
        return HubTarget(
            words.repository, words.model_repository, words.judge, words.create_pr, words.private
        )
    from agentworldbench.integrations.submission_target import ExportTarget
    from agentworldbench.run import load_run

    data = words.data or load_run(words.run).record.selection.data
    folder = words.output or Path(f"{words.run.resolve().name}-{to.value}")
    return ExportTarget("eee" if to is To.EEE else "lm-eval", folder, data, words.judge)


_ONLY: dict[str, tuple[To, ...]] = {
    "repository": (To.LEADERBOARD, To.HUB),
    "push": (To.LEADERBOARD,),
    "bundle_url": (To.LEADERBOARD,),
    "name": (To.LEADERBOARD,),
    "subset": (To.LEADERBOARD,),
    "model_repository": (To.HUB,),
    "judge": (To.HUB, To.EEE, To.LM_EVAL),
    "create_pr": (To.HUB,),
    "private": (To.HUB,),
}
"""Flags that only these targets know; another would take them in and do nothing."""


def _check_flags(to: To, words: _Words) -> None:
    from agentworldbench.errors import ConfigError

    for field, targets in _ONLY.items():
        if getattr(words, field) and to not in targets:
            known = ", ".join(f"--to {one.value}" for one in targets)
            raise ConfigError(f"--{field.replace('_', '-')} belongs to {known}, not to --to {to.value}")
    if to is To.HUB and words.output is not None:
        raise ConfigError("--output belongs to targets on this machine, not to --to hub")


def _submitter(name: str | None, url: str | None, contact: str | None) -> Submitter | None:
    from agentworldbench.errors import ConfigError
    from agentworldbench.leaderboard.provenance import Submitter
    from agentworldbench.submission.deliver import check_address, check_words

    if name is None:
        if url or contact:
            raise ConfigError(
                "--submitter is missing: the name that belongs to --submitter-url and --contact"
            )
        return None
    check_words("--submitter", name)
    check_words("--contact", contact)
    check_address("--submitter-url", url)
    return Submitter(name=name.strip(), url=url, contact=contact)


def _show(prepared: Prepared, target: Target) -> None:
    """Print the preview. Raises ConfigError where something in it may not become public."""
    from agentworldbench.cli.output import print_tables
    from agentworldbench.errors import ConfigError
    from agentworldbench.submission.preview import preview_tables
    from agentworldbench.submission.secret_scan import EMAIL

    print_tables(preview_tables(prepared))
    typer.echo("")
    if refused := prepared.refused:
        words = dict.fromkeys(EMAIL if one.kind == EMAIL else one.id for one in refused)
        flags = " ".join(f"--allow {word}" for word in words)
        raise ConfigError(
            f"{len(refused)} of what would become public looks like a secret (table above); nothing was written. Take it out "
            f"of the run, or publish it with {flags}"
        )
    put("\n".join(target.told(prepared)))


def _ask(target: Target, yes: bool) -> None:
    """Go on only where the submitter wants it; where nobody can be asked, only what stays on this machine is made.

    Raises ConfigError where it ends here.
    """
    from agentworldbench.errors import ConfigError

    if yes:
        return
    if sys.stdin.isatty():
        if not typer.confirm("Go on?", err=True):
            raise ConfigError("nothing was written; --dry-run shows the preview and does not ask")
    elif target.leaves:
        raise ConfigError("nobody can be asked here; look at the preview, then give --yes")
