"""The tools of a coding agent on a copy of one of our small repositories, really executed.

In: a repository directory, the path it is shown under, tool calls. Out: the observation text of
each call. File reads are numbered (`     1→text`), commands answer in an envelope of labelled
parts, edits show the lines around them. Commands run in bash in the copy with a fixed small
environment; the real directory is replaced by the shown one in both directions, so no trace of
the recording machine reaches the data. Failures of a tool are answers, never exceptions.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHELL_SECONDS = 60
CONTEXT_LINES = 2
PROGRAMS = {"python": "", "python3": "", "pytest": " -m pytest", "ruff": " -m ruff"}
MOST_RESULTS = 10


class ToolError(Exception):
    """A call that cannot be done; its text becomes the observation."""


@dataclass(frozen=True)
class CommandResult:
    """What a shell command gave, paths already as shown."""

    command: str
    directory: str
    output: str
    error: str
    exit_code: int


class Workspace:
    """A copy of `source` in `directory`, shown to the agent under the path `shown`."""

    def __init__(self, source: Path, directory: Path, shown: str) -> None:
        """Copy the repository and put this interpreter, its pytest and its ruff on the path."""
        directory = directory.resolve()
        self.root = directory / source.name
        self.shown = shown
        self.programs = directory / "bin"
        shutil.copytree(source, self.root, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        self.programs.mkdir()
        for name, module in PROGRAMS.items():
            wrapper = self.programs / name
            wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n', encoding="utf-8")
            wrapper.chmod(0o755)

    def run(self, command: str, directory: str | None = None) -> CommandResult:
        """Run `command` in bash; a missing directory is a `ToolError`."""
        shown = directory or self.shown
        place = self._path(shown)
        if not place.is_dir():
            raise ToolError(f"directory not found: {shown}")
        done = subprocess.run(
            ["bash", "-c", command.replace(self.shown, str(self.root))],
            cwd=place,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SHELL_SECONDS,
        )
        output, error = (self._public(text).rstrip() for text in (done.stdout, done.stderr))
        return CommandResult(command, shown, output, error, done.returncode)

    def read(self, path: str, offset: int = 1, limit: int | None = None) -> str:
        """The numbered lines `offset` .. `offset + limit - 1` of a file."""
        lines = self._text(path).splitlines()
        end = len(lines) if limit is None else min(len(lines), offset + limit - 1)
        if offset > len(lines):
            raise ToolError(f"line {offset} is behind the end of {path} ({len(lines)} lines)")
        return numbered(lines, offset, end)

    def edit(self, path: str, old_string: str, new_string: str) -> str:
        """Replace the only occurrence of `old_string`; show the lines around the change."""
        text = self._text(path)
        count = text.count(old_string)
        if old_string == new_string:
            raise ToolError(f"old_string and new_string are the same. {path} was not changed.")
        if count == 0:
            raise ToolError(f"old_string does not occur in {path}. The file was not changed.")
        if count > 1:
            raise ToolError(f"old_string occurs {count} times in {path}, not once. The file was not changed.")
        self._path(path).write_text(text.replace(old_string, new_string), encoding="utf-8")
        first = text[: text.index(old_string)].count("\n") + 1
        last = first + new_string.rstrip("\n").count("\n")
        lines = self._text(path).splitlines()
        begin, end = max(1, first - CONTEXT_LINES), min(len(lines), last + CONTEXT_LINES)
        return f"Edited {path}. Lines {begin} to {end} are now:\n{numbered(lines, begin, end)}"

    def write(self, path: str, content: str) -> str:
        """Write a whole file, directories included."""
        place = self._path(path)
        action = "Replaced" if place.exists() else "Created"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        return f"{action} {path} with {len(content.splitlines())} lines."

    def grep(self, pattern: str, path: str | None = None) -> str:
        """`file:line:text` of all lines of the Python files below `path` that match `pattern`."""
        start = self._path(path or self.shown)
        files = [start] if start.is_file() else sorted(start.rglob("*.py"))
        matches = [
            f"{file.relative_to(self.root)}:{number}:{line}"
            for file in files
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
            if re.search(pattern, line)
        ]
        return "\n".join([f"{len(matches)} matching lines for {pattern}", *matches])

    def list_directory(self, path: str) -> str:
        """Names in a directory, directories first and with a slash."""
        place = self._path(path)
        if not place.is_dir():
            raise ToolError(f"directory not found: {path}")
        entries = sorted(place.iterdir(), key=lambda entry: (entry.is_file(), entry.name))
        names = [entry.name + ("/" if entry.is_dir() else "") for entry in entries]
        return "\n".join([f"{len(names)} entries in {path}", *names])

    def todo(self, todos: list[dict[str, Any]]) -> str:
        """A notice on the agent's own list; nothing else happens."""
        states = [todo["status"] for todo in todos]
        counts = [states.count(state) for state in ("completed", "in_progress", "pending")]
        notice = "Todo list saved: {} done, {} in progress, {} open. Keep it current as you go on."
        return notice.format(*counts)

    def web_search(self, query: str, max_results: int = 5) -> str:
        """Always a failure of the service behind the tool: of the arguments, else there is none."""
        if not 1 <= max_results <= MOST_RESULTS:
            reason = f"{max_results} is not in the range 1 to {MOST_RESULTS}"
            status, error = 422, {"type": "invalid_request", "field": "max_results", "reason": reason}
        else:
            status, error = 503, {"type": "unavailable", "reason": "no search service in this sandbox"}
        return f"Search: {query}\nAPI Error: {status} {json.dumps({'error': error})}"

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.programs}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.programs.parent),
            "TMPDIR": str(self.programs.parent),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "80",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "RUFF_NO_CACHE": "true",
        }

    def _path(self, shown: str) -> Path:
        """The real path of a shown one; absolute paths outside the workspace are refused."""
        if not shown.startswith("/"):
            return self.root / shown
        if not Path(shown).is_relative_to(self.shown):
            raise ToolError(f"{shown} is outside of {self.shown}")
        return self.root / Path(shown).relative_to(self.shown)

    def _text(self, path: str) -> str:
        place = self._path(path)
        if not place.is_file():
            raise ToolError(f"file not found: {path}")
        return place.read_text(encoding="utf-8")

    def _public(self, text: str) -> str:
        return text.replace(str(self.root), self.shown)


def numbered(lines: list[str], begin: int, end: int) -> str:
    """Lines `begin` to `end` (1-based, both included) with their numbers and an arrow."""
    return "\n".join(f"{number:6d}→{lines[number - 1]}" for number in range(begin, end + 1))
