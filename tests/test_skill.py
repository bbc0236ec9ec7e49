"""Skill against copying: worked cases, the two anchors on the bundled rows, and intervals of ratios.

Cases stand in `cases/stats/skill.yaml`; what copying scores on a sample is checked against a run of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.records import FailureKind, SampleMetrics, SampleRef
from agentworldbench.run import Run, evaluate
from agentworldbench.stats.aggregate import RULE_SCORE, by_domain, rule_results
from agentworldbench.stats.bootstrap import DRAWS, LEAST, Paired, resample_ratio, resampled_interval
from agentworldbench.stats.intervals import Interval, clustered, of_strata, stratified
from agentworldbench.stats.results import RuleResults
from agentworldbench.stats.skill import with_skill
from agentworldbench.task import load_tasks

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "stats" / "skill.yaml").read_text(encoding="utf-8"))
POLICIES = ("exclude", "floor")
Rows = Sequence[tuple[str, float | None, float]]
"""Cluster, rule score (None: failed) and copy-last's rule score of samples."""


def rules_of(domains: dict[str, Rows]) -> RuleResults:
    """Results of samples with one primary metric."""
    refs, metrics = [], {}
    for domain, rows in domains.items():
        for n, (cluster, score, baseline) in enumerate(rows):
            ref = SampleRef(
                id=f"{domain}/{n}/1", domain=domain, row_id=n, turn_idx=1, total_turns=1, cluster=cluster,
                task_key="k", row_hash="0" * 64, line=1, offset=0, length=1, context_chars=1,
            )  # fmt: skip
            refs.append(ref)
            metrics[ref.id] = SampleMetrics(
                sample_id=ref.id,
                applicable=("line_f1", "rouge_l"),
                values={} if score is None else {"line_f1": score, "rouge_l": 0.3},
                baseline={"line_f1": baseline},
                failed=FailureKind.EMPTY if score is None else None,
            )
    groups = {domain: by_domain(refs).get(domain, []) for domain in domains}
    primary = dict.fromkeys(domains, ("line_f1",))
    return with_skill(rule_results(groups, metrics, primary), groups, metrics, primary)


def fraction(text: Any) -> float | None:
    return None if text is None else float(Fraction(str(text)))


def drawn(seed: int, clusters: int = 15, failing: float = 0.0) -> list[tuple[str, float | None, float]]:
    random_ = random.Random(seed)
    rows: list[tuple[str, float | None, float]] = []
    for cluster in range(clusters):
        ease = random_.random()
        for _ in range(random_.randint(1, 6)):
            score = min(1.0, ease * random_.random() + 0.3)
            rows.append(
                (f"c{cluster}", None if random_.random() < failing else score, ease * random_.random())
            )
    return rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_skill_worked_by_hand(case: dict[str, Any]) -> None:
    rows = [
        (cluster, fraction(score), float(Fraction(str(copied)))) for cluster, score, copied in case["samples"]
    ]
    skill = rules_of({"os": rows}).skill["os"]
    for name in ("exclude", "floor", "baseline_exclude", "baseline_floor"):
        expected = fraction(case[name])
        found = getattr(skill, name)
        assert (found is None) is (expected is None), name
        assert found is None or found == pytest.approx(expected, abs=1e-12), name
    for policy in POLICIES:
        interval = getattr(skill.intervals, policy)
        assert (interval is None) is (case[policy] is None)
        assert interval is None or interval.half is None, "two or three trajectories are too few to resample"


def test_overall_is_the_mean_of_the_domains_and_needs_them_all() -> None:
    domains = {"os": drawn(1), "swe": drawn(2), "web": drawn(3)}
    rules = rules_of(domains)
    for policy in POLICIES:
        mean = sum(getattr(one, policy) for one in rules.skill.values()) / 3
        assert getattr(rules.overall_skill, policy) == pytest.approx(mean, abs=1e-15)
    assert (rules.overall_skill.baseline_exclude, rules.overall_skill.baseline_floor) == (None, None)
    full = rules_of(domains | {"mcp": [("a", 1.0, 1.0), ("b", 1.0, 1.0)]})
    assert full.skill["mcp"].floor is None
    assert full.macro[RULE_SCORE].floor is not None
    assert (full.overall_skill.floor, full.overall_skill.intervals.floor) == (None, None)


