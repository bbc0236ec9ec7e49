"""Stand-ins for the engines of one's own machine: llama.cpp, Ollama, LM Studio."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from .engine_servers_base import (
    EngineServer,
    Json,
    Messages,
    get,
    openai_error,
    plain,
    post,
    prompt_tokens,
    token_ids,
)
from .scripted_calls import ChatCall, Reply

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class LlamaServer(EngineServer):
    """llama.cpp's server, measured at the binary that `make demo-llm` installs (commit 7e4c0a9); any name is served.

    `context` is one slot's; the server has `slots` of them. A prompt that fills the context is refused;
    an answer is silently cut where the context ends; `max_tokens` 0 still makes one token. With
    `old=True` the refusal is that of builds from autumn 2025, whose sentence names no number (its
    `n_prompt_tokens` and `n_ctx` do). Unknown template arguments are ignored, as are unknown parameters.
    """

    UNKNOWN = (404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}})

    def __init__(
        self,
        *arguments: Any,
        slots: int = 4,
        old: bool = False,
        trained: int = 32_768,
        quantization: str = "Q4_K_M",
        build: str = "b10434-7e4c0a9",
        **options: Any,
    ) -> None:
        self.slots = slots
        self.old = old
        self.build = build
        self.quantization = quantization
        self.template = CHAT_TEMPLATE
        options["entry"] = {
            "aliases": [options.get("served", "served-model")],
            "tags": [],
            "owned_by": "llamacpp",
            "meta": {
                "vocab_type": 2,
                "n_vocab": 50_000,
                "n_ctx": options.get("context", 4096),
                "n_ctx_train": trained,
                "n_embd": 576,
                "n_params": 134_515_008,
                "size": 96_576_768,
                "ftype": quantization,
            },
        }
        routes = [
            get("/props", self.props),
            post("/apply-template", self.apply_template),
            post("/tokenize", lambda body: {"tokens": token_ids(str(body.get("content", "")))}),
        ]
        super().__init__(*arguments, routes=routes, **options)

    def model_list(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        """The list has a second copy in Ollama's shape."""
        copies = [{"name": entry["id"], "model": entry["id"], "type": "model"} for entry in entries]
        return {"models": copies, **super().model_list(entries)}

    def props(self) -> Json:
        """`GET /props`."""
        params = {"seed": 4294967295, "temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
        params |= {"repeat_penalty": 1.0, "presence_penalty": 0.0, "max_tokens": -1, "n_predict": -1}
        return {
            "default_generation_settings": {"params": params, "n_ctx": self.context},
            "total_slots": self.slots,
            "model_alias": self.served,
            "model_ftype": self.quantization,
            "model_path": f"/models/{self.served}.{self.quantization}.gguf",
            "modalities": {"vision": False, "audio": False},
            "chat_template": self.template,
            "bos_token": "<|im_start|>",
            "eos_token": "<|im_end|>",
            "build_info": self.build,
            "is_sleeping": False,
        }

    def apply_template(self, body: Json) -> Json | Reply:
        """`POST /apply-template`."""
        if "messages" not in body:
            error = {"code": 400, "message": "'messages' is required", "type": "invalid_request_error"}
            return plain(400, {"error": error})
        return {"prompt": self.render_body(body)}

    def refuse(self, call: ChatCall) -> Reply | None:
        """A prompt that leaves no room for one token."""
        prompt = self.prompt(call)
        if prompt < self.context:
            return None
        message = f"request ({prompt} tokens) exceeds the available context size ({self.context} tokens), try"
        message = "the request exceeds the available context size, try" if self.old else message
        error = {
            "code": 400,
            "message": f"{message} increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": prompt,
            "n_ctx": self.context,
        }
        return plain(400, {"error": error})

    def wanted(self, call: ChatCall) -> int | None:
        """0 is one token, anything below asks for all there is room for."""
        for name in ("max_completion_tokens", "max_tokens"):
            asked = call.body.get(name)
            if isinstance(asked, int):
                return max(asked, 1) if asked >= 0 else None
        return None

    def extras(self, call: ChatCall, reply: Reply) -> Json:
        """The file's alias and the build answer, whatever was asked for."""
        return {"model": self.served, "system_fingerprint": self.build}


class OllamaServer(EngineServer):
    """Ollama, read at 0.33.0-rc2 (its OpenAI API): a prompt that is too long is cut without a word.

    First whole messages go, the oldest first, never a system message and never the last. Where that
    is not enough, tokens go (`keep` stay at the start) until about half of the context is free; with
    `shift=False` (engines without context shift) that is refused with 400. The usage tells the prompt
    that was left. `context` is `num_ctx`, which `/api/show` does not tell (`trained` is there);
    `/api/ps` does.
    """

    def __init__(
        self,
        *arguments: Any,
        shift: bool = True,
        keep: int = 4,
        trained: int = 131_072,
        version: str = "0.33.0",
        **options: Any,
    ) -> None:
        self.shift = shift
        self.keep = keep
        self.trained = trained
        options.setdefault("reasoning_field", "reasoning")
        options["entry"] = {"owned_by": "library"}
        routes = [
            get("/api/version", lambda: {"version": version}),
            get("/api/ps", lambda: {"models": [self._running()]}),
            get("/api/tags", lambda: {"models": [self._named()]}),
            post("/api/show", self.show),
        ]
        super().__init__(*arguments, routes=routes, **options)

    def _named(self) -> dict[str, Any]:
        details = {
            "format": "gguf",
            "family": "qwen3",
            "parameter_size": "8.2B",
            "quantization_level": "Q4_K_M",
        }
        return {"name": self.served, "model": self.served, "digest": "5eed" * 16, "details": details}

    def _running(self) -> Json:
        return self._named() | {"context_length": self.context, "size_vram": 6_654_289_920}

    def show(self, body: Json) -> Json | Reply:
        """`POST /api/show`; its errors are Ollama's own."""
        if body.get("model") != self.served:
            return plain(404, {"error": f"model '{body.get('model')}' not found"})
        info = {"general.architecture": "qwen3", "qwen3.context_length": self.trained}
        return {
            "parameters": "temperature 0.6",
            "template": "{{ range .Messages }}{{ .Content }}{{ end }}",
            "details": self._named()["details"],
            "model_info": info,
            "capabilities": ["completion", "thinking"] if self.thinks else ["completion"],
        }

    def refuse(self, call: ChatCall) -> Reply | None:
        """A missing model; and a last message that is too long, where the engine cannot shift."""
        name = call.body.get("model")
        if name != self.served:
            return openai_error(404, f"model '{name}' not found", kind="not_found_error")
        if not self.shift and prompt_tokens(self.left(call.messages)) > self.context - 1:
            return openai_error(
                400,
                "the prompt is longer than the context length currently available to the model; shorten the "
                "prompt, adjust the context length in settings, or use a model with a longer context length",
            )
        return None

    def left(self, messages: Messages) -> Messages:
        """The messages that are left of a chat."""
        for first in range(len(messages)):
            system = [one for one in messages[:first] if one.get("role") == "system"]
            left = [*system, *messages[first:]]
            if prompt_tokens(left) <= self.context or first == len(messages) - 1:
                return left
        return messages

    def prompt(self, call: ChatCall) -> int:
        """What is evaluated: whole messages, or about half of the context."""
        tokens = prompt_tokens(self.left(call.messages))
        if tokens <= self.context - 1:
            return tokens
        return self.context - max((self.context - min(self.keep, self.context - 1)) // 2, 1)

    def thinking_off(self, body: Json) -> bool:
        """The effort decides; template arguments are not read."""
        return body.get("reasoning_effort") == "none"

    def extras(self, call: ChatCall, reply: Reply) -> Json:
        """The same fingerprint for everything."""
        return {"system_fingerprint": "fp_ollama"}


class LmStudioServer(EngineServer):
    """LM Studio, after its documentation of REST API v0 (0.3.6 and newer) and public bug reports.

    `/v1/models` has ids alone; `/api/v0/models` tells quantization and `max_context_length`, for a
    loaded model also `loaded_context_length` (`loaded=False`: it does not). A prompt that is too long
    is refused with a bare string: the wording of 2025 and later, with `old=True` the one before. An
    unknown path is answered with 200 and an error in the body.
    """

    def __init__(
        self,
        *arguments: Any,
        trained: int = 131_072,
        quantization: str = "Q4_K_M",
        loaded: bool = True,
        old: bool = False,
        **options: Any,
    ) -> None:
        self.trained = trained
        self.quantization = quantization
        self.loaded = loaded
        self.old = old
        options["entry"] = {"owned_by": "organization_owner"}
        routes = [get("/api/v0/models", lambda: {"object": "list", "data": [self.detail()]})]
        super().__init__(*arguments, routes=routes, **options)

    def detail(self) -> Json:
        """An entry of `GET /api/v0/models`."""
        loaded = {"loaded_context_length": self.context} if self.loaded else {}
        return {
            "id": self.served,
            "object": "model",
            "type": "llm",
            "publisher": "lmstudio-community",
            "arch": "qwen3",
            "compatibility_type": "gguf",
            "quantization": self.quantization,
            "state": "loaded" if self.loaded else "not-loaded",
            "max_context_length": self.trained,
            **loaded,
        }

    def refuse(self, call: ChatCall) -> Reply | None:
        """A prompt that does not fit."""
        prompt = self.prompt(call)
        if prompt < self.context:
            return None
        advice = "Try to load the model with a larger context length, or provide a shorter input"
        message = (
            f"Trying to keep the first {prompt} tokens when context the overflows. However, the model is loaded "
            f"with context length of only {self.context} tokens, which is not enough. {advice}"
            if self.old
            else "The number of tokens to keep from the initial prompt is greater than the context length "
            f"(n_keep: {prompt}>= n_ctx: {self.context}). {advice}."
        )
        return plain(400, {"error": message})

    def unknown(self, request: web.Request) -> tuple[int, Json]:
        """200, whatever was asked."""
        return 200, {"error": f"Unexpected endpoint or method. ({request.method} {request.path})"}
