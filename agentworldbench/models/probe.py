"""What an OpenAI-compatible server tells of itself beyond the OpenAI interface: engine, context, template.

In: two functions that GET and POST a path at the server's root (decoded JSON, or None for whatever
is no JSON answer), and the model's entry in `/v1/models`. Out: a `ModelFacts`, and a counter of
prompt tokens. Known are vLLM (`max_model_len`, `/version`, `/tokenize`), llama.cpp (`/props`,
`/apply-template`, `/tokenize`), SGLang (`/server_info`, formerly `/get_server_info`, `/tokenize`), Text
Generation Inference (`/info`, `/chat_tokenize`), Ollama (`/api/show`, `/api/ps`) and LM Studio
(`/api/v0/models`). A server that has none of these just tells nothing; every question is cheap and
asked once. All of them but Text Generation Inference name themselves in the list, so it comes first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from agentworldbench.run_record import ModelFacts
from agentworldbench.texts import scrub

Get = Callable[[str], Awaitable[Any]]
Post = Callable[[str, dict[str, Any]], Awaitable[Any]]
Facts = dict[str, Any]

_ENGINES: Final = {
    "vllm": "vllm",
    "llamacpp": "llama.cpp",
    "sglang": "sglang",
    "library": "ollama",
    "organization_owner": "lm-studio",
}
"""`owned_by` of a model's entry, to the engine that writes it."""
_HOSTED: Final = frozenset({"openai", "openai-internal", "system", "deepseek"})
"""`owned_by` at providers and gateways: these have no engine to ask."""
_KEPT_BY_SGLANG: Final = 6
"""Tokens of SGLang's context that no prompt may have; `max_req_input_len` is what is left."""
_LISTED: Final = 200
"""Longest string that is kept of an entry."""
_ABSURD: Final = 10**9
"""No context has so many tokens, whatever a server says."""
_META: Final = ("n_ctx", "n_ctx_train", "n_embd", "n_params", "n_vocab", "size", "ftype", "vocab_type")
_TELLING: Final = frozenset(
    ("id", "owned_by", "root", "parent", "max_model_len", "context_length", "context_window", "quantization")
) | {f"meta.{name}" for name in _META}
"""What is kept of a model's entry: a server may write anything into it, keys included."""


async def ask_server(get: Get, post: Post, served: str, entry: Mapping[str, Any] | None) -> ModelFacts:
    """Facts about the model `served`, whose entry in the server's list is `entry` (None: not listed)."""
    entry = entry or {}
    engine = _ENGINES.get(str(entry.get("owned_by")))
    facts: Facts = {"engine": engine, "listed": _listed(entry)}
    for name, length in (
        ("max_model_len", entry.get("max_model_len")),
        ("meta.n_ctx", _mapping(entry.get("meta")).get("n_ctx")),
    ):
        if _number(length):
            facts |= {"context": length, "context_from": f"/v1/models {name}"}
    for known, question in _QUESTIONS.items():
        asked = engine == known or (engine is None and str(entry.get("owned_by")) not in _HOSTED)
        if asked and (told := await question(get, post, served)):
            facts |= {"engine": known} | {name: value for name, value in told.items() if value is not None}
            break
    return ModelFacts(**facts)


async def _vllm(get: Get, post: Post, served: str) -> Facts | None:
    told = _mapping(await get("/version"))
    return {"engine_version": version} if (version := _text(told.get("version"))) else None


async def _llama(get: Get, post: Post, served: str) -> Facts | None:
    props = _mapping(await get("/props"))
    context = _number(_mapping(props.get("default_generation_settings")).get("n_ctx"))
    if context is None and "build_info" not in props:
        return None
    defaults = _mapping(_mapping(props.get("default_generation_settings")).get("params"))
    shown = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "seed")
    return {
        "engine_version": _text(props.get("build_info")),
        "context": context,
        "context_from": "/props n_ctx" if context else None,
        "chat_template_sha256": _sha256(props.get("chat_template")),
        "quantization": _text(props.get("model_ftype")),
        "revision": _file_name(props.get("model_path")),
        "generation_defaults": {name: defaults[name] for name in shown if _scalar(defaults.get(name))},
    }


async def _sglang(get: Get, post: Post, served: str) -> Facts | None:
    told = _mapping(await get("/server_info") or await get("/get_server_info"))
    if "tp_size" not in told and "context_length" not in told:
        return None
    # `context_length` is what the operator set; the cache may have room for less.
    longest = _number(told.get("max_req_input_len"))
    return {
        "engine_version": _text(told.get("version")),
        "context": longest + _KEPT_BY_SGLANG if longest else None,
        "context_from": "/server_info max_req_input_len" if longest else None,
        "quantization": _text(told.get("quantization")),
        "dtype": _text(told.get("dtype")),
        "revision": _text(told.get("revision")),
    }


async def _tgi(get: Get, post: Post, served: str) -> Facts | None:
    told = _mapping(await get("/info"))
    context = _number(told.get("max_total_tokens"))
    if context is None:
        return None
    return {
        "engine_version": _text(told.get("version")),
        "context": context,
        "context_from": "/info max_total_tokens",
        "revision": _text(told.get("model_sha")),
        "dtype": _text(told.get("model_dtype")),
    }


