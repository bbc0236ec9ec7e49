"""What servers tell of themselves, and prompts counted with their own tokenizers.

Facts by engine and version as data, with the requests it takes to learn them; the counter's number
is what the server itself counts in a chat completion, also where thinking is switched off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from agentworldbench.models import Connection, Model, create_model, openai_api
from agentworldbench.models.probe import ask_server
from agentworldbench.records import Completion, Message, Request, Sampling
from agentworldbench.run_record import ModelFacts
from tests.helpers import engine_servers as engines
from tests.helpers.asking import LIMIT_S, TASKS, make_sample
from tests.helpers.engine_servers import EngineServer, rambling, sized_messages

LIST = "GET /v1/models"
TOKENS = "POST /tokenize"
SHOWN = ("engine", "engine_version", "context", "context_from", "quantization", "revision", "prompts_counted")
UNTOLD = dict.fromkeys(SHOWN) | {"prompts_counted": False}
MAX_MODEL_LEN = {"context": 4096, "context_from": "/v1/models max_model_len"}
SGLANG = {"engine": "sglang", "context": 4096, "quantization": "fp8"} | {
    "context_from": "/server_info max_req_input_len"
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-tests-0123456789abcdef")


def with_model(server: EngineServer, work: Callable[[Model], Awaitable[Any]], served: str = "") -> Any:
    """Check a model of the server, then do something with it."""

    async def run() -> Any:
        name = f"openai-api/{served or server.served}"
        model = create_model(name, Connection(base_url=server.base_url, timeout=LIMIT_S), TASKS)
        try:
            await model.check()
            return await work(model)
        finally:
            await model.close()

    return asyncio.run(asyncio.wait_for(run(), LIMIT_S))


async def facts_of(model: Model) -> ModelFacts:
    return model.facts()


class SleepingOllama(engines.OllamaServer):
    """The model is not in memory until somebody asks for it; `/api/generate` without a prompt does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.loads = True

    def _running(self) -> Any:
        loaded = any(body["model"] == self.served for body in self.bodies("/api/generate"))
        return super()._running() if loaded and self.loads else {"model": "another", "context_length": 99}


