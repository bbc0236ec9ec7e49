"""Who works on a run directory, as far as files tell: the lock is never touched, because a run must not notice its viewers.

In: a run directory. Out: what `run.owner` says, and whether that process is there. A process that was killed leaves
its signature behind, so a number alone is not believed where the system tells when its process began.
"""

from __future__ import annotations

import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path

_SIGNED = re.compile(r"process (\d{1,9}) on (\S.*)")


def worker_of(path: Path) -> tuple[str | None, bool | None]:
    """Who signed a run directory, and whether that process works on it: None where it cannot be told from here."""
    try:
        text = (path / "run.owner").read_text(encoding="utf-8", errors="replace")[:300].strip()
        signed = (path / "run.owner").stat().st_mtime
    except OSError:
        return None, False
    match = _SIGNED.fullmatch(text)
    if match is None:
        return None, False
    if match[2] != socket.gethostname():
        return text, None
    number = int(match[1])
    return text, _lives(number) and not _began_after(number, signed)


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _began_after(number: int, moment: float) -> bool:
    """Whether a process is younger than a file that bears its number: then another one got the number since.

    Known on Linux alone; elsewhere a number is believed.
    """
    with suppress(OSError, ValueError, IndexError):
        ticks = int(
            Path(f"/proc/{number}/stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2]
            .split()[19]
        )
        up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        return time.time() - up + ticks / os.sysconf("SC_CLK_TCK") > moment + 60
    return False
