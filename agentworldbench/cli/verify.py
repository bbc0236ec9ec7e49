"""`awb verify`: whether a bundle's numbers are what its replies say, and with --audit whether its judge says so again.

Exit codes beside the usual ones: 0 accepted, 6 refused, 7 incomplete (something could not be checked).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentworldbench.cli.output import put, say
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from agentworldbench.verification.findings import AuditReport, Report
    from agentworldbench.verification.material import Material

REFUSED, INCOMPLETE = 6, 7
_CODES = {"accepted": 0, "refused": REFUSED, "incomplete": INCOMPLETE}
ASK_ABOVE_USD = 20.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify", short_help="Check a bundle: do its numbers follow from its replies?")(verify)


def verify(
    subject: Annotated[
        Path, typer.Argument(help="Bundle (.awb.zip or its folder), or a run directory.", metavar="BUNDLE", show_default=False)
    ],
    data: Annotated[
        str | None,
        typer.Option("--data", help="Where the data are: mini, official or a folder; default: found by name and hash.",
                     metavar="DATA", show_default=False),
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option("--prompts", help="Folder of the official prompt files; default: where `awb data pull` keeps them.",
                     metavar="DIR", show_default=False),
    ] = None,
    entry: Annotated[
        Path | None,
        typer.Option("--entry", help="Leaderboard entry whose numbers must be those of the bundle.", metavar="FILE", show_default=False),
    ] = None,
    verified_by: Annotated[
        str | None,
        typer.Option("--verified-by", help="Write into the entry that you verified it, if the bundle is accepted.", metavar="NAME", show_default=False),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs: the report on standard output, all else on standard error.")
    ] = False,
    audit: Annotated[
        int | None,
        typer.Option("--audit", min=1, help="Ask the claimed judge again about at most N samples drawn at random.", metavar="N", show_default=False),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="The judge to ask: the one of the bundle, with its settings.", metavar="MODEL", show_default=False),
    ] = None,
    judge_base_url: Annotated[
        str | None,
        typer.Option("--judge-base-url", help="Its server, where it is one of your own.", metavar="URL", show_default=False),
    ] = None,
    audit_seed: Annotated[
        int | None,
        typer.Option("--audit-seed", help="Draw the same samples again; default: drawn anew and reported.", metavar="N", show_default=False),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0, help="USD that the audit may cost at most.", metavar="USD", show_default=False),
    ] = None,
    price: Annotated[
        str | None,
        typer.Option("--price", help="What the judge costs where no table has it, in USD per million tokens.",
                     metavar="MODEL=IN,OUT", show_default=False),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before an expensive audit.")
    ] = False,
) -> None:  # fmt: skip
    """Replay a bundle offline: read every raw reply again, compute all numbers anew, render all prompts from the
    data, and look for what an honest run does not have.

    Exit code 0: accepted, 6: refused, 7: incomplete (data or prompts are missing here). No model is asked without --audit.
    """
    from agentworldbench.errors import BundleError
    from agentworldbench.verification.marking import check_marking
    from agentworldbench.verification.verify import checked, opened_subject, refusal, report_json

    asked = {
        "judge": judge,
        "judge_base_url": judge_base_url,
        "prompts": prompts,
        "max_cost": max_cost,
        "price": price,
    }
    of_the_audit = (judge, judge_base_url, audit_seed, max_cost, price)
    if audit is None and any(one is not None for one in of_the_audit):
        raise typer.BadParameter(
            "--judge, --judge-base-url, --audit-seed, --max-cost and --price belong to --audit N"
        )
    if verified_by is not None:
        if entry is None:
            raise typer.BadParameter("--verified-by needs --entry FILE: the entry that is verified")
        check_marking(subject, entry, verified_by)
    try:
        with opened_subject(subject) as source:
            material = source.material(data, prompts)
            report = checked(source, material, entry, _metrics_told())
            if audit is not None and report.verdict != "refused":
                report = _audited(report, material, asked, audit, audit_seed, yes)
    except BundleError as problem:
        report = refusal(subject, problem)
    if as_json:
        typer.echo(report_json(report))
    _print(report, err=as_json)
    if entry is not None and verified_by is not None:
        _mark(report, entry, verified_by)
    if code := _CODES[report.verdict]:
        raise typer.Exit(code)


def _mark(report: Report, entry: Path, by: str) -> None:
    """Write the verification into the entry, or say why it stays as it is; the verdict's exit code is enough then."""
    from agentworldbench.errors import ConfigError
    from agentworldbench.verification.marking import mark_verified

    try:
        marked = mark_verified(report, entry, by)
    except ConfigError as problem:
        say(str(problem))
        return
    assert marked.verification is not None, "it was just written"
    say(f"Verified: {entry} ({marked.model}; {marked.verification.words})")
    say("`awb leaderboard build` makes README and page of it anew.")


def _metrics_told() -> Callable[[int, int], None]:
    """A line every ten seconds while metrics are computed, which takes longest."""
    last = time.monotonic()

    def told(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 10:
            last = time.monotonic()
            say(f"Metrics: {done} of {total}")

    return told


def _audited(
    report: Report, material: Material, asked: Mapping[str, Any], most: int, seed: int | None, yes: bool
) -> Report:
    """The report with an audit: what it may cost is told, and above 20 USD asked for, before anything is sent."""
    from agentworldbench.config import make_config
    from agentworldbench.errors import ConfigError
    from agentworldbench.estimate import estimate
    from agentworldbench.estimated import brief_lines
    from agentworldbench.verification.audit import carry_out, opened_audit, with_audit

    given = {name: value for name, value in asked.items() if value is not None}
    for name in ("judge", "judge_base_url", "price"):
        if name in given:
            given[name] = [given[name]]
    if "judge" not in given:
        raise ConfigError("--audit needs --judge: the judge of the bundle, which is asked again")
    official = any(judge.protocol == "official" for judge in material.record.judges)
    if not official:
        given.pop("prompts", None)
    config = make_config(given | ({"protocol": "official"} if official else {}), None)
    with opened_audit(material, config, most, seed, say) as audit:
        say(
            f"Audit: at most {count_text(len(audit.order), 'sample')} by seed {audit.seed}, in steps; it ends when it is decided."
        )
        made = estimate(audit.plan(len(audit.order)))
        for line in brief_lines(made):
            say(line)
        total = min(made.usd_high, config.max_cost or made.usd_high)
        question = f"The audit may cost up to {total:.0f} USD. Go on?"
        if total > ASK_ABOVE_USD and not yes and sys.stdin.isatty() and not typer.confirm(question, err=True):
            raise ConfigError("no audit was made; --yes skips the question, a smaller --audit N costs less")
        return with_audit(report, carry_out(audit, _step_told))


def _step_told(audit: AuditReport) -> None:
    mean = "no difference yet" if audit.mean_difference is None else f"{audit.mean_difference:+.2f} points"
    say(f"Audit: {audit.judged} of {audit.drawn} judged again, new minus stored {mean}: {audit.decision}")


def _print(report: Report, err: bool) -> None:
    from agentworldbench.cli.output import print_tables
    from agentworldbench.verification.tables import finding_lines, numbers_table, report_lines

    for line in finding_lines(report):
        put(line, err)
    if (table := numbers_table(report)).rows:
        typer.echo(err=err)
        print_tables([table], err=err)
        typer.echo(err=err)
    for line in report_lines(report):
        put(line, err)
