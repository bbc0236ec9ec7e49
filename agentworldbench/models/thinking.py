"""How each model family is told to think, not to think, or how hard: one literal table.

In: where a model is asked (a server of one's own or an engine in this process, or a LiteLLM
provider), its name, and what the user wants. Out: parameters of the request body. Nothing is
guessed in silence: a model that cannot be told what was asked is refused with the reason, and
where a switch is only a convention the answers are checked (`engine/steps.py` notes reasoning
that is missing or unwanted). Sources: the chat templates and model cards of the families, and the
providers' API references, as docs/models.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agentworldbench.errors import ConfigError
from agentworldbench.records import Thinking

Parameters = dict[str, Any]
Write = Callable[[bool], Parameters]


@dataclass(frozen=True)
class Family:
    """One family: a pattern of its names, and how it is switched.

    `switch` writes on and off. True and False stand for models that always or never think: to ask
    them for what they do anyway needs no parameter, and `why` refuses the other. `effort`: the
    template has an argument for it, which servers that do not know the parameter still hand on.
    """

    pattern: str
    switch: Write | bool
    why: str = ""
    effort: bool = False


def _template(argument: str) -> Write:
    """A switch of the chat template, which servers take as `chat_template_kwargs`."""
    return lambda on: {"chat_template_kwargs": {argument: on}}


def _type(on: bool) -> Parameters:
    return {"thinking": {"type": "enabled" if on else "disabled"}}


OPEN_FAMILIES: Final = (
    Family(r"gpt-oss", True, "gpt-oss always reasons; --reasoning-effort low is the least it takes", True),
    Family(r"minimax-m[12]", True, "MiniMax-M models always reason"),
    Family(r"qwq|qwen3.*thinking|deepseek-r1|kimi-k2-thinking|magistral", True, "this model always reasons"),
    Family(r"qwen3.*(instruct|coder)", False, "this model never reasons"),
    Family(r"deepseek-v?(3\.[1-9]|[4-9])", _template("thinking"), effort=True),
    Family(r"kimi-k2\.[5-9]|kimi-k[3-9]", _template("thinking")),
    Family(r"granite-3", _template("thinking")),
    Family(r"", _template("enable_thinking")),  # Qwen3 and later, GLM, SmolLM3, Hunyuan, Nemotron, EXAONE …
)
"""Models behind a server of one's own or in this process; the first pattern found in the name counts.

