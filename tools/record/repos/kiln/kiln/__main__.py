"""Command line: time FILE, at FILE MINUTE."""

import sys

from kiln import curve, steps


def main(args):
    try:
        programme = steps.load(args[1]) if len(args) > 1 else []
    except (OSError, ValueError) as error:
        print(f"kiln: {error}", file=sys.stderr)
        return 1
    if args[:1] == ["time"] and len(args) == 2:
        hours, minutes = divmod(curve.total_minutes(programme), 60)
        print(f"{hours} h {minutes:02} min, {len(programme)} steps")
        return 0
    if args[:1] == ["at"] and len(args) == 3:
        print(f"{curve.temperature(programme, int(args[2]))} degrees")
        return 0
    print("usage: kiln time FILE | kiln at FILE MINUTE", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
