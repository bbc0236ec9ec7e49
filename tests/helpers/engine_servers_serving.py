"""Stand-ins for SGLang and Text Generation Inference.

`version` takes the releases whose sources the behaviour was read from, and no others. Wordings and
numbers follow the sources to the letter, odd ones included.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from .engine_servers_base import EngineServer, Json, get, plain, post, rendered, token_ids
from .scripted_calls import ChatCall, Reply

SglangVersion = Literal["0.4.6.post5", "0.5.9", "0.5.23"]
TgiVersion = Literal["2.4.0", "3.3.6"]
TGI_CHUNK: Final = 1024


class SglangServer(EngineServer):
    """SGLang, read in the releases 0.4.6.post5, 0.5.9 and 0.5.23; any model name is served.

    Errors stand flat in the body. Prompt and answer may not fill the context (in 0.5.23 they may), and
    the scheduler silently keeps two tokens of the context for itself. `kv_tokens` is a cache smaller than the context:
    the prompt may then be refused with a second wording, the answer is silently shortened.
    `auto_truncate` is `--allow-auto-truncate`: the end of the prompt is silently cut. `/tokenize` takes
    messages in 0.5.23 only, a prompt since 0.5.9, and its `max_model_len` is the tokenizer's
    (`tokenizer_length`), not the context. `/server_info` has `context_length` only where the operator
    set one (`context_set`).
    """

    def __init__(
        self,
        *arguments: Any,
        version: SglangVersion = "0.5.23",
        kv_tokens: int | None = None,
        auto_truncate: bool = False,
        tokenizer_length: int = 131_072,
        context_set: bool = False,
        **options: Any,
    ) -> None:
        self.version = version
        self.kv_tokens = kv_tokens
        self.auto_truncate = auto_truncate
        self.tokenizer_length = tokenizer_length
        self.context_set = context_set
        served, context = options.get("served", "served-model"), options.get("context", 4096)
        options["entry"] = {"owned_by": "sglang", "root": served, "parent": None, "max_model_len": context}
        routes = [get("/get_server_info", self.server_info), get("/get_model_info", self.model_info)]
        if version != "0.4.6.post5":
            routes += [get("/server_info", self.server_info), get("/model_info", self.model_info)]
            routes += [post(path, self.tokenize) for path in ("/tokenize", "/v1/tokenize")]
        super().__init__(*arguments, routes=routes, **options)

    @property
    def longest_request(self) -> int:
        """The scheduler's bound for prompt and answer."""
        return min(self.context - 1, (self.kv_tokens or self.context) - 1)

    @property
    def longest_prompt(self) -> int:
        """The scheduler's bound (`max_req_input_len`), which a prompt must stay below."""
        return self.longest_request - 5

    def server_info(self) -> Json:
        """`GET /get_server_info`, since 0.5.9 also `/server_info`."""
        return {
            "model_path": f"/models/{self.served}",
            "served_model_name": self.served,
            "context_length": self.context if self.context_set else None,
            "dtype": "auto",
            "quantization": "fp8",
            "kv_cache_dtype": "auto",
            "revision": None,
            "chat_template": None,
            "reasoning_parser": "qwen3" if self.thinks else None,
            "tp_size": 1,
            "max_total_num_tokens": self.kv_tokens or 16 * self.context,
            "max_req_input_len": self.longest_prompt,
            "internal_states": [{}],
            "version": self.version,
        }

    def model_info(self) -> Json:
        """`GET /get_model_info`, since 0.5.9 also `/model_info`."""
        path = f"/models/{self.served}"
        return {"model_path": path, "tokenizer_path": path, "is_generation": True}

    def tokenize(self, body: Json) -> Json | Reply:
        """`POST /tokenize`."""
        if "messages" in body and self.version == "0.5.23":
            text = self.render_body(body)
        elif isinstance(body.get("prompt"), str):
            text = body["prompt"]
        else:
            missing = (
                "[{'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required', 'input': {…}}]"
            )
            return self.error(missing, "Bad Request")
        tokens = token_ids(text)
        return {"tokens": tokens, "count": len(tokens), "max_model_len": self.tokenizer_length}

    def error(self, message: str, kind: str | None = None) -> Reply:
        """All refusals are flat."""
        kind = kind or ("BadRequestError" if self.version == "0.4.6.post5" else "BadRequest")
        return plain(400, {"object": "error", "message": message, "type": kind, "param": None, "code": 400})

    def refuse(self, call: ChatCall) -> Reply | None:
        """First the tokenizer's process, then the scheduler."""
        prompt, asked = self.count_body(call.body), self.wanted(call)
        if self.auto_truncate:
            return None
        if prompt >= self.context:
            limit = f"model's context length ({self.context} tokens)."
            return self.error(f"The input ({prompt} tokens) is longer than the {limit}")
        fills = self.context + (1 if self.version == "0.5.23" else 0)
        if asked is not None and prompt + asked >= fills:
            return self.error(
                f"Requested token count exceeds the model's maximum context length of {self.context} tokens. "
                f"You requested a total of {prompt + asked} tokens: {prompt} tokens from the input messages "
                f"and {asked} tokens for the completion. Please reduce the number of tokens in the input "
                "messages or the completion to fit within the limit."
            )
        if prompt >= self.longest_prompt:
            return self.error(
                f"Input length ({prompt} tokens) exceeds the maximum allowed length ({self.longest_prompt} "
                "tokens). Use a shorter input or enable --allow-auto-truncate."
            )
        return None

    def prompt(self, call: ChatCall) -> int:
        """With `auto_truncate`, what is left of it."""
        whole = self.count_body(call.body)
        return min(whole, self.longest_prompt) if self.auto_truncate else whole

    def budget(self, call: ChatCall) -> int:
        """The scheduler's own bound, without a word."""
        room = self.longest_request - self.prompt(call) - 1
        asked = self.wanted(call)
        return room if asked is None else min(asked, room)


