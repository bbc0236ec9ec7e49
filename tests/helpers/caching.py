"""What tests of `--cache` share: a script whose answers all differ, and a look into the cache's file."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentworldbench.response_cache import NAME

from .scripted_server import ChatCall, Reply, hash_scores, verdict_text


def one_of_many(call: ChatCall) -> Reply:
    """Another answer each time, so that two records can only agree by sharing a draw."""
    name = f"{call.index} {call.key}"
    if call.model.startswith("judge"):
        return Reply(content=verdict_text(hash_scores(name)))
    return Reply(content=f"<predicted_observation>{name}</predicted_observation>", reasoning_content="so")


def entries(folder: Path) -> list[dict[str, Any]]:
    """Everything that a cache holds."""
    file = sqlite3.connect(folder / NAME)
    rows = file.execute("SELECT body FROM answers ORDER BY key").fetchall()
    file.close()
    return [json.loads(zlib.decompress(body)) for (body,) in rows]


def by_key(records: Iterable[Any]) -> dict[Any, Any]:
    """Predictions or verdicts by their key."""
    return {record.key: record for record in records}
