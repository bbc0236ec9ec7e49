"""The search recorder: queries, ranking, snippets, extraction, notes, the corpus, and recording again.

In: `tests/cases/record_search/*.yaml`, `tools/record/corpus` and `tools/record/finder`. Nothing has to
be installed and a recording takes less than a second, so the rows are made again in the normal run; only
where Python's SQLite has no FTS5 is the module skipped.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tools.record import search
from tools.record.common import MINI, load_scripts
from tools.record.compare import difference
from tools.record.finder import corpus as search_corpus
from tools.record.finder import engine as search_engine
from tools.record.finder import extract as search_extract
from tools.record.finder.corpus import CORPUS, Page

pytestmark = pytest.mark.skipif(not search.has_fts5(), reason="Python's SQLite has no FTS5")

CASES = Path(__file__).parent / "cases" / "record_search"
SITES = [search_corpus.load_site(path) for path in sorted(CORPUS.glob("*.yaml"))]
PAGES = [page for site in SITES for page in site.pages]
MILL = """# The mill

The wheel turns on Sundays. Paper is made on Mondays.

| Day | Paper | Sheets |
| --- | --- | --- |
| Monday | laid | 200 |
| Tuesday | wove | 150 |"""
SMALL = [
    Page("https://a.example/mill", "The mill", "Jan 2, 2025", "en", MILL),
    Page("https://a.example/rota", "Staff", "N/A", "en", "Names.", status="403 Forbidden"),
    Page(
        "https://b.example/%E8%8C%B6", "茶园", "N/A", "zh", "# 茶园\n\n茶园每天开放。山顶的茶园在雨天关闭。"
    ),
]


def cases(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded


def page(name: str, title: str, text: str) -> Page:
    return Page(f"https://p.example/{name}", title, "N/A", "en", text)


def found(pages: list[Page], query: str, limit: int = 5) -> list[search_engine.Result]:
    engine = search_engine.Engine(pages)
    try:
        return engine.search(query, limit)
    finally:
        engine.close()


def names(pages: list[Page], query: str) -> list[str]:
    return [result.url.rpartition("/")[2] for result in found(pages, query)]


@pytest.mark.parametrize("case", cases("queries"), ids=lambda case: case["query"])
def test_queries_are_taken_apart(case: dict[str, Any]) -> None:
    query = search_engine.parse(case["query"])
    assert list(query.terms) == case["terms"]
    assert list(query.required) == case.get("required", [])
    assert query.site == case.get("site", "")


@pytest.mark.parametrize("number", range(len(cases("calls"))))
def test_calls(number: int) -> None:
    tools = search.Tools(SMALL)
    try:
        answers = [tools.call(case["tool"], case["arguments"]) for case in cases("calls")[: number + 1]]
    finally:
        tools.close()
    assert answers[-1] == cases("calls")[number]["observation"]


@given(st.text())
def test_any_query_is_answered(query: str) -> None:
    assert {result.url for result in found(SMALL, query)} <= {page.url for page in SMALL}


@given(st.text())
def test_any_goal_is_answered(goal: str) -> None:
    for small in SMALL:
        assert search_extract.extract(small, goal).summary


def test_equal_ranks_are_ordered_by_url() -> None:
    pages = [page(name, "Tides", "High water at noon.") for name in "dbca"]
    assert names(pages, "high water") == ["a", "b", "c", "d"]


def test_half_of_the_words_are_enough_and_less_is_not() -> None:
    others = [page(f"z{number}", "Other", "Nothing of it.") for number in range(9)]
    pages = [page("one", "A", "gate"), page("two", "B", "gate tide"), *others]
    assert names(pages, "gate tide sill fee") == ["two"]
    assert names(pages, "gate tide sill") == ["two"]
    assert names(pages, "gate tide") == ["two", "one"]


def test_a_word_in_the_title_counts_more() -> None:
    others = [page(f"z{number}", "Other", "Nothing of it.") for number in range(9)]
    pages = [
        page("body", "Notes", "gate of the basin"),
        page("title", "Gate", "of the basin, notes"),
        *others,
    ]
    assert names(pages, "gate") == ["title", "body"]


def test_phrase_and_site_narrow_a_query() -> None:
    pages = [page("one", "A", "laid paper"), page("two", "B", "paper laid"), *SMALL]
    assert names(pages, '"laid paper"') == ["one"]
    assert names(pages, "paper site:a.example") == ["mill"]
    assert names(pages, "site:a.example") == []


def test_stems_and_accents() -> None:
    pages = [page("one", "A", "The cafés opened.")]
    assert names(pages, "cafe opening") == ["one"]
    assert names(pages, "caffe") == []


def test_at_most_five_results() -> None:
    pages = [page(f"{number}", "Tide", "Tide.") for number in range(8)]
    assert len(found(pages, "tide")) == 5


@pytest.mark.parametrize("seed", range(3))
def test_order_of_the_pages_does_not_matter(seed: int) -> None:
    shuffled = list(PAGES)
    Random(seed).shuffle(shuffled)
    for query in scripted_queries():
        assert found(shuffled, query) == found(PAGES, query)


def test_snippets_are_pieces_of_the_page() -> None:
    pages = {page.url: page for page in PAGES}
    queries = scripted_queries()
    results = [result for query in queries for result in found(PAGES, query)]
    assert len(results) > 2 * len(queries)
    for result in results:
        text = search_corpus.plain(pages[result.url].text)
        middle = result.snippet.removeprefix("... ").removesuffix(" ...")
        assert middle and middle in text and search_engine.GAP not in result.snippet
        assert result.snippet.startswith("... ") != text.startswith(middle)


def test_evidence_is_text_of_the_page() -> None:
    pages = {search_corpus.address(page.url): page for page in PAGES}
    checked = 0
    for arguments in scripted("web_extractor"):
        if known := pages.get(search_corpus.address(arguments["url"])):
            extract = search_extract.extract(known, arguments["goal"])
            parts = search_corpus.blocks(known.text)
            chosen = [parts.index(part) for part in search_corpus.blocks(extract.evidence)]
            assert chosen == sorted(set(chosen))
            checked += 1
    assert checked >= 20


def scripted(tool: str) -> list[dict[str, Any]]:
    scripts = load_scripts(search.DOMAIN)
    return [turn["arguments"] for script in scripts for turn in script["turns"] if turn["tool"] == tool]


def scripted_queries() -> list[str]:
    return [query for arguments in scripted("web_search") for query in arguments.get("queries", [])]


def test_corpus() -> None:
    assert 60 <= len(PAGES) <= 120
    assert len({search_corpus.address(page.url) for page in PAGES}) == len(PAGES)
    assert sum(page.language == "zh" for page in PAGES) >= 15
    assert sum("%" in page.url for page in PAGES) >= 5
    for site in SITES:
        assert site.host.endswith(".example")


@pytest.mark.parametrize("known", PAGES, ids=lambda page: search_corpus.address(page.url))
def test_pages(known: Page) -> None:
    assert known.url.isascii() and " " not in known.url
    assert known.language in search_engine.SNIPPET_TOKENS
    least = 150 if known.language == "zh" else 300  # a Chinese character says about as much as two letters
    assert least <= len(known.text) <= 1_800
    assert known.date == "N/A" or datetime.strptime(known.date, "%b %d, %Y")
    assert known.text.startswith("# ") and known.text.count("\n# ") == 0
    for passage in search_corpus.passages(known.text):
        rows = search_corpus.table(passage.text)
        assert bool(rows) == passage.text.startswith("|")
        assert len({len(row) for row in rows}) <= 1
        assert rows or "|" not in passage.text


def test_a_paragraph_is_one_line() -> None:
    text = "# A\n\none\ntwo\n\n- three\n- four\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert search_corpus.unwrapped(text) == text.strip().replace("one\ntwo", "one two")


def test_recording_again_gives_the_same(tmp_path: Path) -> None:
    search.main(["--output", str(tmp_path)])
    name = f"{search.DOMAIN}_test.jsonl"
    assert difference(MINI / name, tmp_path / name) == []
    assert (tmp_path / name).read_bytes() == (MINI / name).read_bytes()
    entry = json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))["domains"][search.DOMAIN]
    assert re.match(r"3\.\d+", entry["programs"]["sqlite"])


def test_without_fts5_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(search, "has_fts5", lambda: False)
    with pytest.raises(SystemExit, match=r"no FTS5"):
        search.main(["--output", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []
