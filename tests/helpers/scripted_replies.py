"""Ready-made scripts of the scripted server, and combinators that wrap other scripts.

A script maps a `ChatCall` to a `Reply`. All of them are deterministic: texts and scores come
from SHA-256 of what was asked, failures from the arrival number or from how often the same
messages were seen, never from a clock or a random number. `attempt` also counts a second epoch
or a repeated judgement of the same messages, so `fail_first` fails by message, not by client.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .scripted_calls import ChatCall, Reply, Script

DIMENSIONS: Final = ("format", "factuality", "consistency", "realism", "quality")


def echo_world(call: ChatCall) -> Reply:
    """A prediction that depends on the messages only, inside the asked tags."""
    text = f"total 2\n-rw-r--r-- 1 root root 64 {call.key[:16]}\n-rw-r--r-- 1 root root 64 {call.key[16:32]}"
    return Reply(content=f"The listing follows.\n<predicted_observation>\n{text}\n</predicted_observation>")


def verdict_text(scores: Mapping[str, object]) -> str:
    """A well-formed verdict: reasoning, then the tagged JSON fence."""
    verdict = {
        "strengths": ["keeps the layout"],
        "weaknesses": ["one value differs"],
        "scores": dict(scores),
    }
    fence = f"```json\n{json.dumps(verdict, indent=4)}\n```"
    return f"Both texts are compared line by line.\n\n<final_evaluation>\n{fence}\n</final_evaluation>"


def fixed_verdict(scores: Mapping[str, object]) -> Script:
    """The same verdict for every call; `scores` may be incomplete or out of range on purpose."""
    content = verdict_text(scores)
    return lambda call: Reply(content=content)


def hash_scores(text: str) -> dict[str, int]:
    """Five integers 1-5 from SHA-256 of `text`: what `hash_verdict` gives for a user text."""
    digest = hashlib.sha256(text.encode()).digest()
    return {name: 1 + byte % 5 for name, byte in zip(DIMENSIONS, digest, strict=False)}


def hash_verdict(call: ChatCall) -> Reply:
    """A verdict whose scores depend on the last user text only."""
    return Reply(content=verdict_text(hash_scores(call.last_user)))


def world_and_judge(call: ChatCall) -> Reply:
    """`hash_verdict` for a judge call (heuristic of `ChatCall.is_judge`), else `echo_world`."""
    return hash_verdict(call) if call.is_judge else echo_world(call)


def by_role(world: Script, judge: Script) -> Script:
    """`judge` for judge calls, `world` for all others."""
    return lambda call: judge(call) if call.is_judge else world(call)


def late(seconds: float, inner: Script) -> Script:
    """`inner`, answered `seconds` later."""

    def script(call: ChatCall) -> Reply:
        reply = inner(call)
        return replace(reply, delay_s=reply.delay_s + seconds)

    return script


def together(count: int, inner: Script) -> Script:
    """`inner`, answered once `count` requests have been in flight at the same time.

    Proves concurrency without a clock; a client that never gets there is answered 500 after the
    server's `gather_limit_s`, and the server's context manager raises.
    """
    return lambda call: replace(inner(call), together=count)


def fail_first(count: int, reply: Reply, inner: Script) -> Script:
    """`reply` to the first `count` attempts at the same messages, then `inner`."""
    return lambda call: reply if call.attempt <= count else inner(call)


def every_nth(n: int, reply: Reply, inner: Script) -> Script:
    """`reply` to arrivals n, 2n, 3n, ..., else `inner`."""
    return lambda call: reply if call.index % n == 0 else inner(call)


def rate_limited(count: int, retry_after: float | str, inner: Script) -> Script:
    """429 with a `Retry-After` header for the first `count` attempts at the same messages."""
    error = {
        "message": "Rate limit reached",
        "type": "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    }
    limited = Reply(status=429, headers={"Retry-After": str(retry_after)}, error=error)
    return fail_first(count, limited, inner)


def refuse_parameter(name: str, message: str, inner: Script, *, allowed: tuple[object, ...] = ()) -> Script:
    """400 in OpenAI's shape while the body has the key `name` with a value not in `allowed`."""

    def script(call: ChatCall) -> Reply:
        if name not in call.body or call.body[name] in allowed:
            return inner(call)
        if allowed:
            code = "unsupported_value"
            start = f"Unsupported value: '{name}' does not support {call.body[name]} with this model."
        else:
            code = "unsupported_parameter"
            start = f"Unsupported parameter: '{name}' is not supported with this model."
        error = {
            "message": f"{start} {message}",
            "type": "invalid_request_error",
            "param": name,
            "code": code,
        }
        return Reply(status=400, error=error)

    return script


def _error(message: str, kind: str, param: str | None, code: str) -> dict[str, str | None]:
    return {"message": message, "type": kind, "param": param, "code": code}
