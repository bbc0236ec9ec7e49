"""Notebooks: progress below a cell, runs and comparisons as HTML, and the Python of docs/python.md.

IPython is played by a module with the three things that are used of it; nothing here needs a kernel.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import agentworldbench
from agentworldbench import compare_runs, evaluate, load_run, rank_runs, score_run
from agentworldbench.config import make_config
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.thread import run_in_thread
from agentworldbench.estimate import estimate
from agentworldbench.notebook import SECONDS, CellProgress
from agentworldbench.plan import make_plan
from agentworldbench.render.cells import cell_html, pre_html
from agentworldbench.render.table import Table
from agentworldbench.run import Run

DOCS = Path(__file__).parents[1] / "docs" / "python.md"
HOSTILE = '</table><script>alert(1)</script><img src=x onerror="alert(1)">\x1b[31m\u202e'


class Tags(HTMLParser):
    """The tags of a fragment with their attributes, and its text."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(fragment)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def check_harmless(fragment: str) -> Tags:
    """Nothing but what tables are made of, and nothing that runs or loads."""
    found = Tags(fragment)
    assert set(found.tags) <= {
        "div",
        "style",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "p",
        "pre",
    }
    assert found.attributes <= {"class", "scope", "style"}
    assert "url(" not in fragment
    assert all(char.isprintable() or char == "\n" for char in fragment)
    return found


# --- HTML -------------------------------------------------------------------------------------


def test_no_text_leaves_its_cell() -> None:
    table = Table(HOSTILE, ("Model", HOSTILE), ((HOSTILE, HOSTILE),), ("Model",), notes=(HOSTILE,))
    for fragment in (cell_html([table], [HOSTILE]), table._repr_html_(), pre_html([HOSTILE])):
        found = check_harmless(fragment)
        assert "<script>alert(1)</script>" in found.text, "shown as text"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: evaluate(f"baseline/{name}", data="mini", tasks="swe,mcp", limit=2, output=folder / name)
        for name in ("copy-last", "empty")
    }


def test_a_run_is_its_scores_with_what_they_rest_on(runs: dict[str, Run]) -> None:
    run = runs["copy-last"]
    found = check_harmless(run._repr_html_())
    assert "Scores of baseline/copy-last — data mini, 2 of 7 domains" in found.text
    assert "Overall, macro" in found.text
    assert "± –: no interval" in found.text
    assert f"Run directory: {run.path}" in found.text
    assert found.tags.count("table") == 1, "no failures, so no table of them"


def test_a_run_without_results_says_so(runs: dict[str, Run]) -> None:
    run = runs["copy-last"]
    text = Tags(Run(run.path, run.record, None, stopped="budget <reached>")._repr_html_()).text
    assert "No results yet" in text
    assert "Stopped: budget <reached>" in text


def test_paths_may_be_texts(runs: dict[str, Run]) -> None:
    paths = [run.path for run in runs.values()]
    assert compare_runs(*map(str, paths)) == compare_runs(*paths)
    assert rank_runs(list(map(str, paths))) == rank_runs(paths)
    assert score_run(str(paths[0])).path == load_run(str(paths[0])).path == paths[0]


def test_a_comparison_is_its_tables(runs: dict[str, Run]) -> None:
    found = check_harmless(compare_runs(runs["copy-last"].path, runs["empty"].path)._repr_html_())
    assert "B − A by rules" in found.text
    assert "baseline/empty" in found.text


def test_an_estimate_is_its_tables_and_what_all_cost_together(tmp_path: Path) -> None:
    config = make_config(
        {"model": "baseline/copy-last", "tasks": "swe", "limit": "1", "output": tmp_path}, None
    )
    made = estimate(make_plan(config, print))
    found = check_harmless(made._repr_html_())
    assert "Predictions by baseline/copy-last" in found.text
    assert "Together: 0.00 to 0.00 USD." in found.text
    unpriced = made.model_copy(update={"unpriced": (HOSTILE,)})
    assert "<script>" in check_harmless(unpriced._repr_html_()).text, "shown as text"


