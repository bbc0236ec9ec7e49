"""Reads what a coding agent's tools answer: numbered lines, exit codes, diffs.

In: the text of an observation. Out: multisets of facts as plain text, or the exit code. Numbered lines are
those of file reads (`     1→`, `cat -n`), of searches (`path:12:`, `12:`, also below a line that is a path, `L12:`)
and of messages that name a place (`path:12: in f`). Extraction cuts the first line's indentation, so indentation before a number is
nothing. Every step is linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_HEADING: Final = "Output: "
"""The first line of a command's output stands behind it."""

_DIGIT = re.compile(r"\d")
_LISTED = re.compile(r"\s{0,20}(\d{1,9})(?:→|\t| ?│ ?)(.*)", re.DOTALL)
_AT_PATH = re.compile(r"([^\s:]{1,300}):(\d{1,9}):(.*)", re.DOTALL)
_NEAR_PATH = re.compile(r"(\S{1,300}?)-(\d{1,9})-(.*)", re.DOTALL)
_AT = re.compile(r"([1-9]\d{0,8}):(?!\d\d\b)(.*)", re.DOTALL)
_NEAR = re.compile(r"([1-9]\d{0,8})-(?!\d)(.*)", re.DOTALL)
_PATH = re.compile(r"[\w@./+-]{1,200}\.\w{1,10}|[\w@.+-]{0,60}/[\w@./+-]{1,200}")
"""A line that is nothing but a path: in some searches the heading of its hits."""
_UNDER_FILE = re.compile(r"L(\d{1,9}): ?(.*)", re.DOTALL)


def numbered_lines(text: str) -> Counter[str]:
    """Multiset of (path where one is named, line number, line)."""
    reader = _LineReader()
    for line in text.removeprefix(_HEADING).replace(f"\n{_HEADING}", "\n").split("\n"):
        if line.startswith("File: "):
            reader.path = line[6:].strip()
        elif _DIGIT.search(line):
            reader.read(line)
        if not _NEAR.match(line):
            reader.above = line
    return reader.facts


class _LineReader:
    """Takes the lines of a text that hold a digit, one by one."""

    def __init__(self) -> None:
        self.facts: Counter[str] = Counter()
        self.path = ""
        self.above = ""
        """The last line that shows no surroundings of a hit."""
        self._hit_in = ""
        self._paths: set[str] = set()
        self._searched = False

    def read(self, line: str) -> None:
        if listed := _LISTED.fullmatch(line):
            self._add("", *listed.groups())
        elif (at := _AT_PATH.fullmatch(line)) and ("." in at[1] or "/" in at[1]):
            self._paths.add(at[1])
            self._add(*at.groups())
        elif under := _UNDER_FILE.fullmatch(line):
            self._add(self.path, *under.groups())
        elif plain := _AT.fullmatch(line):
            self._searched = True
            self._add(self._below_heading(), *plain.groups())
        elif self._paths and (near := _NEAR_PATH.fullmatch(line)) and near[1] in self._paths:
            # The lines that grep shows around a match.
            self._add(*near.groups())
        elif self._searched and (around := _NEAR.fullmatch(line)):
            self._add(self._below_heading(), *around.groups())

    def _below_heading(self) -> str:
        if _PATH.fullmatch(self.above):
            self._hit_in = self.above
        return self._hit_in

    def _add(self, path: str, number: str, line: str) -> None:
        self.facts[f"{path}:{number.lstrip('0')}:{line}"] += 1


_CODE: Final = r"(-?\d{1,10}|\(?none\)?|null)"
_EXIT = re.compile(
    r"^[\[(<*# ]{0,4}(?:error: ?)?(?:(?:the |your )?(?:command|process|script|program)\b[^\n]{0,80}?\b)?(?:with )?"
    rf"(?:exit[ _-]?(?:code|status|value)|exited with(?: code| status)?|return[ _-]?code)[*\"'>\])]{{0,3}}(?: was| is)?[ :=]{{1,4}}{_CODE}(?!\w|\.\d)"
    rf"|^<(?:exit_?code|return_?code)>\s?{_CODE}<",
    re.IGNORECASE | re.MULTILINE,
)
_JSON_EXIT = re.compile(rf"\"(?:exit_?code|return_?code|exit_?status)\": ?{_CODE}(?=[,}}\s])", re.IGNORECASE)


def exit_code(text: str) -> str | None:
    """The last exit code that an observation states, as text; None where it states none."""
    patterns = (_JSON_EXIT, _EXIT) if text.startswith(("{", "[{")) else (_EXIT,)
    for pattern in patterns:
        if found := list(pattern.finditer(text)):
            stated = next(group for group in found[-1].groups() if group is not None)
            return stated.strip("()").lower().replace("null", "none")
    return None


_HUNK = re.compile(r"@@ -(\d{1,9}(?:,\d{1,9})?) \+(\d{1,9}(?:,\d{1,9})?) @@")
_CLASSIC = re.compile(r"\d{1,9}(?:,\d{1,9})?[acd]\d{1,9}(?:,\d{1,9})?")
_CLASSIC_START = re.compile(rf"^(?:{_HEADING})?{_CLASSIC.pattern}$\n[<>]", re.MULTILINE)


def diff_facts(text: str) -> Counter[str]:
    """Multiset of a text's hunks: for each its file and ranges, and each line that it adds or removes."""
    if "@@ -" not in text and not _CLASSIC_START.search(text):
        return Counter()
    reader = _DiffReader()
    for line in text.removeprefix(_HEADING).replace(f"\n{_HEADING}", "\n").split("\n"):
        reader.read(line)
    return reader.facts


class _DiffReader:
    """Takes a text line by line; the lines a hunk still expects belong to it, whatever they look like."""

    def __init__(self) -> None:
        self.facts: Counter[str] = Counter()
        self._path = self._old_path = ""
        self._signs = ""
        """Signs of changed lines in the hunk being read; empty outside one."""
        self._left = [0, 0]

    def read(self, line: str) -> None:
        if hunk := _HUNK.match(line):
            self._left = [int(ranges.partition(",")[2] or 1) for ranges in hunk.groups()]
            self._begin("+-", f"@@ {hunk[1]} {hunk[2]}")
        elif _CLASSIC.fullmatch(line):
            self._path, self._left = "", [0, 0]
            self._begin("<>", line)
        elif max(self._left) <= 0 and line.startswith(("--- ", "+++ ")):
            self._file(line)
        elif line and self._signs and line[0] in self._signs:
            self.facts[f"{self._path} {line}"] += 1
            self._left[line[0] == "+"] -= 1
        elif self._signs == "+-" and (not line or line[0] in " \\"):
            if line[:1] != "\\":
                self._left = [self._left[0] - 1, self._left[1] - 1]
        elif line != "---":
            self._signs, self._left = "", [0, 0]

    def _begin(self, signs: str, heading: str) -> None:
        self._signs = signs
        self.facts[f"{self._path} {heading}"] += 1

    def _file(self, line: str) -> None:
        self._signs = ""
        name = line[4:].partition("\t")[0].strip()
        if name != "/dev/null":
            name = name[2:] if name[:2] in {"a/", "b/", "i/", "w/"} else name
        if line.startswith("---"):
            self._old_path = name
        else:
            self._path = self._old_path if name == "/dev/null" else name
