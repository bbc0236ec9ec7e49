"""Panels of judges where something is missing: a judge in some domains only, one that always fails, one added later,
parts of a run that are merged, a sample of the data. And ST-13: judges who say something else when asked again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.merge import merge_runs
from agentworldbench.records import DIMENSIONS
from agentworldbench.render.results import run_tables
from agentworldbench.run import Run, evaluate, judge_run, load_run, score_run
from agentworldbench.stats.results import PanelResults, Results
from agentworldbench.verification.verify import verify
from tests.helpers.asking import set_key
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, echo_world, verdict_text
from tests.helpers.several_judges import failing, few_draws, judges, panel_options
from tests.helpers.whole_runs import read_results

TWO = ("judge-a", "judge-c")


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch)
        few_draws(patch)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_official_folder(folder, domains=("swe", "os"), trajectories=2, turns=3, special=False)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    """Judge-b never gives a verdict."""
    with ScriptedServer(failing(1.1, ["judge-b"], judges(steady=True))) as running:
        yield running


def results_of(run: Run) -> Results:
    assert run.results is not None
    return run.results


def panel_of(run: Run) -> PanelResults:
    found = results_of(run).panel
    assert found is not None
    return found


def notes_of(run: Run, title: str) -> str:
    (table,) = [table for table in run_tables(results_of(run)) if table.title.startswith(title)]
    return " ".join(table.notes)


def test_a_judge_who_always_fails_is_left_out_and_counted(
    server: ScriptedServer, data: Path, tmp_path: Path
) -> None:
    """Of three the other two stand for him; of two nothing is left, which is no 0 and no 100 (ST-02)."""
    three = evaluate(
        **panel_options(server, tmp_path / "three", data, ("judge-a", "judge-b", "judge-c"), panel="median")
    )
    counts = panel_of(three).all_counts
    assert counts.scored == counts.short == counts.predictions == counts.verdicts_failed > 0
    assert panel_of(three).reading.micro.coverage == 1.0
    two = evaluate(**panel_options(server, tmp_path / "two", data, ("judge-a", "judge-b"), panel="mean"))
    panel = panel_of(two)
    assert panel.all_counts.too_few == panel.all_counts.predictions
    assert {panel.reading.macro_floor["total"], panel.reading.macro_exclude["total"]} == {None}
    assert panel.reading.micro.coverage == 0.0
    assert "makes the macro average not available" in notes_of(two, "Panel scores")
    (failures,) = [table for table in run_tables(results_of(two)) if table.title == "Failures"]
    assert ("panel", "too_few_judges") in [row[:2] for row in failures.rows]
    (agreement,) = results_of(two).agreement
    assert {one.alpha.reason for one in agreement.columns.values()} == {"too_few_raters"}
    assert "fewer than two of them gave a valid verdict" in notes_of(two, "Agreement")
    assert score_run(tmp_path / "two", panel="mean", min_judges=1).results is not None
    assert panel_of(load_run(tmp_path / "two")).reading.micro.coverage == 1.0


def test_a_panel_without_an_overall_score_is_no_entry(
    server: ScriptedServer, data: Path, tmp_path: Path
) -> None:
    run = evaluate(**panel_options(server, tmp_path / "run", data, TWO, panel="mean", tasks="swe"))
    panel = panel_of(run)
    empty = panel.reading.model_copy(update={"macro_floor": dict.fromkeys(panel.reading.macro_floor)})
    broken = panel.model_copy(update={"reading": empty})
    with pytest.raises(DataError, match=r"the panel .* scored no sample of a domain"):
        measured_entries(results_of(run).model_copy(update={"panel": broken}))


def test_a_domain_that_one_judge_was_never_asked_about_waits(
    server: ScriptedServer, data: Path, tmp_path: Path
) -> None:
    """The panel is the same everywhere: it has no score there, and says whom to ask."""
    output = tmp_path / "run"
    evaluate(**panel_options(server, output, data, TWO, panel="mean", tasks="swe"))
    grown = evaluate(**panel_options(server, output, data, TWO[:1]))
    panel, results = panel_of(grown), results_of(grown)
    assert not results.complete
    assert panel.counts["swe"].scored == panel.counts["swe"].predictions > 0
    assert panel.counts["os"].pending == panel.counts["os"].predictions > 0
    assert panel.reading.macro_floor["total"] is None
    assert panel.reading.domains["swe"].floor["total"] is not None
    assert "Judge openai-api/judge-c was never asked about OS" in notes_of(grown, "Panel scores")
    (agreement,) = results.agreement
    assert agreement.columns["total"].alone == panel.counts["os"].predictions
    whole = evaluate(**panel_options(server, tmp_path / "whole", data, TWO, panel="mean"))
    config = make_config({
        "judge": ["openai-api/judge-c"], "judge_base_url": [server.base_url], "judge_attempts": 1, "max_retries": 0,
    })  # fmt: skip
    asked = judge_run(output, config)
    assert panel_of(asked).reading == panel_of(whole).reading
    assert results_of(asked).agreement == results_of(whole).agreement


def test_a_judge_added_later_joins_the_panel(server: ScriptedServer, data: Path, tmp_path: Path) -> None:
    output, notices = tmp_path / "run", list[str]()
    evaluate(**panel_options(server, output, data, TWO, panel="median", tasks="swe"))
    config = make_config({
        "judge": ["openai-api/judge-d"], "judge_base_url": [server.base_url], "judge_attempts": 1, "max_retries": 0,
    })  # fmt: skip
    run = judge_run(output, config, lambda progress: notices.extend(progress.notices))
    assert panel_of(run).rule == "median of 3 judges, at least 2"
    assert panel_of(run).all_counts.verdicts == 3 * panel_of(run).all_counts.predictions
    assert any("was median of 2 judges, at least 2, is now median of 3 judges" in line for line in notices)
    at_once = evaluate(
        **panel_options(server, tmp_path / "once", data, (*TWO, "judge-d"), panel="median", tasks="swe")
    )
    assert panel_of(run) == panel_of(at_once)


def test_a_panel_waits_while_the_run_has_no_judge(server: ScriptedServer, data: Path, tmp_path: Path) -> None:
    """A judge without a verdict is forgotten; the panel is kept for those to come, and one alone is refused."""
    output = tmp_path / "run"
    evaluate(**panel_options(server, output, data, TWO, panel="mean", tasks="swe"))
    (output / "verdicts.jsonl").unlink()
    run = evaluate(**panel_options(server, output, data, TWO, no_judge=True, panel="median"))
    assert run.record.judges == () and run.record.panel is not None and run.record.panel.combine == "mean"
    assert score_run(output).record.panel == run.record.panel
    assert results_of(run).panel is None
    with pytest.raises(ConfigError, match="needs at least two judges"):
        evaluate(**panel_options(server, output, data, TWO[:1]))
    assert panel_of(evaluate(**panel_options(server, output, data, TWO))).combine == "mean"


@pytest.fixture(scope="module")
def parts(server: ScriptedServer, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`whole`, and the same run in two shards `1` and `2`."""
    folder = tmp_path_factory.mktemp("parts")
    names = ("judge-a", "judge-b", "judge-c")
    evaluate(**panel_options(server, folder / "whole", data, names, panel="median"))
    for part in ("1", "2"):
        evaluate(**panel_options(server, folder / part, data, names, panel="median", shard=f"{part}/2"))
    yield folder


