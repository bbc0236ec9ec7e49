"""Panels of judges in whole runs: every number from the stored verdicts, when a panel is made, kept and refused.

One server plays the world and all judges; judge-b gives no verdict on a third of the texts. Edge cases of a panel in
a run: `test_panel_edges.py`.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError
from agentworldbench.integrations.inspect_export import export_inspect
from agentworldbench.leaderboard.entries import grouped
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.records import DIMENSIONS, Verdict
from agentworldbench.render.results import run_tables
from agentworldbench.run import Run, evaluate, judge_run, load_run, score_run
from agentworldbench.run_record import PanelRule
from agentworldbench.stats.results import PanelResults
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_prompts import use_prompts
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.several_judges import failing, few_draws, judges, panel_options
from tests.helpers.whole_runs import read_results

ALL = ("judge-a", "judge-b", "judge-c")


@dataclass(frozen=True)
class World:
    """A folder with data and the runs `panel` (begun with --panel median) and `plain` (without), and the server."""

    folder: Path
    server: ScriptedServer

    def options(self, name: str, names: tuple[str, ...] = ALL, **more: Any) -> dict[str, Any]:
        return panel_options(self.server, self.folder / name, self.folder / "data", names, **more)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("panels")
    make_official_folder(folder / "data", domains=("swe", "os"), trajectories=3, turns=3, special=False)
    script = failing(1 / 3, ["judge-b"], judges(steady=True))
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        set_key(patch)
        few_draws(patch)
        made = World(folder, server)
        evaluate(**made.options("panel", panel="median"))
        evaluate(**made.options("plain"))
        yield made


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def panel_of(run: Run) -> PanelResults:
    assert run.results is not None and run.results.panel is not None
    return run.results.panel


def totals(run: Run) -> dict[str, list[Verdict]]:
    """All verdicts by sample."""
    found: dict[str, list[Verdict]] = {}
    for one in run.verdicts():
        found.setdefault(one.sample_id, []).append(one)
    return found


def by_hand(run: Run, least: int, combine: Callable[[list[float]], float]) -> dict[str, float | None]:
    """The panel's total of each sample, 0-100, in plain Python."""
    scores: dict[str, float | None] = {}
    for name, some in totals(run).items():
        valid = [sum(one.scores.values()) / 5 for one in some if one.scores is not None]
        scores[name] = 25 * (combine(valid) - 1) if len(valid) >= least else None
    return scores


def test_every_number_of_a_panel_comes_from_the_stored_verdicts(world: World) -> None:
    run = load_run(world.folder / "panel")
    panel, scores = panel_of(run), by_hand(run, 2, statistics.median)
    assert (panel.combine, panel.least, panel.rule) == ("median", 2, "median of 3 judges, at least 2")
    domains = {
        domain: [value for name, value in scores.items() if name.startswith(f"{domain}/")]
        for domain in ("swe", "os")
    }
    for domain, values in domains.items():
        block = panel.reading.domains[domain]
        known = [value for value in values if value is not None]
        assert (block.samples, block.scored) == (len(values), len(known))
        assert block.exclude["total"] == pytest.approx(statistics.fmean(known))
        assert block.floor["total"] == pytest.approx(sum(known) / len(values))
        assert block.intervals.floor is not None and block.intervals.floor.kind == "population"
    macro = statistics.fmean(block.floor["total"] or 0 for block in panel.reading.domains.values())
    assert panel.reading.macro_floor["total"] == pytest.approx(macro)
    whole = panel.reading.macro_intervals.floor
    assert whole is not None and whole.method == "stratified"
    valid = [one for some in totals(run).values() for one in some if one.scores is not None]
    short = [some for some in totals(run).values() if any(one.scores is None for one in some)]
    counts = panel.all_counts
    assert (counts.predictions, counts.scored, counts.short) == (len(scores), len(scores), len(short))
    assert (counts.verdicts, counts.verdicts - counts.verdicts_failed) == (3 * len(scores), len(valid))
    assert 0 < len(short) < len(scores)
    checks = panel.checks
    assert checks is not None and checks.policy == "floor" and checks.macro.reported == whole
    assert {name: one.reported for name, one in checks.domains.items()} == {
        name: block.intervals.floor for name, block in panel.reading.domains.items()
    }
    assert checks.macro.by_task is not None and checks.macro.bootstrap is not None
    # A dimension is combined by itself.
    name = DIMENSIONS[0]
    by_sample = [
        25 * (statistics.median(one.scores[name] for one in some if one.scores is not None) - 1)
        for some in totals(run).values()
    ]
    assert panel.reading.micro.exclude[name] == pytest.approx(statistics.fmean(by_sample))


def test_exports_say_what_panel_they_leave_out(world: World, tmp_path: Path) -> None:
    run = load_run(world.folder / "panel")
    told = [note for note in export_inspect(run.path, tmp_path / "all").notes if "panel" in note]
    score = panel_of(run).reading.macro_floor["total"]
    assert [f"(median of {len(run.record.judges)} judges: {score:.2f})" in note for note in told] == [True]
    one = export_inspect(run.path, tmp_path / "one", judge=run.record.judges[0].digest)
    assert [note for note in one.notes if "panel" in note] == [], "one judge's file claims nothing of a panel"


