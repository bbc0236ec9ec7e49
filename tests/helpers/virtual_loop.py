"""An event loop whose clock jumps to the next timer instead of waiting: hours of asyncio in a moment.

Everything that asks the loop for time or sleeps on it sees the virtual clock; order and result depend
on the program alone. A program that would wait for ever raises `RuntimeError`.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from agentworldbench.engine import limiter, retry

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Passes time instead of waiting for it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Never waits."""
        if timeout is None:
            raise RuntimeError("nothing will ever happen: the program waits for itself")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module's docstring."""

    def __init__(self) -> None:
        self._passing = _Selector()
        super().__init__(self._passing)

    def time(self) -> float:
        """Seconds since the loop was made, as far as the program has slept them."""
        return self._passing.now


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a virtual clock, the engine's own clock included."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.MonkeyPatch.context() as patch:
        clock = SimpleNamespace(monotonic=runner.get_loop().time)
        for module in (limiter, retry):
            patch.setattr(module, "time", clock)
        return runner.run(work)