The last entry is the most common name; templates ignore arguments that they do not know.
"""

_EFFORT_ON: Final = "medium"
"""Effort that stands for `--thinking on` where a provider knows degrees only."""


def own_server(name: str, thinking: Thinking, effort: str | None) -> Parameters:
    """Parameters for an OpenAI-compatible server, or for an engine in this process."""
    body: Parameters = {}
    _no_contradiction(name, thinking, effort)
    family = next(one for one in OPEN_FAMILIES if re.search(one.pattern, name.lower()))
    if thinking != "default":
        if not isinstance(family.switch, bool):
            body |= family.switch(thinking == "on")
        elif family.switch is not (thinking == "on"):
            _refuse(name, thinking, family.why)
    if effort:
        body["reasoning_effort"] = effort
        if family.effort:
            body["chat_template_kwargs"] = body.get("chat_template_kwargs", {}) | {"reasoning_effort": effort}
    return body


def provider(provider: str, name: str, thinking: Thinking, effort: str | None) -> Parameters:
    """Parameters for a hosted model, as LiteLLM takes or hands them on."""
    if thinking == "default" and not effort:
        return {}
    _no_contradiction(name, thinking, effort)
    model = name.lower()
    claude = "claude" in model
    if provider in ("hosted_vllm", "vllm", "lm_studio", "llamafile"):
        return own_server(name, thinking, effort)
    if claude and provider != "openrouter":
        return _claude(name, thinking, effort)
    if provider in _BY_PROVIDER:
        return _BY_PROVIDER[provider](name, thinking, effort)
    if thinking == "default":
        return {"reasoning_effort": effort}
    _refuse(name, thinking, f"how provider '{provider}' switches it is not known here")
    return {}


def _claude(name: str, thinking: Thinking, effort: str | None) -> Parameters:
    """Anthropic: newer models decide themselves how long to think; older ones want a budget."""
    body: Parameters = {"reasoning_effort": effort} if effort and thinking != "off" else {}
    if thinking == "off":
        return {"thinking": {"type": "disabled"}}
    if thinking == "on" and not effort:
        adaptive = re.search(r"(opus|sonnet|haiku)-(4[-.]([6-9]|\d\d)|[5-9])(?!\d)", name.lower())
        # Without `display` the newest models leave their reasoning out of the answer.
        shown = {"type": "adaptive", "display": "summarized"}
        body["thinking"] = shown if adaptive else {"type": "enabled", "budget_tokens": 16384}
    return body


def _openai(name: str, thinking: Thinking, effort: str | None) -> Parameters:
    """OpenAI: degrees only; models before GPT-5.1 cannot be told not to reason."""
    if thinking == "off":
        older = re.search(r"(^|/)(o\d|gpt-5(?!\.\d))", name.lower())
        if older:
            _refuse(name, thinking, "give --reasoning-effort minimal or low: it cannot be switched off")
        return {"reasoning_effort": "none"}
    return {"reasoning_effort": effort or _EFFORT_ON}


def _gemini(name: str, thinking: Thinking, effort: str | None) -> Parameters:
    """Gemini: LiteLLM writes `thinkingConfig` (a level for Gemini 3, a budget before) from these."""
    if thinking == "off":
        if re.search(r"gemini-(2\.5-pro|3)", name.lower()):
            _refuse(name, thinking, "give --reasoning-effort low: this model cannot stop thinking")
        return {"reasoning_effort": "none"}
    if effort or re.search(r"gemini-3", name.lower()):
        return {"reasoning_effort": effort or "high"}
    return {"thinking": {"type": "enabled", "budget_tokens": -1}}  # the model's own measure, as by default


def _openrouter(name: str, thinking: Thinking, effort: str | None) -> Parameters:
    reasoning: Parameters = {"effort": effort} if effort else {}
    if thinking != "default":
        reasoning["enabled"] = thinking == "on"
    return {"reasoning": reasoning}


def _switched(switch: Write) -> Callable[[str, Thinking, str | None], Parameters]:
    """A provider with a switch of its own, and degrees where it takes them."""

    def write(name: str, thinking: Thinking, effort: str | None) -> Parameters:
        body = {} if thinking == "default" else switch(thinking == "on")
        return body | ({"reasoning_effort": effort} if effort else {})

    return write


_BY_PROVIDER: Final = {
    "openai": _openai,
    "azure": _openai,
    "gemini": _gemini,
    "vertex_ai": _gemini,
    "openrouter": _openrouter,
    "deepseek": _switched(_type),
    "moonshot": _switched(_type),
    "zai": _switched(_type),
    "volcengine": _switched(_type),
    "dashscope": _switched(lambda on: {"enable_thinking": on}),
    "together_ai": _switched(lambda on: {"chat_template_kwargs": {"enable_thinking": on}}),
    "groq": _switched(lambda on: {"reasoning_effort": "default" if on else "none"}),
    "fireworks_ai": _switched(lambda on: {"reasoning_effort": _EFFORT_ON if on else "none"}),
}
"""Providers whose switch is known; all others take --reasoning-effort alone."""


def _no_contradiction(name: str, thinking: Thinking, effort: str | None) -> None:
    if thinking == "off" and effort not in (None, "none"):
        _refuse(name, thinking, "--reasoning-effort asks for the opposite")


def _refuse(name: str, thinking: Thinking, why: str) -> None:
    raise ConfigError(
        f"--thinking {thinking}: {name}: {why}; a parameter of your own can be given with --extra-body"
    )
