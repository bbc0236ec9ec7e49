"""Live counts of a run: what is done and where, what failed and why, who waits for what, tokens, cost, time left.

The pipeline writes it, a display (in `cli/` or a notebook) or nothing reads it through the `changed` callback.
Times are seconds on the monotonic clock. A cost that is not known is said to be unknown, never 0; a time that
nothing is known of yet is None.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, Protocol

from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.pace import Speed
from agentworldbench.records import Attempt, Failure, FailureKind, Usage


class Purse(Protocol):
    """What of --max-cost is spent: USD, of all sessions of the run directory; `limit` None: there is none."""

    limit: float | None
    spent: float


class Stage:
    """Counts of one stage (predictions, or the verdicts of all judges), by domain and together.

    Read by other threads: `totals` is set once with all its domains, so that nobody's iteration over it fails.
    """

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.finished_in: Counter[str] = Counter()
        self.due = 0  # records that this session was to make when it began
        self.reused = 0
        self.done = 0
        self.recalled = 0  # of `done`, those taken from the response cache
        self.failures: Counter[str] = Counter()
        self.usage = Usage()
        self.cost_usd = 0.0
        self.cost_known = True
        self.speed = Speed()

    @property
    def total(self) -> int:
        """Records there will be."""
        return self.totals.total()

    @property
    def finished(self) -> int:
        """Records that exist, from this session and before."""
        return self.reused + self.done

    @property
    def left(self) -> int:
        """Records to be made yet: records of earlier sessions are not, though they may not have been passed yet."""
        return max(0, min(self.total - self.finished, self.due - self.done))

    @property
    def seconds_left(self) -> float | None:
        """At the pace of late; None while that is not known, 0 where nothing is left."""
        if not self.left:
            return 0.0
        rate = self.speed.rate(time.monotonic())
        return self.left / rate if rate else None

    def add(self, domain: str, usage: Usage, cost_usd: float | None, failure: Failure | None) -> None:
        """Count one record made in this session."""
        self.done += 1
        self.finished_in[domain] += 1
        self.speed.note(time.monotonic())
        self.usage = self.usage + usage
        if cost_usd is None:
            self.cost_known = False
        else:
            self.cost_usd += cost_usd
        if failure is not None:
            self.failures[failure.kind.value] += 1

    def reuse(self, domain: str, failure: Failure | None) -> None:
        """Count one record of an earlier session."""
        self.reused += 1
        self.finished_in[domain] += 1
        if failure is not None:
            self.failures[failure.kind.value] += 1


class Wait(NamedTuple):
    """A request between two attempts: what the last one came to, and when the next one is sent."""

    kind: FailureKind
    until: float


class Progress:
    """Counts of a whole run; `changed` is called after every change."""

    def __init__(self, changed: Callable[[Progress], None] | None = None) -> None:
        self.predictions = Stage()
        self.verdicts = Stage()
        self.in_flight = 0
        self.retried: Counter[str] = Counter()  # further attempts by the class of failure that they follow
        self.last_retry = ""
        self.requests = 0
        self.due = (0, 0)
        self.begun = False  # whether anything is asked at all: metrics can also be computed alone
        self.scored = (0, 0)  # samples whose metrics are computed, and all of them
        self.notices: list[str] = []
        self.limiters: Iterable[Limiter] = ()
        self.purse: Purse | None = None
        self.started = time.monotonic()
        self._waits: dict[int, Wait] = {}
        self._numbers = count()
        self._scoring_since = self.started
        self._changed = changed or (lambda progress: None)

    def begin(self, predictions: int, verdicts: int) -> None:
        """Note how many requests this session is about to make."""
        self.due = (predictions, verdicts)
        now = time.monotonic()
        for stage, due in zip((self.predictions, self.verdicts), self.due, strict=True):
            stage.due = due
            stage.speed.begin(now)
        self.begun = True
        self.update()

    def scoring(self, done: int, total: int) -> None:
        """Note of how many samples the metrics are computed."""
        if not done:
            self._scoring_since = time.monotonic()
        self.scored = (done, total)
        self.update()

    @property
    def is_scoring(self) -> bool:
        """Whether metrics are being computed now."""
        return self.scored[0] < self.scored[1]

    def update(self) -> None:
        """Tell the display."""
        self._changed(self)

    @contextmanager
    def request_in_flight(self) -> Iterator[None]:
        """Count a request while it is under way."""
        self.in_flight += 1
        self.requests += 1
        self.update()
        try:
            yield
        finally:
            self.in_flight -= 1

    @contextmanager
    def waiting(self, failure: Failure, wait: float) -> Iterator[None]:
        """Count a request whose attempt failed while it waits `wait` seconds for the next one."""
        self.retried[failure.kind.value] += 1
        self.last_retry = f"{failure.kind.value}: {failure.message} (again in {wait:.1f} s)"
        number = next(self._numbers)
        self._waits[number] = Wait(failure.kind, time.monotonic() + wait)
        self.update()
        try:
            yield
        finally:
            del self._waits[number]

    @property
    def retries(self) -> int:
        """Further attempts, for whatever reason."""
        return self.retried.total()

    @property
    def waits(self) -> list[Wait]:
        """Requests that wait for their next attempt."""
        return list(self._waits.values())

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """Rough time to the end at the pace of late; None while that of a stage is not known.

        Both stages run at once, so the one that takes longer counts: a judge who keeps up is as fast as the model.
        """
        if self.is_scoring:
            done, total = self.scored
            return (time.monotonic() - self._scoring_since) / done * (total - done) if done else None
        stages = (self.predictions.seconds_left, self.verdicts.seconds_left)
        known = [seconds for seconds in stages if seconds is not None]
        return max(known) if self.begun and len(known) == len(stages) else None


Watcher = Callable[[Progress], None]
"""Is called after every change, mostly by the thread of the engine."""


def spent(attempts: tuple[Attempt, ...]) -> tuple[Usage, float | None]:
    """Tokens and USD of all attempts together; the cost is None when one of them is not known."""
    if len(attempts) == 1:
        return attempts[0].usage, attempts[0].cost_usd
    usage, cost, known = Usage(), 0.0, True
    for attempt in attempts:
        usage = usage + attempt.usage
        known = known and attempt.cost_usd is not None
        cost += attempt.cost_usd or 0.0
    return usage, cost if known else None
