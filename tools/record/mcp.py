"""Record the `mcp` trajectories: scripted tool calls, answered by real MCP servers over stdio.

In: `trajectories/mcp/*.yaml`, each with the servers, the tools that the system text shows, the world at
the start and the calls. Out: `mcp_test.jsonl` and the mcp entry of `provenance.json`.
Run from the repository root: `python -m tools.record.mcp [--output DIR]`, after
`tools/record/setup/mcp.sh`. `servers/world.py` lays out the worlds, `servers/play.py` asks the servers.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.record import common
from tools.record.servers.world import NODE_MODULES, PROGRAMS, World

DOMAIN = "mcp"
SETUP = "tools/record/setup/mcp.sh"
LOCKS = (common.HERE / "npm" / "mcp" / "package-lock.json", common.HERE / "setup" / "mcp.txt")
PLAY_SECONDS = 300
NODE_PACKAGES = ("server-filesystem", "server-memory")
PYTHON_PACKAGES = ("mcp", "mcp-server-sqlite", "mcp-server-git", "excel-mcp-server", "openpyxl")


def record(script: dict[str, Any]) -> common.Trajectory:
    """Play one script in a world of its own."""
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory(prefix="awb") as directory:
        world = World(script, Path(directory))
        start = world.description()
        job = {
            "servers": [world.server(name) for name in script["servers"]],
            "before": world.workbook_calls(),
            "calls": [
                {"name": turn["name"], "arguments": world.private(turn["arguments"])}
                for turn in script["turns"]
            ],
        }
        played = play(job)
        turns = tuple(
            common.Turn(action_text(turn), world.public(observation))
            for turn, observation in zip(script["turns"], played["observations"], strict=True)
        )
        system = system_text(script, start, played["tools"])
    return common.Trajectory(script["name"], script["task"], system, turns)


def missing() -> str | None:
    """What keeps this machine from recording, in one line; None when all is there."""
    stamp = PROGRAMS.parent / "made"  # written last by the setup: the digest of the two locks
    wanted = hashlib.sha256(b"".join(lock.read_bytes() for lock in LOCKS)).hexdigest()
    installed = stamp.read_text(encoding="utf-8") if stamp.exists() else ""
    programs = all(shutil.which(program) for program in ("node", "git"))
    if programs and installed.startswith(wanted) and NODE_MODULES.exists():
        return None
    return f"The MCP servers are not installed, or not in the locked versions. Run {SETUP} first."


def play(job: dict[str, Any]) -> dict[str, Any]:
    """Hand the job to `servers/play.py` in the servers' environment; its words are shown when it fails."""
    done = subprocess.run(
        [str(PROGRAMS / "python"), "-m", "tools.record.servers.play"],
        cwd=common.HERE.parents[1],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PLAY_SECONDS,
    )
    if done.returncode != 0:
        raise SystemExit(f"The MCP servers did not answer:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def action_text(turn: dict[str, Any]) -> str:
    """The call as the agent writes it."""
    call = {"name": turn["name"], "arguments": turn["arguments"]}
    return json.dumps(call, ensure_ascii=False)


def system_text(script: dict[str, Any], start: str, listed: dict[str, list[dict[str, Any]]]) -> str:
    """What the world model is told: the servers with their conventions and tools, the start."""
    names = {tool["name"] for tools in listed.values() for tool in tools}
    if unknown := set(script["tools"]) - names:
        raise SystemExit(f"{script['name']}: no server has the tools {', '.join(sorted(unknown))}")
    servers = [
        common.prompt_text(f"{DOMAIN}_{name}", root=script["root"], tools=tool_list(tools, script["tools"]))
        for name, tools in listed.items()
    ]
    return common.prompt_text(
        DOMAIN,
        first=next(iter(listed)),
        servers="\n\n".join(servers),
        start=start,
    )


def tool_list(tools: Iterable[dict[str, Any]], shown: list[str]) -> str:
    """One line of JSON for each tool in `shown`: name, first sentence of its description, schema."""
    lines = [
        {
            "name": tool["name"],
            "description": first_sentence(tool["description"]),
            "inputSchema": lean_schema(tool["inputSchema"]),
        }
        for tool in tools
        if tool["name"] in shown
    ]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def first_sentence(text: str) -> str:
    """The text up to its first full stop or line break."""
    return text.strip().split("\n")[0].split(". ")[0].rstrip(".")


def lean_schema(schema: Any) -> Any:
    """A JSON schema without what says nothing about calls: `$schema` and titles made from names."""
    if isinstance(schema, list):
        return [lean_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: lean_schema(value)
        for key, value in schema.items()
        if key != "$schema" and not (key == "title" and isinstance(value, str))
    }


def provenance() -> dict[str, Any]:
    """What was used, and what of the text was changed on the way into the data."""
    node = {
        f"@modelcontextprotocol/{name}": json.loads(
            (NODE_MODULES / name / "package.json").read_text(encoding="utf-8")
        )["version"]
        for name in NODE_PACKAGES
    }
    code = (
        "import json, platform, sqlite3, sys; from importlib.metadata import version; "
        "print(json.dumps({'python': platform.python_version(), 'sqlite': sqlite3.sqlite_version, "
        "**{name: version(name) for name in sys.argv[1:]}}))"
    )
    python = json.loads(output([str(PROGRAMS / "python"), "-c", code, *PYTHON_PACKAGES]))
    programs = {"node": output(["node", "--version"]), "git": output(["git", "--version"]), **python, **node}
    return {
        "kind": "real",
        "how": "scripted tool calls through the mcp client library to real servers over stdio; "
        "tools/record/mcp.py",
        "programs": programs,
        "mapped": "temporary directory in front of /data removed from answers; author, time and settings of "
        "git fixed; the file server lists directories in the order of names (npm/mcp/sorted.cjs)",
        "volatile": "none",
        "texts": "tasks, files, tables, graphs and actions: our own; outputs: of the servers run on them; tool "
        "names, schemas and first sentences of descriptions in the system texts: of the servers, MIT "
        "(@modelcontextprotocol/* and mcp-server-*: copyright Anthropic, PBC; excel-mcp-server: copyright Haris)",
    }


def output(command: list[str]) -> str:
    """What a program prints, without the line break at its end."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    common.main(DOMAIN, record, provenance)
