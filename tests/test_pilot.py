"""`awb estimate --pilot RUN`: a run's sources of variance, and what each mix would tell and cost.

World and judge are scripted: answers differ by epoch, verdicts by repeat, both decided by the messages and by how often
they arrived, so that every run of the tests is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agentworldbench.config import RunConfig, make_config
from agentworldbench.errors import ConfigError
from agentworldbench.estimate import estimate
from agentworldbench.pilot import open_pilot, planned_config
from agentworldbench.pilot_estimate import PilotEstimate, pilot_estimate
from agentworldbench.plan import Plan, make_plan
from agentworldbench.run import evaluate
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import DIMENSIONS, ChatCall, Reply, ScriptedServer, verdict_text
from tests.helpers.whole_runs import options

NOWHERE = "http://127.0.0.1:1/v1"
PRICES = ("world=1,4", "judge=2,8")


def noisy(call: ChatCall) -> Reply:
    """An answer that differs by attempt; verdicts that differ by answer and attempt; one answer in eight is empty."""
    chance = Random(f"{call.key} {call.attempt}")
    if call.model == "world":
        empty = chance.random() < 1 / 8
        return Reply(
            content="" if empty else f"<predicted_observation>{chance.random()}</predicted_observation>"
        )
    level = 3 + Random(call.key).gauss(0, 1)
    scores = {name: min(5, max(1, round(level + chance.gauss(0, 0.7)))) for name in DIMENSIONS}
    return Reply(content=verdict_text(scores))


@pytest.fixture(scope="module")
def folder(few_draws: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`data` (two domains); runs on it: `pilot` (half, 2 epochs, 2 repeats), `small` (rows drawn, all once), `rules`."""
    folder = tmp_path_factory.mktemp("pilot")
    make_official_folder(
        folder / "data", domains=("swe", "web"), trajectories=10, turns=5, special=False, observation_chars=80
    )
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(noisy) as server:
        set_key(patch)
        common: dict[str, Any] = {"max_retries": 0, "price": PRICES, "display": "none", "seed": 3}

        def run(name: str, **more: Any) -> None:
            evaluate(**options(server, folder / name, folder / "data", **common | more))

        run("pilot", limit_trajectories=5, epochs=2, judge_repeats=2, max_tokens=2000)
        run("small", limit="9")
        run("rules", limit_trajectories=5, judge=(), judge_base_url=(), price=PRICES[:1])
        evaluate(**options(
            server, folder / "two", folder / "data", **common, limit_trajectories=2,
            judge=("openai-api/judge", "openai-api/judge-2"),
        ))  # fmt: skip
        yield folder


@pytest.fixture(scope="module")
def found(folder: Path) -> PilotEstimate:
    """Of `pilot`, with nothing else given."""
    return told(folder, "pilot")


def told(folder: Path, name: str, target: float | None = None, **values: Any) -> PilotEstimate:
    config = make_config(values)
    pilot = open_pilot(folder / name, next(iter(config.judge), None), config.no_judge)
    return pilot_estimate(pilot, make_plan(planned_config(pilot, config), lambda line: None), target)


def plan_of(folder: Path, **values: Any) -> Plan:
    common = {
        "model": "openai-api/world",
        "base_url": NOWHERE,
        "data": str(folder / "data"),
        "output": folder / "no",
    }
    return make_plan(make_config(common | values), lambda line: None)


