"""What an endpoint has done for one model so far, because the same failure means another thing later.

A request refused by a model that answers others is one bad request, a model that refuses all is asked
wrongly. A page that is not there is a wrong address, and after an answer a gateway's fault. And an endpoint
that only fails, whoever asks, is down: to go on would use up the attempts of every sample that is left. So one
request at a time finds out whether it is back, and when it has been down for long, it has gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentworldbench.records import TRANSIENT, FailureKind

NEVER_ANSWERED: Final = 300.0
ANSWERED: Final = 900.0
"""Seconds without any success before an endpoint has gone: before its first answer in this session, and later."""
WAITS: Final = 1.5
"""An endpoint that names a time to come back has gone after so many times that time at the earliest."""
LEAST_FAILED: Final = 10
ROUNDS_FAILED: Final = 3
"""Requests that must have failed in a row before an endpoint is down: as many, and so many for each connection."""


@dataclass
class Standing:
    """Of one model in one session; times are seconds on the monotonic clock.

    `answered`: it had a completion. `refused` counts requests that ended as `bad_request`. `failed` counts those
    in a row that failed in a way that passes, the first of them at `since`; `asked` is the longest wait in seconds
    that they were told.
    """

    answered: bool = False
    refused: int = 0
    failed: int = 0
    since: float = 0.0
    asked: float = 0.0

    def note(self, kind: FailureKind | None, now: float, wait: float | None = None) -> None:
        """Take in what became of a request: None for an answer, and the `wait` that a refusal asked for. A refusal
        of what was sent shows a server at work."""
        self.answered = self.answered or kind is None
        if kind not in TRANSIENT and kind is not FailureKind.UNREACHABLE:
            self.failed = 0
            return
        if not self.failed:
            self.since, self.asked = now, 0.0
        self.failed += 1
        self.asked = max(self.asked, wait or 0.0)

    def is_down(self, connections: int) -> bool:
        """Whether so many requests in a row failed that it is no matter of single ones."""
        return self.failed >= max(LEAST_FAILED, ROUNDS_FAILED * connections)

    def has_gone(self, connections: int, now: float) -> bool:
        """Whether it has been down for so long that nothing will succeed."""
        patience = max(ANSWERED if self.answered else NEVER_ANSWERED, WAITS * self.asked)
        return self.is_down(connections) and now - self.since >= patience
