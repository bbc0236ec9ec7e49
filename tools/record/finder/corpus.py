"""The pages of the `search` domain: read from `corpus/*.yaml`, cut into passages and sentences.

In: one YAML file a site (`site`, `name`, `language`, `pages` with path, title, date, Markdown text and,
where a page cannot be read, the `status` its server answers). Out: `Page`s, the plain text that the engine
indexes, and the passages (paragraph, list or table, with the heading above it) that the extractor scores.
A page's Markdown is simple: `#` headings, paragraphs, `- ` lists (an item a line) and tables, with blank
lines between.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
CHINESE = "zh"
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9“\"(])|(?<=[。！？])")
RULER = re.compile(r"\|[ :|-]+\|")


@dataclass(frozen=True)
class Page:
    """One page; `date` is as a search result shows it, `status` what its server answers to a reader."""

    url: str
    title: str
    date: str
    language: str
    text: str
    status: str = "200 OK"


@dataclass(frozen=True)
class Site:
    """All pages under one host, in the order of the file."""

    host: str
    name: str
    pages: tuple[Page, ...]


@dataclass(frozen=True)
class Passage:
    """A block of a page that is no heading, and the heading above it (empty before the first)."""

    heading: str
    text: str


def load_sites(names: list[str], corpus: Path = CORPUS) -> list[Site]:
    """The sites of the files `<name>.yaml`, in the order of `names`."""
    return [load_site(corpus / f"{name}.yaml") for name in names]


def load_site(path: Path) -> Site:
    """One site; a page's `language` may differ from the site's."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    base = document["site"]
    pages = tuple(
        Page(
            url=base + page["path"],
            title=page["title"],
            date=page.get("date", "N/A"),
            language=page.get("language", document["language"]),
            text=unwrapped(page["text"]),
            status=page.get("status", "200 OK"),
        )
        for page in document["pages"]
    )
    return Site(urlsplit(base).netloc, document["name"], pages)


def address(url: str) -> str:
    """`url` in the form under which pages are looked up: scheme, escapes, fragment and last slash aside."""
    parts = urlsplit(url.strip())
    path = unquote(parts.path).rstrip("/")
    return f"{parts.netloc.lower()}{path}{'?' + parts.query if parts.query else ''}"


def blocks(text: str) -> list[str]:
    """The blocks of a Markdown text, parted by blank lines."""
    return [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]


def unwrapped(text: str) -> str:
    """`text` with each paragraph on one line, as a browser gives it; lists and tables as they are."""
    return "\n\n".join(
        block if block.startswith(("- ", "|")) else " ".join(block.split("\n")) for block in blocks(text)
    )


def passages(text: str) -> list[Passage]:
    """The passages of a page in page order."""
    heading, found = "", []
    for block in blocks(text):
        if block.startswith("#"):
            heading = block
        else:
            found.append(Passage(heading, block))
    return found


def table(block: str) -> list[list[str]]:
    """The rows of a Markdown table as cells, header first, without the ruler; empty if it is no table."""
    lines = block.split("\n")
    if not all(line.startswith("|") for line in lines):
        return []
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if not RULER.fullmatch(line.strip())
    ]


def plain(text: str) -> str:
    """A page as running text in one line: heading marks, list marks, table lines and rulers removed."""
    lines = []
    for block in blocks(text):
        if rows := table(block):
            lines += [" ".join(row) for row in rows]
        else:
            lines += [line.removeprefix("- ").lstrip("# ") for line in block.split("\n")]
    return " ".join(line.strip() for line in lines)


def sentences(block: str) -> list[str]:
    """The sentences of a paragraph; each item of a list is cut into sentences of its own."""
    return [
        sentence.strip()
        for line in block.split("\n")
        for sentence in SENTENCE.split(line.removeprefix("- "))
        if sentence.strip()
    ]
