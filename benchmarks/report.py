"""A report at the official size: seconds and memory of `awb report`, sizes of its pages, and how soon they can be used.

2,170 rows of 402 MB with observations of every shape up to 16 KB (`_rows.scored_size`); damaged observations are the
predictions (`replay/FILE`), and a scripted server judges them. Prints a Markdown table; ends with an error where building takes
60 s or 500 MB, where the first page has 1 MB or takes 1.5 s, where a sample's page has 300 KB, or where `awb view` takes 2 s to
listen or to show its first page. From the
repository root: `python -m benchmarks.report` (4 minutes, 1 GB on disk; `--share 0.1` takes a tenth of the
rows; `--keep DIR` leaves data, run and report there). Pages are opened where Debian's Chromium is installed.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.metrics import prepare
from benchmarks.startup import AWB, measure, scripted_server
from tests.helpers.chromium import CHROMIUM, Chromium

SECONDS: Final = 60.0
MEGABYTES: Final = 500.0
FIRST: Final = 1_000_000
USABLE: Final = 1.5
PAGE: Final = 300_000
VIEWED: Final = 2.0


def run(folder: Path, share: float) -> int:
    """Make data and a judged run in a folder, unless they are there; returns how many samples."""
    data, replies = folder / "data", folder / "replies.jsonl"
    if (folder / "run" / "results.json").exists():
        return sum(1 for _ in replies.open("rb"))
    rows = prepare(data, replies, share)
    asked = [
        "--model",
        f"replay/{replies}",
        "--data",
        str(data),
        "--output",
        str(folder / "run"),
        "--display",
        "none",
    ]
    with scripted_server() as url:
        judge = ["--judge", "openai-api/judge", "--judge-base-url", url]
        subprocess.run([*AWB, "run", *asked, *judge], check=True, stdout=subprocess.DEVNULL)
    return rows


def sizes(report: Path) -> Iterator[tuple[str, int, int | None]]:
    """Name, bytes and the most bytes allowed of what is loaded at once."""
    yield (
        "first page with style and script",
        sum((report / name).stat().st_size for name in ("index.html", "style.css", "script.js", "theme.js")),
        FIRST,
    )
    yield (
        "largest page of a sample",
        max(path.stat().st_size for path in (report / "samples").iterdir()),
        PAGE,
    )
    yield "list of samples", (report / "list.js").stat().st_size, FIRST
    yield "largest file of a search", max(path.stat().st_size for path in report.glob("search-*.js")), None
    yield "largest trajectory", max(path.stat().st_size for path in (report / "trajectories").iterdir()), None
    yield "the whole report", sum(path.stat().st_size for path in report.rglob("*") if path.is_file()), None


def viewed(run: Path) -> Iterator[tuple[str, float]]:
    """Seconds until `awb view` listens, and until its first page is there."""
    begun = time.perf_counter()
    words = [*AWB, "view", str(run), "--port", "0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as viewer:
        assert viewer.stdout is not None
        address = viewer.stdout.readline().strip()
        yield "`awb view` listens", time.perf_counter() - begun
        begun = time.perf_counter()
        with urllib.request.urlopen(address) as answer:
            assert b'class="headline"' in answer.read()
        yield "its first page is there", time.perf_counter() - begun
        viewer.terminate()  # an interrupt is ignored where the benchmark is a job in the background


def opened(report: Path) -> Iterator[tuple[str, float]]:
    """What is opened, and seconds until it can be used."""
    with Chromium() as browser:
        browser.open("about:blank")
        begun = time.perf_counter()
        browser.open((report / "index.html").as_uri())
        yield "first page loaded", time.perf_counter() - begun
        begun = time.perf_counter()
        browser.open((report / "samples.html").as_uri())
        assert browser.value("document.querySelectorAll('#rows tr').length") > 0
        yield "list loaded and shown", time.perf_counter() - begun
        begun = time.perf_counter()
        browser.value("document.getElementById('words').focus()")
        browser.type("status")
        # The first search loads the texts of all domains.
        browser.value(
            "new Promise((done) => new MutationObserver(done).observe(document.getElementById('told'), {childList: true}))"
        )
        yield "first search in all domains", time.perf_counter() - begun


def main() -> None:
    """Build, open, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows (default: all)")
    parser.add_argument("--keep", type=Path, help="folder for data, run and report")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows, report = run(folder, options.share), folder / "report"
        cost = measure([*AWB, "report", str(folder / "run"), "--output", str(report)])
        print(f"{rows:,} samples, Python {platform.python_version()}, {platform.machine()}\n")
        print("| what | measured | most |\n| --- | ---: | ---: |")
        print(f"| `awb report`, seconds | {cost.seconds:.1f} | {SECONDS:.0f} |")
        print(f"| its processor time, seconds | {cost.cpu:.1f} | |")
        print(f"| its memory at most, MB | {cost.megabytes:.0f} | {MEGABYTES:.0f} |")
        missed = ["seconds"] * (cost.seconds >= SECONDS) + ["memory"] * (cost.megabytes >= MEGABYTES)
        for name, size, most in sizes(report):
            print(f"| {name}, KB | {size / 1000:,.0f} | {f'{most / 1000:,.0f}' if most else ''} |")
            missed += [name] * (most is not None and size >= most)
        for name, seconds in viewed(folder / "run"):
            print(f"| {name}, seconds | {seconds:.2f} | {VIEWED} |")
            missed += [name] * (seconds >= VIEWED)
        for name, seconds in opened(report) if CHROMIUM.exists() else ():
            print(f"| {name}, seconds | {seconds:.2f} | {USABLE} |")
            missed += [name] * (seconds >= USABLE and name == "first page loaded")
    if missed:
        sys.exit(f"more than meant: {', '.join(missed)}")


if __name__ == "__main__":
    main()
