"""Tests of `awb runs merge`: the merged run is the run that would have asked for everything.

What the parts say stays: every record, every verdict, every session. Merging again, in any order, or
with the output among the parts, changes no byte; runs that do not go together are refused by field name.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.merge import merge_runs
from agentworldbench.run import evaluate, judge_run, load_run, make_config
from agentworldbench.store import Store, locked_store
from tests.helpers.awb_command import HereAwb
from tests.helpers.caching import by_key, one_of_many
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, echo_world, hash_verdict
from tests.helpers.whole_runs import asked, kind_of_call, options, read_results

pytestmark = pytest.mark.usefixtures("quick_retries", "few_draws")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(
        tmp_path_factory.mktemp("data"), domains=("terminal", "web"), trajectories=2, observation_chars=80
    )


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answering) as running:
        yield running


@pytest.fixture(scope="module")
def parts(server: ScriptedServer, data: Manifest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three shards with two judges each, made once; some answers fail."""
    folder = tmp_path_factory.mktemp("parts")
    server.script = failing
    for part in (1, 2, 3):
        evaluate(**asking(server, data, folder / f"part-{part}", shard=f"{part}/3"))
    server.script = answering
    return [folder / f"part-{part}" for part in (1, 2, 3)]


@pytest.fixture(scope="module")
def whole(server: ScriptedServer, data: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in one run."""
    path = tmp_path_factory.mktemp("whole") / "run"
    server.script = failing
    evaluate(**asking(server, data, path))
    server.script = answering
    return path


def asking(server: ScriptedServer, data: Manifest, output: Path, **more: Any) -> dict[str, Any]:
    judges = {"judge": ["openai-api/judge", "openai-api/judge-two"], "max_retries": 0, "judge_attempts": 1}
    prices = {"price": ["openai-api/world=0.7,1.3", "openai-api/judge=1.1,0.1"]}
    return options(server, output, data.folder, **judges | prices | more)


def failing(call: ChatCall) -> Reply:
    """A tenth of the requests fails, whoever asks."""
    if kind_of_call(call) == 0:
        return Reply(content="No idea.", finish_reason="length")
    return answering(call)


def answering(call: ChatCall) -> Reply:
    """Every model and judge answers."""
    return echo_world(call) if call.model == "world" else hash_verdict(call)


def snapshot(run: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in run.iterdir() if path.name != "run.lock"}
    results = json.loads(files["results.json"]) | {"made_at": ""}
    return files | {"results.json": json.dumps(results).encode()}


# --- the whole -------------------------------------------------------------------------------


def test_the_merged_run_equals_one_whole_run(parts: list[Path], whole: Path, tmp_path: Path) -> None:
    merged = merge_runs(parts, tmp_path / "all")
    assert read_results(tmp_path / "all") == read_results(whole)
    assert merged.results.complete
    assert merged.results.judges[0].spent.cost_usd, "prices are known, so sums of floats are compared too"
    one, other = load_run(whole), load_run(tmp_path / "all")
    assert other.record.predict == one.record.predict
    assert other.record.selection == one.record.selection
    assert other.record.judges == one.record.judges
    differs = {"started_at", "seconds", "response_id"}
    for here, there in ((one.predictions(), other.predictions()), (one.verdicts(), other.verdicts())):
        assert {key: record.model_dump(exclude=differs) for key, record in by_key(here).items()} == {
            key: record.model_dump(exclude=differs) for key, record in by_key(there).items()
        }
    assert any(record.failure for record in other.predictions())
    sessions = [session for path in parts for session in load_run(path).record.sessions]
    assert {one.model_dump_json() for one in other.record.sessions} == {
        one.model_dump_json() for one in sessions
    }
    assert other.record.created_at == min(load_run(path).record.created_at for path in parts)
    assert (merged.predictions.duplicates, merged.verdicts.duplicates) == (0, 0)


def test_merging_again_changes_nothing(parts: list[Path], tmp_path: Path) -> None:
    merge_runs(parts, tmp_path / "all")
    first = snapshot(tmp_path / "all")
    for order in itertools.permutations(parts):
        merge_runs(order, tmp_path / "all")
        assert snapshot(tmp_path / "all") == first
    merge_runs([tmp_path / "all"], tmp_path / "all")
    merge_runs([*parts, parts[0]], tmp_path / "all")
    assert snapshot(tmp_path / "all") == first
    merge_runs(parts[::-1], tmp_path / "other")
    assert snapshot(tmp_path / "other") == first


def test_parts_may_be_merged_one_by_one(parts: list[Path], tmp_path: Path) -> None:
    whole = merge_runs(parts, tmp_path / "at once").results
    two = merge_runs(parts[:2], tmp_path / "step").results
    assert two.selection.shard == "1,2/3"
    assert two.complete, "complete for what it is: two parts of three"
    assert sum(two.predictions.samples.values()) < sum(whole.predictions.samples.values())
    assert merge_runs(parts[2:], tmp_path / "step").results.selection.shard is None
    assert snapshot(tmp_path / "step") == snapshot(tmp_path / "at once")


def test_a_merged_run_goes_on_like_any_other(
    server: ScriptedServer, data: Manifest, parts: list[Path], tmp_path: Path
) -> None:
    merge_runs(parts[:2], tmp_path / "all")
    missing = sum(load_run(parts[2]).record.selection.samples.values())
    since = len(server.calls)
    run = evaluate(**asking(server, data, tmp_path / "all"))
    assert asked(server, since)["world"] == missing
    assert run.results is not None
    assert run.results.complete


# --- runs that are no shards -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "selected"),
    [
        ({"tasks": "terminal"}, {"tasks": "web"}, {"tasks": ("terminal", "web")}),
        ({"limit": "2"}, {"limit": "4"}, {"limit": "4"}),
        ({"limit": "2", "tasks": "terminal"}, {"limit": "2"}, {"limit": "2", "tasks": ()}),
        ({"limit": "1-2"}, {"limit": "4-5"}, {"limit": None}),
        ({"shard": "1/2"}, {"shard": "1/3"}, {"limit": None}),
    ],
)
def test_selections_are_united(
    data: Manifest, tmp_path: Path, first: dict[str, Any], second: dict[str, Any], selected: dict[str, Any]
) -> None:
    wanted: set[str] = set()
    for name, more in (("a", first), ("b", second)):
        run = evaluate("baseline/copy-last", data=str(data.folder), output=tmp_path / name, **more)
        wanted |= {record.sample_id for record in run.predictions()}
    merged = merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "all").results
    run = load_run(tmp_path / "all")
    assert {record.sample_id for record in run.predictions()} == wanted
    assert sum(merged.predictions.samples.values()) == len(wanted)
    assert merged.complete
    stored = merged.selection.model_dump()
    assert {name: stored[name] for name in selected} == {
        name: value if not isinstance(value, list) else tuple(value) for name, value in selected.items()
    }
    again = evaluate("baseline/copy-last", data=str(data.folder), output=tmp_path / "all")
    assert again.record.selection.sample_id == ()


def test_of_two_records_the_good_one_counts_then_the_earlier(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    for name, script in (("bad", failing), ("a", one_of_many), ("b", one_of_many)):
        server.script = script
        evaluate(**asking(server, data, tmp_path / name))
    server.script = answering
    runs = {name: load_run(tmp_path / name) for name in ("bad", "a", "b")}
    merged = merge_runs([tmp_path / "b", tmp_path / "bad", tmp_path / "a"], tmp_path / "all")
    found, verdicts = by_key(load_run(tmp_path / "all").predictions()), by_key(runs["bad"].verdicts())
    first, later = by_key(runs["bad"].predictions()), by_key(runs["a"].predictions())
    assert any(one.failure for one in first.values())
    assert {key: one.text for key, one in found.items()} == {
        key: later[key].text if one.failure else one.text for key, one in first.items()
    }
    judged = by_key(load_run(tmp_path / "all").verdicts())
    assert all(judged[key].scores == one.scores for key, one in verdicts.items()), "on what counts"
    digest, coverage = merged.results.judges[0].judge.digest, merged.results.judges[0].micro.coverage
    unread = sum(one.failure is not None for key, one in verdicts.items() if key[2] == digest)
    assert 0 < unread == round((1 - coverage) * len(data.rows)), "a verdict on another prediction is none"
    keys = len(data.rows)
    counts = merged.predictions
    assert (counts.records, counts.duplicates, counts.beside) == (keys, keys, 2 * keys)
    spent = [read_results(tmp_path / name)["predictions"]["spent"]["usage"] for name in ("bad", "a", "b")]
    total = merged.results.predictions.spent.usage
    assert total.completion_tokens == sum(one["completion_tokens"] for one in spent), "all was paid for"


def test_judges_of_all_parts_stand_side_by_side(
    server: ScriptedServer, data: Manifest, tmp_path: Path
) -> None:
    opts = options(server, tmp_path / "a", data.folder)
    evaluate(**opts)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    other = {"judge": "openai-api/judge-other", "judge_base_url": server.base_url}
    judge_run(tmp_path / "b", make_config(other))
    merged = merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    assert [one.judge.model for one in merged.results.judges] == [
        "openai-api/judge",
        "openai-api/judge-other",
    ]
    assert [one.micro.coverage for one in merged.results.judges] == [1.0, 1.0]
    assert merged.predictions.duplicates == 0, "a copy is no other record"
    assert len(load_run(tmp_path / "all").record.sessions) == 2


# --- what is refused ---------------------------------------------------------------------------

UNLIKE: dict[str, tuple[dict[str, Any], str]] = {
    "sampling": ({"temperature": 0.1}, r"predict\.sampling\.\*\.temperature was 0\.6, now 0\.1"),
    "model": ({"model": "baseline/empty"}, r"predict\.model\.name was"),
    "room": ({"min_output": 9}, r"predict\.min_output was 512, now 9"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_runs_are_refused_by_field(data: Manifest, tmp_path: Path, name: str) -> None:
    more, said = UNLIKE[name]
    base: dict[str, Any] = {"model": "baseline/copy-last", "data": str(data.folder), "limit": 1}
    evaluate(**base, output=tmp_path / "a")
    evaluate(**base | more, output=tmp_path / "b")
    with pytest.raises(ConfigError, match=said):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_other_data_and_other_places_are_refused(data: Manifest, tmp_path: Path) -> None:
    evaluate("baseline/copy-last", data=str(data.folder), limit=1, output=tmp_path / "a")
    other = make_official_folder(tmp_path / "other", domains=("terminal", "web"), seed=1)
    evaluate("baseline/copy-last", data=str(other.folder), limit=1, output=tmp_path / "b")
    with pytest.raises(ConfigError, match=r"predict\.data\.files\.\* differ \(2 domains\)"):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    with pytest.raises(DataError, match="the data of domain 'terminal' is not the one"):
        merge_runs([tmp_path / "a"], tmp_path / "all", str(other.folder))
    with pytest.raises(ConfigError, match=r"no run\.json there"):
        merge_runs([tmp_path / "a", tmp_path / "other"], tmp_path / "all")
    with pytest.raises(ConfigError, match="not empty and not a run directory"):
        merge_runs([tmp_path / "a"], tmp_path / "other")
    shutil.copytree(data.folder, tmp_path / "moved")
    assert merge_runs([tmp_path / "a"], tmp_path / "all", str(tmp_path / "moved")).results.complete


def test_another_system_prompt_of_one_judge_is_refused(parts: list[Path], tmp_path: Path) -> None:
    for name, source in zip("ab", parts, strict=False):
        shutil.copytree(source, tmp_path / name)
    store = Store(tmp_path / "b")
    run = store.read_run()
    assert run is not None
    judge = run.judges[0]
    other = judge.model_copy(update={"system_prompts": judge.system_prompts | {"web": "0" * 64}})
    store.write_run(run.model_copy(update={"judges": (other, *run.judges[1:])}))
    with pytest.raises(ConfigError, match=r"another system prompt there: judges\.system_prompts\.web"):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "all")


def test_half_lines_and_garbage_are_left_where_they_are(parts: list[Path], tmp_path: Path) -> None:
    whole = merge_runs(parts, tmp_path / "clean")
    copies = [tmp_path / path.name for path in parts]
    for source, copy in zip(parts, copies, strict=True):
        shutil.copytree(source, copy)
        with (copy / "predictions.jsonl").open("ab") as file:
            file.write(b"\xff\xfe garbage\n" + (source / "predictions.jsonl").read_bytes()[:50])
    merged = merge_runs(copies, tmp_path / "all")
    assert merged.predictions == whole.predictions
    assert snapshot(tmp_path / "all") == snapshot(tmp_path / "clean")


def test_what_another_process_writes_until_the_lock_is_held_stays(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    shutil.copytree(parts[0], output)
    late = (parts[1] / "predictions.jsonl").read_bytes().splitlines(keepends=True)[0]

    @contextmanager
    def locked_late(path: Path) -> Iterator[Store]:
        with (path / "predictions.jsonl").open("ab") as journal:
            journal.write(late)
        with locked_store(path) as store:
            yield store

    monkeypatch.setattr("agentworldbench.merge.locked_store", locked_late)
    merge_runs([parts[0]], output)
    assert late in (output / "predictions.jsonl").read_bytes()


def test_the_command(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    done = awb("runs", "merge", *parts[:2], "-o", "all")
    assert done.code == 0
    assert "SHARD 1,2 of 3: a part of a run" in done.out
    assert done.err.splitlines()[-1] == "Results: all/results.json"
    assert awb("runs", "merge", *parts, "-o", "all").code == 0
    refused = awb("runs", "merge", parts[0], "nowhere", "-o", "all")
    assert (refused.code, "nowhere: no run.json there" in refused.only_complaint) == (2, True)
    nothing = awb("runs", "merge", "-o", "all")
    assert nothing.code == 2
