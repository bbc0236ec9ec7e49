"""Parts of a planned selection: what flags select them, and what answering them costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.estimate import estimate
from agentworldbench.plan import Plan, make_plan
from agentworldbench.plan_parts import design_of, part_costs, parts_of
from agentworldbench.run import evaluate
from tests.helpers.official_folder import make_official_folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    return make_official_folder(
        folder, domains=("swe", "web"), trajectories=10, turns=5, special=False
    ).folder


def plan_of(data: Path, **values: Any) -> Plan:
    return make_plan(make_config({"model": "baseline/empty", "data": str(data)} | values), lambda line: None)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, ["--limit 0.1", "--limit 0.25", "--limit 0.5", ""]),
        ({"limit": "0.3"}, ["--limit 0.03", "--limit 0.075", "--limit 0.15", "--limit 0.3"]),
        ({"limit": "8"}, ["--limit 1", "--limit 2", "--limit 4", "--limit 8"]),
        ({"limit": "3-10"}, ["--limit 3-3", "--limit 3-4", "--limit 3-6", "--limit 3-10"]),
        (
            {"limit_trajectories": 4},
            ["--limit-trajectories 1", "--limit-trajectories 2", "--limit-trajectories 4"],
        ),
        (
            {"limit_trajectories": 4, "limit": "6"},
            [f"--limit-trajectories 4 --limit {n}" for n in (1, 2, 3, 6)],
        ),
        (
            {"seed": 5},
            [f"{words}--seed 5" for words in ("--limit 0.1 ", "--limit 0.25 ", "--limit 0.5 ", "")],
        ),
        ({"limit": "1"}, ["--limit 1"]),
    ],
)
def test_parts_are_what_the_flags_select(data: Path, flags: dict[str, Any], expected: list[str]) -> None:
    parts = dict(parts_of(plan_of(data, **flags)))
    assert list(parts) == expected
    for words, refs in parts.items():
        given = [one.partition(" ") for one in f" {words}".split(" --")[1:]]
        typed = {name.replace("-", "_"): value for name, _, value in given}
        assert refs == plan_of(data, **typed).samples.refs


def test_samples_named_one_by_one_have_no_parts(data: Path) -> None:
    names = [ref.id for ref in plan_of(data).samples.refs[:3]]
    assert list(dict(parts_of(plan_of(data, sample_id=names)))) == [""]


def test_nothing_is_stored_where_costs_are_counted(data: Path, tmp_path: Path) -> None:
    """A plan that goes on with a run has nothing due; its parts are runs of their own all the same."""
    run = evaluate(model="baseline/empty", data=str(data), tasks="swe", limit="3", output=tmp_path / "run")
    plan = plan_of(data, tasks="swe", limit="3", output=run.path)
    assert estimate(plan).stages[0].total.requests == 0
    costs = part_costs(plan, plan.samples.refs)
    assert [costs.numbers(epochs, 1)[0] for epochs in (1, 2, 4)] == [3, 6, 12]


def test_designs_of_uneven_trajectories(data: Path) -> None:
    refs = [ref for ref in plan_of(data, tasks="swe").samples.refs]
    clusters = list(dict.fromkeys(ref.cluster for ref in refs))
    some = [ref for ref in refs if ref.cluster == clusters[0]][:3]
    some += [next(ref for ref in refs if ref.cluster == clusters[1])]
    design = design_of(some, epochs=2, repeats=3)
    assert (design.trajectories, design.turns, design.epochs, design.repeats) == (2, 2.0, 2, 3)
    # sum m^2 / (sum m)^2 = (9 + 1) / 16 = (1 + unevenness^2) / 2
    assert (1 + design.unevenness**2) / 2 == pytest.approx(10 / 16)
    assert design_of(some, 1, 1, scored=0.75).turns == 1.5
    assert design_of(some, 1, 1, scored=0.1).turns == 1.0, "a design of nothing is none"
