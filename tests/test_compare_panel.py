"""Runs compared by the panel that all of them have: its scores are those of results; another panel is none in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.compare.several import rank_runs
from agentworldbench.compare.two import compare_runs
from agentworldbench.run import evaluate, load_run, score_run
from agentworldbench.stats.results import PanelResults
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.several_judges import failing, few_draws, judges, panel_options

JUDGES = ("judge-a", "judge-b", "judge-c")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`world` and `copying`, judged by a median of three of which one often fails; `mean`: another rule."""
    folder = tmp_path_factory.mktemp("panels")
    make_official_folder(folder / "data", domains=("os",), trajectories=3, special=False)
    script = failing(1 / 2, ["judge-b", "judge-c"], judges(steady=True))
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        set_key(patch)
        few_draws(patch)
        for name, panel in (("world", "median"), ("copying", "median"), ("mean", "mean")):
            options = panel_options(server, folder / name, folder / "data", JUDGES, panel=panel)
            if name == "copying":
                options |= {"model": "baseline/copy-last", "base_url": None}
            evaluate(**options)
        yield folder


@pytest.fixture
def awb(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(runs, monkeypatch, capsys)


def panel_of(run: Path) -> PanelResults:
    results = load_run(run).results
    assert results is not None and results.panel is not None
    return results.panel


def test_scores_are_those_of_results(runs: Path) -> None:
    comparison = compare_runs(runs / "world", runs / "copying")
    (measure,) = [one for one in comparison.measures if one.panel]
    panels = [panel_of(runs / name) for name in ("world", "copying")]
    assert (measure.name, measure.panel, measure.judge) == (panels[0].rule, panels[0].digest, None)
    blocks = [one.reading.domains["os"] for one in panels]
    row = measure.differences.domains["os"]
    assert [row.first, row.second] == pytest.approx([one.floor["total"] for one in blocks])
    assert measure.coverage["os"].scored == tuple(one.scored for one in blocks)
    assert all(one.scored < one.samples for one in blocks), "too few judges somewhere"
    failures = {one.second_failure for one in measure.regressions if one.second_failure}
    assert failures == {"too_few_judges"}
    assert [one.judge is None and one.panel is None for one in comparison.measures] == [False] * 4 + [True]


def test_another_rule_is_no_panel_in_common(runs: Path) -> None:
    assert not any(one.panel for one in compare_runs(runs / "world", runs / "mean").measures)


def test_several_runs_and_titles(runs: Path, awb: HereAwb, tmp_path: Path) -> None:
    score_run(runs / "mean", panel="median")
    ranking = rank_runs([runs / name for name in ("world", "copying", "mean")])
    (measure,) = [one for one in ranking.measures if one.panel]
    assert measure.panel == panel_of(runs / "world").digest
    out = awb("compare", "world", "copying").out
    assert "B − A by panel: median of 3 judges, at least 2" in out
    assert "3 runs by panel: median of 3 judges, at least 2" in awb("compare", "world", "copying", "mean").out
