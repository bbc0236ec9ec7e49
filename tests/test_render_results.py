"""Tests of `render/results.py`: every number of a run's tables, against its `Results`.

One run on a loopback server, with failures of the model and of the judge; expected cells are made here
from the parts of `Results`, with overall means computed anew from the domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from pathlib import Path

import pytest

from agentworldbench.config import make_config
from agentworldbench.records import DIMENSIONS
from agentworldbench.render.results import failure_table, judge_table, rule_table, run_tables, scores_table
from agentworldbench.render.table import percent, points, share
from agentworldbench.run import Run, evaluate, explain_run, judge_run
from agentworldbench.run_record import judge_names
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import Results
from agentworldbench.texts import digest
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_prompts import use_prompts
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, kind_of_call, options

DOMAINS = {"swe": "SWE", "os": "OS"}
OTHER = {"floor": "exclude", "exclude": "floor"}


def some_fail(call: ChatCall) -> Reply:
    """Model and judge fail in one tenth of their calls, decided by the messages."""
    if kind_of_call(call) == 0:
        return Reply(content="No verdict." if call.model == "judge" else "")
    return good(call)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("rendered")
    make_official_folder(folder / "data", domains=tuple(DOMAINS), trajectories=8)
    with ScriptedServer(some_fail) as server:
        return evaluate(**options(server, folder / "run", folder / "data", judge_attempts=1))


@pytest.fixture(params=["floor", "exclude"])
def results(run: Run, request: pytest.FixtureRequest) -> Results:
    """The results under each policy."""
    assert run.results is not None
    return run.results.model_copy(update={"policy": request.param})


def average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if len(known) == len(values) else None


def test_the_run_holds_what_the_tables_must_tell_apart(run: Run) -> None:
    assert run.results is not None
    (judge,) = run.results.judges
    for domain in DOMAINS:
        assert judge.domains[domain].exclude["total"] != judge.domains[domain].floor["total"]
    assert judge.macro_floor["total"] != judge.micro.floor["total"]
    assert any(run.results.predictions.failures.values())
    assert any(counts["judge"] for counts in judge.failures.values())
    assert "change_f1" in run.results.rules.metrics["os"]
    assert "change_f1" not in run.results.rules.metrics["swe"]


def test_the_judge_table(results: Results) -> None:
    (judge,) = results.judges
    protocol = {"floor": "builtin", "exclude": "official"}[results.policy]
    judge = judge.model_copy(update={"judge": judge.judge.model_copy(update={"protocol": protocol})})
    table = judge_table(results, judge)
    policy, other = results.policy, OTHER[results.policy]
    assert table.columns == (
        "Domain", "Scored", "Coverage", policy.capitalize(), other.capitalize(), *map(str.capitalize, DIMENSIONS)
    )  # fmt: skip
    expected = []
    blocks = {DOMAINS[domain]: one for domain, one in judge.domains.items()} | {"Overall, micro": judge.micro}
    for name, block in blocks.items():
        first, second = getattr(block, policy), getattr(block, other)
        head = (name, f"{block.scored}/{block.samples}", percent(block.coverage))
        expected.append((*head, *map(points, (first["total"], second["total"], *map(first.get, DIMENSIONS)))))
    means = {
        name: {
            column: average([getattr(one, name)[column] for one in judge.domains.values()])
            for column in ("total", *DIMENSIONS)
        }
        for name in (policy, other)
    }
    macro = (
        "Overall, macro",
        *expected[-1][1:3],
        points(means[policy]["total"]),
        points(means[other]["total"]),
    )
    expected.insert(-1, (*macro, *(points(means[policy][name]) for name in DIMENSIONS)))
    assert list(table.rows) == expected
    assert table.strong == (len(DOMAINS),), "the headline is macro"
    prompts = digest([judge.judge.prompts, judge.judge.system_prompts])[:8]
    assert table.notes[-1] == (
        f"Judge openai-api/judge (served as judge), protocol {protocol}, digest {judge.judge.digest}, temperature 0.0, "
        f"prompts {prompts}."
    )
    assert "data folder data, 2 of 7 domains" in table.title


def test_the_table_of_scores(results: Results) -> None:
    """Judge and rules side by side, each under the policy of its own protocol."""
    (judge,) = results.judges
    table, rules, policy = scores_table(results), results.rules, results.policy
    assert table.columns == ("Domain", "Judged", "Judge", "Scored", "Rule score", "Skill", "Copy-last")
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == [*DOMAINS.values(), "Overall, macro", "Overall, micro"]
    for domain, name in DOMAINS.items():
        block, score, skill = judge.domains[domain], rules.score[domain], rules.skill[domain]
        copied = 100 * getattr(skill, f"baseline_{policy}")
        assert rows[name] == (
            f"{block.scored}/{block.samples}",
            both(block.floor["total"], block.intervals.floor),
            f"{score.scored}/{score.n}",
            both(getattr(score, policy), getattr(rules.intervals[domain], policy), 100),
            both(getattr(skill, policy), getattr(skill.intervals, policy), 1, 3),
            points(copied),
        )
    macro, micro = (getattr(means["rule_score"], policy) for means in (rules.macro, rules.micro))
    skill = rules.overall_skill
    assert rows["Overall, macro"][1::2][:2] == (
        both(judge.macro_floor["total"], judge.macro_intervals.floor),
        both(macro, getattr(rules.macro_intervals, policy), 100),
    )
    assert rows["Overall, macro"][4:] == (
        both(getattr(skill, policy), getattr(skill.intervals, policy), 1, 3),
        "–",
    )
    assert rows["Overall, micro"][1] == both(judge.micro.floor["total"], judge.micro.intervals.floor)
    assert rows["Overall, micro"][3:] == (both(micro, getattr(rules.micro_intervals, policy), 100), "–", "–")
    assert all(" ± " in cell and "– " not in cell for cell in rows["Overall, macro"][1:5:2])
    assert table.strong == (len(DOMAINS),), "the headline is macro"
    assert table.notes[0] == "Judge: openai-api/judge, protocol builtin, 0-100, headline macro, floor."


def both(value: float | None, interval: Interval | None, scale: float = 1, decimals: int = 1) -> str:
    assert value is not None and interval is not None
    half = "–" if interval.half is None else f"{interval.half * scale:.{decimals}f}"
    return f"{value * scale:.{decimals}f} ± {half}"


def test_scores_of_several_judges_stand_in_columns_of_their_own(results: Results) -> None:
    (judge,) = results.judges
    other = judge.model_copy(
        update={
            "judge": judge.judge.model_copy(update={"digest": "d2", "model": "x", "protocol": "official"})
        }
    )
    table = scores_table(results.model_copy(update={"judges": (judge, other)}))
    assert table.columns[1:5] == ("Judged A", "Judge A", "Judged B", "Judge B")
    first, second = judge.domains["os"].floor["total"], judge.domains["os"].exclude["total"]
    (row,) = [row for row in table.rows if row[0] == "OS"]
    assert first is not None and second is not None
    assert (row[2].split()[0], row[4].split()[0]) == (f"{first:.1f}", f"{second:.1f}")
    assert table.notes[1].startswith("Judge B: x, protocol official, 0-100, headline macro, exclude.")
    assert scores_table(results.model_copy(update={"judges": ()})).columns[1] == "Scored"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_tables_keep_to_the_width_of_the_terminal(width: int, results: Results) -> None:
    for table in run_tables(results):
        text = table.to_text(width)
        assert max(map(len, text.splitlines())) <= width
        for row in table.rows:
            assert row[0] in text
    assert " ± " in scores_table(results).to_markdown()
    first = scores_table(results).to_text(80).split("\n\n")[0]
    assert "Skill" in first, "80 columns hold judge, rule score and skill in one block"


def test_the_table_of_rule_metrics(results: Results) -> None:
    table = rule_table(results)
    rules, policy = results.rules, results.policy
    assert table.columns == ("Metric", *(DOMAINS[domain] for domain in rules.metrics), "Macro")
    rows = {row[0]: row[1:] for row in table.rows}
    counts = [*rules.score.values(), rules.micro[RULE_SCORE]]
    assert rows.pop("coverage") == tuple(percent(one.scored / one.n) for one in counts)
    assert table.rows[0][0] == "coverage"
    assert set(rows) == {name for metrics in rules.metrics.values() for name in metrics}
    assert len(rows) == len(table.rows) - 1
    for name, cells in rows.items():
        means = [metrics.get(name) for metrics in rules.metrics.values()]
        values = [None if one is None else getattr(one, policy) for one in means]
        macro = average([value for value in values if value is not None])
        assert cells == tuple(map(share, [*values, macro]))
    unlike = [cells for cells in rows.values() if cells[0] != cells[1] and "–" not in cells]
    assert unlike, "means of two alike would tell nothing"


def test_a_metric_that_one_domain_has_is_that_domains_overall(results: Results) -> None:
    table = rule_table(results)
    cells = dict(zip(table.columns, next(row for row in table.rows if row[0] == "change_f1"), strict=True))
    assert cells["SWE"] == "–"
    assert cells["OS"] == cells["Macro"] != "–"


def test_the_table_of_failures(results: Results) -> None:
    (judge,) = results.judges
    table = failure_table(results)
    assert table is not None
    assert table.columns == (
        "Stage",
        "Class",
        *(DOMAINS[domain] for domain in results.predictions.samples),
        "All",
    )
    rows = {row[:2]: [int(cell) for cell in row[2:]] for row in table.rows}
    assert set(rows) == {("prediction", "empty"), ("judge openai-api/judge", "judge_unparsed")}
    found = results.predictions.failures
    counts = [found[domain].get("empty", 0) for domain in found]
    assert rows["prediction", "empty"] == [*counts, sum(counts)]
    of_judge = [some["judge"].get("judge_unparsed", 0) for some in judge.failures.values()]
    assert rows["judge openai-api/judge", "judge_unparsed"] == [*of_judge, sum(of_judge)]


def test_a_domain_without_a_score_makes_the_overall_not_available(results: Results) -> None:
    (judge,) = results.judges
    nothing = dict.fromkeys(("total", *DIMENSIONS))
    empty = judge.domains["os"].model_copy(
        update={"scored": 0, "coverage": 0.0, "exclude": nothing, "floor": nothing}
    )
    reading = judge.strict.model_copy(
        update={"domains": judge.domains | {"os": empty}, "macro_exclude": nothing, "macro_floor": nothing}
    )
    changed = judge.model_copy(update={"strict": reading})
    table = judge_table(results, changed)
    assert table.rows[len(DOMAINS)][3:] == ("–",) * 7
    judged = scores_table(results.model_copy(update={"judges": (changed,)}))
    assert [row[2] for row in judged.rows if row[0] in ("OS", "Overall, macro")] == ["–", "–"]
    assert "makes the macro average not available" in table.notes[0]


def test_a_partial_run_says_so_in_every_title(results: Results) -> None:
    whole = run_tables(results)
    assert [table.title.partition(" of ")[0].partition(",")[0] for table in whole] == [
        "Scores",
        "Judge scores",
        "The same replies",
        "Rule metrics",
        "Failures",
    ]
    assert not any("PARTIAL" in table.title for table in whole)
    partial = run_tables(results.model_copy(update={"complete": False}))
    assert all("PARTIAL: not all samples have been asked" in partial[place].title for place in (0, 1, 3))


NAMES = [
    (["builtin"], ["m"]),
    (["builtin", "official"], ["m (builtin)", "m (official)"]),
    (["builtin", "builtin", "official"], ["m (builtin, d0)", "m (builtin, d1)", "m (official)"]),
]


@pytest.mark.parametrize(("protocols", "names"), NAMES)
def test_judges_of_one_model_are_told_apart(protocols: list[str], names: list[str], results: Results) -> None:
    (judge,) = results.judges
    same = [
        judge.judge.model_copy(update={"model": "m", "digest": f"d{number}", "protocol": protocol})
        for number, protocol in enumerate(protocols)
    ]
    other = judge.judge.model_copy(update={"model": "another", "digest": "d9"})
    called = judge_names([*same, other])
    assert called == {**{f"d{number}": name for number, name in enumerate(names)}, "d9": "another"}
    several = results.model_copy(
        update={"judges": tuple(judge.model_copy(update={"judge": one}) for one in (*same, other))}
    )
    titles = [table.title for table in run_tables(several)]
    assert len(set(titles)) == len(titles)
    assert all(any(f" by {name}" in title for title in titles) for name in called.values())
    failures = failure_table(several)
    assert failures is not None
    assert [row[0] for row in failures.rows[1:]] == [f"judge {name}" for name in called.values()]


def test_a_later_judge_of_another_protocol_changes_no_number_but_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_prompts(monkeypatch)
    make_official_folder(tmp_path / "data", domains=("os",), trajectories=8)
    with ScriptedServer(some_fail) as server:
        before = evaluate(**options(server, tmp_path / "run", tmp_path / "data", judge_attempts=1)).results
        words = {"judge": "openai-api/judge", "judge_base_url": server.base_url, "protocol": "official"}
        run = judge_run(tmp_path / "run", make_config(words))
    after = run.results
    assert before is not None and after is not None
    assert (run.record.protocol, after.protocol, after.policy) == ("builtin", "builtin", "floor")
    assert rule_table(after) == rule_table(before)
    assert any(before.predictions.failures.values()), "floor and exclude must not be one"
    assert after.judges[0] == before.judges[0]
    assert [table.title for table in run_tables(after)][1:5] == [
        f"{head} by openai-api/judge ({protocol}){tail}"
        for protocol in ("builtin", "official")
        for head, tail in (
            ("Judge scores of openai-api/world", " — data folder data, 1 of 7 domains"),
            ("The same replies, read both ways,", ""),
        )
    ]
    assert [table.title for table in explain_run(tmp_path / "run")] == [
        f"Where the two readings differ, by openai-api/judge ({protocol})"
        for protocol in ("builtin", "official")
    ]


def test_nothing_failed_is_no_table(tmp_path: Path) -> None:
    results = evaluate("baseline/copy-last", limit=2, output=tmp_path / "run").results
    assert results is not None
    assert failure_table(results) is None
    assert "a subset: 14 of 230 samples (--limit)" in rule_table(results).title
