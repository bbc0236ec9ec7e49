"""vLLM in this process: continuous batching of everything that is under way.

lm-eval's `VLLM` builds the engine; this module steps it, instead of calling its `generate`, which
would answer nothing before the last answer of a batch. New requests join while others run, each
answer goes back when it is finished, and what nobody waits for any more is aborted at the next step.
The scheduler runs in this process unless `VLLM_ENABLE_V1_MULTIPROCESSING=1` is set: Ctrl-C then
cannot kill it before it is asked to stop, and scheduling is repeatable.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from agentworldbench.models.base import one_line
from agentworldbench.models.chat_template import ChatTemplate
from agentworldbench.models.generation import (
    NUMBERS,
    Decoding,
    EngineFailed,
    EngineSettings,
    Generated,
    Job,
    Loaded,
)
from agentworldbench.run_record import ModelFacts

_ENVIRONMENT: Final = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
}
"""Set before vLLM is imported, unless the user has set them: standard output is for results."""


class VllmEngine:
    """vLLM, through the `LLM` that lm-eval's VLLM holds."""

    rolling = True
    takes_schema = True

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._held: Any = None
        self._defaults: Mapping[str, Any] = {}
        self._numbers = count()

    def load(self) -> Loaded:
        """Load the weights. Raises ConfigError and what the libraries raise."""
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of vLLM about other libraries, for its own developers
            return self._load()

    def _load(self) -> Loaded:
        import vllm
        from lm_eval.models.vllm_causallms import VLLM

        arguments = {"use_tqdm_on_load": False, **self._settings.arguments}
        if self._settings.batch_size != "auto":
            arguments.setdefault("max_num_seqs", self._settings.batch_size)
        held = self._held = VLLM(pretrained=self._settings.source, batch_size="auto", **arguments)
        config = held.model.llm_engine.model_config
        self._defaults = _defaults(held.model)
        template = ChatTemplate(
            self._settings.name,
            held.tokenizer,
            _end_tokens(held, config),
            self._settings.template or getattr(held, "hf_chat_template", None),
            self._settings.template_arguments,
            arguments.get("add_bos_token") is True,
        )
        facts = ModelFacts(
            engine="vllm",
            engine_version=vllm.__version__,
            listed={"batch_size": self._settings.batch_size},
            revision=getattr(config.hf_config, "_commit_hash", None),
            chat_template_sha256=template.sha256,
            quantization=None if config.quantization is None else str(config.quantization),
            dtype=str(config.dtype).removeprefix("torch."),
            generation_defaults=dict(self._defaults),
        )
        limited = next((name for name in ("max_model_len", "max_length") if arguments.get(name)), None)
        told = f"-M {limited}" if limited else "vLLM's max_model_len"
        return Loaded(template, int(held.max_length), told, facts)

    def fits(self, tokens: int) -> int:
        """Not asked: vLLM schedules by its own cache."""
        return 1

    def generate(
        self, jobs: Sequence[Job], more: Callable[[], Iterable[Job]]
    ) -> Iterator[tuple[Job, Generated | EngineFailed]]:
        """Answer jobs and those that come in meanwhile, each as soon as it is finished."""
        engine = self._held.model.llm_engine
        under_way: dict[str, Job] = {}
        arrived: Iterable[Job] = jobs
        try:
            while True:
                for job in arrived:
                    if refusal := self._add(engine, job, under_way):
                        yield job, refusal
                gone = [number for number, job in under_way.items() if job.cancelled]
                self._abort(engine, gone, under_way)
                if under_way:
                    for output in engine.step():
                        if output.finished and output.request_id in under_way:
                            yield under_way.pop(output.request_id), _generated(output.outputs[0])
                arrived = list(more())
                if not arrived and not under_way:
                    return
        finally:
            with contextlib.suppress(Exception):  # a dead engine has nothing to abort
                self._abort(engine, list(under_way), under_way)

    def _add(self, engine: Any, job: Job, under_way: dict[str, Job]) -> EngineFailed | None:
        """Hand a job to vLLM; its refusal is the failure of this one."""
        from vllm import TokensPrompt

        number = str(next(self._numbers))
        try:
            parameters = _parameters(job, self._defaults)
            prompt = TokensPrompt(prompt_token_ids=list(job.prompt))
            engine.add_request(number, prompt, parameters, lora_request=self._held.lora_request)
        except ValueError as problem:
            return EngineFailed(one_line(f"vLLM refused the request: {problem}"))
        under_way[number] = job
        return None

    def _abort(self, engine: Any, numbers: list[str], under_way: dict[str, Job]) -> None:
        if numbers:
            engine.abort_request(numbers)
            for number in numbers:
                del under_way[number]

    def close(self) -> None:
        """Let go of the engine: it gives its memory back when nothing refers to it."""
        if self._held is not None:
            self._held = None
            gc.collect()


def _generated(output: Any) -> Generated | EngineFailed:
    """What vLLM made; an end that is neither a stop nor the budget is no answer."""
    if output.finish_reason not in ("stop", "length"):
        return EngineFailed(f"vLLM ended the answer with '{output.finish_reason}'")
    return Generated(tuple(output.token_ids), output.finish_reason)


def _parameters(job: Job, defaults: Mapping[str, Any]) -> Any:
    """vLLM's SamplingParams of a job. Raises ValueError for what vLLM does not take."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    decoding = job.decoding
    return SamplingParams(
        max_tokens=job.room,
        seed=job.seed,
        stop=list(decoding.stop),
        skip_special_tokens=False,
        spaces_between_special_tokens=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
        **decoding.over(defaults),
        **_held_to(decoding),
    )


def _held_to(decoding: Decoding) -> dict[str, Any]:
    """The parameter that holds an answer to a schema, under the name that this vLLM has."""
    if decoding.schema is None:
        return {}
    from vllm import sampling_params

    schema = json.loads(decoding.schema)
    if hasattr(sampling_params, "StructuredOutputsParams"):
        return {"structured_outputs": sampling_params.StructuredOutputsParams(json=schema)}
    return {"guided_decoding": sampling_params.GuidedDecodingParams(json=schema)}


def _defaults(model: Any) -> dict[str, Any]:
    """What the model's generation_config sets, as vLLM reads it."""
    given = model.llm_engine.model_config.get_diff_sampling_param() or {}
    return {name: value for name, value in given.items() if name in ("temperature", "top_p", *NUMBERS)}


def _end_tokens(held: Any, config: Any) -> set[int]:
    """Tokens that end an answer: the tokenizer's, and those of the generation_config."""
    given = config.try_get_generation_config().get("eos_token_id")
    ends = set(given if isinstance(given, (list, tuple)) else [given])
    return {token for token in (*ends, held.tokenizer.eos_token_id) if token is not None}