def test_intervals_of_rule_scores_are_those_of_means_over_clusters() -> None:
    domains = {"os": drawn(1, failing=0.2), "swe": drawn(2, failing=0.2)}
    rules = rules_of(domains)
    strata: dict[str, list[list[tuple[str, float]]]] = {
        "exclude": [[(name, x) for name, x, _ in rows if x is not None] for rows in domains.values()],
        "floor": [[(name, x or 0.0) for name, x, _ in rows] for rows in domains.values()],
    }
    for policy, samples in strata.items():
        parts = [
            clustered(getattr(rules.score[domain], policy), some)
            for domain, some in zip(domains, samples, strict=True)
        ]
        assert [getattr(one, policy) for one in rules.intervals.values()] == parts
        macro, micro = (getattr(means[RULE_SCORE], policy) for means in (rules.macro, rules.micro))
        assert getattr(rules.macro_intervals, policy) == stratified(macro, parts)
        assert getattr(rules.micro_intervals, policy) == of_strata(micro, samples)
        assert parts[0] is not None and parts[0].half is not None


# --- the anchors ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anchors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs of the baselines on the bundled rows."""
    folder = tmp_path_factory.mktemp("anchors")
    return {
        name: evaluate(f"baseline/{name}", data="mini", output=folder / name)
        for name in ("copy-last", "reference", "nearest")
    }


@pytest.mark.parametrize(("name", "skill"), [("copy-last", 0.0), ("reference", 1.0)])
def test_copying_has_skill_0_and_the_reference_1_exactly(
    name: str, skill: float, anchors: dict[str, Run]
) -> None:
    results = anchors[name].results
    assert results is not None
    rules = results.rules
    assert len(rules.skill) == 7
    for one in (*rules.skill.values(), rules.overall_skill):
        assert (one.exclude, one.floor) == (skill, skill)
        assert one.intervals.floor is not None
        assert one.intervals.floor.half is None, "it is 0 or 1 in every draw: no width is pretended"
        assert "no_spread" in one.intervals.floor.flags


def test_what_stands_for_copying_is_what_copying_scores(anchors: dict[str, Run]) -> None:
    tasks = load_tasks()
    copied = {one.sample_id: one for one in anchors["copy-last"].metrics()}
    for name in ("reference", "nearest"):
        records = list(anchors[name].metrics())
        assert len(records) == len(copied) == 230
        for record in records:
            primary = tasks[record.sample_id.partition("/")[0]].primary
            values = copied[record.sample_id].values
            assert record.baseline == {key: values[key] for key in values if key in primary}
    assert len({one.baseline["line_f1"] for one in copied.values() if "line_f1" in one.baseline}) > 20


def test_skill_of_a_run_is_made_of_its_rule_scores(anchors: dict[str, Run]) -> None:
    ours, copying = anchors["nearest"].results, anchors["copy-last"].results
    assert ours is not None and copying is not None
    for domain, one in ours.rules.skill.items():
        x, b = ours.rules.score[domain].floor, copying.rules.score[domain].floor
        assert x is not None and b is not None
        assert one.baseline_floor == b
        assert one.floor == pytest.approx((x - b) / (1 - b), abs=1e-12)
        interval = one.intervals.floor
        assert interval is not None and interval.low is not None and interval.high is not None
        assert interval.low < (one.floor or 0) < interval.high
    overall = ours.rules.overall_skill
    assert overall.intervals.floor is not None and overall.intervals.floor.half is not None


# --- intervals of ratios -------------------------------------------------------------------------


def pairs_of(seed: int, clusters: int, size: int | None = None) -> list[Paired]:
    random_ = random.Random(seed)
    found = []
    for cluster in range(clusters):
        ease = random_.gauss(0, 0.2)
        for _ in range(size or random_.randint(1, 6)):
            found.append((f"c{cluster}", ease + random_.gauss(0.2, 0.1), random_.uniform(0.2, 1.0)))
    return found


def interval_of(pairs: Sequence[Paired], name: str = "os") -> Interval:
    return resampled_interval([resample_ratio(name, pairs)])


