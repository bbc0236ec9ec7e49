"""Tests of `dataset.py`: rows to samples, ids, trajectories, offsets, and what is refused.

The folders come from `tests.helpers.official_folder`, whose manifest knows every row's place and
cluster from a pairwise comparison. Malformed rows are data: `tests/cases/rows/*.yaml`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import Dataset, open_dataset, parse_row, sample_id
from agentworldbench.errors import DataError
from agentworldbench.records import SampleRef
from agentworldbench.task import load_tasks
from tests.helpers.observation_texts import ODD_SEPARATORS
from tests.helpers.official_folder import DOMAINS, MARKER, SUFFIX, Manifest, make_official_folder

CASES = Path(__file__).parent / "cases" / "rows"
TASKS = load_tasks()
ROW: dict[str, Any] = {
    "task": "terminal",
    "id": 1,
    "prompt": ["**Action:**\nls" + SUFFIX],
    "response": [f"{MARKER}\na.txt"],
    "current_prompt": "**Action:**\nls",
    "system_str": "You are a terminal.",
    "turn_idx": 1,
    "total_turns": 1,
}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(tmp_path_factory.mktemp("official"), seed=5)


@pytest.fixture(scope="module")
def dataset(manifest: Manifest) -> Dataset:
    return open_dataset({domain: manifest.folder / f"{domain}_test.jsonl" for domain in DOMAINS}, TASKS)


def of(dataset: Dataset, domain: str) -> list[SampleRef]:
    return [ref for ref in dataset.refs if ref.domain == domain]


def terminal(folder: Path, content: bytes) -> Dataset:
    path = folder / "terminal_test.jsonl"
    path.write_bytes(content)
    return open_dataset({"terminal": path}, {"terminal": TASKS["terminal"]})


def line(**changes: Any) -> bytes:
    return json.dumps(ROW | changes, ensure_ascii=False).encode() + b"\n"


def test_every_row_is_a_sample_with_an_id_of_its_own(manifest: Manifest, dataset: Dataset) -> None:
    assert [(ref.domain, ref.line, ref.row_id, ref.turn_idx, ref.total_turns) for ref in dataset.refs] == [
        (row.domain, row.line, row.id, row.turn_idx, row.total_turns) for row in manifest.rows
    ]
    assert [type(ref.row_id) for ref in dataset.refs] == [type(row.id) for row in manifest.rows]
    assert len({ref.id for ref in dataset.refs}) == len(manifest.rows)
    assert {domain: file.rows for domain, file in dataset.files.items()} == dict(manifest.row_counts)


def test_collisions_are_numbered_in_file_order(manifest: Manifest, dataset: Dataset) -> None:
    ids = {(ref.domain, ref.line): ref.id for ref in dataset.refs}
    assert Counter(row.ordinal for row in manifest.rows)[2] == 1
    for row in manifest.rows:
        assert ids[row.domain, row.line] == sample_id(row.domain, row.id, row.turn_idx, row.ordinal)
    (second,) = (row for row in manifest.rows if row.ordinal == 2)
    assert ids[second.domain, second.line] == "android/7/3#2"


def test_the_number_and_the_string_are_different_ids(manifest: Manifest, dataset: Dataset) -> None:
    lines = {row.line for row in manifest.having("typed_id")}
    assert sorted(ref.id for ref in of(dataset, "web") if ref.line in lines) == [
        'web/"1"/1',
        'web/"1"/3',
        "web/1/1",
        "web/1/3",
    ]


@pytest.mark.parametrize("domain", DOMAINS)
def test_clusters_are_the_partition_of_the_manifest(
    manifest: Manifest, dataset: Dataset, domain: str
) -> None:
    found: dict[str, set[int]] = {}
    for ref in of(dataset, domain):
        found.setdefault(ref.cluster, set()).add(ref.line)
    assert {frozenset(lines) for lines in found.values()} == manifest.partition(domain)


def test_cluster_names_do_not_depend_on_file_order(manifest: Manifest, tmp_path: Path) -> None:
    lines = (manifest.folder / "terminal_test.jsonl").read_bytes().splitlines(keepends=True)
    forward = terminal(tmp_path, b"".join(lines))
    names = {ref.row_hash: ref.cluster for ref in forward.refs}
    backward = terminal(tmp_path, b"".join(reversed(lines)))
    assert {ref.row_hash: ref.cluster for ref in backward.refs} == names
    assert len(set(names.values())) == manifest.cluster_counts["terminal"]


def test_equal_texts_in_two_domains_are_two_clusters(tmp_path: Path) -> None:
    files = {domain: tmp_path / f"{domain}_test.jsonl" for domain in ("terminal", "swe")}
    for domain, path in files.items():
        path.write_bytes(line(task=domain))
    data = open_dataset(files, {domain: TASKS[domain] for domain in files})
    assert len({ref.cluster for ref in data.refs}) == 2


def test_task_key_joins_trajectories_of_one_task(tmp_path: Path) -> None:
    def first(instruction: str, state: str, action: str) -> str:
        return f"**Task Instruction:**\n{instruction}\n\n**Current State:**\n{state}\n\n**Action:**\n{action}"

    rows = [
        line(current_prompt=first("Count.", "empty", "ls")),
        line(current_prompt=first("Count.", "full", "pwd"), id=2),
        line(current_prompt=first("Sort.", "empty", "ls"), id=3),
        line(current_prompt=first("Count.", "empty", "ls"), id=4, system_str="Another."),
    ]
    refs = terminal(tmp_path, b"".join(rows)).refs
    assert refs[0].task_key == refs[1].task_key
    assert refs[0].cluster != refs[1].cluster
    assert len({ref.task_key for ref in refs}) == 3


def test_rows_of_one_trajectory_have_one_task_key(dataset: Dataset) -> None:
    keys: dict[str, set[str]] = {}
    for ref in dataset.refs:
        keys.setdefault(ref.cluster, set()).add(ref.task_key)
    assert {len(some) for some in keys.values()} == {1}


def test_load_gives_the_row_back(manifest: Manifest, dataset: Dataset) -> None:
    for domain in DOMAINS:
        lines = (manifest.folder / f"{domain}_test.jsonl").read_bytes().split(b"\n")
        for ref in of(dataset, domain):
            raw = lines[ref.line - 1]
            row = json.loads(raw)
            sample = dataset.load(ref)
            assert ref.row_hash == hashlib.sha256(raw).hexdigest()
            assert (ref.length, sample.id) == (len(raw), ref.id)
            assert sample.system == row["system_str"]
            assert list(sample.prompts) == row["prompt"]
            assert list(sample.responses) == row["response"]
            assert sample.action == row["current_prompt"]
            context = [row["system_str"], *row["prompt"], *row["response"][:-1]]
            assert ref.context_chars == sum(map(len, context))


def test_file_hash_is_that_of_its_bytes(manifest: Manifest, dataset: Dataset) -> None:
    for domain, file in dataset.files.items():
        content = (manifest.folder / f"{domain}_test.jsonl").read_bytes()
        assert file.sha256 == hashlib.sha256(content).hexdigest()


def test_line_separators_inside_strings_stay(manifest: Manifest, dataset: Dataset) -> None:
    lines = {row.line for row in manifest.having("odd_separators")}
    texts = [
        text for ref in of(dataset, "search") if ref.line in lines for text in dataset.load(ref).responses
    ]
    assert "\u2028" in ODD_SEPARATORS
    assert any(ODD_SEPARATORS in text for text in texts)


def test_the_path_form_of_a_task_is_accepted(manifest: Manifest, dataset: Dataset) -> None:
    (row,) = manifest.having("path_task")
    content = (manifest.folder / "terminal_test.jsonl").read_bytes().split(b"\n")[row.line - 1]
    assert json.loads(content)["task"] == "x/terminal"
    (ref,) = (ref for ref in of(dataset, "terminal") if ref.line == row.line)
    assert ref.domain == "terminal"


def test_current_prompt_may_be_empty(tmp_path: Path) -> None:
    data = terminal(tmp_path, line(current_prompt=""))
    assert data.load(data.refs[0]).action == ROW["prompt"][0]


def test_turns_beyond_turn_idx_are_left_out(tmp_path: Path) -> None:
    data = terminal(tmp_path, line(prompt=[*ROW["prompt"], "later"], response=[*ROW["response"], "later"]))
    sample = data.load(data.refs[0])
    assert (sample.prompts, sample.responses) == (tuple(ROW["prompt"]), tuple(ROW["response"]))


class _Marks:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize("wrapped", ["pickle", "gzip", "zip"])
def test_files_of_other_kinds_are_refused_and_never_opened(tmp_path: Path, wrapped: str) -> None:
    """DS-09, DS-10: a trajectory file of another program under our name runs nothing and unpacks nothing."""
    marker = tmp_path / "ran"
    data = pickle.dumps(_Marks(marker))
    if wrapped == "gzip":
        data = gzip.compress(data)
    if wrapped == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("../../x", b"0" * 1_000_000)
        data = packed.getvalue()
    said = {"pickle": "a Python pickle", "gzip": "gzip data", "zip": "a zip archive"}[wrapped]
    with pytest.raises(DataError, match=rf"terminal_test\.jsonl:1: this is {said}"):
        terminal(tmp_path, data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["terminal_test.jsonl"]


def test_gzip_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"terminal_test\.jsonl:1: this is gzip data"):
        terminal(tmp_path, gzip.compress(line()))


def row_cases(name: str) -> list[Any]:
    cases = yaml.safe_load((CASES / name).read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["name"]) for case in cases]


def content_of(case: dict[str, Any]) -> bytes:
    """Bytes of a case: `text` (latin-1: one character a byte), or lines made from ROW by `rows`."""
    content = (case.get("before", "") + case.get("text", "") * case.get("times", 1)).encode("latin-1")
    for change in case.get("rows", []):
        row = {key: value for key, value in (ROW | change).items() if value != "MISSING"}
        content += json.dumps(row).encode() + case.get("end", "\n").encode()
    return content


@pytest.mark.parametrize("case", row_cases("refused.yaml"))
def test_refused(tmp_path: Path, case: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        terminal(tmp_path, content_of(case))
    message = str(caught.value)
    for fragment in [case["message"], *case.get("also", [])]:
        assert fragment in message.replace(str(tmp_path) + "/", "")
    assert "\n" not in message


@pytest.mark.parametrize("case", row_cases("accepted.yaml"))
def test_accepted(tmp_path: Path, case: dict[str, Any]) -> None:
    data = terminal(tmp_path, content_of(case))
    assert [ref.id for ref in data.refs] == case["ids"]
    assert [ref.line for ref in data.refs] == case.get("lines", list(range(1, len(data.refs) + 1)))
    assert [list(ref.flags) for ref in data.refs] == case.get("flags", [[]] * len(data.refs))
    for ref in data.refs:
        data.load(ref).model_dump_json()


ROW_IDS = (
    st.integers() | st.text() | st.integers().map(str) | st.from_regex(r"-?[0-9]+#?[0-9]?", fullmatch=True)
)
KEYS = st.tuples(st.sampled_from(DOMAINS), ROW_IDS, st.integers(1, 30), st.integers(1, 12))


@given(KEYS, KEYS)
def test_sample_ids_are_injective(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    same = one == other and type(one[1]) is type(other[1])
    assert (sample_id(*one) == sample_id(*other)) == same


@given(st.lists(KEYS, min_size=2, max_size=40))
def test_sample_ids_of_a_set_are_as_many_as_its_members(keys: list[tuple[Any, ...]]) -> None:
    typed = {(domain, type(row), row, turn, ordinal) for domain, row, turn, ordinal in keys}
    assert len({sample_id(*key) for key in keys}) == len(typed)


@given(KEYS)
def test_sample_ids_are_one_line_of_plain_text(key: tuple[Any, ...]) -> None:
    name = sample_id(*key)
    assert name.startswith(f"{key[0]}/")
    assert not any(char in name for char in "\n\r\x00\x1b")


TEXTS = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ODD = st.recursive(st.none() | st.booleans() | NUMBERS | TEXTS, lambda some: st.lists(some) | st.dictionaries(TEXTS, some))  # fmt: skip


@settings(max_examples=20)
@given(st.lists(TEXTS, min_size=2, max_size=2), st.integers(), st.dictionaries(TEXTS, ODD), st.booleans())
def test_rows_are_read_as_the_standard_parser_reads_them(
    texts: list[str], row_id: int, more: dict[str, Any], escaped: bool
) -> None:
    row = more | ROW | {"id": row_id, "prompt": texts[:1], "response": texts[1:]}
    raw = json.dumps(row, ensure_ascii=escaped).encode()
    read, flags = parse_row(raw, Path("rows"), 2)
    assert read.model_dump() == {name: json.loads(raw)[name] for name in ROW}
    assert flags == ()
    with_mark, _ = parse_row(b"\xef\xbb\xbf" + raw, Path("rows"), 1)  # the way of what is not plain JSON
    assert with_mark == read
