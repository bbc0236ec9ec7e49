"""Whole evaluations against a scripted server: options, and what the server's calls say about a run.

`prompt_hash` is the hash that records carry of the messages they answer, computed here in plain
Python from what arrived at the server; it joins records and calls without the package's help.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .scripted_server import ChatCall, Reply, ScriptedServer, echo_world, hash_verdict


def options(server: ScriptedServer, output: Path, data: Path | str, **more: Any) -> dict[str, Any]:
    """Model and judge on one server, through the openai SDK."""
    return {
        "model": "openai-api/world",
        "base_url": server.base_url,
        "judge": "openai-api/judge",
        "judge_base_url": server.base_url,
        "data": str(data),
        "output": output,
        **more,
    }


def prompt_hash(call: ChatCall) -> str:
    """SHA-256 of the messages as compact JSON."""
    plain = [{"role": message["role"], "content": message["content"]} for message in call.messages]
    return hashlib.sha256(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def by_prompt(server: ScriptedServer, judge: bool) -> dict[str, ChatCall]:
    """The last call of each prompt, of the judge or of the model."""
    return {prompt_hash(call): call for call in server.calls if (call.model == "judge") is judge}


def kind_of_call(call: ChatCall) -> int:
    """A number 0-9 that the messages decide: lets a script fail the same tenth of the samples always."""
    return int(call.key[:8], 16) % 10


def good(call: ChatCall) -> Reply:
    """Every model and judge answers."""
    return hash_verdict(call) if call.model == "judge" else echo_world(call)


def read_results(run: Path) -> dict[str, Any]:
    """`results.json` without the time it was made at."""
    results: dict[str, Any] = json.loads((run / "results.json").read_text(encoding="utf-8"))
    results.pop("made_at")
    return results


def all_text(folder: Path) -> str:
    """Everything that lies in a folder, as one text."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def asked(server: ScriptedServer, since: int = 0) -> Mapping[str, int]:
    """How many requests model and judge got after the first `since`."""
    names = [call.model for call in server.calls[since:]]
    return {"world": names.count("world"), "judge": names.count("judge")}
