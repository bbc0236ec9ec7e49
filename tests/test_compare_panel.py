"""Runs of several judges and epochs beside each other: by their panel, and with the coverage that their own tables have.

Two models on one server answer each time with another text; one of them is cut now and then. Everything compared is
computed here from the journals.
"""

from __future__ import annotations

import shutil
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.compare.several import rank_runs
from agentworldbench.compare.two import compare_runs
from agentworldbench.errors import ConfigError
from agentworldbench.render.results import run_tables
from agentworldbench.run import evaluate, load_run, score_run
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.several_judges import byte_of, failing, few_draws, judges, panel_options

ALL = ("judge-a", "judge-b", "judge-c")


def world(call: ChatCall) -> Reply:
    """Another text each time; an eighth of the answers of `cut` end at the token limit."""
    text = f"line {byte_of(call.model, call.key, call.attempt)}"
    if call.model == "cut" and byte_of("cut", call.key, call.attempt) < 32:
        return Reply(content=f"<predicted_observation>\n{text}", finish_reason="length")
    return Reply(content=f"<predicted_observation>\n{text}\n</predicted_observation>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The runs `cut` and `whole`, both of two epochs, with a panel."""
    path = tmp_path_factory.mktemp("panels")
    make_official_folder(path / "data", domains=("swe", "os"), trajectories=4, turns=3, special=False)
    graded = failing(1 / 3, ["judge-b"], judges(steady=True))

    def script(call: ChatCall) -> Reply:
        return graded(call) if call.model.startswith("judge") else world(call)

    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        set_key(patch)
        few_draws(patch)
        for name in ("cut", "whole"):
            more = {"model": f"openai-api/{name}", "epochs": 2, "panel": "median"}
            evaluate(**panel_options(server, path / name, path / "data", ALL, **more))
        yield path


def by_hand(path: Path) -> tuple[dict[str, float], dict[str, list[bool]]]:
    """The panel's score of each sample under `floor`, and which of its answers have one."""
    run = load_run(path)
    totals: dict[tuple[str, int], list[float]] = defaultdict(list)
    for verdict in run.verdicts():
        if verdict.scores is not None:
            totals[verdict.sample_id, verdict.epoch].append(25 * (sum(verdict.scores.values()) / 5 - 1))
    scores: dict[str, list[float]] = defaultdict(list)
    scored: dict[str, list[bool]] = defaultdict(list)
    for one in run.predictions():
        some = totals[one.key]
        scores[one.sample_id].append(statistics.median(some) if len(some) >= 2 else 0.0)
        scored[one.sample_id].append(len(some) >= 2)
    return {name: statistics.fmean(some) for name, some in scores.items()}, dict(scored)


def test_runs_compare_by_the_panel_that_both_have(folder: Path) -> None:
    found = compare_runs(folder / "cut", folder / "whole")
    assert [one.kind for one in found.measures] == ["judge", "judge", "judge", "panel", "rules"]
    alone = compare_runs(folder / "cut", folder / "whole", judge="panel")
    (measure,) = alone.measures
    assert measure == found.measures[3]
    results = load_run(folder / "cut").results
    assert results is not None and results.panel is not None
    assert (measure.name, measure.judge) == (results.panel.rule, results.panel.digest)
    (cut, counted), (whole, _) = by_hand(folder / "cut"), by_hand(folder / "whole")
    for domain, row in measure.differences.domains.items():
        names = [name for name in cut if name.startswith(f"{domain}/")]
        wanted = statistics.fmean(whole[name] - cut[name] for name in names)
        assert row.difference == pytest.approx(wanted) and row.difference
        assert row.first == pytest.approx(results.panel.reading.domains[domain].floor["total"])
        answers = [one for name in names for one in counted[name]]
        assert measure.coverage[domain].share(0) == pytest.approx(statistics.fmean(answers))
    assert {regression.sample_id for regression in measure.regressions} <= cut.keys()


def test_several_runs_stand_by_their_panel_too(folder: Path) -> None:
    (measure,) = rank_runs([folder / "cut", folder / "whole"], judge="panel").measures
    for one in measure.standings:
        results = load_run(folder / ("cut", "whole")[one.run]).results
        assert results is not None and results.panel is not None
        assert one.overall.value == pytest.approx(results.panel.reading.macro_floor["total"])
        interval = results.panel.reading.macro_intervals.floor
        assert interval is not None and one.overall.interval is not None
        assert one.overall.interval.half == pytest.approx(interval.half)


def test_coverage_counts_answers_as_a_runs_own_tables_do(folder: Path) -> None:
    """An answer that was cut lowers it although the sample's other answer has a score, and keeps a run from a rank."""
    found = rank_runs([folder / "cut", folder / "whole"])
    results = load_run(folder / "cut").results
    assert results is not None
    for judge, measure in zip(results.judges, found.measures, strict=False):
        cut = next(one for one in measure.standings if one.run == 0)
        shares = {domain: block.coverage for domain, block in judge.domains.items()}
        assert cut.coverage == pytest.approx(shares)
        assert min(shares.values()) < 0.99 and (cut.unranked or "").startswith("coverage below 99 %")
    block = results.judges[0].micro
    assert block.scored / block.samples > block.coverage, "a sample with one answer of two that was cut"
    said = "Scored: samples with a score of any of their answers. Coverage: answers with a score."
    noted = [
        said in table.notes for table in run_tables(results) if {"Coverage", "Realism"} <= {*table.columns}
    ]
    assert noted == [True] * 4, "three judges and the panel"


def test_a_panel_that_is_not_the_same_in_all_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder / "whole", other)
    few_draws(monkeypatch)
    score_run(other, panel="mean")
    with pytest.raises(ConfigError, match="panels have other judges or another rule"):
        compare_runs(folder / "cut", other, judge="panel")
    score_run(other, panel="none")
    found = compare_runs(folder / "cut", other)
    assert "panel" not in [one.kind for one in found.measures]
    assert f"Not compared by a panel: {other} has none; `awb score RUN --panel median` makes one" in str(
        found.notes
    )
    assert not compare_runs(folder / "cut", other, judge="openai-api/judge-a").notes
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    done = awb("compare", folder / "cut", folder / "whole", "--judge", "panel", "--worst", "0")
    assert "B − A by the panel, median of 3 judges, at least 2" in done.out
