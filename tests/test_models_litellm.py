"""`openai/NAME` with a base URL, which goes through the real LiteLLM: the same servers, the same meaning.

The case files are those of `test_models_openai`; where LiteLLM hides what a server did, the case
says what is left of it (always a transient failure, so the request is tried again). LiteLLM's own
retries, price look-ups and dropped parameters must stay off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from agentworldbench.errors import ConfigError, CredentialsError
from agentworldbench.models import Connection, create_model
from agentworldbench.models.litellm_api import LiteLLMModel, load_litellm
from agentworldbench.models.providers import LITELLM_PROVIDERS
from agentworldbench.records import CallFailure, Completion, Sampling
from tests.helpers.asking import (
    KEY,
    TASKS,
    Talk,
    ask_many,
    ask_once,
    assert_outcome,
    assert_read,
    cases,
    in_litellm,
    make_request,
    reply_of,
    set_key,
)
from tests.helpers.scripted_server import ChatCall, Reply, refuse_parameter

# LiteLLM dumps its typed models with content that its own types do not foresee (parts).
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")

MODEL = "openai/tiny"
USE_OTHER = "Use 'max_completion_tokens' instead."
NO_TEMPERATURE = "temperature not accepted by the endpoint: sent without"
RENAMED = "max_tokens sent as max_completion_tokens"


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch)
        yield


@pytest.fixture(scope="module")
def talk(key: None) -> Iterator[Talk]:
    with Talk(MODEL) as talking:
        yield talking


def ok(call: ChatCall) -> Reply:
    return Reply(content="total 2")


REPLIES = [case for case in cases("models/replies.yaml") if "sdk_alone" not in case.values[0]]


@pytest.mark.parametrize("case", REPLIES)
def test_reply(case: dict[str, Any], talk: Talk) -> None:
    outcome, calls = talk.ask(lambda call: reply_of(case))
    assert len(calls) == 1
    assert_outcome(in_litellm(case), outcome)
    assert_read(in_litellm(case), outcome)


@pytest.mark.parametrize("case", cases("models/errors.yaml"))
def test_refusal(case: dict[str, Any], talk: Talk) -> None:
    outcome, calls = talk.ask(lambda call: reply_of(case))
    assert len(calls) == 1
    assert_outcome(in_litellm(case), outcome)


def test_the_model_is_litellms() -> None:
    model = create_model(MODEL, Connection(base_url="http://127.0.0.1:9/v1"), TASKS)
    assert isinstance(model, LiteLLMModel)
    assert model.identity() == {"backend": "litellm", "name": MODEL}
    assert model.url == "http://127.0.0.1:9/v1"


def test_the_body_holds_what_was_set_and_nothing_else(talk: Talk) -> None:
    _, (call,) = talk.ask(ok)
    assert call.body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "You are a shell."},
            {"role": "user", "content": "What does `ls` print?"},
        ],
    }
    assert call.headers["authorization"] == f"Bearer {KEY}"


def test_parameters_arrive_with_their_types_and_extras_as_given(talk: Talk) -> None:
    extra = {
        "top_k": 20,
        "stop": ["\n\n"],
        "reasoning_effort": "high",
        "chat_template_kwargs": {"enable_thinking": False},
        "temperature": 0.25,
    }
    sampling = Sampling(temperature=0.6, top_p=0.9, seed=0, max_tokens=64, extra=extra)
    _, (call,) = talk.ask(ok, make_request(sampling))
    sent = {name: value for name, value in call.body.items() if name not in ("model", "messages")}
    assert sent == {"top_p": 0.9, "seed": 0, "max_tokens": 64, **extra}
    assert [type(sent[name]) for name in ("max_tokens", "seed", "top_k")] == [int, int, int]


def test_messages_arrive_word_for_word(talk: Talk) -> None:
    text = "  \n\x1b[31mé\u2028\U0001f600<think>\r\n  "
    _, (call,) = talk.ask(ok, make_request(text=text))
    assert call.last_user == text


REFUSALS = {
    "max_tokens": (refuse_parameter("max_tokens", USE_OTHER, ok), (RENAMED,)),
    "temperature": (
        refuse_parameter("temperature", "Only the default (1) is supported.", ok, allowed=(1,)),
        (NO_TEMPERATURE,),
    ),
    "both": (
        refuse_parameter("temperature", "", refuse_parameter("max_tokens", USE_OTHER, ok)),
        (RENAMED, NO_TEMPERATURE),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_lessons_are_learned_once_with_many_in_flight(name: str) -> None:
    script, notes = REFUSALS[name]
    outcomes, server = ask_many(MODEL, script, 16, Sampling(temperature=0.6, max_tokens=77))
    assert [outcome.notes for outcome in outcomes] == [notes] * 16
    assert len(server.calls) == 16 + len(notes), "each lesson costs exactly one refused request"
    last = server.calls[-1].body
    assert 77 in (last.get("max_tokens"), last.get("max_completion_tokens")), "the budget is kept"


def test_a_refused_extra_is_adapted_too() -> None:
    script = refuse_parameter("top_p", "", refuse_parameter("max_tokens", USE_OTHER, ok))
    extra = {"top_p": 0.5, "max_tokens": 9}
    outcomes, server = ask_many(MODEL, script, 1, Sampling(extra=extra))
    assert isinstance(outcomes[0], Completion), outcomes
    last = server.calls[-1].body
    assert last.keys() == {"model", "messages", "max_completion_tokens"}
    assert last["max_completion_tokens"] == 9


def test_a_stalled_request_ends_at_the_timeout() -> None:
    stalled = Reply(raw_body=b"{", headers={"Content-Length": "500"})
    outcome, server = ask_once(MODEL, lambda call: stalled, timeout=0.3)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.kind, len(server.calls)) == ("timeout", 1)


def test_a_dropped_connection_is_a_network_failure(talk: Talk) -> None:
    outcome, calls = talk.ask(lambda call: Reply(drop_connection=True))
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.kind, len(calls)) == ("network", 1)


def test_closing_one_model_leaves_others_working(talk: Talk) -> None:
    talk.ask(ok)
    ask_once(MODEL, ok)
    outcome, calls = talk.ask(ok)
    assert isinstance(outcome, Completion), outcome
    assert len(calls) == 1


def test_words_of_a_refused_connection_in_an_error_are_no_refused_connection(talk: Talk) -> None:
    error = {"message": "cannot parse prompt: 'curl: (7) Connection refused'"}
    outcome, _ = talk.ask(lambda call: Reply(status=400, error=error))
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "bad_request"


def test_a_closed_port_is_unreachable() -> None:
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"

    async def run() -> Completion | CallFailure:
        model = create_model(MODEL, Connection(base_url=url), TASKS)
        try:
            return await model.generate(make_request())
        finally:
            await model.close()

    outcome = asyncio.run(run())
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.kind == "unreachable"


# --- keys, prices, names ---------------------------------------------------------------------


def test_a_missing_key_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    model = create_model("openai/gpt-4o", Connection(), TASKS)
    with pytest.raises(CredentialsError, match="OPENAI_API_KEY"):
        asyncio.run(model.check())


def test_our_own_key_variable_wins(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWB_API_KEY", "another-key-1234")
    _, (call,) = talk.ask(ok)
    assert call.headers["authorization"] == "Bearer another-key-1234"


def test_our_own_key_goes_to_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWB_API_KEY", "another-key-1234")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("openai/gpt-4o", "anthropic/claude-x"):
        with pytest.raises(CredentialsError, match=r"no credentials; set (OPENAI|ANTHROPIC)_API_KEY"):
            asyncio.run(create_model(name, Connection(), TASKS).check())
    monkeypatch.setattr(load_litellm(), "acompletion", seen := Seen())
    asyncio.run(create_model("openai/gpt-4o", Connection(), TASKS).generate(make_request()))
    assert "api_key" not in seen.options
    asyncio.run(create_model("openai/gpt-4o", Connection("http://h/v1"), TASKS).generate(make_request()))
    assert seen.options["api_key"] == "another-key-1234"


class Seen:
    """In place of LiteLLM's call: keeps what it was given."""

    async def __call__(self, **options: Any) -> Any:
        self.options = options
        raise ValueError("not sent")


