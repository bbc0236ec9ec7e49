"""Text that no model could know: clocks, ids, ports, and how it is masked before lines are compared.

A task names classes in order. A match becomes `<CLASS>`, but only where its text did not occur in
the sample's history or action: what was seen before is known. So a stale clock taken from the
history scores nothing and a fresh one is right, while a wrong date in a calendar stays wrong where
the task masks no dates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_NUMBER = r"\d+(?:\.\d+)?"

PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "uuid": re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE),
    "hex_address": re.compile(r"\b0x[0-9a-f]{6,16}\b", re.IGNORECASE),
    "container_id": re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{12})\b"),
    "temp_path": re.compile(r"/(?:var/)?tmp/[\w.\-/]+"),
    "date": re.compile(
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b(?:(?:{_DAYS})[a-z]*,? )?(?:{_MONTHS})[a-z]* +\d{{1,2}}\b(?:,? \d{{4}}\b)?"
        rf"|\b(?:(?:{_DAYS})[a-z]*,? )?\d{{1,2}} (?:{_MONTHS})[a-z]*\b(?: \d{{4}}\b)?"
    ),
    "time": re.compile(
        r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm]\b)?(?:Z|[+-]\d{2}:?\d{2}\b)?(?![\d:])"
    ),
    "duration": re.compile(rf"\b(?:\d+m ?)?{_NUMBER} ?(?:ms|µs|us|ns|s|secs?|seconds?|minutes?)\b"),
    "pid": re.compile(
        r"(?<=\bpid )\d+|(?<=\bpid=)\d+|(?<=\bPID )\d+|(?<=\bPID: )\d+|(?<=^\[\d\] )\d+$", re.MULTILINE
    ),
    "port": re.compile(r"(?<=localhost:)\d{4,5}\b|(?<=127\.0\.0\.1:)\d{4,5}\b|(?<=\bport )\d{4,5}\b"),
    "size": re.compile(rf"\b{_NUMBER} ?(?:[KMGT]i?B|[KMGT](?![\w/]))(?!/s)"),
    "speed": re.compile(rf"\b{_NUMBER} ?[kKMGT]?i?B/s(?:ec)?\b"),
    "proxy_host": re.compile(r"(?<=[?&]proxy=)[\w.\-]+"),
    "status_clock": re.compile(
        r"(?<=text=\")\d{1,2}:\d{2}(?=\"[^\n]*systemui:id/clock)|(?<=desc=\")\d{1,2}:\d{2}(?=\"[^\n]*systemui:id/clock)"
        rf"|(?<=\t)(?:{_MONTHS}) \d{{1,2}}\s+\d{{1,2}}\W{{1,2}}\d{{2}}(?=\t)"
    ),
}
"""One pattern for each class a task may name (`task.VolatileClass`)."""


def mask(text: str, classes: Sequence[str], seen: str) -> str:
    """`text` with every volatile match of `classes`, in order, replaced unless it occurs in `seen`."""
    known: dict[str, bool] = {}
    for name in classes:
        text = PATTERNS[name].sub(partial(_masked, f"<{name.upper()}>", seen, known), text)
    return text


def _masked(label: str, seen: str, known: dict[str, bool], match: re.Match[str]) -> str:
    found = match.group()
    if found not in known:
        known[found] = found in seen
    return found if known[found] else label