def test_merged_shards_are_the_whole_run_panel_and_agreement_included(parts: Path) -> None:
    merge_runs([parts / "2", parts / "1"], parts / "merged")
    whole, merged = read_results(parts / "whole"), read_results(parts / "merged")
    assert merged["panel"] == whole["panel"]
    assert merged["agreement"] == whole["agreement"]
    assert merged["judges"] == whole["judges"]
    assert "SHARD" not in json.dumps(merged)


def test_runs_with_unlike_panels_are_not_merged(parts: Path) -> None:
    score_run(parts / "1", panel="mean")
    with pytest.raises(ConfigError, match=r"another panel of judges.*awb score RUN --panel"):
        merge_runs([parts / "1", parts / "2"], parts / "unlike")
    assert not (parts / "unlike").exists()
    score_run(parts / "1", panel="none")  # one that has none goes along with the other
    assert merge_runs([parts / "1", parts / "2"], parts / "one").results.panel is not None


def test_a_subset_has_a_panel_too(server: ScriptedServer, data: Path, tmp_path: Path) -> None:
    run = evaluate(**panel_options(server, tmp_path / "run", data, TWO, panel="mean", limit="2", seed=1))
    assert panel_of(run).all_counts.predictions == 4
    assert "a subset" in " ".join(
        table.title for table in run_tables(results_of(run)) if "Panel" in table.title
    )


