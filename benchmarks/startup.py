"""How fast `awb` starts, and what a data set of the benchmark's size costs in time and memory.

Generates a folder in the official layout (2,170 rows, about 400 MB of our own text) and measures, each in a
process of its own: `awb --help`; `awb data info` (index, chains, hashes: one pass); a run with a baseline
that answers at once; a run whose model and judge are a scripted server on loopback. Prints one Markdown
table. From the repository root: `python -m benchmarks.startup`; `--rows` makes it smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from tests.helpers.official_folder import DOMAINS, make_official_folder

ROWS: Final = 2170
ROWS_PER_TRAJECTORY: Final = 5
TURNS: Final = 24
OBSERVATION_CHARS: Final = 13_500
"""With 24 turns this gives rows of about 185 KB, the mean of the official files."""
AWB: Final = (sys.executable, "-m", "agentworldbench")
# A new process begins with the peak memory of the one that starts it, until it has loaded its own program; Linux counts
# that. So a small process stands between.
_MEASURE: Final = """
import json, os, subprocess, sys, time
begun = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=2)
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - begun
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, cpu, usage.ru_maxrss]))
"""


@dataclass(frozen=True)
class Cost:
    """Of one process: seconds by the clock, seconds of CPU, peak resident memory in MB."""

    seconds: float
    cpu: float
    megabytes: float


def measure(command: Sequence[str]) -> Cost:
    """Run a command to its end. Raises SystemExit with its output when it fails."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.run(
            [sys.executable, "-c", _MEASURE, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            check=True,
        )
        status, seconds, cpu, memory = json.loads(process.stdout)
        if status:
            output.seek(0)
            sys.exit(f"{' '.join(command)} ended with {status}:\n{output.read().decode()[-3000:]}")
    unit = 1 if platform.system() == "Darwin" else 1024  # ru_maxrss is in bytes there, in KiB here
    return Cost(seconds, cpu, memory * unit / 1e6)


@contextmanager
def scripted_server() -> Iterator[str]:
    """A model and judge that answer at once, in a process of its own; yields the base URL."""
    command = [sys.executable, "-m", "tests.helpers.scripted_server", "--port", "0"]
    with subprocess.Popen(
        [*command, "--script", "world_and_judge"], stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def generate(data: Path, rows: int) -> int:
    """Write about `rows` rows in the official layout; returns how many."""
    manifest = make_official_folder(
        data,
        trajectories=max(1, rows // (ROWS_PER_TRAJECTORY * len(DOMAINS))),
        turns=TURNS,
        observation_chars=OBSERVATION_CHARS,
        special=False,
    )
    return len(manifest.rows)


def row(name: str, costs: Sequence[Cost]) -> str:
    """A row of the table: medians over repetitions, the highest peak."""
    seconds = statistics.median(cost.seconds for cost in costs)
    cpu = statistics.median(cost.cpu for cost in costs)
    peak = max(cost.megabytes for cost in costs)
    return f"| {name} | {len(costs)} | {seconds:.2f} | {cpu:.2f} | {peak:.0f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Start-up, indexing and full-size runs of awb.")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the generated data (default: 2170)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data, out = Path(scratch, "data"), Path(scratch, "out")
        # In a process of its own: a child's peak counts what its parent held when it was forked.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            rows = pool.submit(generate, data, arguments.rows).result()
        files = list(data.glob("*.jsonl"))
        size = sum(path.stat().st_size for path in files) / 1e6
        run = [*AWB, "run", "--data", str(data), "--display", "none"]
        lines = [row("`awb --help`", [measure([*AWB, "--help"]) for _ in range(7)])]
        lines.append(row("`awb data info`", [measure([*AWB, "data", "info", str(data)])]))
        copy = [*run, "--model", "baseline/copy-last", "--output", str(out / "copy")]
        lines.append(row("run, `baseline/copy-last`", [measure(copy)]))
        with scripted_server() as url:
            asked = ["--model", "openai-api/tiny", "--base-url", url, "--max-connections", "32"]
            asked += ["--judge", "openai-api/tiny", "--judge-base-url", url]
            lines.append(
                row("run with judge, scripted server", [measure([*run, *asked, "-o", str(out / "asked")])])
            )
    print(f"{rows} rows, {size:.0f} MB; {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print("| what | repeats | seconds | CPU seconds | peak MB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
