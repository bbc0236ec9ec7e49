"""How many requests an endpoint gets at once, shared by model and judge when endpoint and key are the same.

A `Limiter` hands out slots, the earliest place of the order of work first, and finds out how many the
server carries: it grows by addition from `start` to `most`, and a refusal for load shrinks it at once to
what was not refused at that moment (`levels.py`). Errors of the server only stop growth for a while, and
so do answers that have become much slower. What the server says about waiting holds for everybody.

It also remembers whether the endpoint was ever reached, and what it has done for each model (`standing.py`): a
server that was never reached is a wrong address, and one that vanished may come back.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from agentworldbench.engine.levels import Level, Pace, Wave
from agentworldbench.engine.rates import Ceilings, Entry, Rate
from agentworldbench.engine.standing import Standing

START: Final = 16
MOST: Final = 256
"""Connections without --max-connections: at first, and at last."""
PAUSES_BETWEEN_TRIALS: Final = 20.0
"""A trial that made everybody wait is not repeated before so many times that wait."""
STEADY_SECONDS: Final = 30.0
"""No growth for so long after an error of the server."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 16.0
"""Seconds for which everybody waits when refusals follow one another and the server names no time."""
LONGEST_HOLD: Final = 60.0
"""Seconds between two requests, at most, that find out whether a server is back."""
HEAD_START: Final = 1.0
"""Seconds that one request goes ahead after such a pause; a refusal comes at once."""
FIRST_ANSWER: Final = 2000.0
USUAL_OVER: Final = 20
"""Tokens that an answer is expected to have at first, and over how many answers that is learned."""


class Ticket:
    """One request under way: number, when it was sent, how many were under way then, what it counts of the ceilings."""

    __slots__ = ("counted", "level", "number", "sent_at")

    def __init__(
        self, number: int, sent_at: float, level: int, counted: tuple[tuple[Rate, Entry], ...]
    ) -> None:
        self.number = number
        self.sent_at = sent_at
        self.level = level
        self.counted = counted


