"""How the time to read a reply grows with its length, for ordinary and for hostile text.

Four readers: official and strict, of a judge's reply and of a model's. Each reads every shape of `SHAPES`
at 100 KB and at 1 MB in one process, in CPU time; the ratio of the two is what matters (10 is linear), for
it hardly depends on the machine. Prints one Markdown table and ends with an error when a reading takes
more than 3 seconds, or more than 15 times its shorter one and 50 ms; a steep one is measured again before.
From the repository root: `python -m benchmarks.reading` (a minute); `--repeats` for steadier numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Final

from agentworldbench.observation import read_reply
from agentworldbench.official import extract
from agentworldbench.records import DIMENSIONS, Completion
from agentworldbench.scoring.official_verdict import TAG as VERDICT_TAG
from agentworldbench.scoring.official_verdict import read_official
from agentworldbench.scoring.verdict import read_verdict

SMALL: Final = 100_000
LARGE: Final = 1_000_000
MAX_RATIO: Final = 15
NOTICEABLE: Final = 0.05
MAX_SECONDS: Final = 3.0
"""Seconds below which a ratio is noise, and above which a reading is too slow."""

TAG: Final = "predicted_observation"
MARKER: Final = "**Environment Observation:**"
VERDICT: Final = json.dumps(
    {"strengths": ["echo agrees"], "weaknesses": ["wrong size"], "scores": dict.fromkeys(DIMENSIONS, 3)}
)
SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "letters": lambda size: "a" * size,
    "lines": lambda size: "drwxr-xr-x 2 ana ana 4096 src\n" * (size // 30),
    "a long answer": lambda size: f"<{TAG}>\n{'x' * size}\n</{TAG}>",
    "a verdict behind it": lambda size: (
        f"{'Reasons. ' * (size // 9)}<{VERDICT_TAG}>{VERDICT}</{VERDICT_TAG}>"
    ),
    "verdicts": lambda size: f"{VERDICT}\n" * (size // len(VERDICT)),
    "`{`": lambda size: "{" * size,
    "`{` then `}`": lambda size: "{" * (size // 2) + "}" * (size // 2),
    "`}`": lambda size: "}" * size,
    "`{` on lines": lambda size: "{\n" * (size // 2),
    '`{"`': lambda size: '{"' * (size // 2) + "}",
    '`{"a":`': lambda size: '{"a":' * (size // 5),
    '`{"a":` closed': lambda size: '{"a":' * (size // 6) + "}" * (size // 6),
    "`[`": lambda size: '{"scores":' + "[" * size + "}",
    "quotes": lambda size: "{" + '"' * size + "}",
    "backslashes": lambda size: '{"' + "\\" * size + "}",
    "escaped quotes": lambda size: '{"' + '\\"' * (size // 2) + "}",
    "empty objects": lambda size: "{}," * (size // 3),
    "empty scores": lambda size: '{"scores":{},' * (size // 13) + "}",
    "scores in scores": lambda size: '{"scores":' * (size // 12) + "1" + "}" * (size // 12),
    "commas and blanks": lambda size: "{," + " " * size + ", }",
    "commas": lambda size: "{" + ", " * (size // 2) + "}",
    "single quotes": lambda size: "{" + "'a" * (size // 2) + "}",
    "a Python literal": lambda size: "{'scores': [" + "'it\\'s', None, " * (size // 15) + "],}",
    "a long bare key": lambda size: "{" + "k" * size + "}",
    "a long integer": lambda size: '{"scores":{"format":' + "4" * size + "}}",
    "a long fraction": lambda size: '{"scores":{"format":4.' + "4" * size + "}}",
    "a long string score": lambda size: '{"scores":{"format":"' + "4" * size + '"}}',
    "backticks": lambda size: "`" * size,
    "fence lines": lambda size: "```\n" * (size // 4),
    "an open fence and blanks": lambda size: "```" + " " * size + "{}",
    "a fence of blanks": lambda size: "```" + " " * size + "```",
    "`<think>`": lambda size: "<think>" * (size // 7),
    "`</think>`": lambda size: "</think>" * (size // 8),
    "`<think>` then `</think>`": lambda size: "<think>" * (size // 15) + "</think>" * (size // 15),
    "`<think>` and tags": lambda size: f"<think><{TAG}><{VERDICT_TAG}>" * (size // 48),
    "start tags": lambda size: f"<{TAG}>" * (size // 23),
    "end tags": lambda size: f"</{TAG}>" * (size // 24),
    "`<final_evaluation>`": lambda size: f"<{VERDICT_TAG}>" * (size // 18),
    "`<final_evaluation>` and a fence": lambda size: f"<{VERDICT_TAG}>\n```json\n" * (size // 27),
    "`<`": lambda size: "<" * size,
    "markers": lambda size: MARKER * (size // len(MARKER)),
    "blanks": lambda size: " \n" * (size // 2),
}
"""Texts of about a given number of characters, by what they consist of."""

READERS: Final[dict[str, Callable[[str], object]]] = {
    "official verdict": read_official,
    "strict verdict": lambda text: read_verdict(text, shown=("factuality of the listing",)),
    "official answer": lambda text: extract(text, TAG),
    "strict answer": lambda text: read_reply(
        Completion(text=text, finish_reason="stop"), TAG, MARKER, stops_sent=False
    ),
}


def seconds(reader: Callable[[str], object], text: str, repeats: int) -> float:
    """CPU time of the fastest of several readings."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        reader(text)
        times.append(time.process_time() - begun)
    return min(times)


def measure(reader: Callable[[str], object], shape: str, repeats: int) -> tuple[float, float]:
    """(seconds for 1 MB, how many times those for 100 KB); the short text is read three times as often."""
    short, long = SHAPES[shape](SMALL), SHAPES[shape](LARGE)
    for more in (1, 2, 4):
        large = seconds(reader, long, repeats * more)
        ratio = large / max(seconds(reader, short, 3 * repeats * more), 1e-6)
        if large <= NOTICEABLE or ratio <= MAX_RATIO:
            break
    return large, ratio


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Growth of reading time with the length of a reply.")
    parser.add_argument("--repeats", type=int, default=3, help="readings of 1 MB; the fastest counts")
    repeats = parser.parse_args().repeats
    print(
        f"{os.cpu_count()} cores, Python {platform.python_version()}; milliseconds for 1 MB, times 100 KB\n"
    )
    print(f"| text | {' | '.join(READERS)} |")
    print("| --- |" + " ---: |" * len(READERS))
    failed = []
    for shape in SHAPES:
        cells = []
        for name, reader in READERS.items():
            large, ratio = measure(reader, shape, repeats)
            cells.append(f"{large * 1000:.0f} (×{ratio:.0f})")
            if large > MAX_SECONDS or (large > NOTICEABLE and ratio > MAX_RATIO):
                failed.append(f"{name} of {shape}: {large:.2f} s, ×{ratio:.1f}")
        print(f"| {shape} | {' | '.join(cells)} |", flush=True)
    if failed:
        sys.exit("steeper than linear, or too slow: " + "; ".join(failed))


if __name__ == "__main__":
    main()
