"""`awb export parquet`: the rows and columns of the table, and (slow, with pyarrow) the file itself.

pyarrow is an extra that the quick tests do without: they look at the rows before they are written.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.integrations.export_source import open_source
from agentworldbench.integrations.parquet_export import Wanted, about, columns, export_parquet, rows
from agentworldbench.run import Run
from tests.helpers.awb_command import HereAwb
from tests.helpers.export_runs import EACH, EPOCHS, REPEATS, TASKS, THOUGHT, make_runs, references_of
from tests.test_exports import PAGE, commands_of

pytestmark = pytest.mark.usefixtures("quick_retries")
COUNT = len(TASKS) * EACH
ROWS = {"one": COUNT, "many": COUNT * EPOCHS * REPEATS, "two": COUNT * 2, "none": COUNT, "part": COUNT}
KINDS = {"string": str, "int32": int, "int64": int, "float64": int | float, "bool": bool, "strings": list}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, quick_retries: None) -> dict[str, Run]:
    return make_runs(tmp_path_factory.mktemp("runs"), *ROWS)


def table(run: Run, wanted: Wanted = Wanted(), judge: str | None = None) -> list[dict[str, Any]]:  # noqa: B008
    return list(rows(open_source(run.path, judge), wanted))


@pytest.mark.parametrize("name", ROWS)
def test_a_row_for_each_sample_epoch_judge_and_repeat(runs: dict[str, Run], name: str) -> None:
    source = open_source(runs[name].path)
    found = list(rows(source, Wanted(True, True)))
    keys = Counter((row["sample_id"], row["epoch"], row.get("judge"), row.get("repeat")) for row in found)
    assert len(keys) == len(found) == ROWS[name]
    assert {key[0] for key in keys} == {ref.id for ref in source.samples.refs}
    kinds = columns(source, Wanted(True, True))
    for row in found:
        assert row.keys() <= kinds.keys()
        for column, value in row.items():
            if value is not None and kinds[column] != "time":
                assert isinstance(value, KINDS[kinds[column]]), column
        assert row["domain"] in TASKS and row["sample_id"].startswith(row["domain"])


@pytest.mark.parametrize("name", ROWS)
def test_failures_and_what_was_not_asked_are_rows(runs: dict[str, Run], name: str) -> None:
    run, found = runs[name], table(runs[name])
    assert run.results is not None
    for judge in run.record.judges:
        mine = [row for row in found if row["judge_digest"] == judge.digest and row["repeat"] == 1]
        counts = Counter((row["failure_stage"], row["failure"]) for row in mine if "failure_stage" in row)
        (results,) = [one for one in run.results.judges if one.judge.digest == judge.digest]
        counted: Counter[tuple[str, str]] = Counter()
        for some in results.failures.values():
            for stage, kinds in some.items():
                counted.update({(stage, kind): number for kind, number in kinds.items()})
        assert counts == counted
    stages = {row.get("failure_stage") for row in found}
    assert stages == {None, "prediction"} | ({"judge"} if name != "none" else set()) | (
        {"pending"} if name == "part" else set()
    )
    for row in found:
        assert ("failure" in row) == (
            row.get("score") is None and row.get("judge") is not None
        ) or name == "none"


def test_scores_are_those_of_the_run(runs: dict[str, Run]) -> None:
    results = runs["one"].results
    assert results is not None
    found = table(runs["one"])
    for domain in TASKS:
        mine = [row for row in found if row["domain"] == domain]
        scores = [row["score"] or 0.0 for row in mine]
        assert sum(scores) / len(scores) == pytest.approx(results.judges[0].domains[domain].floor["total"])
        rules = [row.get("rule_score") for row in mine]
        known = [value for value in rules if value is not None]
        assert sum(known) / len(known) == pytest.approx(results.rules.score[domain].exclude)
    for row in found:
        if row["score"] is not None:
            assert row["total"] == pytest.approx(
                sum(row[name] for name in ("format", "factuality", "consistency", "realism", "quality")) / 5
            )
            assert row["score"] == row["strict_score"] == pytest.approx((row["total"] - 1) * 25)
    stored = {one.sample_id: one for one in runs["one"].metrics()}
    for row in found:
        values = {
            name.removeprefix("metric."): value for name, value in row.items() if name.startswith("metric.")
        }
        assert values == stored[row["sample_id"]].values


def test_usage_costs_and_times(runs: dict[str, Run]) -> None:
    stored = {one.sample_id: one for one in runs["one"].predictions()}
    found = table(runs["one"])
    for row in found:
        prediction = stored[row["sample_id"]]
        assert row["prompt_tokens"] == prediction.usage.prompt_tokens
        assert row["cached_tokens"] == prediction.usage.cached_tokens
        assert row["retries"] == max(0, len(prediction.attempts) - 1)
        assert row["started_at"].isoformat().replace("+00:00", "Z")[:19] == (prediction.started_at or "")[:19]
        assert ("judge_prompt_tokens" in row) == (prediction.failure is None)
    assert sum(row["retries"] for row in found) > 0


def test_texts_only_when_wanted(runs: dict[str, Run]) -> None:
    source = open_source(runs["one"].path)
    plain = table(runs["one"])
    assert not {"text", "observation", "judge_reply", "prompt", "reference"} & set().union(*plain)
    assert not {"text", "prompt"} & columns(source, Wanted()).keys()
    texts = table(runs["one"], Wanted(texts=True))
    assert {row["reasoning"] for row in texts} == {THOUGHT, None}
    assert {row["strengths"][0] for row in texts if row.get("strengths")} == {"keeps the layout"}
    assert not {"prompt", "reference"} & set().union(*texts)
    data = table(runs["one"], Wanted(references=True))
    assert set(references_of(runs["one"])) <= {row["reference"] for row in data}
    assert all(json.loads(row["prompt"])[-1]["role"] == "user" for row in data)
    assert "text" not in set().union(*data)


def test_one_judge_can_be_chosen_and_the_run_is_told(runs: dict[str, Run]) -> None:
    source = open_source(runs["two"].path, "openai-api/judge-b")
    assert {row["judge"] for row in rows(source, Wanted())} == {"openai-api/judge-b"}
    told = about(source)
    assert [one["name"] for one in told["judges"]] == ["openai-api/judge-b"]
    assert (told["schema_version"], told["model"], told["complete"]) == (1, "openai-api/world", True)
    assert json.loads(json.dumps(told)) == told


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ROWS)
def test_pandas_and_pyarrow_read_the_table(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    import pandas
    import pyarrow.parquet

    source, wanted = open_source(runs[name].path), Wanted(True, True)
    written = export_parquet(runs[name].path, tmp_path, wanted=wanted)
    schema = pyarrow.parquet.read_schema(written.paths[0])
    assert schema.names == list(columns(source, wanted))
    assert json.loads(schema.metadata[b"agentworldbench"]) == json.loads(json.dumps(about(source)))
    assert str(schema.field("started_at").type) == "timestamp[ms, tz=UTC]"
    stored = pyarrow.parquet.read_table(written.paths[0]).to_pylist()
    for row, made in zip(stored, rows(source, wanted), strict=True):
        started = made.get("started_at")
        assert row == {**dict.fromkeys(schema.names), **made, "started_at": started}
    frame = pandas.read_parquet(written.paths[0])
    assert len(frame) == ROWS[name]
    again = export_parquet(runs[name].path, tmp_path, wanted=wanted)
    assert again.paths == written.paths, "the same run makes the same bytes"


@pytest.mark.slow
def test_the_commands_of_the_docs_that_need_pyarrow(
    runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    Path("runs").mkdir()
    Path("runs/my-run").symlink_to(runs["many"].path)
    commands = [shlex.split(line, comments=True)[1:] for line in commands_of(PAGE)]
    needing = [words for words in commands if words[1] == "parquet"]
    assert needing
    for words in needing:
        done = awb(*words)
        assert (done.code, done.err) == (0, "")
        assert all(Path(name).is_file() for name in done.out.splitlines())
