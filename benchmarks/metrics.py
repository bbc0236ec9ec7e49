"""What the rule metrics cost: ROUGE-L, masks, all metrics of a run of the official size, each metric by domain.

ROUGE-L stands beside the `rouge-score` package, in one run on the same two texts of 20,000 characters; the values must
be equal. Masks are laid over a megabyte for each task's classes of volatile text. A folder of 2,170 rows with
observations of every shape up to 16 KB is generated (`_rows.scored_size`), damaged observations are stored as the
predictions of a run (`replay/FILE`), and `awb score RUN` computes all metrics of them, on two cores: seconds, CPU seconds and
peak memory of the process and its workers. The last table shows CPU milliseconds a sample. Ends with an error
when ROUGE-L is not 100 times as fast as the package, a mask takes a second a megabyte, or scoring takes 60 seconds
or 500 MB. From the repository root: `python -m benchmarks.metrics` (five minutes, 400 MB on disk; Linux); `--share 0.1`
takes a tenth of the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final

from agentworldbench.dataset import open_dataset
from agentworldbench.prompts import previous_observation, reference_observation
from agentworldbench.records import OFFICIAL_DOMAINS, Sample
from agentworldbench.scoring.metrics import METRICS
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.scoring.metrics.text import rouge_of, tokens
from agentworldbench.scoring.metrics.volatile import Seen, mask
from agentworldbench.sources import resolve_source
from agentworldbench.task import METRIC_NAMES, Task, load_tasks
from benchmarks._observations import OBSERVATIONS, damaged
from benchmarks._rows import scored_size
from benchmarks.startup import AWB
from tests.helpers.observation_texts import words

CHARS: Final = 20_000
FASTER: Final = 100.0
MEGABYTE: Final = 1_000_000
MOST_SECONDS_A_MEGABYTE: Final = 1.0
MOST_SECONDS: Final = 60.0
MOST_MEGABYTES: Final = 500.0
CORES: Final = 2
EVERY: Final = 0.05
"""Seconds between two readings of the memory."""
MEASURED: Final = 25
"""Samples of a domain on which single metrics are timed."""


@dataclass(frozen=True)
class Cost:
    """Of a command: seconds by the clock, CPU seconds, and MB of all its processes together at the peak."""

    seconds: float
    cpu: float
    megabytes: float
    processes: int


def fastest(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the fastest of several calls."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def rouge() -> tuple[list[str], list[str]]:
    """Rows of the table, and what is wrong with them."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    rng = Random(7)
    prose = words(rng, CHARS // 5)[:CHARS]
    log = OBSERVATIONS["terminal"][0](rng, CHARS * 2)[:CHARS]
    lines, wrong = [], []
    for name, reference in (("words", prose), ("a terminal's screen", log)):
        predicted = damaged(reference.replace(" a", "\na"), rng)
        begun = time.process_time()
        theirs = scorer.score(reference, predicted)["rougeL"].fmeasure
        package = time.process_time() - begun
        ours = _ours((reference, predicted))
        seconds = fastest(partial(_ours, (reference, predicted)), 20)
        lines.append(
            f"| {name} | {len(tokens(reference))} | {package:.2f} | {1000 * seconds:.2f} | {package / seconds:,.0f} | {abs(theirs - ours):.0e} |"
        )
        if abs(theirs - ours) > 1e-9 or package < FASTER * seconds:
            wrong.append(
                f"ROUGE-L of {name}: {theirs} by the package, {ours} here, {package / seconds:.0f} times"
            )
    return lines, wrong


def _ours(texts: tuple[str, str]) -> float:
    reference, predicted = texts
    return rouge_of(tokens(reference), tokens(predicted))


def masks() -> tuple[list[str], list[str]]:
    """Rows of the table, and what is wrong with them."""
    lines, wrong = [], []
    for domain, task in load_tasks().items():
        rng = Random(domain)
        text = ""
        while len(text) < MEGABYTE:
            text += rng.choice(OBSERVATIONS[domain])(rng, 16_000) + "\n"
        text, shown = text[:MEGABYTE], text[: MEGABYTE // 5]
        times = "\n".join(f"{n % 24:02d}:{n % 60:02d}:{n // 60 % 60:02d}.{n}" for n in range(66_000))
        costs = [
            fastest(partial(_masked, some, task, shown), 3)
            for some in (text, times[:MEGABYTE], "12:" * (MEGABYTE // 3))
        ]
        lines.append(
            f"| {domain} | {len(task.volatile)} | "
            + " | ".join(f"{1000 * cost:.0f}" for cost in costs)
            + " |"
        )
        wrong += [
            f"masks of {domain}: {cost:.2f} s a MB" for cost in costs if cost >= MOST_SECONDS_A_MEGABYTE
        ]
    return lines, wrong


def _masked(text: str, task: Task, shown: str) -> str:
    return mask(text, task.volatile, Seen(shown))


def prepare(data: Path, replies: Path, share: float) -> int:
    """Write the folder and predictions for it; returns how many rows."""
    rows = scored_size(data, share)
    source = resolve_source(str(data))
    dataset = open_dataset(source.files, source.tasks)
    with replies.open("w", encoding="utf-8") as file:
        for ref in dataset.refs:
            reference = reference_observation(dataset.load(ref), source.tasks[ref.domain])
            tag = source.tasks[ref.domain].prediction_tag
            text = f"<{tag}>\n{damaged(reference, Random(ref.id))}\n</{tag}>"
            file.write(json.dumps({"sample_id": ref.id, "text": text}) + "\n")
    return rows


def watch(command: Sequence[str]) -> Cost:
    """Run a command to its end and add up the memory of its processes as it goes on."""
    begun = time.perf_counter()
    peak, most = 0.0, 0
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            held = [_megabytes(one) for one in _family(process.pid)]
            peak, most = max(peak, sum(held)), max(most, len(held))
            time.sleep(EVERY)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.exit(
                f"{' '.join(command)} ended with {process.returncode}:\n{output.read().decode()[-3000:]}"
            )
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak, most)


def _family(pid: int) -> list[int]:
    """A process and all that it has started, as far as they live."""
    children = defaultdict[int, list[int]](list)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = entry.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        children[int(parent)].append(int(entry.parent.name))
    found = [pid]
    for one in found:
        found += children[one]
    return found


def _megabytes(pid: int) -> float:
    """Memory of a process; a page that several share counts once among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def by_metric(data: Path) -> list[str]:
    """Rows of the table of single metrics: CPU milliseconds a sample by domain."""
    source = resolve_source(str(data))
    dataset = open_dataset(source.files, source.tasks)
    spent: dict[str, dict[str, float]] = defaultdict(dict)
    for domain, task in source.tasks.items():
        refs = [ref for ref in dataset.refs if ref.domain == domain][:MEASURED]
        for ref in refs:
            begun = time.process_time()
            sample = dataset.load(ref)
            own = spent["the row read"]
            own[domain] = own.get(domain, 0.0) + 1000 * (time.process_time() - begun) / len(refs)
            for name, seconds in _times(sample, task).items():
                spent[name][domain] = spent[name].get(domain, 0.0) + 1000 * seconds / len(refs)
    spent["all"] = {
        domain: sum(times.get(domain, 0.0) for times in spent.values()) for domain in source.tasks
    }
    order = ["all", "the row read", "copy-last", *METRIC_NAMES]
    return [
        f"| {name if name not in METRIC_NAMES else f'`{name}`'} | "
        + " | ".join(f"{spent[name][one]:.2f}" if one in spent[name] else "–" for one in OFFICIAL_DOMAINS)
        + " |"
        for name in order
        if name in spent
    ]


def _times(sample: Sample, task: Task) -> dict[str, float]:
    """CPU seconds of each metric, in the order of the task; what several share is paid by the first."""
    times: dict[str, float] = {}
    reference = reference_observation(sample, task)
    prediction = normalise(damaged(reference, Random(sample.id)))
    before = normalise(previous_observation(sample, task) or "")
    facts = Facts(sample, task)
    applicable = []
    for name in task.metrics:
        begun = time.process_time()
        if METRICS[name].applies(facts):
            METRICS[name].score(facts, prediction)
            applicable.append(name)
        times[name] = time.process_time() - begun
    begun = time.process_time()
    for name in applicable:
        if name in task.primary:
            METRICS[name].score(facts, before)
    times["copy-last"] = time.process_time() - begun
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the rule metrics cost.")
    parser.add_argument("--share", type=float, default=1.0, help="part of the rows (default: all)")
    share = parser.parse_args().share
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    print(f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}\n")
    lines, wrong = rouge()
    print(f"| two texts of {CHARS:,} characters | tokens | rouge-score, s | here, ms | times | difference |")
    print("\n".join(["| --- | ---: | ---: | ---: | ---: | ---: |", *lines, ""]))
    lines, slow = masks()
    print("| masks of a megabyte, ms | classes | observations | times | `12:12:` |")
    print("\n".join(["| --- | ---: | ---: | ---: | ---: |", *lines, ""]))
    with tempfile.TemporaryDirectory() as scratch:
        data, replies, run = (Path(scratch, name) for name in ("data", "replies.jsonl", "run"))
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            rows = pool.submit(prepare, data, replies, share).result()
        size = sum(path.stat().st_size for path in data.glob("*.jsonl")) / 1e6
        asked = [
            "--model",
            f"replay/{replies}",
            "--data",
            str(data),
            "--output",
            str(run),
            "--display",
            "none",
        ]
        costs = {
            "`awb run`, `replay/FILE`": watch([*AWB, "run", *asked]),
            "`awb score`": watch([*AWB, "score", str(run)]),
        }
        print(f"| {rows} rows, {size:.0f} MB | seconds | CPU seconds | peak MB | processes |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for name, cost in costs.items():
            print(
                f"| {name} | {cost.seconds:.1f} | {cost.cpu:.1f} | {cost.megabytes:.0f} | {cost.processes} |"
            )
        print(f"\n| CPU ms a sample | {' | '.join(OFFICIAL_DOMAINS)} |")
        print("\n".join(["| --- |" + " ---: |" * len(OFFICIAL_DOMAINS), *by_metric(data)]))
    scored = costs["`awb score`"]
    if scored.seconds >= MOST_SECONDS or scored.megabytes >= MOST_MEGABYTES:
        slow.append(f"scoring took {scored.seconds:.1f} s and {scored.megabytes:.0f} MB")
    if wrong + slow:
        sys.exit("\n".join(wrong + slow))


if __name__ == "__main__":
    main()
