"""Runs `awb` for tests: in a subprocess as users do, or in this process where that is enough.

In: the words after `awb`, a working directory, variables on top of a clean environment. Out:
exit code and both streams. No key, proxy or hub setting of the machine reaches the command, so a
test cannot depend on one and cannot leave the loopback by mistake.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from agentworldbench.cli import main as cli

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


_IN_TURN = """
import json, sys
from agentworldbench.cli.main import main
for words in json.loads(sys.argv.pop()):
    sys.argv[:] = ["awb", *words]
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    for stream in (sys.stdout, sys.stderr):
        stream.write(f"{END}{code}{END}")
        stream.flush()
"""
_END = "\x1d"


def run_awb_in_turn(
    *commands: Iterable[str | Path], cwd: Path, env: Mapping[str, str] | None = None, before: str = ""
) -> list[Done]:
    """Several commands, one after the other, in one process of their own, after the Python lines `before`.

    For what needs a process that has imported nothing yet, or variables that libraries read at import.
    """
    program = f"{before}\nEND = {_END!r}\n{_IN_TURN}"
    words = [list(map(str, command)) for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(words)],
        cwd=cwd,
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    out, err = done.stdout.split(_END), done.stderr.split(_END)
    assert len(out) == len(err) == 2 * len(words) + 1, (done.stdout, done.stderr)
    assert out[-1] == err[-1] == "", "after the last command"
    return [Done(int(out[n + 1]), out[n], err[n]) for n in range(0, 2 * len(words), 2)]


@cache
def _built() -> Any:
    """The command line. Typer would build it anew for every call, which takes longer than many a call."""
    return typer.main.get_command(cli.app)


class HereAwb:
    """`awb WORDS…` inside this process; made by a test module's own `awb` fixture."""

    def __init__(
        self, cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._patch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(cli, "app", _built())
        for name in set(os.environ) - set(clean_environment()):
            monkeypatch.delenv(name)

    def __call__(self, *words: str | Path) -> Done:
        self._patch.setattr(sys, "argv", ["awb", *map(str, words)])
        self._capsys.readouterr()
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        try:
            with pytest.raises(SystemExit) as ended:
                cli.main()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        out, err = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)
