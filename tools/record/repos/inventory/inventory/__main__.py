"""Command line: low FILE LIMIT, value FILE."""

import sys

from inventory.report import low_report, total_value
from inventory.stock import Stock


def main(args: list[str]) -> int:
    if args[:1] == ["low"] and len(args) == 3:
        print(low_report(Stock.load(args[1]), int(args[2])))
        return 0
    if args[:1] == ["value"] and len(args) == 2:
        print(f"{total_value(Stock.load(args[1])) / 100:.2f}")
        return 0
    print("usage: inventory low FILE LIMIT | inventory value FILE", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
