"""What happens at each step of a batch in transformers: how a row's token is drawn, when a row ends.

In: the jobs of a batch, all of one decoding. Out: the processors and the criterion that `generate`
calls with the scores and the tokens so far. They are called by transformers' lists but inherit
nothing, so that this module needs no library to be imported.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from agentworldbench.models.chat_template import ChatTemplate
from agentworldbench.models.generation import Generated, Job


def processors(drawing: Mapping[str, Any], jobs: Sequence[Job], start: int) -> list[Any]:
    """What is done with the scores of a step, in transformers' order; the draw comes last.

    Greedy choice is left over the result, so that it is the drawn token.
    """
    from transformers import (
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    chain: list[Any] = []
    presence, frequency = drawing.get("presence_penalty", 0.0), drawing.get("frequency_penalty", 0.0)
    if presence or frequency:
        chain.append(_Repeated(presence, frequency, start))
    temperature = drawing.get("temperature", 1.0)
    if not temperature:
        return chain
    if temperature != 1.0:
        chain.append(TemperatureLogitsWarper(float(temperature)))
    if drawing.get("top_k", 0) > 0:
        chain.append(TopKLogitsWarper(drawing["top_k"]))
    if drawing.get("top_p", 1.0) < 1.0:
        chain.append(TopPLogitsWarper(float(drawing["top_p"])))
    if drawing.get("min_p", 0.0) > 0.0:
        chain.append(MinPLogitsWarper(float(drawing["min_p"])))
    return [*chain, _Draw([job.seed for job in jobs])]


class _Repeated:
    """Presence and frequency penalty, as OpenAI defines them: on the tokens of the answer so far."""

    def __init__(self, presence: float, frequency: float, start: int) -> None:
        self._presence, self._frequency, self._start = presence, frequency, start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        made = input_ids[:, self._start :]
        counts = torch.zeros_like(scores).scatter_add_(1, made, torch.ones_like(made, dtype=scores.dtype))
        return scores - self._presence * (counts > 0) - self._frequency * counts


class _Draw:
    """One random generator a row: the largest of p / e, with e drawn from Exp(1), is a draw from p.

    This is how torch draws from a multinomial, done by row.
    """

    def __init__(self, seeds: Sequence[int | None]) -> None:
        self._seeds = [secrets.randbits(31) if seed is None else seed for seed in seeds]
        self._sources: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        if not self._sources:
            self._sources = [torch.Generator(scores.device).manual_seed(seed) for seed in self._seeds]
        chances = torch.softmax(scores, dim=-1)
        for row, source in zip(chances, self._sources, strict=True):
            row.div_(torch.empty_like(row).exponential_(generator=source))
        return chances


class RowsEnd:
    """Says which rows are finished: their budget is spent, a stop string came, nobody waits any more.

    `start` is where the answers begin; `stopped` has the length of those that a stop string ended.
    """

    def __init__(self, jobs: Sequence[Job], start: int, template: ChatTemplate | None) -> None:
        self.start = start
        self.stopped: dict[int, int] = {}
        self._jobs = jobs
        self._template = template
        self._stops = jobs[0].decoding.stop
        # A token holds one byte at least; some more for those that hold none or are cut.
        self._window = max((4 * len(stop) for stop in self._stops), default=0) + 8

    def __call__(self, input_ids: Any, scores: Any, **others: Any) -> Any:
        import torch

        made = input_ids.shape[1] - self.start
        if self._stops and self._template is not None:
            for row, tokens in enumerate(input_ids[:, -min(made, self._window) :].tolist()):
                if row not in self.stopped and made <= self._jobs[row].room:
                    text = self._template.decode(tokens)
                    if any(stop in text for stop in self._stops):
                        self.stopped[row] = made
        done = [
            made >= job.room or job.cancelled or row in self.stopped for row, job in enumerate(self._jobs)
        ]
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)


def trimmed(tokens: list[int], room: int, stopped: int | None, ends: frozenset[int]) -> Generated:
    """A row up to its own end."""
    tokens = tokens[: min(room, stopped or room)]
    for position, token in enumerate(tokens):
        if token in ends:
            return Generated(tuple(tokens[: position + 1]), "stop")
    return Generated(tuple(tokens), "stop" if stopped else "length")