class ForgottenOllama(SleepingOllama):
    """The model never gets into memory."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.loads = False


OLLAMA = {"engine": "ollama", "engine_version": "0.33.0", "quantization": "Q4_K_M"}
RUNNING = {"context": 4096, "context_from": "/api/ps context_length", "revision": "5eed" * 16}
OLLAMA_ASKS = ["GET /api/version", "POST /api/show", "GET /api/ps"]
LLAMA = {"engine": "llama.cpp", "engine_version": "b10434-7e4c0a9", "context": 4096, "quantization": "Q4_K_M"}
LLAMA |= {"context_from": "/props n_ctx", "revision": "served-model.Q4_K_M.gguf"}
TGI = {"engine": "tgi", "context": 4096, "context_from": "/info max_total_tokens"} | {
    "revision": "0123456789abcdef0123456789abcdef01234567"
}
COUNTED = {"prompts_counted": True}

TOLD: dict[str, tuple[Callable[..., EngineServer], dict[str, Any], dict[str, Any], list[str]]] = {
    **{
        f"vLLM {version}": (
            engines.VllmServer,
            {"version": version},
            {"engine": "vllm", "engine_version": version} | MAX_MODEL_LEN | COUNTED,
            ["GET /version", TOKENS],
        )
        for version in ("0.6.6.post1", "0.10.0", "0.14.1", "0.17.1", "0.24.0", "0.33.0")
    },
    "SGLang 0.5.23": (
        engines.SglangServer,
        {},
        SGLANG | COUNTED | {"engine_version": "0.5.23"},
        ["GET /server_info", TOKENS],
    ),
    "SGLang 0.5.9": (
        engines.SglangServer,
        {"version": "0.5.9"},
        SGLANG | {"engine_version": "0.5.9"},
        ["GET /server_info", TOKENS],
    ),
    "SGLang 0.4.6": (
        engines.SglangServer,
        {"version": "0.4.6.post5", "context_set": True},
        SGLANG | {"engine_version": "0.4.6.post5"},
        ["GET /server_info", "GET /get_server_info", TOKENS],
    ),
    "SGLang, a small cache": (
        engines.SglangServer,
        {"kv_tokens": 1000, "context_set": True},
        SGLANG | COUNTED | {"engine_version": "0.5.23", "context": 1000},
        ["GET /server_info", TOKENS],
    ),
    "TGI 3.3.6": (
        engines.TgiServer,
        {},
        TGI | COUNTED | {"engine_version": "3.3.6"},
        ["GET /info", "POST /chat_tokenize"],
    ),
    "TGI 2.4.0": (
        engines.TgiServer,
        {"version": "2.4.0", "max_input": 1000},
        TGI | COUNTED | {"engine_version": "2.4.0"},
        ["GET /info", "POST /chat_tokenize"],
    ),
    "llama.cpp": (engines.LlamaServer, {}, LLAMA | COUNTED, ["GET /props", "POST /apply-template", TOKENS]),
    "Ollama": (engines.OllamaServer, {}, OLLAMA | RUNNING, OLLAMA_ASKS),
    "Ollama, not loaded": (
        SleepingOllama,
        {},
        OLLAMA | RUNNING,
        [*OLLAMA_ASKS, "POST /api/generate", "GET /api/ps"],
    ),
    "Ollama, never loaded": (
        ForgottenOllama,
        {},
        OLLAMA,
        [*OLLAMA_ASKS, "POST /api/generate", "GET /api/ps"],
    ),
    "LM Studio": (
        engines.LmStudioServer,
        {},
        {"engine": "lm-studio", "context": 4096, "quantization": "Q4_K_M"}
        | {"context_from": "/api/v0/models loaded_context_length"},
        ["GET /api/v0/models"],
    ),
    "LM Studio, not loaded": (
        engines.LmStudioServer,
        {"loaded": False},
        {"engine": "lm-studio", "quantization": "Q4_K_M"},
        ["GET /api/v0/models"],
    ),
    "OpenAI": (engines.OpenAIServer, {}, {}, [TOKENS, "POST /apply-template", "POST /chat_tokenize"]),
    "DeepSeek": (engines.DeepSeekServer, {}, {}, [TOKENS, "POST /apply-template", "POST /chat_tokenize"]),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_a_server_tells_and_how_often_it_is_asked(name: str) -> None:
    make, options, expected, asked = TOLD[name]
    with make(**options) as server:
        told = with_model(server, facts_of)
    assert {name: getattr(told, name) for name in SHOWN} == UNTOLD | expected
    assert server.paths() == [LIST, *asked]


NAMELESS: list[tuple[Callable[..., EngineServer], str, int]] = [
    (engines.TgiServer, "tgi", 1),
    (engines.LlamaServer, "llama.cpp", 2),
    (engines.OllamaServer, "ollama", 5),
    (engines.LmStudioServer, "lm-studio", 4),
    (engines.VllmServer, "vllm", 5),
    (engines.SglangServer, "sglang", 6),
]


@pytest.mark.parametrize(("make", "engine", "questions"), NAMELESS)
def test_without_a_name_in_the_list_questions_go_out_until_one_is_answered(
    make: Callable[..., EngineServer], engine: str, questions: int
) -> None:
    with make() as server:
        server.models = [{"id": server.served, "owned_by": "somebody"}]
        told = with_model(server, facts_of)
    assert told.engine == engine
    before = [path for path in server.paths() if path.startswith("GET") and path != LIST]
    before += [path for path in server.paths() if path == "POST /api/show"]
    assert len(before) == questions


class Alike(EngineServer):
    """Answers every path with 200 and the same words, as LM Studio does."""

    UNKNOWN = (200, {"error": "Unexpected endpoint or method."})


def test_a_server_that_answers_every_path_alike_tells_nothing() -> None:
    with Alike() as server:
        told = with_model(server, facts_of)
    assert {name: getattr(told, name) for name in SHOWN} == UNTOLD


@pytest.mark.parametrize(
    "answer",
    [None, [], "text", 7, {}, {"max_total_tokens": -1}, {"version": 3}, {"models": [None, 3]}, {"data": 3}],
)
def test_answers_of_any_shape_are_taken(answer: Any) -> None:
    async def ask(*question: Any) -> Any:
        return answer

    for owner in (None, "vllm", "llamacpp", "sglang", "library", "organization_owner", 7):
        told = asyncio.run(ask_server(ask, ask, "m", {"id": "m", "owned_by": owner}))
        assert (told.context, told.engine_version) == (None, None)


COUNTING: list[tuple[Callable[..., EngineServer], dict[str, Any]]] = [
    (engines.VllmServer, {"version": "0.10.0", "thinks": "hm"}),
    (engines.VllmServer, {"version": "0.33.0", "thinks": "hm"}),
    (engines.SglangServer, {"thinks": "hm"}),
    (engines.LlamaServer, {"thinks": "hm"}),
    (engines.TgiServer, {}),
]
TURNS = [
    Message(role="system", content="Be a shell: héllo, 世界! <think> is a token."),
    Message(role="user", content="ls -la /tmp"),
    Message(role="assistant", content="total 0\n\n"),
    Message(role="user", content=str(sized_messages(300)[0]["content"])),
]
OFF = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize("extra", [{}, OFF], ids=["default", "off"])
@pytest.mark.parametrize(
    ("make", "options"), COUNTING, ids=lambda value: getattr(value, "__name__", None) or str(value)
)
def test_a_prompt_is_counted_as_the_server_counts_it(
    make: Callable[..., EngineServer], options: dict[str, Any], extra: dict[str, Any]
) -> None:
    request = Request(
        sample=make_sample(), messages=tuple(TURNS), sampling=Sampling(extra=extra, max_tokens=9)
    )

    async def both(model: Model) -> tuple[int | None, Any]:
        return await model.count(request), await model.generate(request)

    with make(rambling(5), **options) as server:
        counted, completion = with_model(server, both)
    assert isinstance(completion, Completion), completion
    assert counted == completion.usage.prompt_tokens == server.prompt(server.calls[-1])
    if options and extra:
        assert counted == engines.prompt_tokens([one.model_dump() for one in TURNS]) + 2


def test_a_server_without_a_tokenizer_is_asked_once() -> None:
    request = Request(sample=make_sample(), messages=tuple(TURNS), sampling=Sampling())

    async def thrice(model: Model) -> list[int | None]:
        return [await model.count(request) for _ in range(3)]

    with engines.SglangServer(version="0.5.9") as server:
        assert with_model(server, thrice) == [None] * 3
        assert server.paths().count(TOKENS) == 1


def test_a_busy_server_is_asked_on_and_one_that_hangs_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "PROBE_SECONDS", 0.2)
    model = openai_api.OpenAIModel("openai-api/m", "m", Connection(base_url="http://127.0.0.1:9/v1"))
    asked: list[bool] = []

    class Exchange:
        """In place of one with a server: as aiohttp's, to be entered; a question may stay without an answer."""

        def __init__(self, hangs: bool) -> None:
            asked.append(hangs)
            self.status, self._hangs = 200, hangs

        async def __aenter__(self) -> Exchange:
            if self._hangs:
                await asyncio.Event().wait()
            return self

        async def __aexit__(self, *error: object) -> None:
            pass

        async def read(self) -> bytes:
            return b'{"answered": true}'

    async def run(*hangs: bool) -> list[object]:
        return [await model._ask(partial(Exchange, one)) for one in hangs]  # type: ignore[arg-type]

    busy = asyncio.run(run(True, True, False, True, True, False))
    assert busy == [None, None, {"answered": True}] * 2, "two that were late in a row say nothing yet"
    assert asyncio.run(run(*[True] * 5, False)) == [None] * 6
    assert asked[6:] == [True] * openai_api.MOST_SLOW, "then it is asked no more"
