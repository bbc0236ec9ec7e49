"""Refusals for length: which message is one, and which numbers it names.

The wordings of `cases/models/context_limits.yaml` in every shape in which they arrive: OpenAI's
object, a flat one, a bare string, LiteLLM's line. The same wordings in the middle of what a server
hands back of a prompt are no refusals, whatever stands around them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.models.failures import call_failure, error_text, kind_of
from agentworldbench.models.lengths import context_limit, output_limit, own_words, refuses_length
from agentworldbench.records import CallFailure, ContextLimit, FailureKind
from tests.helpers.asking import ask_once, cases
from tests.helpers.scripted_calls import Reply

CASES = cases("models/context_limits.yaml")
KINDS = {"output_limit": "bad_request"}
Case = dict[str, Any]


def error_of(case: Case) -> dict[str, Any]:
    return {name: case[name] for name in ("message", "code", "type") if name in case}


SHAPES: dict[str, Callable[[Case], str]] = {
    "object": lambda case: error_text({"error": error_of(case)}, "Error code"),
    "flat": lambda case: error_text(error_of(case) | {"object": "error"}, "Error code"),
    "list": lambda case: error_text([{"error": error_of(case)}], "Error code"),
    "LiteLLM JSON": lambda case: error_text(
        None, "litellm.BadRequestError: SomeException - " + json.dumps({"error": error_of(case)})
    ),
    "LiteLLM twice": lambda case: error_text(
        None,
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: "
        f"OpenAIException - {case['message']}" + (f" ({case['code']})" if "code" in case else ""),
    ),
    "OpenRouter": lambda case: error_text(
        {
            "error": {
                "message": "Provider returned error",
                "metadata": {"raw": json.dumps({"error": error_of(case)})},
            }
        },
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_is_what_it_says(case: Case) -> None:
    """In every shape in which it may arrive."""
    other = case.get("no_context")
    kind = KINDS.get(other or "", other or "context_overflow")
    marks = {name: case[name] for name in ("prompt_only", "at_least", "total") if name in case}
    limit = None if other else ContextLimit(context=case["context"], prompt=case["prompt"], **marks)
    for shape, put in SHAPES.items():
        outcome = call_failure(case["status"], put(case))
        assert (outcome.failure.kind, outcome.limit) == (kind, limit), shape


GATEWAYS = {
    "a LiteLLM proxy": "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: "
    "Hosted_vllmException - {}. Received Model Group=m\nAvailable Model Group Fallbacks=None",
    "a LiteLLM proxy, plain": "litellm.BadRequestError: OpenAIException - {}. Received Model Group=m",
    "a printed error": "Error code: 400 - {{'object': 'error', 'message': \"{}\", 'code': 400}}",
    "a printed error inside": "Error code: 400 - {{'error': {{'message': \"{}\", 'type': 'BadRequestError'}}}}",
    "a printed error with its code first": "Error code: 400 - {{'error': {{'code': 400, 'message': '{}'}}}}",
    "a class": "VLLMValidationError: {}",
    "a status in words": "Bad request: {}",
    "a router": "Upstream error from Some Host 2: {}",
    "an error": "Error: {}",
    "two of them": "Upstream error from X: Error code: 400 - {{'object': 'error', 'message': '{}'}}",
}


@pytest.mark.parametrize("gateway", GATEWAYS)
def test_what_gateways_put_before_a_message_changes_nothing(gateway: str) -> None:
    bare = [case.values[0] for case in CASES if "code" not in case.values[0]]
    assert len(bare) > 40
    for case in bare:
        alone = call_failure(case["status"], error_text({"error": {"message": case["message"]}}, ""))
        text = error_text({"error": {"message": GATEWAYS[gateway].format(case["message"])}}, "")
        behind = call_failure(case["status"], text)
        assert (behind.failure.kind, behind.limit) == (alone.failure.kind, alone.limit), text
        assert output_limit(text) == output_limit(case["message"]), text


@pytest.mark.parametrize("case", CASES)
def test_the_longest_answer_is_read_only_where_it_is_meant(case: Case) -> None:
    assert (output_limit(case["message"]) is not None) is (case.get("no_context") == "output_limit")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("This model's maximum context length is 128,000 tokens.", ContextLimit(context=128_000)),
        ("Range of input length should be [1,98304]", ContextLimit(context=98_304, prompt_only=True)),
        ("The conversation is too long for this model", ContextLimit()),
        ("input too long: 9000 input tokens, limit is 8192", ContextLimit()),
        ("The request exceeds the maximum context length of the model", ContextLimit()),
    ],
)
def test_wordings_beside_those_of_the_cases(message: str, expected: ContextLimit) -> None:
    outcome = call_failure(400, message)
    assert (outcome.failure.kind, outcome.limit) == (FailureKind.CONTEXT_OVERFLOW, expected)


def test_numbers_beside_the_sentence_are_read_too() -> None:
    error = {"message": "the request exceeds the available context size, try increasing it"}
    error |= {"type": "exceed_context_size_error", "n_prompt_tokens": 1031, "n_ctx": 512}  # type: ignore[dict-item]
    outcome = call_failure(400, error_text({"error": error}, ""))
    assert outcome.limit == ContextLimit(context=512, prompt=1031)


# --- prompts that quote refusals --------------------------------------------------------------

WORDS = [
    "context_length_exceeded",
    "You exceeded your current quota (insufficient_quota)",
    "rate limit reached (rate_limit_exceeded)",
    "The model `gpt-9` does not exist (model_not_found, invalid_request_error)",
    "content_filter: our safety system and content management policy",
    "Incorrect API key provided",
]
QUOTED = [*WORDS, *(case.values[0]["message"] for case in CASES)]
ECHOES: dict[str, Callable[[str], Any]] = {
    "pydantic's list": lambda text: {
        "detail": [{"type": "missing", "loc": ["body", "x"], "msg": "Field required", "input": {"content": text}}]
    },
    "vLLM's text of it": lambda text: {
        "object": "error",
        "message": "[{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, bad', 'input': "
        + repr({"messages": [{"role": "user", "content": text}]})
        + "}]",
        "type": "Bad Request",
        "code": 400,
    },
    "llama.cpp": lambda text: {
        "error": {
            "code": 400,
            "message": "Failed to parse messages: no role; messages = " + json.dumps([{"content": text}]),
            "type": "invalid_request_error",
        }
    },
    "after a colon": lambda text: {"error": {"message": f"Invalid content: {text}", "code": None}},
    "in quotes": lambda text: {"error": {"message": f'Cannot render "{text}"', "type": "invalid_request_error"}},
    "in backticks": lambda text: {"error": f"Template error in `{text}`"},
    "in angle brackets": lambda text: {"message": f"Cannot render <<{text}>> with this template"},
    "on a line of its own": lambda text: {"error": {"message": f"Cannot render this\n{text}\n"}},
    "in braces": lambda text: {"error": {"message": f"Unexpected {{{text}}}", "param": "messages"}},
    "behind a gateway's colon": lambda text: {"error": f"litellm.BadRequestError: OpenAIException - Invalid content: {text}"},
    "in a printed body": lambda text: {"message": f"Error code: 400 - {{'error': {{'message': 'Cannot render <{text}>'}}}}"},
    "as the input of a printed body": lambda text: {"message": f"Error code: 400 - {{'loc': ['body'], 'input': '{text}'}}"},
    "far behind": lambda text: {"error": {"message": "Bad. " * 400 + text}},
}  # fmt: skip


@pytest.mark.parametrize("echo", ECHOES)
def test_a_prompt_that_is_handed_back_refuses_nothing(echo: str) -> None:
    for quoted in QUOTED:
        text = error_text(ECHOES[echo](f"the log says {quoted} and so on"), "Error code")
        outcome = call_failure(400, text)
        assert (outcome.failure.kind, outcome.limit) == (FailureKind.BAD_REQUEST, None), text
        assert output_limit(text) is None, text


@pytest.mark.parametrize("echo", ["pydantic's list", "vLLM's text of it", "llama.cpp"])
def test_what_is_handed_back_is_not_kept(echo: str) -> None:
    text = error_text(ECHOES[echo]("temperature is not supported"), "")
    assert text
    assert "temperature" not in text


@pytest.mark.parametrize("model", ["openai-api/tiny", "openai/tiny"])
@pytest.mark.parametrize(
    ("echo", "quoted"), [*((echo, QUOTED) for echo in ECHOES), *(("in quotes", [words]) for words in WORDS)]
)
def test_neither_sdk_makes_a_refusal_of_an_echo(
    echo: str, quoted: list[str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-tests-0123456789abcdef")
    body = json.dumps(ECHOES[echo](" ".join(quoted))).encode()
    outcome, server = ask_once(model, lambda call: Reply(status=400, raw_body=body))
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.kind, outcome.failure.status) == (FailureKind.BAD_REQUEST, 400)
    assert (outcome.limit, len(server.calls)) == (None, 1)


# --- any text ---------------------------------------------------------------------------------


@given(st.text() | st.lists(st.sampled_from(QUOTED)).map(" ".join))
def test_any_text_is_read(text: str) -> None:
    limit = context_limit(text)
    assert all(number is None or number >= 0 for number in (limit.context, limit.prompt, limit.total))
    assert text.startswith(own_words(text))
    if limit != ContextLimit():
        assert refuses_length(text)


@pytest.mark.parametrize(
    "part",
    [
        "1",
        "1,",
        " (a",
        "a, ",
        "'loc': ",
        "range 1 ",
        "Exception: ",
        "aError: ",
        "aError",
        "{'a': 1, ",
        "max_tokens ",
    ],
)
def test_long_texts_take_no_time(part: str) -> None:
    text = part * 300_000
    began = time.process_time()
    kind_of(400, error_text(None, text))
    kind_of(400, error_text({"error": {"message": text, "code": "x"}}, ""))
    assert time.process_time() - began < 2
