"""Tests of `selection.py`: seeded draws that nest, ranges, fractions and single samples.

References are made up here; texts play no part in a selection.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError
from agentworldbench.records import SampleRef
from agentworldbench.selection import select


def refs(**counts: int) -> list[SampleRef]:
    """`counts` rows of each domain, four rows a trajectory."""
    return [
        SampleRef(
            id=f"{domain}/{number // 4}/{number % 4 + 1}",
            domain=domain,
            row_id=number // 4,
            turn_idx=number % 4 + 1,
            total_turns=4,
            cluster=f"{domain}-{number // 4}",
            task_key="t",
            row_hash="h",
            line=number + 1,
            offset=0,
            length=1,
            context_chars=1,
        )
        for domain, count in counts.items()
        for number in range(count)
    ]


REFS = refs(terminal=100, swe=30, os=8)


def ids(refs: list[SampleRef], **options: Any) -> list[str]:
    return [ref.id for ref in select(refs, RunConfig(**options))]


def of(domain: str, some: list[str]) -> list[str]:
    return [name for name in some if name.startswith(f"{domain}/")]


def test_without_limits_everything_is_chosen() -> None:
    assert ids(REFS) == [ref.id for ref in REFS]


def test_a_number_counts_per_domain_and_keeps_file_order() -> None:
    chosen = ids(REFS, limit="10")
    assert [len(of(domain, chosen)) for domain in ("terminal", "swe", "os")] == [10, 10, 8]
    positions = [[ref.id for ref in REFS].index(name) for name in chosen]
    assert positions == sorted(positions)
    assert of("terminal", chosen) != [ref.id for ref in REFS[:10]], "a draw, not the head of the file"


@given(st.integers(1, 120), st.integers(1, 120), st.none() | st.integers(0, 2**40))
def test_draws_nest(one: int, other: int, seed: int | None) -> None:
    small, large = sorted((one, other))
    assert set(ids(REFS, limit=str(small), seed=seed)) <= set(ids(REFS, limit=str(large), seed=seed))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 99))
def test_draws_of_trajectories_nest_and_are_whole(one: int, other: int, seed: int) -> None:
    small, large = (set(ids(REFS, limit_trajectories=n, seed=seed)) for n in sorted((one, other)))
    assert small <= large
    for domain in ("terminal", "swe", "os"):
        clusters = {ref.cluster for ref in REFS if ref.id in small and ref.domain == domain}
        assert len(clusters) == min(one, other, len({ref.cluster for ref in REFS if ref.domain == domain}))
        assert {ref.id for ref in REFS if ref.cluster in clusters} == {
            ref.id for ref in REFS if ref.id in small and ref.domain == domain
        }


def test_seeds_draw_differently_and_again_the_same() -> None:
    draws = [ids(REFS, limit="10", seed=seed) for seed in range(8)]
    assert len({tuple(draw) for draw in draws}) == 8
    assert draws[3] == ids(REFS, limit="10", seed=3)
    assert draws[0] == ids(REFS, limit="10"), "no seed is seed 0"


def test_a_draw_is_the_same_on_every_machine() -> None:
    """Lowest SHA-256 of `<seed>/<sample id>`, by `sha256sum`: a stored run must find its draw again."""
    drawn = ["terminal/12/1", "terminal/19/4", "swe/3/4", "swe/6/2", "os/0/1", "os/1/4"]
    assert ids(REFS, limit="2", seed=7) == drawn


def test_a_draw_does_not_depend_on_file_order() -> None:
    assert set(ids(REFS[::-1], limit="9")) == set(ids(REFS, limit="9"))


@given(st.integers(1, 999), st.integers(1, 100))
def test_fractions_round_up_exactly(thousandths: int, rows: int) -> None:
    limit = f"0.{thousandths:03d}"
    expected = math.ceil(Fraction(thousandths, 1000) * rows)
    assert len(ids(refs(swe=rows), limit=limit)) == expected


@pytest.mark.parametrize(
    ("limit", "count"), [("0.07", 7), ("0.28", 28), (".5", 50), ("1.0", 100), ("0.001", 1)]
)
def test_fractions_that_floats_get_wrong(limit: str, count: int) -> None:
    assert len(ids(refs(terminal=100), limit=limit)) == count


def test_one_is_a_sample_and_one_point_nought_is_all() -> None:
    assert len(ids(refs(os=8), limit="1")) == 1
    assert len(ids(refs(os=8), limit="1.0")) == 8


def test_ranges_are_rows_in_file_order() -> None:
    chosen = ids(REFS, limit="3-9", seed=5)
    for domain in ("terminal", "swe", "os"):
        all_of = [ref.id for ref in REFS if ref.domain == domain]
        assert of(domain, chosen) == all_of[2:9]
    assert of("os", ids(REFS, limit="9-12")) == []
    assert len(of("swe", ids(REFS, limit="9-12"))) == 4


def test_sample_ids() -> None:
    assert ids(REFS, sample_id=["swe/2/1", "os/0/3"]) == ["swe/2/1", "os/0/3"]
    assert ids(REFS, sample_id=["os/0/3", "swe/2/1"]) == ["swe/2/1", "os/0/3"]
    with pytest.raises(ConfigError, match=r"--sample-id swe/2/9: no such sample .*did you mean 'swe/2/"):
        ids(REFS, sample_id=["swe/2/9"])


def test_limits_combine_in_order() -> None:
    chosen = ids(REFS, limit_trajectories=2, limit="5", seed=1)
    assert [len(of(domain, chosen)) for domain in ("terminal", "swe", "os")] == [5, 5, 5]
    assert set(chosen) <= set(ids(REFS, limit_trajectories=2, seed=1))
    assert ids(REFS, sample_id=["os/0/3", "os/0/4"], limit="1-1") == ["os/0/3"]


def test_an_empty_selection_is_refused() -> None:
    with pytest.raises(ConfigError, match="holds no sample"):
        ids(REFS, limit="101-200")
