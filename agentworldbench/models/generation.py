"""What an engine in this process is asked, and what it answers: records without any library.

In: a `Request`. Out: a `Job` for the engine that holds the weights (`hf_engine.py`,
`vllm_engine.py`): prompt tokens, room for the answer, how tokens are drawn. Parameters that these
engines do not know are refused by name; none is dropped. `Engine` is the whole of what
`batching.py` needs from an engine, so that tests can stand in for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from agentworldbench.errors import ConfigError
from agentworldbench.records import Sampling
from agentworldbench.run_record import ModelFacts

if TYPE_CHECKING:
    from agentworldbench.models.chat_template import ChatTemplate

NUMBERS: Final = ("top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
"""Sampling parameters beyond those with a flag that both engines draw by."""
_FOR_TEMPLATE: Final = ("chat_template_kwargs", "reasoning_effort")
OTHERS: Final = (*NUMBERS, "stop", *_FOR_TEMPLATE)
"""Everything that --gen-kwargs and --extra-body may hold for an engine in this process."""


@dataclass(frozen=True)
class Decoding:
    """How tokens are drawn; None means that the model's own generation_config decides.

    Requests of one decoding share a batch. `schema` is a JSON schema that the answer must obey.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: tuple[str, ...] = ()
    schema: str | None = None

    def over(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers by name, unset ones from `defaults`; those that neither sets are left out."""
        named = {name: getattr(self, name) for name in ("temperature", "top_p", *NUMBERS)}
        both = {name: defaults.get(name) if value is None else value for name, value in named.items()}
        return {name: value for name, value in both.items() if value is not None}


@dataclass(eq=False)
class Job:
    """One answer to make: at most `room` tokens. `cancelled`: nobody waits for it any more."""

    prompt: Sequence[int]
    room: int
    decoding: Decoding
    seed: int | None = None
    cancelled: bool = False
    answer: asyncio.Future[Generated] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Generated:
    """Tokens that were made, the end token included, and why there are no more."""

    tokens: tuple[int, ...]
    finish: Literal["stop", "length"]


class OutOfMemory(Exception):
    """The batch does not fit into memory; a smaller one may."""


class EngineFailed(Exception):
    """The engine made no answer. `lasting`: it has failed again and again and will not recover."""

    def __init__(self, message: str, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


@dataclass(frozen=True)
class Loaded:
    """What is known once the weights are there: the chat template, the context, what to record."""

    template: ChatTemplate
    context: int
    context_from: str
    facts: ModelFacts


@dataclass(frozen=True)
class EngineSettings:
    """What to load: repository or folder, arguments of lm-eval's class, our own arguments.

    `template` is the text of a chat template that replaces the model's; `template_arguments` go
    into every prompt.
    """

    name: str
    source: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    template: str | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | Literal["auto"] = "auto"


class Engine(Protocol):
    """Weights and the library that runs them. Every method may block; one thread calls them all.

    A `rolling` engine takes further jobs while it works and is given all there are; any other gets
    one batch at a time. `takes_schema`: answers can be held to a JSON schema.
    """

    rolling: bool
    takes_schema: bool

    def load(self) -> Loaded:
        """Load the weights. Raises an AwbError, or whatever the library raises."""

    def fits(self, tokens: int) -> int:
        """How many answers with `tokens` each (prompt included) fit into memory at once, at least 1."""

    def generate(
        self, jobs: Sequence[Job], more: Callable[[], Iterable[Job]]
    ) -> Iterator[tuple[Job, Generated | EngineFailed]]:
        """Answer jobs, in any order; cancelled ones may be left out. `more()` tells what has come in.

        Raises OutOfMemory, or whatever the library raises.
        """

    def close(self) -> None:
        """Free the memory."""


def check_parameters(name: str, given: Iterable[str]) -> None:
    """Refuse parameters that no engine in this process knows. Raises ConfigError naming one."""
    for parameter in given:
        if parameter not in OTHERS:
            raise ConfigError(
                f"model '{name}': unknown sampling parameter '{parameter}' "
                f"(an engine in this process takes {', '.join(OTHERS)})"
            )


def decoding_of(name: str, sampling: Sampling, schema: str | None = None) -> Decoding:
    """How `sampling` wants tokens drawn. Raises ConfigError for what cannot be meant."""
    extra = sampling.extra
    check_parameters(name, extra)
    for parameter in NUMBERS:
        value = extra.get(parameter)
        whole = parameter == "top_k"
        kinds = (int,) if whole else (int, float)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            kind = "a whole number" if whole else "a number"
            raise ConfigError(f"model '{name}': {parameter} must be {kind}, not {str(value)[:40]!r}")
    return Decoding(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        stop=_stops(name, extra.get("stop")),
        schema=schema,
        **{parameter: extra.get(parameter) for parameter in NUMBERS},
    )


def _stops(name: str, given: Any) -> tuple[str, ...]:
    stops = [given] if isinstance(given, str) else given or []
    if not isinstance(stops, (list, tuple)) or not all(isinstance(stop, str) and stop for stop in stops):
        raise ConfigError(f"model '{name}': stop must be a string or a list of strings")
    return tuple(stops)


def template_arguments(sampling: Sampling) -> dict[str, Any]:
    """What a request wants its chat template to be told."""
    extra = sampling.extra
    effort = {"reasoning_effort": extra["reasoning_effort"]} if extra.get("reasoning_effort") else {}
    return effort | dict(extra.get("chat_template_kwargs") or {})
