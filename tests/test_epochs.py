"""Tests of `--epochs` and `--judge-repeats`: what is asked, how it is averaged, the interval `re-run`.

The world answers differently each time and the judge's scores alternate, so that what is averaged shows.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.compare.two import compare_runs
from agentworldbench.config import make_config
from agentworldbench.estimate import estimate
from agentworldbench.merge import merge_runs
from agentworldbench.plan import make_plan
from agentworldbench.records import FailureKind, SampleMetrics, SampleRef
from agentworldbench.run import evaluate, load_run, score_run
from agentworldbench.stats.epochs import rerun, run_rules, sample_epochs
from agentworldbench.stats.panel import Judged, Panel
from tests.helpers.asking import set_key
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, options

EPOCHS, REPEATS = 3, 2


@pytest.fixture(scope="module")
def folder(few_draws: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`one` (an epoch), `run` (first one epoch, then `EPOCHS` and `REPEATS` in the same directory)."""
    folder = tmp_path_factory.mktemp("epochs")
    make_official_folder(folder / "data", domains=("swe",), trajectories=1)
    numbers = count()

    def reply(call: ChatCall) -> Reply:
        if call.model == "judge":
            return good(call)
        return Reply(content="" if next(numbers) % 5 == 4 else f"{good(call).content} {next(numbers)}")

    with pytest.MonkeyPatch.context() as patch, ScriptedServer(reply) as server:
        set_key(patch)
        common: dict[str, Any] = {"judge_attempts": 1, "max_retries": 0}
        evaluate(**options(server, folder / "one", folder / "data", **common))
        evaluate(**options(server, folder / "run", folder / "data", **common))
        more = common | {"epochs": EPOCHS, "judge_repeats": REPEATS}
        evaluate(**options(server, folder / "run", folder / "data", **more))
    yield folder


def test_a_run_grows_in_epochs_and_repeats(folder: Path) -> None:
    run = load_run(folder / "run")
    samples = sum(run.record.selection.samples.values())
    assert run.record.epochs == EPOCHS
    assert list(run.record.repeats.values()) == [REPEATS]
    predictions = Counter(one.epoch for one in run.predictions())
    assert predictions == dict.fromkeys(range(1, EPOCHS + 1), samples)
    answered = {(one.sample_id, one.epoch) for one in run.predictions() if one.failure is None}
    assert 0 < len(answered) < samples * EPOCHS, "some must fail"
    verdicts = {(one.sample_id, one.epoch, one.repeat) for one in run.verdicts()}
    assert verdicts == {(*key, repeat) for key in answered for repeat in range(1, REPEATS + 1)}
    assert Counter(one.epoch for one in run.metrics()) == predictions


def test_every_number_is_the_mean_of_the_epochs_means(folder: Path) -> None:
    """Under `floor` a failed answer is a 0 among its sample's."""
    run = load_run(folder / "run")
    assert run.results is not None
    (judge,) = run.results.judges
    totals: dict[tuple[str, int], list[float]] = {}
    for one in run.verdicts():
        assert one.scores is not None
        totals.setdefault((one.sample_id, one.epoch), []).append(sum(one.scores.values()) / 5)
    samples = {one.sample_id for one in run.predictions()}
    points = {key: (sum(some) / len(some) - 1) * 25 for key, some in totals.items()}
    floor = [sum(points.get((name, n), 0.0) for n in range(1, EPOCHS + 1)) / EPOCHS for name in samples]
    assert judge.micro.floor["total"] == pytest.approx(sum(floor) / len(floor))
    assert judge.micro.coverage == pytest.approx(len(points) / (len(samples) * EPOCHS))
    assert run.results.complete
    interval = judge.macro_intervals.floor
    again = judge.headline.macro_rerun.floor
    assert interval is not None and interval.kind == "population"
    assert again is not None and (again.kind, again.clusters) == ("re-run", len(samples))
    rule = run.results.rules.macro_rerun.floor
    assert rule is not None and rule.kind == "re-run" and rule.half


def test_one_epoch_leaves_no_trace_in_files(folder: Path) -> None:
    run = json.loads((folder / "one" / "run.json").read_text())
    results = (folder / "one" / "results.json").read_text()
    assert not {"epochs", "repeats"} & run.keys()
    assert "rerun" not in results and '"epochs"' not in results


