"""Log lines into entries."""

import re
from dataclasses import dataclass

LINE = re.compile(r"(\d\d):(\d\d) (INFO|WARN|ERROR) (\w+): (.+)")


@dataclass(frozen=True)
class Entry:
    minute: int
    level: str
    machine: str
    text: str


def parse(line: str) -> Entry | None:
    """The entry of one line, None for anything else."""
    match = LINE.fullmatch(line.strip())
    if match is None:
        return None
    hour, minute, level, machine, text = match.groups()
    return Entry(int(hour) * 60 + int(minute), level, machine, text)


def read(path: str) -> tuple[list[Entry], int]:
    """All entries of a file, and how many lines were skipped; blank lines do not count."""
    with open(path) as file:
        lines = [line for line in file if line.strip()]
    entries = [entry for line in lines if (entry := parse(line))]
    return entries, len(lines) - len(entries)
