"""The page above the reports of several runs: which of them stand together, their ranks, and what keeps the others apart.

Runs of copying and of the reference over two bundled domains, one of them judged, one of one domain alone, one a copy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentworldbench.compare.several import rank_runs
from agentworldbench.errors import ConfigError
from agentworldbench.render.numbers import score_cell
from agentworldbench.report.build import build_report
from agentworldbench.report.several import Listed, run_groups, write_runs_page
from agentworldbench.run import evaluate, load_run
from tests.helpers.asking import set_key
from tests.helpers.report_pages import Page
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.several_judges import few_draws, judges

DOMAINS = ("terminal", "mcp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`judged` and `judged-too` (two judges and their panel), `reference` and `copied` (rules), `part` (one domain)."""
    path = tmp_path_factory.mktemp("several")
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(judges(steady=True)) as server:
        set_key(patch)
        few_draws(patch)
        judging = {
            "judge": ("openai-api/judge-a", "openai-api/judge-b"),
            "judge_base_url": server.base_url,
            "panel": "mean",
        }
        for name, model, tasks, more in (
            ("judged", "baseline/copy-last", DOMAINS, judging),
            ("judged-too", "baseline/nearest", DOMAINS, judging),
            ("reference", "baseline/reference", DOMAINS, {}),
            ("part", "baseline/copy-last", ("mcp",), {}),
        ):
            evaluate(model, data="mini", tasks=tasks, limit="10", output=path / name, display="none", **more)
        shutil.copytree(path / "reference", path / "copied")
        yield path


def listed(folder: Path, *names: str) -> list[Listed]:
    found = []
    for name in names:
        results = load_run(folder / name).results
        assert results is not None
        found.append(Listed(name, folder / name, results))
    return found


def test_runs_stand_together_where_they_may_and_alone_where_not(folder: Path) -> None:
    groups = run_groups(listed(folder, "judged", "judged-too", "reference", "part"))
    assert [(one.title, [line.folder for line in one.lines]) for one in groups] == [
        ("Judge openai-api/judge-a", ["judged", "judged-too"]),
        ("Judge openai-api/judge-b", ["judged", "judged-too"]),
        ("Panel, mean of 2 judges, at least 2", ["judged", "judged-too"]),
        ("Rule score", ["judged", "judged-too", "reference"]),
        ("Rule score", ["part"]),
    ]
    assert [one.plot is not None for one in groups] == [True] * 4 + [False], (
        "a run alone has nothing beside it"
    )
    assert [bool(one.ranks) for one in groups] == [True] * 4 + [False]
    assert [one.apart for one in groups] == [None] * 4 + [
        "Not ranked beside judged, judged-too, reference: they differ in the domains"
    ]
    assert not any(one.unranked for one in groups)


def test_ranks_are_those_of_the_comparison(folder: Path) -> None:
    names = ("judged", "judged-too", "reference")
    groups = run_groups(listed(folder, *names))
    measures = {
        one.name: one for one in rank_runs([folder / name for name in names[:2]]).measures if one.judge
    }
    measures["rules"] = rank_runs([folder / name for name in names]).measures[0]
    for group, measure in zip(groups, measures.values(), strict=True):
        ranks, pairs = group.ranks
        assert [(row[0], row[1], row[3]) for row in ranks.rows] == [
            ("ABC"[one.run], str(one.rank), score_cell(one.overall.value, one.overall.interval))
            for one in measure.standings
        ]
        assert len(pairs.rows) == len(measure.pairs) and pairs.columns[1:4] == ("Difference", "p", "Holm")
    assert [row[1:3] for row in groups[-1].ranks[0].rows] == [
        ("1", "baseline/reference"),
        ("2", "baseline/copy-last"),
        ("2", "baseline/nearest"),
    ]
    for note in (note for group in groups for table in group.ranks for note in table.notes):
        assert str(folder) not in note, "a page says nothing of where runs lay"
    assert groups[-1].ranks[0].notes[0].startswith("A: baseline/copy-last (judged). B: ")


