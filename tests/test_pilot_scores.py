"""What a pilot's answers add to its scores, and a pilot of the protocol official, which leaves failures out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench.config import RunConfig
from agentworldbench.pilot import answer_points, open_pilot, planned_config
from agentworldbench.readings import Outcome
from agentworldbench.records import DIMENSIONS
from agentworldbench.run import evaluate
from tests.helpers.asking import set_key
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_prompts import use_prompts
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.whole_runs import options
from tests.test_pilot import noisy

CASES = yaml.safe_load(
    (Path(__file__).parent / "cases" / "stats" / "pilot_scores.yaml").read_text(encoding="utf-8")
)


def outcome(verdict: Any) -> Outcome:
    if verdict == "no total":
        return Outcome(dict.fromkeys(DIMENSIONS, 3.0))
    if isinstance(verdict, str):
        stage = "judge" if verdict == "failed" else verdict
        return Outcome(None, stage, "some_kind")
    return Outcome({"total": float(verdict)})


@pytest.mark.parametrize("policy", ["floor", "exclude"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_scores_of_one_answer(case: dict[str, Any], policy: str) -> None:
    outcomes = [outcome(verdict) for verdict in case["verdicts"]]
    assert answer_points(outcomes, floor=policy == "floor") == case[policy]


def test_a_pilot_of_the_official_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its failed answers are no scores; its own mix has the interval of the official reading all the same."""
    set_key(monkeypatch)
    use_prompts(monkeypatch)
    make_official_folder(tmp_path / "data", domains=("swe",), trajectories=6, turns=5, special=False)
    with ScriptedServer(noisy) as server:
        evaluate(**options(
            server, tmp_path / "run", tmp_path / "data", protocol="official", epochs=2, judge_repeats=2, max_retries=0,
            display="none",
        ))  # fmt: skip
    pilot = open_pilot(tmp_path / "run", None, rules=False)
    (scores,) = pilot.scores.values()
    assert (pilot.protocol, pilot.policy) == ("official", "exclude")
    assert 0 < len(scores) < 30 * 2 * 2, "empty answers are left out"
    assert planned_config(pilot, RunConfig()).protocol == "official"
    mean = {ref.id: [one.value for one in scores if one.turn == ref.id] for ref in pilot.groups["swe"]}
    known = [sum(some) / len(some) for some in mean.values() if some]
    reported = pilot.measured()
    assert reported.value == pytest.approx(sum(known) / len(known), abs=2), (
        "answers with fewer verdicts weigh otherwise"
    )
    assert reported.population is not None and reported.population.half is not None