# --- widths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pilot", "small", "rules"])
def test_the_pilots_own_mix_has_the_intervals_of_its_results(folder: Path, name: str) -> None:
    """Nearly: failed answers are no full design, and degrees of freedom of re-run are estimated. Nine samples of a domain in
    some of its trajectories are a rough pilot; in the mean of many the widths agree (`test_pilot_simulations.py`)."""
    found = told(folder, name)
    own = found.pilot
    results = json.loads((folder / name / "results.json").read_text())
    if name == "rules":
        reported = results["rules"]["macro_intervals"]["floor"]["half"] * 100
    else:
        reported = results["judges"][0]["strict"]["macro_intervals"]["floor"]["half"]
    assert own.population is not None and own.population.half == pytest.approx(reported)
    assert own.predicted_population is not None
    assert own.predicted_population.high == pytest.approx(reported, rel=0.25 if name == "small" else 0.02)
    if name == "pilot":
        assert own.rerun is not None and own.predicted_rerun is not None
        assert own.predicted_rerun.high == pytest.approx(own.rerun.half, rel=0.05)
        assert own.rerun.half == pytest.approx(results["judges"][0]["strict"]["macro_rerun"]["floor"]["half"])
    else:
        assert (own.rerun, own.predicted_rerun) == (None, None)


def test_the_row_of_the_pilots_own_selection_is_the_pilots(folder: Path) -> None:
    found = told(folder, "pilot", limit_trajectories=5)
    row = next(
        mix for mix in found.mixes if (mix.samples, mix.epochs, mix.repeats) == (found.pilot.samples, 2, 2)
    )
    assert row.trajectories == found.pilot.trajectories == 10
    assert row.population == found.pilot.predicted_population
    assert row.rerun == found.pilot.predicted_rerun


def test_every_mix_is_there_and_more_is_never_wider(found: PilotEstimate) -> None:
    assert [mix.selection for mix in found.mixes[::9]] == [
        "--limit 0.1 --seed 3",
        "--limit 0.25 --seed 3",
        "--limit 0.5 --seed 3",
        "--seed 3",
    ]
    assert {(mix.epochs, mix.repeats) for mix in found.mixes} == {
        (e, r) for e in (1, 2, 4) for r in (1, 2, 4)
    }
    whole = {(mix.epochs, mix.repeats): mix for mix in found.mixes if mix.selection == "--seed 3"}
    for kind in ("population", "rerun"):
        widths = [getattr(whole[key], kind).high for key in ((1, 1), (1, 4), (4, 4))]
        assert widths == sorted(widths, reverse=True)


def test_what_is_planned_is_among_the_mixes(folder: Path) -> None:
    mixes = told(folder, "pilot", tasks="swe", limit="4", epochs=3, judge_repeats=3).mixes
    assert {mix.epochs for mix in mixes} == {mix.repeats for mix in mixes} == {1, 2, 3, 4}


def test_one_epoch_leaves_widths_open(folder: Path) -> None:
    found = told(folder, "small")
    whole = {(mix.epochs, mix.repeats): mix for mix in found.mixes if mix.selection == "--seed 3"}
    more = whole[4, 4].population
    assert more is not None and more.low < more.high
    again = whole[2, 1].rerun
    assert again is not None and again.low == 0 < again.high
    assert all(mix.population is None or mix.population.low <= mix.population.high for mix in found.mixes)


# --- costs ---------------------------------------------------------------------------------------


def test_costs_are_those_of_the_estimate_of_that_mix(folder: Path) -> None:
    """Not only of the mixes that were estimated: here of 4 epochs with 4 verdicts each."""
    found = told(folder, "pilot", output_tokens="50-200", judge_output_tokens="100-300")
    for mix in (found.mixes[17], found.mixes[-1]):
        assert (mix.epochs, mix.repeats) == (4, 4)
        flags = {"limit": mix.selection.split()[1]} if "--limit" in mix.selection else {}
        made = estimate(plan_of(
            folder, **flags, judge=["openai-api/judge"], judge_base_url=[NOWHERE], epochs=4, judge_repeats=4, price=PRICES,
            seed=3, output_tokens="50-200", judge_output_tokens="100-300",
        ))  # fmt: skip
        totals = [stage.total for stage in made.stages]
        assert mix.requests == sum(one.requests for one in totals)
        assert mix.tokens_high == pytest.approx(
            sum(one.prompt_tokens + one.output_high for one in totals), rel=2e-3
        )
        assert mix.usd_low == pytest.approx(made.usd_low, rel=5e-3)
        assert mix.usd_high == pytest.approx(made.usd_high, rel=2e-3)


