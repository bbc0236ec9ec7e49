"""The stand-ins for inference servers do what the engines do, in numbers that a test can know.

Wordings of refusals are compared with `cases/models/context_limits.yaml`: what a server sends is what
the cases say. Everything else is asked for over HTTP. `test_engine_servers_native` has the providers
with APIs of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.helpers import engine_servers as engines
from tests.helpers.engine_servers import EngineServer, rambling, sized_messages
from tests.helpers.scripted_calls import Reply

CASES = yaml.safe_load(
    (Path(__file__).parent / "cases/models/context_limits.yaml").read_text(encoding="utf-8")
)
NAMED = {case["name"]: case for case in CASES}
MARKS = {"prompt_only", "at_least", "total", "no_context", "code", "type"}
NUMBERS = ("context", "prompt", "output", "total")


def call(server: EngineServer, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and decoded body; GET without a body."""
    method = "GET" if body is None else "POST"
    with httpx.Client(trust_env=False, timeout=20) as client:
        answer = client.request(method, server.root_url + path, json=body)
    return answer.status_code, answer.json()


def ask(server: EngineServer, messages: Any, **options: Any) -> tuple[int, Any]:
    """One chat request to the served model."""
    body = {"model": server.served, "messages": messages, **options}
    return call(server, "/v1/chat/completions", body)


def outcome(server: EngineServer, prompt: int, **options: Any) -> tuple[str, int, int]:
    """Finish reason, tokens of the prompt, tokens of the answer."""
    status, body = ask(server, sized_messages(prompt), **options)
    assert status == 200, body
    usage = body["usage"]
    return body["choices"][0]["finish_reason"], usage["prompt_tokens"], usage["completion_tokens"]


def error_of(body: Any) -> Any:
    """The error object: below `error`, or the body itself; a bare string as its message."""
    inner = body.get("error", body)
    return inner if isinstance(inner, dict) else {"message": inner, **body}


# --- the cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_says_what_its_message_says(case: dict[str, Any]) -> None:
    limits = set() if "no_context" in case else {"context", "prompt", "output"}
    assert (
        {"name", "status", "message"} | limits
        <= case.keys()
        <= {"name", "status", "message", *NUMBERS} | MARKS
    )
    told = [int(number) for number in re.findall(r"\d+", case["message"])]
    for name in NUMBERS:
        if case.get(name) is not None:
            assert case[name] in told or case[name] == sum(told[1:3]), name
    assert len(NAMED) == len(CASES)


