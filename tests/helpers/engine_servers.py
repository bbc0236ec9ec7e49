"""Servers that behave as real inference servers do, at the points where evaluations go wrong.

One class per engine, each a `ScriptedServer` on loopback with the engine's own paths, refusals and
silences; see the class for the public releases it was read from or measured at. All count tokens
with the tokenizer of `engine_servers_base`, so that a test knows each number:

    with VllmServer(rambling(900), context=1000, version="0.33.0") as server:
        answer = ask(server.base_url, sized_messages(800), max_tokens=500)
        assert (answer.finish_reason, answer.completion_tokens) == ("length", 200)
        assert server.paths() == ["POST /v1/chat/completions"]

Common options: `answer` (a script, first argument), `context`, `served` (the model's name), `thinks` (what
it thinks before an answer), `reasoning_field`, `port`.
"""

from __future__ import annotations

from .engine_servers_base import (
    PER_MESSAGE,
    PER_PROMPT,
    EngineServer,
    SeenRequest,
    count,
    cut,
    prompt_tokens,
    rambling,
    rendered,
    sized_messages,
)
from .engine_servers_hosted import GPT_5, GPT_51, DeepSeekServer, OpenAIServer
from .engine_servers_local import LlamaServer, LmStudioServer, OllamaServer
from .engine_servers_native import AnthropicServer, GeminiServer
from .engine_servers_serving import SglangServer, TgiServer
from .engine_servers_vllm import VllmServer

__all__ = [
    "GPT_5",
    "GPT_51",
    "PER_MESSAGE",
    "PER_PROMPT",
    "AnthropicServer",
    "DeepSeekServer",
    "EngineServer",
    "GeminiServer",
    "LlamaServer",
    "LmStudioServer",
    "OllamaServer",
    "OpenAIServer",
    "SeenRequest",
    "SglangServer",
    "TgiServer",
    "VllmServer",
    "count",
    "cut",
    "prompt_tokens",
    "rambling",
    "rendered",
    "sized_messages",
]
