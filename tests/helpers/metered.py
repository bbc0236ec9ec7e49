"""A script that bills what it serves: tokens of its own choosing, and the money they are worth.

`Meter(inner)` is a script for `ScriptedServer`. Its prompts count a quarter of their characters, its
answers between 50 and 450 tokens as the messages decide; `usd` is the bill at `PRICES`, kept by the
server's side alone, so that a test can hold the harness's own sums against it.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Final

from .scripted_calls import ChatCall, Reply, Script, text_of

PRICES: Final = {"world": (100.0, 200.0), "judge": (50.0, 100.0)}
"""USD per million tokens of prompt and completion, by served name."""
PRICE_FLAGS: Final = tuple(f"openai-api/{name}={into:g},{out:g}" for name, (into, out) in PRICES.items())
LONGEST: Final = 450
"""Most tokens of one answer."""


class Meter:
    """Bills each reply that carries an answer or its tokens; refusals (status 400 and above) are free."""

    def __init__(self, inner: Script) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.usd = 0.0
        self.billed: Counter[str] = Counter()
        """Requests by served name."""
        self.dearest = 0.0
        """USD of the dearest single request."""

    def __call__(self, call: ChatCall) -> Reply:
        reply = self._inner(call)
        if reply.status >= 400:
            return reply
        prompt = sum(len(text_of(message)) for message in call.messages) // 4
        completion = 50 + int(call.key[:4], 16) % (LONGEST - 50)
        into, out = PRICES[call.model]
        cost = (prompt * into + completion * out) / 1e6
        with self._lock:
            self.usd += cost
            self.billed[call.model] += 1
            self.dearest = max(self.dearest, cost)
        counts = {"prompt_tokens": prompt, "completion_tokens": completion}
        return replace(reply, usage=counts | {"total_tokens": prompt + completion})
