"""Metrics of search: the reader of what the environment prints, addresses, facts, and the shapes of real rows.

Values computed by hand stand in `cases/metrics/search.yaml` (run by `test_metrics.py`), addresses in `urls.yaml`,
facts in `facts.yaml`. With the marker `shared`, by hand, the real rows are read as well
(`AWB_SHARED=FOLDER pytest -m shared`).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.prompts import reference_observation
from agentworldbench.resources import mini_folder
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.facts import normalise
from agentworldbench.scoring.metrics.page_facts import page_facts
from agentworldbench.scoring.metrics.search_reader import LONGEST, read
from agentworldbench.scoring.metrics.urls import address
from agentworldbench.task import load_tasks
from tests.test_metrics import made

TASK = load_tasks()["search"]
CASES = Path(__file__).parent / "cases" / "metrics"
URLS = yaml.safe_load((CASES / "urls.yaml").read_text(encoding="utf-8"))
FACTS = [
    case
    for cases in yaml.safe_load((CASES / "facts.yaml").read_text(encoding="utf-8")).values()
    for case in cases
]
RESULTS = ("url_f1", "host_f1", "title_f1", "count_match")


@pytest.mark.parametrize("case", URLS["same"], ids=lambda case: case["why"])
def test_spellings_of_one_address(case: dict[str, Any]) -> None:
    assert len({address(url).url for url in case["urls"]}) == 1
    assert len({address(url).host for url in case["urls"]}) == 1


@pytest.mark.parametrize("case", URLS["different"], ids=lambda case: case["why"])
def test_addresses_of_different_pages(case: dict[str, Any]) -> None:
    assert len({address(url).url for url in case["urls"]}) == len(case["urls"])


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user@WWW.A.example:8443/b", "a.example"),
        ("a.example?q=1", "a.example"),
        ("http://[::1]:80/b", "[::1]"),
        ("http://xn--\ud800/", "xn--\ud800"),
        ("http://xn--99999999/", "xn--99999999"),
        ("", ""),
    ],
)
def test_hosts(url: str, host: str) -> None:
    assert address(url).host == host


urls = st.one_of(
    st.text(max_size=30),
    st.text("aA./:?#%&=@[]0e北\ud800 ", max_size=30).map(lambda text: f"http://{text}"),
)


@settings(deadline=None)
@given(urls)
def test_an_address_is_its_own_spelling(url: str) -> None:
    once = address(address(url).url)
    assert address(once.url) == once


@pytest.mark.parametrize("case", FACTS, ids=lambda case: case["text"][:40])
def test_facts(case: dict[str, Any]) -> None:
    assert page_facts(case["text"]) == case["facts"]


@settings(deadline=None)
@given(
    st.one_of(st.text(), st.text("0123456789,.:-/%万亿年月日号点十百零〇三 Ma|《》“”'\"\n\0\ud800httpsSept"))
)
def test_facts_of_any_text(text: str) -> None:
    found = page_facts(text)
    assert all(count > 0 and fact.split(" ", 1)[1] for fact, count in found.items())
    assert page_facts(text + "\n\n" + text).total() >= found.total()


def test_observations_are_read_to_a_limit() -> None:
    assert page_facts(read("7" * 2 * LONGEST).text) == {f"number {'7' * LONGEST}": 1}
    block = "[1] u\nTitle: t\nSnippet: s\nDate: d\n\n"
    assert len(read(block * LONGEST).entries) == LONGEST // len(block)


def entries(text: str) -> list[tuple[str, ...]]:
    return [(one.url, one.title, one.snippet, one.date) for one in read(text).entries]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1] u\nTitle: t\nSnippet: s\nDate: d", [("u", "t", "s", "d")]),
        ("[1] http://u v\nTitle: t", [("http://u v", "t", "", "")]),
        ("[1] u\nTitle: t\nSnippet: a\nb\n\nc\nDate: d", [("u", "t", "a\nb\n\nc", "d")]),
        ("[1] u\nTitle: t\nSnippet: a\nb\n\nc\n[2] v\nTitle: w", [("u", "t", "a\nb", ""), ("v", "w", "", "")]),
        ("[1] u\nTitle: t\nSnippet:\na\n", [("u", "t", "a", "")]),
        ("[1] u\n\nTitle: t\nSnippet: Title: x\nTitle: y\nDate: d", [("u", "t", "Title: x\ny", "d")]),
        ("[1] u\nTitle: t\nSnippet: [1] http://v\n[2] http://w\nDate: d", [("u", "t", "[1] http://v\n[2] http://w", "d")]),
        ("[1] u\nTitle: t\n```\nSnippet: s", [("u", "t", "", "")]),
        ("1. Install\nTitle: t", []),
        ("[1] see there\nTitle: t", []),
        ("[1] u\nDate: d", []),
        ("[1] u", []),
        ("Title: t\nSnippet: s", []),
        ("x [1] u\nTitle: t", []),
    ],
)  # fmt: skip
def test_results(text: str, expected: list[tuple[str, ...]]) -> None:
    assert entries(text) == expected
    assert entries(f"```\n{text}\n```") == expected


words = st.text("ab 文:：[]1.", min_size=1, max_size=12).map(str.strip).filter(bool)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(words, words, st.sampled_from(["N/A", "Jan 5, 2025", "3 days ago"])), max_size=6))
def test_what_is_written_is_read(results: list[tuple[str, str, str]]) -> None:
    blocks = [
        f"[{n}] https://{n}.example/\nTitle: {title}\nSnippet: {snippet}\nDate: {date}"
        for n, (title, snippet, date) in enumerate(results, 1)
    ]
    expected = [(f"https://{n}.example/", *result) for n, result in enumerate(results, 1)]
    assert entries("```\n" + "\n\n".join(blocks) + "\n```") == expected
    assert entries("\n".join(blocks)) == expected


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(
    ["[1] u", "1. http://u", "Title: t", "Snippet:", "Date: d", "```", "", "URL: u", "No results", "Summary:",
     "The useful information in u", "as follows:", "Evidence in page: e", "\ud800", "text", "[2]"]
)).map("\n".join)))  # fmt: skip
def test_any_text_is_read(text: str) -> None:
    found = read(text)
    assert all(
        entry.title or entry.snippet or "Title" in text or "Snippet" in text for entry in found.entries
    )
    for other in (text, "", "[1] u\nTitle: t\nSnippet: 1\nDate: d"):
        scored = score_observation(made("search", other), TASK, text)
        assert all(0 <= value <= 1 for value in scored.values.values())
        assert other != text or set(scored.values.values()) <= {1.0}


def batch(queries: int, each: int) -> str:
    """A look-alike of a real batch: numbering runs on, the first page is found by every query."""
    blocks = []
    for n in range(queries * each):
        page = (
            "https://zh.example/wiki/%E5%8C%97" if n % each == 0 else f"http://n{n % 7}.example/2025/{n}.html"
        )
        date = "N/A" if n % 3 else f"Dec {n + 1}, 2024"
        blocks.append(
            f"[{n + 1}] {page}\nTitle: 北岸线 {n} - 百科\nSnippet: 北岸线长{n}公里。 ...\nDate: {date}"
        )
    return "```\n" + "\n\n".join(blocks) + "\n```"


PAGE = (
    "The useful information in https://zh.example/wiki/%E5%8C%97 for user goal 线路长度和开通时间 as follows: \n\n"
    "Evidence in page: \n| 线路 | | 开通 | 长度 |\n| --- | --- | --- | --- |\n| 北岸线 | | 1969年10月1日 | 31.04公里 |\n\n"
    "Summary: \n北岸线于1969年10月1日开通，长31.04公里。"
)
SHAPES = {
    "a batch of 30": (batch(3, 10), {*RESULTS, "snippet_rouge_l", "fact_f1"}),
    "one result": ("[1] http://a.example\nTitle: t\nSnippet: \nDate: N/A", set(RESULTS)),
    "a page": (PAGE, {"fact_f1"}),
    "two pages": (f"{PAGE}\n\n=======\n{PAGE}", {"fact_f1"}),
    "a page that could not be read": (
        "The useful information in https://a.example for user goal x as follows: \n\nEvidence in page: \n"
        "The page could not be read.\n\nSummary: \nThere is no information.",
        set(),
    ),
    "no results": ("No results found for 'x'. Try a shorter query.", {"count_match", "fact_f1"}),
    "a refused request": ('Search failed: HTTP 422 {"detail":[{"loc":["body",0],"msg":"Field required"}]}', {"fact_f1"}),
    "a timeout": ("Search timed out after 30 seconds, please try again later.", {"fact_f1"}),
    "a note": ("Stored.", set()),
    "a notebook": ('{"fares": "19 crowns", "gate": "opens at 3.4 m"}', {"fact_f1"}),
    "keys": ("['fares', 'gate']", {"fact_f1"}),
    "nothing": ("", set()),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_observations(name: str) -> None:
    text, applying = SHAPES[name]
    scored = score_observation(made("search", text), TASK, text)
    family = {*RESULTS, "snippet_rouge_l", "fact_f1"}
    assert set(scored.applicable) & family == applying
    assert set(scored.values.values()) == {1.0}
    assert scored.reasons == {}
    empty = score_observation(made("search", text), TASK, "")
    assert not any(empty.values[name] for name in applying)
    assert set(empty.reasons) == applying - {"fact_f1"}


def test_a_batch_in_its_numbers() -> None:
    found = read(batch(3, 10)).entries
    assert len(found) == 30
    assert len({entry.address.url for entry in found}) == 28
    assert found[29].date == "N/A" and found[0].date == "Dec 1, 2024"


def test_the_bundled_rows_are_read() -> None:
    dataset = open_dataset({"search": mini_folder() / TASK.data_file}, {"search": TASK})
    lists = pages = 0
    for ref in dataset.refs:
        sample = dataset.load(ref)
        text = normalise(reference_observation(sample, TASK))
        numbered = len(re.findall(r"^\[\d+\] ", text, re.MULTILINE))
        scored = score_observation(sample, TASK, text)
        assert len(read(text).entries) == numbered
        assert ("url_f1" in scored.applicable) == (numbered > 0)
        assert set(scored.values.values()) == {1.0} and not scored.reasons
        lists += numbered > 0
        pages += text.startswith("The useful information in")
    assert lists >= 10 and pages >= 8


@pytest.mark.shared
def test_the_real_rows_are_read() -> None:
    path = Path(os.environ["AWB_SHARED"]) / "real_rows" / "ground_truths.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    texts = [normalise(row["ground_truth"].partition("\n")[2]) for row in rows if row["task"] == "search"]
    assert [len(read(text).entries) for text in texts] == [3, 0]
    for text in texts:
        scored = score_observation(made("search", text), TASK, text)
        assert set(scored.values.values()) == {1.0} and not scored.reasons
        assert "fact_f1" in scored.applicable
