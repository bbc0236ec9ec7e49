"""Compare two recordings of the same scripts, volatile text masked.

In: two directories with `<domain>_test.jsonl` files. Out: nothing and exit code 0 when every file of
the first directory has an equal twin in the second, else a unified diff of the masked texts and 1.
Masked: the date, file times and sizes of `ls -l`, process ids of background jobs, pytest's
duration, the lines of carets that only pytest 8.4 and later print, times in names of console logs, and
after Playwright's first try of an action how often it tried again and how far it came.
Run from the repository root: `python -m tools.record.compare DIR DIR [--domain NAME]`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from pathlib import Path

MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
MASKS = (
    (re.compile(rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {MONTH} [ \d]\d \d\d:\d\d:\d\d UTC \d{{4}}"), "<DATE>"),
    (
        re.compile(rf"(?m)^([-dl][-rwxsStT]{{9}} +\d+ \w+ \w+) +\d+ {MONTH} [ \d]\d +[\d:]+ "),
        r"\1 <SIZE> <TIME> ",
    ),
    (re.compile(r"(?m)^total \d+$"), "total <SIZE>"),
    (re.compile(r"(?m)^(\[\d+\]) \d+$"), r"\1 <PID>"),
    (re.compile(r"\b(passed|failed|deselected) in \d+\.\d\ds"), r"\1 in <DURATION>"),
    (re.compile(r"(?m)^ +\^+\n"), ""),
    (re.compile(r"\bconsole-\d{4}-\d\d-\d\dT[\d-]+Z\.log"), "console-<TIME>.log"),
    (re.compile(r"(?m)^( +)\d+ × (?=(?:waiting|retrying) )"), r"\1- "),
    (re.compile(r"(?m)^( +- retrying \w+ action)(?:\n +(?:- |\d+ × ).*)+"), r"\1 <AND AGAIN>"),
)


def mask(text: str) -> str:
    """`text` with everything that differs from recording to recording replaced by its class."""
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text


def masked_rows(path: Path) -> list[str]:
    """All strings of all rows, masked, as lines that read well in a diff."""
    lines: list[str] = []
    for raw in path.read_text(encoding="utf-8").rstrip("\n").split("\n"):
        row = json.loads(raw)
        lines.append(f"==== {row['task']} {row['id']} turn {row['turn_idx']} of {row['total_turns']}")
        for field in ("system_str", "current_prompt", "prompt", "response"):
            texts = row[field] if isinstance(row[field], list) else [row[field]]
            lines += [line for text in texts for line in (f"-- {field}", *mask(text).split("\n"))]
    return lines


def difference(first: Path, second: Path) -> list[str]:
    """A unified diff of two files, empty when they are equal after masking."""
    pair = masked_rows(first), masked_rows(second)
    return list(difflib.unified_diff(*pair, str(first), str(second), lineterm="", n=2))


def main(argv: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Compare two recordings, volatile text masked.")
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--domain", default="*", help="only this domain")
    options = parser.parse_args(argv)
    paths = sorted(options.first.glob(f"{options.domain}_test.jsonl"))
    if not paths:
        print(f"no recordings in {options.first}", file=sys.stderr)
        return 1
    lines = [line for path in paths for line in difference(path, options.second / path.name)]
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
