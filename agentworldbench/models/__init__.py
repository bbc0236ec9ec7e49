"""From a model string to a backend: the literal table of schemes, and nothing else.

baseline/NAME           anchors without a model
replay/RUN|FILE         stored answers
hf/REPO|PATH            transformers in this process, built by lm-eval's class
vllm/REPO|PATH          vLLM in this process, likewise (LiteLLM's provider of that name is hosted_vllm/)
openai-api/NAME         an OpenAI-compatible server at --base-url
NAME with --base-url    the same, when NAME's first part is no LiteLLM provider
anything else           LiteLLM, as it stands
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from agentworldbench.errors import ConfigError
from agentworldbench.models.base import Connection, Model, root_url
from agentworldbench.models.providers import LITELLM_PROVIDERS
from agentworldbench.task import Task

EXAMPLES: Final = {
    "baseline": "baseline/copy-last",
    "replay": "replay/runs/my-run",
    "hf": "hf/Qwen/Qwen3-8B",
    "vllm": "vllm/Qwen/Qwen3-8B",
    "openai-api": "openai-api/my-model",
}
"""A model string of each kind that is not LiteLLM's; the last alone takes a `--base-url`."""
SCHEMES: Final = tuple(EXAMPLES)


def create_model(name: str, connection: Connection, tasks: Mapping[str, Task]) -> Model:
    """Build the backend of `name`. Raises ConfigError for a string that leads nowhere."""
    connection = replace(connection, base_url=root_url(connection.base_url))
    scheme, slash, rest = name.partition("/")
    if connection.batch_size != "auto" and scheme not in ("hf", "vllm"):
        raise ConfigError(
            f"model '{name}': --batch-size is for hf/ and vllm/; servers take --max-connections"
        )
    if scheme in SCHEMES and not rest:
        raise ConfigError(f"model '{name}': a name must follow '{scheme}/', for example {EXAMPLES[scheme]}")
    if scheme in SCHEMES[:-1] and connection.base_url:
        raise ConfigError(f"model '{name}': takes no --base-url")
    streams = scheme == "openai-api" or (connection.base_url and not (slash and scheme in LITELLM_PROVIDERS))
    if connection.stream and not streams:
        raise ConfigError(f"model '{name}': replies are streamed from openai-api/ servers only")
    if connection.model_args and scheme not in ("hf", "vllm"):
        raise ConfigError(f"model '{name}': --model-args are for hf/ and vllm/")
    if scheme == "baseline":
        from agentworldbench.models.baseline import BaselineModel

        return BaselineModel(name, tasks)
    if scheme == "replay":
        from agentworldbench.models.replay import ReplayModel

        return ReplayModel(name)
    if scheme in ("hf", "vllm"):
        from agentworldbench.models.in_process import InProcessModel

        return InProcessModel(name, connection, "hf" if scheme == "hf" else "vllm")
    if streams:
        from agentworldbench.models.openai_api import OpenAIModel

        return OpenAIModel(name, rest if scheme == "openai-api" else name, connection)
    from agentworldbench.models.litellm_api import LiteLLMModel

    return LiteLLMModel(name, connection)


__all__ = ["SCHEMES", "Connection", "Model", "create_model"]
