"""What a limiter knows about the server: the level it carries, the refusals of one moment, its pace.

`limiter.py` asks these three what to make of an answer or a refusal; none of them waits or sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STEP: Final = 16
"""Connections added a round (as many answers as there are connections) before anything was refused."""
ROUNDS_BETWEEN_TRIALS: Final = 5
LEAST_BETWEEN_TRIALS: Final = 40
MOST_BETWEEN_TRIALS: Final = 640
"""Answers before a refused level is tried again: rounds, but no fewer than so many; doubled each time."""
SLOWER: Final = 3.0
"""No growth while answers take so many times what they took at best (moving means)."""
SHRINK: Final = 0.7
"""What is left of the limit after a single refusal of what was carried before; after several, a half at least."""


SURE: Final = 3
"""So many refusals at once of a level that was carried before mean that the server carries less now."""
OVER: Final = 16
"""Answers over which their duration is averaged."""


class Level:
    """What is known about the number of requests that the server carries at once.

    `carried` is the most that it did, `refused` the lowest number that it refused and did not carry
    later, `tried` the number of the last request of the first round at the present level.
    """

    def __init__(self) -> None:
        self.carried = 0
        self.refused: int | None = None
        self.tried = 0
        self._before: tuple[int, int | None] = (0, None)
        self._between = 0
        self._no_trial_before = 0.0

    def needed(self, limit: int, now: float) -> float:
        """Answers at the level `limit` before one more is tried."""
        if self.refused is None:
            return max(1, limit // STEP)
        if limit + 1 != self.refused:
            return limit
        if now < self._no_trial_before:
            return float("inf")
        return max(self._between, ROUNDS_BETWEEN_TRIALS * limit)

    def passed(self, limit: int, oldest: int) -> bool:
        """Whether a round at `limit` was carried, where `oldest` is the earliest request under way.

        A trial has passed when its whole first round has: some servers refuse late.
        """
        if self.refused is None or limit < self.refused:
            return True
        if oldest <= self.tried:
            return False
        self.carried, self.refused, self._between = limit, None, 0
        return True

    def carry(self, level: int) -> None:
        """A request was carried with `level` under way; a level on trial does not count before it has passed."""
        self.carried = max(self.carried, level if self.refused is None else min(level, self.refused - 1))

    def fails(self, level: int, limit: int) -> bool:
        """A request was refused with `level` under way; whether so many were carried before.

        After a trial that failed the next one is put off for longer.
        """
        if self.refused is None or limit >= self.refused:
            self._between = min(MOST_BETWEEN_TRIALS, 2 * self._between) or LEAST_BETWEEN_TRIALS
        self._before = (self.carried, self.refused)
        return level <= self.carried

    def settle(self, carried: int | None) -> None:
        """The server carries `carried` and not one more; None: what was known before these refusals stays."""
        self.carried, self.refused = self._before if carried is None else (carried, carried + 1)

    def wait_for_trial(self, moment: float) -> None:
        """Try no refused level before `moment`: trying it makes everybody wait."""
        self._no_trial_before = max(self._no_trial_before, moment)


@dataclass
class Wave:
    """The refusals of one moment: of requests that were all under way when the first of them came.

    `last` is the latest of these requests, `left` how many of them were not refused and `count` how
    many were, `before` the limit of that moment. `again`: so many had been carried before, so a
    single refusal is about something else than their number (requests a minute, other users).
    """

    last: int = 0
    left: int = 0
    before: int = 1
    again: bool = False
    count: int = 0

    @property
    def sure(self) -> bool:
        """Whether `left` is what the server carries; where nothing was, it says nothing about that."""
        if self.again:
            return self.count >= SURE and self.left >= self._half
        return self.left > 0

    @property
    def _half(self) -> int:
        return max(1, self.before // 2)

    def refuse(self) -> int:
        """Count one refusal; the new limit."""
        self.left -= 1
        self.count += 1
        if self.again:
            return max(1, int(self.before * SHRINK)) if self.count < SURE else max(self.left, self._half)
        return self.left or self._half


class Pace:
    """How long answers take: `slow` when the last ones took much longer than some did before."""

    def __init__(self) -> None:
        self._answers = 0
        self._mean = 0.0
        self._best = float("inf")

    def note(self, seconds: float) -> None:
        """Take in an answer that came after `seconds`."""
        self._answers += 1
        self._mean += (seconds - self._mean) / min(self._answers, OVER)
        if self._answers >= OVER:
            self._best = min(self._best, self._mean)

    @property
    def slow(self) -> bool:
        """Whether growth has stopped to pay."""
        return self._mean > SLOWER * self._best
