"""What of a run's verdicts says something of agreement: which of repeats stand for a judge, what is no grade, who waits.

Outcomes are written by hand; `test_panel_runs.py` and `test_panel_edges.py` have whole runs. What the measures are is
in `test_agreement.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.raters import agreements
from agentworldbench.readings import Outcome, Outcomes
from agentworldbench.records import DIMENSIONS, SampleRef
from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.stats.agreement import Agreement
from agentworldbench.stats.results import JudgesAgreement

PENDING = Outcome(None, "pending", "not_run")
FAILED = Outcome(None, "prediction", "empty")
NO_VERDICT = Outcome(None, "judge", "judge_unparsed")


def grades(*values: int) -> Outcome:
    """A verdict with these five grades, or with one grade everywhere; a 0 is left out, as in the official reading."""
    whole = values * 5 if len(values) == 1 else values
    return Outcome(
        {name: value for name, value in zip(DIMENSIONS, whole, strict=True) if value} | {"total": 3.0}
    )


def ref(place: int, domain: str = "os") -> SampleRef:
    return SampleRef(
        id=f"{domain}/{place}/1", domain=domain, row_id=place, turn_idx=1, total_turns=1, cluster=f"t{place}",
        task_key="", row_hash="", line=0, offset=0, length=0, context_chars=0,
    )  # fmt: skip


def judge(digest: str) -> JudgeRecord:
    return JudgeRecord.model_construct(digest=digest, model=digest, protocol="builtin")


def agree(
    judged: dict[str, Sequence[Sequence[Outcome]]], repeats: dict[str, int] | None = None, domain: int = 0
) -> tuple[JudgesAgreement, ...]:
    """Agreements of judges, each with its repeats on one sample after the other; the first `domain` samples are of
    another domain, with trajectories of the same names."""
    count = len(next(iter(judged.values())))
    refs = [ref(place, "web" if place < domain else "os") for place in range(count)]
    outcomes: dict[str, Outcomes] = {
        name: {one.id: [tuple(some)] for one, some in zip(refs, samples, strict=True)}
        for name, samples in judged.items()
    }
    run = RunRecord.model_construct(judges=tuple(map(judge, judged)), repeats=repeats or {})
    groups = {name: [one for one in refs if one.domain == name] for name in ("web", "os")}
    return agreements(run, {name: some for name, some in groups.items() if some}, outcomes)


def total(found: JudgesAgreement) -> Agreement:
    return found.columns["total"]


def test_one_judge_without_repeats_agrees_with_nobody() -> None:
    assert agree({"a": [[grades(3)]]}) == ()


def test_groups_are_all_then_pairs_then_repeats() -> None:
    two = [[grades(3), grades(4)]] * 3
    found = agree({"a": two, "b": two, "c": two}, {"b": 2, "c": 2})
    assert [(one.kind, one.judges) for one in found] == [
        ("between", ("a", "b", "c")),
        ("between", ("a", "b")), ("between", ("a", "c")), ("between", ("b", "c")),
        ("within", ("b",)), ("within", ("c",)),
    ]  # fmt: skip
    assert [(one.kind, one.judges) for one in agree({"a": two, "b": two})] == [("between", ("a", "b"))]
    for one in found:
        assert list(one.columns) == ["total", *DIMENSIONS]


def test_the_first_valid_verdict_stands_for_a_judge() -> None:
    repeats = [[NO_VERDICT, grades(2), grades(5)], [grades(4), grades(1), NO_VERDICT]]
    between, within = agree({"a": repeats, "b": [[grades(2)], [grades(4)]]}, {"a": 3})
    assert (total(between).exact.value, total(between).alpha.value, total(between).failed) == (1.0, 1.0, 0)
    assert (total(within).predictions, total(within).failed, total(within).exact.value) == (2, 2, 0.0)


def test_what_waits_or_failed_itself_says_nothing_and_a_failed_verdict_is_counted() -> None:
    a = [[grades(3)], [grades(4)], [FAILED], [PENDING], [NO_VERDICT], [grades(5)]]
    b = [[grades(3)], [PENDING], [FAILED], [PENDING], [grades(2)], [NO_VERDICT]]
    (found,) = agree({"a": a, "b": b})
    one = total(found)
    assert (one.predictions, one.alone, one.failed, one.raters) == (1, 3, 2, 2)


def test_a_grade_off_the_scale_or_left_out_is_none_for_its_dimension_and_the_total() -> None:
    """The official reading repairs nothing: it can have 7, and 0 stands for no value."""
    (found,) = agree({
        "a": [[grades(1, 2, 3, 4, 5)], [grades(7, 3, 3, 3, 3)], [grades(0, 4, 4, 4, 4)]],
        "b": [[grades(1, 2, 3, 4, 5)], [grades(5, 3, 3, 3, 3)], [grades(4, 4, 4, 4, 4)]],
    })  # fmt: skip
    assert {name: one.predictions for name, one in found.columns.items()} == {
        "total": 1, DIMENSIONS[0]: 1, **dict.fromkeys(DIMENSIONS[1:], 3),
    }  # fmt: skip
    assert (total(found).alone, total(found).failed) == (2, 2)


def test_totals_within_one_point_are_five_steps_of_their_sum_apart() -> None:
    (found,) = agree({
        "a": [[grades(3)], [grades(3)], [grades(3)]],
        "b": [[grades(3)], [grades(4)], [grades(4, 4, 4, 4, 5)]],
    })  # fmt: skip
    assert total(found).exact.value == pytest.approx(1 / 3)
    assert total(found).within_one.value == pytest.approx(2 / 3)


def test_trajectories_of_two_domains_are_two_though_they_have_one_name() -> None:
    (found,) = agree({"a": [[grades(3)], [grades(4)]], "b": [[grades(3)], [grades(4)]]}, domain=1)
    assert total(found).clusters == 2


def test_judges_who_always_say_the_same_have_rates_and_no_alpha() -> None:
    """A constant rater: 0 would read as no better than chance, 1 as proven."""
    (found,) = agree({"a": [[grades(4)]] * 6, "b": [[grades(4)]] * 6})
    one = total(found)
    assert (one.alpha.value, one.alpha.reason, one.kappa_quadratic.reason) == (
        None,
        "no_variation",
        "no_variation",
    )
    assert (one.exact.value, one.within_one.value) == (1.0, 1.0)
    assert one.exact.interval is not None and one.exact.interval.flags == ("no_spread",)


verdicts = st.lists(
    st.lists(st.sampled_from([grades(n) for n in range(1, 6)]) | st.just(NO_VERDICT), min_size=3, max_size=3),
    min_size=1,
    max_size=4,  # trajectories too few to draw from: what is tested are the values
)


@settings(max_examples=20, deadline=None)
@given(verdicts, st.permutations(range(3)))
def test_the_order_of_repeats_never_shows_within_a_judge(
    samples: list[list[Outcome]], order: list[int]
) -> None:
    (found,) = agree({"a": samples}, {"a": 3})
    (turned,) = agree({"a": [[some[place] for place in order] for some in samples]}, {"a": 3})
    for name, one in found.columns.items():
        other = turned.columns[name]
        assert (one.predictions, one.pairs, one.alone, one.failed) == (
            other.predictions, other.pairs, other.alone, other.failed,
        )  # fmt: skip
        for measure in ("alpha", "kappa_linear", "kappa_quadratic", "exact", "within_one"):
            mine, theirs = getattr(one, measure), getattr(other, measure)
            assert mine.reason == theirs.reason
            assert mine.value == pytest.approx(theirs.value, abs=1e-12)


def test_repeats_of_a_judge_have_one_kappa_for_both_orders() -> None:
    """With margins of both orders together two raters' quadratic kappa is alpha but for alpha's small correction."""
    pairs = [(1, 2), (2, 2), (3, 5), (4, 4), (5, 4), (1, 1), (2, 3), (5, 5)]
    (found,) = agree({"a": [[grades(one), grades(other)] for one, other in pairs]}, {"a": 2})
    values = [value for pair in pairs for value in pair]
    mean = sum(values) / len(values)
    seen = sum((one - other) ** 2 for one, other in pairs) / len(pairs)
    by_chance = 2 * sum((value - mean) ** 2 for value in values) / len(values)
    assert found.columns[DIMENSIONS[0]].kappa_quadratic.value == pytest.approx(1 - seen / by_chance)
    assert found.columns[DIMENSIONS[0]].rater_pairs == 1
