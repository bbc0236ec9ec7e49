"""The order of work: whole trajectories, turns ascending, those of one task near each other, domains interleaved.

In: the chosen samples and a seed. Out: trajectories one after another (`in_order`), and to each worker
the next one that is ready (`Work`). A trajectory's turns are asked one at a time in ascending order, so
that each prompt extends the one before it and prefix caches hit. Trajectories of one task (agents that
ran it each in its own way) share the beginning of their prompts: they follow each other, and the others
start when the first has its first answer, since a prefix can be read again only once it was read. Domains
are mixed evenly, so that a run stopped at any point is a balanced sample.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agentworldbench.records import Message, SampleRef
from agentworldbench.selection import rank

Trajectory = tuple[SampleRef, ...]
FITS: Final = 3
"""Characters for each token of a context, below which a prompt is taken to fit in it."""


def in_order(refs: Sequence[SampleRef], seed: int | None) -> list[Trajectory]:
    """Trajectories in seeded order: the k-th of n of a domain comes at (k + 1/2) / n of the run."""
    trajectories: dict[tuple[str, str], list[SampleRef]] = {}
    for ref in refs:
        trajectories.setdefault((ref.domain, ref.cluster), []).append(ref)
    domains: dict[str, list[Trajectory]] = {}
    for (domain, _), some in trajectories.items():
        domains.setdefault(domain, []).append(tuple(sorted(some, key=lambda ref: (ref.turn_idx, ref.line))))
    placed: list[tuple[float, bytes, Trajectory]] = []
    for some_trajectories in domains.values():
        shuffled = sorted(
            some_trajectories,
            key=lambda turns: (rank(seed, turns[0].task_key), rank(seed, turns[0].cluster)),
        )
        for position, turns in enumerate(shuffled):
            placed.append(((position + 0.5) / len(shuffled), rank(seed, turns[0].id), turns))
    return [turns for _, _, turns in sorted(placed, key=lambda item: item[:2])]


@dataclass(frozen=True)
class Taken:
    """What a worker does in a row, its place in the order, and whether others of its task are still to begin."""

    place: int
    turns: Trajectory
    more: bool = False


class Work:
    """Hands out trajectories in their order; one waits while the first of its task has no answer yet.

    A worker gets the first that need not wait, so nobody is idle while there is such a one.
    `apart` is for what gains nothing by it: nothing waits.
    """

    def __init__(self, trajectories: Iterable[Trajectory], apart: bool = False) -> None:
        self._ready: list[tuple[int, Trajectory]] = []  # the last one first, which is cheap to take
        self._behind: dict[tuple[str, str], list[tuple[int, Trajectory]]] = {}
        self._to_begin: Counter[tuple[str, str]] = Counter()
        for place, turns in enumerate(trajectories):
            task = _task(turns)
            first = apart or task not in self._to_begin
            (self._ready if first else self._behind.setdefault(task, [])).append((place, turns))
            self._to_begin[task] += 1
        self._ready.reverse()
        self._left = self._to_begin.total()
        self._apart = apart
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> Taken | None:
        """The next trajectory, once one is ready; None when all are taken."""
        while self._left:
            if self._ready:
                place, turns = self._ready.pop()
                self._left -= 1
                if not self._left:
                    self._wake(len(self._waiting))
                self._to_begin[_task(turns)] -= 1
                return Taken(place, turns, not self._apart and self._to_begin[_task(turns)] > 0)
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        return None

    def answered(self, turns: Trajectory) -> None:
        """Say that a trajectory has its first answer, or will have none."""
        behind = self._behind.pop(_task(turns), [])
        for one in behind:
            insort(self._ready, one, key=lambda ready: -ready[0])
        self._wake(len(behind))

    def coming(self, most: int) -> Iterator[Trajectory]:
        """The trajectories that are taken next, at most so many, as far as they are ready already."""
        return (turns for _, turns in islice(reversed(self._ready), most))

    def _wake(self, count: int) -> None:
        while count and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1


def _task(turns: Trajectory) -> tuple[str, str]:
    return turns[0].domain, turns[0].task_key


@dataclass(frozen=True)
class Reads:
    """What of a prompt a later request of this session is certain to begin with, as far as nothing fails:
    its first message (the system's), all but its last message, the whole."""

    first: bool = False
    history: bool = False
    whole: bool = False

    def lengths(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The same as numbers of leading messages."""
        many = len(messages)
        system = self.first and messages[0].role == "system"
        wanted = ((1, system), (many - 1, self.history and many > 1), (many, self.whole))
        return tuple(sorted({length for length, certain in wanted if certain}))


NONE: Final = Reads()


def reads(taken: Taken, ref: SampleRef, rest: Iterable[SampleRef], context: int | None) -> Reads:
    """What is read again of the prompt of `ref`, where `rest` is still to be asked of its trajectory.

    A later turn counts where it is of the same episode, and short enough for the model's context (tokens);
    the system prompt, at the start of a trajectory, where others of its task follow.
    """
    rest = list(rest)
    longer = [
        other
        for other in rest
        if other.turn_idx > ref.turn_idx
        and (other.row_id, other.total_turns) == (ref.row_id, ref.total_turns)
        and (context is None or other.context_chars < FITS * context)
    ]
    first = taken.more and ref is taken.turns[0]
    return Reads(first, bool(longer), any(other.id == ref.id for other in rest))
