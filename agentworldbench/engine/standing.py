"""What an endpoint has done for one model so far, because the same failure means another thing later.

A request refused by a model that answers others is one bad request, a model that refuses all is asked
wrongly. A page that is not there is a wrong address, and after an answer a gateway's fault. And an endpoint
that fails for long, whoever asks, has gone: to go on would use up the attempts of every sample that is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentworldbench.records import TRANSIENT, FailureKind

NEVER_ANSWERED: Final = 300.0
ANSWERED: Final = 900.0
"""Seconds without any success before an endpoint has gone: before its first answer in this session, and later."""
LEAST_FAILED: Final = 10
ROUNDS_FAILED: Final = 3
"""Requests that must have failed in them: as many, and so many for each connection."""


@dataclass
class Standing:
    """Of one model in one session; times are seconds on the monotonic clock.

    `answered`: it had a completion. `refused` counts requests that ended as `bad_request`. `failed` counts those
    in a row that failed in a way that passes, the first of them at `since`.
    """

    answered: bool = False
    refused: int = 0
    failed: int = 0
    since: float = 0.0

    def note(self, kind: FailureKind | None, now: float) -> None:
        """Take in what became of a request: None for an answer. A refusal of what was sent shows a server at work."""
        self.answered = self.answered or kind is None
        if kind not in TRANSIENT and kind is not FailureKind.UNREACHABLE:
            self.failed = 0
            return
        if not self.failed:
            self.since = now
        self.failed += 1

    def has_gone(self, connections: int, now: float) -> bool:
        """Whether nothing has succeeded for so long, and so often, that nothing will."""
        patience = ANSWERED if self.answered else NEVER_ANSWERED
        enough = self.failed >= max(LEAST_FAILED, ROUNDS_FAILED * connections)
        return enough and now - self.since >= patience
