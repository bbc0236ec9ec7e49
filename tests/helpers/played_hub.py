"""`awb` in processes of its own against a loopback hub that holds the official file names, with a cache of its own.

In: a folder of files. Out: `Played`: commands, what they left in the cache, what the hub was asked. The
processes do not wait between attempts; they are processes because huggingface_hub reads HF_ENDPOINT and
its cache folder at import.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentworldbench.sources import OFFICIAL_REPOSITORY, OFFICIAL_REVISION

from .awb_command import Done, clean_environment
from .loopback_hub import LoopbackHub
from .official_folder import DOMAINS

NAMES: Final = [f"{domain}_test.jsonl" for domain in DOMAINS]
NOTE: Final = f"agentworldbench-{OFFICIAL_REVISION}.json"
IMPATIENT: Final = "import time; time.sleep = lambda seconds: None"
"""No waits between attempts, neither our own nor the hub library's."""
AT_ONCE: Final = "import time\ndef sleep(seconds): raise AssertionError('waited')\ntime.sleep = sleep"
"""Whoever waits between attempts ends with a traceback."""
SMALL_DISK: Final = f"{IMPATIENT}; import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))"
"""The system refuses to write more than 4,000 bytes to a file."""


@dataclass(frozen=True)
class Played:
    """A hub, what it holds, and a cache of its own."""

    hub: LoopbackHub
    served: Path
    home: Path
    cwd: Path

    def start(self, *words: str, before: str = IMPATIENT, **variables: str) -> subprocess.Popen[str]:
        """Begin `awb WORDS…`, after the Python statements `before`, with these variables on top."""
        env = self.hub.environment(self.home) | {"AWB_CACHE": str(self.home / "awb")} | variables
        return subprocess.Popen(
            [sys.executable, "-c", f"{before}\nfrom agentworldbench.cli.main import main; main()", *words],
            cwd=self.cwd,
            env=clean_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def awb(self, *words: str, before: str = IMPATIENT, **variables: str) -> Done:
        return finished(self.start(*words, before=before, **variables))

    @property
    def cache(self) -> Path:
        return self.home / "hub" / f"datasets--{OFFICIAL_REPOSITORY.replace('/', '--')}"

    def cached(self, name: str) -> Path:
        return self.cache / "snapshots" / OFFICIAL_REVISION / name

    def in_the_way(self) -> set[str]:
        """Names in the cache that are no whole file's: the beginnings of downloads."""
        return {path.name for path in self.cache.glob("**/*") if path.name.endswith((".incomplete", ".part"))}

    def wait_for_stall(self) -> None:
        """Returns when the hub has sent the scripted part of a file."""
        assert self.hub.script.stalled.wait(60)

    def tamper(self, name: str) -> str:
        """Change a byte of what the cache holds; the SHA-256 of what it holds now."""
        blob = self.cached(name).resolve()
        blob.write_bytes(blob.read_bytes()[:-1] + b" ")
        return sha256_of(blob)

    def asked(self, method: str) -> list[str]:
        return [request.path.rpartition("/")[2] for request in self.hub.requests if request.method == method]


@contextmanager
def playing(served: Path, tmp_path: Path, lfs_suffixes: tuple[str, ...] = (".jsonl",)) -> Iterator[Played]:
    """A hub that serves this folder as the pinned revision."""
    (tmp_path / "cwd").mkdir(exist_ok=True)
    with LoopbackHub(served, commit=OFFICIAL_REVISION, lfs_suffixes=lfs_suffixes) as hub:
        yield Played(hub, served, tmp_path / "home", tmp_path / "cwd")


def finished(process: subprocess.Popen[str]) -> Done:
    """What a process left, when it has ended."""
    try:
        out, err = process.communicate(timeout=100)
    finally:
        process.kill()
    return Done(process.returncode, out, err)


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
