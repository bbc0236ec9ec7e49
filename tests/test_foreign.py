"""Files of other programs named as data: refused by name, with what to do; nothing in them is opened or run.

Cases: `cases/foreign/files.yaml`. Packed files are made here, with what importers of other harnesses fell
for (DS-10): a compression that Python does not know, a bomb, a member that leaves the folder, a cut end.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.errors import DataError
from agentworldbench.foreign import NO_IMPORT, described, hint
from agentworldbench.sources import resolve_source
from agentworldbench.task import load_tasks
from tests.helpers.awb_command import HereAwb

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "cases" / "foreign" / "files.yaml").read_text(encoding="utf-8")
)
TERMINAL = {"terminal": load_tasks()["terminal"]}
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])


def content_of(case: dict[str, Any]) -> bytes:
    if "lines" in case:
        return "".join(json.dumps(line) + "\n" for line in case["lines"]).encode()
    text: str = case["text"] if "text" in case else json.dumps(case["pretty"], indent=2)
    return text.encode()


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def refusal(data: Path | str) -> str:
    with pytest.raises(DataError) as caught:
        resolve_source(str(data))
    return str(caught.value)


@each_case
def test_a_file_in_place_of_a_folder_is_named(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / case["file"]).write_bytes(content_of(case))
    said = refusal(tmp_path / case["file"])
    assert said.startswith(f"--data {tmp_path / case['file']}: is a file; a folder of ")
    assert said.endswith(f"; {case['says']}: {NO_IMPORT}")


@each_case
def test_a_folder_with_nothing_else_says_what_it_holds(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / case["file"]).write_bytes(content_of(case))
    said = refusal(tmp_path)
    assert said.startswith(f"{tmp_path}: no {{domain}}_test.jsonl file in this folder")
    assert f"({case['file']}: {case['says']}: " in said


@each_case
def test_a_file_under_our_name_is_refused_by_line_and_named(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "terminal_test.jsonl"
    path.write_bytes(content_of(case))
    with pytest.raises(DataError) as caught:
        open_dataset({"terminal": path}, TERMINAL)
    assert str(caught.value).startswith(f"{path}:1: ")
    assert str(caught.value).endswith(f"; {case['says']}: {NO_IMPORT}")


def test_every_format_is_told_apart() -> None:
    assert len({case["says"] for case in CASES}) >= 18
    assert len({case["file"] for case in CASES}) == len(CASES)


def test_one_of_our_files_is_named_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "os_test.jsonl").write_text("{}\n")
    said = refusal(tmp_path / "os_test.jsonl")
    assert said.endswith(f"is a file; name its folder: --data {tmp_path} --tasks os")


OURS = '"current_prompt": "p", "system_str": "s", "turn_idx": 1, "total_turns": 1'
NOT_NAMED = {
    "a row of ours without its domain": f'{{"id": 1, "prompt": ["p"], "response": ["r"], {OURS}}}\n',
    "a row of ours about a chat": '{"messages": [], "role": "", "content": "", ' + OURS + "}\n",
    "a chat inside a text of ours": json.dumps(
        {"id": 1, "prompt": [json.dumps({"messages": [{"role": "user", "content": "x"}]})]}
    ),
    "anything": '{"a": 1}\n',
    "words": "not JSON at all\n",
}


@pytest.mark.parametrize("name", NOT_NAMED)
def test_what_is_not_known_is_not_guessed_at(name: str, tmp_path: Path) -> None:
    path = tmp_path / "terminal_test.jsonl"
    path.write_text(NOT_NAMED[name], encoding="utf-8")
    with pytest.raises(DataError) as caught:
        open_dataset({"terminal": path}, TERMINAL)
    assert "it looks like" not in str(caught.value)


def test_only_a_file_that_is_wrong_from_its_first_row_is_anothers(tmp_path: Path) -> None:
    row = {"task": "terminal", "id": 1, "prompt": ["p"], "response": ["r"]}
    row |= {"current_prompt": "p", "system_str": "", "turn_idx": 1, "total_turns": 1}
    path = tmp_path / "terminal_test.jsonl"
    path.write_text(f'{json.dumps(row)}\n{{"jsonrpc": "2.0"}}\n')
    with pytest.raises(DataError, match=r":2: field 'task': is missing$"):
        open_dataset({"terminal": path}, TERMINAL)


# --- packed files ------------------------------------------------------------------------------


def archive(method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A log of inspect: a member that leaves the folder, and 20 MB of zeros in 20 kB."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("../../out.json", "{}")
        made.writestr("samples/1_epoch_1.json", b"\0" * 20_000_000)
    raw = packed.getvalue()
    if method == zipfile.ZIP_DEFLATED:
        return raw
    # The method stands in the head of each member and in the directory at the end.
    for head, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        parts = raw.split(head)
        parts[1:] = [
            part[: place - 4] + method.to_bytes(2, "little") + part[place - 2 :] for part in parts[1:]
        ]
        raw = head.join(parts)
    return raw


ZIPS = {"deflated": archive(), "Zstandard inside": archive(93), "cut in its directory": archive()[:-30]}


def test_the_archives_are_what_they_are_made_for() -> None:
    with zipfile.ZipFile(io.BytesIO(ZIPS["deflated"])) as good:
        assert good.namelist()[0] == "../../out.json"
        assert good.infolist()[1].file_size > 500 * good.infolist()[1].compress_size
    with zipfile.ZipFile(io.BytesIO(ZIPS["Zstandard inside"])) as zstandard:
        assert {member.compress_type for member in zstandard.infolist()} == {93}
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(ZIPS["cut in its directory"]))


@pytest.mark.parametrize("name", ZIPS)
def test_a_log_in_a_zip_archive_is_refused_and_never_opened(
    name: str, tmp_path: Path, awb: HereAwb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DS-10: by the name of a file, in a folder, and under our name."""
    monkeypatch.setattr(zipfile, "ZipFile", lambda *given: pytest.fail("it was opened"))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.eval").write_bytes(ZIPS[name])
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "swe_test.jsonl").write_bytes(ZIPS[name])
    before = sorted(tmp_path.rglob("*"))
    for data, told in (
        (
            "logs/run.eval",
            "--data logs/run.eval: is a file; a folder of {domain}_test.jsonl files is wanted; ",
        ),
        ("logs", "logs: no {domain}_test.jsonl file in this folder (run.eval: "),
        ("ours", "ours/swe_test.jsonl:1: "),
    ):
        done = awb("run", "--model", "baseline/empty", "--data", data)
        assert done.code == 2
        assert f"{told}this is a zip archive (an .eval log, say); unpack it first" in done.only_complaint
    assert sorted(tmp_path.rglob("*")) == before, "nothing was unpacked, here or above"


