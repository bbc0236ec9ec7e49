"""`hf/REPO|PATH` and `vllm/REPO|PATH`: a model in this process, whose engine lm-eval's class builds.

In: a `Request`. Out: a `Completion` or failure, like from any server. lm-eval's class loads the
weights and takes `-M` as its users know it; generation goes through the engine that the class holds,
since its own `generate_until` shortens long prompts unseen and tells neither finish reason nor
token counts. Prompts are counted exactly; answers are made in batches (`batching.py`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from agentworldbench.errors import AwbError, ConfigError, CredentialsError, EndpointError
from agentworldbench.models import thinking as families
from agentworldbench.models.base import Connection, one_line
from agentworldbench.models.batching import Batcher
from agentworldbench.models.chat_template import Prompt, TemplateRefused
from agentworldbench.models.failures import failed, first_cause
from agentworldbench.models.generation import (
    Engine,
    EngineFailed,
    EngineSettings,
    Generated,
    Job,
    Loaded,
    check_parameters,
    decoding_of,
    template_arguments,
)
from agentworldbench.prices import FREE, Price
from agentworldbench.records import CallFailure, Completion, FailureKind, Request, Thinking, Usage
from agentworldbench.resources import expanded
from agentworldbench.run_record import ModelFacts
from agentworldbench.texts import count_text, digest, sha256_text

Scheme = Literal["hf", "vllm"]
POOL: Final[Mapping[str, int]] = {"hf": 64, "vllm": 512}
"""Requests under way with --batch-size auto: some batches to sort, and more than vLLM runs at once."""
_WINDOW: Final[Mapping[str, int]] = {"hf": 4, "vllm": 2}
"""As many batches are under way with --batch-size N."""

_OURS: Final = ("chat_template", "chat_template_args", "enable_thinking")
_ELSEWHERE: Final = {
    "pretrained": "the model string names it",
    "batch_size": "use --batch-size",
    "max_batch_size": "use --batch-size",
    "max_gen_toks": "use --max-tokens",
    "think_end_token": "reasoning is told from the answer by its markers here",
    "truncation": "prompts are never shortened here",
    "truncation_side": "prompts are never shortened here",
    **dict.fromkeys(
        ("logits_cache", "softmax_dtype", "prefix_token_id"),
        "it is for log-likelihoods, which are not computed here",
    ),
    "data_parallel_size": "start servers with `vllm serve --data-parallel-size N` and use --base-url, or run "
    "shards of the samples",
}
"""Arguments of lm-eval's classes that have no place or no meaning here."""
_IGNORED_BY_VLLM: Final = {
    "device": "set CUDA_VISIBLE_DEVICES in the environment",
    "swap_space": "vLLM has none any more",
}
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")