class TgiServer(EngineServer):
    """Text Generation Inference, read at 2.4.0 and 3.3.6; any model name is served, errors are 422.

    `context` is `max_total_tokens`. 2.4.0 refuses a prompt and an answer that exceed it together.
    3.3.6 looks at no more than 1,024 tokens of the answer at a time and makes it in pieces of that
    size while another whole piece fits: answers stop early, or are longer than what was asked for.
    """

    def __init__(
        self, *arguments: Any, version: TgiVersion = "3.3.6", max_input: int | None = None, **options: Any
    ) -> None:
        self.version = version
        self._max_input = max_input
        options["entry"] = {"owned_by": options.get("served", "served-model")}
        routes = [get("/info", self.info), post("/chat_tokenize", self.chat_tokenize)]
        super().__init__(*arguments, routes=routes, **options)

    @property
    def max_input(self) -> int:
        """`max_input_tokens`: the longest prompt."""
        return self._max_input or self.context - 1

    def info(self) -> Json:
        """`GET /info`."""
        return {
            "model_id": self.served,
            "model_sha": "0123456789abcdef0123456789abcdef01234567",
            "model_pipeline_tag": "text-generation",
            "max_concurrent_requests": 128,
            "max_best_of": 2,
            "max_stop_sequences": 4,
            "max_input_tokens": self.max_input,
            "max_total_tokens": self.context,
            "validation_workers": 2,
            "max_client_batch_size": 4,
            "router": "text-generation-router",
            "version": self.version,
            "sha": None,
            "docker_label": None,
        }

    def chat_tokenize(self, body: Json) -> Json:
        """`POST /chat_tokenize`."""
        text = rendered(body.get("messages") or [])
        tokens = [{"id": number, "text": "", "start": 0, "stop": 0} for number in token_ids(text)]
        return {"tokenize_response": tokens, "templated_text": text}

    def pieces(self, prompt: int, asked: int | None) -> int:
        """Tokens that are looked at, and made, at a time."""
        whole = max(self.context - prompt, 0) if asked is None else asked
        return whole if self.version == "2.4.0" else min(whole, TGI_CHUNK)

    def refuse(self, call: ChatCall) -> Reply | None:
        """The sum first, then the prompt alone."""
        prompt = self.prompt(call)
        piece = self.pieces(prompt, self.wanted(call))
        if prompt + piece > self.context:
            message = (
                f"`inputs` tokens + `max_new_tokens` must be <= {self.context}. Given: {prompt} `inputs` "
                f"tokens and {piece} `max_new_tokens`"
            )
        elif prompt > self.max_input:
            message = f"`inputs` must have less than {self.max_input} tokens. Given: {prompt}"
        else:
            return None
        return plain(422, {"error": f"Input validation error: {message}", "error_type": "validation"})

    def budget(self, call: ChatCall) -> int:
        """Whole pieces, while another one fits."""
        prompt = self.prompt(call)
        asked = self.wanted(call)
        piece = self.pieces(prompt, asked)
        whole = max(self.context - prompt, 0) if asked is None else asked
        made = piece
        while made < whole and prompt + made <= self.max_input and prompt + made + piece <= self.context:
            made += piece
        return made

    def extras(self, call: ChatCall, reply: Reply) -> Json:
        """The release stands in the fingerprint."""
        return {"system_fingerprint": f"{self.version}-native", "model": self.served}