def test_a_notebook_completes_what_is_imported_on_first_use() -> None:
    assert {"evaluate", "compare_runs", "rank_runs", "Run"} <= set(dir(agentworldbench))
    assert all(hasattr(agentworldbench, name) for name in dir(agentworldbench))


# --- progress below a cell --------------------------------------------------------------------


class Output:
    """What a cell shows: every state, the last of which stands there in the end."""

    def __init__(self) -> None:
        self.states: list[list[str]] = []

    def publish(self, lines: list[str]) -> Any:
        self.states.append(lines)
        return self.states.append


def test_a_cell_is_drawn_over_by_its_own_thread_alone_and_not_too_often() -> None:
    output, now = Output(), [0.0]
    cell = CellProgress(output.publish, lambda: now[0])
    progress = Progress(cell.watch)
    progress.predictions.totals["swe"] = 4
    engine = threading.Thread(target=progress.begin, args=(4, 0))
    engine.start()
    engine.join()
    assert output.states == [], "the engine's thread only tells"
    cell.look()
    assert output.states[0][0] == "Asking for 4 predictions and 0 verdicts."
    for step in range(1, 11):
        now[0] = step * SECONDS / 5
        cell.look()
    assert len(output.states) == 3, "two more in two times the least time"
    cell.close()
    assert output.states[-1][1].startswith("predictions 0/4 · ")


def test_nothing_is_shown_of_work_that_never_began() -> None:
    output = Output()
    cell = CellProgress(output.publish, lambda: 0.0)
    cell.look()
    cell.watch(Progress())
    cell.close()
    assert output.states == []


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, str]]]:
    """What a kernel would have been sent."""
    sent: list[dict[str, str]] = []

    class Handle:
        def update(self, formats: dict[str, str], raw: bool) -> None:
            assert raw
            sent.append(formats)

    def display(formats: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        sent.append(formats)
        return Handle()

    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    shown: Any = ModuleType("IPython.display")
    shown.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    yield sent


def test_evaluate_inside_a_running_loop_shows_its_progress(
    cell: list[dict[str, str]], tmp_path: Path
) -> None:
    async def body() -> Run:
        return evaluate("baseline/empty", data="mini", tasks="swe", limit=3, output=tmp_path / "run")

    run = asyncio.run(body())
    assert run.results is not None
    assert {frozenset(formats) for formats in cell} == {frozenset({"text/plain", "text/html"})}
    assert re.fullmatch(
        r"Asking for 3 predictions and 0 verdicts\.\npredictions 3/3 · \d+ s", cell[-1]["text/plain"]
    )
    assert Tags(cell[-1]["text/html"]).text == cell[-1]["text/plain"]
    cell.clear()
    score_run(run.path)
    assert re.fullmatch(r"metrics 3/3 · \d+ s", cell[-1]["text/plain"])


def test_what_the_waiting_thread_raises_ends_the_work_first() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("cancelled")

    def broken() -> None:
        raise ConnectionError("the kernel has gone")

    with pytest.raises(ConnectionError):
        run_in_thread(work, broken)
    assert ended == ["cancelled"]


def test_a_watcher_of_the_user_wins_and_a_script_says_nothing(
    cell: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: list[Progress] = []
    options: dict[str, Any] = {"data": "mini", "tasks": "swe", "limit": 1}
    evaluate("baseline/empty", **options, output=tmp_path / "one", watch=told.append)
    assert told
    assert cell == []
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    evaluate("baseline/empty", **options, output=tmp_path / "two")
    assert cell == []
    assert capsys.readouterr() == ("", "")


# --- docs/python.md ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_python_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), names)
    assert (tmp_path / "report" / "index.html").is_file()
    assert load_run("copy").results is not None