def test_a_panel_had_afterwards_is_the_same_and_asks_nothing(world: World) -> None:
    """`score` with a panel, without naming it again, with another, and without one again."""
    path, before = world.folder / "plain", read_results(world.folder / "plain")
    run_json = (path / "run.json").read_text()
    asked = len(world.server.calls)
    assert "panel" not in json.loads(run_json) and "panel" not in before
    made = panel_of(score_run(path, panel="median"))
    assert made == panel_of(load_run(world.folder / "panel"))
    assert panel_of(score_run(path)) == made
    assert load_run(path).record.panel == PanelRule(combine="median")
    run = score_run(path, panel="mean", min_judges=3)
    other = panel_of(run)
    assert (other.rule, other.digest == made.digest) == ("mean of 3 judges, at least 3", False)
    known = [value for value in by_hand(run, 3, statistics.fmean).values() if value is not None]
    assert other.reading.micro.exclude["total"] == pytest.approx(statistics.fmean(known))
    few = other.all_counts.too_few
    assert few == other.all_counts.predictions - len(known) > 0
    assert sum(some["judge"]["too_few_judges"] for some in other.reading.failures.values()) == few
    score_run(path, panel="none")
    assert (path / "run.json").read_text() == run_json
    assert read_results(path) == before
    assert len(world.server.calls) == asked


def test_a_finished_run_takes_on_a_panel_and_keeps_it(world: World) -> None:
    two = ("judge-a", "judge-c")
    evaluate(**world.options("finished", two))
    asked, notices = len(world.server.calls), list[str]()

    def again(**more: Any) -> Run:
        notices.clear()
        return evaluate(
            **world.options("finished", two, **more), watch=lambda one: notices.extend(one.notices)
        )

    assert panel_of(again(panel="mean")).combine == "mean"
    assert panel_of(again()).rule == "mean of 2 judges, at least 2"
    assert not any("Panel" in line for line in notices)
    assert panel_of(again(panel="median", min_judges=1)).least == 1
    assert any(
        "was mean of 2 judges, at least 2, is now median of 2 judges, at least 1" in line for line in notices
    )
    dropped = again(panel="none").results
    assert dropped is not None and dropped.panel is None
    assert any("dropped" in line for line in notices)
    assert len(world.server.calls) == asked


def test_a_run_without_a_panel_or_a_second_verdict_is_written_as_before(world: World, tmp_path: Path) -> None:
    evaluate(**world.options("single", names=("judge-a",)))
    for name in ("run.json", "results.json"):
        text = (world.folder / "single" / name).read_text()
        assert not {"panel", "agreement"} & json.loads(text).keys()


REFUSED: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "one judge": (("judge-a",), {"panel": "median"}, r"needs at least two judges, this run has 1 \(openai-api/judge-a\)"),
    "no judge": ((), {"panel": "mean"}, r"needs at least two judges, this run has 0 \(none\)"),
    "more than there are": (ALL, {"panel": "mean", "min_judges": 4}, "--min-judges 4: this run has 3 judges"),
    "a minimum of nothing": (ALL, {"min_judges": 2}, "--min-judges 2: belongs to a panel"),
    "a minimum of none": (ALL, {"panel": "none", "min_judges": 2}, "--min-judges 2: belongs to a panel"),
    "zero": (ALL, {"panel": "mean", "min_judges": 0}, "--min-judges: .*greater than or equal to 1"),
    "another word": (ALL, {"panel": "mode"}, "--panel: .*'median', 'mean' or 'none'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_panel_is_refused_before_anything_is_asked(
    world: World, case: str, tmp_path: Path
) -> None:
    names, more, message = REFUSED[case]
    asked = len(world.server.calls)
    given = world.options("new", names, **more) | {"output": tmp_path / "new"}
    if not names:
        given.pop("judge_base_url")
    with pytest.raises(ConfigError, match=message):
        evaluate(**given)
    assert not (tmp_path / "new").exists()
    assert len(world.server.calls) == asked


def test_judges_of_different_protocols_are_no_panel(world: World) -> None:
    """Neither afterwards, nor when one is added to a run that has a panel; the run stays as it was."""
    path = world.folder / "mixed"
    with pytest.MonkeyPatch.context() as patch:
        use_prompts(patch)
        evaluate(**world.options("mixed", ("judge-a", "judge-c"), panel="median"))
        before = (path / "results.json").read_bytes(), (path / "run.json").read_bytes()
        asked = len(world.server.calls)
        official = make_config({
            "judge": ["openai-api/judge-b"], "judge_base_url": [world.server.base_url], "judge_attempts": 1,
            "max_retries": 0, "protocol": "official",
        })  # fmt: skip
        with pytest.raises(
            ConfigError, match="judge-a judges by protocol builtin 1, openai-api/judge-b by official 1"
        ):
            judge_run(path, official)
        assert ((path / "results.json").read_bytes(), (path / "run.json").read_bytes()) == before
        assert len(world.server.calls) == asked
        score_run(path, panel="none")
        judged = judge_run(path, official).results
    assert judged is not None and len(judged.judges) == 3
    with pytest.raises(ConfigError, match="judges of different protocols are no panel"):
        score_run(path, panel="median")
    (table,) = [table for table in run_tables(judged) if table.title.startswith("Agreement")]
    assert any("different protocols" in note for note in table.notes)


