"""Tests of the journals and small files of `store.py`: what survives a kill, a full disk and bad bytes.

Torn tails are data (`TAILS`): what stands behind a good record, and what a writer makes of it. Locks
and damaged run directories: `test_run_directory.py`.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import StoreError
from agentworldbench.records import Attempt, Failure, FailureKind, Prediction, SampleMetrics, Usage, Verdict
from agentworldbench.store import Journal, Store

RUN: dict[str, Any] = {"predict": {}, "selection": {}, "judges": []}


def prediction(name: str = "swe/1/1", **changes: Any) -> Prediction:
    fields = {"row_hash": "r", "prompt_sha256": "p", "started_at": "2026-01-01T00:00:00Z"}
    return Prediction.model_validate({"sample_id": name, **fields, **changes})


def verdict(name: str = "swe/1/1", **changes: Any) -> Verdict:
    fields = {
        "row_hash": "r",
        "prompt_sha256": "p",
        "started_at": "t",
        "judge": "j",
        "observation_sha256": "o",
    }
    return Verdict.model_validate({"sample_id": name, **fields, **changes})


def line(record: Prediction) -> bytes:
    return record.model_dump_json().encode() + b"\n"


def journal(path: Path) -> Journal[Prediction]:
    return Journal(path / "predictions.jsonl", Prediction)


def written(path: Path, *records: Prediction) -> bytes:
    made = journal(path)
    for record in records:
        made.append(record)
    made.close()
    return made.path.read_bytes()


def test_append_get_and_iterate(tmp_path: Path) -> None:
    one, two = prediction("swe/1/1", text="a\u2028b"), prediction("swe/2/1", observation="x")
    made = journal(tmp_path)
    made.append(one)
    assert made.get(one.key) == one, "readable before it is closed"
    made.append(two)
    made.close()
    for some in (made, journal(tmp_path)):
        assert (len(some), list(some), some.bad_lines) == (2, [one, two], [])
        assert one.key in some
        assert ("swe/9/9", 1) not in some
        assert some.get(("swe/9/9", 1)) is None


def test_the_last_record_of_a_key_counts(tmp_path: Path) -> None:
    first, other, last = prediction(text="first"), prediction("swe/2/1"), prediction(text="last")
    content = written(tmp_path, first, other, last)
    assert content.count(b"\n") == 3, "nothing is overwritten"
    assert list(journal(tmp_path)) == [other, last]
    epoch = prediction(text="again", epoch=2)
    written(tmp_path, epoch)
    assert list(journal(tmp_path)) == [other, last, epoch]


def test_verdicts_have_keys_of_their_own(tmp_path: Path) -> None:
    made: Journal[Verdict] = Journal(tmp_path / "verdicts.jsonl", Verdict)
    records = [verdict(), verdict(judge="k"), verdict(repeat=2), verdict(epoch=2), verdict("swe/2/1")]
    for record in records:
        made.append(record)
    made.close()
    assert list(made) == records


def test_a_record_is_in_the_file_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    made = journal(tmp_path)
    made.append(prediction())
    assert list(journal(tmp_path)) == [prediction()]
    assert made.path.read_bytes().startswith(b'{"schema_version":1,"sample_id":"swe/1/1"')
    made.close()


WHOLE = line(prediction("swe/2/1", text="two"))
TAILS = {
    # name: (bytes behind a good record, samples read, torn bytes quarantined, bad lines)
    "nothing": (b"", 1, b"", []),
    "a whole record without its newline": (WHOLE[:-1], 2, b"", []),
    "cut in the middle": (WHOLE[:40], 1, WHOLE[:40], []),
    "one byte": (b"{", 1, b"{", []),
    "cut inside a character": (b'{"sample_id": "\xe2\x80', 1, b'{"sample_id": "\xe2\x80', []),
    "null as a line": (b"null\n", 1, b"", [2]),
    "null without newline": (b"null", 1, b"null", []),
    "a record of another kind": (b'{"a": 1}\n', 1, b"", [2]),
    "a line cut by a crash, then a good one": (WHOLE[:40] + b"\n" + WHOLE, 2, b"", [2]),
    "zero bytes": (b"\x00" * 5000, 1, b"\x00" * 5000, []),
    "binary junk in lines": (b"\xff\xfe\n\x80\x81" + b"\n" + WHOLE, 2, b"", [2, 3]),
    "binary junk at the end": (b"\xff\xfe\x00", 1, b"\xff\xfe\x00", []),
    "nested beyond any sense": (b"[" * 100_000 + b"\n", 1, b"", [2]),
    "a large cut record": (b'{"text": "' + b"x" * 3_000_000, 1, b'{"text": "' + b"x" * 3_000_000, []),
    "blank lines": (b"\n \n", 1, b"", []),
    "blanks without newline": (b"   ", 1, b"   ", []),
    "Windows line end": (WHOLE[:-1] + b"\r\n", 2, b"", []),
    "an unknown field": (WHOLE[:-2] + b',"more":1}\n', 1, b"", [2]),
    "a later schema": (WHOLE.replace(b'"schema_version":1', b'"schema_version":2'), 1, b"", [2]),
}  # fmt: skip


@pytest.mark.parametrize("name", TAILS)
def test_tails(tmp_path: Path, name: str) -> None:
    tail, samples, torn, bad = TAILS[name]
    good = line(prediction())
    path = tmp_path / "predictions.jsonl"
    path.write_bytes(good + tail)

    made = journal(tmp_path)
    assert (len(made), made.bad_lines) == (samples, bad)
    assert path.read_bytes() == good + tail, "reading changes nothing"

    made.append(prediction("swe/3/1", text="new"))
    made.close()
    assert made.get(("swe/3/1", 1)) == prediction("swe/3/1", text="new")
    again = journal(tmp_path)
    assert (len(again), again.bad_lines) == (samples + 1, bad)
    assert list(again) == list(made)
    quarantine = tmp_path / "predictions.jsonl.torn"
    assert (quarantine.read_bytes() if quarantine.exists() else b"") == (torn + b"\n" if torn else b"")
    kept = good + tail if not torn else good
    assert path.read_bytes().startswith(kept.removesuffix(b"\n") + b"\n")


def test_a_second_torn_tail_is_added_to_the_first(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    for number in (1, 2):
        path.write_bytes((path.read_bytes() if path.exists() else b"") + b'{"cut%d' % number)
        written(tmp_path, prediction(f"swe/{number}/1"))
    assert (tmp_path / "predictions.jsonl.torn").read_bytes() == b'{"cut1\n{"cut2\n'
    assert len(journal(tmp_path)) == 2


@given(st.binary(max_size=60), st.integers(0, 200))
def test_any_tail_leaves_what_was_whole(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("tail")
    (folder / "predictions.jsonl").write_bytes(line(prediction()) + junk + WHOLE[: min(cut, len(WHOLE) - 2)])
    written(folder, prediction("swe/3/1"))
    found = {record.sample_id for record in journal(folder)}
    assert {"swe/1/1", "swe/3/1"} <= found


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COUNT = st.none() | st.integers(0, 2**40)
FINITE = st.none() | st.floats(0, 1e9)
USAGE = st.builds(Usage, prompt_tokens=COUNT, completion_tokens=COUNT)
FAILURE = st.none() | st.builds(Failure, kind=st.sampled_from(FailureKind), message=TEXT, status=COUNT)
ATTEMPTS = st.lists(
    st.builds(
        Attempt, outcome=st.just("ok") | st.sampled_from(FailureKind), seconds=st.floats(0, 9), reply=TEXT
    ),
    max_size=2,
).map(tuple)
PREDICTIONS = st.builds(
    Prediction, sample_id=TEXT, row_hash=TEXT, epoch=st.integers(1, 3), text=st.none() | TEXT,
    observation=st.none() | TEXT, failure=FAILURE, usage=USAGE, cost_usd=FINITE, seconds=FINITE, prompt_sha256=TEXT,
    attempts=ATTEMPTS, notes=st.lists(TEXT, max_size=2).map(tuple), started_at=TEXT,
)  # fmt: skip


@given(st.lists(PREDICTIONS, max_size=6))
def test_records_round_trip(tmp_path_factory: pytest.TempPathFactory, records: list[Prediction]) -> None:
    folder = tmp_path_factory.mktemp("journal")
    for record in records:
        written(folder, record)
    last = {record.key: record for record in records}
    read = journal(folder)
    assert read.bad_lines == []
    assert {record.key: record for record in read} == last
    assert all(read.get(key) == record for key, record in last.items())


@given(
    st.builds(
        SampleMetrics,
        sample_id=TEXT,
        applicable=st.just(("a",)),
        values=st.dictionaries(TEXT, st.floats(0, 1)),
    )
)
def test_metrics_round_trip(tmp_path_factory: pytest.TempPathFactory, record: SampleMetrics) -> None:
    store = Store(tmp_path_factory.mktemp("metrics"))
    assert list(store.read_metrics()) == []
    store.write_metrics([record, record])
    assert list(store.read_metrics()) == [record, record]


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_lone_surrogates_never_reach_a_file(tmp_path: Path, half: str) -> None:
    made = journal(tmp_path)
    with pytest.raises(ValueError):
        made.append(prediction(text=half))
    made.append(prediction("swe/2/1"))
    made.close()
    assert list(journal(tmp_path)) == [prediction("swe/2/1")]
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    with pytest.raises(ValueError):
        Store(tmp_path).write_json("run.json", RUN | {"model": half})
    assert Store(tmp_path).read_json("run.json") == RUN
    assert sorted(path.name for path in tmp_path.iterdir()) == ["predictions.jsonl", "run.json"]


def test_a_small_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.write_json("run.json", RUN)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "reader").hardlink_to(tmp_path / "run.json")
    store.write_json("run.json", RUN | {"first": 1})
    assert Store(tmp_path).read_json("reader") == RUN, "who has the old file open reads the old file"
    (tmp_path / "reader").unlink()
    store.write_json("run.json", RUN)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"run\.json: cannot be written \(No space left on device\)"):
            store.write_json("run.json", RUN | {"new": True})
    assert store.read_json("run.json") == RUN
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Writing fails where a file would grow beyond `size` bytes, in the middle of a record."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_is_a_store_error_and_can_be_mended(tmp_path: Path) -> None:
    first, second = prediction(), prediction("swe/2/1")
    made = journal(tmp_path)
    made.append(first)
    size = made.path.stat().st_size
    with no_file_beyond(size + 40):
        with pytest.raises(
            StoreError, match=r"predictions\.jsonl: cannot be written .*what was written stays"
        ):
            made.append(second)
        assert made.path.stat().st_size == size + 40
    assert list(made) == [first]
    made.append(second)
    made.close()
    assert list(made) == list(journal(tmp_path)) == [first, second]
    assert (tmp_path / "predictions.jsonl.torn").stat().st_size == 41
