"""The command `awb`: registers the groups, and turns expected errors into one line and an exit code.

The exit codes stand in `reference.py`. Ctrl-C, SIGTERM and SIGHUP have one code: "stopped, the same
command continues".
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn, cast

import typer

from agentworldbench.cli import (
    compare,
    data,
    doctor,
    estimate,
    export,
    leaderboard,
    report,
    run,
    runs,
    submit,
    tasks,
    verify,
    view,
)
from agentworldbench.cli.lazy import LazyGroup
from agentworldbench.cli.reference import codes_in_a_line
from agentworldbench.cli.streams import last_words, let_go, prepare_streams
from agentworldbench.errors import AwbError, ConfigError, Interrupted, StoreError
from agentworldbench.resources import read_dotenv
from agentworldbench.version import __version__

app = typer.Typer(
    name="awb",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    epilog=codes_in_a_line(),
    rich_markup_mode=None,  # plain: importing rich takes as long as all the rest of `awb --help`
    pretty_exceptions_enable=False,
    context_settings={
        "token_normalize_func": lambda token: token.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
    },
)
run.register(app)
doctor.register(app)
estimate.register(app)
compare.register(app)
report.register(app)
view.register(app)
submit.register(app)
verify.register(app)
app.add_typer(runs.app, name="runs")
app.add_typer(tasks.app, name="tasks")
app.add_typer(data.app, name="data")
app.add_typer(export.app, name="export")
app.add_typer(leaderboard.app, name="leaderboard")


# Typer brings click along under a name of its own; this is click's class for wrong usage.
_UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])
_THE_MACHINES = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES}
_THE_MACHINES |= {errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EFBIG}
"""Errors of files and disks that are no bug of ours, wherever they come up."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"awb {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Evaluation harness for AgentWorldBench, the benchmark of language world models."""


def command() -> NoReturn:
    """Entry point of the command line, in a process of its own."""
    prepare_streams()
    try:
        main()
    except SystemExit as ended:
        code = last_words(ended.code)
    # Taking libraries apart takes seconds, and the look-up of a host's name cannot be broken off. Engines
    # in this process end processes of their own on the way out.
    if code == Interrupted.exit_code and "torch" not in sys.modules:
        os._exit(code)
    sys.exit(code)


def main() -> NoReturn:
    """Read the words of the command line, do what they say, and exit; for callers that go on living."""
    signal.signal(signal.SIGTERM, _stop)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else: nohup
        signal.signal(signal.SIGHUP, _stop)
    try:
        read_dotenv()
        # Not standalone: wrong usage is told in one line here, not in Typer's block of lines.
        code = app(prog_name="awb", standalone_mode=False) or 0
    except AwbError as problem:
        code = _complain(problem)
    except _UsageError as problem:
        code = _correct(problem)
    except (KeyboardInterrupt, typer.Abort):
        code = Interrupted.exit_code
    except BrokenPipeError:
        code = _unread()
    except SystemExit as ended:  # Typer exits where it sees first that the reader is gone
        left = isinstance(ended.__context__, OSError) and ended.__context__.errno == errno.EPIPE
        code = _unread() if left else ended.code
    except OSError as problem:
        if problem.errno not in _THE_MACHINES:
            raise
        kind = ConfigError if problem.errno in (errno.ENAMETOOLONG, errno.ELOOP) else StoreError
        code = _complain(kind(f"{problem.filename or 'input or output'}: {problem.strerror}"))
    sys.exit(code)


def _unread() -> int:
    """What nobody reads any more is no error."""
    let_go(sys.stdout)
    return 0


def _complain(problem: AwbError) -> int:
    from agentworldbench.cli.output import say
    from agentworldbench.render.table import printable

    say(f"awb: {printable(str(problem))}")
    return problem.exit_code


def _correct(problem: typer.BadParameter) -> int:
    """Say what was wrong with the words on the command line; a group without a command shows its help."""
    if type(problem).__name__ == "NoArgsIsHelpError":
        problem.show()
        return problem.exit_code
    from agentworldbench.cli.mistakes import corrected
    from agentworldbench.cli.output import say
    from agentworldbench.render.table import printable

    where = problem.ctx.command_path if problem.ctx else "awb"
    say(f"awb: {printable(corrected(problem))} (see {where} --help)")
    return problem.exit_code


def _stop(number: int, frame: FrameType | None) -> None:
    """SIGTERM, and a terminal that is closed, stop a run as Ctrl-C does: what is done stays."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    command()
