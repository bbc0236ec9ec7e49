"""Replays of runs and of files: what is given back, what is read again, what is refused.

A stored reply comes back as it was, whatever the earlier run made of it; only where no reply came is
its failure the answer. An answer to another row, or none, is `not_in_replay`.
"""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.models import Connection, create_model
from agentworldbench.models.replay import ReplayModel
from agentworldbench.observation import read_reply
from agentworldbench.records import (
    Attempt,
    CallFailure,
    Completion,
    Failure,
    FailureKind,
    Prediction,
    Request,
    Sample,
    Sampling,
    Usage,
)
from agentworldbench.run import evaluate
from agentworldbench.store import locked_store
from tests.helpers.asking import TASKS, make_sample


def answer(model: str, sample: Sample, epoch: int = 1) -> Completion | CallFailure:
    made = create_model(model, Connection(), TASKS)
    request = Request(sample=sample, messages=(), sampling=Sampling(temperature=0.5), epoch=epoch)

    async def run() -> Completion | CallFailure:
        await made.check()
        try:
            return await made.generate(request)
        finally:
            await made.close()

    return asyncio.run(run())


def write_lines(path: Path, *rows: Any) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_a_file_is_replayed_by_sample_and_epoch(tmp_path: Path) -> None:
    sample = make_sample()
    file = write_lines(
        tmp_path / "answers.jsonl",
        {"sample_id": sample.id, "text": "old"},
        {"sample_id": sample.id, "text": "<think>a</think>new\u2028line"},
        {"sample_id": sample.id, "observation": "second epoch", "epoch": 2, "more": "is ignored"},
        f'{{"sample_id": "{make_sample(3).id}", "text": "x\\ud835y"}}',
    )
    first, second = answer(f"replay/{file}", sample), answer(f"replay/{file}", sample, epoch=2)
    assert isinstance(first, Completion)
    assert (first.text, first.observation) == ("<think>a</think>new\u2028line", None)
    assert isinstance(second, Completion)
    assert (second.text, second.observation) == (None, "second epoch")
    third = answer(f"replay/{file}", make_sample(3))
    assert isinstance(third, Completion)
    assert third.text == "x�y"
    missing = answer(f"replay/{file}", make_sample(5))
    assert isinstance(missing, CallFailure)
    assert missing.failure.kind == "not_in_replay"


