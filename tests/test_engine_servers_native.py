"""The stand-ins for Anthropic and Gemini, asked through LiteLLM, which chooses path and words.

Refusals are asked for as the provider's own API would be, over HTTP.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from agentworldbench.models.litellm_api import load_litellm
from tests.helpers.engine_servers import AnthropicServer, EngineServer, GeminiServer, rambling, sized_messages
from tests.helpers.scripted_calls import Reply

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello, world."}]
TOKENS = 3 + 3 + 3 + 5 + 2
CLAUDE = "claude-sonnet-4-5"
GEMINI = "gemini-2.5-flash"
THINK = {"type": "enabled", "budget_tokens": 1024}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "key-of-a-test")


def complete(server: EngineServer, model: str, **options: Any) -> Any:
    """The completion that LiteLLM makes of the server's reply."""
    litellm = load_litellm()
    options = {"messages": QUESTION, "api_base": server.api_base, "max_retries": 0} | options

    async def run() -> Any:
        try:
            return await litellm.acompletion(model=model, num_retries=0, **options)
        finally:
            await litellm.close_litellm_async_clients()
            litellm.in_memory_llm_clients_cache.flush_cache()

    return asyncio.run(run())


def post(server: EngineServer, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    with httpx.Client(trust_env=False, timeout=20) as client:
        answer = client.post(server.root_url + path, json=body)
    return answer.status_code, answer.json()


# --- Anthropic ----------------------------------------------------------------------------------


def test_claude_thinks_when_told_to() -> None:
    with AnthropicServer(rambling(4), served=CLAUDE, thinks="hm hm", cached=5) as server:
        quiet = complete(server, f"anthropic/{CLAUDE}", max_tokens=20)
        loud = complete(server, f"anthropic/{CLAUDE}", max_tokens=1026, thinking=THINK)
    assert server.paths() == ["POST /v1/messages"] * 2
    assert (quiet.choices[0].message.content, quiet.usage.completion_tokens) == ("so so so so", 4)
    assert loud.choices[0].message.reasoning_content == "hm hm"
    assert (loud.usage.prompt_tokens, loud.usage.completion_tokens) == (TOKENS, 6)
    assert loud.usage.prompt_tokens_details.cached_tokens == 5


def test_claude_ends_early_or_refuses() -> None:
    replies = iter([rambling(9)(None), Reply(content="", finish_reason="content_filter")])  # type: ignore[arg-type]
    with AnthropicServer(lambda call: next(replies), served=CLAUDE) as server:
        ends = [complete(server, f"anthropic/{CLAUDE}", max_tokens=5) for _ in range(2)]
    assert [one.choices[0].finish_reason for one in ends] == ["length", "content_filter"]


def test_the_base_that_ends_in_v1_is_another_path() -> None:
    with AnthropicServer(served=CLAUDE) as server:
        with pytest.raises(load_litellm().NotFoundError):
            complete(server, f"anthropic/{CLAUDE}", max_tokens=5, api_base=server.base_url)
        assert server.paths() == ["POST /v1/v1/messages"]


CLAUDE_REFUSES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"messages": sized_messages(1001)}, "prompt is too long: 1001 tokens > 1000 maximum"),
    (
        {},
        {"messages": sized_messages(990), "max_tokens": 20},
        "input length and `max_tokens` exceed context limit: 990 + 20 > 1000, decrease input length or "
        "`max_tokens` and try again",
    ),
    (
        {},
        {"max_tokens": 3000},
        f"max_tokens: 3000 > 2048, which is the maximum allowed number of output tokens for {CLAUDE}",
    ),
    (
        {},
        {"thinking": THINK, "max_tokens": 2000, "temperature": 0},
        "`temperature` may only be set to 1 when thinking is enabled.",
    ),
    (
        {},
        {"thinking": THINK, "max_tokens": 1024},
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    ({"sampling": False}, {"temperature": 0}, "`temperature` is deprecated for this model."),
    (
        {},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
        "messages: text content blocks must be non-empty",
    ),
    (
        {},
        {"messages": [{"role": "user", "content": "\n"}]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    ({}, {"extra_body": {}}, "extra_body: Extra inputs are not permitted"),
    ({}, {"model": "other"}, "model: other"),
]


@pytest.mark.parametrize("options, body, message", CLAUDE_REFUSES)
def test_what_claude_refuses(options: dict[str, Any], body: dict[str, Any], message: str) -> None:
    base = {"model": CLAUDE, "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    with AnthropicServer(context=1000, served=CLAUDE, **options) as server:
        status, answer = post(server, "/v1/messages", base | body)
    assert status == (404 if "model" in body else 400)
    assert answer["error"]["message"] == message


# --- Gemini -------------------------------------------------------------------------------------


def test_gemini_thinks_unless_told_not_to() -> None:
    with GeminiServer(rambling(4), served=GEMINI, thinks="hm hm") as server:
        loud = complete(server, f"gemini/{GEMINI}", reasoning_effort="low")
        quiet = complete(server, f"gemini/{GEMINI}", reasoning_effort="none", max_tokens=9)
    assert server.paths() == [f"POST /v1beta/models/{GEMINI}:generateContent"] * 2
    assert loud.choices[0].message.reasoning_content == "hm hm"
    assert (loud.usage.prompt_tokens, loud.usage.completion_tokens_details.reasoning_tokens) == (TOKENS, 2)
    assert (quiet.choices[0].message.content, quiet.usage.completion_tokens) == ("so so so so", 4)


def test_gemini_may_think_until_nothing_is_left() -> None:
    with GeminiServer(rambling(4), served=GEMINI, thinks="hm hm hm") as server:
        answer = complete(server, f"gemini/{GEMINI}", max_tokens=3)
        url = f"/v1beta/models/{GEMINI}:generateContent"
        contents = [{"role": "user", "parts": [{"text": "hi"}]}]
        raw = post(server, url, {"contents": contents, "generationConfig": {"maxOutputTokens": 3}})[1]
    assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("length", None)
    assert raw["candidates"] == [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]
    assert raw["usageMetadata"] == {"promptTokenCount": 6, "thoughtsTokenCount": 3, "totalTokenCount": 9}


def test_gemini_blocks_answers_and_prompts() -> None:
    replies = iter([Reply(finish_reason="SAFETY"), Reply(refusal="PROHIBITED_CONTENT")])
    with GeminiServer(lambda call: next(replies), served=GEMINI) as server:
        ends = [complete(server, f"gemini/{GEMINI}").choices[0] for _ in range(2)]
    assert [one.finish_reason for one in ends] == ["content_filter"] * 2
    assert not any(one.message.content for one in ends)


GEMINI_REFUSES: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
    (
        {"context": 100},
        "w " * 96,
        {},
        "The input token count (101) exceeds the maximum number of tokens allowed (100).",
    ),
    (
        {"must_think": True},
        "hi",
        {"thinkingConfig": {"thinkingBudget": 0}},
        "Budget 0 is invalid. This model only works in thinking mode.",
    ),
    (
        {},
        "hi",
        {"max_output_tokens": 2049},
        "Unable to submit request because it has a maxOutputTokens value of 2049 but the supported range is "
        "from 1 (inclusive) to 2049 (exclusive). Update the value and try again.",
    ),
]


@pytest.mark.parametrize("options, text, config, message", GEMINI_REFUSES)
def test_what_gemini_refuses(
    options: dict[str, Any], text: str, config: dict[str, Any], message: str
) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": text}]}], "generationConfig": config}
    with GeminiServer(served=GEMINI, **options) as server:
        status, answer = post(server, f"/v1beta/models/{GEMINI}:generateContent", body)
    assert (status, answer["error"]["message"]) == (400, message)
