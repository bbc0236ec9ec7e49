"""`awb export eee`: a record that the schemas of Every Eval Ever take, with the run's own numbers.

The schemas are those of every_eval_ever 0.3.0. Its own validator needs Python 3.12: `tools/check_exports.py` runs it,
by hand. The checks it adds to the schemas (paths, companions, bounds) are made here.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.integrations.every_eval_export import Submitter, export_every_eval
from agentworldbench.integrations.every_eval_results import Identity, results_of
from agentworldbench.integrations.export_source import Source, open_source
from agentworldbench.run import Run, evaluate
from tests.helpers.export_runs import EACH, TASKS, lines_of, make_runs, trimmed
from tests.helpers.honest_bundle import bundle_folder, make_rows

pytestmark = pytest.mark.usefixtures("quick_retries")
CASES = Path(__file__).parent / "cases" / "export"
NAMES = ("one", "many", "two", "none", "part")
WHO = Submitter("University of Somewhere", "third_party", "acme/World-7B")
PATH = re.compile(
    r"data/agentworldbench/acme/World-7B/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    r"(\.json|_samples\.jsonl)"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, quick_retries: None) -> dict[str, Run]:
    return make_runs(tmp_path_factory, *NAMES)


@cache
def validator(name: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads((CASES / name).read_text(encoding="utf-8")))


def exported(run: Run, folder: Path, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Aggregate and samples, checked against the schemas and each other."""
    written = export_every_eval(run.path, folder, **{"submitter": WHO, **options})
    aggregate_path, samples_path = written.paths
    aggregate = json.loads(aggregate_path.read_text(encoding="utf-8"))
    validator("every_eval_ever.schema.json").validate(aggregate)
    rows = lines_of(samples_path)
    for row in rows:
        validator("every_eval_ever_samples.schema.json").validate(row)
    detailed = aggregate["detailed_evaluation_results"]
    assert detailed["file_path"] == samples_path.relative_to(folder).as_posix()
    assert detailed["total_rows"] == len(rows) > 0
    assert detailed["checksum"] == hashlib.sha256(samples_path.read_bytes()).hexdigest()
    assert samples_path.name == f"{aggregate_path.stem}_samples.jsonl"
    assert {row["evaluation_id"] for row in rows} == {aggregate["evaluation_id"]}
    assert {row["model_id"] for row in rows} == {aggregate["model_info"]["id"]}
    results = {one["evaluation_result_id"]: one for one in aggregate["evaluation_results"]}
    assert len(results) == len(aggregate["evaluation_results"])
    for row in rows:
        assert results[row["evaluation_result_id"]]["evaluation_name"] == row["evaluation_name"]
    for one in results.values():
        metric, score = one["metric_config"], one["score_details"]["score"]
        assert metric["min_score"] <= score <= metric["max_score"]
    return aggregate, rows


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_take_it(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    run = runs[name]
    aggregate, rows = exported(run, tmp_path)
    paths = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(paths) == 2 and all(map(PATH.fullmatch, paths))
    assert aggregate["schema_version"] == rows[0]["schema_version"] == "0.3.0"
    assert aggregate["source_metadata"]["evaluator_relationship"] == "third_party"
    judges, epochs = len(run.record.judges) or 1, run.record.epochs
    assert run.results is not None
    pending = sum(
        some["pending"].get("not_run", 0) for one in run.results.judges for some in one.failures.values()
    )
    assert len(rows) == len(TASKS) * EACH * judges * epochs - pending
    assert (pending > 0) == (name == "part")
    asked = {one.key for one in run.predictions()}
    found = {(row["sample_id"], int(row["metadata"]["epoch"])) for row in rows}
    assert found <= asked
    assert found == asked or name == "part"


def test_results_are_domains_and_columns_and_both_means(runs: dict[str, Run], tmp_path: Path) -> None:
    aggregate, _ = exported(runs["one"], tmp_path)
    results = runs["one"].results
    assert results is not None
    (judge,) = results.judges
    found = {
        (one["evaluation_name"], one["metric_config"]["metric_id"]): one["score_details"]
        for one in aggregate["evaluation_results"]
    }
    assert len(found) == len(TASKS) * (6 + 1) + 2 + 2
    for domain in TASKS:
        block = judge.strict.domains[domain]
        for column, score in block.floor.items():
            assert found[f"agentworldbench_{domain}", f"agentworldbench.{column}"]["score"] == score
        total = found[f"agentworldbench_{domain}", "agentworldbench.total"]
        interval = block.intervals.floor
        assert interval is not None and interval.se is not None
        assert total["uncertainty"]["standard_error"]["value"] == interval.se
        assert total["uncertainty"]["confidence_interval"]["lower"] == interval.low
        assert total["uncertainty"]["num_samples"] == EACH
        assert total["details"]["coverage"] == json.dumps(block.coverage)
        rule = results.rules.score[domain].floor
        assert rule is not None
        score = found[f"agentworldbench_{domain}", "agentworldbench.rule_score"]["score"]
        assert score == pytest.approx(100 * rule)
    macro, micro = (found["agentworldbench", f"agentworldbench.{name}"] for name in ("macro", "micro"))
    assert (macro["score"], micro["score"]) == (judge.macro_floor["total"], judge.micro.floor["total"])
    assert macro["uncertainty"]["standard_error"]["method"].endswith("domains as strata")


def test_rows_have_scores_failures_and_what_is_correct(runs: dict[str, Run], tmp_path: Path) -> None:
    _, rows = exported(runs["one"], tmp_path)
    verdicts = {one.sample_id: one for one in runs["one"].verdicts()}
    predictions = {one.sample_id: one for one in runs["one"].predictions()}
    kinds = set()
    for row in rows:
        prediction, verdict = predictions[row["sample_id"]], verdicts.get(row["sample_id"])
        evaluation = row["evaluation"]
        assert row["output"]["raw"] == [prediction.text or ""]
        assert [one["extracted_value"] for one in row["answer_attribution"]] == (
            [] if prediction.observation is None else [prediction.observation]
        )
        if verdict is not None and verdict.scores is not None:
            total = sum(verdict.scores.values()) / 5
            assert evaluation["score"] == pytest.approx((total - 1) * 25)
            assert evaluation["is_correct"] == (total >= 4)
            assert row["error"] is None
        else:
            assert (evaluation["score"], evaluation["is_correct"]) == (0.0, False)
            kinds.add(row["error"].partition(": ")[0])
            assert row["metadata"]["failure"] in row["error"].replace(": ", ": ", 1)
    assert kinds == {"prediction", "judge"}


def test_every_judge_has_results_of_its_own(runs: dict[str, Run], tmp_path: Path) -> None:
    aggregate, _ = exported(runs["two"], tmp_path)
    judges = [
        one["metric_config"]["llm_scoring"]["judges"][0]
        for one in aggregate["evaluation_results"]
        if "llm_scoring" in one["metric_config"]
    ]
    assert {one["model_info"]["name"] for one in judges} == {"openai-api/judge", "openai-api/judge-b"}
    assert {one["temperature"] for one in judges} == {0.0}
    chosen, rows = exported(runs["two"], tmp_path / "b", judge="openai-api/judge-b")
    assert len(rows) == len(TASKS) * EACH
    assert len(chosen["evaluation_results"]) == len(TASKS) * 7 + 4


@pytest.mark.parametrize(
    ("model", "given", "developer", "name"),
    [
        ({"backend": "openai-api", "name": "Qwen/Qwen3-8B"}, None, "Qwen", "Qwen3-8B"),
        ({"backend": "openai-api", "name": "world"}, None, "unknown", "world"),
        ({"backend": "openai-api", "name": "world"}, "acme/World-7B", "acme", "World-7B"),
        ({"backend": "litellm", "name": "openrouter/qwen/qwen3"}, None, "openrouter", "qwen/qwen3"),
        ({"backend": "hf", "name": "/home/me/checkpoints/step-100"}, None, "unknown", "step-100"),
        ({"backend": "vllm", "name": "Qwen/Qwen3-8B"}, None, "Qwen", "Qwen3-8B"),
        ({"backend": "baseline", "name": "copy-last"}, None, "agentworldbench", "copy-last"),
        ({"backend": "replay", "name": "0123456789abcdef"}, None, "unknown", "replay-0123456789ab"),
    ],
)
def test_a_models_name_in_the_datastore(
    runs: dict[str, Run], model: dict[str, str], given: str | None, developer: str, name: str
) -> None:
    identity = Identity(asked_of(open_source(runs["none"].path), model=model), given)
    assert (identity.developer, identity.model) == (developer, name)


def asked_of(source: Source, **changes: Any) -> Source:
    """A source whose run was made with something else."""
    predict = source.record.predict.model_copy(update=changes)
    return replace(source, record=source.record.model_copy(update={"predict": predict}))


def test_data_of_a_hub_are_named_as_such(runs: dict[str, Run]) -> None:
    source = open_source(runs["none"].path)
    data = source.record.predict.data.model_copy(
        update={"name": "official", "repository": "Qwen/AgentWorldBench", "revision": "6b8d284"}
    )
    source = asked_of(source, data=data)
    results, without = results_of(source, Identity(source, "acme/World-7B"))
    assert without == []
    first = results[0]["source_data"]
    assert (first["source_type"], first["hf_repo"], first["hf_split"]) == (
        "hf_dataset", "Qwen/AgentWorldBench", "test",
    )  # fmt: skip
    assert len(first["sample_ids"]) == first["samples_number"] == EACH
    assert first["additional_details"]["revision"] == "6b8d284"
    for one in results:
        jsonschema.Draft7Validator({**validator("every_eval_ever.schema.json").schema, **RESULT}).validate(
            one
        )


RESULT = {
    "type": "object",
    "required": ["source_data"],
    "additionalProperties": True,
    "properties": {"source_data": {"$ref": "#/$defs/source_data_hf"}},
}
"""In place of the aggregate: one result of it."""


def test_who_is_unnamed_is_told_what_to_name(runs: dict[str, Run], tmp_path: Path) -> None:
    written = export_every_eval(runs["none"].path, tmp_path)
    told = "\n".join(written.notes)
    assert "--model-id ORGANIZATION/NAME" in told and "--organization NAME" in told
    assert all("/unknown/world/" in str(path) for path in written.paths)
    assert export_every_eval(runs["none"].path, tmp_path / "named", submitter=WHO).notes == ()


@pytest.mark.parametrize("name", ["world", "acme/", "/world", "acme//world", "acme/my world", ""])
def test_what_is_no_public_name_is_refused(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"--model-id .*: a public name is ORGANIZATION/NAME"):
        export_every_eval(runs["none"].path, tmp_path, submitter=replace(WHO, model_id=name))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("model_id", "folder"),
    [("acme/World-7B", "acme/World-7B"), ("a/b/c", "a/b_c"), ("data/x:y", "_data/x_y"), ("../..", "_/_")],
)
def test_a_path_is_one_that_every_file_system_takes(
    runs: dict[str, Run], tmp_path: Path, model_id: str, folder: str
) -> None:
    written = export_every_eval(runs["none"].path, tmp_path, submitter=replace(WHO, model_id=model_id))
    for path in written.paths:
        assert path.parent.relative_to(tmp_path).as_posix() == f"data/agentworldbench/{folder}"
        assert path.resolve().is_relative_to(tmp_path.resolve())


