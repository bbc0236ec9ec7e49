"""Public bug reports of the group ST (statistics and leaderboards), told in our own words, each with its right value.

A test's name begins with the report's number; `cases/public_reports.yaml` lists them. Where a report is about
whole runs, runs on a loopback server are made; else samples and verdicts are written down. Reports about judges who
change their minds or leave things out: `test_statistics_reports_judges.py`.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.compare.several import rank_runs
from agentworldbench.compare.two import compare_runs
from agentworldbench.errors import DataError
from agentworldbench.leaderboard.entries import Entry, grouped, ranks
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.leaderboard.tables import leaderboard_tables
from agentworldbench.records import DIMENSIONS, FailureKind, SampleMetrics, SampleRef
from agentworldbench.render.comparison import differences_table
from agentworldbench.render.results import run_tables
from agentworldbench.run import Run, evaluate, score_run
from agentworldbench.stats.aggregate import (
    block,
    by_domain,
    macro,
    macro_intervals,
    rule_results,
    strict_values,
    value_of,
)
from agentworldbench.stats.intervals import clustered
from agentworldbench.stats.results import Block
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, verdict_text
from tests.helpers.whole_runs import good, options

Totals = Mapping[str, Mapping[str, Sequence[int | None]]]
"""By domain and cluster: what each sample's five dimensions all are; None: failed."""


def samples(domains: Totals) -> tuple[list[SampleRef], dict[str, dict[str, float]]]:
    refs, values = [], {}
    for domain, clusters in domains.items():
        for cluster, totals in clusters.items():
            for turn, total in enumerate(totals, start=1):
                name = f"{domain}/{cluster}/{turn}"
                refs.append(
                    SampleRef(
                        id=name, domain=domain, row_id=cluster, turn_idx=turn, total_turns=len(totals),
                        cluster=cluster, task_key=cluster, row_hash="", line=1, offset=0, length=1, context_chars=1,
                    )
                )  # fmt: skip
                if total is not None:
                    values[name] = strict_values(dict.fromkeys(DIMENSIONS, total))
    return refs, values


def blocks(domains: Totals) -> dict[str, Block]:
    refs, values = samples(domains)
    return {domain: block(some, values, ()) for domain, some in by_domain(refs).items()}


