"""Prompts made ready before they are due: read, checked, written as they are sent.

In: the samples that will be asked about next. Out: each one's `Prompt` (`take`), from the stock or made now.
Making a prompt of 140 KB takes longer than sending it, and a connection that is free would wait for that. So
the first ones are made before anything is sent (`fill`), and for each that is sent another one when there is
time, while the server works. Rows in stock are bounded in bytes, so memory stays flat however many connections
there are.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from agentworldbench.dataset import Dataset
from agentworldbench.engine.fitting import Written
from agentworldbench.engine.turns import Turns
from agentworldbench.errors import DataError
from agentworldbench.prompts import predict_messages
from agentworldbench.records import Message, Sample, SampleRef

LONG: Final = 20_000
"""Bytes of a row whose prompt is worth the trouble; a shorter one is made in a tenth of a millisecond."""
ROOM: Final = 16_000_000
"""Bytes of rows in stock; their texts take two to six times as much memory."""


@dataclass(frozen=True)
class Prompt:
    """A sample with the messages that ask for it, as they are and as they are written."""

    sample: Sample
    messages: tuple[Message, ...]
    written: Written


def prompt_of(sample: Sample) -> Prompt:
    """A sample's prompt in the official form."""
    messages = predict_messages(sample)
    return Prompt(sample, messages, Written.of(messages))


class Ahead:
    """The stock of one session; `turns` knows when there is time."""

    def __init__(self, dataset: Dataset, turns: Turns) -> None:
        self._dataset = dataset
        self._turns = turns
        self._stock: dict[str, Prompt | None] = {}
        self._bytes = 0

    def __contains__(self, ref: SampleRef) -> bool:
        """Whether a sample's prompt is in stock, or will be."""
        return ref.id in self._stock

    def __len__(self) -> int:
        """Prompts in stock or to be made."""
        return len(self._stock)

    async def fill(self, refs: Iterable[SampleRef]) -> None:
        """Make prompts now, as many as there is room for."""
        for ref in refs:
            if not self._reserve(ref):
                break
            self._make(ref)
            await asyncio.sleep(0)  # an interrupt is heard

    def want(self, ref: SampleRef) -> None:
        """Have a prompt made when there is time, if there is room."""
        if ref not in self and self._reserve(ref):
            self._turns.spare(partial(self._make, ref))

    def take(self, ref: SampleRef) -> Prompt:
        """The prompt of a sample. Raises DataError where its row cannot be read any more."""
        prompt = None
        if ref in self:
            prompt = self._stock.pop(ref.id)
            self._bytes -= ref.length
        return prompt or prompt_of(self._dataset.load(ref))

    def _reserve(self, ref: SampleRef) -> bool:
        room = self._bytes + ref.length <= ROOM
        if room:
            self._stock[ref.id] = None
            self._bytes += ref.length
        return room

    def _make(self, ref: SampleRef) -> None:
        """Put a prompt in stock, unless it was taken or made meanwhile."""
        if ref in self and self._stock[ref.id] is None:
            with contextlib.suppress(DataError):  # which is told when the sample is due
                self._stock[ref.id] = prompt_of(self._dataset.load(ref))
