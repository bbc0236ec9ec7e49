"""Bundles: the same run gives the same bytes wherever and whenever it is packed; what is not whole or not true is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import AwbError, ConfigError, DataError
from agentworldbench.leaderboard.provenance import Submitter
from agentworldbench.merge import merge_runs
from agentworldbench.run import evaluate, load_run, score_run
from agentworldbench.submission.manifest import MANIFEST, Options, bundle_sha256, read_manifest
from agentworldbench.submission.pack import Prepared, prepare, write_zip
from agentworldbench.texts import digest
from tests.helpers.awb_command import run_awb
from tests.helpers.bundles import PUBLIC, make_bundle, make_run
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.several_judges import few_draws, judges, panel_options


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWB_API_KEY", "EMPTY")
        return make_run(tmp_path_factory.mktemp("run") / "run", epochs=2, tasks="swe,os")


@pytest.fixture(scope="module")
def prepared(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return make_bundle(run, tmp_path_factory.mktemp("bundle") / "bundle")


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """The run, to be changed."""
    return Path(shutil.copytree(run, tmp_path / "copy"))


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def edit(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


def test_the_manifest_names_every_file_and_what_is_claimed(run: Path, prepared: Prepared) -> None:
    manifest, folder = prepared.manifest, prepared.folder
    raw = (folder / MANIFEST).read_bytes()
    assert read_manifest(raw) == manifest
    assert bundle_sha256(raw) == prepared.sha256
    assert {path.name for path in folder.iterdir()} == {MANIFEST, *manifest.files}
    assert {name: mark.bytes for name, mark in manifest.files.items()} == {
        name: (folder / name).stat().st_size for name in manifest.files
    }
    stored = load_run(run)
    assert stored.results is not None
    (judge,) = stored.results.judges
    by_judge, by_rules = manifest.claims
    assert (by_judge.judge, by_judge.overall) == (judge.judge.digest, judge.macro_floor["total"])
    assert by_judge.scores == {name: block.floor["total"] for name, block in judge.domains.items()}
    assert by_rules.judge is None and by_rules.overall == 100 * (
        stored.results.rules.macro["rule_score"].floor or 0
    )
    ids = sorted({one["sample_id"] for one in records(folder / "predictions.jsonl")})
    assert (manifest.samples, manifest.samples_sha256, manifest.epochs) == (4, digest(ids), 2)
    assert manifest.created == stored.record.sessions[-1].started_at
    assert manifest.submitter is None


def test_a_bundle_is_the_run_without_what_is_private(run: Path, prepared: Prepared) -> None:
    folder = prepared.folder
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()))
    stored = (run / "run.json").read_text()
    port = stored.partition("127.0.0.1:")[2].partition("/")[0]
    assert "127.0.0.1" not in text and f":{port}/" not in text
    assert str(Path.home()) == "/root" or str(Path.home()) not in text
    assert "endpoint-1.invalid" in text and prepared.manifest.redactions == {"address": 2}
    assert "I think of" not in text
    sent = records(run / "predictions.jsonl")
    assert all("I think of" in one["reasoning"] for one in sent)
    kept = records(folder / "predictions.jsonl")
    assert [(one["sample_id"], one["epoch"]) for one in kept] == sorted(
        (one["sample_id"], one["epoch"]) for one in sent
    )
    whole = {(one["sample_id"], one["epoch"]): one for one in sent}
    for one in kept:
        assert one == {
            name: value
            for name, value in whole[one["sample_id"], one["epoch"]].items()
            if name != "reasoning"
        }


def test_results_are_those_of_the_run(run: Path, prepared: Prepared) -> None:
    mine, theirs = (json.loads((path / "results.json").read_text()) for path in (prepared.folder, run))
    assert mine.pop("made_at") == prepared.manifest.created
    assert theirs.pop("made_at") != prepared.manifest.created
    assert mine == theirs


def test_reasoning_and_references_are_choices(run: Path, prepared: Prepared, tmp_path: Path) -> None:
    other = make_bundle(
        run, tmp_path / "b", Options(reasoning=True, references=False), submitter=Submitter(name="Ann")
    )
    assert all("I think of" in one["reasoning"] for one in records(other.folder / "predictions.jsonl"))
    assert not (other.folder / "references.jsonl").exists()
    assert "references.jsonl" not in other.manifest.files
    assert other.manifest.options == Options(reasoning=True, references=False)
    assert other.manifest.submitter == Submitter(name="Ann")
    assert other.sha256 != prepared.sha256
    references = records(prepared.folder / "references.jsonl")
    samples = {one["sample_id"]: one["row_hash"] for one in records(run / "predictions.jsonl")}
    assert {one["sample_id"]: one["row_hash"] for one in references} == samples
    shown = (prepared.folder / "NOTICE").read_text()
    assert "WITHOUT WARRANTY" in shown and prepared.manifest.canary in shown
    assert "WITHOUT WARRANTY" not in (other.folder / "NOTICE").read_text()


def test_the_order_of_journals_changes_nothing(copy: Path, prepared: Prepared, tmp_path: Path) -> None:
    for name in ("predictions.jsonl", "verdicts.jsonl"):
        lines = (copy / name).read_bytes().splitlines(keepends=True)
        random.Random(name).shuffle(lines)
        stranger = json.loads(lines[0]) | {"sample_id": "mcp/stranger/1"}
        (copy / name).write_bytes(json.dumps(stranger).encode() + b"\n" + b"".join(lines))
    with (copy / "verdicts.jsonl").open("ab") as file:
        file.write(b'{"schema_version": 1, "sample_id": "mcp')  # the process died while it wrote
    with (copy / "predictions.jsonl").open("r+b") as file:
        file.truncate((copy / "predictions.jsonl").stat().st_size - 1)  # whole, but for its newline
    again = make_bundle(copy, tmp_path / "again")
    assert again.sha256 == prepared.sha256


@pytest.mark.slow
def test_parts_merged_in_any_order_are_one_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWB_API_KEY", "EMPTY")
    parts = [make_run(tmp_path / f"part{n}", shard=f"{n}/2") for n in (1, 2)]
    merge_runs(parts, tmp_path / "one")
    merge_runs(parts[::-1], tmp_path / "other")
    one, other = (make_bundle(tmp_path / name, tmp_path / f"bundle-{name}") for name in ("one", "other"))
    assert one.manifest == other.manifest
    assert one.sha256 == other.sha256


def test_superseded_records_stand_before_what_counts(copy: Path, tmp_path: Path) -> None:
    """They were paid for, so they belong to the run; the last of a key counts, as in the run."""
    path = copy / "predictions.jsonl"
    first = records(path)[0]
    failed = {
        "schema_version": 1, "sample_id": first["sample_id"], "row_hash": first["row_hash"], "epoch": 1,
        "failure": {"kind": "timeout", "message": "no answer from http://127.0.0.1:9/v1 in 9 s"}, "cost_usd": 0.25,
        "started_at": "2031-01-01T00:00:00Z",
    }  # fmt: skip
    path.write_bytes(json.dumps(failed).encode() + b"\n" + path.read_bytes())
    score_run(copy)
    folder = make_bundle(copy, tmp_path / "b").folder
    mine = [one for one in records(folder / "predictions.jsonl") if one["sample_id"] == first["sample_id"]]
    assert ["failure" in one for one in mine] == [True, False, False]
    assert mine[0]["failure"]["message"] == "no answer from http://endpoint-1.invalid/v1 in 9 s"


def test_another_place_home_zone_and_language_change_nothing(
    copy: Path, prepared: Prepared, tmp_path: Path
) -> None:
    home = tmp_path / "home" / "zoë"
    home.mkdir(parents=True)
    env = {
        "HOME": str(home),
        "TZ": "Pacific/Kiritimati",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
        "PYTHONUTF8": "0",
    }
    done = run_awb("submit", copy, "-o", "deep/other.zip", cwd=tmp_path, env=env)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"bundle {prepared.sha256}\n")
    here = tmp_path / "here.zip"
    os.utime(prepared.folder / "run.json", (1, 1))
    write_zip(prepared.folder, here)
    assert here.read_bytes() == (tmp_path / "deep/other.zip").read_bytes()
    with zipfile.ZipFile(here) as archive:
        infos = archive.infolist()
    assert [info.filename for info in infos] == sorted(info.filename for info in infos)
    assert {(info.date_time, info.external_attr >> 16, info.extra) for info in infos} == {
        ((1980, 1, 1, 0, 0, 0), 0o100644, b"")
    }


def unasked(run: Path) -> None:
    edit(run / "results.json", lambda value: value.update(complete=False))


def a_shard(run: Path) -> None:
    edit(run / "run.json", lambda value: value["selection"].update(shard="1/2"))


def no_results(run: Path) -> None:
    (run / "results.json").unlink()


def unreadable(run: Path) -> None:
    with (run / "verdicts.jsonl").open("ab") as file:
        file.write(b"not a record\n")


def no_sessions(run: Path) -> None:
    edit(run / "run.json", lambda value: value.update(sessions=[]))


def better(run: Path) -> None:
    edit(run / "results.json", lambda value: value["judges"][0]["strict"]["macro_floor"].update(total=99.0))


def fewer(run: Path) -> None:
    lines = (run / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    (run / "predictions.jsonl").write_bytes(b"".join(lines[1:]))


def softer(run: Path) -> None:
    text = (run / "verdicts.jsonl").read_text()
    (run / "verdicts.jsonl").write_text(text.replace('"scores":{"format":1', '"scores":{"format":5'))


REFUSED: dict[str, tuple[Callable[[Path], None], type[AwbError], str]] = {
    "not complete": (unasked, DataError, "not complete"),
    "a shard": (a_shard, DataError, "awb runs merge"),
    "no results": (no_results, DataError, "no results.json there; `awb score"),
    "a line that cannot be read": (unreadable, DataError, "cannot be read and is left out"),
    "no session": (no_sessions, DataError, "names no session"),
    "a better score": (
        better,
        ConfigError,
        r"judges\[0\].strict.macro_floor.total: 99.0 there, .* computed.*`awb score",
    ),
    "a prediction less": (fewer, ConfigError, "not what the stored replies give"),
    "kinder verdicts": (softer, ConfigError, "not what the stored replies give"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_whole_or_not_true_is_no_bundle(copy: Path, tmp_path: Path, name: str) -> None:
    change, kind, said = REFUSED[name]
    change(copy)
    before = {path: path.read_bytes() for path in copy.iterdir()}
    with pytest.raises(kind, match=said):
        make_bundle(copy, tmp_path / "b")
    assert {path: path.read_bytes() for path in copy.iterdir()} == before, "a run is only read"


def test_a_run_without_a_judge_is_a_bundle_too(tmp_path: Path) -> None:
    evaluate(model="baseline/copy-last", limit="1", output=tmp_path / "run")
    made = make_bundle(tmp_path / "run", tmp_path / "b")
    assert not (made.folder / "verdicts.jsonl").exists()
    assert [claim.judge for claim in made.manifest.claims] == [None]
    (tmp_path / "c").mkdir()
    with pytest.raises(
        ConfigError, match=r"--no-references: the predictions of .* are texts of the data set"
    ):
        prepare(tmp_path / "run", tmp_path / "c", Options(reasoning=False, references=False))


def test_a_panel_claims_its_own_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWB_API_KEY", "EMPTY")
    few_draws(monkeypatch)
    with ScriptedServer(judges(steady=True)) as server:
        names = ("judge-a", "judge-b")
        asked = panel_options(
            server, tmp_path / "run", "mini", names, panel="mean", limit="2", tasks="swe,os"
        )
        evaluate(**asked)
    made = make_bundle(tmp_path / "run", tmp_path / "b")
    panel = made.results.panel
    assert panel is not None
    *_, by_panel, _ = made.manifest.claims
    assert (by_panel.judge, by_panel.overall) == (panel.digest, panel.reading.macro_floor["total"])
    assert [made.manifest.claimant(claim) for claim in made.manifest.claims] == [
        "judge openai-api/judge-a, protocol builtin",
        "judge openai-api/judge-b, protocol builtin",
        "panel of 2 judges",
        "rules",
    ]


def test_findings_are_refused_until_they_are_allowed(copy: Path, tmp_path: Path) -> None:
    key = "hf" + "_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"
    path = copy / "predictions.jsonl"
    path.write_text(path.read_text().replace("The listing follows.", f"The listing follows {key}."))
    found = make_bundle(copy, tmp_path / "b")
    (finding,) = found.refused
    assert (finding.kind, finding.count, found.manifest.allowed) == ("Hugging Face token", 8, ())
    allowed = make_bundle(copy, tmp_path / "c", allow=[finding.id])
    assert allowed.refused == ()
    assert [(one.id, one.kind, one.places) for one in allowed.manifest.allowed] == [
        (finding.id, finding.kind, 8)
    ]
    with pytest.raises(ConfigError, match="--allow 0123456789: no finding has this id"):
        make_bundle(copy, tmp_path / "d", PUBLIC, allow=[finding.id, "0123456789"])