def test_scoring_again_merging_and_comparing_read_all_epochs(folder: Path, tmp_path: Path) -> None:
    before = load_run(folder / "run").results
    merged = merge_runs([folder / "run", folder / "one"], tmp_path / "merged")
    again = score_run(folder / "run").results
    assert before is not None and again is not None
    assert again.model_copy(update={"made_at": ""}) == before.model_copy(update={"made_at": ""})
    assert merged.results.epochs == EPOCHS
    compared = compare_runs(folder / "one", folder / "run")
    judge, rules = compared.measures
    macro = before.judges[0].macro_floor["total"]
    assert judge.differences.macro.second == pytest.approx(macro)
    floor = before.rules.macro["rule_score"].floor
    assert floor is not None
    assert rules.differences.macro.second == pytest.approx(100 * floor)


def test_a_smaller_number_asks_nothing_and_says_that_all_count(folder: Path) -> None:
    notices: list[str] = []
    options_again: dict[str, Any] = {
        "data": str(folder / "data"), "model": "baseline/copy-last", "output": folder / "base"
    }  # fmt: skip
    evaluate(**options_again, epochs=2, watch=lambda progress: notices.extend(progress.notices))
    assert any("answers alike" in line for line in notices)
    done = evaluate(**options_again, epochs=1, watch=lambda progress: notices.extend(progress.notices))
    assert any("has 2 epochs; all of them count" in line for line in notices)
    assert done.record.epochs == 2
    assert done.results is not None
    spread = done.results.rules.macro_rerun.floor
    assert spread is not None and (spread.half, spread.flags) == (None, ("no_spread",))


def test_the_estimate_counts_epochs_and_repeats(folder: Path) -> None:
    config = make_config({
        "model": "openai-api/m", "base_url": "http://127.0.0.1:1/v1", "judge": ["openai-api/j"],
        "judge_base_url": ["http://127.0.0.1:1/v1"], "data": str(folder / "data"), "output": folder / "new",
        "epochs": 2, "judge_repeats": 3,
    })  # fmt: skip
    plan = make_plan(config, lambda line: None)
    count_of = {stage.stage: stage.total.requests for stage in estimate(plan).stages}
    samples = len(plan.samples.refs)
    assert count_of == {"predict": 2 * samples, "judge": 6 * samples}


def test_a_failed_epoch_is_zero_under_floor_and_left_out_under_exclude() -> None:
    values = {"total": 3.0} | dict.fromkeys(
        ("format", "factuality", "consistency", "realism", "quality"), 3.0
    )
    one = sample_epochs(Panel(("j",), 1), [Judged({("j", 1): values}), Judged({}, failed=True)])
    assert (one.score.exclude["total"], one.score.floor["total"]) == (50.0, 25.0)
    assert (one.exclude, one.floor) == ((50.0,), (50.0, 0.0))


def test_metrics_of_epochs_are_averaged_in_their_sample() -> None:
    numbers = dict.fromkeys(("line", "offset", "length", "context_chars"), 1)
    ref = SampleRef(
        id="swe/a/1", domain="swe", row_id="a", turn_idx=1, total_turns=1, cluster="a", task_key="", row_hash="",
        **numbers,
    )  # fmt: skip
    common: dict[str, Any] = {"sample_id": ref.id, "applicable": ("m",), "baseline": {"m": 0.0}}
    records = [
        SampleMetrics(**common, values={"m": 0.5}),
        SampleMetrics(**common, epoch=2, values={"m": 0.7}),
        SampleMetrics(**common, epoch=3, values={}, failed=FailureKind.EMPTY),
    ]
    rules = run_rules({"swe": [ref]}, {ref.id: records}, {"swe": ("m",)})
    score = rules.score["swe"]
    assert (score.n, score.scored) == (1, 1)
    assert (score.exclude, score.floor) == (pytest.approx(0.6), pytest.approx(0.4))
    assert rules.skill["swe"].floor == pytest.approx(0.4)


def test_rerun_intervals_hold_another_run_of_the_same_samples() -> None:
    """Simulated, seeded: of 150 intervals about 95 % hold the mean that endlessly many epochs would give."""
    draw = random.Random(7)
    for epochs, samples in ((2, 30), (3, 10), (5, 4)):
        held = 0
        for _ in range(150):
            truth = [draw.gauss(50, 20) for _ in range(samples)]
            values = [[draw.gauss(mean, 8) for _ in range(epochs)] for mean in truth]
            mean = sum(sum(some) / epochs for some in values) / samples
            interval = rerun(mean, values)
            assert interval is not None and interval.low is not None and interval.high is not None
            held += interval.low <= sum(truth) / samples <= interval.high
        assert 0.91 <= held / 150 <= 0.985, (epochs, samples, held)


def test_without_a_second_epoch_there_is_no_rerun_interval() -> None:
    assert rerun(1.0, [[1.0], [2.0]]) is None
    assert rerun(None, []) is None
