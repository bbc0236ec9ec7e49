"""Memory of a whole run over data of the official size: how much at most, and whether it grows.

Generates 2,170 rows, 402 MB (`_rows.py`), lets `awb run` predict and judge all of them against a server on
loopback that takes 200 ms an answer, and reads the resident memory of the process as it goes on. Prints a Markdown table: seconds to
index the files, peak, and the means over the quarters of the run. Ends with an error when the peak is 500 MB or
more, or when the last quarter takes over a quarter more than the first. From the repository root: `python -m
benchmarks.memory` (three minutes, 450 MB on disk; `--share 0.1` takes a tenth of the rows). Linux only.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from benchmarks._rows import full_size
from benchmarks.engine import server
from benchmarks.startup import AWB, measure

JOURNALS: Final = ("predictions.jsonl", "verdicts.jsonl")
LATENCY: Final = 0.2
EVERY: Final = 0.25
"""Seconds that the server takes for an answer, and between two readings of the memory."""
MOST: Final = 500.0
GROWTH: Final = 1.25
"""MB that a run may take at its peak, and how much more in its last quarter than in its first."""


@dataclass(frozen=True)
class Watched:
    """A run: seconds, MB at its peak, and (seconds since its start, MB) as it went on."""

    seconds: float
    peak: float
    readings: tuple[tuple[float, float], ...]

    def asking(self, begun: float, ended: float) -> list[float]:
        """Means of the four quarters of the time between two moments."""
        width = (ended - begun) / 4
        parts = [
            [mb for at, mb in self.readings if begun + n * width <= at < begun + (n + 1) * width]
            for n in range(4)
        ]
        return [statistics.fmean(part) for part in parts if part]


def watch(command: Sequence[str], folder: Path) -> tuple[Watched, float, float]:
    """Run a command; also when its first prediction and its last verdict were written."""
    begun = time.perf_counter()
    readings = list[tuple[float, float]]()
    peak = first = last = size = 0.0
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while process.poll() is None:
        now = time.perf_counter() - begun
        resident, highest = _memory(process.pid)
        readings.append((now, resident))
        peak = max(peak, highest)
        written = sum(path.stat().st_size for name in JOURNALS if (path := folder / name).exists())
        if written > size:
            first, last, size = first or now, now, written
        time.sleep(EVERY)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return Watched(time.perf_counter() - begun, peak, tuple(readings)), first, last


def _memory(pid: int) -> tuple[float, float]:
    """MB of memory that a process holds now and has held at most; zeros when it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    told = {name: words.split() for name, _, words in (line.partition(":") for line in lines)}
    if "VmRSS" not in told:
        return 0.0, 0.0
    return int(told["VmRSS"][0]) * 1024 / 1e6, int(told["VmHWM"][0]) * 1024 / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Memory of a whole run over data of the official size.")
    parser.add_argument("--share", type=float, default=1.0, help="part of the rows (default: all)")
    parser.add_argument("--connections", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data, out = Path(scratch, "data"), Path(scratch, "out")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            rows = pool.submit(full_size, data, given.share).result()
        size = sum(path.stat().st_size for path in data.glob("*.jsonl")) / 1e6
        index = measure([*AWB, "data", "info", str(data)])
        with server(LATENCY) as url:
            command = [*AWB, "run", "--data", str(data), "--output", str(out), "--display", "none"]
            command += ["--max-connections", str(given.connections), "--model", "openai-api/world"]
            command += ["--base-url", url, "--judge", "openai-api/judge", "--judge-base-url", url]
            seen, first, last = watch(command, out)
        verdicts = sum(1 for _ in (out / "verdicts.jsonl").open("rb"))
    quarters = seen.asking(first, last)
    told = " → ".join(f"{mb:.0f}" for mb in quarters)
    print(
        f"{rows} rows, {size:.0f} MB, {verdicts} verdicts; {os.cpu_count()} cores, {platform.python_version()}\n"
    )
    print("| index, s | run, s | of it asking, s | peak, MB | quarters of asking, MB |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    print(f"| {index.seconds:.1f} | {seen.seconds:.0f} | {last - first:.0f} | {seen.peak:.0f} | {told} |")
    if verdicts != rows or seen.peak >= MOST or quarters[-1] > GROWTH * quarters[0]:
        sys.exit("not all rows, too much memory, or growing")


if __name__ == "__main__":
    main()
