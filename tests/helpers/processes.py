"""`awb run` as a process of its own that a test may stop, starve or cut off.

In: a scripted server, data, flags, and what the process shall suffer (limits, closed streams, a program
in place of the command). Out: a `subprocess.Popen` whose environment holds no setting of the machine.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .awb_command import clean_environment
from .scripted_server import ScriptedServer

LIMIT_S = 90.0
COMMAND = "from agentworldbench.cli.main import command; command()"
"""What a program ends with that prepares something for `awb`."""


@dataclass(frozen=True)
class Ended:
    """What a process left."""

    code: int
    out: str
    err: str


def flags(server: ScriptedServer, data: Path, output: Path, scheme: str = "openai-api") -> list[str]:
    """Model and judge on `server`."""
    return [
        *("--model", f"{scheme}/world", "--base-url", server.base_url),
        *("--judge", f"{scheme}/judge", "--judge-base-url", server.base_url),
        *("--data", str(data), "--output", str(output)),
    ]


def start(
    words: Iterable[str],
    cwd: Path,
    *,
    program: str = "",
    env: Mapping[str, str] | None = None,
    prepare: Callable[[], None] | None = None,
    **streams: Any,
) -> subprocess.Popen[str]:
    """`awb run WORDS…`, after the lines of `program`; `prepare` is called in the child before it begins."""

    def begin() -> None:
        # A test run in the background of a shell may have SIGINT ignored, which children inherit.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if prepare is not None:
            prepare()

    how = ["-c", f"{program}\n{COMMAND}"] if program else ["-m", "agentworldbench"]
    key = {"OPENAI_API_KEY": "sk-for-tests-0123", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.Popen(
        [sys.executable, *how, "run", *words],
        cwd=cwd,
        env=clean_environment(key | dict(env or {})),
        encoding="utf-8",
        preexec_fn=begin,
        **pipes,
    )


def ended(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> Ended:
    """Wait for the end; a process that does not come to one fails the test."""
    try:
        out, err = process.communicate(timeout=limit_s)
    finally:
        process.kill()
    return Ended(process.returncode, out or "", err or "")


def few_files(soft: int, hard: int) -> Callable[[], None]:
    """A limit of open files for a child."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def small_disk(size: int) -> Callable[[], None]:
    """No file of a child may grow beyond `size` bytes: what a full disk does to it, in the middle of a record."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
