"""The reference for `hf/`: one model folder loaded by `HfEngine` and by plain transformers side by side.

`Engine.batch` answers by the project's engine, `Engine.plain` by `generate` of transformers, one
prompt at a time. Needs torch, transformers and lm-eval.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentworldbench.models.generation import EngineSettings, Generated, Job, Loaded
from agentworldbench.models.hf_engine import HfEngine
from agentworldbench.records import Message

ROOM = 24


class Engine:
    """An `HfEngine`, and the same folder in plain transformers."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._engine = HfEngine(EngineSettings("hf/tiny", str(folder)))
        self.loaded: Loaded = self._engine.load()
        self._model = AutoModelForCausalLM.from_pretrained(folder)
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._made: dict[str, list[int]] = {}
        self.close = self._engine.close

    def batch(self, jobs: Sequence[Job]) -> list[Generated]:
        """Answers of one batch, in the order of the jobs."""
        answers = dict(self._engine.generate(jobs, list))
        assert all(isinstance(answer, Generated) for answer in answers.values())
        return [answers[job] for job in jobs]  # type: ignore[misc]

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Prompt tokens as plain transformers makes them."""
        plain = [{"role": message.role, "content": message.content} for message in messages]
        encoded = self._tokenizer.apply_chat_template(plain, add_generation_prompt=True, return_dict=True)
        tokens: list[int] = encoded["input_ids"]
        return tokens

    def plain(self, prompt: Sequence[int], room: int = ROOM, seed: int = 0, **more: Any) -> list[int]:
        """Answer tokens as plain transformers generates them, one prompt at a time."""
        import torch

        key = f"{list(prompt)} {room} {seed} {more}"
        if key in self._made:
            return self._made[key]
        torch.manual_seed(seed)
        made = self._model.generate(
            torch.tensor([list(prompt)]), max_new_tokens=room, **({"do_sample": False} | more)
        )
        tokens: list[int] = made[0, len(prompt) :].tolist()
        self._made[key] = tokens
        return tokens

    def ended(self, tokens: Sequence[int]) -> str:
        """Whether the model ended the answer by itself (`stop`), be it with the last token it had."""
        return "stop" if tokens[-1] in self._model.generation_config.eos_token_id else "length"

    def text(self, tokens: Sequence[int]) -> str:
        """What `tokens` are read as."""
        return self.loaded.template.read(tokens)
