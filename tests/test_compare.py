"""Tests of `awb compare`: two runs on the same samples; unlike ones are refused, or compared and labelled.

Run A fails in a tenth of its samples; run B copies the observation before; one judge scores both.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.compare.two import Comparison, Measure, compare_runs
from agentworldbench.errors import ConfigError
from agentworldbench.run import evaluate, load_run
from agentworldbench.stats.aggregate import RULE_SCORE
from agentworldbench.stats.results import Results
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, kind_of_call, options

DOMAINS = ("swe", "os")


def some_empty(call: ChatCall) -> Reply:
    """The model answers nothing in a tenth of its calls, decided by the messages."""
    return Reply(content="") if call.model != "judge" and kind_of_call(call) == 0 else good(call)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`a`, `b`, `part` (B on two trajectories of one domain), `other` (on other data), `alone` (on another domain)."""
    folder = tmp_path_factory.mktemp("compared")
    make_official_folder(folder / "data", domains=DOMAINS, trajectories=6)
    make_official_folder(folder / "elsewhere", seed=9, domains=DOMAINS, trajectories=2)
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(some_empty) as server:
        set_key(patch)
        cached: dict[str, Any] = {"judge_attempts": 1, "cache": folder / "cache"}
        evaluate(**options(server, folder / "a", folder / "data", **cached))
        evaluate(**options(server, folder / "again", folder / "data", **cached))
        copying = options(server, folder / "b", folder / "data", judge_attempts=1)
        evaluate(**copying | {"model": "baseline/copy-last", "base_url": None})
    copy: dict[str, Any] = {"data": str(folder / "data")}
    evaluate("baseline/copy-last", output=folder / "part", tasks=["swe"], limit_trajectories=2, **copy)
    evaluate("baseline/copy-last", output=folder / "alone", tasks=["os"], **copy)
    evaluate("baseline/copy-last", output=folder / "other", data=str(folder / "elsewhere"))
    yield folder


