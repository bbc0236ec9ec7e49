"""Command line: logtally FILE."""

import sys

from logtally.lines import read
from logtally.tally import levels, total_seconds


def main(args: list[str]) -> int:
    if len(args) != 1:
        print("usage: logtally FILE", file=sys.stderr)
        return 2
    try:
        entries, skipped = read(args[0])
    except FileNotFoundError:
        print(f"logtally: no such file: {args[0]}", file=sys.stderr)
        return 1
    for level, count in levels(entries).items():
        print(f"{level:<6}{count}")
    print(f"busy for {total_seconds(entries)} s, {skipped} lines skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
