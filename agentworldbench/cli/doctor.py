"""`awb doctor`: one cheap request per model and judge, and what it shows, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentworldbench.cli.lazy import later
from agentworldbench.cli.output import say
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from agentworldbench.doctor import Checkup
    from agentworldbench.render.table import Table

_SIGN = {"ok": "ok", "warning": "warning", "fault": "FAULT"}


def register(app: typer.Typer) -> None:
    """Add the command; it takes the flags of `awb run`."""
    app.command("doctor", short_help="Ask each model and judge once: can they be used?")(
        later(["predict", "judge"], doctor)
    )


def doctor(values: dict[str, Any], config_file: Path | None) -> None:
    """Check models and judges with one cheap request each; exit code 2 when one cannot be used.

    Takes the flags of `awb run`: put `doctor` in place of `run` in the command you are about to start.
    """
    from agentworldbench.cli.output import print_tables
    from agentworldbench.config import make_config
    from agentworldbench.doctor import examine, states
    from agentworldbench.engine.thread import run_in_thread

    config = make_config(values, config_file)
    checkups: list[Checkup] = []

    async def work() -> None:
        checkups.extend(await examine(config, say))

    run_in_thread(work)
    print_tables([_table(checkup) for checkup in checkups])
    counts = states(checkups)
    found = (count_text(counts[state], state) for state in ("warning", "fault"))
    say(f"\n{counts['ok']} ok, {', '.join(found)}")
    if counts["fault"]:
        raise typer.Exit(2)


def _table(checkup: Checkup) -> Table:
    from agentworldbench.render.table import Table

    return Table(
        title=f"{checkup.role.capitalize()}: {checkup.model}",
        columns=("Check", "State", "Found"),
        rows=tuple((finding.name, _SIGN[finding.state], finding.found) for finding in checkup.findings),
        left=("Check", "State", "Found"),
        fold=("Found",),
    )