def test_the_same_samples_give_the_same_interval_in_any_order() -> None:
    pairs = pairs_of(1, 12)
    shuffled = list(pairs)
    random.Random(2).shuffle(shuffled)
    assert interval_of(pairs) == interval_of(shuffled)
    assert interval_of(pairs) != interval_of(pairs, "swe"), "domains are drawn apart"


@pytest.mark.parametrize("clusters", [6, 20, 60])
def test_resampling_a_mean_has_the_spread_of_its_standard_error(clusters: int) -> None:
    pairs = [(name, value, 1.0) for name, value, _ in pairs_of(3, clusters, size=4)]
    found = interval_of(pairs)
    mean = sum(value for _, value, _ in pairs) / len(pairs)
    expected = clustered(mean, [(name, value) for name, value, _ in pairs])
    assert expected is not None and found.half is not None
    assert found.se == pytest.approx(expected.se, rel=0.03)
    assert found.df == expected.df == clusters - 1
    assert found.half == pytest.approx(expected.half, rel=0.12)


def test_resampling_a_ratio_of_many_clusters_agrees_with_its_linear_form() -> None:
    pairs = pairs_of(4, 150)
    below = sum(denominator for *_, denominator in pairs)
    ratio = sum(numerator for _, numerator, _ in pairs) / below
    share = len(pairs) / below
    linear = clustered(ratio, [(name, ratio + (a - ratio * b) * share) for name, a, b in pairs])
    found = interval_of(pairs)
    assert linear is not None and found.half is not None
    assert (found.low, found.high) == pytest.approx((linear.low, linear.high), abs=0.05 * found.half)
    assert found.flags == ()


def test_domains_are_drawn_apart() -> None:
    pairs = pairs_of(5, 15)
    parts = [resample_ratio(name, pairs) for name in ("os", "swe", "web", "mcp")]
    draws = [part.draws for part in parts if part.draws is not None]
    assert len(draws) == 4
    correlations = np.corrcoef(draws)[np.triu_indices(4, 1)]
    assert abs(correlations).max() < 5 / np.sqrt(DRAWS)
    one, four = interval_of(pairs), resampled_interval(parts)
    assert one.half is not None and four.half is not None
    assert four.half == pytest.approx(one.half / 2, rel=0.15), "four domains alike: half the width"


NONE = {
    "one cluster": ([("a", 1.0, 2.0)] * 5, "one_cluster"),
    "too few clusters": ([(str(n), float(n), 2.0) for n in range(LEAST - 1)], "too_few_clusters"),
    "nothing varies": ([(str(n), 0.5 * n, 1.0 * n) for n in range(1, 9)], "no_spread"),
    "nothing to divide by": ([(str(n), 0.1, float(n == 0)) for n in range(8)], "unstable"),
}


@pytest.mark.parametrize("name", NONE)
def test_what_cannot_be_resampled_says_why(name: str) -> None:
    pairs, flag = NONE[name]
    found = interval_of(pairs)
    assert (found.low, found.half, found.flags) == (None, None, (flag,))
    joint = resampled_interval([resample_ratio("swe", pairs_of(6, 12)), resample_ratio("os", pairs)])
    if flag == "no_spread":
        assert joint.half is not None
        assert joint.flags == ("no_spread_in_part",)
    else:
        assert (joint.half, joint.flags) == (None, (flag,))


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 1), st.floats(0, 0.98)), min_size=8, max_size=20
    )
)
@settings(max_examples=15)
def test_no_interval_of_skill_goes_beyond_the_reference(rows: list[tuple[str, float, float]]) -> None:
    rules = rules_of({"os": list(rows)})
    for policy in POLICIES:
        skill, interval = getattr(rules.skill["os"], policy), getattr(rules.skill["os"].intervals, policy)
        assert skill is None or skill <= 1
        if interval is not None and interval.half is not None:
            assert interval.half > 0
            assert interval.low <= interval.high <= 1 + 1e-9
    assert rules.skill["os"].exclude == rules.skill["os"].floor
    assert rules.skill["os"].intervals.exclude == rules.skill["os"].intervals.floor
