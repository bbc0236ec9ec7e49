"""Leaderboard entries made from a run: judge and rules beside each other, in groups of their own, with intervals."""

from __future__ import annotations

from math import fsum
from pathlib import Path

import pytest

from agentworldbench.errors import DataError
from agentworldbench.leaderboard.check import check_entry
from agentworldbench.leaderboard.entries import Entry, grouped, load_entries, ranks
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.leaderboard.tables import leaderboard_tables
from agentworldbench.run import evaluate
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.results import Results
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.several_judges import few_draws, judges, panel_options
from tests.helpers.whole_runs import good, options


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A judged run on generated rows of two domains, six trajectories each."""
    folder = tmp_path_factory.mktemp("entered")
    make_official_folder(folder / "data", domains=("swe", "os"), trajectories=6)
    with ScriptedServer(good) as server:
        found = evaluate(**options(server, folder / "run", folder / "data")).results
    assert found is not None
    return found


@pytest.fixture
def judged(results: Results) -> Entry:
    (entry,) = measured_entries(results)
    return entry


@pytest.fixture
def by_rules(results: Results) -> Entry:
    (entry,) = measured_entries(results.model_copy(update={"judges": ()}))
    return entry


def test_a_judged_run_is_an_entry_with_what_the_rules_say_beside_it(results: Results, judged: Entry) -> None:
    (judge,) = results.judges
    assert (judged.status, judged.group.score, judged.group.protocol) == ("measured", "judge", "builtin")
    assert judged.group.judge_digest == judge.judge.digest
    assert judged.scores == {domain: block.floor["total"] for domain, block in judge.domains.items()}
    assert judged.computed_overall == judge.macro_floor["total"]
    assert judged.computed_overall == pytest.approx(fsum(judged.scores.values()) / 2)
    assert judged.overall_interval == judge.macro_intervals.floor
    assert judged.intervals == {domain: block.intervals.floor for domain, block in judge.domains.items()}
    assert judged.coverage == {"swe": 1.0, "os": 1.0}
    rules, beside = results.rules, judged.rules
    assert beside is not None and beside.overall is not None and beside.interval is not None
    assert beside.overall == 100 * (rules.macro[RULE_SCORE].floor or 0)
    assert beside.scores == {domain: 100 * (mean.floor or 0) for domain, mean in rules.score.items()}
    assert beside.skill == {domain: skill.floor for domain, skill in rules.skill.items()}
    assert beside.overall_skill == rules.overall_skill.floor is not None
    assert beside.skill_interval == rules.overall_skill.intervals.floor
    found = rules.macro_intervals.floor
    assert found is not None and found.half is not None and beside.interval.half is not None
    assert beside.interval.half == pytest.approx(100 * found.half)
    assert beside.interval.low == pytest.approx(beside.overall - beside.interval.half)
    assert beside.overall not in (judged.overall, *judged.scores.values())


def test_a_run_without_a_judge_is_an_entry_of_rule_scores(
    results: Results, by_rules: Entry, judged: Entry
) -> None:
    assert (by_rules.group.score, by_rules.group.judge, by_rules.group.judge_digest) == ("rules", None, None)
    assert by_rules.rules is not None
    assert by_rules.rules == judged.rules
    assert by_rules.scores == by_rules.rules.scores
    assert by_rules.overall == by_rules.rules.overall
    assert set(by_rules.intervals) == {"swe", "os"}
    assert by_rules.group.protocol == f"rules {by_rules.rules.definition[:8]}"
    assert by_rules.coverage == {"swe": 1.0, "os": 1.0}
    other = results.model_copy(update={"judges": (), "task_files": {"swe": "0", "os": "0"}})
    assert measured_entries(other)[0].group != by_rules.group, "other definitions, another ranking"


def test_entries_are_stored_and_read_as_they_are(tmp_path: Path, judged: Entry, by_rules: Entry) -> None:
    assert judged.slug.startswith("measured-judge-openai-api-world-")
    for entry in (judged, by_rules):
        (tmp_path / f"{entry.slug}.json").write_text(entry.model_dump_json(), encoding="utf-8")
    assert load_entries(tmp_path) == sorted([judged, by_rules], key=lambda entry: entry.slug)


def test_rule_scores_stand_at_the_end_and_order_nothing(judged: Entry) -> None:
    assert judged.rules is not None
    better = judged.rules.model_copy(update={"overall": 99.0})
    worse = judged.model_copy(
        update={"model": "b", "slug": "b", "computed_overall": judged.overall - 1, "rules": better}
    )
    ((_, some),) = grouped([worse, judged])
    assert ([one.model for one in some], ranks(some)) == ([judged.model, "b"], [1, 2])
    (table,) = leaderboard_tables([worse, judged])
    assert table.columns == (
        "Rank",
        "Model",
        "Status",
        "Overall",
        "Computed",
        "SWE",
        "OS",
        "Coverage",
        "Rule score",
        "Skill",
    )
    assert [row[1] for row in table.rows] == [judged.model, "b"]
    row = dict(zip(table.columns, table.rows[0], strict=True))
    interval, rules = judged.overall_interval, judged.rules
    assert interval is not None and rules.interval is not None
    assert row["Overall"] == f"{judged.overall:.1f} ± {interval.half:.1f}"
    assert row["Computed"] == f"{judged.overall:.2f}"
    assert row["Rule score"] == f"{rules.overall:.1f} ± {rules.interval.half:.1f}"
    assert row["Skill"].startswith(f"{rules.overall_skill:.3f} ± ")
    assert table.rows[1][-2].startswith("99.0 ± ")
    assert any("they order nothing here" in note for note in table.notes)
    assert not any("unlike task files" in note for note in table.notes)
    changed = worse.model_copy(update={"rules": better.model_copy(update={"definition": "0" * 64})})
    (mixed,) = leaderboard_tables([changed, judged])
    assert any("unlike task files" in note for note in mixed.notes)


def test_an_entry_without_rules_has_a_dash_and_a_group_of_rules_skill_alone(
    judged: Entry, by_rules: Entry
) -> None:
    plain = judged.model_copy(update={"model": "b", "slug": "b", "rules": None})
    (table,) = leaderboard_tables([judged, plain])
    assert [row[-2:] == ("–", "–") for row in table.rows] == [row[1] == "b" for row in table.rows]
    (table,) = leaderboard_tables([by_rules])
    assert table.columns[-1] == "Skill"
    assert "Rule score" not in table.columns
    assert table.title.startswith("Rule scores — data folder data")


def test_what_is_not_whole_is_no_entry(results: Results) -> None:
    with pytest.raises(DataError, match="not all samples"):
        measured_entries(results.model_copy(update={"complete": False}))
    (judge,) = results.judges
    nothing = dict.fromkeys(judge.strict.macro_floor)
    without = judge.model_copy(update={"strict": judge.strict.model_copy(update={"macro_floor": nothing})})
    with pytest.raises(DataError, match="there is no overall score"):
        measured_entries(results.model_copy(update={"judges": (without,)}))


def test_a_panel_is_an_entry_with_all_its_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_official_folder(tmp_path / "data", domains=("swe", "os"), trajectories=3).folder
    names = ["openai-api/judge-a", "openai-api/judge-b", "openai-api/judge-c"]
    few_draws(monkeypatch)
    with ScriptedServer(judges()) as server:
        short = [name.partition("/")[2] for name in names]
        run = evaluate(**panel_options(server, tmp_path / "run", data, short, panel="median"))
    assert run.results is not None and run.results.panel is not None
    *judged, panel = measured_entries(run.results, run.record)
    assert [one.group.judge for one in judged] == names
    assert panel.group.judge == f"panel: median of 3 judges, at least 2 ({', '.join(names)})"
    assert panel.group.judge_digest == run.results.panel.digest
    assert [one.judge.model for one in panel.judges] == names
    assert panel.panel is not None and (panel.panel.combine, panel.panel.least) == ("median", 2)
    assert panel.readings == {"strict": run.results.panel.reading}
    assert panel.costs is not None and panel.costs.verdicts is not None
    assert panel.costs.verdicts.records == sum(one.spent.records for one in run.results.judges)
    assert len({one.slug for one in (*judged, panel)}) == len(grouped((*judged, panel))) == 4
    for one in (*judged, panel):
        assert check_entry(one) == []
