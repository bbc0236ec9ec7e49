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
from agentworldbench.render.results import failure_table, judge_table, rule_table, run_tables
from agentworldbench.render.table import percent, points, share
from agentworldbench.run import Run, evaluate, explain_run, judge_run
from agentworldbench.run_record import judge_names
from agentworldbench.stats.results import Results
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
    assert table.notes[-1] == (
        f"Judge openai-api/judge (served as judge), protocol {protocol}, digest {judge.judge.digest}."
    )
    assert "data folder data, 2 of 7 domains" in table.title


def test_the_table_of_rule_metrics(results: Results) -> None:
    table = rule_table(results)
    rules, policy = results.rules, results.policy
    domains, head, names = list(rules.metrics), table.columns[:3], table.columns[3:]
    assert head == ("Domain", "Scored", "Rule score")
    assert set(names) == {name for metrics in rules.metrics.values() for name in metrics}
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == [*(DOMAINS[domain] for domain in domains), "Overall, macro", "Overall, micro"]
    for domain in domains:
        score, metrics = rules.score[domain], rules.metrics[domain]
        values = [getattr(metrics[name], policy) if name in metrics else None for name in names]
        counts = f"{score.scored}/{score.n}"
        assert rows[DOMAINS[domain]] == (counts, points(100 * getattr(score, policy)), *map(share, values))

    by_name = {
        name: [metrics[name] for metrics in rules.metrics.values() if name in metrics] for name in names
    }
    by_name["score"] = [rules.score[domain] for domain in domains]
    counts = f"{sum(one.scored for one in by_name['score'])}/{sum(one.n for one in by_name['score'])}"
    weight = "n" if policy == "floor" else "scored"
    means: dict[str, dict[str, float | None]] = {"macro": {}, "micro": {}}
    for name, some in by_name.items():
        values = [getattr(one, policy) for one in some]
        weights = [getattr(one, weight) for one in some]
        means["macro"][name] = average(values)
        total = fsum(value * count for value, count in zip(values, weights, strict=True) if count)
        means["micro"][name] = total / sum(weights)
    for kind, of_kind in means.items():
        score_mean = of_kind.pop("score")
        assert score_mean is not None
        cells = (counts, points(100 * score_mean), *(share(of_kind[name]) for name in names))
        assert rows[f"Overall, {kind}"] == cells
    assert rows["Overall, macro"] != rows["Overall, micro"]
    assert table.strong == (len(domains),), "the headline is macro"


def test_a_metric_that_one_domain_has_is_that_domains_overall(results: Results) -> None:
    table = rule_table(results)
    column = table.columns.index("change_f1")
    cells = {row[0]: row[column] for row in table.rows}
    assert cells["SWE"] == "–"
    assert cells["OS"] == cells["Overall, macro"] == cells["Overall, micro"] != "–"


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
    assert "makes the macro average not available" in table.notes[0]


def test_a_partial_run_says_so_in_every_title(results: Results) -> None:
    whole = run_tables(results)
    assert [table.title.partition(" of ")[0].partition(",")[0] for table in whole] == [
        "Judge scores",
        "The same replies",
        "Rule metrics",
        "Failures",
    ]
    assert not any("PARTIAL" in table.title for table in whole)
    partial = run_tables(results.model_copy(update={"complete": False}))
    assert all("PARTIAL: not all samples have been asked" in partial[place].title for place in (0, 2))


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
    assert [table.title for table in run_tables(after)][:4] == [
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
    assert "a subset (limit)" in rule_table(results).title