def test_an_unknown_price_is_none_and_tokens_order_the_mixes(folder: Path) -> None:
    found = told(folder, "pilot", 60.0, model="openai-api/other", base_url=NOWHERE, limit="6")
    assert found.unpriced == ("openai-api/other",)
    assert {mix.usd_high for mix in found.mixes} == {None}
    assert all(mix.tokens_high > mix.tokens_low > 0 for mix in found.mixes)
    assert found.cheapest is not None
    reaching = [mix for mix in found.mixes if mix.reaches]
    assert found.mixes[found.cheapest].tokens_high == min(mix.tokens_high for mix in reaching)


def test_the_cheapest_mix_that_reaches_a_width(folder: Path) -> None:
    target = 12.0
    found = told(folder, "pilot", target)
    assert found.cheapest is not None
    best = found.mixes[found.cheapest]
    assert best.reaches and best.efficient and best.usd_high is not None
    for mix in found.mixes:
        assert mix.reaches is (mix.population is not None and mix.population.high <= target)
        assert not mix.reaches or best.usd_high <= (mix.usd_high or 0)
    assert {mix.reaches for mix in found.mixes} == {True, False}
    assert told(folder, "pilot", 0.01, limit="4").cheapest is None


# --- what is taken from the pilot, and what is refused -------------------------------------------


def test_what_is_not_given_is_the_pilots(folder: Path, found: PilotEstimate) -> None:
    pilot = open_pilot(folder / "pilot", None, rules=False)
    config = planned_config(pilot, RunConfig())
    assert (config.model, config.judge, config.protocol) == (
        "openai-api/world",
        ("openai-api/judge",),
        "builtin",
    )
    assert (config.limit_trajectories, config.epochs, config.judge_repeats) == (None, None, None)
    assert (config.max_tokens, config.seed, config.data) == (2000, 3, str(folder / "data"))
    assert config.price == ("openai-api/world=1,4", "openai-api/judge=2,8")
    assert found.unlike == ()
    other = planned_config(
        pilot, make_config({"model": "openai-api/other", "base_url": NOWHERE, "max_tokens": 9})
    )
    assert (other.model, other.max_tokens, other.price) == ("openai-api/other", 9, ("openai-api/judge=2,8",))
    assert planned_config(pilot, make_config({"no_judge": True})).judge == ()