class InProcessModel:
    """A model whose weights are loaded here. Raises ConfigError for arguments that cannot be meant."""

    local = True
    url: str | None = None
    query_mark: str | None = None

    def __init__(
        self, name: str, connection: Connection, scheme: Scheme, engine: Engine | None = None
    ) -> None:
        self.name = name
        self._scheme = scheme
        self._source = _source(name)
        check_parameters(name, connection.parameters)
        self._settings, self._arguments = _settings(name, self._source, scheme, connection)
        self._made = engine
        self._batcher: Batcher | None = None
        self._loaded: Loaded | None = None
        self._prompts: OrderedDict[str, Prompt] = OrderedDict()
        self.limits = connection.limits()
        size = connection.batch_size
        self._pool = POOL[scheme] if size == "auto" else size * _WINDOW[scheme]
        self.batch: int | None = self._pool
        self.endpoint: str | None = f"{name} in process {id(self)}"

    def identity(self) -> dict[str, Any]:
        """Backend, repository or folder as given, and arguments of the class."""
        return {"backend": self._scheme, "name": self._source, "args": self._arguments}

    def price(self) -> Price:
        """Nothing is paid."""
        return FREE

    def switches(self, thinking: Thinking, effort: str | None) -> dict[str, Any]:
        """By the family that the name tells."""
        return families.own_server(self._source, thinking, effort)

    def facts(self) -> ModelFacts:
        """What loading has told, and the context that counts."""
        known = self._loaded.facts if self._loaded else ModelFacts()
        return known.model_copy(
            update={"context": self.limits.context, "context_from": self.limits.context_from}
            | {"prompts_counted": self._loaded is not None}
        )

    async def check(self) -> None:
        """Load the weights. Raises ConfigError, EndpointError or CredentialsError."""
        if self._batcher is not None:
            return
        engine = self._made or _engine(self._scheme, self._settings)
        batcher = Batcher(engine, self._settings.batch_size, self._pool)
        try:
            self._loaded = await batcher.load()
        except AwbError:
            raise
        except asyncio.CancelledError:
            await batcher.close()
            raise
        except (Exception, SystemExit) as problem:
            raise load_error(self.name, self._scheme, problem) from problem
        self._batcher = batcher
        self.limits.learn_context(self._loaded.context, self._loaded.context_from)

    async def close(self) -> None:
        """Stop what is under way and free the memory."""
        batcher, self._batcher = self._batcher, None
        if batcher is not None:
            await batcher.close()

    async def count(self, request: Request) -> int | None:
        """Tokens of the rendered prompt; None when the chat template refuses the conversation."""
        try:
            return len(self._prompt(request, keep=True).tokens)
        except TemplateRefused:
            return None

    def _prompt(self, request: Request, keep: bool) -> Prompt:
        """The prompt of a request. One that was only counted is kept until it is sent."""
        assert self._loaded is not None, "check() comes first"
        arguments = template_arguments(request.sampling)
        key = digest([[message.model_dump() for message in request.messages], arguments])
        prompt = self._prompts.pop(key, None)
        if prompt is None:
            prompt = self._loaded.template.encode(request.messages, arguments)
        if keep:
            self._prompts[key] = prompt
            while len(self._prompts) > 2 * self._pool:
                self._prompts.popitem(last=False)
        return prompt

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Make one answer. Raises ConfigError for a parameter that no engine takes, EndpointError when
        the engine has broken for good."""
        assert self._loaded is not None and self._batcher is not None, "check() comes first"
        sampling, schema = request.sampling, request.json_schema
        held = json.dumps(schema, sort_keys=True) if schema and self._batcher.takes_schema else None
        decoding = decoding_of(self.name, sampling, held)
        try:
            prompt = self._prompt(request, keep=False)
        except TemplateRefused as problem:
            return failed(FailureKind.BAD_REQUEST, one_line(str(problem)))
        left = (self.limits.context or self._loaded.context) - len(prompt.tokens)
        if left < 1:
            message = f"{count_text(len(prompt.tokens), 'prompt token fills', 'prompt tokens fill')} a context of {self.limits.context}"
            return failed(FailureKind.CONTEXT_OVERFLOW, message)
        job = Job(prompt.tokens, min(sampling.max_tokens or left, left), decoding, sampling.seed)
        try:
            generated = await self._batcher.ask(job)
        except EngineFailed as problem:
            message = one_line(str(problem))
            if problem.lasting:
                raise EndpointError(
                    f"model '{self.name}': the engine fails again and again: {message}; what is done stays"
                ) from problem
            return failed(FailureKind.PROVIDER_ERROR, message)
        return self._completion(job, prompt.opener, generated, schema is not None and held is None)

    def _completion(self, job: Job, opener: str, generated: Generated, unheld: bool) -> Completion:
        assert self._loaded is not None
        note = "response_format not accepted by the engine: generated without"
        return Completion(
            text=self._loaded.template.read(generated.tokens, opener, job.decoding.stop),
            finish_reason=generated.finish,
            usage=Usage(prompt_tokens=len(job.prompt), completion_tokens=len(generated.tokens)),
            cost_usd=0.0,
            model_served=self._source,
            adapted={"response_format": None} if unheld else {},
            notes=(note,) if unheld else (),
        )


def _engine(scheme: Scheme, settings: EngineSettings) -> Engine:
    if scheme == "hf":
        from agentworldbench.models.hf_engine import HfEngine

        return HfEngine(settings)
    from agentworldbench.models.vllm_engine import VllmEngine

    return VllmEngine(settings)


def _source(name: str) -> str:
    """Repository or folder of a model string. Raises ConfigError for what can be neither."""
    source = name.partition("/")[2]
    path = expanded(Path(source), f"model '{name}'")
    if path.is_dir():
        return str(path)
    if source.startswith(("/", "./", "../", "~")):
        raise ConfigError(f"model '{name}': no folder at {path}")
    if not _REPOSITORY.fullmatch(source):
        raise ConfigError(
            f"model '{name}': '{source}' is neither a folder nor a repository (OWNER/NAME) of the hub"
        )
    return source


def _settings(
    name: str, source: str, scheme: Scheme, connection: Connection
) -> tuple[EngineSettings, dict[str, Any]]:
    """What to load, and the arguments as they are recorded (a template file by its hash)."""
    given = {key: _plain(value) for key, value in connection.model_args.items()}
    refused = _ELSEWHERE | (_IGNORED_BY_VLLM if scheme == "vllm" else {})
    for key in given:
        if key in refused and not (key == "data_parallel_size" and given[key] == 1):
            raise ConfigError(f"--model-args: '{key}' cannot be given: {refused[key]}")
    told = given.get("chat_template_args") or {}
    if not isinstance(told, Mapping):
        raise ConfigError("--model-args: chat_template_args must be an object (write -M as JSON)")
    if given.get("enable_thinking") is not None:
        told = {"enable_thinking": given["enable_thinking"], **told}
    recorded, template = dict(given), None
    if given.get("chat_template") is not None:
        template = _template_file(str(given["chat_template"]))
        recorded["chat_template"] = f"sha256:{sha256_text(template)}"
    arguments = {key: value for key, value in given.items() if key not in _OURS}
    return EngineSettings(name, source, arguments, template, dict(told), connection.batch_size), recorded


def _plain(value: Any) -> Any:
    """Python's words as values: `-M parallelize=True` is what lm-eval's users write."""
    words = {"true": True, "false": False, "none": None}
    return words.get(value.lower(), value) if isinstance(value, str) else value


def _template_file(path: str) -> str:
    try:
        return expanded(Path(path), "--model-args").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"--model-args: chat_template={path} cannot be read ({problem})") from None


_NOT_THERE: Final = {
    "GatedRepoError": (CredentialsError, "the repository is gated: accept its terms on the hub and set HF_TOKEN"),
    "RepositoryNotFoundError": (EndpointError, "no such repository on the hub, or a private one (set HF_TOKEN)"),
    "RevisionNotFoundError": (EndpointError, "the repository has no such revision (-M revision=…)"),
    "OfflineModeIsEnabled": (EndpointError, "not in the local cache, and the hub may not be asked (HF_HUB_OFFLINE)"),
    "LocalEntryNotFoundError": (EndpointError, "not in the local cache, and the hub cannot be reached"),
}  # fmt: skip
"""Class names of the hub's errors to what they mean."""
_UNKNOWN_ARGUMENT = re.compile(r"unexpected keyword argument '(\w+)'")
_NO_DEVICE = re.compile(
    r"infer device type|no CUDA GPUs|not compiled with CUDA|no NVIDIA driver|device string must not be empty|"
    r"no (supported )?accelerator",
    re.IGNORECASE,
)
_NO_MEMORY = re.compile(r"out of memory|can't allocate memory|free memory on device", re.IGNORECASE)


