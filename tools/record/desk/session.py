"""A small desktop of its own for every trajectory: X server, D-Bus, window manager, panel, programs.

In: the user's name and files, and the programs to open. Out: the nodes on the screen, and xdotool
steps carried out. Nothing of the machine shows: the home is a real, new /home/<user>, settings
and fonts are our own, the data folders hold only what the programs need, and all of it runs as the
user `nobody` (the programs warn when run by the superuser, and a folder can be read-only in earnest).
So the recorder itself needs root. One desktop at a time: a lock makes a second recorder wait.
Nothing sleeps to wait for an effect: a reading counts once the tree was equal `READINGS` times in a
row, and a turn may name what must be on the screen by then.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from tools.record.desk import settings, tree
from tools.record.desk.actions import REST, Steps

NEEDED = ("Xvfb", "xdotool", "dbus-daemon", "openbox", "xfce4-panel", "mousepad", "galculator", "thunar")
NOBODY = 65534
READINGS, BRIEF_READINGS, PAUSE_SECONDS, REST_SECONDS = 5, 3, 0.2, 60.0
DEADLINE_SECONDS = 60.0
PR_SET_CHILD_SUBREAPER = 36
X_SOCKETS = Path("/tmp/.X11-unix")
READER = Path(__file__).with_name("reader.py")
SETUP = "tools/record/setup/os.sh"


class DesktopError(RuntimeError):
    """The desktop cannot be started, or does not show what the script expects."""


def missing() -> str | None:
    """Why no desktop can be started here, in one line; None when all is there."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    bindings = ["/usr/bin/python3", "-c", "import gi; gi.require_version('Atspi', '2.0')"]
    if absent or subprocess.run(bindings, capture_output=True).returncode:
        return f"not installed: {', '.join(absent) or 'AT-SPI for Python'}; run {SETUP} as root"
    return None if os.geteuid() == 0 else "the desktop needs root: it makes /home/<user> and runs as nobody"


class Desktop:
    """A running desktop; use as a context manager."""

    def __init__(self, user: str, files: dict[str, dict[str, Any]], programs: list[dict[str, Any]]) -> None:
        if reason := missing():
            raise DesktopError(reason)
        self.home = Path("/home", user)
        self.files, self.programs = files, programs
        self.children: list[subprocess.Popen[str]] = []
        self.tree: list[tree.Node] = []

    def __enter__(self) -> Desktop:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.lock = _locked(Path(tempfile.gettempdir(), "awb-desktop.lock"))
        self.base = Path(tempfile.mkdtemp(prefix="awb-desktop"))
        try:
            self._lay_out()
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def act(self, steps: Steps, shows: str | None = None, gone: str | None = None) -> None:
        """Carry out `steps` and wait until the screen rests and meets both expectations.

        `shows` and `gone` are `tag|label`: what must, and what must not, be on the screen.
        """
        for number, step in enumerate(steps):
            if step == [REST]:
                self._settle()
            else:
                if number:
                    self._read(BRIEF_READINGS)  # a busy program must not lose the step before
                self._run("xdotool", *step)
        self._settle(shows, gone)

    def _settle(self, shows: str | None = None, gone: str | None = None) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            self.tree = self._read()
            if (not shows or self._has(shows)) and not (gone and self._has(gone)):
                return
            if time.monotonic() > deadline:
                table = tree.long_table(self.tree)
                raise DesktopError(f"expected {shows!r}, and {gone!r} gone; on the screen:\n{table}")

    def _has(self, expected: str) -> bool:
        tag, label = expected.split("|")
        try:
            return bool(tree.find(self.tree, tag, label))
        except LookupError:
            return False

    def _read(self, readings: int = READINGS) -> list[tree.Node]:
        """The screen, once it was the same in so many readings in a row."""
        options = [str(value) for value in (readings, PAUSE_SECONDS, REST_SECONDS)]
        return tree.nodes(json.loads(self._run("/usr/bin/python3", str(READER), *options)))

    def _lay_out(self) -> None:
        """Home and settings, owned by the user that everything runs as; the X server's socket folder."""
        if not X_SOCKETS.exists():
            X_SOCKETS.mkdir()
            X_SOCKETS.chmod(0o1777)
        if self.home.is_dir() and self.home.stat().st_uid == NOBODY:
            shutil.rmtree(self.home)  # left by a recorder that was killed: only recorders give it that owner
        self.home.mkdir()
        settings.write_files(self.home, self.files)
        settings.write_settings(self.base)
        for path in [self.home, self.base, *self.home.rglob("*"), *self.base.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def _start(self) -> None:
        self.environment = settings.environment(self.home, self.base)
        screen = ["-screen", "0", "1920x1080x24", "-nolisten", "tcp", "-noreset"]
        display = self._spawn("Xvfb", "-displayfd", "1", *screen, announces=True)
        self.environment["DISPLAY"] = f":{display}"
        bus = self._spawn("dbus-daemon", "--session", "--nofork", "--print-address=1", announces=True)
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = bus
        self._spawn("openbox")
        self._spawn("xfce4-panel", "--disable-wm-check")
        self._settle(shows="push-button|Files")
        for program in self.programs:
            self._spawn(*program["run"])
            self._settle(shows=f"frame|{program['title']}")

    def _command(self, *command: str) -> list[str]:
        user = f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"
        return ["setpriv", *user, "--pdeathsig=TERM", *command]

    def _spawn(self, *command: str, announces: bool = False) -> str:
        """Start a program that stays; with `announces`, the line that it prints when it is up."""
        log = (self.base / "log").open("a")
        child = subprocess.Popen(
            self._command(*command),
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if announces else log,
            stderr=log,
            text=True,
        )
        log.close()
        self.children.append(child)
        line = child.stdout.readline().strip() if child.stdout else ""
        if announces and not line:
            raise DesktopError(f"{command[0]} did not start: {(self.base / 'log').read_text()[-300:]}")
        return line

    def _run(self, *command: str) -> str:
        """Run a short program in the session and return what it printed."""
        call = self._command(*command)
        done = subprocess.run(
            call, env=self.environment, cwd="/", capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            raise DesktopError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def _end(self) -> None:
        """End the programs, last started first (the bus takes its own services along); remove the files."""
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout:
                child.stdout.close()
        _reap(10.0)
        shutil.rmtree(self.base, ignore_errors=True)
        if self.home.is_dir() and self.home.stat().st_uid == NOBODY:
            shutil.rmtree(self.home, ignore_errors=True)
        self.lock.close()


def _locked(path: Path) -> TextIO:
    """The lock file, held until it is closed."""
    file = path.open("a")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _reap(seconds: float) -> None:
    """Wait for the services that the bus started: they end with it, and come to us as orphans."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.02)
