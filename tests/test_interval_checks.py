"""Checks of intervals: clusters of tasks, and the cluster bootstrap; beside what results report, and in notes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from scipy import stats

from agentworldbench.records import SampleRef
from agentworldbench.render.checks import check_notes
from agentworldbench.render.comparison import differences_table
from agentworldbench.render.scores import scores_table
from agentworldbench.run import evaluate
from agentworldbench.stats.checks import Check, Checks, interval_checks
from agentworldbench.stats.intervals import Interval, clustered
from agentworldbench.stats.paired import Pair, by_task, differences
from agentworldbench.stats.results import Results
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, kind_of_call, options


def some_empty(call: ChatCall) -> Reply:
    return Reply(content="") if call.model != "judge" and kind_of_call(call) == 0 else good(call)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("checked")
    make_official_folder(folder / "data", domains=("swe", "os"), trajectories=12, special=False)
    with ScriptedServer(some_empty) as server:
        found = evaluate(**options(server, folder / "run", folder / "data", judge_attempts=1)).results
    assert found is not None
    return found


def test_what_is_checked_is_what_is_reported(results: Results) -> None:
    (judge,), rules = results.judges, results.rules
    assert judge.checks is not None and rules.checks is not None
    for checks, intervals, macro in (
        (judge.checks, {name: one.intervals for name, one in judge.domains.items()}, judge.macro_intervals),
        (rules.checks, rules.intervals, rules.macro_intervals),
    ):
        assert checks.policy == "floor"
        rows = [(one, intervals[domain].floor) for domain, one in checks.domains.items()]
        for one, reported in [*rows, (checks.macro, macro.floor)]:
            assert one.reported is not None and reported is not None
            assert one.reported.half == pytest.approx(reported.half)
            assert one.reported.low == pytest.approx(reported.low)
            assert one.bootstrap is not None
            assert (one.bootstrap.half is None) == (reported.half is None)
            if reported.half is not None:
                assert one.bootstrap.half == pytest.approx(reported.half, rel=0.2)
    assert judge.checks.macro.bootstrap is not None and judge.checks.macro.bootstrap.half is not None
    assert Results.model_validate_json(results.model_dump_json()) == results


def reference(name: str, cluster: str, task: str) -> SampleRef:
    return SampleRef(
        id=name, domain="os", row_id=1, turn_idx=1, total_turns=2, cluster=cluster, task_key=task, row_hash="",
        line=1, offset=0, length=1, context_chars=1,
    )  # fmt: skip


def several(seed: int) -> list[Pair]:
    """Ten tasks of four trajectories that resemble each other."""
    random_ = random.Random(seed)
    pairs = []
    for task in range(10):
        ease = random_.gauss(0, 10)
        for cluster in range(4):
            for n in range(2):
                value = 50 + ease + random_.gauss(0, 4)
                pairs.append(Pair(f"{task}/{cluster}/{n}", f"{task}/{cluster}", 50.0, value, f"t{task}"))
    return pairs


def test_episodes_of_one_task_widen_the_interval_and_are_named() -> None:
    pairs = several(3)
    refs = [reference(one.sample_id, one.cluster, one.task) for one in pairs]
    checks = interval_checks({"os": refs}, {one.sample_id: one.second for one in pairs}, "floor")
    one = checks.domains["os"]
    by_hand = clustered(50.0, [(pair.task, pair.second) for pair in pairs])
    assert one.by_task is not None and by_hand is not None and one.reported is not None
    assert (one.by_task.clusters, one.by_task.half) == (10, by_hand.half)
    assert one.wider_by_task and checks.macro.wider_by_task
    assert not one.apart
    found = differences({"os": pairs})
    tasks = differences(by_task({"os": pairs}))
    assert tasks.domains["os"].clusters == 10
    table = differences_table("B − A", found, tasks, {"os": (80, (80, 80))}, ())
    (note,) = [note for note in table.notes if note.startswith("With all episodes of one task")]
    half = tasks.macro.interval and tasks.macro.interval.half
    assert half is not None
    assert f"Overall, macro {tasks.macro.difference:.1f} ± {half:.1f} (Holm" in note


def test_without_tasks_of_several_trajectories_nothing_is_said(results: Results) -> None:
    assert results.rules.checks is not None
    for one in results.rules.checks.domains.values():
        assert one.by_task == one.reported
    assert not any("one task" in note for note in scores_table(results).notes)


def interval(low: float, high: float, clusters: int = 30, flags: tuple[str, ...] = ()) -> Interval:
    half = (high - low) / 2
    return Interval.model_validate(
        {"method": "clustered", "low": low, "high": high, "half": half, "se": half / 2, "df": clusters - 1.0,
         "clusters": clusters, "flags": flags}
    )  # fmt: skip


NONE = Interval(method="clustered", clusters=1, flags=("one_cluster",))
CASES = {
    "alike": (interval(40, 60), interval(39.5, 60.5), interval(41, 59), False, False),
    "wider by tasks": (interval(40, 60), interval(38.9, 61.1), interval(40, 60), True, False),
    "none by tasks": (interval(40, 60), NONE, interval(40, 60), True, False),
    "a bound elsewhere": (interval(40, 60), interval(40, 60), interval(41.6, 60), False, True),
    "few clusters are flagged without it": (
        interval(40, 60, 6, ("few_clusters",)), interval(40, 60), interval(45, 60), False, False,
    ),
    "no interval at all": (NONE, NONE, NONE, False, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_worth_a_note(name: str, results: Results) -> None:
    reported, tasks, bootstrap, wider, apart = CASES[name]
    check = Check(reported=reported, by_task=tasks, bootstrap=bootstrap)
    assert (check.wider_by_task, check.apart) == (wider, apart)
    checks = Checks(policy="floor", domains={"os": check}, macro=check)
    changed = results.model_copy(
        update={"judges": (), "rules": results.rules.model_copy(update={"checks": checks})}
    )
    notes = list(check_notes(changed))
    assert len(notes) == wider + apart
    assert all("OS" in note and "Overall, macro" in note for note in notes)


@pytest.mark.parametrize(
    ("selection", "told"), [({"limit": "2"}, False), ({"limit": "3-5"}, True), ({"sample_id": ("a",)}, True)]
)
def test_what_was_chosen_and_not_drawn_is_said(
    results: Results, selection: dict[str, object], told: bool
) -> None:
    few = {"samples": {"swe": 3, "os": 3}}
    changed = results.model_copy(update={"selection": results.selection.model_copy(update=selection | few)})
    assert any("chosen, not drawn" in note for note in check_notes(changed)) is told


def test_one_value_a_cluster_is_scipys_bootstrap_of_a_mean() -> None:
    """With one sample a trajectory both are percentiles of means of drawn samples."""
    random_ = random.Random(4)
    values = {f"s{n}": random_.gauss(50, 10) for n in range(60)}
    refs = [reference(name, name, name) for name in values]
    found = interval_checks({"os": refs}, values, "floor").domains["os"].bootstrap
    oracle = stats.bootstrap(
        (list(values.values()),), lambda x, axis: x.mean(axis=axis), method="percentile", rng=1
    ).confidence_interval
    assert found is not None and found.low is not None and found.high is not None
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=0.3)


def test_the_rerun_interval_is_said_to_be_missing(results: Results) -> None:
    assert scores_table(results).notes[-1] == (
        "Interval re-run: not available (one epoch, one repeat); --epochs 2 gives it."
    )


def test_a_subset_says_how_much_of_the_data_it_is(tmp_path: Path) -> None:
    def subset(**selection: object) -> str | None:
        name = "-".join(map(str, selection))
        found = evaluate(
            "baseline/copy-last", output=tmp_path / name, tasks=["mcp", "os"], **selection
        ).results
        assert found is not None
        assert found.rules.macro_intervals.floor is not None, "a subset has its interval"
        assert (found.subset or "no subset") in scores_table(found).title or found.subset is None
        return found.subset

    assert subset(limit="5") == "a subset: 10 of 60 samples (--limit)"
    assert subset(limit_trajectories=2) == "a subset: 20 of 60 samples (--limit-trajectories)"
    assert subset(seed=3, limit="1.0") is None
    assert subset(shard="1/2", limit="20") == "a subset (--limit)", "a shard of it tells no share"