def test_the_command_line_makes_a_panel_and_says_why_not(world: World, awb: HereAwb) -> None:
    path = str(world.folder / "panel")
    done = awb("score", path, "--json")
    (event,) = [one for one in map(json.loads, done.out.splitlines()) if one["event"] == "results"]
    assert event["results"]["panel"]["judges"] == [
        one["judge"]["digest"] for one in event["results"]["judges"]
    ]
    assert [one["kind"] for one in event["results"]["agreement"]] == ["between"] * 4
    assert "panel: median of 3 judges, at least 2" in done.err
    refused = awb("score", path, "--panel", "median", "--min-judges", "9")
    assert (refused.code, "this run has 3 judges" in refused.only_complaint) == (2, True)
    assert awb("score", path, "--panel", "mode").code == 2


def test_the_tables_of_a_panel_and_of_agreement(world: World) -> None:
    """All judges in full, then the total of each pair, in one block at 80 columns."""
    results = load_run(world.folder / "panel").results
    assert results is not None and results.panel is not None
    tables = run_tables(results)
    first, (panel,), (agreement,) = (
        tables[0],
        [table for table in tables if table.title.startswith("Panel scores")],
        [table for table in tables if table.title.startswith("Agreement")],
    )
    assert first.columns[1:9] == (
        "Judged A", "Judge A", "Judged B", "Judge B", "Judged C", "Judge C", "By panel", "Panel",
    )  # fmt: skip
    macro = results.panel.reading.macro_floor["total"]
    assert macro is not None
    assert first.rows[2][8].startswith(f"{macro:.1f}") and panel.rows[2][3] == f"{macro:.2f}"
    counts = results.panel.all_counts
    said = f"scored {counts.scored} (though a verdict failed: {counts.short})"
    assert any(said in note and f"failed: {counts.verdicts_failed}." in note for note in panel.notes)
    assert [row[0] for row in agreement.rows] == [
        *(f"All, {name}" for name in ("total", *DIMENSIONS)), "A-B, total", "A-C, total", "B-C, total",
    ]  # fmt: skip
    text = agreement.to_text(80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.count("Verdicts ") == 1, "one block"
    alone = results.agreement[0].columns["total"]
    assert agreement.rows[0][1] == str(alone.predictions)
    assert agreement.notes[-1].endswith(f"{alone.failed} verdicts failed.")


def test_what_fails_a_command_is_the_coverage_of_the_panel(world: World, awb: HereAwb) -> None:
    """Judge-b has a verdict on two thirds of the samples; the panel has a score of all."""
    evaluate(**world.options("covered", ("judge-a", "judge-b"), tasks="swe"))
    words = [
        *("judge", world.folder / "covered", "--judge", "openai-api/judge-b", "--judge-base-url", world.server.base_url),
        *("--judge-attempts", "1", "--max-retries", "0", "--fail-on-error", "0.1"),
    ]  # fmt: skip
    assert awb(*words).code == 3
    assert awb(*words, "--panel", "mean").code == 3
    done = awb(*words, "--panel", "mean", "--min-judges", "1")
    assert (done.code, "mean of 2 judges, at least 1" in done.out) == (0, True)


def test_a_panel_is_an_entry_in_a_group_of_its_own(world: World) -> None:
    results = load_run(world.folder / "panel").results
    assert results is not None and results.panel is not None
    *judged, entry = measured_entries(results)
    assert len(judged) == 3 and len(grouped([*judged, entry])) == 4 == len(
        {one.slug for one in [*judged, entry]}
    )
    assert entry.group.judge == (
        "panel: median of 3 judges, at least 2 (openai-api/judge-a, openai-api/judge-b, openai-api/judge-c)"
    )
    assert entry.group.judge_digest == results.panel.digest not in {one.group.judge_digest for one in judged}
    reading = results.panel.reading
    assert entry.computed_overall == reading.macro_floor["total"]
    assert entry.overall_interval == reading.macro_intervals.floor
    assert entry.scores == {domain: block.floor["total"] for domain, block in reading.domains.items()}
    assert entry.coverage == {domain: block.coverage for domain, block in reading.domains.items()}
    assert entry.rules == judged[0].rules


def test_the_order_of_judges_does_not_show_in_a_panel(world: World) -> None:
    runs = [
        evaluate(**world.options(name, names, panel="mean", tasks="swe"))
        for name, names in (("there", ("judge-a", "judge-b")), ("back", ("judge-b", "judge-a")))
    ]
    first, second = map(panel_of, runs)
    assert (second.digest, second.counts, second.reading) == (first.digest, first.counts, first.reading)
    assert second.judges == tuple(reversed(first.judges))
    groups = [measured_entries(run.results)[-1].group for run in runs if run.results is not None]
    assert groups[0] == groups[1]