def singles(*totals: int | None) -> dict[str, Sequence[int | None]]:
    """Samples of a trajectory each."""
    return {f"t{n}": [total] for n, total in enumerate(totals)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports") / "data"
    make_official_folder(folder, domains=("swe", "os"), trajectories=3, special=False, turns=3)
    return folder


def of_domain(call: ChatCall) -> str:
    """The domain that a call of model or judge is about: its actions tell."""
    return "os" if "os environment" in json.dumps(call.messages) else "swe"


def empty_in_os(call: ChatCall) -> Reply:
    if call.model != "judge" and of_domain(call) == "os":
        return Reply(content="")
    return Reply(content=verdict_text(dict.fromkeys(DIMENSIONS, 5))) if call.model == "judge" else good(call)


@pytest.fixture(scope="module")
def half_failed(data: Path) -> Run:
    """All of swe scored 5, all of os failed."""
    with ScriptedServer(empty_in_os) as server:
        return evaluate(**options(server, data.parent / "half", data, judge_attempts=1))


@pytest.fixture(scope="module")
def whole(data: Path) -> Run:
    return evaluate("baseline/copy-last", output=data.parent / "whole", data=str(data))


def results_of(run: Run) -> Any:
    assert run.results is not None
    return run.results


def test_st_02_a_domain_whose_samples_all_failed_leaves_no_overall_score(half_failed: Run) -> None:
    judge = results_of(half_failed).judges[0]
    assert judge.domains["swe"].exclude["total"] == 100
    assert judge.domains["os"].exclude["total"] is None
    assert judge.macro_exclude["total"] is judge.macro_floor["total"] is None
    table = run_tables(results_of(half_failed))[1]
    rows = {row[0]: row[1:5] for row in table.rows}
    count = judge.domains["os"].samples
    assert rows["OS"] == (f"0/{count}", "0.0 %", "–", "–")
    assert rows["Overall, macro"][2:] == ("–", "–")
    assert table.notes[0] == "A domain without any scored sample makes the macro average not available."
    with pytest.raises(DataError, match="scored no sample of a domain"):
        measured_entries(results_of(half_failed))


def test_st_02_nor_a_difference_nor_a_rank(half_failed: Run, whole: Run, data: Path) -> None:
    copy = shutil.copytree(whole.path, data.parent / "whole again")
    (rules,) = compare_runs(whole.path, half_failed.path).measures
    assert rules.differences.domains["os"].difference is None, "not a difference of 0 points, or of all"
    assert (rules.differences.macro.difference, rules.differences.macro.p) == (None, None)
    (measure,) = rank_runs([whole.path, half_failed.path, copy]).measures
    assert [one.rank for one in measure.standings] == [None, None]


def odd_verdicts(call: ChatCall) -> Reply:
    """Every sixth verdict has a NaN, every sixth holds none; the others are 2."""
    if call.model != "judge":
        return good(call)
    texts = {0: verdict_text(dict.fromkeys(DIMENSIONS, 2) | {"format": float("nan")}), 1: "I cannot say."}
    return Reply(content=texts.get(call.index % 6, verdict_text(dict.fromkeys(DIMENSIONS, 2))))


def test_st_04_failures_of_the_judge_stand_beside_the_score(data: Path) -> None:
    with ScriptedServer(odd_verdicts) as server:
        run = evaluate(**options(server, data.parent / "odd", data, judge_attempts=1))
    results = results_of(run)
    judge = results.judges[0]
    failed = {domain: sum(counts["judge"].values()) for domain, counts in judge.failures.items()}
    total = sum(failed.values())
    assert total >= 2
    assert judge.micro.scored == judge.micro.samples - total
    assert judge.macro_exclude["total"] == 25, "the mean of the valid verdicts, no maximum, no NaN"
    tables = run_tables(results)
    (failures,) = [table for table in tables if table.title == "Failures"]
    assert str(total) in failures.rows[-1]
    assert [row[1] for row in tables[1].rows][-1] == f"{judge.micro.scored}/{judge.micro.samples}"
    stored = json.loads((run.path / "results.json").read_text(encoding="utf-8"))
    assert stored["judges"][0]["strict"]["failures"] == judge.strict.failures


def test_st_04_what_has_no_score_is_not_comparable(half_failed: Run, whole: Run) -> None:
    """Neither a change nor none."""
    for paths, who in (((whole.path, half_failed.path), "B"), ((half_failed.path, whole.path), "A")):
        (rules,) = compare_runs(*paths).measures
        assert not any(one.sample_id.startswith("os/") for one in rules.regressions)
        scored = {domain: (one.samples, one.scored) for domain, one in rules.coverage.items()}
        table = differences_table("B − A", rules.differences, rules.by_task, scored, ())
        row = dict(zip(table.columns, next(row for row in table.rows if row[0] == "OS"), strict=True))
        assert (row["B − A"], row["p"], row["Holm"]) == ("–", "–", "–")
        assert any(f"OS: not comparable, {who} has no score" in note for note in table.notes)


def test_st_07_turns_of_a_trajectory_are_not_independent() -> None:
    """20 trajectories of 10 equal turns, ten of them 5 and ten 1."""
    one = blocks({"os": {f"t{n}": [5 if n < 10 else 1] * 10 for n in range(20)}})["os"]
    found = one.intervals.exclude
    assert found is not None and found.se is not None
    naive = clustered(50.0, [(f"{n}", 100.0 * (n < 100)) for n in range(200)])
    assert naive is not None and naive.se is not None
    assert found.se / naive.se == pytest.approx(sqrt(10), rel=0.03)
    assert (found.clusters, one.clusters) == (20, 20)


def test_st_08_the_error_of_a_macro_mean_is_that_of_its_parts() -> None:
    found = blocks({"a": singles(5, 1), "b": singles(*[2, 4] * 100), "c": singles(3)})
    parts = [found[name].intervals.exclude for name in "ab"]
    two = macro_intervals([found["a"], found["b"]]).exclude
    assert two is not None
    errors = [one.se for one in parts if one is not None and one.se is not None]
    assert two.se == pytest.approx(sqrt(sum(se**2 for se in errors)) / 2)
    single = found["c"].intervals.exclude
    assert single is not None
    assert (single.se, single.half, single.flags) == (None, None, ("one_cluster",)), "not 0"
    three = macro_intervals(found.values()).exclude
    assert three is not None and three.half is None


def test_st_09_copies_have_the_same_intervals_to_the_byte(whole: Run, tmp_path: Path) -> None:
    copy = tmp_path / "under another name"
    shutil.copytree(whole.path, copy)
    for name in ("results.json", "metrics.jsonl"):
        (copy / name).unlink()
    score_run(copy)

    def content(run: Path) -> dict[str, Any]:
        stored: dict[str, Any] = json.loads((run / "results.json").read_text(encoding="utf-8"))
        stored.pop("made_at")
        return stored

    assert json.dumps(content(copy)) == json.dumps(content(whole.path))
    checks = content(copy)["rules"]["checks"]
    assert (checks["draws"], checks["seed"]) == (10_000, 20_260_101)


def entry(model: str, score: float, **changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "slug": f"measured-{model}",
        "model": model,
        "status": "measured",
        "group": {
            "score": "judge", "data": "official", "data_revision": None, "protocol": "official", "judge": "j",
        },
        "scores": {"os": score},
        "coverage": {"os": 1.0},
        "stated_overall": None,
        "computed_overall": score,
    }  # fmt: skip
    return Entry.model_validate(fields | changes)


def test_st_11_equal_scores_share_a_rank_whatever_the_order() -> None:
    some = [entry("b", 70.0), entry("a", 70.0), entry("c", 69.999), entry("d", 80.0, coverage=None)]
    for order in itertools.permutations(some):
        ((_, listed),) = grouped(order)
        found = [(one.model, rank) for one, rank in zip(listed, ranks(listed), strict=True)]
        assert [row for row in found if row[1]] == [("a", 1), ("b", 1), ("c", 3)]
        assert ("d", None) in found, "without coverage it stands in the list and takes no rank"


def test_st_11_a_run_without_a_score_stands_last(whole: Run, half_failed: Run, data: Path) -> None:
    reference = evaluate("baseline/reference", output=data.parent / "reference", data=str(data))
    for paths in itertools.permutations([whole.path, reference.path]):
        (measure,) = rank_runs([*paths, half_failed.path], force=False).measures
        assert [one.rank for one in measure.standings][-1] is None


def test_st_12_a_part_is_not_ranked_with_the_whole(whole: Run, data: Path, tmp_path: Path) -> None:
    """A part is compared on its own samples alone, and every table of it says what it is."""
    part = evaluate("baseline/reference", output=tmp_path / "part", data=str(data), limit=2)
    results = results_of(part)
    share = f"a subset: 4 of {sum(results.data_samples.values())} samples (--limit)"
    assert results.subset == share
    for table in run_tables(results):
        assert share in table.title or not table.title.startswith(
            ("Scores of", "Judge scores", "Rule metrics")
        )
    assert results.rules.macro_intervals.floor is not None, "with its interval"
    comparison = compare_runs(whole.path, part.path)
    assert comparison.shared == 4
    assert any(share in note for note in comparison.notes)
    assert (comparison.first.subset, comparison.second.subset) == (None, share)


@pytest.mark.parametrize("field", ["data_sha256", "judge_digest", "protocol"])
def test_st_12_other_data_judges_or_prompts_are_another_table(field: str) -> None:
    one = entry("a", 70.0)
    other = entry("b", 80.0, group=one.group.model_dump() | {field: "other"})
    tables = leaderboard_tables([one, other])
    assert [len(table.rows) for table in tables] == [1, 1]
    assert tables[0].title != tables[1].title


def test_st_14_what_does_not_apply_has_no_weight_anywhere() -> None:
    """Three metrics of which one does not apply: the score is the mean of the two others, for sample and domain."""
    names = ("a", "b", "c")
    refs, _ = samples({"os": {"t": [3, 3]}})

    def record(name: str, values: dict[str, float], failed: FailureKind | None = None) -> SampleMetrics:
        return SampleMetrics(
            sample_id=name, applicable=("a", "b"), values=values, baseline={"a": 0.0, "b": 0.0}, failed=failed
        )

    scored = record(refs[0].id, {"a": 0.5, "b": 0.3})
    assert value_of(scored, names) == pytest.approx(0.4)
    both = {
        refs[0].id: scored,
        refs[1].id: record(refs[1].id, {}, FailureKind.EMPTY),
    }
    found = rule_results(by_domain(refs), both, {"os": names})
    assert (found.score["os"].n, found.score["os"].scored) == (2, 1)
    assert found.score["os"].exclude == pytest.approx(0.4)
    assert found.score["os"].floor == pytest.approx(0.2), (
        "a failed sample counts, a metric that does not apply never"
    )
    assert "c" not in found.metrics["os"]
    means = [one.exclude for one in blocks({"os": singles(5), "swe": singles(3)}).values()]
    assert macro(means)["total"] == 75, "a domain that was not asked for has no weight either"


def test_st_15_all_columns_rest_on_the_same_samples() -> None:
    refs, values = samples({"os": singles(4, 2, 2)})
    del values[refs[2].id]  # a verdict with a missing dimension is no verdict, see test_verdict
    one = block(refs, values, ())
    for scores in (one.exclude, one.floor):
        columns = [scores[name] for name in DIMENSIONS]
        assert all(value is not None for value in columns)
        assert scores["total"] == pytest.approx(sum(value or 0.0 for value in columns) / len(columns))
    assert (one.scored, one.samples) == (2, 3)
