"""Sums over entries."""

from collections import Counter

from logtally.durations import seconds
from logtally.lines import Entry


def levels(entries: list[Entry]) -> dict[str, int]:
    """Entries per level, most frequent first, then by name."""
    counts = Counter(entry.level for entry in entries)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def total_seconds(entries: list[Entry]) -> int:
    """Sum of all durations behind the word `took`."""
    return sum(seconds(entry.text.split(" took ")[1]) for entry in entries if " took " in entry.text)