def test_a_line_as_long_as_its_file_is_not_read_to_name_it(tmp_path: Path) -> None:
    """Ten gigabytes of nothing behind the head of an archive, in a file with a hole."""
    path = tmp_path / "swe_test.jsonl"
    with path.open("wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(10 * 2**30)
    with pytest.raises(DataError, match=r"swe_test\.jsonl:1: this is a zip archive"):
        open_dataset({"swe": path}, {"swe": load_tasks()["swe"]})
    assert described(path).startswith("; this is a zip archive")


@pytest.mark.parametrize(
    "begin", [b"PAR1", b"SQLite format 3\0", b"\x80\x05"], ids=["Parquet", "SQLite", "pickle"]
)
def test_other_binary_files_are_named(begin: bytes, tmp_path: Path) -> None:
    path = tmp_path / "terminal_test.jsonl"
    path.write_bytes(begin + b"\0\1\2\n")
    with pytest.raises(DataError, match=r"terminal_test\.jsonl:1: this is an? (Parquet|SQLite|Python)"):
        open_dataset({"terminal": path}, TERMINAL)


@given(st.binary(max_size=400))
def test_any_bytes_are_described_or_not(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    for text in (hint(path), described(path)):
        assert text == "" or text.startswith("; ")
        assert text.isprintable()


def test_what_cannot_be_read_is_not_described(tmp_path: Path) -> None:
    assert (
        hint(tmp_path) == described(tmp_path) == hint(tmp_path / "none") == described(tmp_path / "none") == ""
    )
