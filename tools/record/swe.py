"""Record the `swe` trajectories: a scripted coding agent on small repositories of our own.

In: `trajectories/swe/*.yaml` (repository, style, planted faults, tool calls of every turn) and
`repos/<name>/`. Out: `swe_test.jsonl` and the swe entry of `provenance.json`. Two styles of
tool calls: `function` writes `{"name": ..., "arguments": "<JSON as a string>"}` and gets the long
command envelope, `cli` writes `{"tool": ..., ...}` and gets the short one.
Run from the repository root: `python -m tools.record.swe [--output DIR] [--only NAME]`. Needs bash, pytest,
ruff and grep, sed, wc; no root and no network.
"""

from __future__ import annotations

import json
import platform
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.record import common
from tools.record.workspace import CommandResult, ToolError, Workspace

DOMAIN = "swe"
REPOS = common.HERE / "repos"
TOOL_NAMES = {
    "function": {
        "run_shell_command": "run",
        "read_file": "read",
        "replace": "edit",
        "write_file": "write",
        "search_file_content": "grep",
        "list_directory": "list_directory",
        "todo_write": "todo",
        "web_search": "web_search",
    },
    "cli": {
        "Bash": "run",
        "Read": "read",
        "Edit": "edit",
        "Write": "write",
        "Grep": "grep",
        "LS": "list_directory",
        "TodoWrite": "todo",
    },
}


def record(script: dict[str, Any]) -> common.Trajectory:
    """Play one script on a fresh copy of its repository with its faults planted."""
    if missing := [module for module in script.get("needs", []) if find_spec(module) is None]:
        raise SystemExit(f"{script['name']}: not installed: {', '.join(missing)}")
    shown = f"/workspace/{script['repo']}"
    with tempfile.TemporaryDirectory(prefix="awb") as directory:
        workspace = Workspace(REPOS / script["repo"], Path(directory), shown)
        for fault in script["faults"]:
            workspace.edit(fault["file"], fault["right"], fault["wrong"])
        system = system_text(script, workspace)
        turns = tuple(
            common.Turn(action_text(script["style"], call), observe(workspace, script["style"], call))
            for call in script["turns"]
        )
    return common.Trajectory(script["name"], script["task"], system, turns)


def action_text(style: str, call: dict[str, Any]) -> str:
    """The tool call as JSON in the shape of `style`."""
    arguments = call.get("arguments", {})
    if style == "function":
        packed = json.dumps(arguments, ensure_ascii=False)
        return json.dumps({"name": call["tool"], "arguments": packed}, ensure_ascii=False)
    return json.dumps({"tool": call["tool"], **arguments}, ensure_ascii=False)


def observe(workspace: Workspace, style: str, call: dict[str, Any]) -> str:
    """Execute one call and return what the agent sees."""
    arguments = call.get("arguments", {})
    try:
        result = getattr(workspace, TOOL_NAMES[style][call["tool"]])(**arguments)
    except ToolError as error:
        return f"Error: {error}"
    if isinstance(result, CommandResult):
        return long_envelope(result) if style == "function" else short_envelope(result)
    return str(result)


def long_envelope(result: CommandResult) -> str:
    """Five labelled parts, always all of them."""
    return (
        f"Command: {result.command}\n"
        f"Directory: {result.directory}\n"
        f"Output: {result.output or '(none)'}\n"
        f"Error: {result.error or '(none)'}\n"
        f"Exit Code: {result.exit_code}"
    )


def short_envelope(result: CommandResult) -> str:
    """Output and error when there are any, then the exit code."""
    parts = [("Output", result.output), ("Error", result.error)]
    shown = [f"{label}: {text}" for label, text in parts if text]
    return "\n".join([*(shown or ["Output: (none)"]), f"Exit Code: {result.exit_code}"])


def system_text(script: dict[str, Any], workspace: Workspace) -> str:
    """What the world model is told: tools, conventions, the file list, some files in full."""
    texts = {
        str(path.relative_to(workspace.root)): path.read_text(encoding="utf-8")
        for path in sorted(workspace.root.rglob("*"))
        if path.is_file()
    }
    listing = [f"- {name} ({common.count_lines(text)})" for name, text in texts.items()]
    known = [f"\nText of {name}:\n{texts[name].rstrip()}" for name in script["known"]]
    return common.prompt_text(
        f"{DOMAIN}_{script['style']}",
        root=workspace.shown,
        tools=common.prompt_text("swe_tools", root=workspace.shown),
        files="\n".join(listing + known),
        note=f"\n{script['note'].strip()}" if "note" in script else "",
    )


def provenance() -> dict[str, Any]:
    """What was used, and what of the text was changed on the way into the data."""
    bash = subprocess.run(["bash", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "kind": "real",
        "how": "scripted tool calls, executed on copies of tools/record/repos; tools/record/swe.py",
        "programs": {
            "python": platform.python_version(),
            "pytest": version("pytest"),
            "ruff": version("ruff"),
            "bash": bash.splitlines()[0],
        },
        "mapped": "temporary directory -> /workspace/<repository>; blanks at the end of outputs cut",
        "volatile": "pytest's duration",
        "texts": "tasks, repositories and actions: our own; outputs: of the programs run on them; "
        "file, edit, search, list and todo tools: our own implementations; web search: checks its arguments "
        "and refuses, as a gateway without a search service does",
    }


if __name__ == "__main__":
    common.main(DOMAIN, record, provenance)
