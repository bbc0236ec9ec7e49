"""Reads what the search environment prints: lists of results, extractions of pages, all else.

A result is a line `[n] URL` and labelled lines below it (`Title:`, `Snippet:`, `Date:`), inside a fence or
not. A list may be several lists; the fence, the date and the snippet may be missing, a snippet may run over
lines, labels may be Chinese and colons full-width. A numbered line without a label below it is prose (a
footnote, a list of links), so no prose is a list of results. An extraction begins with what was asked
(URL and goal: known from the action, left out) and has labelled evidence and a summary. Memory answers and
errors are all else: plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from agentworldbench.scoring.metrics.urls import Address, address

LONGEST: Final = 200_000
"""Characters that are read: twelve times the longest known observation."""

_SPACE: Final = r"[ \t\u3000]"
_HEAD: Final = re.compile(
    rf"{_SPACE}*(?:[*>-]{_SPACE}+)?\**(?:(?P<sure>\[\d{{1,6}}\]|【\d{{1,6}}】)|\d{{1,6}}[.)、])\**[:：]?{_SPACE}*(?P<url>.*)"
)
_URL: Final = re.compile(r"<?(?:[a-z][a-z0-9+.-]{0,20}://|www\.).+", re.IGNORECASE)
_LABEL: Final = re.compile(
    rf"{_SPACE}*(?:[*>-]{_SPACE}+)?\**(?:(?P<title>title|标题)|(?P<snippet>snippet|description|摘要|描述)"
    rf"|(?P<date>date|published|日期|发布日期|发布时间)|(?P<url>url|link|网址|链接))\**{_SPACE}*[:：]\**",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(r"[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*")
_NOTHING: Final = re.compile(
    r"\b(?:no|0|zero) (?:search |web |relevant |matching )?(?:results?|matches|pages|documents)\b"
    r"|\bdid not match any\b|\bnothing (?:was )?found\b|(?:未|没有|没)(?:能)?(?:找|搜|检索|搜索|查询)到|无(?:相关|搜索|匹配)?结果|没有(?:相关|搜索|匹配)的?结果",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(r"[ \t]*The useful information in ", re.IGNORECASE)
_PART: Final = re.compile(r"[ \t]*\**(?:Evidence in page|Summary)\**[ \t]*[:：]\**[ \t]*(.*)", re.IGNORECASE)
_EXTRACTION: Final = re.compile(
    rf"^(?:{_ASKED.pattern}|[ \t]*\**Evidence in page\**[ \t]*[:：])", re.I | re.M
)
_LONGEST_QUESTION: Final = 10
"""Lines over which the goal of an extraction may run."""
_LONGEST_NOTICE: Final = 2_000
"""Characters of a text without results that can be a notice of there being none; longer ones are pages."""


@dataclass(frozen=True)
class Entry:
    """One result; `url` as it stands. What is missing is empty."""

    url: str
    title: str
    snippet: str
    date: str

    @cached_property
    def address(self) -> Address:
        """The page."""
        return address(self.url)


@dataclass(frozen=True)
class Found:
    """`entries`: the results in order; `none`: it says that there are none; `text`: where its facts stand."""

    entries: tuple[Entry, ...]
    none: bool
    text: str


def read(text: str) -> Found:
    """What the first `LONGEST` characters of an observation of the search environment hold."""
    text = text[:LONGEST]
    if _EXTRACTION.search(text):
        return Found((), none=False, text="\n".join(_without_question(text.split("\n"))))
    entries, rest = _entries(text.split("\n"))
    notice = entries or len(text) <= _LONGEST_NOTICE
    none = bool(notice) and any(_NOTHING.search(line) for line in rest)
    if entries:
        # The address is the metric of URLs; the numbering is nobody's.
        text = "\n".join(f"{entry.snippet}\n{entry.date}" for entry in entries)
    return Found(entries, none, text)


def _without_question(lines: list[str]) -> Iterator[str]:
    """The lines of an extraction without URL and goal, and without the labels of its parts."""
    skipped = 0
    for index, line in enumerate(lines):
        if index < skipped:
            continue
        if _ASKED.match(line):
            end = next(
                (n for n in range(index, min(index + _LONGEST_QUESTION, len(lines))) if _ends(lines[n])),
                index,
            )
            skipped = end + 1
        elif part := _PART.match(line):
            yield part[1]
        else:
            yield line


def _ends(line: str) -> bool:
    return line.rstrip(" \t:：").endswith("as follows")


@dataclass
class _Open:
    """A result whose lines are being read."""

    url: str
    parts: dict[str, list[str]] = field(default_factory=dict)
    current: str = ""

    def label(self, name: str, text: str) -> None:
        """Begin a part; a second title or snippet is text of the part that is being read."""
        if name == "url":
            self.url = self.url or text
        elif name not in self.parts:
            self.parts[name] = [text]
            self.current = "" if name == "date" else name
        elif self.current:
            self.parts[self.current].append(text)

    def closed(self) -> tuple[Entry | None, list[str]]:
        """The result, and lines behind it that belong to none: without a date, those after a blank line."""
        title, behind = _to_blank(self.parts.get("title", []))
        snippet, date = self.parts.get("snippet", []), "".join(self.parts.get("date", []))
        if "date" not in self.parts:
            snippet, more = _to_blank(snippet)
            behind += more
        if not title and not snippet:
            return None, behind
        return Entry(self.url, " ".join(title).strip(), "\n".join(snippet).strip("\n"), date), behind


def _to_blank(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines up to a blank one (the first may be empty: the text begins below its label), and the others."""
    end = next((n for n, line in enumerate(lines) if n and not line.strip()), len(lines))
    return lines[:end], lines[end:]


def _names_a_page(head: re.Match[str]) -> bool:
    """Whether a numbered line heads a result: `[3]` alone, before one word or a URL; `3.` before a URL only."""
    url = head["url"].strip()
    return _URL.fullmatch(url) is not None or (head["sure"] is not None and len(url.split()) < 2)


def _entries(lines: list[str]) -> tuple[tuple[Entry, ...], list[str]]:
    """All results, and the lines that belong to none."""
    found: list[Entry] = []
    rest: list[str] = []
    open_: _Open | None = None

    def close() -> None:
        if open_ is not None:
            entry, behind = open_.closed()
            rest.extend(behind)
            if entry is not None:
                found.append(entry)

    for line, labelled in zip(lines, _labelled_below(lines), strict=True):
        head = _HEAD.match(line) if labelled else None
        if head and _names_a_page(head):
            close()
            open_ = _Open(head["url"].strip())
        elif _FENCE.fullmatch(line):
            close()
            open_ = None
        elif open_ is None:
            rest.append(line)
        elif label := _LABEL.match(line):
            open_.label(label.lastgroup or "", line[label.end() :].strip())
        elif open_.current:
            open_.parts[open_.current].append(line)
        else:
            rest.append(line)
    close()
    return tuple(found), rest


def _labelled_below(lines: list[str]) -> list[bool]:
    """For each line whether the next one that is not blank bears a label, other than that of a date."""
    labelled = [False] * len(lines)
    below = False
    for index in range(len(lines) - 1, -1, -1):
        labelled[index] = below
        if lines[index].strip():
            label = _LABEL.match(lines[index])
            below = label is not None and label.lastgroup != "date"
    return labelled