def load_error(name: str, scheme: str, problem: BaseException) -> AwbError:
    """What a user is told when the weights cannot be loaded."""
    where = f"model '{name}'"
    text = f"{problem} {first_cause(problem)}"
    if isinstance(problem, ImportError):
        return ConfigError(f"{where}: {one_line(str(problem))}; pip install 'agentworldbench[{scheme}]'")
    for kind in _class_names(problem):
        if kind in _NOT_THERE:
            error, meaning = _NOT_THERE[kind]
            return error(f"{where}: {meaning}")
    unknown = _UNKNOWN_ARGUMENT.search(text)
    if unknown:
        return ConfigError(f"{where}: --model-args: unknown argument '{unknown[1]}'")
    if _NO_DEVICE.search(text):
        other = "; hf/ also runs on a CPU, slowly" if scheme == "vllm" else "; -M device=cpu runs without"
        return ConfigError(f"{where}: no accelerator found ({one_line(str(problem), limit=120)}){other}")
    if _NO_MEMORY.search(text):
        return ConfigError(f"{where}: the weights do not fit into memory ({one_line(str(problem))})")
    return ConfigError(f"{where}: cannot be loaded: {one_line(f'{type(problem).__name__}: {problem}')}")


def _class_names(problem: BaseException) -> list[str]:
    """Names of the classes of a chain of exceptions, the outermost first."""
    names: list[str] = []
    chain: BaseException | None = problem
    while chain is not None:
        names += [kind.__name__ for kind in type(chain).__mro__]
        chain = chain.__cause__ or chain.__context__
    return names
