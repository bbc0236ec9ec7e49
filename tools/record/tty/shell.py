"""A real bash on a real pseudo-terminal, driven by keystrokes and read as raw screen text.

In: a home directory, a shown user and host, keystroke strings. Out: what the screen shows since
the action before, beginning with the prompt that was waiting. Nothing sleeps: after every typed
line the driver reads until a prompt stands at the end of the screen (the shell's, the `> ` of an
unfinished command, or a named one of a program). The exception is a time-cut action, whose
meaning is that the screen is read after `CUT_SECONDS` although the command still runs. A program
that fills the screen (a pager) needs `whole`: a small vt100 whose screen is what is read, and every
key string, with Enter or without, waits for a prompt.
The temporary home is shown as `/home/<user>` and the owner columns of `ls -l` as the user, so no
trace of the recording machine reaches the data.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path
from types import TracebackType

from tools.record.tty.screen import plain, render

CUT_SECONDS = 2.0
TIMEOUT_SECONDS = 30.0
ROWS, COLUMNS = 40, 160
WHOLE_ROWS, WHOLE_COLUMNS = 24, 80
LS_OWNER = re.compile(r"^([-dlbcps][-rwxsStT]{9})[.+@]?( +\d+) \S+ +\S+ ", re.MULTILINE)


class Shell:
    """An interactive bash without line editing; use as a context manager."""

    def __init__(
        self, home: Path, user: str, host: str, start: str, prompts: list[str], whole: bool = False
    ) -> None:
        """Start bash in `home/start`; `prompts`: regular expressions of programs' own prompts."""
        self.home, self.user, self.whole = home.resolve(), user, whole
        shell_prompt = rf"^{re.escape(user)}@{re.escape(host)}:[^\n]*\$ \Z"
        self.ready = re.compile("|".join([shell_prompt, r"^> \Z", *prompts]), re.MULTILINE)
        self.screen = ""
        self.shown = 0
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            self._become_bash(f"{user}@{host}:\\w$ ", start)
        size = (WHOLE_ROWS, WHOLE_COLUMNS) if whole else (ROWS, COLUMNS)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self._read_until(self.ready, since=0)

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self.pid, signal.SIGHUP)
        os.close(self.terminal)
        os.waitpid(self.pid, 0)

    def act(self, keys: list[str], cut_after: str | None = None, unprompted: tuple[int, ...] = ()) -> str:
        """Type `keys`, wait, and return the screen text since the last action, blanks at its end cut.

        With `cut_after` (a regular expression) the last line typed starts something that does not
        end soon: the screen is read when `CUT_SECONDS` are over and the expression was seen.
        The key strings numbered in `unprompted` (from 1) are read by a program that says nothing to
        them: their echo is awaited. An empty list waits for a prompt without typing.
        """
        begin = self.screen.rfind("\n", 0, self.shown) + 1
        pieces = [
            (line, number in unprompted)
            for number, text in enumerate(keys, 1)
            for line in text.splitlines(keepends=True)
        ]
        for number, (piece, silent) in enumerate(pieces, 1):
            if cut_after is not None and number == len(pieces):
                self._type_and_cut(piece, re.compile(cut_after, re.MULTILINE))
            else:
                self._type(piece, silent)
        if not pieces:
            self._read_until(self.ready, since=begin)
        self.shown = len(self.screen)
        if self.whole:
            return self._public(render(self.screen, WHOLE_ROWS, WHOLE_COLUMNS))
        return self._public(self.screen[begin:]).rstrip()

    def _become_bash(self, prompt: str, start: str) -> None:
        environment = {
            "HOME": str(self.home),
            "USER": self.user,
            "LOGNAME": self.user,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "SHELL": "/bin/bash",
            "TERM": "vt100" if self.whole else "dumb",
            "LC_ALL": "C",
            "TZ": "UTC",
            "PS1": prompt,
            "PS2": "> ",
            "HISTFILE": "/dev/null",
        }
        try:
            os.chdir(self.home / start)
            os.execvpe("bash", ["bash", "--noprofile", "--norc", "--noediting", "-i"], environment)
        finally:
            os._exit(127)

    def _type(self, piece: str, silent: bool = False) -> None:
        """Type one line or control key and wait for a prompt; text without Enter: for its echo."""
        before = len(self.screen)
        self._send(piece)
        finished = not silent and (self.whole or piece.endswith("\n") or piece == "\x03")
        self._read_until(self.ready if finished else re.compile(re.escape(piece) + r"\Z"), since=before)

    def _type_and_cut(self, piece: str, expected: re.Pattern[str]) -> None:
        before, deadline = len(self.screen), time.monotonic() + CUT_SECONDS
        self._send(piece)
        self._read_until(expected, since=before)
        while (left := deadline - time.monotonic()) > 0:
            self._read_some(left)

    def _send(self, text: str) -> None:
        os.write(self.terminal, text.replace(f"/home/{self.user}", str(self.home)).encode())

    def _read_until(self, pattern: re.Pattern[str], since: int) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not pattern.search(self._text(since)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited for {pattern.pattern!r}, screen is {self.screen[since:]!r}")
            self._read_some(1.0)

    def _read_some(self, seconds: float) -> None:
        """Append what arrives within `seconds`; all our texts are ASCII, so no character is torn."""
        if select.select([self.terminal], [], [], seconds)[0]:
            chunk = os.read(self.terminal, 65536).decode("ascii")
            self.screen = (self.screen + chunk).replace("\r\n", "\n")

    def _text(self, since: int) -> str:
        return plain(self.screen[since:]) if self.whole else self.screen[since:]

    def _public(self, text: str) -> str:
        text = text.replace(str(self.home), f"/home/{self.user}")
        return LS_OWNER.sub(rf"\1\2 {self.user} {self.user} ", text)
