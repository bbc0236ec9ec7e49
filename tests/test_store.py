"""Tests of the files of one run directory (`store.py`): small files, and questions about the journals.

How journals are written and read: `test_journal.py`. Locks and damaged directories:
`test_run_directory.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import StoreError
from agentworldbench.records import Failure, FailureKind, Prediction, SampleMetrics, Verdict
from agentworldbench.run_record import RunRecord
from agentworldbench.store import Store
from agentworldbench.texts import sha256_text

RUN = RunRecord.model_validate(
    {
        "created_at": "2026-01-01T00:00:00Z",
        "protocol": "builtin",
        "predict": {
            "data": {"name": "mini", "repository": None, "revision": None, "files": {"swe": "0" * 64}},
            "tasks": {"swe": "t"},
            "extraction": "e",
            "model": {"model": "baseline/empty", "backend": "baseline", "name": "empty"},
            "sampling": {"swe": {"temperature": 0.6, "seed": "server default"}},
            "max_context": None,
            "min_output": 512,
        },
        "selection": {
            "data": "mini",
            "tasks": (),
            "limit": "1",
            "limit_trajectories": None,
            "sample_id": (),
            "seed": None,
            "samples": {"swe": 1},
        },
        "judges": (),
        "sessions": (),
    }
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def prediction(name: str = "swe/1/1", observation: str | None = "x", **changes: Any) -> Prediction:
    fields = {"row_hash": "r", "prompt_sha256": "p", "started_at": "t", "observation": observation}
    return Prediction.model_validate({"sample_id": name, **fields, **changes})


def failed(name: str = "swe/1/1") -> Prediction:
    return prediction(name, None, failure=Failure(kind=FailureKind.TIMEOUT, message="late"))


def verdict(name: str = "swe/1/1", **changes: Any) -> Verdict:
    fields = {
        "row_hash": "r",
        "prompt_sha256": "p",
        "started_at": "t",
        "judge": "j",
        "observation_sha256": sha256_text("x"),
        "system_sha256": "s",
    }
    return Verdict.model_validate({"sample_id": name, **fields, **changes})


def filled(path: Path, *records: Prediction | Verdict) -> Store:
    store = Store(path)
    for record in records:
        if isinstance(record, Prediction):
            store.predictions.append(record)
        else:
            store.verdicts.append(record)
    store.close()
    return store


# --- small files -------------------------------------------------------------------------------


def test_the_record_of_a_run_round_trips(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert (store.read_run(), store.read_results()) == (None, None)
    store.write_run(RUN)
    assert Store(tmp_path).read_run() == RUN
    stored = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert stored == RUN.model_dump(mode="json")
    assert stored["schema_version"] == 1


def test_results_are_forgotten_once_they_are_untrue(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.forget_results()
    store.write_json("results.json", {"a": 1})
    assert store.read_results() == {"a": 1}
    store.forget_results()
    assert store.read_results() is None


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
def test_lone_surrogates_never_reach_a_small_file(tmp_path: Path, half: str) -> None:
    store = Store(tmp_path)
    store.write_run(RUN)
    with pytest.raises(ValueError):
        store.write_json("run.json", {"model": half})
    with pytest.raises(ValueError):
        store.write_run(RUN.model_copy(update={"protocol": half}))
    assert store.read_run() == RUN
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_small_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = RUN.model_copy(update={"created_at": "2027-01-01T00:00:00Z"})
    store = Store(tmp_path)
    store.write_run(RUN)
    before = (tmp_path / "run.json").read_bytes()

    (tmp_path / "reader").hardlink_to(tmp_path / "run.json")
    store.write_run(other)
    assert (tmp_path / "reader").read_bytes() == before, "who has the old file open reads the old file"
    assert store.read_run() == other
    (tmp_path / "reader").unlink()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"run\.json: cannot be written \(No space left on device\)"):
            store.write_run(RUN)
    assert store.read_run() == other
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


# --- questions about the journals --------------------------------------------------------------

GOOD = prediction()
ON_GOOD = verdict()
VERDICT_ON: dict[str, tuple[Prediction, Verdict, dict[str, Any], bool]] = {
    # name: (prediction asked about, verdict stored, other words of the question, whether it counts)
    "on this observation, under this prompt": (GOOD, ON_GOOD, {}, True),
    "a failed verdict on it": (
        GOOD,
        verdict(failure=Failure(kind=FailureKind.JUDGE_UNPARSED, message="prose")),
        {},
        True,
    ),
    "an older observation": (prediction(observation="y"), ON_GOOD, {}, False),
    "the prediction failed meanwhile": (failed(), ON_GOOD, {}, False),
    "another system prompt": (GOOD, verdict(system_sha256="older"), {}, False),
    "another judge": (GOOD, verdict(judge="k"), {}, False),
    "another sample": (GOOD, verdict("swe/2/1"), {}, False),
    "another epoch": (GOOD, verdict(epoch=2), {}, False),
    "of the second epoch": (prediction(epoch=2), verdict(epoch=2), {}, True),
    "another repeat": (GOOD, verdict(repeat=2), {}, False),
    "the second repeat": (GOOD, verdict(repeat=2), {"repeat": 2}, True),
    "an observation of no character": (
        prediction(observation=""),
        verdict(observation_sha256=sha256_text("")),
        {},
        True,
    ),
}


@pytest.mark.parametrize("name", VERDICT_ON)
def test_which_verdict_counts(tmp_path: Path, name: str) -> None:
    asked, stored, words, counts = VERDICT_ON[name]
    store = filled(tmp_path, stored)
    assert store.verdict_on(asked, "j", "strict", "s", **words) == (stored if counts else None)


def test_a_verdict_given_again_counts_again(tmp_path: Path) -> None:
    again = verdict(system_sha256="newer")
    store = filled(tmp_path, ON_GOOD, again)
    assert store.verdict_on(GOOD, "j", "strict", "newer") == again
    assert store.verdict_on(GOOD, "j", "strict", "s") is None, "the last record of a key counts"


HAS_ANSWERS: dict[str, tuple[list[Prediction | Verdict], bool]] = {
    "nothing": ([], False),
    "failures alone": ([failed(), failed("swe/2/1")], False),
    "a failure, asked again with success": ([failed(), GOOD], True),
    "one good answer among failures": ([failed(), prediction("swe/2/1")], True),
    "an observation of no character": ([prediction(observation="")], True),
    "a verdict": ([verdict()], True),
}


@pytest.mark.parametrize("name", HAS_ANSWERS)
def test_whether_a_directory_has_answers(tmp_path: Path, name: str) -> None:
    records, expected = HAS_ANSWERS[name]
    filled(tmp_path, *records)
    assert Store(tmp_path).has_answers() is expected


@pytest.mark.parametrize("name", ["predictions.jsonl", "verdicts.jsonl"])
def test_a_line_that_cannot_be_read_may_have_been_an_answer(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"junk\n")
    assert Store(tmp_path).has_answers()


def test_journals_without_an_answer_are_set_aside(tmp_path: Path) -> None:
    store = filled(tmp_path, failed())
    before = (tmp_path / "predictions.jsonl").read_bytes()
    store.set_aside()
    assert (tmp_path / "predictions.jsonl.old").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["predictions.jsonl.old"]
    assert (len(store.predictions), len(store.verdicts)) == (0, 0)
    store.predictions.append(GOOD)
    store.verdicts.append(ON_GOOD)
    store.close()
    again = Store(tmp_path)
    assert (list(again.predictions), list(again.verdicts)) == ([GOOD], [ON_GOOD])
    assert (tmp_path / "predictions.jsonl.old").read_bytes() == before


def test_judges_with_verdicts(tmp_path: Path) -> None:
    assert Store(tmp_path).judges_with_verdicts() == set()
    failure = Failure(kind=FailureKind.TIMEOUT, message="late")
    filled(tmp_path, GOOD, verdict(), verdict("swe/2/1"), verdict(judge="k", failure=failure))
    assert Store(tmp_path).judges_with_verdicts() == {"j", "k"}


def test_notices_name_the_lines_that_cannot_be_read(tmp_path: Path) -> None:
    assert Store(tmp_path).notices() == []
    store = filled(tmp_path, GOOD, ON_GOOD)
    assert store.notices() == []
    with (tmp_path / "predictions.jsonl").open("ab") as file:
        file.write(b"null\njunk\n" + GOOD.model_dump_json().encode() + b"\n[]\n")
    with (tmp_path / "verdicts.jsonl").open("ab") as file:
        file.write(b"x\n" * 7 + b'{"torn')
    assert Store(tmp_path).notices() == [
        f"{tmp_path / 'predictions.jsonl'}: line 2, 3, 5 cannot be read and is left out",
        f"{tmp_path / 'verdicts.jsonl'}: line 2, 3, 4, 5, 6 and 2 more cannot be read and is left out",
    ]
