"""Ceilings per minute (requests, tokens): when may the next request start?

Two rules together. Over any 60 seconds no more than the ceiling is used, so a server that counts by
the minute is never exceeded. And it is used evenly: a tenth of a minute may be taken at once (a run
of a few requests waits for nothing), the rest comes at the ceiling's own pace. Times are seconds on
the monotonic clock and are handed in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MINUTE: Final = 60.0
AT_ONCE: Final = 6.0
"""Seconds' worth of a ceiling that may be used at once."""


@dataclass(frozen=True)
class Ceilings:
    """What a user allows a minute; None: no ceiling. Tokens are those of prompt and answer."""

    requests: int | None = None
    tokens: int | None = None

    @classmethod
    def lowest(cls, several: Iterable[Ceilings]) -> Ceilings:
        """All of `several` at once, as for models that share an endpoint."""
        known = list(several)
        requests = [one.requests for one in known if one.requests is not None]
        tokens = [one.tokens for one in known if one.tokens is not None]
        return cls(min(requests, default=None), min(tokens, default=None))

    def rates(self) -> tuple[Rate | None, Rate | None]:
        """Fresh rates of requests and tokens."""
        return (
            None if self.requests is None else Rate(self.requests),
            None if self.tokens is None else Rate(self.tokens),
        )


UNLIMITED: Final = Ceilings()


class Entry:
    """An amount that was used at a time; `Rate.correct` changes it when the true amount is known."""

    __slots__ = ("amount", "at")

    def __init__(self, at: float, amount: float) -> None:
        self.at = at
        self.amount = amount


class Rate:
    """One ceiling: `per_minute` > 0 units in any 60 seconds."""

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        self._used: deque[Entry] = deque()
        self._sum = 0.0
        self._even = float("-inf")
        """The time at which everything used so far would have been used at an even pace."""

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be used; 0 for now.

        More than a whole minute's worth may be used once nothing else was for a minute: else it never could.
        """
        self._forget(now)
        wait = max(0.0, self._even - AT_ONCE - now)
        room, sum_left = self.per_minute - min(amount, self.per_minute), self._sum
        for entry in self._used:
            if sum_left <= room + 1e-9:
                break
            wait = max(wait, entry.at + MINUTE - now)
            sum_left -= entry.amount
        return wait

    def use(self, amount: float, now: float) -> Entry:
        """Use `amount` now."""
        entry = Entry(now, amount)
        self._used.append(entry)
        self._sum += amount
        self._even = max(self._even, now) + amount * MINUTE / self.per_minute
        return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """Say how much `entry` turned out to be."""
        more = amount - entry.amount
        entry.amount = amount
        self._even += more * MINUTE / self.per_minute
        if self._used and entry.at >= self._used[0].at:
            self._sum += more

    def _forget(self, now: float) -> None:
        """Leave out what was used more than a minute ago; sums of floats start anew where nothing is left."""
        while self._used and self._used[0].at + MINUTE <= now:
            self._sum -= self._used.popleft().amount
        if not self._used:
            self._sum = 0.0
