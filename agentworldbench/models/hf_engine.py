"""transformers in this process: one batch at a time, every row with its own budget and seed.

lm-eval's `HFLM` loads model and tokenizer; `generate` of the model it holds makes the answers. Rows
are padded on the left and end for themselves: at an end token, at their own budget, at a stop
string, or when nobody waits for them any more. What is sampled is drawn with one generator a row,
after the usual warpers, so that a request's seed gives the same answer whatever stands beside it;
for a request alone it is the draw of transformers' own sampling under that seed.

Parameters that a request does not set are those of the model's generation_config.json; what stands
there neither is off (the top_k of 50 that transformers otherwise puts in is not applied).
"""

from __future__ import annotations

import copy
import gc
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agentworldbench.errors import ConfigError
from agentworldbench.models.chat_template import ChatTemplate
from agentworldbench.models.generation import (
    NUMBERS,
    EngineFailed,
    EngineSettings,
    Generated,
    Job,
    Loaded,
    OutOfMemory,
)
from agentworldbench.models.hf_rows import RowsEnd, processors, trimmed
from agentworldbench.run_record import ModelFacts
from agentworldbench.texts import count_text

MOST_ROWS: Final = {"cuda": 64, "cpu": 4}
"""Largest batch with --batch-size auto, by device (4 for others): what is in hand is lost when a run is killed."""
_UNKNOWN_ROWS: Final = 8
"""Rows where the size of a token in memory cannot be told from the configuration."""
_KEPT_FREE: Final = 0.2
"""Share of the free memory that auto leaves alone."""
_NO_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough memory|CUBLAS_STATUS_ALLOC_FAILED|Invalid buffer size",
    re.IGNORECASE,
)
_RECORDED: Final = ("do_sample", "temperature", "top_p", *NUMBERS, "no_repeat_ngram_size", "suppress_tokens")
"""What of a generation_config is recorded: all that changes a draw."""
_PLACED: Final = ("device", "device_map", "parallelize", "tp_plan")
"""Arguments that say where the weights go."""