BAD_LINES = {
    "no JSON": "{",
    "no object": "[]",
    "no sample": {"text": "x"},
    "a number as sample": {"sample_id": 3, "text": "x"},
    "neither text nor observation": {"sample_id": "a"},
    "both": {"sample_id": "a", "text": "x", "observation": "y"},
    "text that is null": {"sample_id": "a", "text": None},
    "an epoch in words": {"sample_id": "a", "text": "x", "epoch": "two"},
    "an epoch that is null": {"sample_id": "a", "text": "x", "epoch": None},
    "epoch 0": {"sample_id": "a", "text": "x", "epoch": 0},
    "nested beyond reason": "[" * 100_000,
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_by_file_and_number(name: str, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "answers.jsonl", {"sample_id": "a", "text": "x"}, "", BAD_LINES[name])
    with pytest.raises(DataError, match=r"answers\.jsonl:3: "):
        ReplayModel(f"replay/{file}")


def test_a_packed_file_is_refused_by_name_and_not_opened(tmp_path: Path) -> None:
    """DS-10: an .eval log of another program, a bomb or a path out of the folder may be in it."""
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../x", b"0" * 1_000_000)
    with pytest.raises(DataError, match=r"log\.eval:1: this is a zip archive"):
        ReplayModel(f"replay/{file}")
    assert list(tmp_path.iterdir()) == [file]


def prediction(sample: Sample, **fields: Any) -> Prediction:
    record = {
        "sample_id": sample.id,
        "row_hash": sample.ref.row_hash,
        "prompt_sha256": "0",
        "started_at": "now",
    }
    return Prediction(**record | fields)


def test_a_run_is_replayed_with_its_failures(tmp_path: Path) -> None:
    run = tmp_path / "run"
    samples = [make_sample(turns) for turns in range(1, 7)]
    refused = Failure(kind=FailureKind.REFUSED, message="no")
    timeout = Failure(kind=FailureKind.TIMEOUT, message="late")
    with locked_store(run) as store:
        store.write_json("run.json", {"predict": {}, "selection": {}, "judges": []})
        store.predictions.append(prediction(samples[0], text="stale", observation="stale"))
        store.predictions.append(
            prediction(
                samples[0],
                text="<think>t</think>said",
                observation="said",
                finish_reason="length",
                model_served="big",
                cost_usd=0.5,
            )
        )
        store.predictions.append(prediction(samples[1], observation=""))
        store.predictions.append(prediction(samples[2], failure=refused))
        attempts = (Attempt(outcome=FailureKind.TIMEOUT, seconds=1.0),)
        store.predictions.append(prediction(samples[3], failure=timeout, attempts=attempts))
    said, empty, failed, late, missing, _ = (answer(f"replay/{run}", sample) for sample in samples)
    assert said == Completion(
        text="<think>t</think>said", finish_reason="length", model_served="big", cost_usd=0.0
    )
    assert empty == Completion(observation="", cost_usd=0.0)
    assert failed == CallFailure(failure=refused, cost_usd=0.0)
    for outcome, words in ((late, "late"), (missing, "no such sample")):
        assert isinstance(outcome, CallFailure)
        assert outcome.failure.kind == "not_in_replay"
        assert words in outcome.failure.message


RUN = {"predict": {"model": {"model": "openai-api/world"}}, "selection": {}, "judges": []}
READ_AGAIN: dict[str, tuple[dict[str, Any], str | None]] = {
    # fields of the stored prediction, and what reading the replayed answer gives today (None: it has a text)
    "cut": ({"text": "tot", "finish_reason": "length"}, "truncated"),
    "cut before any text": ({"finish_reason": "length", "reasoning": "hm"}, "truncated"),
    "refused": ({"text": None, "finish_reason": "stop", "refusal": "I will not."}, "refused"),
    "a tool call": ({"finish_reason": "tool_calls", "tool_calls": True}, "tool_call"),
    "filtered": ({"text": "to", "finish_reason": "content_filter"}, "content_filter"),
    "blank": ({"text": " "}, "empty"),
    "a failure by rules that are no more": ({"text": "total 2", "finish_reason": "stop"}, None),
}


@pytest.mark.parametrize("name", READ_AGAIN)
def test_a_stored_reply_is_read_again_whatever_was_made_of_it(name: str, tmp_path: Path) -> None:
    fields, kind = READ_AGAIN[name]
    sample, usage = make_sample(), Usage(prompt_tokens=5, completion_tokens=5)
    served = {"model_served": "m", "response_id": "r1", "fingerprint": "f1", "adapted": {"top_p": None}}
    stored = prediction(
        sample,
        failure=Failure(kind=FailureKind.EMPTY, message="once"),
        usage=usage,
        cost_usd=0.5,
        **fields | served,
    )
    with locked_store(tmp_path / "run") as store:
        store.write_json("run.json", RUN)
        store.predictions.append(stored)
    outcome = answer(f"replay/{tmp_path / 'run'}", sample)
    assert isinstance(outcome, Completion)
    assert outcome == Completion(**fields | served, cost_usd=0.0), "usage and cost were counted once"
    read = read_reply(outcome, "predicted_observation", "**Environment Observation:**", stops_sent=False)
    observation, failure = read.observation, read.failure
    assert (failure and failure.kind, observation) == (kind, None if kind else "total 2")


def test_an_answer_to_another_row_is_not_replayed(tmp_path: Path) -> None:
    sample = make_sample()
    with locked_store(tmp_path / "run") as store:
        store.write_json("run.json", RUN)
        store.predictions.append(prediction(sample, text="x", finish_reason="stop", row_hash="1" * 64))
    outcome = answer(f"replay/{tmp_path / 'run'}", sample)
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "not_in_replay"
    assert "another row" in outcome.failure.message


RUN_FILES: dict[str, tuple[Any, str | None]] = {
    "a model": (RUN, "openai-api/world"),
    "half a surrogate": ({"predict": {"model": {"model": "x\ud835"}}}, "x�"),
    "a number": ({"predict": {"model": {"model": 3}}}, None),
    "no model": ({"predict": {}}, None),
    "a list": ([], None),
    "text": ({"predict": "model"}, None),
}


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_replay_names_the_model_it_replays(name: str, tmp_path: Path) -> None:
    content, replayed = RUN_FILES[name]
    with locked_store(tmp_path / "run") as store:
        store.predictions.append(prediction(make_sample(), text="x"))
    (tmp_path / "run" / "run.json").write_text(json.dumps(content), encoding="utf-8")
    assert ReplayModel(f"replay/{tmp_path / 'run'}").identity()["replayed"] == replayed


def test_a_replay_is_named_by_what_it_holds(tmp_path: Path) -> None:
    row = {"sample_id": "a", "text": "x"}
    one, same = write_lines(tmp_path / "one.jsonl", row), write_lines(tmp_path / "same.jsonl", row)
    other = write_lines(tmp_path / "other.jsonl", row, row)
    names = [ReplayModel(f"replay/{file}").identity()["name"] for file in (one, same, other)]
    assert names[0] == names[1] != names[2]
    assert len(names[0]) == 64


def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with locked_store(tmp_path / "fresh") as store:
        store.write_json("run.json", {"predict": {}, "selection": {}, "judges": []})
    for name in ("nowhere", "folder", "fresh"):
        with pytest.raises(ConfigError, match=name):
            create_model(f"replay/{tmp_path / name}", Connection(), TASKS)


def test_answers_to_samples_that_the_data_do_not_have_are_counted_and_said(tmp_path: Path) -> None:
    rows = [
        {"sample_id": f"terminal/{name}/1", "observation": "x"} for name in ("1", "one", "2", "tow\x1b[31m")
    ]
    rows += [{"sample_id": "web/9/1", "text": "of a domain that is not evaluated"}]
    rows += [{"sample_id": "termnal/1/1", "text": "of no domain"}]
    file = write_lines(tmp_path / "answers.jsonl", *rows)
    known, model = {"terminal/1/1", "terminal/2/1", "terminal/3/1"}, ReplayModel(f"replay/{file}")
    assert list(model.unknown(known, ["terminal"])) == [
        f"{file}:2: no sample 'terminal/one/1' in this data; 3 of 6 answers are to unknown samples and are left out"
    ]
    assert list(model.unknown({row["sample_id"] for row in rows}, ["terminal"])) == []
    (line,) = model.unknown({"terminal/one/1", *known}, ["terminal"])
    assert line.startswith(f"{file}:4: ") and line.isprintable()


def test_a_run_says_which_answers_it_left_out(tmp_path: Path) -> None:
    made = evaluate("baseline/empty", data="mini", tasks=("terminal",), limit="2", output=tmp_path / "made")
    first = next(made.predictions()).sample_id
    lines = (made.path / "predictions.jsonl").read_text().replace(f'"{first}"', '"terminal/none/1"')
    (made.path / "predictions.jsonl").write_text(lines)
    told: list[str] = []
    evaluate(
        f"replay/{made.path}", data="mini", tasks=("terminal",), limit="2", output=tmp_path / "again",
        watch=lambda progress: told.extend(progress.notices),
    )  # fmt: skip
    assert (
        f"{made.path / 'predictions.jsonl'}:1: no sample 'terminal/none/1' in this data; 1 of 2 answers are"
        in str(told)
    )
