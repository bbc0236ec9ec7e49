"""Stand-in for vLLM; `version` takes the releases whose sources the behaviour was read from, and no others.

Wordings and numbers follow the sources to the letter, odd ones included.
"""

from __future__ import annotations

from typing import Any, Literal

from .engine_servers_base import (
    EngineServer,
    Json,
    count,
    get,
    openai_error,
    plain,
    post,
    token_ids,
)
from .scripted_calls import ChatCall, Reply

VllmVersion = Literal["0.6.6.post1", "0.10.0", "0.14.1", "0.17.1", "0.24.0", "0.33.0"]


class VllmServer(EngineServer):
    """vLLM, read in the releases 0.6.6.post1, 0.10.0, 0.14.1, 0.17.1, 0.24.0 and 0.33.0.

    All refuse a prompt that leaves no room for one token. A prompt that leaves less room than was
    asked for is refused up to 0.24.0; 0.33.0 silently makes the answer shorter. The prompt that 0.17.1
    and 0.24.0 name is no more than a lower bound: the tokenizer stops one token after what fits beside
    the answer. Errors stand flat in the body up to 0.10.0, under `error` since; 0.10.0 and 0.14.1 end
    them in " None". Reasoning is `reasoning_content`, in 0.14.1 also `reasoning`, later that alone.
    """

    EMPTY = None

    def __init__(self, *arguments: Any, version: VllmVersion = "0.33.0", **options: Any) -> None:
        self.version = version
        self.generation = tuple(int(part) for part in version.split(".")[:2])
        shown = "reasoning_content" if self.generation < (0, 14) else "reasoning"
        options.setdefault("reasoning_field", "both" if version == "0.14.1" else shown)
        served, context = options.get("served", "served-model"), options.get("context", 4096)
        options["entry"] = {
            "owned_by": "vllm",
            "root": f"/models/{served}",
            "parent": None,
            "max_model_len": context,
            "permission": [{"id": "modelperm-0", "object": "model_permission", "allow_sampling": True}],
        }
        routes = [get("/version", lambda: {"version": version}), post("/tokenize", self.tokenize)]
        super().__init__(*arguments, routes=routes, **options)

    def error(self, status: int, message: str, kind: str, param: str | None = None) -> Reply:
        """In the shape of this release."""
        if self.generation < (0, 14):
            return plain(
                status, {"object": "error", "message": message, "type": kind, "param": None, "code": status}
            )
        return openai_error(status, message, kind=kind, param=param, code=status)

    def tokenize(self, body: Json) -> Json | Reply:
        """`POST /tokenize`, of messages or of a prompt."""
        missing = self.missing(body.get("model"))
        if missing:
            return missing
        text = self.render_body(body) if "messages" in body else str(body.get("prompt", ""))
        told = {"count": count(text), "max_model_len": self.context, "tokens": token_ids(text)}
        return told | ({"token_strs": None} if self.generation >= (0, 14) else {})

    def missing(self, model: Any) -> Reply | None:
        """Refusal of any name but the served one."""
        if not model or model == self.served:
            return None
        message = f"The model `{model}` does not exist."
        if self.version == "0.33.0":
            message += f" Valid aliases: {self.served}."
        return self.error(404, message, "NotFoundError", "model")

    def refuse(self, call: ChatCall) -> Reply | None:
        """The model's name, then the lengths."""
        missing = self.missing(call.body.get("model"))
        if missing:
            return missing
        prompt, asked = self.prompt(call), self.wanted(call)
        refusal = self._too_long(prompt, asked)
        if refusal is None:
            return None
        message, param, value = refusal
        if param and self.generation >= (0, 14):
            message += f" (parameter={param}, value={value})"
        if self.version in ("0.10.0", "0.14.1"):
            message += " None"
        return self.error(400, message, "BadRequestError", None if self.version == "0.14.1" else param)

    def _too_long(self, prompt: int, asked: int | None) -> tuple[str, str | None, int] | None:
        if self.generation < (0, 14):
            message = _vllm_sum(self.context, prompt, asked)
            return (message, None, 0) if message else None
        if self.version == "0.14.1":
            return _vllm_split(self.context, prompt, asked)
        return _vllm_parameters(self.version, self.context, prompt, asked)

    def extras(self, call: ChatCall, reply: Reply) -> Json:
        """0.24.0 and later tell a fingerprint of release and configuration."""
        known = self.generation >= (0, 24)
        return {"system_fingerprint": f"vllm-{self.version}-5eed5eed" if known else None}


def _vllm_sum(context: int, prompt: int, asked: int | None) -> str | None:
    """Up to 0.10.0: prompt and answer together."""
    start = f"This model's maximum context length is {context} tokens. However, you requested "
    if asked is None:
        end = f"{prompt} tokens in the messages, Please reduce the length of the messages."
        return start + end if prompt >= context else None
    if prompt + asked <= context:
        return None
    parts = f"({prompt} in the messages, {asked} in the completion)"
    return f"{start}{prompt + asked} tokens {parts}. Please reduce the length of the messages or completion."


def _vllm_split(context: int, prompt: int, asked: int | None) -> tuple[str, str, int] | None:
    """0.14.1: first the prompt, then what is left for the answer."""
    limit = f"This model's maximum context length is {context} tokens"
    if prompt >= context:
        end = f"your request has {prompt} input tokens. Please reduce the length of the input messages."
        return f"{limit}. However, {end}", "input_tokens", prompt
    if asked is None or prompt + asked <= context:
        return None
    return (
        f"'max_tokens' or 'max_completion_tokens' is too large: {asked}. {limit} and your request has "
        f"{prompt} input tokens ({asked} > {context} - {prompt}).",
        "max_tokens",
        asked,
    )


def _vllm_parameters(
    version: str, context: int, prompt: int, asked: int | None
) -> tuple[str, str | None, int] | None:
    """Since 0.17.1: max_tokens alone, then the prompt, of which no more is counted than is needed."""
    output = asked or 0
    if output > context:
        space = "" if version == "0.17.1" else " "
        limit = f"{context}" if version == "0.33.0" else f"max_total_tokens={context}"
        end = f"cannot be greater than max_model_len={limit}. Please request fewer output tokens."
        return f"max_tokens={output}{space}{end}", "max_tokens", output
    room = context if version == "0.33.0" else context - output
    counted = min(prompt, room + 1)
    limit = f"This model's maximum context length is {context} tokens. However, "
    if counted > room and version == "0.17.1":
        message = (
            f"You passed {counted} input tokens and requested {output} output tokens. However, the model's "
            f"context length is only {context} tokens, resulting in a maximum input length of {room} tokens. "
            "Please reduce the length of the input prompt."
        )
    elif counted > room and version == "0.24.0":
        message = (
            f"{limit}you requested {output} output tokens and your prompt contains at least {counted} input "
            f"tokens, for a total of at least {counted + output} tokens. Please reduce the length of the "
            "input prompt or the number of requested output tokens."
        )
    elif counted > room:
        message = (
            f"{limit}your prompt contains at least {counted} input tokens, which exceeds this limit even "
            "without any output tokens. Please reduce the length of the input prompt."
        )
    elif prompt == context:
        return (
            f"The decoder prompt (length {prompt}) plus the number of requested output tokens (at least 1) is "
            f"longer than the maximum model length of {context}. Make sure that `max_model_len` is no smaller "
            "than the number of text tokens (prompt + requested output tokens).",
            None,
            0,
        )
    else:
        return None
    return message, "input_tokens", counted
