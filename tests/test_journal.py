"""Tests of `journal.py`: what survives a kill, a full disk and bad bytes, and what is never asked again.

Torn tails are data (`TAILS`): what stands behind a good record, and what a writer makes of it. Lines
that another version of the harness wrote (`OTHER_VERSIONS`) are refused when the journal is opened.
"""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.errors import StoreError
from agentworldbench.journal import Journal, is_unfinished
from agentworldbench.records import Attempt, Failure, FailureKind, Prediction, Usage, Verdict


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
        "system_sha256": "s",
    }
    return Verdict.model_validate({"sample_id": name, **fields, **changes})


def line(record: Prediction) -> bytes:
    return record.model_dump_json(exclude_none=True).encode() + b"\n"


def journal(path: Path) -> Journal[Prediction]:
    return Journal(path / "predictions.jsonl", Prediction)


def written(path: Path, *records: Prediction) -> bytes:
    made = journal(path)
    for record in records:
        made.append(record)
    made.close()
    return made.path.read_bytes()


def test_the_line_of_a_record_is_that_of_its_last_one(tmp_path: Path) -> None:
    one, two = prediction("swe/1/1", text="a"), prediction("swe/2/1", text="two")
    written(tmp_path, one, two)
    with (tmp_path / "predictions.jsonl").open("ab") as file:
        file.write(b"no record\n")
    written(tmp_path, prediction("swe/1/1", text="b"))
    made = journal(tmp_path)
    assert made.lines([one.key, two.key, ("swe/3/1", 1)]) == {one.key: 4, two.key: 2}
    assert made.lines([]) == {}
    assert (tmp_path / "predictions.jsonl").read_bytes().split(b"\n")[3] == line(
        prediction("swe/1/1", text="b")
    ).strip()


@given(st.lists(st.integers(1, 400), max_size=6))
@settings(max_examples=30)
def test_a_journal_that_grows_is_read_on_in_whole_lines(cuts: list[int]) -> None:
    records = [
        prediction("swe/1/1", text="a"),
        prediction("swe/2/1", text="é\u2028"),
        prediction("swe/1/1", text="b"),
    ]
    whole = b"".join(map(line, records[:2])) + b"no record\n" + line(records[2])
    with TemporaryDirectory() as folder:
        made, seen, known = journal(Path(folder)), list[Prediction](), 0
        for end in [*sorted(min(cut, len(whole)) for cut in cuts), len(whole)]:
            with made.path.open("ab") as file:
                file.write(whole[known:end])
            known = end
            seen += made.news()
            assert list(made.every_line()) == seen
            assert made.size <= known
            fresh = journal(Path(folder))
            assert (list(fresh), fresh.bad_lines) == (list(made), made.bad_lines)
        assert (seen, made.bad_lines, list(made.news())) == (records, [3], [])


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
    assert list(made.keys()) == [
        ("swe/1/1", 1, "j", 1),
        ("swe/1/1", 1, "k", 1),
        ("swe/1/1", 1, "j", 2),
        ("swe/1/1", 2, "j", 1),
        ("swe/2/1", 1, "j", 1),
    ]


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
    "a line cut by a crash, then a good one": (WHOLE[:40] + b"\n" + WHOLE, 2, b"", [2]),
    "zero bytes": (b"\x00" * 5000, 1, b"\x00" * 5000, []),
    "binary junk in lines": (b"\xff\xfe\n\x80\x81" + b"\n" + WHOLE, 2, b"", [2, 3]),
    "binary junk at the end": (b"\xff\xfe\x00", 1, b"\xff\xfe\x00", []),
    "nested beyond any sense": (b"[" * 100_000 + b"\n", 1, b"", [2]),
    "a large cut record": (b'{"text": "' + b"x" * 3_000_000, 1, b'{"text": "' + b"x" * 3_000_000, []),
    "blank lines": (b"\n \n", 1, b"", []),
    "blanks without newline": (b"   ", 1, b"   ", []),
    "nulls written out": (prediction("swe/2/1").model_dump_json().encode() + b"\n", 2, b"", []),
    "a required field is missing": (b'{"sample_id":"swe/2/1"}\n', 1, b"", [2]),
    "a value of another type": (WHOLE.replace(b'"two"', b"2"), 1, b"", [2]),
    "Windows line end": (WHOLE[:-1] + b"\r\n", 2, b"", []),
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