async def _ollama(get: Get, post: Post, served: str) -> Facts | None:
    version = _text(_mapping(await get("/api/version")).get("version"))
    if version is None:
        return None
    shown = _mapping(await post("/api/show", {"model": served}))
    # Not the model's own context is in force but the one that it was loaded with: longer prompts are
    # cut to that in silence. A question without a prompt loads it, as the first request would.
    running = await _ollama_running(get, served)
    if _number(running.get("context_length")) is None and shown:
        await post("/api/generate", {"model": served, "stream": False})
        running = await _ollama_running(get, served)
    context = _number(running.get("context_length"))
    return {
        "engine_version": version,
        "context": context,
        "context_from": "/api/ps context_length" if context else None,
        "revision": _text(running.get("digest")),
        "quantization": _text(_mapping(shown.get("details")).get("quantization_level")),
        "chat_template_sha256": _sha256(shown.get("template")),
    }


async def _ollama_running(get: Get, served: str) -> Mapping[str, Any]:
    return _named(_mapping(await get("/api/ps")).get("models"), "model", served, f"{served}:latest")


async def _lm_studio(get: Get, post: Post, served: str) -> Facts | None:
    model = _named(_mapping(await get("/api/v0/models")).get("data"), "id", served)
    if not model:
        return None
    context = _number(model.get("loaded_context_length"))
    return {
        "context": context,
        "context_from": "/api/v0/models loaded_context_length" if context else None,
        "quantization": _text(model.get("quantization")),
    }


_QUESTIONS: Final = {
    "tgi": _tgi,
    "llama.cpp": _llama,
    "ollama": _ollama,
    "lm-studio": _lm_studio,
    "vllm": _vllm,
    "sglang": _sglang,
}
"""Each engine's own question; where the list names no engine, all are asked until one is answered."""


class TokenCounter:
    """Counts a prompt's tokens with the server's own tokenizer, where it offers that.

    vLLM and SGLang apply the chat template inside `/tokenize`, llama.cpp in `/apply-template`, Text
    Generation Inference in `/chat_tokenize`. A server that has none of them is not asked again.
    `exact` tells whether a way was found.
    """

    def __init__(self, post: Post, served: str) -> None:
        self._post = post
        self._served = served
        self._works = False
        self._ways: tuple[Callable[[Any, Mapping[str, Any]], Awaitable[int | None]], ...] = (
            self._whole_chat,
            self._template_first,
            self._chat_tokens,
        )

    def expect(self, engine: str | None) -> None:
        """Try only the way of this engine, where it is known."""
        known = {
            "vllm": (self._whole_chat,),
            "sglang": (self._whole_chat,),
            "llama.cpp": (self._template_first,),
            "tgi": (self._chat_tokens,),
        }
        if engine in _QUESTIONS:
            self._ways = known.get(engine, ())

    @property
    def exact(self) -> bool:
        """Whether a way to count has worked."""
        return self._works

    async def count(self, messages: Sequence[Mapping[str, str]], extra: Mapping[str, Any]) -> int | None:
        """Tokens of `messages` under the template arguments of `extra`; None where nobody can tell."""
        for way in self._ways:
            counted = await way(messages, extra)
            if counted is not None:
                self._ways, self._works = (way,), True
                return counted
        if not self._works:
            self._ways = ()  # a way that has worked once is kept: its failure is of the moment
        return None

    async def _whole_chat(self, messages: Any, extra: Mapping[str, Any]) -> int | None:
        body = {"model": self._served, "messages": messages, "add_generation_prompt": True}
        told = _mapping(await self._post("/tokenize", body | _template_arguments(extra)))
        return _number(told.get("count"))

    async def _template_first(self, messages: Any, extra: Mapping[str, Any]) -> int | None:
        body = {"messages": messages} | _template_arguments(extra)
        prompt = _mapping(await self._post("/apply-template", body)).get("prompt")
        if not isinstance(prompt, str):
            return None
        question = {"content": prompt, "add_special": True, "parse_special": True}
        tokens = _mapping(await self._post("/tokenize", question)).get("tokens")
        return len(tokens) if isinstance(tokens, list) and tokens else None

    async def _chat_tokens(self, messages: Any, extra: Mapping[str, Any]) -> int | None:
        told = _mapping(await self._post("/chat_tokenize", {"model": self._served, "messages": messages}))
        tokens = told.get("tokenize_response")
        return len(tokens) if isinstance(tokens, list) and tokens else None


def _template_arguments(extra: Mapping[str, Any]) -> dict[str, Any]:
    arguments = extra.get("chat_template_kwargs")
    return {"chat_template_kwargs": arguments} if isinstance(arguments, dict) else {}


def _listed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The plain values of an entry that say which model it is; those of `meta` with their path."""
    flat = dict(entry) | {f"meta.{name}": value for name, value in _mapping(entry.get("meta")).items()}
    kept = {name: value for name, value in flat.items() if name in _TELLING and _scalar(value)}
    return {name: scrub(value)[:_LISTED] if isinstance(value, str) else value for name, value in kept.items()}


def _named(listed: Any, key: str, *names: str) -> Mapping[str, Any]:
    """The object of a list that has one of these names; empty where there is none."""
    found = listed if isinstance(listed, list) else []
    return next((one for one in found if isinstance(one, dict) and one.get(key) in names), {})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and 0 < value < _ABSURD else None


def _text(value: Any) -> str | None:
    return scrub(value)[:_LISTED] if isinstance(value, str) and value else None


def _scalar(value: Any) -> bool:
    """A text, or a number that JSON and a reader can hold."""
    return isinstance(value, str) or (isinstance(value, (int, float)) and abs(value) < 1e18)


def _sha256(value: Any) -> str | None:
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest() if isinstance(value, str) else None


def _file_name(value: Any) -> str | None:
    """The last part of a path: where a file lies on the server is nobody's business."""
    return _text(value.replace("\\", "/").rsplit("/", 1)[-1]) if isinstance(value, str) and value else None
