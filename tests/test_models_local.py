"""Models without a server: the four baselines, and the routing of names.

Baselines hand over an observation made from the sample alone. The routing table is data: model
string and base URL to backend. Replays have tests of their own.
"""

from __future__ import annotations

import asyncio

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.models import Connection, create_model
from agentworldbench.records import (
    CallFailure,
    Completion,
    Request,
    Sample,
    Sampling,
)
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
    assert model.url == url
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
