"""How well `awb` finds the number of requests that a server allows at once.

A server on loopback, in a process of its own, answers after a fixed time, allows some requests at
once (8) and refuses what is beyond with 429. `awb run` (whole: data, journal, a process of its own)
asks it about 2,000 samples and is told nothing of the limit. Printed are the two figures that count,
as the server saw them: the share of the allowed throughput from the first request to the last answer,
and refused requests as a share of the answered. From the repository root: `python -m benchmarks.limits`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from tests.helpers.official_folder import DOMAINS, make_official_folder

ROWS_PER_TRAJECTORY: Final = 5
STARTS: Final = (None, 64, 16)
"""Values of --max-connections: none, and two that are too high."""


@dataclass
class Counts:
    """What the server saw, in seconds of its own clock."""

    answered: int = 0
    refused: int = 0
    most: int = 0
    first: float = 0.0
    last: float = 0.0


def application(allowed: int, latency: float, retry_after: str | None) -> web.Application:
    """The server: `/v1/chat/completions` with the limit, `/counts` hands out and clears the counts."""
    counts, busy = Counts(), 0

    async def chat(request: web.Request) -> web.Response:
        nonlocal busy
        counts.first = counts.first or time.monotonic()
        if busy >= allowed:
            counts.refused += 1
            headers = {"Retry-After": retry_after} if retry_after else {}
            return web.json_response(
                {"error": {"message": "Rate limit reached"}}, status=429, headers=headers
            )
        busy += 1
        counts.most = max(counts.most, busy)
        try:
            await request.read()
            await asyncio.sleep(latency)
        finally:
            busy -= 1
        counts.answered += 1
        counts.last = time.monotonic()
        message = {"role": "assistant", "content": "<predicted_observation>ok</predicted_observation>"}
        usage = {"prompt_tokens": 900, "completion_tokens": 9}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "x", "model": "m", "choices": [choice], "usage": usage})

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})

    async def hand_out(request: web.Request) -> web.Response:
        nonlocal counts
        seen, counts = counts, Counts()
        return web.json_response(vars(seen))

    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/counts", hand_out)
    return app


async def serve(allowed: int, latency: float, retry_after: str | None) -> None:
    """Serve on a free port, whose URL is the first line printed, until the process is ended."""
    runner = web.AppRunner(application(allowed, latency, retry_after), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


@contextmanager
def server(options: argparse.Namespace) -> Iterator[str]:
    """The server in a process of its own; yields its URL."""
    command = [sys.executable, "-m", "benchmarks.limits", "--serve", "--allowed", str(options.allowed)]
    command += ["--latency", str(options.latency)]
    command += ["--retry-after", options.retry_after] if options.retry_after else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def run(data: Path, output: Path, url: str, connections: int | None) -> Counts:
    """One whole `awb run`, and what the server saw of it."""
    command = [sys.executable, "-m", "agentworldbench", "run", "--data", str(data), "--display", "none"]
    command += ["--model", "openai-api/m", "--base-url", f"{url}/v1", "--output", str(output)]
    command += ["--max-connections", str(connections)] if connections else []
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    with urllib.request.urlopen(f"{url}/counts") as reply:
        return Counts(**json.load(reply))


def main() -> None:
    """Measure and print; the exit code tells whether every line keeps to both bounds."""
    parser = argparse.ArgumentParser(description="How well awb finds a server's limit.")
    parser.add_argument("--allowed", type=int, default=8, help="requests at once (default: 8)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of an answer (default: 0.2)")
    parser.add_argument("--retry-after", help="value of Retry-After on every refusal (default: none)")
    parser.add_argument("--requests", type=int, default=2000, help="about so many (default: 2000)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.allowed, options.latency, options.retry_after))
        return
    good = True
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}; load {os.getloadavg()[0]:.1f}\n")
    print("| --max-connections | answered | seconds | of the allowed throughput | refused | wasted |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch, server(options) as url:
        trajectories = -(-options.requests // (ROWS_PER_TRAJECTORY * len(DOMAINS)))
        data = Path(scratch, "data")
        make_official_folder(data, trajectories=trajectories, turns=8, observation_chars=60, special=False)
        for connections in STARTS:
            seen = run(data, Path(scratch, f"run-{connections}"), url, connections)
            seconds = seen.last - seen.first
            share = seen.answered * options.latency / options.allowed / seconds
            wasted = seen.refused / seen.answered
            good &= share >= 0.8 and wasted < 0.05
            print(
                f"| {connections or 'not given'} | {seen.answered} | {seconds:.1f} | {share:.1%} | "
                f"{seen.refused} | {wasted:.1%} |",
                flush=True,
            )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
