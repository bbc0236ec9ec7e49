"""How many connections the operating system lets this process have: each is an open file to it.

Some systems begin with 256 open files for a process, which is fewer than a run makes good use of. A
process may ask for more, up to a limit that only an administrator moves. So what is needed is asked
for; where that is refused the run goes on with fewer connections and says so, because a connection
that cannot be opened looks like a broken network, and then a file of the run cannot be opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentworldbench.engine.limiter import MOST
from agentworldbench.models import Model
from agentworldbench.texts import count_text

SPARE: Final = 16
"""Open files beside connections: journals, rows that are read, look-ups, the cache."""


def connections_each(models: Sequence[Model], asked: int | None, notices: list[str]) -> int:
    """How many connections an endpoint can have (`asked`: --max-connections); a line to `notices` where the system
    allows fewer than wanted.

    Model and judges keep connections of their own, also where they share an endpoint and its limit.
    """
    keeping = sum(model.endpoint is not None for model in models) or 1
    wanted = asked or MOST
    each = max(1, connections_that_fit(wanted * keeping) // keeping)
    if each < wanted:
        notices.append(
            f"The system lets this process open few files: at most {count_text(each, 'connection')} at an endpoint "
            "(`ulimit -n` shows the limit, an administrator moves it)."
        )
    return each


def connections_that_fit(wanted: int) -> int:
    """How many of `wanted` further connections can be open at once, at least 1; asks the system for more files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _open_files() + SPARE + wanted
    if soft != resource.RLIM_INFINITY and soft < needed:
        more = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    return max(1, wanted - (needed - soft))


def _open_files() -> int:
    """How many files are open now; where the system does not tell, as many as the libraries open at most."""
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        return 48
