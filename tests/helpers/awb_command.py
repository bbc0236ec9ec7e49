"""Runs `awb` for tests: in a subprocess as users do, or in this process where that is enough.

In: the words after `awb`, a working directory, variables on top of a clean environment. Out:
exit code and both streams. No key, proxy or hub setting of the machine reaches the command, so a
test cannot depend on one and cannot leave the loopback by mistake.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentworldbench.cli.main import main

LIMIT_S = 100.0
_FOREIGN = re.compile(
    r"(_API_KEY|_TOKEN)$|^(HF_|AWB_|OPENAI_|ANTHROPIC_|LITELLM_)|_proxy$|^(COLUMNS|LINES|FORCE_COLOR|NO_COLOR)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Done:
    """What a finished command left."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line that begins with `awb: `; a traceback or a second such line fails the test."""
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("awb: ")]
        assert len(lines) == 1, self.err
        assert self.err.splitlines()[-1] == lines[0], self.err
        return lines[0]

    @property
    def only_complaint(self) -> str:
        """The complaint, which is all that was printed."""
        assert self.out == ""
        assert self.err == self.complaint + "\n"
        return self.complaint


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without keys, proxies and settings of hubs and terminals, then `extra`."""
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.search(name)}
    return kept | {"NO_PROXY": "*", "PYTHONIOENCODING": "utf-8"} | dict(extra or {})


def run_awb(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Done:
    """`awb WORDS…` as a process of its own."""
    command = [sys.executable, "-m", "agentworldbench", *map(str, words)]
    done = subprocess.run(
        command,
        cwd=cwd,
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
    )
    return Done(done.returncode, done.stdout, done.stderr)


class HereAwb:
    """`awb WORDS…` inside this process; made by a test module's own `awb` fixture."""

    def __init__(
        self, cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._patch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(cwd)
        for name in set(os.environ) - set(clean_environment()):
            monkeypatch.delenv(name)

    def __call__(self, *words: str | Path) -> Done:
        self._patch.setattr(sys, "argv", ["awb", *map(str, words)])
        self._capsys.readouterr()
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        out, err = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)
