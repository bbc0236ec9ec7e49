"""Public reports RP-…: whatever models write and are called, it is text wherever it is shown.

One run over bundled terminals and web pages: its predictions are those of `cases/text/hostile.yaml` and `odd.yaml` and one
line of 5 MB, its judge says the short ones, and both are called what no page expects. Looked at are the report's pages, data
files, Markdown and text files, the page of conflicts, the tables and CSV that commands print, and the leaderboard's forms.
"""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from agentworldbench.leaderboard.build import csv_text, readme_text
from agentworldbench.leaderboard.page import page_text
from agentworldbench.leaderboard.tables import leaderboard_tables
from agentworldbench.render.diff import visible
from agentworldbench.render.markup import to_latex
from agentworldbench.report.build import build_report
from agentworldbench.report.names import page_name
from agentworldbench.run import Run, evaluate
from agentworldbench.texts import scrub
from tests.helpers.awb_command import HereAwb
from tests.helpers.board_entries import measured
from tests.helpers.chromium import CHROMIUM, Chromium
from tests.helpers.played_world import PlayedWorld
from tests.helpers.report_pages import Page, assigned_json
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, hash_scores
from tools.damage import scenes

pytestmark = pytest.mark.slow
CASES = Path(__file__).parent / "cases" / "text"
TEXTS = {
    f"{file}: {case['name']}": scrub(case["text"] * case.get("times", 1))
    for file in ("hostile", "odd")
    for case in yaml.safe_load((CASES / f"{file}.yaml").read_text(encoding="utf-8"))
    if file == "hostile" or "times" not in case
} | {
    "5 MB in one line": "<b>needle</b> " + '"\u202e<' * 1_000_000 + "the end",
    "elements without end": "### Page\n- Page URL: http://lending.example.com/\n### Snapshot\n```yaml\n"
    + "".join(f'- link "{n} <b>&\'{n * n}" [ref=e{n}]\n' for n in range(3_000)),
}
SHORT = {name: text for name, text in TEXTS.items() if len(text) < 5_000}
SAID = [text for text in TEXTS.values() if len(text) < 400]
MODEL = "=1+1|<script>alert(1)</script>`\x1b[31m\u202e{{ x }}](" + "x" * 120
JUDGE = "judge</script><!--|\\"
IDS = [scene.sample.id for domain in ("web", "terminal") for scene in scenes()[domain]]
SAMPLES = dict(zip(["elements without end", *(name for name in TEXTS if name[0] != "e")], IDS, strict=False))
LONG = "<\"'&\u202e" * 20_000
TAGS = frozenset(["html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "p", "button", "span", "main", "h1", "h2", "h3", "ul", "li", "b", "section", "div", "del", "ins", "details", "summary", "pre", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "footer", "svg", "rect", "kbd", "noscript", "code"])  # fmt: skip
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


class Hostile(PlayedWorld):
    """The world of hostile texts; its judge speaks in them."""

    def __call__(self, call: ChatCall) -> Reply:
        if "judge" not in call.model:
            reply = super().__call__(call)
            return Reply(
                content=reply.content, reasoning_content=LONG if "<b>&'" in str(reply.content) else None
            )
        said = [*SAID, *([LONG[:9_000]] * 20 if "<b>&'" in call.last_user else [])]
        text = json.dumps(
            {"strengths": said[::-2], "weaknesses": said[-2::-2], "scores": hash_scores(call.last_user)}
        )
        return Reply(content=f"{SAID[0]}\n<final_evaluation>\n{text}\n</final_evaluation>")


def asked(texts: dict[str, str], folder: Path) -> Run:
    """The run in which these texts are the predictions."""
    own = {SAMPLES[name]: text for name, text in texts.items()}
    with ScriptedServer(Hostile(own, failures=False)) as server:
        return evaluate(
            model=f"openai-api/{MODEL}",
            base_url=server.base_url,
            judge=f"openai-api/{JUDGE}",
            judge_base_url=server.base_url,
            data="mini",
            tasks=("terminal", "web"),
            sample_id=tuple(own),
            output=folder / "run",
            display="none",
        )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return asked(TEXTS, tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same without the long texts, for what is asked often."""
    return asked(SHORT, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    """All pages, several of them with texts of megabytes: far from what a quadratic step would take."""
    begun = time.process_time()
    index = build_report([run.path], run.path.parent / "report").index
    assert time.process_time() - begun < 30, "seconds; about 5"
    return index.parent


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def unfit(text: str) -> set[str]:
    """Characters that do something instead of being seen."""
    return {char for char in text if not char.isprintable() and char not in "\n\t"}


def pages(report: Path) -> Iterator[Path]:
    yield from (report / "index.html", report / "samples.html", *sorted((report / "samples").iterdir()))


@pytest.mark.parametrize("name", TEXTS)
def test_a_prediction_is_text_on_its_page(name: str, report: Path) -> None:
    page = Page(report / "samples" / f"{page_name(SAMPLES[name])}.html")
    (reply,) = [text for text in page.texts_of("pre") if "The environment answers." in text]
    seen, whole = reply.split("\n", 2)[2], visible(TEXTS[name])
    assert seen.startswith(whole) or (len(seen) > 1_000 and f"{whole}\n</pre".startswith(seen))
    if len(TEXTS[name]) > 60_000:
        text = report / "texts" / f"{page_name(SAMPLES[name])}.reply.txt"
        assert whole in text.read_text(encoding="utf-8"), "the whole stands beside the page"
        assert f"../texts/{text.name}" in [one.get("href") for one in page.all("a")]


def test_pages_hold_their_own_elements_alone_and_stay_small(report: Path) -> None:
    for path in pages(report):
        page = Page(path)
        assert path.stat().st_size < 300_000, path.name
        assert unfit(path.read_text(encoding="utf-8")) == set()
        assert all(set(one) == {"src"} for one in page.all("script")), "nothing inline runs"
        for tag, attributes in page.elements:
            assert not any(name.startswith("on") or name == "style" for name in attributes)
            assert tag in TAGS or path.parent == report, (path.name, tag)
            address = attributes.get("href") or attributes.get("src") or ""
            assert re.match(r"#[\w-]+$|data:,$|[\w./~-]+\.(html|js|css|svg|png|md|txt)$|$", address), address


def test_the_page_of_everything_too_long_at_once(report: Path) -> None:
    """All that a page holds is at its limit."""
    name = page_name(SAMPLES["elements without end"])
    page = Page(report / "samples" / f"{name}.html")
    size = (report / "samples" / f"{name}.html").stat().st_size
    assert 150_000 < size < 300_000
    for said in ("more are not shown here", "more characters of the prediction", "(8,"):
        assert said in page.text
    assert {path.name.split(".")[1] for path in (report / "texts").glob(f"{name}.*")} >= {"prediction", "reply", "reasoning", "verdict-1"}  # fmt: skip


def test_data_files_hold_json_alone(report: Path) -> None:
    for path in report.rglob("*.js"):
        if path.name not in ("script.js", "theme.js"):
            name = (
                "history"
                if path.parent.name == "trajectories"
                else path.name.partition("-")[0].removesuffix(".js")
            )
            assigned_json(path, name)
            assert not {"\u2028", "\u2029", "\0"} & set(path.read_text(encoding="utf-8"))


def test_the_whole_of_five_megabytes_is_a_text_file(report: Path) -> None:
    name = page_name(SAMPLES["5 MB in one line"])
    page = Page(report / "samples" / f"{name}.html")
    assert "more characters of the prediction" in page.text
    links = {one["href"]: one.get("type") for one in page.all("a") if "texts/" in str(one["href"])}
    assert links[f"../texts/{name}.prediction.txt"] == "text/plain"
    text = (report / "texts" / f"{name}.prediction.txt").read_text(encoding="utf-8")
    assert text == "\ufeff" + visible(TEXTS["5 MB in one line"]) and text.endswith("the end")
    found = assigned_json(report / "search-terminal.js", "search") | assigned_json(
        report / "search-web.js", "search"
    )
    assert "needle" in found[name] and len(found[name]) < 10_000


def test_the_summary_is_a_table_with_all_its_columns(report: Path) -> None:
    text = (report / "summary.md").read_text(encoding="utf-8")
    assert unfit(text) == set()
    html = MarkdownIt("commonmark").enable("table").render(text)
    tables = re.findall(r"<table>(.*?)</table>", html, re.DOTALL)
    rows = [re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL) for table in tables]
    assert [{len(re.findall("<t[dh]", row)) for row in some} for some in rows] == [{4}, {7}]
    assert not re.search(r"<(script|a |img)", html) and html.count("<details>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html, "shown as it is written"


def test_the_page_of_conflicts(awb: HereAwb, run: Run, tmp_path: Path) -> None:
    done = awb("runs", "conflicts", run.path, "--html", tmp_path / "page.html")
    assert done.code == 0 and unfit(done.out + done.err) == set()
    page = Page(tmp_path / "page.html")
    assert len(page.all("article")) > 5
    assert len(page.all("script")) == 2 and len(page.all("style")) == 1
    assert {tag for tag, _ in page.elements} <= TAGS | {"article", "h4", "style"}
    assert not [one for one in page.all("a") if not str(one["href"]).startswith("#")]
    assert (tmp_path / "page.html").stat().st_size < 3_000_000


@pytest.mark.parametrize(
    "words",
    [
        "score RUN --explain",
        "runs list RUN",
        "runs conflicts RUN",
        "runs conflicts RUN -f md",
        "compare RUN OTHER",
        "report RUN -o out",
        "verify RUN",
    ],
)
def test_nothing_that_is_printed_steers_a_terminal(
    words: str, small: Run, awb: HereAwb, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    if "OTHER" in words:
        ids = tuple(SAMPLES[name] for name in SHORT)
        evaluate("baseline/copy-last", data="mini", tasks=("terminal", "web"), sample_id=ids, output=other, display="none")  # fmt: skip
    done = awb(*({"RUN": small.path, "OTHER": other}.get(word, word) for word in words.split()))
    assert done.out + done.err, "something is said"
    assert "Traceback" not in done.err
    assert unfit((done.out + done.err).replace("\r", "")) == set()


def test_no_cell_of_csv_is_a_formula(small: Run, awb: HereAwb) -> None:
    done = awb("runs", "conflicts", small.path, "-f", "csv")
    entry = measured(1, name=MODEL)
    for text in (done.out, csv_text([entry])):
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows for cell in row):
            assert re.fullmatch(r"-?[\d.e-]+", cell) or not cell.lstrip().startswith(
                ("=", "+", "-", "@", "＝")
            )


def test_the_leaderboard_shows_a_name_as_text() -> None:
    entry = measured(1, name=MODEL)
    assert "<script>alert" not in page_text([entry])
    html = MarkdownIt("commonmark").enable("table").render(readme_text([entry]))
    assert "<script" not in html and "&lt;script&gt;" in html
    (table,) = leaderboard_tables([entry])
    for text in (table.to_text(80), table.to_text(200), to_latex(table)):
        assert unfit(text) == set()


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
def test_in_a_browser_nothing_runs_and_everything_fits(report: Path) -> None:
    with Chromium() as browser:
        for name, sample_id in SAMPLES.items():
            path = report / "samples" / f"{page_name(sample_id)}.html"
            browser.open(path.as_uri())
            assert browser.value("document.title").startswith(sample_id), name
            for width in (375, 1280):
                browser.resize(width)
                assert browser.value(FITS), name
            assert browser.value(
                "[document.images.length, document.querySelectorAll('svg:not(.share)').length]"
            ) == [0, 0]
        for name in ("index.html", "samples.html"):
            browser.open((report / name).as_uri())
            for width in (375, 1280):
                browser.resize(width)
                assert browser.value(FITS), name
        text = report / "texts" / f"{page_name(SAMPLES['hostile: many short lines'])}.reply.txt"
        browser.open(text.as_uri())
        assert browser.value("[document.contentType, document.characterSet]") == ["text/plain", "UTF-8"]
        assert browser.console == []
        assert all(one.startswith(report.as_uri()) for one in browser.requests)