REFUSALS: dict[str, tuple[Callable[..., EngineServer], dict[str, Any], int]] = {
    "vLLM 0.6": (engines.VllmServer, {"version": "0.6.6.post1"}, 37000),
    "vLLM 0.10 without max_tokens": (engines.VllmServer, {"version": "0.10.0", "context": 32768}, 37000),
    "vLLM 0.14 prompt": (engines.VllmServer, {"version": "0.14.1"}, 9000),
    "vLLM 0.14 answer": (engines.VllmServer, {"version": "0.14.1"}, 5000),
    "vLLM 0.17": (engines.VllmServer, {"version": "0.17.1"}, 3000),
    "vLLM 0.24": (engines.VllmServer, {"version": "0.24.0"}, 3000),
    "vLLM 0.33": (engines.VllmServer, {"version": "0.33.0"}, 5000),
    "vLLM engine": (engines.VllmServer, {"version": "0.33.0"}, 4096),
    "SGLang prompt": (engines.SglangServer, {}, 12345),
    "SGLang sum": (engines.SglangServer, {}, 6000),
    "SGLang cache": (engines.SglangServer, {"context": 8192, "kv_tokens": 4096}, 5000),
    "llama.cpp": (engines.LlamaServer, {}, 1031),
    "llama.cpp 2025": (engines.LlamaServer, {"context": 512, "old": True}, 1031),
    "TGI sum": (engines.TgiServer, {"version": "2.4.0"}, 6204),
    "TGI prompt": (engines.TgiServer, {"context": 8192, "max_input": 4096}, 4545),
    "Ollama": (engines.OllamaServer, {"context": 512, "shift": False}, 600),
    "LM Studio": (engines.LmStudioServer, {}, 13055),
    "OpenAI sum": (engines.OpenAIServer, {"reasoning": False, "output_cap": 4096}, 3120),
    "OpenAI prompt": (engines.OpenAIServer, {"reasoning": False}, 173172),
    "OpenAI reasoning models": (engines.OpenAIServer, {"context": 400000, "output_cap": 128000}, 300000),
    "DeepSeek": (engines.DeepSeekServer, {"output_cap": 8192}, 132000),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_prompt_too_long_is_refused_as_the_engine_words_it(name: str) -> None:
    make, options, prompt = REFUSALS[name]
    case = NAMED[name]
    wanted = {} if case["output"] is None else {"max_tokens": case["output"]}
    with make(**{"context": case["context"]} | options) as server:
        status, body = ask(server, sized_messages(prompt), **wanted)
    error = error_of(body)
    assert (status, error["message"]) == (case["status"], case["message"])
    for key in ("code", "type"):
        assert error.get(key) == case.get(key, error.get(key))


# --- answers that are shorter than what was asked for --------------------------------------------

SHORTENED: list[tuple[Callable[..., EngineServer], dict[str, Any], int, int, tuple[str, int, int]]] = [
    (engines.VllmServer, {"version": "0.33.0"}, 800, 500, ("length", 800, 200)),
    (engines.VllmServer, {"version": "0.10.0"}, 800, 200, ("length", 800, 200)),
    (engines.SglangServer, {}, 800, 200, ("length", 800, 198)),
    (engines.SglangServer, {"version": "0.5.9", "kv_tokens": 900}, 800, 199, ("length", 800, 98)),
    (engines.LlamaServer, {}, 800, 500, ("length", 800, 200)),
    (engines.LlamaServer, {}, 999, 0, ("length", 999, 1)),
    (engines.TgiServer, {"context": 4096}, 3000, 1090, ("length", 3000, 1024)),
    (engines.TgiServer, {"context": 4096}, 100, 1500, ("length", 100, 2048)),
    (engines.TgiServer, {"version": "2.4.0"}, 800, 200, ("length", 800, 200)),
    (engines.LmStudioServer, {}, 800, 500, ("length", 800, 200)),
    (engines.DeepSeekServer, {}, 800, 200, ("length", 800, 200)),
]


@pytest.mark.parametrize("make, options, prompt, asked, expected", SHORTENED)
def test_an_answer_ends_where_the_engine_ends_it(
    make: Callable[..., EngineServer],
    options: dict[str, Any],
    prompt: int,
    asked: int,
    expected: tuple[str, int, int],
) -> None:
    with make(rambling(3000), **{"context": 1000} | options) as server:
        assert outcome(server, prompt, max_tokens=asked) == expected


def test_an_answer_that_fits_is_whole() -> None:
    with engines.VllmServer(rambling(50), context=1000) as server:
        assert outcome(server, 900, max_tokens=100) == ("stop", 900, 50)


def test_ollama_cuts_the_prompt_and_says_so_in_the_usage_alone() -> None:
    turns = [{"role": "system", "content": "w " * 97}, *sized_messages(302), *sized_messages(402)]
    with engines.OllamaServer(rambling(1), context=600) as server:
        assert ask(server, turns)[1]["usage"]["prompt_tokens"] == 100 + 400 + 2
        assert outcome(server, 5000) == ("stop", 302, 1)
        assert call(server, "/api/ps")[1]["models"][0]["context_length"] == 600
        shown = call(server, "/api/show", {"model": server.served})[1]
        assert shown["model_info"]["qwen3.context_length"] == 131_072


def test_sglang_may_cut_the_end_of_the_prompt() -> None:
    with engines.SglangServer(rambling(1), context=600, auto_truncate=True) as server:
        assert outcome(server, 5000, max_tokens=100) == ("stop", 594, 1)


# --- what the servers tell of themselves --------------------------------------------------------

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello, world."}]
TOKENS = 3 + 3 + 3 + 5 + 2


def test_each_engine_counts_the_same_prompt_in_its_own_way() -> None:
    body = {"model": "served-model", "messages": QUESTION}
    with engines.VllmServer(context=100) as server:
        told = call(server, "/tokenize", body)[1]
        assert (told["count"], len(told["tokens"]), told["max_model_len"]) == (TOKENS, TOKENS, 100)
        assert call(server, "/tokenize", {"prompt": "one, two"})[1]["count"] == 3
        assert call(server, "/tokenize", {"model": "other", "prompt": "x"})[0] == 404
        assert outcome(server, TOKENS)[1] == TOKENS
        assert server.paths()[0] == "POST /tokenize"
        assert server.bodies("/tokenize")[0] == body
    with engines.LlamaServer(context=100) as server:
        prompt = call(server, "/apply-template", {"messages": QUESTION})[1]["prompt"]
        assert len(call(server, "/tokenize", {"content": prompt})[1]["tokens"]) == TOKENS
        assert call(server, "/tokenize", body) == (200, {"tokens": []})
    with engines.SglangServer(context=100) as server:
        told = call(server, "/tokenize", body)[1]
        assert (told["count"], told["max_model_len"]) == (TOKENS, 131_072)
    with engines.SglangServer(version="0.5.9") as server:
        assert call(server, "/tokenize", body)[0] == 400
    with engines.TgiServer() as server:
        assert len(call(server, "/chat_tokenize", body)[1]["tokenize_response"]) == TOKENS


def test_a_closed_thought_is_part_of_the_prompt() -> None:
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    with engines.VllmServer(rambling(5), thinks="let me see") as server:
        assert call(server, "/tokenize", {"messages": QUESTION} | off)[1]["count"] == TOKENS + 2
        assert ask(server, QUESTION, **off)[1]["usage"]["prompt_tokens"] == TOKENS + 2
    with engines.LlamaServer() as server:
        assert (
            call(server, "/apply-template", {"messages": QUESTION} | off)[1]
            == (call(server, "/apply-template", {"messages": QUESTION})[1])
        )


TOLD: list[tuple[Callable[..., EngineServer], str, Any, list[str | int], Any]] = [
    (engines.VllmServer, "/v1/models", None, ["data", 0, "max_model_len"], 700),
    (engines.VllmServer, "/v1/models", None, ["data", 0, "owned_by"], "vllm"),
    (engines.VllmServer, "/version", None, ["version"], "0.33.0"),
    (engines.VllmServer, "/props", None, ["detail"], "Not Found"),
    (engines.SglangServer, "/v1/models", None, ["data", 0, "owned_by"], "sglang"),
    (engines.SglangServer, "/server_info", None, ["max_req_input_len"], 694),
    (engines.SglangServer, "/get_server_info", None, ["context_length"], None),
    (engines.SglangServer, "/model_info", None, ["is_generation"], True),
    (engines.TgiServer, "/info", None, ["max_total_tokens"], 700),
    (engines.LlamaServer, "/props", None, ["default_generation_settings", "n_ctx"], 700),
    (engines.LlamaServer, "/props", None, ["total_slots"], 4),
    (engines.LlamaServer, "/v1/models", None, ["data", 0, "meta", "n_ctx_train"], 32_768),
    (engines.LlamaServer, "/version", None, ["error", "type"], "not_found_error"),
    (engines.OllamaServer, "/v1/models", None, ["data", 0, "owned_by"], "library"),
    (engines.OllamaServer, "/api/version", None, ["version"], "0.33.0"),
    (engines.LmStudioServer, "/api/v0/models", None, ["data", 0, "loaded_context_length"], 700),
    (engines.LmStudioServer, "/props", None, ["error"], "Unexpected endpoint or method. (GET /props)"),
]


@pytest.mark.parametrize("make, path, body, keys, expected", TOLD)
def test_what_a_server_tells(
    make: Callable[..., EngineServer], path: str, body: Any, keys: list[str | int], expected: Any
) -> None:
    with make(context=700) as server:
        told = call(server, path, body)[1]
    for key in keys:
        told = told[key]
    assert told == expected


def test_a_model_that_is_not_served() -> None:
    for version, shape in (("0.10.0", {"object"}), ("0.33.0", {"error"})):
        with engines.VllmServer(version=version) as server:
            status, body = ask(server, QUESTION, model="other")
        assert status == 404
        assert shape <= body.keys()
        assert error_of(body)["message"].startswith("The model `other` does not exist.")
    with engines.LlamaServer() as server:
        status, body = ask(server, QUESTION, model="other")
        assert (status, body["model"], body["system_fingerprint"]) == (200, server.served, server.build)


# --- thinking -----------------------------------------------------------------------------------

THOUGHT: list[tuple[Callable[..., EngineServer], dict[str, Any], set[str], dict[str, Any]]] = [
    (engines.VllmServer, {"version": "0.10.0"}, {"reasoning_content"}, {}),
    (engines.VllmServer, {"version": "0.14.1"}, {"reasoning_content", "reasoning"}, {}),
    (engines.VllmServer, {"version": "0.33.0"}, {"reasoning"}, {}),
    (engines.LlamaServer, {}, {"reasoning_content"}, {}),
    (engines.OllamaServer, {}, {"reasoning"}, {"reasoning_effort": "none"}),
    (engines.DeepSeekServer, {}, {"reasoning_content"}, {"thinking": {"type": "disabled"}}),
    (engines.OpenAIServer, {"efforts": engines.GPT_51}, set(), {"reasoning_effort": "none"}),
]


@pytest.mark.parametrize("make, options, fields, off", THOUGHT)
def test_thoughts_stand_where_the_engine_puts_them_and_eat_the_budget(
    make: Callable[..., EngineServer], options: dict[str, Any], fields: set[str], off: dict[str, Any]
) -> None:
    off = off or {"chat_template_kwargs": {"enable_thinking": False}}
    with make(rambling(10), thinks="hm hm hm hm", **options) as server:
        wanted = "max_completion_tokens" if make is engines.OpenAIServer else "max_tokens"
        whole, thought, unthought = (
            ask(server, QUESTION, **body)[1] for body in ({wanted: 14}, {wanted: 3}, {wanted: 14} | off)
        )
    message = whole["choices"][0]["message"]
    assert {name for name in ("reasoning_content", "reasoning") if message.get(name)} == fields
    assert whole["usage"]["completion_tokens"] == 14
    assert not thought["choices"][0]["message"]["content"]
    assert thought["choices"][0]["finish_reason"] == "length"
    assert unthought["usage"]["completion_tokens"] == 10


def test_thoughts_without_a_parser_stand_in_the_text() -> None:
    with engines.VllmServer(rambling(2), thinks="hm", reasoning_field="inline") as server:
        content = ask(server, QUESTION)[1]["choices"][0]["message"]["content"]
    assert content == "<think>\nhm\n</think>\n\nso so"


# --- OpenAI's parameters ------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], dict[str, Any], str, str | None]] = [
    ({}, {"max_tokens": 5}, "Use 'max_completion_tokens' instead.", "unsupported_parameter"),
    ({}, {"temperature": 0}, "Only the default (1) value is supported.", "unsupported_value"),
    ({}, {"reasoning_effort": "none"}, "'minimal', 'low', 'medium', and 'high'.", "unsupported_value"),
    ({}, {"max_completion_tokens": 2000}, "supports at most 1024 completion tokens", "invalid_value"),
    ({"reasoning": False}, {"reasoning_effort": "low"}, "argument supplied: reasoning_effort", None),
    ({}, {"chat_template_kwargs": {}}, "argument supplied: chat_template_kwargs", None),
    ({}, {"model": "other"}, "does not exist or you do not have access", "model_not_found"),
]


