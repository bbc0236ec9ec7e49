"""Scripted judges who see the same quality of a prediction, each through habits of its own.

`judges(call)` answers for every model whose name begins with `judge`: grades from SHA-256 of the text that is judged,
moved by at most a point by SHA-256 of the judge's name and, unless `steady`, of how often it was asked the same. `failing(share, names)`
wraps it: these judges give no verdict on a share of the texts, the same texts each time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.stats import cluster_draws

from .scripted_calls import ChatCall, Reply, Script
from .scripted_replies import DIMENSIONS, echo_world, verdict_text
from .scripted_server import ScriptedServer


def byte_of(*words: object) -> int:
    """A number 0-255 from the words."""
    return hashlib.sha256(repr(words).encode()).digest()[0]


def judges(steady: bool = False) -> Script:
    """World and judges on one server; each call of `judges` begins to count anew."""
    asked: Counter[tuple[str, str]] = Counter()

    def script(call: ChatCall) -> Reply:
        if not call.model.startswith("judge"):
            return echo_world(call)
        asked[call.model, call.key] += 1
        repeat = 0 if steady else asked[call.model, call.key]
        text = call.last_user
        quality = 1 + byte_of(text) % 5
        moved = {
            name: min(
                5, max(1, quality + byte_of(name, text) % 2 + byte_of(call.model, name, text, repeat) % 3 - 1)
            )
            for name in DIMENSIONS
        }
        return Reply(content=verdict_text(moved))

    return script


def failing(share: float, names: Collection[str], inner: Script) -> Script:
    """`inner`, but the judges `names` give no verdict on a share of the texts."""

    def script(call: ChatCall) -> Reply:
        if call.model in names and byte_of("fails", call.model, call.last_user) < 256 * share:
            return Reply(content="I would rather not say.")
        return inner(call)

    return script


def few_draws(patch: pytest.MonkeyPatch) -> None:
    """Intervals of agreement from a twentieth of the draws: for tests that look at other things."""
    patch.setattr(cluster_draws, "DRAWS", cluster_draws.DRAWS // 20)
    cluster_draws._times.cache_clear()


def panel_options(
    server: ScriptedServer, output: Path, data: Path | str, names: Sequence[str], **more: Any
) -> dict[str, Any]:
    """A run of several judges, all on one server, without retries."""
    return {
        "model": "openai-api/world",
        "base_url": server.base_url,
        "judge": [f"openai-api/{name}" for name in names],
        "judge_base_url": [server.base_url],
        "judge_attempts": 1,
        "max_retries": 0,
        "data": str(data),
        "output": output,
        **more,
    }
