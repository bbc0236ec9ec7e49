"""Durations such as 1h05m or 45s."""

import re

UNITS = {"h": 3600, "m": 60, "s": 1}
DURATION = re.compile(r"(?:\d+[hms])+")
PART = re.compile(r"(\d+)([hms])")


def seconds(text: str) -> int:
    """Seconds in a duration; ValueError for anything else."""
    if not DURATION.fullmatch(text):
        raise ValueError(f"not a duration: {text!r}")
    return sum(int(number) * UNITS[unit] for number, unit in PART.findall(text))
