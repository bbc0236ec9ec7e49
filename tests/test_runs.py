"""Whole runs through a scripted server as model and judge: are the numbers what they must be?

The data has all seven domains in the official layout. Scores, counts and tokens are computed again
in plain Python from what the server was asked and answered, and compared with `results.json`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.run import Run, evaluate, judge_run, load_run, score_run
from tests.helpers.asking import KEY
from tests.helpers.official_folder import DOMAINS, Manifest, make_official_folder
from tests.helpers.scripted_server import (
    DIMENSIONS,
    ChatCall,
    Reply,
    ScriptedServer,
    fixed_verdict,
    hash_scores,
)
from tests.helpers.whole_runs import all_text, asked, by_prompt, good, kind_of_call, options, read_results

pytestmark = pytest.mark.usefixtures("quick_retries", "few_draws")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(tmp_path_factory.mktemp("data"), trajectories=1, observation_chars=120)


# --- one run with failures of many classes, checked number by number -------------------------

PREDICTION_FAILURES = {
    0: ("refused", Reply(content=None, refusal="no")),
    1: ("empty", Reply(content="<think>only this</think>")),
    2: ("context_overflow", Reply(status=400, error={"message": "maximum context length is 9 tokens"})),
    3: ("truncated", Reply(content="cut", finish_reason="length")),
    4: ("provider_error", Reply(status=500)),
}
JUDGE_FAILURES = {
    0: ("judge_unparsed", Reply(content="I would rather not say.")),
    1: ("rate_limit", Reply(status=429)),
}


def failing(call: ChatCall) -> Reply:
    kinds = JUDGE_FAILURES if call.model == "judge" else PREDICTION_FAILURES
    return kinds[kind_of_call(call)][1] if kind_of_call(call) in kinds else good(call)


@pytest.fixture(scope="module")
def failed(data: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, ScriptedServer]]:
    with ScriptedServer(failing) as server:
        output = tmp_path_factory.mktemp("runs") / "failed"
        run = evaluate(**options(server, output, data.folder, max_retries=1, judge_attempts=2))
        yield run, server


def points(scores: dict[str, int]) -> dict[str, float]:
    row = {name: (scores[name] - 1) / 4 * 100 for name in DIMENSIONS}
    return {"total": fmean(row.values()), **row}


def test_every_sample_has_one_record_of_the_right_class(
    failed: tuple[Run, ScriptedServer], data: Manifest
) -> None:
    run, server = failed
    calls = by_prompt(server, judge=False)
    predictions = list(run.predictions())
    assert len(predictions) == len({record.sample_id for record in predictions}) == len(data.rows)
    for record in predictions:
        expected = PREDICTION_FAILURES.get(kind_of_call(calls[record.prompt_sha256]), (None,))[0]
        assert (record.failure.kind.value if record.failure else None) == expected
        assert (record.observation is None) == (expected is not None)
    counts = Counter(record.failure.kind.value for record in predictions if record.failure)
    assert counts.keys() == {name for name, _ in PREDICTION_FAILURES.values()}, (
        "every class occurs in this data"
    )


def test_scores_are_those_computed_by_hand(failed: tuple[Run, ScriptedServer], data: Manifest) -> None:
    run, server = failed
    assert run.results is not None
    calls = by_prompt(server, judge=True)
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    failures: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for verdict in run.verdicts():
        domain = verdict.sample_id.partition("/")[0]
        call = calls[verdict.prompt_sha256]
        if kind_of_call(call) in JUDGE_FAILURES:
            failures[domain, "judge"][JUDGE_FAILURES[kind_of_call(call)][0]] += 1
            assert verdict.scores is None
        else:
            assert verdict.scores == hash_scores(call.last_user)
            rows[domain].append(points(hash_scores(call.last_user)))
    for record in run.predictions():
        if record.failure:
            failures[record.sample_id.partition("/")[0], "prediction"][record.failure.kind.value] += 1
    (judge,) = run.results.judges
    assert list(judge.domains) == list(DOMAINS)
    for domain in DOMAINS:
        total = data.row_counts[domain]
        block = judge.domains[domain]
        assert (block.samples, block.scored, block.clusters) == (
            total,
            len(rows[domain]),
            data.cluster_counts[domain],
        )
        assert block.coverage == pytest.approx(len(rows[domain]) / total)
        assert judge.failures[domain] == {
            stage: failures[domain, stage] for stage in ("prediction", "judge", "pending")
        }
        for name in ("total", *DIMENSIONS):
            values = [row[name] for row in rows[domain]]
            assert block.exclude[name] == pytest.approx(sum(values) / len(values), abs=1e-9)
            assert block.floor[name] == pytest.approx(sum(values) / total, abs=1e-9)
    everything = [row for some in rows.values() for row in some]
    for name in ("total", *DIMENSIONS):
        means = [fmean(row[name] for row in rows[domain]) for domain in DOMAINS]
        floors = [sum(row[name] for row in rows[domain]) / data.row_counts[domain] for domain in DOMAINS]
        assert judge.macro_exclude[name] == pytest.approx(fmean(means), abs=1e-9)
        assert judge.macro_floor[name] == pytest.approx(fmean(floors), abs=1e-9)
        assert judge.micro.exclude[name] == pytest.approx(fmean(row[name] for row in everything), abs=1e-9)
        assert judge.micro.floor[name] == pytest.approx(
            sum(row[name] for row in everything) / len(data.rows), abs=1e-9
        )
    assert (judge.micro.samples, judge.micro.scored) == (len(data.rows), len(everything))
    assert run.results.complete


def test_requests_and_tokens_are_those_of_the_server(
    failed: tuple[Run, ScriptedServer], data: Manifest
) -> None:
    run, server = failed
    assert run.results is not None
    for judge, records, again in (
        (False, run.predictions(), {2: 4, 4: 1}),  # after a refusal for length less is asked for, four times
        (True, run.verdicts(), dict.fromkeys(JUDGE_FAILURES, 1)),
    ):
        calls = by_prompt(server, judge)
        asked_for = [calls[record.prompt_sha256] for record in records if record.prompt_sha256 in calls]
        more = sum(again.get(kind_of_call(call), 0) for call in asked_for)
        assert asked(server)["judge" if judge else "world"] == len(asked_for) + more
    prompts = sum(
        sum(len(message["content"]) for message in call.messages) // 4
        for call in server.calls
        if call.model == "world" and kind_of_call(call) not in (2, 4)
    )
    assert run.results.predictions.spent.usage.prompt_tokens == prompts
    assert run.results.predictions.spent.cost_usd is None, (
        "a server without prices costs an unknown amount, not 0"
    )
    assert run.results.predictions.served == ("world",)
    assert run.results.predictions.samples == data.row_counts


def test_a_stored_run_reads_back_the_same(failed: tuple[Run, ScriptedServer], data: Manifest) -> None:
    run, _ = failed
    loaded = load_run(str(run.path))
    assert (loaded.results, loaded.record) == (run.results, run.record)
    assert loaded.record.predict.model["model"] == "openai-api/world"
    assert len(list(loaded.metrics())) == len(data.rows)
    frame = loaded.frame()
    assert len(frame) == len(data.rows)
    assert frame.index.names == ["sample_id", "epoch"]
    digest = loaded.record.judges[0].digest
    scores = {(verdict.sample_id, 1): verdict.scores for verdict in loaded.verdicts() if verdict.scores}
    for dimension in DIMENSIONS:
        column = frame[f"{digest}.{dimension}"].dropna().to_dict()
        assert column == {sample: values[dimension] for sample, values in scores.items()}
    assert frame["failure"].notna().sum() == sum(
        record.failure is not None for record in loaded.predictions()
    )
    assert set(frame["domain"]) == set(DOMAINS)


def test_scoring_again_gives_the_same_results(failed: tuple[Run, ScriptedServer]) -> None:
    run, server = failed
    before, calls = read_results(run.path), len(server.calls)
    (run.path / "metrics.jsonl").unlink()
    (run.path / "results.json").unlink()
    again = score_run(run.path)
    assert read_results(run.path) == before
    assert again.results is not None
    assert len(server.calls) == calls


def test_no_key_in_any_file(failed: tuple[Run, ScriptedServer]) -> None:
    run, server = failed
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}", "the key was in use"
    assert KEY not in all_text(run.path)


# --- other runs ------------------------------------------------------------------------------


def test_evaluate_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def notebook() -> Run:
        return evaluate("baseline/copy-last", data="mini", limit="3", output=tmp_path / "run")

    run = asyncio.run(notebook())
    assert run.results is not None
    assert run.results.predictions.predicted == dict.fromkeys(OFFICIAL_DOMAINS, 3)


def test_mini_end_to_end_through_a_server(tmp_path: Path) -> None:
    with ScriptedServer(good) as server:
        run = evaluate(**options(server, tmp_path / "run", "mini"))
    assert run.results is not None
    assert (run.results.predict.data.name, run.results.complete) == ("mini", True)
    assert run.results.judges[0].micro.coverage == 1.0
    rows = sum(run.results.selection.samples.values())
    assert rows == 230
    assert asked(server) == {"world": rows, "judge": rows}
    assert server.model_requests == 2, "one check of the model, one of the judge"


@pytest.mark.parametrize("source", ["mini", "folder"])
def test_the_reference_scores_one_everywhere(source: str, data: Manifest, tmp_path: Path) -> None:
    chosen = "mini" if source == "mini" else str(data.folder)
    run = evaluate("baseline/reference", data=chosen, output=tmp_path / "run")
    assert run.results is not None
    rules = run.results.rules
    assert "rule_score" in rules.macro and "rule_score" in rules.micro
    for means in (*rules.metrics.values(), rules.macro, rules.micro):
        assert {(mean.exclude, mean.floor) for mean in means.values()} == {(1.0, 1.0)}
    assert run.results.predictions.spent.cost_usd == 0.0


def test_failed_predictions_leave_or_floor_the_rule_score(data: Manifest, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    rows = [row for row in data.of("terminal") if row.ordinal == 1]
    reference = evaluate(
        "baseline/reference", data=str(data.folder), tasks="terminal", output=tmp_path / "all"
    )
    kept = list(reference.predictions())[: len(rows) // 2]
    lines = [json.dumps({"sample_id": one.sample_id, "observation": one.observation}) for one in kept]
    answers.write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = evaluate(f"replay/{answers}", data=str(data.folder), tasks="terminal", output=tmp_path / "half")
    assert run.results is not None
    total = data.row_counts["terminal"]
    score = run.results.rules.score["terminal"]
    assert (score.n, score.scored, score.exclude) == (total, len(kept), 1.0)
    assert score.floor == pytest.approx(len(kept) / total)
    assert run.results.predictions.failures["terminal"] == {"not_in_replay": total - len(kept)}


def test_a_domain_without_any_score_makes_macro_unavailable(data: Manifest, tmp_path: Path) -> None:
    def silent_about_web(call: ChatCall) -> Reply:
        return Reply(content=None) if "You are the web environment" in call.system else good(call)

    with ScriptedServer(silent_about_web) as server:
        run = evaluate(**options(server, tmp_path / "run", data.folder, tasks="web,os", limit="3"))
    assert run.results is not None
    (judge,) = run.results.judges
    assert judge.domains["web"].exclude["total"] is None
    assert judge.macro_exclude["total"] is None
    assert judge.macro_floor["total"] is None
    assert judge.domains["os"].exclude["total"] is not None


def test_a_second_judge_stands_beside_the_first(data: Manifest, tmp_path: Path) -> None:
    output = tmp_path / "run"
    with ScriptedServer(good) as server:
        first = evaluate(**options(server, output, data.folder, limit="2"))
        predictions = (output / "predictions.jsonl").read_bytes()
        verdicts = (output / "verdicts.jsonl").read_bytes()
        server.script = fixed_verdict(dict.fromkeys(DIMENSIONS, 5))
        calls = len(server.calls)
        config: dict[str, Any] = {"judge": "openai-api/other", "judge_base_url": server.base_url}
        second = judge_run(output, make_config(config))
    assert (output / "predictions.jsonl").read_bytes() == predictions
    assert (output / "verdicts.jsonl").read_bytes().startswith(verdicts)
    assert {call.model for call in server.calls[calls:]} == {"other"}
    assert len(server.calls) == calls + 14
    assert first.results is not None
    assert second.results is not None
    assert second.results.judges[0] == first.results.judges[0]
    assert second.results.judges[1].macro_floor["total"] == 100.0
    assert [judge.model for judge in second.record.judges] == ["openai-api/judge", "openai-api/other"]
