"""Ask real MCP servers over stdio and hand on every answer as the client library dumps it.

Runs in the virtual environment of `setup/mcp.sh`, which has the client library `mcp`, as
`python -m tools.record.servers.play`. In: one JSON object on standard input: `servers` (name, command,
arguments, environment, directory), `before` and `calls` (name, arguments). Out: one JSON object on
standard output: the tools of every server as it lists them, and one observation for every call. The
calls of `before` lay out the world through the servers themselves; one that fails ends the recording.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent

CALL_SECONDS = 60


async def connect(stack: AsyncExitStack, server: dict[str, Any]) -> ClientSession:
    """Start one server; it ends with `stack`."""
    parameters = StdioServerParameters(
        command=server["command"],
        args=server["arguments"],
        env=server["environment"],
        cwd=server["directory"],
    )
    streams = await stack.enter_async_context(stdio_client(parameters))
    limit = timedelta(seconds=CALL_SECONDS)
    session = await stack.enter_async_context(ClientSession(*streams, read_timeout_seconds=limit))
    await session.initialize()
    return session


def observation(result: CallToolResult) -> str:
    """The whole result as JSON in the text of one content block, dumped as JSON again."""
    block = TextContent(type="text", text=json.dumps(result.model_dump(mode="json")))
    return json.dumps(block.model_dump(mode="json"))


async def play(job: dict[str, Any]) -> dict[str, Any]:
    """Start the servers, make all calls one after the other, end the servers.

    A tool is asked of the server that lists it; a name that no server lists, of the first one.
    """
    async with AsyncExitStack() as stack:
        tools: dict[str, list[dict[str, Any]]] = {}
        owners: dict[str, ClientSession] = {}
        sessions: list[ClientSession] = []
        for server in job["servers"]:
            session = await connect(stack, server)
            sessions.append(session)
            listed = (await session.list_tools()).tools
            tools[server["name"]] = [tool.model_dump(mode="json") for tool in listed]
            owners |= {tool.name: session for tool in listed}

        async def ask(call: dict[str, Any]) -> CallToolResult:
            session = owners.get(call["name"], sessions[0])
            return await session.call_tool(call["name"], call["arguments"])

        for call in job["before"]:
            result = await ask(call)
            if result.isError:
                raise RuntimeError(f"cannot lay out the world: {call}: {result.content}")
        observations = [observation(await ask(call)) for call in job["calls"]]
    return {"tools": tools, "observations": observations}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(play(json.load(sys.stdin)))))
