"""`awb run` against a server that fails, as a log and on a real terminal: what is told, and how the terminal is left."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.helpers.awb_command import LIMIT_S, HereAwb, clean_environment
from tests.helpers.scripted_server import Reply, ScriptedServer, fail_first, late, world_and_judge

HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"
SIZE = (24, 80)
WITH_TERMINAL = """
import os, runpy
os.close(os.open(os.ttyname(0), os.O_RDWR))  # a session's first terminal is the one whose Ctrl-C it hears
runpy.run_module("agentworldbench", run_name="__main__", alter_sys=True)
"""


def words(server: ScriptedServer, *more: str) -> list[str]:
    """A run on six samples, judged by the same server."""
    asked = [
        "--model",
        "openai-api/world",
        "--base-url",
        server.base_url,
        "--judge",
        "openai-api/judge-model",
    ]
    asked += ["--judge-base-url", server.base_url, "--tasks", "swe,mcp", "--limit", "3", "-o", "run"]
    return ["run", *asked, *more]


@pytest.mark.usefixtures("quick_retries")
def test_a_log_of_failures_is_plain_and_ends_with_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    filtered = Reply(content="", finish_reason="content_filter")
    script = fail_first(1, Reply(status=500, error={"message": "\x1b[2J oh\r\n"}), lambda call: filtered)
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    with ScriptedServer(script) as server:
        done = awb(*words(server))
    assert done.code == 0
    assert all(line.isprintable() for line in done.err.splitlines()), "no escape, no carriage return"
    asking, counts, results = done.err.splitlines()[-4:-1]
    assert asking == "Asking for 6 predictions and 6 verdicts."
    assert re.match(r"predictions 6/6 \(6 failed: content_filter 6\) · ", counts)
    assert " · retries 6 (provider_error 6) · " in counts
    assert "left" not in counts
    assert results.startswith("Results: ")
    assert "\x1b" not in done.out


def read_until(terminal: int, wanted: bytes) -> bytes:
    """What comes from a terminal until `wanted` is in it, or the other side has closed it."""
    seen = b""
    while wanted not in seen:
        assert select.select([terminal], [], [], LIMIT_S)[0], seen
        try:
            more = os.read(terminal, 65536)
        except OSError:
            return seen  # EIO: nobody has it open any more
        if not more:
            return seen
        seen += more
    return seen


@pytest.mark.slow
def test_a_block_is_drawn_over_itself_on_a_terminal_without_the_letters_of_a_message(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, SIZE)
    broken = Reply(status=500, error={"message": "模型错误" * 60})
    with ScriptedServer(lambda call: broken) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentworldbench", *words(server)],
            cwd=tmp_path,
            env=clean_environment({"TERM": "xterm", "NO_COLOR": "1", "CI": "", "PYTHONIOENCODING": "ascii"}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            read_until(ours, b"last failed")
            drawn = read_until(ours, HIDDEN[:2] + b"1A") + read_until(ours, b"  time")
        finally:
            process.kill()
            process.wait()
            os.close(ours)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.decode("ascii")).splitlines()
    assert any("u6a21" in line for line in lines)
    assert max(map(len, lines)) <= 79


@pytest.mark.slow
def test_ctrl_c_leaves_a_clean_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, SIZE)
    with ScriptedServer(late(LIMIT_S, world_and_judge)) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", WITH_TERMINAL, *words(server)],
            cwd=tmp_path,
            env=clean_environment({"TERM": "xterm", "NO_COLOR": "1", "CI": ""}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            seen = read_until(ours, b"in flight")
            os.write(ours, b"\x03")
            seen += read_until(ours, b"no such text")
            code = process.wait(LIMIT_S)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
    assert code == 130
    assert seen.rindex(SHOWN) > seen.rindex(HIDDEN), "the cursor is back"
    left = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen[seen.rindex(SHOWN) :].decode()).split("\r\n")
    assert left[0].lstrip("\r").startswith("predictions 0/6 · verdicts 0/6 · ")
    assert left[-3:] == [
        "awb: interrupted; what is done stays, the same command continues, and `awb",
        "score` shows the numbers so far",
        "",
    ]