CLOUDS = ("bedrock/anthropic.claude-x", "sagemaker/m", "vertex_ai/gemini-x")


@pytest.mark.parametrize("name", CLOUDS)
def test_clouds_need_no_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "VERTEXAI_PROJECT", "VERTEXAI_LOCATION"):
        monkeypatch.delenv(variable, raising=False)
    asyncio.run(create_model(name, Connection(), TASKS).check())


def test_of_the_missing_variables_only_keys_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AZURE_API_KEY", "AZURE_API_BASE", "AZURE_API_VERSION"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(CredentialsError, match="set AZURE_API_KEY in the environment"):
        asyncio.run(create_model("azure/gpt-4o", Connection(), TASKS).check())


def test_a_model_without_price_has_no_cost_and_a_known_one_has(talk: Talk) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    outcome, _ = talk.ask(lambda call: Reply(content="x", usage=usage))
    assert isinstance(outcome, Completion)
    assert outcome.cost_usd is None
    with Talk("openai/gpt-4o") as priced:
        prices = create_model("openai/gpt-4o", Connection(), TASKS).price()
        outcome, _ = priced.ask(lambda call: Reply(content="x", usage=usage))
        silent, _ = priced.ask(lambda call: Reply(content="x", omit_usage=True))
    assert isinstance(outcome, Completion)
    assert isinstance(silent, Completion)
    assert prices is not None
    assert outcome.cost_usd == pytest.approx(1000 * prices.prompt + 100 * prices.completion)
    assert silent.cost_usd is None, "a cost that was not reported is not 0"


def test_a_name_without_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a provider"):
        create_model("nonsense/model", Connection(), TASKS)


def test_the_table_of_providers_is_the_installed_librarys() -> None:
    known = {str(getattr(provider, "value", provider)) for provider in load_litellm().provider_list}
    assert known <= LITELLM_PROVIDERS, known - LITELLM_PROVIDERS


def test_nothing_is_logged_about_keys(talk: Talk, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    caplog.set_level(logging.DEBUG)
    talk.ask(lambda call: Reply(status=401, error={"message": f"Incorrect API key provided: {KEY}"}))
    streams = capfd.readouterr()
    assert KEY not in caplog.text + streams.out + streams.err