def test_what_is_unlike_is_said(folder: Path, tmp_path: Path) -> None:
    make_official_folder(tmp_path, seed=4, domains=("swe", "web"), trajectories=3, special=False)
    found = told(
        folder, "pilot", model="openai-api/other", base_url=NOWHERE, judge=["openai-api/else"], judge_base_url=[NOWHERE],
        data=str(tmp_path), temperature=0.1, limit="2",
    )  # fmt: skip
    said = "; ".join(found.unlike)
    assert "the model (openai-api/other, the pilot's was openai-api/world)" in said
    assert "the data of swe, web" in said
    assert "the judge (openai-api/else, " in said
    assert "predict.sampling.*.temperature was 0.6, now 0.1" in said


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        (
            "pilot",
            {"protocol": "official", "no_judge": True},
            "scored under protocol builtin, this plan says official",
        ),
        ("rules", {"judge": ["openai-api/judge"], "judge_base_url": [NOWHERE]}, "no judge has scored it"),
        ("two", {}, "has 2 judges; --judge names the one"),
        ("two", {"judge": ["openai-api/third"]}, "'openai-api/judge-2' ("),
    ],
)
def test_what_makes_no_sense_is_refused(
    folder: Path, name: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        told(folder, name, **values)
    assert message in str(refused.value)


def test_a_domain_that_the_pilot_does_not_know_is_refused(folder: Path, tmp_path: Path) -> None:
    make_official_folder(tmp_path, domains=("swe", "os"), trajectories=3, special=False)
    with pytest.raises(ConfigError, match="of domain 'os' it has no score; give it more"):
        told(folder, "pilot", data=str(tmp_path), tasks="swe,os")
    found = told(folder, "pilot", tasks="swe", limit="4")
    assert list(found.domains) == ["swe"]
    assert found.pilot.trajectories == 10, "the pilot's own interval is over all that it has"


def test_one_trajectory_tells_nothing_of_others(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "one"
    evaluate(model="baseline/copy-last", data=str(folder / "data"), output=path, limit_trajectories=1)
    with pytest.raises(ConfigError, match="of domain 'swe' it has one trajectory"):
        told(tmp_path, "one")


def test_one_of_several_judges_is_picked_by_model_or_digest(folder: Path) -> None:
    first, second = (
        one["judge"] for one in json.loads((folder / "two" / "results.json").read_text())["judges"]
    )
    for judge in (first, second):
        for name in (judge["model"], judge["digest"]):
            found = told(folder, "two", judge=[name], limit="2")
            assert (found.pilot.judge, found.unlike) == (judge["digest"], ())


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    made = HereAwb(tmp_path, monkeypatch, capsys)
    set_key(monkeypatch)
    return made


def test_the_command_prints_shares_mixes_and_what_they_rest_on(folder: Path, awb: HereAwb) -> None:
    done = awb("estimate", "--pilot", folder / "pilot", "--target-half-width", "12")
    assert done.code == 0, done.err
    out = " ".join(done.out.split())
    assert "Where scores by judge openai-api/judge vary, in the pilot" in out
    assert "What a run would tell: ± of its macro score by judge openai-api/judge, in points" in out
    assert (
        "Samples: 10 are --limit 0.1 --seed 3, 26 are --limit 0.25 --seed 3, 50 are --limit 0.5 --seed 3, 100 are --seed 3."
        in out
    )
    assert "✓: ± 12 or less, as far as this pilot can tell. ◀ the cheapest of them: " in out
    assert "The pilot itself (50 × 2 × 2): population ± " in out
    assert "with …" not in out, "two of each tell everything apart"
    small = " ".join(awb("estimate", "--pilot", folder / "small", "--target-half-width", "0.5").out.split())
    assert "with turn with turn" in small
    assert "--epochs 2 tells turns from answers; --judge-repeats 2 answers from verdicts" in small
    assert "No mix here surely reaches ± 0.5; the narrowest is 100 × " in small


def test_one_json_object_holds_all_of_it(folder: Path, awb: HereAwb) -> None:
    done = awb("estimate", "--pilot", folder / "pilot", "--target-half-width", "12", "--json", "--limit", "4")
    found = json.loads(done.out)
    assert PilotEstimate.model_validate_json(json.dumps(found["pilot"])).target == 12
    assert [stage["stage"] for stage in found["stages"]] == ["predict", "judge"]
    plain = json.loads(awb("estimate", "--model", "baseline/empty", "--json").out)
    assert "pilot" not in plain


def test_rules_have_no_verdicts(folder: Path, awb: HereAwb) -> None:
    out = awb("estimate", "--pilot", folder / "pilot", "--no-judge").out
    assert "Where scores by rules vary" in out
    assert "Verdict " not in out and "One judge" not in out
    assert "50 × 2 × 1" in out and "× 2 × 2" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target-half-width", "1"], "--target-half-width: needs --pilot RUN"),
        (["--pilot", "RUN", "--target-half-width", "0"], "--target-half-width 0: half a width in points"),
        (["--pilot", "RUN", "--judge", "a", "--judge", "b"], "--pilot: one --judge at a time"),
        (["--pilot", "nowhere"], "nowhere"),
    ],
)
def test_wrong_flags_are_named(folder: Path, awb: HereAwb, words: list[str], message: str) -> None:
    done = awb("estimate", *(str(folder / "pilot") if word == "RUN" else word for word in words))
    assert done.code == 2
    assert message in done.complaint
