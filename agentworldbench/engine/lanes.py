"""Questions that wait for a judge: those to one judge about one trajectory stand in a lane, since they begin alike.

In: questions, as predictions are written down. Out: lanes, one to each worker who asks for the next (`take`), asked
from front to back. Another trajectory's lane goes to another worker, so that a prefix cache is read and not raced.
"""

from __future__ import annotations

import asyncio
from collections import deque

from agentworldbench.engine.units import Question

Lane = deque[Question]


class Lanes:
    """The lanes of one session; a lane with questions in it is with one worker, or waits for one."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Lane | None] = asyncio.Queue()
        self._lanes: dict[tuple[int, str], Lane] = {}

    def put(self, question: Question) -> None:
        """Let a question wait, behind the others of its lane; an engine of this process gains nothing by lanes."""
        lane = Lane()
        if question.judge.model.batch is None:
            lane = self._lanes.setdefault((question.place, question.judge.digest()), lane)
        lane.append(question)
        if len(lane) == 1:
            self._queue.put_nowait(lane)

    async def take(self) -> Lane | None:
        """The next lane that nobody asks from; who takes it removes each question when it is answered. None: no more come."""
        return await self._queue.get()

    def end(self, workers: int) -> None:
        """Say to so many workers that no more questions come."""
        for _ in range(workers):
            self._queue.put_nowait(None)
