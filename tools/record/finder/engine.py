"""A search engine over a corpus: SQLite FTS5, ranked by bm25, snippets by FTS5 itself.

In: pages and queries. Out: ranked `Result`s. FTS5's tokenizer is `porter unicode61`: words are lower case,
without accents, English ones stemmed. Chinese has no blanks between words, so each of its characters is
set between zero-width spaces and thereby a token of its own; a query's Chinese is searched as phrases of
two characters, and the zero-width spaces leave the snippets again. Equal ranks are ordered by URL.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from tools.record.finder.corpus import CHINESE, Page, plain

TOKENIZER = "porter unicode61 remove_diacritics 2"
PER_QUERY = 5
TITLE_WEIGHT = 5.0
SNIPPET_TOKENS = {CHINESE: 60, "en": 30}
ELLIPSIS = " ... "
GAP = "\u200b"
HAN = "\u3400-\u9fff"
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from had has have how i in is it its of on or that the "
        "their this to was were what when where which who why will with",
    )
)
STOP_CHARACTERS = "的了和与及是在有"
PART = re.compile(rf'site:(\S+)|"([^"]+)"|([{HAN}]+)|([^\W_{HAN}]+)')


@dataclass(frozen=True)
class Result:
    """One hit as it is shown."""

    url: str
    title: str
    snippet: str
    date: str


@dataclass(frozen=True)
class Query:
    """A query taken apart: FTS5 phrases, the ones that must occur, and the site it is narrowed to."""

    terms: tuple[str, ...]
    required: tuple[str, ...]
    site: str


def separated(text: str) -> str:
    """`text` with every Chinese character between zero-width spaces."""
    return re.sub(rf"([{HAN}])", rf"{GAP}\1{GAP}", text)


def phrase(text: str) -> str:
    """`text` as a phrase of an FTS5 query."""
    return '"' + " ".join(separated(text.replace('"', " ")).replace(GAP, " ").split()) + '"'


def parse(query: str) -> Query:
    """Words, Chinese pairs, quoted phrases and `site:` of a query, each term once, in order."""
    terms: dict[str, None] = {}
    required: list[str] = []
    site = ""
    for host, quoted, chinese, word in PART.findall(query.lower()):
        if host:
            site = host.strip("/")
        elif quoted:
            required.append(phrase(quoted))
            terms[phrase(quoted)] = None
        elif chinese:
            terms.update(dict.fromkeys(phrase(pair) for pair in pairs(chinese)))
        elif word not in STOP_WORDS and (len(word) > 1 or word.isdigit()):
            terms[phrase(word)] = None
    return Query(tuple(terms), tuple(required), site)


def pairs(run: str) -> list[str]:
    """All neighbouring pairs of characters of a Chinese text, cut at function characters."""
    pieces = [piece for piece in re.split(f"[{STOP_CHARACTERS}]", run) if piece]
    return [
        pair for piece in pieces for pair in ([piece[at : at + 2] for at in range(len(piece) - 1)] or [piece])
    ]


class Counter:
    """Texts in a small index of their own: which of them hold a term?"""

    def __init__(self, texts: Iterable[str]) -> None:
        """Index `texts`; they are numbered from 0."""
        self._base = sqlite3.connect(":memory:")
        self._base.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = '{TOKENIZER}')")
        rows = [(number, separated(text)) for number, text in enumerate(texts)]
        self._base.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
        self._size = len(rows)

    def scores(self, terms: Iterable[str]) -> list[int]:
        """For each text, how many of the different `terms` it holds."""
        scores = [0] * self._size
        for term in terms:
            for (number,) in self._base.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (term,)):
                scores[number] += 1
        return scores

    def close(self) -> None:
        """Free the index."""
        self._base.close()


class Engine:
    """An index over `pages`, in memory."""

    def __init__(self, pages: Iterable[Page]) -> None:
        """Index title and plain text of each page."""
        self.pages = tuple(sorted(pages, key=lambda page: page.url))
        self._base = sqlite3.connect(":memory:")
        self._base.execute(f"CREATE VIRTUAL TABLE pages USING fts5(title, body, tokenize = '{TOKENIZER}')")
        rows = [
            (number, separated(page.title), separated(plain(page.text)))
            for number, page in enumerate(self.pages)
        ]
        self._base.executemany("INSERT INTO pages (rowid, title, body) VALUES (?, ?, ?)", rows)

    def search(self, text: str, limit: int = PER_QUERY) -> list[Result]:
        """The best `limit` pages that hold at least half of the query's terms and all quoted ones."""
        query = parse(text)
        if not query.terms:
            return []
        match = " OR ".join(query.terms)
        found = self._allowed(query)
        ranked = [
            (round(rank, 6), self.pages[number].url, number)
            for number, rank in self._base.execute(
                f"SELECT rowid, bm25(pages, {TITLE_WEIGHT}, 1.0) FROM pages WHERE pages MATCH ?", (match,)
            )
            if number in found
        ]
        return [self._result(number, match) for _, _, number in sorted(ranked)[:limit]]

    def _allowed(self, query: Query) -> set[int]:
        """Numbers of the pages that a query may show, whatever their rank."""
        counts = dict.fromkeys(range(len(self.pages)), 0)
        for term in query.terms:
            for number in self._holding(term):
                counts[number] += 1
        allowed = {number for number, count in counts.items() if 2 * count >= len(query.terms)}
        for term in query.required:
            allowed &= self._holding(term)
        if query.site:
            allowed = {number for number in allowed if query.site in urlsplit(self.pages[number].url).netloc}
        return allowed

    def _holding(self, term: str) -> set[int]:
        rows = self._base.execute("SELECT rowid FROM pages WHERE pages MATCH ?", (term,))
        return {number for (number,) in rows}

    def _result(self, number: int, match: str) -> Result:
        page = self.pages[number]
        ((snippet,),) = self._base.execute(
            "SELECT snippet(pages, 1, '', '', ?, ?) FROM pages WHERE pages MATCH ? AND rowid = ?",
            (ELLIPSIS, SNIPPET_TOKENS[page.language], match, number),
        )
        return Result(page.url, page.title, snippet.replace(GAP, "").strip(), page.date)

    def close(self) -> None:
        """Free the index."""
        self._base.close()


def sqlite_version() -> str:
    """The version of SQLite that does the work."""
    return sqlite3.sqlite_version
