"""The documentation as tests read it: pages with their headings, links, blocks of code, and the commands in them.

In: README.md and docs/. Out: `Page` records. A block in a fence says what it is: in `sh` every line is a command (with `#`
comments, and `\\` at the end of a line that goes on), in `console` the lines behind `$ ` are, in all others none. Code
within prose counts as `Inline`. Commands are split as a shell would, so that what a test runs is what a reader types.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LANGUAGES: Final = frozenset({"sh", "console", "text", "python", "json", "yaml", "html"})
_FENCE: Final = re.compile(r"^ {0,3}(```+)\s*([\w+-]*)")
_LINK: Final = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
_CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A block in a fence; `line` is that of its first line of content."""

    language: str
    line: int
    text: str


@dataclass(frozen=True)
class Command:
    """One command of a page, in words; what a shell does with it (pipes, redirections) is cut off."""

    page: str
    line: int
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """As one types it, in one line."""
        return shlex.join(self.words).replace("'…'", "…")

    @property
    def where(self) -> str:
        """Page and line, for messages."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """One Markdown file, by its path from the repository's root."""

    name: str

    @cached_property
    def lines(self) -> list[str]:
        """All lines of the file."""
        return (ROOT / self.name).read_text(encoding="utf-8").split("\n")

    @cached_property
    def _parts(self) -> tuple[list[tuple[int, str]], list[Block]]:
        prose: list[tuple[int, str]] = []
        blocks: list[Block] = []
        fence, begun, language = "", 0, ""
        for number, line in enumerate(self.lines, 1):
            found = _FENCE.match(line)
            if fence:
                if found and found[1] == fence and not found[2]:
                    blocks.append(Block(language, begun + 1, "\n".join(self.lines[begun : number - 1])))
                    fence = ""
            elif found:
                fence, language, begun = found[1], found[2], number
            else:
                prose.append((number, line))
        assert not fence, f"{self.name}:{begun}: a fence that nothing closes"
        return prose, blocks

    @property
    def blocks(self) -> list[Block]:
        """Blocks of code."""
        return self._parts[1]

    @property
    def prose(self) -> list[tuple[int, str]]:
        """(number, line) of all that is no block of code."""
        return self._parts[0]

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What a link to this page may name behind `#`: headings as GitHub names them, and explicit ids."""
        found: set[str] = set()
        for _, line in self.prose:
            if heading := re.match(r"^#{1,6}\s+(.*)$", line):
                found.add(_unique(slug(heading[1]), found))
            found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        return frozenset(found)

    @property
    def links(self) -> Iterator[tuple[int, str]]:
        """(line, target) of links and pictures."""
        for number, line in self.prose:
            for target in _LINK.findall(_CODE.sub("", line)):
                yield number, target

    @property
    def inline(self) -> Iterator[tuple[int, str]]:
        """(line, code) within prose. Cells of tables hold `|` behind a backslash."""
        for number, line in self.prose:
            for code in _CODE.findall(line):
                yield number, code.replace("\\|", "|")

    @property
    def commands(self) -> Iterator[Command]:
        """Commands in blocks, in order."""
        for block in self.blocks:
            if block.language in ("sh", "console"):
                yield from _commands(self.name, block)


def _unique(name: str, taken: set[str]) -> str:
    number = 1
    unique = name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique


def slug(heading: str) -> str:
    """The id that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def _commands(page: str, block: Block) -> Iterator[Command]:
    begun, text = 0, ""
    for number, line in enumerate(block.text.split("\n"), block.line):
        if not text:
            if block.language == "console" and not line.startswith("$ "):
                continue
            begun, line = number, line.removeprefix("$ ")
        text += line
        if text.endswith("\\"):
            text = text[:-1]
            continue
        for words in _simple(shlex.split(text, comments=True)):
            yield Command(page, begun, words)
        text = ""


def _simple(words: list[str]) -> Iterator[tuple[str, ...]]:
    """The commands of a line; what stands behind a redirection or a pipe is the shell's."""
    current: list[str] = []
    skipping = False
    for word in [*words, "&&"]:
        if word in ("&&", ";", "&"):
            if current:
                yield tuple(current)
            current, skipping = [], False
        elif word == "|" or re.match(r"^\d?>{1,2}", word):
            skipping = True
        elif not skipping:
            current.append(word)


@cache
def pages() -> tuple[Page, ...]:
    """README.md and the pages of docs/."""
    found = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return tuple(map(Page, ["README.md", *found]))