@pytest.fixture
def awb(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(runs, monkeypatch, capsys)


def results_of(path: Path) -> Results:
    found = load_run(path).results
    assert found is not None
    return found


def measures(comparison: Comparison) -> tuple[Measure, Measure]:
    judge, rules = comparison.measures
    assert (judge.judge is None, rules.judge) == (False, None)
    return judge, rules


def test_both_sides_have_the_scores_of_their_results(runs: Path) -> None:
    comparison = compare_runs(runs / "a", runs / "b")
    a, b = results_of(runs / "a"), results_of(runs / "b")
    judge, rules = measures(comparison)
    assert (comparison.unlike, comparison.notes, comparison.same_answer) == ((), (), 0)
    assert comparison.shared == sum(a.predictions.samples.values())
    assert (judge.policy, rules.policy, judge.name) == ("floor", "floor", "openai-api/judge")
    assert any(a.predictions.failures.values()), "failures must count"
    for domain in DOMAINS:
        row, by_rules = judge.differences.domains[domain], rules.differences.domains[domain]
        sides = [one.judges[0].domains[domain].floor["total"] for one in (a, b)]
        assert [row.first, row.second] == pytest.approx(sides)
        assert row.difference == pytest.approx((sides[1] or 0) - (sides[0] or 0))
        assert (row.samples, row.clusters) == (
            a.predictions.samples[domain],
            a.judges[0].domains[domain].clusters,
        )
        assert [by_rules.first, by_rules.second] == pytest.approx(
            [100 * (one.rules.score[domain].floor or 0) for one in (a, b)]
        )
    assert judge.differences.macro.second == pytest.approx(b.judges[0].macro_floor["total"])
    assert rules.differences.macro.first == pytest.approx(100 * (a.rules.macro[RULE_SCORE].floor or 0))
    assert judge.differences.macro.interval is not None and judge.differences.macro.interval.half is not None


def test_the_worst_come_first_and_failures_are_named(runs: Path) -> None:
    for measure in compare_runs(runs / "b", runs / "a", worst=1000).measures:
        rows = measure.regressions
        assert len(rows) == measure.differences.micro.worse > 3
        assert [one.second - one.first for one in rows] == sorted(one.second - one.first for one in rows)
        assert all(one.first_failure is None for one in rows)
        failed = [one for one in rows if one.second_failure]
        assert {(one.second, one.second_failure) for one in failed} == {(0.0, "empty")}
        few = next(
            one
            for one in compare_runs(runs / "b", runs / "a", worst=2).measures
            if one.judge == measure.judge
        )
        assert few.regressions == rows[:2]


def test_one_judge_can_be_named(runs: Path) -> None:
    (measure,) = compare_runs(runs / "a", runs / "b", judge="openai-api/judge").measures
    assert measure == compare_runs(runs / "a", runs / "b").measures[0]
    with pytest.raises(ConfigError, match="--judge nobody: no judge of both runs"):
        compare_runs(runs / "a", runs / "b", judge="nobody")


def test_answers_from_one_cache_are_counted_and_differ_nowhere(runs: Path) -> None:
    comparison = compare_runs(runs / "a", runs / "again")
    good_ones = sum(results_of(runs / "a").predictions.predicted.values())
    assert comparison.same_answer == good_ones > 0
    for measure in comparison.measures:
        assert measure.regressions == ()
        assert (measure.differences.macro.difference, measure.differences.macro.p) == (0, 1)


def test_only_shared_samples_are_compared(runs: Path) -> None:
    comparison = compare_runs(runs / "a", runs / "part")
    (measure,) = comparison.measures
    whole, part = results_of(runs / "a"), results_of(runs / "part")
    assert (
        comparison.shared == sum(part.predictions.samples.values()) < sum(whole.predictions.samples.values())
    )
    assert list(measure.differences.domains) == ["swe"]
    assert measure.differences.domains["swe"].second == pytest.approx(
        100 * (part.rules.score["swe"].floor or 0)
    )
    left_out = sum(whole.predictions.samples.values()) - comparison.shared
    of = f"{sum(part.predictions.samples.values())} of {sum(part.data_samples.values())}"
    assert comparison.notes == (
        f"A: {left_out} of its samples are not asked in both runs and left out",
        "A: OS not compared: no sample is asked in both runs",
        f"B: a subset: {of} samples (--limit-trajectories)",
        "A has been judged and B has not: compared by rules alone",
    )


def test_nothing_shared_is_refused(runs: Path) -> None:
    with pytest.raises(ConfigError, match="have no sample in common"):
        compare_runs(runs / "part", runs / "alone")
    with pytest.raises(ConfigError, match="have no sample in common"):
        compare_runs(runs / "b", runs / "other", force=True)


def changed(source: Path, target: Path, file: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a run with another content of one file."""
    shutil.copytree(source, target)
    content = json.loads((target / file).read_text(encoding="utf-8"))
    change(content)
    (target / file).write_text(json.dumps(content), encoding="utf-8")
    return target


UNLIKE: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "protocol": (
        "results.json",
        lambda one: one.update(protocol="official"),
        "the protocols (builtin and official)",
    ),
    "metrics": (
        "results.json",
        lambda one: one["task_files"].update(os="0"),
        "the task files, so the rule metrics (`awb score` computes both anew) of os",
    ),
    "own metrics": (
        "results.json",
        lambda one: one.update(own_metrics={"swe": {"m.py": "0"}}),
        "a user's own metrics of swe",
    ),
    "version": (
        "results.json",
        lambda one: one.update(made_by="0.0.1"),
        "the versions that computed the metrics",
    ),
    "task": (
        "results.json",
        lambda one: one["predict"]["tasks"].update(swe="0"),
        "how predictions are asked for and read of swe",
    ),
    "extraction": (
        "results.json",
        lambda one: one["predict"].update(extraction="other"),
        "the rules of extraction",
    ),
    "shortened histories": (
        "results.json",
        lambda one: one["predict"].update(context_policy="drop-oldest"),
        "the context policies (error and drop-oldest)",
    ),
    "judge": (
        "run.json",
        lambda one: one["judges"][0].update(digest="0" * 16),
        "the judges (openai-api/judge, builtin, ",
    ),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_runs_are_refused_or_compared_and_labelled(name: str, runs: Path, tmp_path: Path) -> None:
    file, change, words = UNLIKE[name]
    other = changed(runs / "b", tmp_path / "b", file, change)
    with pytest.raises(ConfigError, match="not alike") as refused:
        compare_runs(runs / "a", other)
    assert words in str(refused.value)
    assert "--force" in str(refused.value)
    (what,) = compare_runs(runs / "a", other, force=True).unlike
    assert what.startswith(words)


def test_under_exclude_a_sample_that_failed_in_either_run_is_left_out(runs: Path, tmp_path: Path) -> None:
    first = changed(runs / "a", tmp_path / "a", "results.json", lambda one: one.update(policy="exclude"))
    (rules,) = [one for one in compare_runs(first, runs / "b").measures if one.judge is None]
    a, b = results_of(first), results_of(runs / "b")
    assert rules.policy == "exclude"
    for domain in DOMAINS:
        row, score = rules.differences.domains[domain], a.rules.score[domain]
        assert row.samples == score.scored
        assert row.first == pytest.approx(100 * (score.exclude or 0))
    assert rules.differences.micro.samples < b.rules.micro[RULE_SCORE].scored
    assert all(one.second_failure is None for one in rules.regressions)


def test_other_data_are_refused(runs: Path) -> None:
    with pytest.raises(ConfigError, match="the data of swe, os"):
        compare_runs(runs / "b", runs / "other")


def test_the_command_prints_tables(runs: Path, awb: HereAwb) -> None:
    done = awb("compare", "b", "a", "--worst", "3")
    assert (done.code, done.err) == (0, "")
    titles = [line for line in done.out.splitlines() if line.startswith(("B − A by", "Worse in B by"))]
    assert titles == [
        "B − A by judge openai-api/judge",
        "Worse in B by judge openai-api/judge",
        "B − A by rules",
        "Worse in B by rules",
    ]
    measure = compare_runs(Path("b"), Path("a")).measures[0]
    macro = measure.differences.macro
    assert macro.interval is not None and macro.difference is not None
    line = next(line for line in done.out.splitlines() if line.startswith("Overall, macro"))
    assert f"{macro.difference:+.1f} ± {macro.interval.half:.1f}" in line
    assert line.endswith(f"{macro.better}/{macro.equal}/{macro.worse}")
    listed = done.out.partition("Worse in B by judge")[2].partition("B − A by rules")[0]
    assert sum(line.startswith(("os/", "swe/")) for line in listed.splitlines()) == 3
    assert "A: baseline/copy-last (b). B: openai-api/world (a)." in " ".join(done.out.split())
    (first, *_), replies = (
        measure.regressions,
        [line for line in done.out.splitlines() if "json.tool" in line],
    )
    places = [*first.first_replies, *first.second_replies]
    assert replies[:2] == [f"  sed -n {one.line}p {one.file} | python3 -m json.tool" for one in places]
    assert all(f"{one.file}:{one.line}" in listed for one in places)
    shown = next(line for line in done.out.splitlines() if line.startswith("  awb data show "))
    assert first.sample_id in awb(*shlex.split(shown)[1:]).out
    assert "| **Overall, macro** |" in awb("compare", "b", "a", "-f", "md").out


def test_the_command_for_programs(runs: Path, awb: HereAwb) -> None:
    done = awb("compare", "a", "b", "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert Comparison.model_validate_json(done.out) == compare_runs(Path("a"), Path("b"))


def test_the_command_refuses_and_forces(runs: Path, awb: HereAwb) -> None:
    changed(runs / "b", runs / "official", *UNLIKE["protocol"][:2])
    refused = awb("compare", "a", "official")
    assert refused.code == 2
    assert "the protocols (builtin and official)" in refused.only_complaint
    forced = awb("compare", "a", "official", "--force")
    assert forced.code == 0
    assert "B − A by rules — UNLIKE RUNS: no difference of the models" in forced.out
    assert "Unlike: the protocols (builtin and official)." in " ".join(forced.out.split())
    (runs / "official" / "results.json").unlink()
    assert (
        "has no results yet; `awb score official` makes them"
        in awb("compare", "a", "official").only_complaint
    )
    assert awb("compare", "a", "nowhere").code == 2