def test_runs_that_a_comparison_takes_for_unlike_have_no_ranks(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder / "judged-too", other)
    results = json.loads((other / "results.json").read_text())
    (other / "results.json").write_text(json.dumps(results | {"made_by": "0.0.9"}))
    for group in run_groups(listed(folder, "judged", "reference") + listed(tmp_path, "other"))[-1:]:
        assert group.title == "Rule score" and len(group.lines) == 3 and not group.ranks
        assert (group.unranked or "").startswith(
            "these runs are not alike: other: the versions that computed the metrics ("
        )


@pytest.mark.parametrize("count", [5, 12])
def test_a_plot_draws_up_to_ten_runs_and_names_the_others(folder: Path, count: int, tmp_path: Path) -> None:
    (run,) = listed(folder, "part")
    names = [f"run-{number}" for number in range(count)]
    write_runs_page(tmp_path, [replace(run, folder=name) for name in names])
    text = " ".join(Page(tmp_path / "index.html").text.split())
    drawn = (tmp_path / "plots" / "runs-1.svg").read_text("utf-8")
    assert (tmp_path / "plots" / "runs-1.png").read_bytes()[1:4] == b"PNG"
    assert [name for name in names if f"{name}:" in drawn] == names[:10], "a mark tells whose it is"
    left_out = "Left out: run-10, run-11; more than 10 runs cannot be told apart in one plot."
    assert (left_out in text) == (left_out in drawn) == (count > 10), "on the page and in the file"


def test_a_copy_stands_once_among_ranks(folder: Path) -> None:
    (group,) = run_groups(listed(folder, "reference", "copied"))
    assert not group.ranks
    assert group.unranked is not None and group.unranked.startswith("reference is left alone")
    *_, group = run_groups(listed(folder, "reference", "judged", "copied"))
    assert len(group.lines) == 3 and len(group.ranks[0].rows) == 2
    assert any(one.startswith("copied has the same answers as reference") for one in group.ranks[0].notes)


def test_the_page_says_all_of_it(folder: Path, tmp_path: Path) -> None:
    runs = listed(folder, "judged", "reference", "part", "copied")
    write_runs_page(tmp_path, runs)
    page = Page(tmp_path / "index.html")
    assert {"2 runs by rules", "Every two by rules"} <= {line.strip() for line in page.text.splitlines()}
    assert "Not ranked beside judged, reference, copied: they differ in the domains." in page.text
    assert "docs/numbers.md" in page.text and "Holm" in page.text
    write_runs_page(tmp_path, listed(folder, "reference", "copied"))
    assert "No ranks: reference is left alone" in " ".join(Page(tmp_path / "index.html").text.split())


def test_a_panel_has_a_headline_beside_those_of_its_judges(folder: Path, tmp_path: Path) -> None:
    run = load_run(folder / "judged")
    assert run.results is not None and run.results.panel is not None
    page = Page(build_report([run.path], tmp_path / "report").index)
    assert page.texts_of("h2")[:4] == [
        "Judge openai-api/judge-a",
        "Judge openai-api/judge-b",
        "Panel",
        "Rule score",
    ]
    number = f"{run.results.panel.reading.macro_floor['total']:.2f}"
    (shown,) = [text for text in page.texts_of("section") if text.startswith("Panel")]
    assert number in shown and run.results.panel.rule in shown


def test_reports_stand_in_folders_of_their_own_below_the_page(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "part"
    shutil.copytree(folder / "part", again)
    built = build_report([folder / "part", again], tmp_path / "all")
    assert [one.folder for one in built.reports] == ["part", "part-2"]
    page = Page(built.index)
    links = [str(one["href"]) for one in page.all("a")][1:]
    assert links == ["part/index.html", "part-2/index.html"]
    assert all((tmp_path / "all" / link).is_file() for link in links)
    below = Page(tmp_path / "all" / "part-2" / "samples.html")
    assert "../index.html" in [one["href"] for one in below.all("a")]
    with pytest.raises(ConfigError, match="named twice"):
        build_report([again, again], tmp_path / "twice")
