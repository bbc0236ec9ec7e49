"""The loopback server of `engine.py` and `memory.py`: answers every request after a fixed time, keeps the clock.

In: the latency in seconds. Out: the base URL on the first line of standard output. `POST /begin?pid=P&requests=N`
begins a measurement of the client with process id P; `GET /measured` tells when its first request came and
when its last reply went, how many were under way at most, and the CPU time that the client had used at both
moments (from /proc; null where there is none). A body is read and not decoded, so the server costs little; the
model `judge` gets a verdict.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from aiohttp import web

OBSERVATION: Final = (
    "<predicted_observation>\n" + "-rw-r--r-- 1 ana ana 64 notes.txt\n" * 6 + "</predicted_observation>"
)
VERDICT: Final = (
    '<final_evaluation>\n{"strengths": ["layout"], "weaknesses": ["size"], "scores": {"format": 4, "factuality": 3, '
    '"consistency": 4, "realism": 5, "quality": 3}}\n</final_evaluation>'
)


def reply(content: str) -> bytes:
    """A chat completion."""
    message = {"role": "assistant", "content": content}
    return json.dumps(
        {
            "id": "chatcmpl-benchmark",
            "object": "chat.completion",
            "created": 1,
            "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 250, "completion_tokens": 90, "total_tokens": 340},
        }
    ).encode()


class Server:
    """Fixed latency, and one measurement at a time."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._observation, self._verdict = reply(OBSERVATION), reply(VERDICT)
        self._pid = self._expected = 0
        self._measured: dict[str, Any] = {}
        self._in_flight = 0

    def application(self) -> web.Application:
        """All paths."""
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/begin", self._begin)
        app.router.add_get("/measured", self._tell)
        return app

    async def _chat(self, request: web.Request) -> web.Response:
        now, seen = time.monotonic(), self._measured
        if not seen.get("requests"):
            seen |= {"first": now, "cpu_first": _cpu(self._pid), "requests": 0, "replies": 0, "most": 0}
        seen["requests"] += 1
        self._in_flight += 1
        seen["most"] = max(seen["most"], self._in_flight)
        body = await request.read()
        judge = b'"model":"judge"' in body[:100]
        await asyncio.sleep(now + self._latency - time.monotonic())
        self._in_flight -= 1
        seen["replies"] += 1
        seen["last"] = time.monotonic()
        if seen["replies"] == self._expected:
            seen["cpu_last"] = _cpu(self._pid)
        answer = self._verdict if judge else self._observation
        return web.Response(body=answer, content_type="application/json")

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "bench", "object": "model"}]})

    async def _begin(self, request: web.Request) -> web.Response:
        self._pid, self._expected = (int(request.query[name]) for name in ("pid", "requests"))
        self._measured = {}
        return web.Response()

    async def _tell(self, request: web.Request) -> web.Response:
        return web.json_response(self._measured)


def _cpu(pid: int) -> float | None:
    """Seconds of CPU that a process has used, its threads included."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def main() -> None:
    """Serve until the process is ended."""
    runner = web.AppRunner(Server(float(sys.argv[1])).application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