class HfEngine:
    """transformers, through the model that lm-eval's HFLM holds."""

    rolling = False
    takes_schema = False

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._held: Any = None
        self._template: ChatTemplate | None = None
        self._defaults: Mapping[str, Any] = {}
        self._ends: frozenset[int] = frozenset()

    def load(self) -> Loaded:
        """Load the weights onto the device that is there. Raises ConfigError and what the libraries raise."""
        import torch
        import transformers
        from lm_eval.models.huggingface import HFLM

        _quiet()
        arguments = dict(self._settings.arguments)
        if not any(arguments.get(name) for name in _PLACED):
            arguments["device"] = _best_device()
        wanted = str(arguments.get("device", ""))
        if wanted.startswith("cuda") and not torch.cuda.is_available():
            raise ConfigError(f"model '{self._settings.name}': -M device={wanted}: torch sees no such device")
        held = self._held = HFLM(pretrained=self._settings.source, batch_size=1, **arguments)
        if held.backend != "causal":
            raise ConfigError(
                f"model '{self._settings.name}': an encoder-decoder model; only chat models are asked here"
            )
        config = held.model.generation_config
        self._defaults = {
            name: value
            for name, value in config.to_diff_dict().items()
            if name in _RECORDED and value is not None
        }
        self._ends = _end_tokens(config.eos_token_id, held.tokenizer.eos_token_id)
        self._template = ChatTemplate(
            self._settings.name,
            held.tokenizer,
            self._ends,
            self._settings.template,
            self._settings.template_arguments,
            arguments.get("add_bos_token") is True,
        )
        facts = ModelFacts(
            engine="transformers",
            engine_version=transformers.__version__,
            listed={"device": str(held.device), "batch_size": self._settings.batch_size},
            revision=getattr(held.model.config, "_commit_hash", None),
            chat_template_sha256=self._template.sha256,
            quantization=_quantization(held.model.config),
            dtype=str(held.model.dtype).removeprefix("torch."),
            generation_defaults=dict(self._defaults),
        )
        told = "-M max_length" if arguments.get("max_length") else "the model's configuration"
        return Loaded(self._template, int(held.max_length), told, facts)

    def fits(self, tokens: int) -> int:
        """By the memory that is free now and the size of a token's keys, values and activations."""
        device = self._held.device.type
        most = MOST_ROWS.get(device, MOST_ROWS["cpu"])
        free, size = _free_memory(device, self._held.device), _token_bytes(self._held.model)
        if free is None or size is None:
            return min(_UNKNOWN_ROWS, most)
        return max(1, min(most, int(free * (1 - _KEPT_FREE) / (size * max(tokens, 1)))))

    def generate(
        self, jobs: Sequence[Job], more: Callable[[], Iterable[Job]]
    ) -> Iterator[tuple[Job, Generated | EngineFailed]]:
        """Answer one batch. Raises OutOfMemory, with the memory freed again."""
        ended = RowsEnd(jobs, max(len(job.prompt) for job in jobs), self._template)
        rows: list[list[int]] | None = None
        try:
            rows = self._rows(jobs, ended)
        except (RuntimeError, MemoryError) as problem:
            if not _NO_MEMORY.search(f"{type(problem).__name__} {problem}") and not isinstance(
                problem, MemoryError
            ):
                raise
        if rows is None:
            # Outside the handler: the exception's frames held the tensors.
            _free()
            raise OutOfMemory(
                f"{count_text(len(jobs), 'row')} of up to {count_text(ended.start, 'prompt token')}"
            )
        for index, (job, tokens) in enumerate(zip(jobs, rows, strict=True)):
            if not job.cancelled:
                yield job, trimmed(tokens, job.room, ended.stopped.get(index), self._ends)

    def _rows(self, jobs: Sequence[Job], ended: RowsEnd) -> list[list[int]]:
        """Generated tokens by row, filled up at the end."""
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        held, start = self._held, ended.start
        precision = getattr(held, "mixed_precision_dtype", None)
        filler = min(self._ends, default=0)
        prompts = torch.full((len(jobs), start), filler, dtype=torch.long)
        mask = torch.zeros_like(prompts)
        for row, job in enumerate(jobs):
            prompts[row, start - len(job.prompt) :] = torch.tensor(list(job.prompt), dtype=torch.long)
            mask[row, start - len(job.prompt) :] = 1
        drawing = jobs[0].decoding.over(self._defaults)
        if jobs[0].decoding.temperature is None and not self._defaults.get("do_sample"):
            drawing["temperature"] = 0.0
        config = copy.deepcopy(held.model.generation_config)
        config.update(
            do_sample=False,
            num_beams=1,
            max_new_tokens=max(job.room for job in jobs),
            repetition_penalty=drawing.get("repetition_penalty", 1.0),
            eos_token_id=sorted(self._ends) or None,
            pad_token_id=filler,
            return_dict_in_generate=False,
        )
        with (
            torch.inference_mode(),
            torch.autocast(held.device.type, dtype=precision, enabled=precision is not None),
        ):
            made = held.model.generate(
                input_ids=prompts.to(held.device),
                attention_mask=mask.to(held.device),
                generation_config=config,
                logits_processor=LogitsProcessorList(processors(drawing, jobs, start)),
                stopping_criteria=StoppingCriteriaList([ended]),
            )
        rows: list[list[int]] = made[:, start:].tolist()
        return rows

    def close(self) -> None:
        """Let go of the weights."""
        if self._held is not None:
            self._held = self._template = None
            _free()


def _end_tokens(*given: Any) -> frozenset[int]:
    """Tokens that end an answer: those of the generation_config and the tokenizer's own."""
    single = (token for one in given for token in (one if isinstance(one, (list, tuple)) else [one]))
    return frozenset(int(token) for token in single if token is not None)


def _quiet() -> None:
    """No progress bars and no hints of the libraries between the lines of the display."""
    import transformers.utils.logging
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    if "TRANSFORMERS_VERBOSITY" not in os.environ:
        transformers.utils.logging.set_verbosity_error()
    for name in ("lm_eval", "accelerate"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return "xpu:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _quantization(config: Any) -> str | None:
    """The method of a quantized model."""
    given = getattr(config, "quantization_config", None)
    method = given.get("quant_method") if isinstance(given, dict) else getattr(given, "quant_method", None)
    return None if method is None else str(getattr(method, "value", method))


def _token_bytes(model: Any) -> int | None:
    """Memory of one token in a batch: keys and values of all layers, activations of one."""
    config = model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", None)
    hidden, layers = getattr(config, "hidden_size", None), getattr(config, "num_hidden_layers", None)
    if not (heads and hidden and layers):
        return None
    size = getattr(config, "head_dim", None) or hidden // heads
    cached = 2 * layers * (getattr(config, "num_key_value_heads", None) or heads) * size
    worked = 4 * hidden + 3 * (getattr(config, "intermediate_size", None) or 4 * hidden)
    return int((cached + worked) * model.dtype.itemsize)


def _free_memory(kind: str, device: Any) -> int | None:
    """Bytes that are free on the device, as far as that can be asked."""
    import torch

    if kind == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + unused)
    if kind == "cpu":
        import psutil  # accelerate needs it

        return int(psutil.virtual_memory().available)
    return None


def _free() -> None:
    """Give memory back that nothing refers to."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
