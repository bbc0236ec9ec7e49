"""Requests of many coroutines, gathered into batches for one engine in one worker thread.

The event loop only hands over and waits, so that display and Ctrl-C stay alive; everything that
touches the weights happens in the worker. Requests are gathered until the loop has settled (nothing
new for some turns) or the pool is full, and while the engine works. Then they are sorted by prompt
length, longest first: what does not fit into memory shows at once, and rows of a batch are padded
little. A batch that is too large for the memory is halved, and the smaller size is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from agentworldbench.models.base import one_line
from agentworldbench.models.generation import (
    Engine,
    EngineFailed,
    Generated,
    Job,
    Loaded,
    OutOfMemory,
)

QUIET_TURNS: Final = 10
"""Turns of the loop without a new request after which it has settled: a sample takes fewer between
its answer and the next request."""
LASTING: Final = 3
"""So many failures of the engine in a row are no matter of single requests."""
CLOSE_SECONDS: Final = 5.0
"""How long to wait for the worker to stop: one step of an engine usually takes less."""


class Batcher:
    """One engine with its thread. `pool` requests are gathered at most; `batch_size` rows at once."""

    def __init__(self, engine: Engine, batch_size: int | Literal["auto"], pool: int) -> None:
        self._engine = engine
        self._auto = batch_size == "auto"
        self._most = pool if batch_size == "auto" else int(batch_size)
        self._pool = pool
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._inbox: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        # Of the event loop:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[Job] = []
        self._all: set[Job] = set()
        self._arrived = 0
        self._settling = False
        self._busy = False
        # Of the worker:
        self._under_way: set[Job] = set()
        self._failures = 0

    @property
    def takes_schema(self) -> bool:
        """Whether the engine can hold answers to a JSON schema."""
        return self._engine.takes_schema

    async def load(self) -> Loaded:
        """Start the worker and load the weights. Raises what the engine raises."""
        loop = self._loop = asyncio.get_running_loop()
        loaded: asyncio.Future[Loaded] = loop.create_future()
        self._thread = threading.Thread(target=self._work, args=(loaded,), name="awb-model", daemon=True)
        self._thread.start()
        return await loaded

    async def ask(self, job: Job) -> Generated:
        """The answer to one job. Raises EngineFailed."""
        self._loop = loop = asyncio.get_running_loop()
        answer: asyncio.Future[Generated] = loop.create_future()
        job.answer = answer
        self._waiting.append(job)
        self._all.add(job)
        self._arrived += 1
        self._settle()
        try:
            return await answer
        except asyncio.CancelledError:
            job.cancelled = True
            raise
        finally:
            self._all.discard(job)

    async def close(self) -> None:
        """Give up what is under way and let the worker end; it is not waited for at any price."""
        for job in self._all:
            job.cancelled = True
        self._inbox.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._ended.wait, CLOSE_SECONDS)

    # --- in the event loop -------------------------------------------------------------------

    def _settle(self) -> None:
        if not self._settling and self._loop is not None:
            self._settling = True
            self._loop.call_soon(self._turn, self._arrived, 0)

    def _turn(self, seen: int, quiet: int) -> None:
        """One turn of the loop: has anything new come in?"""
        quiet = quiet + 1 if seen == self._arrived else 0
        if self._loop is not None and quiet < QUIET_TURNS and len(self._waiting) < self._pool:
            self._loop.call_soon(self._turn, self._arrived, quiet)
            return
        self._settling = False
        jobs = [job for job in self._waiting if not job.cancelled]
        if jobs and (self._engine.rolling or not self._busy):
            self._waiting, self._busy = [], True
            self._inbox.put(jobs)

    def _idle(self) -> None:
        self._busy = False
        if self._waiting:
            self._settle()

    # --- in the worker -----------------------------------------------------------------------

    def _work(self, loaded: asyncio.Future[Loaded]) -> None:
        try:
            known = self._engine.load()
        except BaseException as problem:  # noqa: BLE001 - raised again in the event loop
            self._tell(_set, loaded, None, problem)
        else:
            self._tell(_set, loaded, known, None)
            while (jobs := self._inbox.get()) is not None:
                try:
                    self._serve(jobs)
                except Exception as problem:  # noqa: BLE001 - nobody may wait for ever
                    self._fail(jobs, EngineFailed(f"{type(problem).__name__}: {problem}", lasting=True))
                self._tell(self._idle)
        finally:
            with contextlib.suppress(Exception):
                self._engine.close()
            self._ended.set()

    def _serve(self, jobs: list[Job]) -> None:
        if self._engine.rolling:
            self._generate(jobs)
            return
        waiting = sorted(jobs, key=lambda job: -len(job.prompt))
        while waiting := [job for job in waiting if not job.cancelled]:
            batch = self._next_batch(waiting)
            if not self._generate(batch):
                self._most = max(1, len(batch) // 2)
                continue
            taken = set(batch)
            waiting = [job for job in waiting if job not in taken]

    def _next_batch(self, waiting: list[Job]) -> list[Job]:
        """The longest job and the next ones of its decoding, as many as may go together."""
        batch: list[Job] = []
        room = 0
        for job in waiting:
            if job.decoding != waiting[0].decoding:
                continue
            room = max(room, job.room)
            size = len(batch) + 1
            too_large = self._auto and size > self._engine.fits(len(waiting[0].prompt) + room)
            if batch and (size > self._most or too_large):
                break
            batch.append(job)
        return batch

    def _generate(self, jobs: list[Job]) -> bool:
        """Let the engine answer. False: the batch is too large for the memory, nothing is answered."""
        self._under_way = set(jobs)
        failure: str | None = None
        try:
            for job, outcome in self._engine.generate(jobs, self._more):
                self._under_way.discard(job)
                self._failures = 0
                self._deliver(job, outcome)
        except OutOfMemory as problem:
            if len(jobs) > 1 and not self._engine.rolling:
                return False
            failure = f"out of memory, alone in its batch ({problem})"
        except Exception as problem:  # noqa: BLE001 - becomes the failure of these samples
            failure = one_line(f"{type(problem).__name__}: {problem}")
        self._failures += failure is not None
        unanswered = EngineFailed(failure or "the engine gave no answer", self._failures >= LASTING)
        self._fail(self._under_way, unanswered)
        self._under_way = set()
        return True

    def _fail(self, jobs: Iterable[Job], failure: EngineFailed) -> None:
        for job in jobs:
            self._deliver(job, failure)

    def _more(self) -> Iterable[Job]:
        """Jobs that have come in meanwhile, for a rolling engine."""
        with contextlib.suppress(queue.Empty):
            while (jobs := self._inbox.get_nowait()) is not None:
                self._under_way.update(jobs)
                yield from jobs
            self._inbox.put(None)  # the end, which is for the loop in _work

    def _deliver(self, job: Job, outcome: Generated | EngineFailed) -> None:
        if job.answer is not None and not job.cancelled:
            done = isinstance(outcome, Generated)
            self._tell(_set, job.answer, outcome if done else None, None if done else outcome)

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call something in the event loop; one that is closed wants to hear nothing."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(call, *arguments)


def _set(future: asyncio.Future[Any], value: Any, problem: BaseException | None) -> None:
    """Settle a future, unless it was cancelled."""
    if future.done():
        return
    if problem is None:
        future.set_result(value)
    else:
        future.set_exception(problem)