OTHER_VERSIONS = {
    "an unknown field": WHOLE[:-2] + b',"more":1}\n',
    "an unknown field in the last line, cut before its newline": WHOLE[:-2] + b',"more":1}',
    "an unknown field of a part": WHOLE.replace(b'"usage":{', b'"usage":{"audio_tokens":1'),
    "a later schema": WHOLE.replace(b'"schema_version":1', b'"schema_version":2'),
    "an earlier schema": WHOLE.replace(b'"schema_version":1', b'"schema_version":0'),
    "a schema in words": WHOLE.replace(b'"schema_version":1', b'"schema_version":"1.1"'),
    "a record of another kind": b'{"a": 1}\n',
}


@pytest.mark.parametrize("name", OTHER_VERSIONS)
def test_a_record_of_another_version_is_refused_at_opening(tmp_path: Path, name: str) -> None:
    good, other = line(prediction()), OTHER_VERSIONS[name]
    assert json.loads(other), "a whole record, only not one of ours"
    path = tmp_path / "predictions.jsonl"
    content = good + b"junk\n" + other + (good if other.endswith(b"\n") else b"")
    path.write_bytes(content)
    place = re.escape(
        f"{path}:3: written by another version of awb; use that one, or choose another --output"
    )
    with pytest.raises(StoreError, match=f"^{place}$"):
        journal(tmp_path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["predictions.jsonl"]


def test_what_is_not_known_is_not_written(tmp_path: Path) -> None:
    (content,) = written(tmp_path, prediction(usage=Usage(prompt_tokens=3))).splitlines()
    assert json.loads(content) == {
        "schema_version": 1,
        "sample_id": "swe/1/1",
        "row_hash": "r",
        "epoch": 1,
        "tool_calls": False,
        "usage": {"prompt_tokens": 3},
        "dropped_turns": 0,
        "cache_breakpoints": 0,
        "adapted": {},
        "prompt_sha256": "p",
        "attempts": [],
        "notes": [],
        "started_at": "2026-01-01T00:00:00Z",
    }
    made: Journal[Verdict] = Journal(tmp_path / "verdicts.jsonl", Verdict)
    made.append(verdict(adapted={"temperature": None}))
    made.close()
    stored = json.loads(made.path.read_bytes())
    assert (stored["schema_version"], stored["epoch"], stored["repeat"]) == (1, 1, 1)
    assert stored["adapted"] == {"temperature": None}, "None there means: left out of the request"


def test_every_line_counts_what_was_superseded_too(tmp_path: Path) -> None:
    assert list(journal(tmp_path).every_line()) == []
    first, other, last = prediction(text="first"), prediction("swe/2/1"), prediction(text="last")
    path = tmp_path / "predictions.jsonl"
    path.write_bytes(line(first) + b"junk\n" + line(other) + line(last) + b'{"sample_id": "cut')
    made = journal(tmp_path)
    assert list(made.every_line()) == [first, other, last]
    assert list(made) == [other, last]
    assert list(made.keys()) == [("swe/1/1", 1), ("swe/2/1", 1)]


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
WORD = st.none() | TEXT
COUNT = st.none() | st.integers(0, 2**40)
FINITE = st.none() | st.floats(0, 1e9)
JSON = st.recursive(
    COUNT | FINITE | TEXT | st.booleans(), lambda one: st.lists(one, max_size=2), max_leaves=3
)
USAGE = st.builds(Usage, **dict.fromkeys(Usage.model_fields, COUNT))
FAILURE = st.none() | st.builds(Failure, kind=st.sampled_from(FailureKind), message=TEXT, status=COUNT)
ATTEMPT = st.builds(
    Attempt, outcome=st.just("ok") | st.sampled_from(FailureKind), seconds=st.floats(0, 9), status=COUNT, message=WORD,
    usage=USAGE, cost_usd=FINITE, reply=WORD, finish_reason=WORD,
)  # fmt: skip
ASKED: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("sample_id", "row_hash", "prompt_sha256", "started_at"), TEXT),
    **dict.fromkeys(("reasoning", "finish_reason", "refusal", "model_served", "response_id", "fingerprint"), WORD),
    **dict.fromkeys(("cost_usd", "seconds"), FINITE),
    "epoch": st.integers(1, 3),
    "failure": FAILURE,
    "tool_calls": st.booleans(),
    "usage": USAGE,
    "max_tokens": COUNT,
    "adapted": st.dictionaries(TEXT, JSON, max_size=2),
    "attempts": st.lists(ATTEMPT, max_size=2).map(tuple),
    "notes": st.lists(TEXT, max_size=2).map(tuple),
}  # fmt: skip
PREDICTIONS = st.builds(Prediction, **ASKED, observation=WORD, text=WORD)
VERDICTS = st.builds(
    Verdict, **ASKED, judge=TEXT, repeat=st.integers(1, 3), observation_sha256=TEXT, system_sha256=TEXT, reply=WORD,
    scores=st.none() | st.dictionaries(TEXT, st.integers(1, 5), max_size=5),
    **dict.fromkeys(("strengths", "weaknesses"), st.lists(TEXT, max_size=2).map(tuple)),
)  # fmt: skip


