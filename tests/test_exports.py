"""`awb export`: what all formats share: which samples, which texts, where to, and what is said of what is missing.

The modules `test_export_*` look into the files of each format.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.run import Run
from tests.helpers.asking import KEY
from tests.helpers.awb_command import HereAwb
from tests.helpers.export_runs import (
    EACH,
    EPOCHS,
    TASKS,
    lines_of,
    make_runs,
    members_of,
    references_of,
    texts_in,
)

pytestmark = pytest.mark.usefixtures("quick_retries")
PAGE = Path(__file__).parents[1] / "docs" / "export.md"
TEXT_FORMATS = ("lm-eval", "inspect", "eee")
"""Formats whose files can be read without a library."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, quick_retries: None) -> dict[str, Run]:
    return make_runs(tmp_path_factory, "many", "none", "part")


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def texts_of(folder: Path) -> str:
    """Every text in the files of an export, as it was before it became JSON."""
    values: list[Any] = [members_of(path) for path in folder.rglob("*.eval")]
    values += [lines_of(path) for path in folder.rglob("*.jsonl")]
    values += [json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("*.json")]
    return "\n".join(texts_in(values))


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_texts_of_the_data_are_written_only_when_asked_for(
    runs: dict[str, Run], awb: HereAwb, tmp_path: Path, form: str
) -> None:
    references = set(references_of(runs["many"]))
    assert len(references) > EACH
    for words, wanted in ((), False), (("--references",), True):
        done = awb("export", form, runs["many"].path, "-o", f"out-{wanted}", *words)
        assert done.code == 0, done.err
        every = texts_of(tmp_path / f"out-{wanted}")
        found = {one for one in references if one in every}
        assert found == (references if wanted else set())
        assert KEY not in every
        assert str(runs["many"].record.sessions[0].model_url) not in every


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_the_same_run_makes_the_same_files_wherever_they_go(
    runs: dict[str, Run], awb: HereAwb, tmp_path: Path, form: str
) -> None:
    first = awb("export", form, runs["many"].path)
    names = first.out.splitlines()
    assert names and all(Path(name).is_relative_to(runs["many"].path / form) for name in names)
    before = {path: path.read_bytes() for path in map(Path, names)}
    assert awb("export", form, runs["many"].path).out == first.out, "its own files are replaced"
    assert {path: path.read_bytes() for path in before} == before
    for _ in range(2):
        done = awb("export", form, runs["many"].path, "-o", "elsewhere")
        assert done.code == 0, "equal files are no conflict"
    other = [tmp_path / name for name in done.out.splitlines()]
    assert [path.read_bytes() for path in other] == list(before.values())
    other[-1].write_bytes(b"somebody else's")
    refused = awb("export", form, runs["many"].path, "-o", "elsewhere")
    assert (refused.code, "exists with other contents" in refused.complaint) == (2, True)
    assert other[-1].read_bytes() == b"somebody else's"
    assert not [path for path in (tmp_path / "elsewhere").rglob(".*")], "nothing half written is left"


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_what_cannot_be_exported_is_one_line(
    runs: dict[str, Run], awb: HereAwb, tmp_path: Path, form: str
) -> None:
    cases = {
        (tmp_path / "nothing",): "no run.json there",
        (runs["many"].path, "--judge", "other/judge"): "--judge other/judge: no such judge in",
        (runs["none"].path, "--judge", "other/judge"): "has no judge",
        (runs["many"].path, "-o", runs["none"].path): "a run directory, whose journals have the same names",
        (
            runs["many"].path,
            "-o",
            "~nobody-here/out",
        ): "--output: ~nobody-here/out: no home directory is known",
    }
    for words, told in cases.items():
        done = awb("export", form, *words)
        assert done.code == 2
        assert told in done.only_complaint
    results = runs["none"].path / "results.json"
    kept = results.read_bytes()
    results.unlink()
    try:
        assert "`awb score" in awb("export", form, runs["none"].path).only_complaint
    finally:
        results.write_bytes(kept)


@pytest.mark.parametrize("field", ["created_at", "sessions[0].started_at"])
@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_a_time_that_is_none_is_named(
    runs: dict[str, Run], awb: HereAwb, tmp_path: Path, form: str, field: str
) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(runs["none"].path, odd)
    record = json.loads((odd / "run.json").read_bytes())
    place = record if field == "created_at" else record["sessions"][0]
    place[field.rpartition(".")[2]] = "yesterday"
    (odd / "run.json").write_text(json.dumps(record), encoding="utf-8")
    done = awb("export", form, odd)
    assert done.code == 2 and f"run.json: {field}: 'yesterday' is no time such as" in done.only_complaint


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_an_incomplete_run_is_exported_and_called_so(runs: dict[str, Run], awb: HereAwb, form: str) -> None:
    whole = awb("export", form, runs["many"].path)
    assert "not complete" not in whole.err
    done = awb("export", form, runs["part"].path)
    assert done.code == 0
    count = len(TASKS) * EACH
    (line,) = [line for line in done.err.splitlines() if "not complete" in line]
    assert f"not asked yet are 4 of {count} predictions and " in line
    assert re.search(rf" \d+ of {count} verdicts by openai-api/judge \(coverage \d+\.\d %\)", line)
    assert line.endswith("the export is as incomplete")


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_lines_that_cannot_be_read_are_told(
    runs: dict[str, Run], awb: HereAwb, tmp_path: Path, form: str
) -> None:
    shutil.copytree(runs["none"].path, tmp_path / "run")
    with (tmp_path / "run" / "predictions.jsonl").open("ab") as journal:
        journal.write(b"neither JSON nor a record\n")
    done = awb("export", form, "run", "-o", "out")
    assert done.code == 0
    line = len(TASKS) * EACH + 1
    assert f"run/predictions.jsonl: line {line} cannot be read and is left out" in done.err


def test_the_scripts_files_say_what_of_several_epochs_they_hold(runs: dict[str, Run], awb: HereAwb) -> None:
    done = awb("export", "official", runs["many"].path, "-o", "theirs")
    assert done.code == 0
    assert done.err.splitlines() == [
        f"theirs/predictions.jsonl: the run has {EPOCHS} epochs, of which this file holds the first; "
        "`awb export parquet` has all",
        f"theirs/judged.jsonl: the run has {EPOCHS} epochs and 2 repeats of the judge, of which this file holds the "
        "first; `awb export parquet` has all",
    ]
    assert len(lines_of(Path("theirs/judged.jsonl"))) == len(TASKS) * EACH
    assert awb("export", "official", runs["none"].path, "-o", "single").err == ""


def test_a_parquet_table_needs_pyarrow_and_says_so(
    runs: dict[str, Run], awb: HereAwb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = awb("export", "parquet", runs["none"].path, "-o", "table")
    assert done.code == 2
    assert "needs pyarrow: pip install 'agentworldbench[parquet]'" in done.only_complaint
    assert list(tmp_path.rglob("*parquet")) == []


def commands_of(page: Path) -> Iterator[str]:
    """The lines of the page's shell examples that call `awb`."""
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if line.startswith("awb "))


def test_the_commands_of_the_docs(runs: dict[str, Run], awb: HereAwb) -> None:
    commands = [shlex.split(line, comments=True)[1:] for line in commands_of(PAGE)]
    forms = {words[1] for words in commands}
    assert forms == {"official", "parquet", *TEXT_FORMATS}
    Path("runs").mkdir()
    Path("runs/my-run").symlink_to(runs["many"].path)
    for words in commands:
        if words[1] != "parquet":  # looked at where pyarrow is: test_export_parquet.py
            done = awb(*words)
            assert done.code == 0, done.err
