"""`awb export lm-eval`: results and samples agree with the run's own numbers, and lm-eval itself prints them."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.integrations.lm_eval_export import export_lm_eval, folder_name, task_name
from agentworldbench.run import Run
from tests.helpers.export_runs import EACH, EPOCHS, TASKS, lines_of, make_runs, trimmed

pytestmark = pytest.mark.usefixtures("quick_retries")
CASES = Path(__file__).parent / "cases" / "export"
COLUMNS = ("total", "format", "factuality", "consistency", "realism", "quality")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, quick_retries: None) -> dict[str, Run]:
    return make_runs(tmp_path_factory, "one", "many", "two", "none", "part")


def exported(run: Run, folder: Path) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """The results, and the rows of each task."""
    first, *others = export_lm_eval(run.path, folder).paths
    assert first.parent == folder / "world"
    assert re.fullmatch(r"results_\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}\.json", first.name)
    time = first.stem.partition("_")[2]
    rows = {
        path.name.removeprefix("samples_").removesuffix(f"_{time}.jsonl"): lines_of(path) for path in others
    }
    return json.loads(first.read_text(encoding="utf-8")), rows


def test_the_numbers_are_those_of_the_run(runs: dict[str, Run], tmp_path: Path) -> None:
    results, _ = exported(runs["one"], tmp_path)
    ours = runs["one"].results
    assert ours is not None
    (judge,) = ours.judges
    for domain in TASKS:
        row, block = results["results"][task_name(domain)], judge.strict.domains[domain]
        for name in COLUMNS:
            assert row[f"{name},strict-floor"] == block.floor[name]
        assert row["total,strict-exclude"] == block.exclude["total"]
        assert row["total,official-floor"] == judge.official.domains[domain].floor["total"]
        interval = block.intervals.floor
        assert interval is not None
        assert row["total_stderr,strict-floor"] == ("N/A" if interval.se is None else interval.se)
        score = ours.rules.score[domain].floor
        assert score is not None
        assert row["rule_score,rules-floor"] == 100 * score
        assert row["coverage,strict-floor"] == block.coverage < 1
    group = results["groups"]["agentworldbench"]
    assert group == results["results"]["agentworldbench"]
    assert group["total,strict-floor"] == judge.macro_floor["total"]
    assert group["total_micro,strict-floor"] == judge.micro.floor["total"]
    macro = judge.macro_intervals.floor
    assert macro is not None and group["total_stderr,strict-floor"] == macro.se
    assert results["group_subtasks"] == {"agentworldbench": [task_name(name) for name in TASKS_IN_ORDER]}


TASKS_IN_ORDER = ("mcp", "terminal", "swe")


@pytest.mark.parametrize("name", ["one", "many", "two", "none", "part"])
def test_the_means_of_the_rows_are_the_results(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    """Every sample weighs the same, a failed one is 0: so a reader who averages the rows gets our numbers."""
    results, rows = exported(runs[name], tmp_path)
    for task, some in rows.items():
        found = results["results"][task]
        filters = {row["filter"] for row in some}
        assert {one.rpartition(" ")[2] for one in filters} == (
            {"rules-floor"} if name == "none" else {"strict-floor", "rules-floor"}
        )
        for one in filters:
            mine = [row for row in some if row["filter"] == one]
            for metric in dict.fromkeys(metric for row in mine for metric in row["metrics"]):
                values = [row[metric] for row in mine if metric in row]
                mean = found[f"{metric},{one}"]
                if mean == "N/A":  # where nothing is scored there is no mean, whatever failures count
                    assert set(values) == {0.0}
                else:
                    assert sum(values) / len(values) == pytest.approx(mean)


@pytest.mark.parametrize("name", ["one", "many", "two", "none", "part"])
def test_every_sample_that_was_asked_has_its_rows(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    results, rows = exported(runs[name], tmp_path)
    run = runs[name]
    asked = {one.sample_id for one in run.predictions()}
    filters = len(run.record.judges) + 1
    every = [row for some in rows.values() for row in some]
    assert {row["doc"]["sample_id"] for row in every} == asked
    assert len(every) == len(asked) * filters
    assert len(asked) == len(TASKS) * EACH - (4 if name == "part" else 0)
    for task, some in rows.items():
        count = len({row["doc_id"] for row in some})
        assert results["n-samples"][task] == {
            "original": results["n-samples"][task]["original"],
            "effective": count,
        }
        assert results["results"][task]["sample_len"] == count
        assert results["n-samples"][task]["original"] > EACH, "what the data have"
        hashes = "".join(row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in some)
        assert results["task_hashes"][task] == hashlib.sha256(hashes.encode()).hexdigest()
    failed = {(one.sample_id, one.epoch): one.failure for one in run.predictions() if one.failure}
    assert failed, "some must fail"
    by_rules = [row for row in every if row["filter"] == "rules-floor"]
    told = {(row["doc"]["sample_id"], line) for row in by_rules for line in row["failures"]}
    assert told == {
        (key[0], f"epoch {key[1]}: prediction: {failure.kind.value}: {failure.message}")
        for key, failure in failed.items()
    }
    if run.record.judges:
        assert any("judge: judge_unparsed" in line for row in every for line in row["failures"])
    assert {len(row["resps"][0]) for row in every} == {EPOCHS if name == "many" else 1}


def test_several_judges_are_told_apart_and_one_can_be_chosen(runs: dict[str, Run], tmp_path: Path) -> None:
    _, rows = exported(runs["two"], tmp_path)
    names = {row["filter"] for row in rows[task_name("swe")]}
    assert names == {"openai-api/judge: strict-floor", "openai-api/judge-b: strict-floor", "rules-floor"}
    written = export_lm_eval(runs["two"].path, tmp_path / "b", judge="openai-api/judge-b")
    chosen = {row["filter"] for row in lines_of(written.paths[1])}
    assert chosen == {"openai-api/judge-b: strict-floor", "rules-floor"}


def test_the_results_file(runs: dict[str, Run], tmp_path: Path) -> None:
    results, _ = exported(runs["one"], tmp_path)
    leave_out = {"pretty_env_info", "git_hash", "date", "transformers_version"}
    leave_out |= {"lm_eval_version", "agentworldbench_version"}
    found = trimmed(results, leave_out)
    for name in (task_name("terminal"), task_name("swe")):  # one task stands for the three
        for section in ("results", "configs", "higher_is_better"):
            del found[section][name]
    golden = CASES / "lm_eval_results.json"
    text = json.dumps(found, indent=1) + "\n"
    assert text == golden.read_text(encoding="utf-8"), f"when the change is wanted, {golden} is:\n{text}"
    assert datetime.fromtimestamp(results["date"], UTC) == datetime.fromisoformat(
        runs["one"].record.created_at
    )
    assert "python" in results["pretty_env_info"]
    assert results["lm_eval_version"] is None, "it took no part, installed or not"


def test_a_models_folder_is_named_as_lm_eval_names_it() -> None:
    assert folder_name("Qwen/Qwen3-8B") == "Qwen__Qwen3-8B"
    assert folder_name('a<b>:c"|?*d') == "a__b__c__d"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["one", "many", "two", "none", "part"])
def test_lm_eval_prints_the_results(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    """With lm-eval's own code, and its samples load as a data set of `datasets`."""
    from datasets import Dataset
    from lm_eval.utils import get_file_task_name, make_table, sanitize_model_name

    results, rows = exported(runs[name], tmp_path / "out")
    before = json.dumps(results)
    table, groups = make_table(results), make_table(results, "groups")
    assert json.dumps(results) == before
    macro = results["groups"]["agentworldbench"]["rule_score,rules-floor"]
    assert f"{macro:.4f}" in groups
    for task in rows:
        assert task in table
    for path in sorted((tmp_path / "out" / "world").glob("samples_*.jsonl")):
        assert get_file_task_name(path.name) in rows
        assert len(Dataset.from_json(str(path), cache_dir=str(tmp_path / "cache"))) == len(lines_of(path))
    assert sanitize_model_name('a<b>:c"|?*d/e') == folder_name('a<b>:c"|?*d/e')
