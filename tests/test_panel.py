"""Panels of judges, repeats and epochs: worked cases, laws, and that a panel of one is the rule for one judge.

Cases stand in `cases/stats/panel.yaml`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.records import DIMENSIONS, SampleRef
from agentworldbench.stats.aggregate import block, strict_values
from agentworldbench.stats.epochs import epochs_block, sample_epochs
from agentworldbench.stats.panel import (
    Judged,
    Panel,
    panel_score,
    panel_values,
)
from agentworldbench.stats.results import PanelCounts

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "stats" / "panel.yaml").read_text(encoding="utf-8"))
JUDGES = ("a", "b", "c")
FEW = settings(max_examples=30)
Verdicts = Mapping[tuple[str, int], dict[str, float] | None]


def panel_of(**fields: Any) -> Panel:
    """`repeats` is one number for all, or one by judge."""
    repeats = fields.get("repeats", {})
    if isinstance(repeats, int):
        repeats = dict.fromkeys(fields["judges"], repeats)
    return Panel(**fields | {"judges": tuple(fields["judges"]), "repeats": repeats})


def judged(epoch: dict[str, list[float | None]] | str) -> Judged:
    if isinstance(epoch, str):
        return Judged({}, failed=True)
    return Judged(
        {
            (judge, repeat): None if value is None else {"total": value}
            for judge, values in epoch.items()
            for repeat, value in enumerate(values, start=1)
        }
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_cases(case: dict[str, Any]) -> None:
    found = panel_score(panel_of(**case["panel"]), map(judged, case["epochs"]))
    assert (found.exclude["total"], found.floor["total"]) == (
        pytest.approx(case["exclude"]),
        pytest.approx(case["floor"]),
    )
    assert found.counts == PanelCounts(**case["counts"])


# --- columns -------------------------------------------------------------------------------------


def verdict(*values: int) -> dict[str, float]:
    return strict_values(dict(zip(DIMENSIONS, values, strict=True)))


def test_columns_are_combined_each_by_itself() -> None:
    verdicts = {
        ("a", 1): verdict(1, 2, 3, 4, 5),
        ("b", 1): verdict(5, 5, 5, 5, 5),
        ("c", 1): verdict(1, 1, 1, 1, 2),
    }
    found = panel_values(Panel(JUDGES, least=3), verdicts)
    assert found == {"total": 3.0} | dict(zip(DIMENSIONS, (1, 2, 3, 4, 5), strict=True))
    combined = panel_values(Panel(JUDGES, least=3, combine="mean"), verdicts)
    assert combined is not None
    assert combined["total"] == pytest.approx(sum(combined[name] for name in DIMENSIONS) / 5)


def test_a_column_that_too_few_judges_gave_has_no_value() -> None:
    """Official verdicts can lack some: their 0 stands for no value."""
    whole = verdict(4, 4, 4, 4, 4)
    partial = {name: value for name, value in whole.items() if name != "realism"}
    panel = Panel(("a", "b"), least=2)
    found = panel_values(panel, {("a", 1): whole, ("b", 1): partial})
    assert found == partial
    score = panel_score(panel, [Judged({("a", 1): whole, ("b", 1): partial})])
    assert (score.exclude["realism"], score.floor["realism"], score.exclude["quality"]) == (None, 0.0, 75.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"judges": [], "least": 1}, "at least one judge"),
        ({"judges": ["a", "a"], "least": 1}, "each once"),
        ({"judges": ["a"], "least": 2}, "at least 2 of 1 judges"),
        ({"judges": ["a"], "least": 0}, "at least 0 of 1 judges"),
        ({"judges": ["a"], "least": 1, "repeats": 0}, "at least once"),
    ],
)
def test_a_panel_that_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        panel_of(**fields)


@pytest.mark.parametrize("place", [("d", 1), ("a", 2), ("a", 0)])
def test_a_verdict_from_elsewhere_is_refused(place: tuple[str, int]) -> None:
    with pytest.raises(ValueError, match="no verdict of this panel"):
        panel_values(Panel(JUDGES, least=1), {place: {"total": 3.0}})


# --- laws ----------------------------------------------------------------------------------------

values = st.none() | st.integers(1, 5).map(float)
predictions = st.lists(
    st.just("failed")
    | st.fixed_dictionaries({judge: st.lists(values, min_size=2, max_size=2) for judge in JUDGES})
    | st.fixed_dictionaries({judge: st.lists(values, max_size=2) for judge in JUDGES}),
    max_size=4,
)
panels = st.builds(
    Panel,
    st.just(JUDGES),
    st.integers(1, 3),
    st.just(dict.fromkeys(JUDGES, 2)),
    st.sampled_from(["median", "mean"]),
)


@FEW
@given(panels, predictions)
def test_every_prediction_and_every_verdict_is_counted_once(panel: Panel, epochs: list[Any]) -> None:
    found = panel_score(panel, map(judged, epochs))
    counts = found.counts
    assert counts.predictions == len(epochs)
    assert counts.predictions == counts.scored + counts.failed + counts.too_few + counts.pending
    given_ = [value for one in epochs if one != "failed" for some in one.values() for value in some]
    assert (counts.verdicts, counts.verdicts_failed) == (len(given_), given_.count(None))
    assert counts.short <= min(counts.scored, counts.verdicts_failed)
    exclude, floor = found.exclude["total"], found.floor["total"]
    assert (exclude is None) == (counts.scored == 0)
    assert (floor is None) == (counts.predictions == counts.pending)
    if exclude is not None and floor is not None:
        assert 0 <= floor <= exclude + 1e-9 <= 100 + 1e-9
        share = counts.scored / (counts.predictions - counts.pending)
        assert floor == pytest.approx(exclude * share)


@FEW
@given(panels, predictions, st.randoms(use_true_random=False))
def test_the_order_of_judges_repeats_and_epochs_never_shows(
    panel: Panel, epochs: list[Any], shuffle: random.Random
) -> None:
    judges = shuffle.sample(JUDGES, 3)
    other = Panel(tuple(judges), panel.least, panel.repeats, panel.combine)
    turned = [
        one if one == "failed" else {judge: list(reversed(one[judge])) for judge in judges} for one in epochs
    ]
    shuffle.shuffle(turned)
    found, again = panel_score(panel, map(judged, epochs)), panel_score(other, map(judged, turned))
    assert again.counts == found.counts
    assert again.floor["total"] == pytest.approx(found.floor["total"])
    assert again.exclude["total"] == pytest.approx(found.exclude["total"])


@FEW
@given(panels, predictions)
def test_a_better_verdict_never_lowers_the_score(panel: Panel, epochs: list[Any]) -> None:
    better = [
        one
        if one == "failed"
        else one | {"a": [None if value is None else min(5.0, value + 1) for value in one["a"]]}
        for one in epochs
    ]
    low, high = (panel_score(panel, map(judged, some)).exclude["total"] for some in (epochs, better))
    assert (low is None) == (high is None)
    assert low is None or high is None or high >= low - 1e-9


# --- a domain ------------------------------------------------------------------------------------


def reference(place: int) -> SampleRef:
    return SampleRef(
        id=f"os/{place}/1", domain="os", row_id=place, turn_idx=1, total_turns=1, cluster=f"t{place // 2}",
        task_key="", row_hash="", line=0, offset=0, length=0, context_chars=0,
    )  # fmt: skip


verdicts_or_not = st.none() | st.just("failed") | st.tuples(*[st.integers(1, 5)] * 5)


@FEW
@given(st.lists(verdicts_or_not, min_size=1, max_size=10), st.sampled_from(["median", "mean"]))
def test_a_panel_of_one_is_the_rule_for_single_judges(outcomes: list[Any], combine: Any) -> None:
    """The same scores, coverage and intervals as `aggregate.block` has (None: the verdict failed)."""
    panel = Panel(("a",), 1, combine=combine)
    refs = [reference(place) for place in range(len(outcomes))]
    scored = {
        ref.id: verdict(*outcome)
        for ref, outcome in zip(refs, outcomes, strict=True)
        if isinstance(outcome, tuple)
    }
    samples = {}
    for ref, outcome in zip(refs, outcomes, strict=True):
        one = (
            Judged({("a", 1): scored.get(ref.id)}, failed=False) if outcome != "failed" else judged("failed")
        )
        samples[ref.id] = sample_epochs(panel, [one])
    found, expected = epochs_block(refs, samples), block(refs, scored, pending=())
    assert found.exclude == pytest.approx(expected.exclude)
    assert found.floor == pytest.approx(expected.floor)
    assert (found.samples, found.scored, found.clusters) == (
        expected.samples, expected.scored, expected.clusters,
    )  # fmt: skip
    assert found.coverage == pytest.approx(expected.coverage)
    for policy in ("exclude", "floor"):
        mine, other = getattr(found.intervals, policy), getattr(expected.intervals, policy)
        assert (mine is None) == (other is None)
        assert mine is None or mine.flags == other.flags
        assert mine is None or mine.half == pytest.approx(other.half)


def test_samples_weigh_the_same_however_many_epochs_have_a_score() -> None:
    panel = Panel(("a",), 1)

    epochs: list[list[Any]] = [
        [{"a": [5]}, {"a": [5]}, {"a": [5]}, {"a": [5]}],
        [{"a": [1]}, "failed", "failed", "failed"],
        ["failed", "failed", "failed", "failed"],
    ]
    refs = [reference(place) for place in range(3)]
    samples = {
        ref.id: sample_epochs(panel, [judged(one) for one in some])
        for ref, some in zip(refs, epochs, strict=True)
    }
    found = epochs_block(refs, samples)
    assert found.exclude["total"] == 50.0
    assert found.floor["total"] == pytest.approx(100 / 3)
    assert (found.samples, found.scored, found.coverage) == (3, 2, 5 / 12)
    counts = sum((one.score.counts for one in samples.values()), PanelCounts())
    assert counts == PanelCounts(predictions=12, scored=5, failed=7, verdicts=5)
