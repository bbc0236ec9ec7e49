"""The clients of `engine.py` that are no harness: the floor, and one request after another.

`floor` is a bare aiohttp loop: it sends the bodies, reads and decodes the replies and keeps nothing.
`sequential` asks through the openai SDK one request at a time, as the official script does. Both read a file
with one list of messages a line. `python -m benchmarks._loops KIND URL FILE CONNECTIONS`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SAMPLING = {"model": "bench", "temperature": 0.6, "max_tokens": 32768}


def lists(file: Path) -> Iterator[list[dict[str, str]]]:
    """The lists of messages in a file, read when due."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["messages"]


async def floor(url: str, file: Path, connections: int) -> None:
    """Ask everything, `connections` at a time."""
    import aiohttp

    left = lists(file)

    async def worker(session: aiohttp.ClientSession) -> None:
        for messages in left:
            body: dict[str, Any] = {**SAMPLING, "messages": messages}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                response.raise_for_status()
                await response.json()

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(worker(session) for _ in range(connections)))


def sequential(url: str, file: Path) -> None:
    """Ask one after another."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    for messages in lists(file):
        client.chat.completions.create(messages=messages, **SAMPLING)  # type: ignore[call-overload]


def main() -> None:
    """One of the two."""
    kind, url, file, connections = sys.argv[1:]
    if kind == "floor":
        asyncio.run(floor(url, Path(file), int(connections)))
    else:
        sequential(url, Path(file))


if __name__ == "__main__":
    main()
