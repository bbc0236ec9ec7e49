"""Models without a server: the four baselines, replays of runs and files, and the routing of names.

Baselines hand over an observation made from the sample alone; a replay gives back what is stored,
failures included. The routing table is data: model string and base URL to backend.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.models import Connection, create_model
from agentworldbench.models.replay import ReplayModel
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
)
from agentworldbench.store import locked_store
from tests.helpers.asking import TASKS, make_sample

URL = "http://127.0.0.1:9/v1"


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


def observed(model: str, sample: Sample) -> str:
    outcome = answer(model, sample)
    assert isinstance(outcome, Completion)
    assert outcome.text is None, "a baseline hands over an observation, not text to be parsed"
    assert outcome.cost_usd == 0.0
    assert outcome.observation is not None
    return outcome.observation


def first_turn(domain: str, head: str) -> Sample:
    """A turn-1 sample whose prompt begins with `head`."""
    sample = make_sample(1, domain)
    text = f"### Turn 1\n\n**Task Instruction:**\nFind it.\n\n{head}**Action:**\n```\ntap 3\n```"
    return sample.model_copy(update={"prompts": (text + "\n\nNow answer.",), "action": text})


# --- baselines -------------------------------------------------------------------------------

FIRST_TURNS = {
    "current state": ("os", "**Current State:**\ntag\tname\nok\tyes\n\n", "tag\tname\nok\tyes"),
    "current phone state": ("android", "**Current Phone State:**\n[ 0] | Button\n\n", "[ 0] | Button"),
    "empty state": ("web", "**Current State:**\n\n", ""),
    "no state": ("web", "", ""),
    "a heading of another domain": ("terminal", "**Current Phone State:**\n$\n\n", ""),
}


@pytest.mark.parametrize("name", FIRST_TURNS)
@pytest.mark.parametrize("baseline", ["copy-last", "nearest"])
def test_turn_one_answers_the_state_of_the_prompt(baseline: str, name: str) -> None:
    domain, head, expected = FIRST_TURNS[name]
    assert observed(f"baseline/{baseline}", first_turn(domain, head)) == expected


def test_copy_last_answers_the_turn_before() -> None:
    assert observed("baseline/copy-last", make_sample(4)) == "answer 3"


def test_reference_answers_the_truth_and_empty_nothing() -> None:
    assert observed("baseline/reference", make_sample(4)) == "answer 4"
    assert observed("baseline/empty", make_sample(4)) == ""


NEAREST = {
    "exact match early": ("do 1", "answer 1"),
    "exact match in the middle": ("do 2", "answer 2"),
    "a tie goes to the latest": ("do 9", "answer 4"),
    "nothing alike goes to the latest": ("zzz", "answer 4"),
}


@pytest.mark.parametrize("name", NEAREST)
def test_nearest_takes_the_most_similar_action_and_the_latest_on_ties(name: str) -> None:
    action, expected = NEAREST[name]
    assert observed("baseline/nearest", make_sample(5, action=action)) == expected


def test_nearest_compares_actions_not_whole_turns() -> None:
    sample = make_sample(3, action="cat notes.txt")
    long = "x" * 500
    prompts = (
        f"### Turn 1\n{long}\n**Action:**\n```\ncat notes.txt\n```",
        f"### Turn 2\n{long}\n**Action:**\n```\nrm -r build\n```",
        sample.prompts[2],
    )
    assert observed("baseline/nearest", sample.model_copy(update={"prompts": prompts})) == "answer 1"


def test_no_baseline_but_the_reference_sees_the_truth() -> None:
    sample = make_sample(3)
    hidden = sample.model_copy(update={"responses": (*sample.responses[:-1], "the truth")})
    for name in ("copy-last", "nearest", "empty"):
        assert observed(f"baseline/{name}", hidden) == observed(f"baseline/{name}", sample)
    assert observed("baseline/reference", hidden) == "the truth"


# --- replays ---------------------------------------------------------------------------------


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


def prediction(sample: Sample, **fields: Any) -> Prediction:
    record = {"sample_id": sample.id, "row_hash": "0", "prompt_sha256": "0", "started_at": "now"}
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
    assert failed == CallFailure(failure=refused)
    for outcome, words in ((late, "late"), (missing, "no such sample")):
        assert isinstance(outcome, CallFailure)
        assert outcome.failure.kind == "not_in_replay"
        assert words in outcome.failure.message


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


# --- routing ---------------------------------------------------------------------------------

ROUTES: list[tuple[str, str | None, tuple[str, str]]] = [
    ("baseline/copy-last", None, ("baseline", "copy-last")),
    ("openai-api/Qwen/Qwen3-8B", URL, ("openai-api", "Qwen/Qwen3-8B")),
    ("openai-api/m", URL, ("openai-api", "m")),
    ("Qwen/Qwen3-8B", URL, ("openai-api", "Qwen/Qwen3-8B")),
    ("my-model", URL, ("openai-api", "my-model")),
    ("openai", URL, ("openai-api", "openai")),
    ("openai/gpt-4o", URL, ("litellm", "openai/gpt-4o")),
    ("openai/gpt-4o", None, ("litellm", "openai/gpt-4o")),
    ("anthropic/claude-x", None, ("litellm", "anthropic/claude-x")),
    ("openrouter/qwen/qwen3-8b", None, ("litellm", "openrouter/qwen/qwen3-8b")),
    ("hosted_vllm/Qwen/Qwen3-8B", URL, ("litellm", "hosted_vllm/Qwen/Qwen3-8B")),
]


@pytest.mark.parametrize(("name", "url", "backend"), ROUTES)
def test_a_name_leads_to_its_backend(name: str, url: str | None, backend: tuple[str, str]) -> None:
    model = create_model(name, Connection(base_url=url), TASKS)
    identity = model.identity()
    assert (identity["backend"], identity["name"]) == backend
    assert identity["base_url"] == url
    assert (model.name, model.local) == (name, backend[0] == "baseline")


NOWHERE: list[tuple[str, str | None, str]] = [
    ("baseline/copy-lats", None, "did you mean 'copy-last'"),
    ("baseline/", None, "a name must follow"),
    ("baseline", None, "a name must follow"),
    ("replay/", None, "a name must follow"),
    ("openai-api/", URL, "a name must follow"),
    ("openai-api/m", None, "--base-url is missing"),
    ("baseline/empty", URL, "takes no --base-url"),
    ("replay/x", URL, "takes no --base-url"),
    ("Qwen/Qwen3-8B", None, "--base-url"),
    ("nonsense", None, "not a provider"),
    ("", None, "not a provider"),
]


@pytest.mark.parametrize(("name", "url", "words"), NOWHERE)
def test_a_name_that_leads_nowhere_is_refused(name: str, url: str | None, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_model(name, Connection(base_url=url), TASKS)
    assert words in str(caught.value)