def test_the_aggregate(runs: dict[str, Run], tmp_path: Path) -> None:
    aggregate, rows = exported(runs["one"], tmp_path)
    results = {
        one["evaluation_result_id"].partition("/World-7B/")[2]: one for one in aggregate["evaluation_results"]
    }
    kept = [
        one
        for name, one in results.items()
        if re.search(r"/(mcp/total|overall/macro|mcp/rule_score)/", f"/{name}")
    ]
    found = trimmed(
        {**aggregate, "evaluation_results": kept, "sample": rows[0]},
        ("latency_ms", "git_commit", "version", "source_name"),
    )
    golden = CASES / "every_eval_ever.json"
    text = json.dumps(found, indent=1) + "\n"
    assert text == golden.read_text(encoding="utf-8"), f"when the change is wanted, {golden} is:\n{text}"


def test_one_run_has_one_uuid(tmp_path: Path) -> None:
    """From the run and from its bundle, in which paths are left out; scored again; under whatever name."""
    rows = make_rows(tmp_path / "rows")
    run = evaluate(model="baseline/copy-last", data=str(rows), output=tmp_path / "run")

    def exported_as(path: Path, folder: str, **options: Any) -> tuple[str, str]:
        found = export_every_eval(path, tmp_path / folder, data=str(rows), **options).paths[0]
        return found.stem, json.loads(found.read_text(encoding="utf-8"))["evaluation_id"]

    first = exported_as(run.path, "one")
    bundle_folder(run.path, tmp_path / "bundle", rows)
    assert str(rows) not in (tmp_path / "bundle/run.json").read_text(encoding="utf-8")
    assert exported_as(tmp_path / "bundle", "two") == first
    edited = run.path / "results.json"
    edited.write_text(
        edited.read_text(encoding="utf-8").replace('"made_at": "2', '"made_at": "3', 1), encoding="utf-8"
    )
    assert exported_as(run.path, "three") == first
    named, identity = exported_as(run.path, "four", submitter=Submitter(model_id="acme/copy"))
    assert (named, identity == first[1]) == (first[0], False)
    other = evaluate(model="baseline/copy-last", data=str(rows), output=tmp_path / "other", limit="3")
    assert exported_as(other.path, "five")[0] != first[0]
