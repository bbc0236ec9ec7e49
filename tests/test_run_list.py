"""Tests of `awb runs list`: what each run is and how far it got; damaged directories are named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench import evaluate
from agentworldbench.errors import ConfigError, QuotaError
from agentworldbench.run_list import RunLine, links_out, list_runs, run_paths, runs_table
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import Reply, ScriptedServer, every_nth
from tests.helpers.whole_runs import good, options, read_results


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(
        tmp_path_factory.mktemp("data"), domains=("terminal", "web"), trajectories=2, observation_chars=80
    )


@pytest.fixture(scope="module")
def runs(data: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished run with two judges, a baseline's shard, a stopped run, a copy without results."""
    folder = tmp_path_factory.mktemp("runs")
    quota = Reply(status=429, error={"message": "no", "code": "insufficient_quota"})
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(good) as server:
        set_key(patch)
        both = {"judge": ["openai-api/judge", "openai-api/other"], "judge_attempts": 1}
        evaluate(**options(server, folder / "judged", data.folder, **both))
        evaluate("baseline/copy-last", data=str(data.folder), shard="1/2", output=folder / "shard")
        server.script = every_nth(9, quota, good)
        with pytest.raises(QuotaError):
            evaluate(**options(server, folder / "stopped", data.folder, max_connections=1))
    shutil.copytree(folder / "judged", folder / "unscored")
    (folder / "unscored" / "results.json").unlink()
    yield folder


def lines(folder: Path) -> dict[str, RunLine]:
    return {Path(line.path).name: line for line in list_runs(folder)}


def test_each_run_says_what_it_is(runs: Path, data: Manifest) -> None:
    found = lines(runs)
    assert found.keys() == {"judged", "shard", "stopped", "unscored"}
    judged, results = found["judged"], read_results(runs / "judged")
    assert (judged.model, judged.protocol, judged.shard) == ("openai-api/world", "builtin", None)
    assert judged.selected == judged.done == judged.predicted == len(data.rows)
    assert judged.complete
    assert [one.judge for one in judged.judges] == ["openai-api/judge", "openai-api/other"]
    scores = [one["strict"]["macro_floor"]["total"] for one in results["judges"]]
    assert [one.score for one in judged.judges] == scores
    assert [one.coverage for one in judged.judges] == [1.0, 0.0]
    assert judged.rule_score == pytest.approx(100 * results["rules"]["macro"]["rule_score"]["floor"])
    assert judged.cost_usd is None, "unknown is not 0"
    assert (found["shard"].shard, found["shard"].cost_usd, found["shard"].judges) == ("1/2", 0.0, ())
    assert 0 < found["shard"].selected < len(data.rows)


def test_runs_without_results_are_counted_by_their_journals(runs: Path, data: Manifest) -> None:
    found = lines(runs)
    whole = found["unscored"]
    assert (whole.done, whole.predicted, whole.complete) == (len(data.rows), len(data.rows), False)
    assert [one.score for one in whole.judges] == [None, None]
    stopped = found["stopped"]
    written = (runs / "stopped" / "predictions.jsonl").read_bytes().count(b"\n")
    assert stopped.done == stopped.predicted == written < stopped.selected


def test_the_last_one_is_last(runs: Path) -> None:
    moments = [line.worked_on for line in list_runs(runs)]
    assert all(moments)
    assert moments == sorted(moments, key=str)


def test_one_directory_alone(runs: Path) -> None:
    (line,) = list_runs(runs / "judged")
    assert line == lines(runs)["judged"]


DAMAGE: dict[str, tuple[str, bytes, str]] = {
    "half": ("run.json", b'{"schema_version": 1, "crea', "run.json: cannot be read"),
    "binary": ("run.json", b"\xff\xfe\x00", "run.json: cannot be read"),
    "list": ("run.json", b"[]", "run.json: not the record of a run"),
    "newer": ("run.json", b'{"schema_version": 99}', "another version of awb"),
    "results": ("results.json", b"{}", "results.json: damaged"),
    "half results": ("results.json", b"{", "results.json: cannot be read"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_runs_are_named_and_the_others_listed(
    runs: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, content, said = DAMAGE[name]
    for copy in ("a", "broken"):
        shutil.copytree(runs / "judged", tmp_path / "runs" / copy)
    (tmp_path / "runs" / "broken" / file).write_bytes(content)
    (tmp_path / "runs" / "no run").mkdir()
    (tmp_path / "runs" / "a file").write_text("")
    found = lines(tmp_path / "runs")
    assert found.keys() == {"a", "broken"}
    assert found["a"].problem is None
    assert said in (found["broken"].problem or "")
    done = HereAwb(tmp_path, monkeypatch, capsys)("runs", "list")
    assert done.code == 0
    assert f"Cannot be read: runs/broken: {found['broken'].problem}"[:60] in done.out


def test_the_command(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    done = awb("runs", "list", runs)
    assert done.code == 0
    for text in ("judged", "shard (shard 1/2)", "openai-api/world", "baseline/copy-last", "Last worked on"):
        assert text in done.out
    told: list[dict[str, Any]] = json.loads(awb("runs", "list", runs, "--json").out)
    assert told == [line.model_dump(mode="json") for line in list_runs(runs)]
    missing = awb("runs", "list")
    assert (missing.code, missing.only_complaint.startswith("awb: runs: no such folder")) == (2, True)
    (tmp_path / "empty").mkdir()
    assert awb("runs", "list", "empty", "--json").out == "[]\n"
    assert awb("runs", "list", "empty").code == 0


@pytest.mark.parametrize(
    ("usd", "shown"), [(None, "–"), (0.0, "0.00"), (0.0046, "0.0046"), (12.345, "12.35")]
)
def test_a_small_cost_is_not_shown_as_none(usd: float | None, shown: str) -> None:
    (row,) = runs_table([RunLine(path="runs/one", cost_usd=usd)], Path("runs")).rows
    assert shown in row


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        list_runs(tmp_path / "nowhere")


def test_a_link_to_a_run_never_shows_it_twice_and_never_leads_out(runs: Path, tmp_path: Path) -> None:
    folder, other = tmp_path / "runs", tmp_path / "elsewhere"
    shutil.copytree(runs / "shard", folder / "shard")
    shutil.copytree(runs / "shard", folder / "deep" / "run")
    shutil.copytree(runs / "shard", other)
    for name, target in (
        ("a", "shard"),
        ("z", "shard"),
        ("deeper", "deep/run"),
        ("self", "."),
        ("gone", "none"),
    ):
        (folder / name).symlink_to(target)
    (folder / "out").symlink_to(other)
    assert list(run_paths(folder)) == [folder / "shard", folder / "deep" / "run"]
    assert list(links_out(folder)) == [folder / "out"]
    table = runs_table(list_runs(folder), folder, links_out(folder))
    assert sorted(row[0].partition(" ")[0] for row in table.rows) == ["deep/run", "shard"]
    assert (
        table.notes[-1]
        == f"Not followed, because it leads out of the folder: {folder / 'out'}; name it to see it."
    )
    (tmp_path / "alias").symlink_to(folder)
    assert [path.name for path in run_paths(tmp_path / "alias")] == ["shard", "run"], (
        "a folder that is named is followed"
    )
