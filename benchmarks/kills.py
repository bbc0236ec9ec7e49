"""Kills `awb run` at random moments with SIGKILL, continues it, and counts what was lost or asked twice.

Own rows, a scripted server on loopback whose log names every request before it is answered, model and judge. A
session is killed after a random number of requests and a random pause, or at a random moment of its start; the
same command continues until the run is whole, then another directory begins, until so many kills were made.
After each kill: what the journals held is still there, byte for byte, and no request of it is ever sent again.
At the end of each directory: `results.json` equals that of a run which nobody disturbed. A reply that had left the
server and was in no journal yet is no finished one: it is asked for again, and counted here.
From the repository root: `python -m benchmarks.kills` (five minutes); `--kills 10` for a look.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import read_log
from tests.helpers.whole_runs import read_results

JOURNALS: Final = ("predictions.jsonl", "verdicts.jsonl")
CONNECTIONS: Final = 8
DELAY: Final = 0.03
"""Seconds that the server takes for an answer."""
MOST_REQUESTS: Final = 60
LONGEST_PAUSE: Final = 0.05
STARTING: Final = (0.1, 1.5)
AT_START: Final = 0.15
"""A session is killed after so many requests at most and so many seconds more; or, with this probability, at a
random moment of these seconds after its start."""


@dataclass
class Found:
    """What the kills brought to light. `working` counts those that came after a request of their session."""

    kills: int = 0
    working: int = 0
    directories: int = 0
    finished: int = 0
    lost: int = 0
    asked_twice: int = 0
    on_the_way: int = 0
    unequal: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing was lost, asked twice or changed."""
        return not (self.lost or self.asked_twice or self.unequal)


@dataclass(frozen=True)
class World:
    """Where the server listens and logs, and the data."""

    url: str
    log: Path
    data: Path

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        """`awb run` into a directory."""
        command = [
            sys.executable,
            "-m",
            "agentworldbench",
            "run",
            "--data",
            str(self.data),
            "--output",
            str(out),
        ]
        command += ["--model", "openai-api/world", "--base-url", self.url, "--display", "none"]
        command += ["--judge", "openai-api/judge", "--judge-base-url", self.url]
        command += ["--max-connections", str(CONNECTIONS)]
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)


@contextmanager
def world(folder: Path, trajectories: int) -> Iterator[World]:
    """Data and a server in a process of its own."""
    make_official_folder(folder / "data", trajectories=trajectories, turns=6, special=False)
    log = folder / "server.jsonl"
    log.touch()
    command = [
        sys.executable,
        "-m",
        "tests.helpers.scripted_server",
        "--log",
        str(log),
        "--delay",
        str(DELAY),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield World(process.stdout.readline().strip(), log, folder / "data")
        finally:
            process.terminate()


def disturb(here: World, out: Path, wanted: Any, left: int, rng: random.Random, found: Found) -> None:
    """One directory: kill and continue until it is whole, or until `left` kills were made and then to its end."""
    found.directories += 1
    kept = dict.fromkeys(JOURNALS, b"")
    finished = set[str]()
    for session in range(1000):
        since = len(read_log(here.log))
        process = here.start(out)
        killed = session < left and _kill(process, here.log, rng)
        process.wait()
        log = read_log(here.log)
        asked = [record["key"] for record in log[since:] if record["event"] == "request"]
        found.asked_twice += sum(key in finished for key in asked)
        found.lost += sum(not _read(out / name).startswith(kept[name]) for name in JOURNALS)
        kept = {name: _read(out / name) for name in JOURNALS}
        keys = {f"chatcmpl-{one['index']}": one["key"] for one in log if one["event"] == "request"}
        finished = {
            keys[json.loads(line)["response_id"]] for some in kept.values() for line in some.splitlines()
        }
        if not killed:
            break
        found.kills += 1
        found.working += bool(asked)
        sent = {one["key"] for one in log[since:] if one["event"] == "reply" and one["outcome"] == "sent"}
        found.on_the_way += len(sent - finished)
    found.finished += len(finished)
    found.unequal += process.returncode != 0 or read_results(out) != wanted


def _kill(process: subprocess.Popen[bytes], log: Path, rng: random.Random) -> bool:
    """Kill a session at a random moment; False where it had ended before."""
    if rng.random() < AT_START:
        time.sleep(rng.uniform(*STARTING))
    else:
        lines, size = rng.randrange(MOST_REQUESTS), log.stat().st_size
        begun = _lines(log, size)
        while process.poll() is None and _lines(log, size) - begun <= 2 * lines:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, LONGEST_PAUSE))
    if process.poll() is not None:
        return False
    process.kill()
    return True


def _lines(log: Path, offset: int) -> int:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read().count(b"\n")


def _read(path: Path) -> bytes:
    """The whole lines of a file."""
    if not path.exists():
        return b""
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1]


def trial(kills: int, seed: int, trajectories: int = 3) -> Found:
    """Make `kills` kills and say what came of them."""
    found, rng = Found(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, world(Path(folder), trajectories) as here:
        whole = Path(folder, "undisturbed")
        if here.start(whole).wait():
            raise RuntimeError("the undisturbed run failed")
        wanted = read_results(whole)
        while found.kills < kills:
            out = Path(folder, f"run-{found.directories}")
            disturb(here, out, wanted, kills - found.kills, rng, found)
            print(f"  {found.kills} kills, {found.directories} directories", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Kill, count, print."""
    parser = argparse.ArgumentParser(description="Kill awb at random moments and continue it.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun = time.perf_counter()
    found = trial(given.kills, given.seed)
    print(
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {time.perf_counter() - begun:.0f} s\n"
    )
    print(
        "| kills | of them while asking | directories | finished replies | lost | asked twice | replies on the way, asked again | results unequal |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    print(
        f"| {found.kills} | {found.working} | {found.directories} | {found.finished} | {found.lost} "
        f"| {found.asked_twice} | {found.on_the_way} | {found.unequal} |"
    )
    if not found.good:
        sys.exit("a finished reply was lost or asked twice, or results differ")


if __name__ == "__main__":
    main()
