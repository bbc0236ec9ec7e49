"""Stand-ins for hosted providers with OpenAI's chat API: OpenAI itself and DeepSeek.

Their sources are not public: wordings are those of public bug reports and API references (read in
2026), the rest is what these references say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .engine_servers_base import EngineServer, Json, openai_error
from .scripted_calls import ChatCall, Reply

GPT_5: Final = ("minimal", "low", "medium", "high")
GPT_51: Final = ("none", "low", "medium", "high")
_PARAMETERS: Final = frozenset(
    [
        "model",
        "messages",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "n",
        "stop",
        "seed",
        "stream",
        "user",
        "metadata",
        "response_format",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "reasoning_effort",
        "service_tier",
        "store",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "prompt_cache_key",
        "safety_identifier",
    ]
)
CACHE_FROM: Final = 1024
CACHE_STEP: Final = 128


class OpenAIServer(EngineServer):
    """OpenAI's chat completions, after its API reference and public reports (GPT-4o, GPT-5, GPT-5.1).

    `reasoning` models take `max_completion_tokens` only, no other temperature than 1, no `top_p`, and
    the `efforts` given (`GPT_5`, `GPT_51`); they think unless the effort is `none`, and what they
    thought shows in the usage alone. Their prompt may fill the context less the longest answer. Others
    refuse `reasoning_effort`, and prompt and answer that exceed the context together. A prompt of 1,024
    tokens or more that was asked before is cached in steps of 128. The served name is a dated snapshot.
    """

    TEMPLATE_SWITCH = False

    def __init__(
        self,
        *arguments: Any,
        reasoning: bool = True,
        efforts: Sequence[str] = GPT_5,
        output_cap: int = 1024,
        snapshot: str = "2025-08-07",
        fingerprint: str | None = "fp_5eed5eed",
        **options: Any,
    ) -> None:
        self.reasoning = reasoning
        self.efforts = efforts
        self.output_cap = output_cap
        self.snapshot = snapshot
        self.fingerprint = fingerprint
        options["entry"] = {"owned_by": "system"}
        options.setdefault("reasoning_field", "hidden")
        super().__init__(*arguments, **options)

    @property
    def longest_prompt(self) -> int:
        """Tokens that the prompt of a reasoning model may have."""
        return self.context - self.output_cap

    def refuse(self, call: ChatCall) -> Reply | None:
        """Name, parameters, then lengths."""
        name = call.body.get("model")
        if name != self.served:
            message = f"The model `{name}` does not exist or you do not have access to it."
            return openai_error(404, message, code="model_not_found")
        unknown = next((one for one in call.body if one not in _PARAMETERS), None)
        if unknown is not None:
            return openai_error(400, f"Unrecognized request argument supplied: {unknown}")
        refusal = self._parameters(call.body) if self.reasoning else self._effort_refused(call.body)
        return refusal or self._cap_exceeded(call.body) or self._too_long(call)

    def _parameters(self, body: Json) -> Reply | None:
        if body.get("max_tokens") is not None:
            message = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
            return _unsupported("parameter", message, "max_tokens")
        if body.get("temperature", 1) != 1:
            value = body["temperature"]
            message = f"'temperature' does not support {value} with this model. Only the default (1) value"
            return _unsupported("value", f"{message} is supported.", "temperature")
        if "top_p" in body:
            return _unsupported("parameter", "'top_p' is not supported with this model.", "top_p")
        effort = body.get("reasoning_effort")
        if effort is not None and effort not in self.efforts:
            *first, last = (f"'{one}'" for one in self.efforts)
            message = (
                f"'reasoning_effort' does not support '{effort}' with this model. Supported values are: "
            )
            return _unsupported("value", f"{message}{', '.join(first)}, and {last}.", "reasoning_effort")
        return None

    def _effort_refused(self, body: Json) -> Reply | None:
        if "reasoning_effort" not in body:
            return None
        return openai_error(400, "Unrecognized request argument supplied: reasoning_effort")

    def _cap_exceeded(self, body: Json) -> Reply | None:
        for name in ("max_tokens", "max_completion_tokens"):
            asked = body.get(name)
            if asked is not None and asked > self.output_cap:
                message = (
                    f"{name} is too large: {asked}. This model supports at most {self.output_cap} completion "
                    f"tokens, whereas you provided {asked}."
                )
                return openai_error(400, message, param=name, code="invalid_value")
        return None

    def _too_long(self, call: ChatCall) -> Reply | None:
        prompt, asked = self.prompt(call), self.wanted(call) or 0
        start = f"This model's maximum context length is {self.context} tokens. However, "
        if self.reasoning and prompt > self.longest_prompt:
            message = (
                f"Input tokens exceed the configured limit of {self.longest_prompt} tokens. Your messages "
                f"resulted in {prompt} tokens. Please reduce the length of the messages."
            )
        elif self.reasoning or prompt + asked <= self.context:
            return None
        elif prompt > self.context:
            message = (
                f"{start}your messages resulted in {prompt} tokens. Please reduce the length of the messages."
            )
        else:
            message = (
                f"{start}you requested {prompt + asked} tokens ({prompt} in the messages, {asked} in the "
                "completion). Please reduce the length of the messages or completion."
            )
        return openai_error(400, message, param="messages", code="context_length_exceeded")

    def budget(self, call: ChatCall) -> int:
        """What is asked for, up to the longest answer."""
        return min(super().budget(call), self.output_cap)

    def thinking_off(self, body: Json) -> bool:
        """By the effort; models that do not reason never think."""
        return not self.reasoning or body.get("reasoning_effort") == "none"

    def usage(self, call: ChatCall, prompt: int, thought: int, text: int) -> dict[str, Any]:
        """With details."""
        cached = prompt // CACHE_STEP * CACHE_STEP if call.attempt > 1 and prompt >= CACHE_FROM else 0
        return super().usage(call, prompt, thought, text) | {
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": thought, "audio_tokens": 0},
        }

    def extras(self, call: ChatCall, reply: Reply) -> Json:
        """Snapshot and fingerprint."""
        served = f"{self.served}-{self.snapshot}"
        return {"model": served, "system_fingerprint": self.fingerprint, "service_tier": "default"}


def _unsupported(what: str, message: str, param: str) -> Reply:
    return openai_error(400, f"Unsupported {what}: {message}", param=param, code=f"unsupported_{what}")


class DeepSeekServer(EngineServer):
    """DeepSeek's chat completions, after its API reference (V4, thinking mode) and public reports.

    It thinks unless `thinking` is `{"type": "disabled"}`; the thoughts are `reasoning_content`.
    Temperature and unknown parameters are ignored without a word. An answer longer than `output_cap`
    may not be asked for; prompt and answer may not exceed the context together.
    """

    TEMPLATE_SWITCH = False

    def __init__(self, *arguments: Any, output_cap: int = 1024, **options: Any) -> None:
        self.output_cap = output_cap
        options["entry"] = {"owned_by": "deepseek"}
        super().__init__(*arguments, **options)

    def refuse(self, call: ChatCall) -> Reply | None:
        """Name, range, context."""
        if call.body.get("model") != self.served:
            return openai_error(400, "Model Not Exist", code="invalid_request_error")
        prompt, asked = self.prompt(call), self.wanted(call) or 0
        if asked > self.output_cap:
            message = f"Invalid max_tokens value, the valid range of max_tokens is [1, {self.output_cap}]"
        elif prompt + asked > self.context:
            message = (
                f"This model's maximum context length is {self.context} tokens. However, you requested "
                f"{prompt + asked} tokens ({prompt} in the messages, {asked} in the completion). Please reduce "
                "the length of the messages or completion."
            )
        else:
            return None
        return openai_error(400, message, code="invalid_request_error")

    def budget(self, call: ChatCall) -> int:
        """What is asked for, up to the longest answer."""
        return min(super().budget(call), self.output_cap)

    def thinking_off(self, body: Json) -> bool:
        """By its own switch."""
        return (body.get("thinking") or {}).get("type") == "disabled"

    def usage(self, call: ChatCall, prompt: int, thought: int, text: int) -> dict[str, Any]:
        """With its own names for the cache."""
        return super().usage(call, prompt, thought, text) | {
            "prompt_cache_hit_tokens": 0,
            "prompt_cache_miss_tokens": prompt,
            "completion_tokens_details": {"reasoning_tokens": thought},
        }

    def extras(self, call: ChatCall, reply: Reply) -> Json:
        """A fingerprint."""
        return {"system_fingerprint": "fp_5eed5eed_prod"}