class Limiter:
    """Limits of one endpoint, 1 <= `start` <= `most`, and what it has done so far.

    `limit` is how many requests may be under way now; `why` says what keeps it low. `reached`: the
    endpoint sent an HTTP response. `usual_answer` is the mean length of the last answers in tokens.
    """

    def __init__(self, start: int, most: int | None = None, ceilings: Ceilings | None = None) -> None:
        self.limit = start
        self.most = most or start
        self.reached = False
        self.usual_answer = FIRST_ANSWER
        self._standings: dict[int, Standing] = {}
        self._overcharged_by = ""
        self._ceilings = (ceilings or Ceilings()).rates()
        self._counts = any(self._ceilings)
        self._taken = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count(1)
        self._sent = 0
        self._turnstile = asyncio.Lock()
        self._landed = asyncio.Event()
        self._closed_until = 0.0
        self._one_ahead = False
        self._held = 0
        self._held_last = 0
        self._held_until = 0.0
        self._flying: set[int] = set()
        self._level = Level()
        self._pace = Pace()
        self._good = 0
        self._steady_until = 0.0
        self._wave = Wave()
        self._row = 0
        self._last_refused = 0

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self._flying)

    def standing(self, model: object) -> Standing:
        """What the endpoint has done for one model: a judge of the same name is another."""
        return self._standings.setdefault(id(model), Standing())

    @property
    def why(self) -> str:
        """What keeps `limit` or its use low, in a few words; empty where nothing does."""
        if self._held:
            return "nothing succeeds: one request at a time"
        if (wait := self._closed_until - time.monotonic()) >= 1:
            return f"paused for {wait:.0f} s"
        if self._at_ceiling:
            return "at the ceiling per minute"
        if self._level.refused is not None or self.limit < self._wave.before:
            return "limited by 429s" if self._overcharged_by == "rate_limit" else "the server is overloaded"
        return "answers get slower" if self._pace.slow and self.limit < self.most else ""

    # --- slots -------------------------------------------------------------------------------

    async def acquire(self, place: int = 0) -> None:
        """Wait for a slot; among those who wait the smallest place goes first."""
        if self._taken < self.limit and not self._waiting:
            self._taken += 1
            return
        mine = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (place, next(self._numbers), mine))
        self._admit()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.release()
            raise

    def is_wanted(self, place: int) -> bool:
        """Whether a slot held at `place` is to be given back: an earlier place waits, or too many are held."""
        waits = bool(self._waiting) and self._waiting[0][0] <= place
        return waits or self._taken > self.limit

    def release(self) -> None:
        """Give a slot back."""
        self._taken -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._taken < self.limit:
            _, _, waiting = heapq.heappop(self._waiting)
            if not waiting.done():
                self._taken += 1
                waiting.set_result(None)

    def slot(self, place: int = 0) -> Slot:
        """A slot to be waited for, held and given back."""
        return Slot(self, place)

    # --- sending -----------------------------------------------------------------------------

    @asynccontextmanager
    async def sending(self, tokens: float = 0) -> AsyncIterator[Ticket]:
        """Wait until a request of about `tokens` may start; it is under way until the block ends."""
        async with self._turnstile:  # one after another: each start changes what the next one waits for
            while (wait := self._wait(tokens)) > 0 or self._is_full:
                self._landed.clear()
                with suppress(TimeoutError):  # an answer makes room, or used fewer tokens than was thought
                    async with asyncio.timeout(wait or None):
                        await self._landed.wait()
            now = time.monotonic()
            if self._one_ahead:
                self._one_ahead = False
                self.pause(HEAD_START)
            self._sent += 1
            self._flying.add(self._sent)
            ticket = Ticket(self._sent, now, len(self._flying), self._count(tokens, now))
        try:
            yield ticket
        finally:
            self._flying.discard(ticket.number)
            self._landed.set()

    @property
    def _is_full(self) -> bool:
        """Whether as many are under way as may be: the limit can shrink below the slots that are held."""
        return len(self._flying) >= (1 if self._held else self.limit)

    @property
    def _at_ceiling(self) -> bool:
        return self._counts and self._turnstile.locked() and not self._is_full

    def _amounts(self, tokens: float) -> Iterator[tuple[Rate, float]]:
        for rate, amount in zip(self._ceilings, (1.0, tokens), strict=True):
            if rate is not None:
                yield rate, amount

    def _wait(self, tokens: float) -> float:
        now = time.monotonic()
        waits = [rate.wait(amount, now) for rate, amount in self._amounts(tokens)] if self._counts else []
        return max(self._closed_until - now, self._held_until - now, *waits, 0.0)

    def _count(self, tokens: float, now: float) -> tuple[tuple[Rate, Entry], ...]:
        if not self._counts:
            return ()
        return tuple((rate, rate.use(amount, now)) for rate, amount in self._amounts(tokens))

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens have a ceiling."""
        return self._ceilings[1] is not None

    def used(self, ticket: Ticket, prompt: int | None, answer: int | None) -> None:
        """Correct the estimate of a request's tokens, as far as the server counted them."""
        for rate, entry in ticket.counted:
            if rate is self._ceilings[1] and prompt is not None and answer is not None:
                rate.correct(entry, prompt + answer)
        if answer:
            self.usual_answer += (answer - self.usual_answer) / USUAL_OVER

    def pause(self, seconds: float) -> None:
        """Let no request start for the next `seconds`."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    def hold(self, ticket: Ticket) -> None:
        """Nothing succeeds, this request neither: send one at a time, after pauses that grow, until one does."""
        if ticket.number > self._held_last:  # else it was sent before the last of them
            self._held += 1
            self._held_last = self._sent
            self._held_until = time.monotonic() + doubled(FIRST_PAUSE, self._held - 1, LONGEST_HOLD)

    def resume(self) -> None:
        """Something succeeded: send as many as before."""
        self._held, self._held_until = 0, 0.0

    # --- what came of it ---------------------------------------------------------------------

    def carried(self, ticket: Ticket, answered: bool) -> None:
        """The server took this request: it answered, or refused it for what it is and not for its load."""
        now = time.monotonic()
        if answered:
            self._pace.note(now - ticket.sent_at)
        if ticket.number > self._last_refused:
            self._row = 0
        if ticket.level > self._level.carried:  # earlier ones that are still under way may yet be refused
            self._level.carry(ticket.level - sum(number < ticket.number for number in self._flying))
        idle = self._taken < self.limit or self._at_ceiling
        if idle or self.limit >= self.most or now < self._steady_until:
            return
        self._good += 1
        if self._good >= self._level.needed(self.limit, now) and not self._pace.slow:
            if not self._level.passed(self.limit, min(self._flying, default=self._sent)):
                return
            self._good = 0
            self.limit += 1
            self._level.tried = self._sent + self.limit
            self._admit()

    def troubled(self) -> None:
        """The server failed, or the connection did: stay at this level for a while."""
        self._good = 0
        self._steady_until = max(self._steady_until, time.monotonic() + STEADY_SECONDS)

    def overcharged(self, ticket: Ticket, by: str, wait: float | None) -> None:
        """The server refused this request for its load, and named a time to wait or none."""
        self._overcharged_by = by
        self._good = 0
        if ticket.number > self._wave.last:
            self._row += 1
            again = self._level.fails(len(self._flying), self.limit)
            self._wave = Wave(self._sent, len(self._flying), self.limit, again)
        self._last_refused = max(self._last_refused, ticket.number)
        self._flying.discard(ticket.number)
        self.limit = self._wave.refuse()
        self._level.settle(self._wave.left if self._wave.sure else None)
        if self._row >= 2 or (self._wave.count > 1 and not self._wave.left):
            self._one_ahead = True
            pause = doubled(FIRST_PAUSE, self._row - 2, LONGEST_PAUSE)
            wait = wait or pause * random.uniform(0.75, 1.0)
        if wait:
            self.pause(wait)
            self._level.wait_for_trial(time.monotonic() + wait * PAUSES_BETWEEN_TRIALS)


def doubled(first: float, times: int, longest: float) -> float:
    """`first` seconds, doubled so many times, up to `longest`."""
    return min(longest, first * 2.0 ** min(max(times, 0), 100))


class Slot:
    """The slot of one worker, for what it asks in a row.

    `take` waits for it, `async with` gives it back in the end: in between it stays, so that a
    trajectory which was begun goes on and no other is begun in its stead. Without `async with` it is
    held for the time of one request. A request that waits for its next attempt gives it back.
    """

    def __init__(self, limiter: Limiter, place: int) -> None:
        self.limiter = limiter
        self._place = place
        self._holds = False
        self._kept = False

    async def __aenter__(self) -> Slot:
        self._kept = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._kept = False
        self.give_back()

    async def take(self) -> None:
        """Wait for the slot; one that is held already goes first to whom an earlier place waits for it."""
        if self._holds and self.limiter.is_wanted(self._place):
            self.give_back()
        if not self._holds:
            await self.limiter.acquire(self._place)
            self._holds = True

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """For the time of one request."""
        if not self._holds:
            await self.take()
        try:
            yield
        finally:
            if not self._kept:
                self.give_back()

    def give_back(self) -> None:
        """Let another have the slot."""
        if self._holds:
            self._holds = False
            self.limiter.release()


class Limiters:
    """One `Limiter` per endpoint, made when first asked for."""

    def __init__(self) -> None:
        self._by_endpoint: dict[str, Limiter] = {}

    def of(self, endpoint: str | None, make: Callable[[], Limiter]) -> Limiter:
        """The endpoint's limiter; models without an endpoint share one."""
        name = endpoint or ""
        if name not in self._by_endpoint:
            self._by_endpoint[name] = make()
        return self._by_endpoint[name]

    def __iter__(self) -> Iterator[Limiter]:
        return iter(
            list(self._by_endpoint.values())
        )  # as they are now: a display in another thread reads them
