"""What a page says on a goal, by rule: the passages that fit best, and a summary of their sentences.

In: a page and a goal in words. Out: evidence (Markdown of the page, in page order) and summary. A passage's
score is the number of different words of the goal (Chinese: pairs of characters) that it or its
heading holds, stemmed like the engine's. Evidence: of the passages with at least half of the best score the
best `MAX_PASSAGES`. Summary: of their sentences and table rows with the most words of the goal the best
`MAX_SENTENCES`; a table none of whose rows stands out is one sentence that names its rows and columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.record.finder.corpus import CHINESE, Page, Passage, passages, sentences, table
from tools.record.finder.engine import Counter, parse

MAX_PASSAGES = 3
MAX_SENTENCES = 3
NOTHING = {
    "en": ("No passage of the page fits the goal.", "The page holds no information on the goal."),
    CHINESE: ("页面中没有与目标相符的段落。", "该页面没有与目标有关的信息。"),
}


@dataclass(frozen=True)
class Extract:
    """Both parts of an extraction."""

    evidence: str
    summary: str


def extract(page: Page, goal: str) -> Extract:
    """Evidence and summary of `page` for `goal`."""
    terms = parse(goal).terms
    found = best_passages(passages(page.text), terms)
    if not found:
        return Extract(*NOTHING[page.language])
    return Extract(evidence(found), summary(found, terms, page.language))


def score(texts: list[str], terms: tuple[str, ...]) -> list[int]:
    """How many of `terms` each text holds."""
    counter = Counter(texts)
    try:
        return counter.scores(terms)
    finally:
        counter.close()


def best(scores: list[int], floor: int, limit: int) -> list[int]:
    """Numbers of the `limit` highest scores of at least `floor`, the earlier first on ties, ascending."""
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    return sorted(number for number in order[:limit] if scores[number] >= floor)


def best_passages(all_passages: list[Passage], terms: tuple[str, ...]) -> list[Passage]:
    """The passages that become evidence, in page order."""
    scores = score([f"{passage.heading}\n{passage.text}" for passage in all_passages], terms)
    floor = max(1, -(-max(scores, default=0) // 2))
    return [all_passages[number] for number in best(scores, floor, MAX_PASSAGES)]


def evidence(found: list[Passage]) -> str:
    """The passages as in the page, each heading once above its first passage."""
    parts: list[str] = []
    heading = ""
    for passage in found:
        if passage.heading and passage.heading != heading:
            parts.append(passage.heading)
        heading = passage.heading
        parts.append(passage.text)
    return "\n\n".join(parts)


def summary(found: list[Passage], terms: tuple[str, ...], language: str) -> str:
    """The sentences of the passages that hold most of the goal, in page order."""
    units = [unit for passage in found for unit in passage_units(passage, terms, language)]
    chosen = best(score(units, terms), 1, MAX_SENTENCES)
    text = ("" if language == CHINESE else " ").join(units[number] for number in chosen)
    return text or NOTHING[language][1]


def passage_units(passage: Passage, terms: tuple[str, ...], language: str) -> list[str]:
    """What a summary may take from a passage: its sentences, or the rows of its table."""
    rows = table(passage.text)
    if not rows:
        return sentences(passage.text)
    header, body = rows[0], rows[1:]
    scores = score([" ".join(row) for row in body], terms)
    if len(set(scores)) > 1:
        return [row_sentence(header, row, language) for row in body]
    return [table_sentence(header, [row[0] for row in body], language)]


def row_sentence(header: list[str], row: list[str], language: str) -> str:
    """A table row as a sentence: first cell, then `column: cell` of the others."""
    pairs = list(zip(header, row, strict=True))[1:]
    if language == CHINESE:
        return f"{row[0]}：{'，'.join(f'{name}{cell}' for name, cell in pairs)}。"
    return f"{row[0]}: {', '.join(f'{name} {cell}' for name, cell in pairs)}."


def table_sentence(header: list[str], names: list[str], language: str) -> str:
    """A whole table as a sentence: its rows by their first cells, its columns by name."""
    if language == CHINESE:
        return f"表格按{header[0]}列出{'、'.join(names)}的{'、'.join(header[1:])}。"
    columns = ", ".join(header[1:])
    return f"A table by {header[0]} ({', '.join(names)}) gives {columns}."
