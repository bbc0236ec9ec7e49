"""Standard streams of the command: what an odd terminal, a reader that left or a full disk makes of them.

A run is worth more than what it says on the way: a reader of standard error that goes away, or a log on
a full disk, silences it and stops nothing. Results that cannot be written to standard output are an error, those that nobody
reads any more are none. A character that the terminal has not is spelled in those that it has.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TextIO

from agentworldbench.render.encoding import ERRORS, register

_NOBODY_READS = frozenset({errno.EPIPE, errno.EIO, errno.ENXIO, errno.ENOSPC})


class _Lasting(io.FileIO):
    """A file whose reader may leave: what is written from then on is gone."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as problem:
            if problem.errno not in _NOBODY_READS:
                raise
            _lead_nowhere(self.fileno())
            return super().write(data)  # type: ignore[arg-type]


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def prepare_streams() -> None:
    """Make the streams of this process fit for a run; once, before anything is opened."""
    register()
    for number in (0, 1, 2):
        # A file of ours that got the number of a closed stream would take in what libraries print.
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False), encoding="utf-8")
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and sys.stdout.errors in ("strict", "surrogateescape"):
        reconfigure(errors=ERRORS)
    old = sys.stderr
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Lasting(2, "wb", closefd=False)),
        encoding=old.encoding if old else "utf-8",
        errors=ERRORS,
        line_buffering=True,
        write_through=True,
    )


def let_go(stream: TextIO) -> None:
    """Nobody reads `stream` any more, or nothing can be written to it: what follows goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        _lead_nowhere(stream.fileno())


def last_words(code: object) -> int:
    """Write out what is still kept back; the exit code, which is 1 where that could not be written."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    made = code if isinstance(code, int) else int(code is not None)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        let_go(sys.stdout)
    except OSError as problem:
        let_go(sys.stdout)
        sys.stderr.write(f"awb: standard output: {problem.strerror}\n")
        return made or 1
    return made