@pytest.mark.parametrize("options, body, words, code", REFUSED)
def test_openai_refuses(options: dict[str, Any], body: dict[str, Any], words: str, code: str | None) -> None:
    with engines.OpenAIServer(**options) as server:
        _, answer = ask(server, QUESTION, **body)
    assert words in answer["error"]["message"]
    assert answer["error"]["code"] == code


def test_openai_tells_snapshot_fingerprint_and_cached_tokens() -> None:
    with engines.OpenAIServer(rambling(3), context=4096) as server:
        answers = [ask(server, sized_messages(1200))[1] for _ in range(2)]
    assert [one["usage"]["prompt_tokens_details"]["cached_tokens"] for one in answers] == [0, 1152]
    assert answers[0]["model"] == "served-model-2025-08-07"
    assert answers[0]["system_fingerprint"] == "fp_5eed5eed"


def test_a_route_that_fails_fails_the_test() -> None:
    server = engines.VllmServer()
    with pytest.raises(RuntimeError, match="script failed"), server:
        assert call(server, "/tokenize", ["no object"])[0] == 500


def test_a_scripted_reply_may_still_fail_in_its_own_way() -> None:
    with engines.VllmServer(lambda call: Reply(status=503, error={"message": "busy"})) as server:
        assert ask(server, QUESTION) == (503, {"error": {"message": "busy"}})