def test_st_13_judges_who_change_their_minds_are_seen(data: Path, tmp_path: Path) -> None:
    """One alternates between 3 and 5, another always says 4: repeats tell them apart, and results name who judged."""
    turns: dict[tuple[str, str], int] = {}

    def script(call: ChatCall) -> Reply:
        if not call.model.startswith("judge"):
            return echo_world(call)
        turn = turns[call.model, call.key] = turns.get((call.model, call.key), 0) + 1
        value = 4 if call.model == "judge-steady" else 3 + 2 * (turn % 2)
        return Reply(content=verdict_text(dict.fromkeys(DIMENSIONS, value)), model=f"{call.model}-2026-01-01")

    names = ("judge-moody", "judge-steady")
    with ScriptedServer(script) as server:
        more: dict[str, Any] = {"judge_repeats": 2, "judge_temperature": 0.7, "tasks": "swe", "panel": "mean"}
        run = evaluate(**panel_options(server, tmp_path / "run", data, names, **more))
    results = results_of(run)
    between, moody, steady = results.agreement
    assert [one.kind for one in results.agreement] == ["between", "within", "within"]
    assert (moody.columns["total"].exact.value, moody.columns["total"].within_one.value) == (0.0, 0.0)
    assert (steady.columns["total"].exact.value, steady.columns["total"].alpha.reason) == (
        1.0,
        "no_variation",
    )
    assert between.columns["total"].within_one.value == 1.0
    said = notes_of(run, "Agreement")
    assert "No value of alpha (B repeats, total): all values are the same" in said
    assert "No value of kappa (A-B, total; " in said
    # The mean of 3 and 5 and that of 4 and 4: a panel of repeats and judges is calmer than a single verdict.
    assert panel_of(run).reading.macro_floor["total"] == pytest.approx(75)
    for judge, name in zip(results.judges, names, strict=True):
        assert judge.served == (f"{name}-2026-01-01",)
        assert judge.judge.sampling["temperature"] == 0.7
        assert judge.judge.prompts and all(judge.judge.system_prompts.values())


def test_a_changed_panel_is_seen_without_the_data(server: ScriptedServer, tmp_path: Path) -> None:
    """Its scores are made again of the verdicts alone; an honest run, of two epochs, shows no difference."""
    folder = tmp_path / "data"
    make_official_folder(folder, domains=("swe",), trajectories=2, turns=3, special=False)
    run = tmp_path / "run"
    evaluate(**panel_options(server, run, folder, TWO, epochs=2, panel="mean"))
    shutil.rmtree(folder)
    honest = verify(run)
    assert honest.verdict == "incomplete" and not [
        one for one in honest.findings if one.severity == "refused"
    ]
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    results["panel"]["reading"]["macro_floor"]["total"] += 1
    (run / "results.json").write_text(json.dumps(results), encoding="utf-8")
    found = verify(run)
    assert found.verdict == "refused"
    places = [place for one in found.findings for place in one.where]
    assert any("results.json: panel.reading.macro_floor.total is" in place for place in places)
