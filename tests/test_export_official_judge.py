"""Exports of a run whose judge is of the official protocol: other reading, other policy, scores without bounds.

The run is an import of the official script's own `judged.jsonl`, so that its record says little: no sampling of the
judge, no prompts, no times.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from agentworldbench.integrations.every_eval_export import export_every_eval
from agentworldbench.integrations.every_eval_results import Identity, results_of
from agentworldbench.integrations.export_source import open_source
from agentworldbench.integrations.inspect_export import export_inspect
from agentworldbench.integrations.lm_eval_export import export_lm_eval
from agentworldbench.integrations.official_import import import_file
from agentworldbench.integrations.parquet_export import Wanted, rows
from agentworldbench.run import Run, score_run
from agentworldbench.stats.results import Reading
from tests.helpers.export_runs import lines_of, members_of
from tests.test_export_every_eval import validator as every_eval_schema
from tests.test_export_inspect import validator as inspect_schema
from tests.test_official_script import JUDGED


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("imported") / "run"
    return score_run(import_file(JUDGED, lambda line: None, folder, None))


def official(run: Run) -> Reading:
    assert run.results is not None
    return run.results.judges[0].official


def test_lm_eval_has_the_official_reading_first_and_no_value_for_failures(run: Run, tmp_path: Path) -> None:
    first, *others = export_lm_eval(run.path, tmp_path).paths
    results = json.loads(first.read_text(encoding="utf-8"))
    assert first.parent.name.startswith("replay-")
    whole = results["groups"]["agentworldbench"]
    assert whole["total,official-exclude"] == official(run).macro_exclude["total"]
    assert whole["total,official-floor"] == official(run).macro_floor["total"]
    for path in others:
        judged = [row for row in lines_of(path) if row["filter"] == "official-exclude"]
        domain = judged[0]["doc"]["sample_id"].partition("/")[0]
        values = [row["total"] for row in judged if "total" in row["metrics"]]
        assert sum(values) / len(values) == pytest.approx(official(run).domains[domain].exclude["total"])
        failed = [row for row in judged if row["failures"]]
        assert failed and not any(row["metrics"] for row in failed)


def test_inspect_and_parquet_take_the_official_values(run: Run, tmp_path: Path) -> None:
    log = members_of(export_inspect(run.path, tmp_path).paths[0])
    inspect_schema("EvalLog").validate(log["header.json"])
    for name, sample in log.items():
        if name.startswith("samples/"):
            inspect_schema("EvalSample").validate(sample)
    headline = log["header.json"]["results"]["headline"]
    assert headline == {"scorer": "judge", "score": "total", "metric": "macro_exclude"}
    found = {row["sample_id"]: row for row in rows(open_source(run.path), Wanted())}
    for sample in (value for name, value in log.items() if name.startswith("samples/")):
        score = sample["scores"].get("judge", {"value": {"total": None}})["value"]["total"]
        assert score == pytest.approx(found[sample["id"]]["score"])
    scores = [row["score"] for row in found.values() if row["score"] is not None]
    assert sum(scores) / len(scores) == pytest.approx(official(run).micro.exclude["total"])


def test_a_record_takes_scores_beyond_the_scale(run: Run, tmp_path: Path) -> None:
    aggregate, samples = export_every_eval(run.path, tmp_path).paths
    every_eval_schema("every_eval_ever.schema.json").validate(
        json.loads(aggregate.read_text(encoding="utf-8"))
    )
    for row in lines_of(samples):
        every_eval_schema("every_eval_ever_samples.schema.json").validate(row)
    source = open_source(run.path)
    strange = official(run).model_copy(
        update={"macro_exclude": {**official(run).macro_exclude, "total": -25.0}}
    )
    judge = source.judges[0].model_copy(update={"official": strange})
    results, _ = results_of(replace(source, judges=(judge,)), Identity(source, "acme/World-7B"))
    by_metric = {one["metric_config"]["metric_id"]: one for one in results}
    macro, micro = by_metric["agentworldbench.macro"], by_metric["agentworldbench.micro"]
    assert macro["score_details"]["score"] == -25.0
    bounds = [
        (one["metric_config"]["min_score"], one["metric_config"]["max_score"]) for one in (macro, micro)
    ]
    assert bounds == [("-Infinity", "Infinity"), (0, 100)]
    schema = every_eval_schema("every_eval_ever.schema.json").schema
    of_metric = schema["properties"]["evaluation_results"]["items"]["properties"]["metric_config"]
    jsonschema.Draft7Validator({**of_metric, "$defs": schema["$defs"]}).validate(macro["metric_config"])


def test_what_has_no_score_is_no_result_and_is_told(run: Run, tmp_path: Path) -> None:
    source = open_source(run.path)
    nothing = official(run).model_copy(update={"macro_exclude": dict.fromkeys(official(run).macro_exclude)})
    judge = source.judges[0].model_copy(update={"official": nothing})
    results, without = results_of(replace(source, judges=(judge,)), Identity(source, "acme/World-7B"))
    assert without == ["overall macro"]
    assert "agentworldbench.macro" not in {one["metric_config"]["metric_id"] for one in results}
