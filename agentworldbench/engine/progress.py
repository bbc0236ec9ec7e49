"""Live counts of a run: what is done, what failed and why, tokens, cost, time left.

The pipeline writes it, a display (in `cli/`) or nothing reads it through the `changed` callback.
Times are seconds on the monotonic clock. A cost that is not known is said to be unknown, never 0.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from agentworldbench.engine.limiter import Limiter
from agentworldbench.records import Attempt, Failure, Usage


class Stage:
    """Counts of one stage (predictions, or one for all judges)."""

    def __init__(self) -> None:
        self.total = 0
        self.reused = 0
        self.done = 0
        self.recalled = 0  # of `done`, those taken from the response cache
        self.failures: Counter[str] = Counter()
        self.usage = Usage()
        self.cost_usd = 0.0
        self.cost_known = True

    @property
    def finished(self) -> int:
        """Records that exist, from this session and before."""
        return self.reused + self.done

    def add(self, usage: Usage, cost_usd: float | None, failure: Failure | None) -> None:
        """Count one record made in this session."""
        self.done += 1
        self.usage = self.usage + usage
        if cost_usd is None:
            self.cost_known = False
        else:
            self.cost_usd += cost_usd
        if failure is not None:
            self.failures[failure.kind.value] += 1

    def reuse(self, failure: Failure | None) -> None:
        """Count one record of an earlier session."""
        self.reused += 1
        if failure is not None:
            self.failures[failure.kind.value] += 1


class Progress:
    """Counts of a whole run; `changed` is called after every change."""

    def __init__(self, changed: Callable[[Progress], None] | None = None) -> None:
        self.predictions = Stage()
        self.verdicts = Stage()
        self.in_flight = 0
        self.retries = 0
        self.last_retry = ""
        self.requests = 0
        self.due = (0, 0)
        self.begun = False  # whether anything is asked at all: metrics can also be computed alone
        self.scored = (0, 0)  # samples whose metrics are computed, and all of them
        self.notices: list[str] = []
        self.limiters: Iterable[Limiter] = ()
        self.started = time.monotonic()
        self._scoring_since = self.started
        self._changed = changed or (lambda progress: None)

    def begin(self, predictions: int, verdicts: int) -> None:
        """Note how many requests this session is about to make."""
        self.due = (predictions, verdicts)
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

    def retried(self, failure: Failure, wait: float) -> None:
        """Note that an attempt failed and another follows in `wait` seconds."""
        self.retries += 1
        self.last_retry = f"{failure.kind.value}: {failure.message} (again in {wait:.1f} s)"
        self.update()

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """Rough time to the end from this session's pace; None before anything is done."""
        if self.is_scoring:
            done, total = self.scored
            return (time.monotonic() - self._scoring_since) / done * (total - done) if done else None
        done = self.predictions.done + self.verdicts.done
        left = sum(max(0, stage.total - stage.finished) for stage in (self.predictions, self.verdicts))
        return self.elapsed / done * left if done else None


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
