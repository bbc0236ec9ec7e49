"""What the pages of a report are called: a permalink says which sample it is, and holds on every file system.

`terminal/770028/3` has the page `terminal-770028-3.html`; a second epoch of it `terminal-770028-3.e2.html`. An id with
anything but small letters, digits, `_` and `.` in its parts gets the first digits of its hash, so that no two ids ever
share a page, whatever a file system makes of capitals and odd characters.
"""

from __future__ import annotations

import re
from typing import Final

from agentworldbench.texts import sha256_text

SAMPLES: Final = "samples"
TRAJECTORIES: Final = "trajectories"
PLOTS: Final = "plots"
"""Folders of a report."""
_PLAIN = re.compile(r"[a-z0-9_]+/[a-z0-9_.]{1,60}/\d+(#\d+)?")
_ODD = re.compile(r"[^a-z0-9_.~-]+")


def page_name(sample_id: str, epoch: int = 1) -> str:
    """The name of a prediction's page, without folder and ending."""
    name = sample_id.replace("/", "-").replace("#", "~")
    if not _PLAIN.fullmatch(sample_id):
        name = f"{_ODD.sub('_', name.lower())[:60]}.{sha256_text(sample_id)[:10]}"
    return name if epoch == 1 else f"{name}.e{epoch}"


def trajectory_name(domain: str, cluster: str) -> str:
    """The name of a trajectory's file, without folder and ending."""
    return f"{domain}-{cluster[:16]}"