@settings(max_examples=50)
@given(st.lists(PREDICTIONS, max_size=6))
def test_predictions_round_trip(tmp_path_factory: pytest.TempPathFactory, records: list[Prediction]) -> None:
    folder = tmp_path_factory.mktemp("journal")
    for record in records:
        written(folder, record)
    read = journal(folder)
    assert read.bad_lines == []
    assert list(read.every_line()) == records
    last = {record.key: record for record in records if not is_unfinished(record)}
    assert {record.key: record for record in read} == last
    assert all(read.get(key) == record for key, record in last.items())


@settings(max_examples=50)
@given(st.lists(VERDICTS, max_size=3))
def test_verdicts_round_trip(tmp_path_factory: pytest.TempPathFactory, records: list[Verdict]) -> None:
    made: Journal[Verdict] = Journal(tmp_path_factory.mktemp("journal") / "verdicts.jsonl", Verdict)
    for record in records:
        made.append(record)
    made.close()
    read: Journal[Verdict] = Journal(made.path, Verdict)
    assert (list(read.every_line()), read.bad_lines) == (records, [])
    last = {record.key: record for record in records if not is_unfinished(record)}
    assert {record.key: record for record in read} == last


def test_what_was_given_up_counts_as_money_and_is_no_record_of_its_key(tmp_path: Path) -> None:
    """In whatever order the lines stand: not before a good record, and not after one."""
    good = prediction()
    given_up = good.model_copy(
        update={"failure": Failure(kind=FailureKind.NOT_RUN, message="given up"), "cost_usd": 0.5}
    )
    for order in ([given_up], [given_up, good], [good, given_up]):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        made = journal(folder)
        for record in order:
            made.append(record)
        made.close()
        for seen in (made, journal(folder)):
            expected = good if good in order else None
            assert seen.get(good.key) == expected
            assert (good.key in seen) is (expected is not None)
            assert list(seen) == ([good] if expected else [])
            assert list(seen.every_line()) == order


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_lone_surrogates_never_reach_a_journal(tmp_path: Path, half: str) -> None:
    made = journal(tmp_path)
    with pytest.raises(ValueError):
        made.append(prediction(text=half))
    made.append(prediction("swe/2/1"))
    made.close()
    assert list(journal(tmp_path)) == [prediction("swe/2/1")]


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
