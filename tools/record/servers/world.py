"""The worlds behind the MCP servers: laid out before the first call, and told to the world model.

In: a trajectory script (`root`, `files`, `repository`, `workbooks`, `graph`, `tables`). Out: a private
directory in which every public path stands below `base` (`/data/x` is `<base>/data/x`), the command
of each server, the calls that make the workbooks, and the paragraphs of the system text that
describe the start. Public paths gain the prefix on the way in, answers lose it on the way out.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from tools.record import common

INSTALLED = common.HERE.parents[1] / ".demo" / "record"
NODE_MODULES = INSTALLED / "mcp" / "node_modules" / "@modelcontextprotocol"
PROGRAMS = INSTALLED / "mcp-venv" / "bin"
SORTED = common.HERE / "npm" / "mcp" / "sorted.cjs"
PATH_ARGUMENTS = ("path", "paths", "source", "destination", "repo_path", "filepath")
AUTHOR = {"NAME": "Harbour Office", "EMAIL": "office@harbour.example"}


class World:
    """The initial state of one script, laid out below `base`."""

    def __init__(self, script: dict[str, Any], base: Path) -> None:
        """Write files, repository, graph and tables; workbooks are made by their server later."""
        self.script = script
        self.base = base.resolve()
        self.root = self.real(script["root"])
        self.state = self.base / "state"
        self.commits: list[str] = []
        for directory in (self.root, self.state, self.base / "home"):
            directory.mkdir(parents=True)
        if repository := script.get("repository"):
            self._commit_all(repository["commits"])
        self._write(script.get("files", {}))
        if graph := script.get("graph"):
            lines = [json.dumps(node, ensure_ascii=False) for node in graph_nodes(graph)]
            (self.state / "memory.jsonl").write_text("\n".join(lines), encoding="utf-8")
        if tables := script.get("tables"):
            with closing(sqlite3.connect(self.state / "tables.db")) as database:
                database.executescript(tables)

    def real(self, public: str) -> Path:
        """Where the public absolute path is on this machine."""
        return self.base / public.lstrip("/")

    def private(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call with the paths in them made real."""
        top = "/" + self.script["root"].split("/")[1]

        def made_real(value: Any) -> Any:
            if isinstance(value, list):
                return [made_real(item) for item in value]
            inside = isinstance(value, str) and (value == top or value.startswith(top + "/"))
            return f"{self.base}{value}" if inside else value

        return {key: made_real(value) if key in PATH_ARGUMENTS else value for key, value in arguments.items()}

    def public(self, text: str) -> str:
        """A text without the private prefix."""
        return text.replace(str(self.base), "")

    def server(self, name: str) -> dict[str, Any]:
        """How server `name` is started on this world."""
        node = ["node", "--require", str(SORTED)]
        commands: dict[str, list[str]] = {
            "filesystem": [*node, str(NODE_MODULES / "server-filesystem/dist/index.js"), str(self.root)],
            "memory": ["node", str(NODE_MODULES / "server-memory/dist/index.js")],
            "sqlite": [str(PROGRAMS / "mcp-server-sqlite"), "--db-path", str(self.state / "tables.db")],
            "git": [str(PROGRAMS / "mcp-server-git"), "--repository", str(self.root)],
            "excel": [str(PROGRAMS / "excel-mcp-server"), "stdio"],
        }
        command, *arguments = commands[name]
        return {
            "name": name,
            "command": command,
            "arguments": arguments,
            "environment": self._environment(self.script.get("date", "")),
            "directory": str(self.base / "home"),
        }

    def workbook_calls(self) -> list[dict[str, Any]]:
        """The calls that make the workbooks of the script, sheet by sheet."""
        calls: list[dict[str, Any]] = []
        for path, sheets in self.script.get("workbooks", {}).items():
            book = {"filepath": str(self.real(path))}
            calls.append({"name": "create_workbook", "arguments": book})
            for number, (sheet, rows) in enumerate(sheets.items()):
                named = {"old_name": "Sheet1", "new_name": sheet} if number == 0 else {"sheet_name": sheet}
                tool = "rename_worksheet" if number == 0 else "create_worksheet"
                written = {**book, "sheet_name": sheet, "data": rows}
                calls.append({"name": tool, "arguments": {**book, **named}})
                calls.append({"name": "write_data_to_excel", "arguments": written})
        return calls

    def description(self) -> str:
        """What there is at the start, as paragraphs of the system text."""
        parts = [self._commit_list(), self._file_list(), self._workbook_list()]
        if graph := self.script.get("graph"):
            nodes = [json.dumps(node, ensure_ascii=False) for node in graph_nodes(graph)]
            parts.append("\n".join(["The graph of the memory server at the start, in its order:", *nodes]))
        if tables := self.script.get("tables"):
            parts.append(f"The database at the start, as these statements made it:\n{tables.strip()}")
        return "\n\n".join(part for part in parts if part)

    def _write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def _commit_all(self, commits: list[dict[str, Any]]) -> None:
        self._git("", "init", "--quiet", "--template=", "--initial-branch=main")
        for commit in commits:
            self._write(commit["files"])
            self._git("", "add", "--all")
            self._git(commit["date"], "commit", "--quiet", "--message", commit["message"])
            self.commits.append(self._git("", "rev-parse", "HEAD").strip())

    def _git(self, date: str, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        environment = self._environment(date)
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, encoding="utf-8"
        ).stdout

    def _environment(self, date: str) -> dict[str, str]:
        """Variables of every server and of git: fixed language, zone, author and time."""
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base / "home"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "MEMORY_FILE_PATH": str(self.state / "memory.jsonl"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        for role in ("AUTHOR", "COMMITTER"):
            variables |= {f"GIT_{role}_{key}": value for key, value in {**AUTHOR, "DATE": date}.items()}
        return variables

    def _commit_list(self) -> str:
        if not self.commits:
            return ""
        lines = [f"The repository {self.script['root']} (branch main) at the start, oldest commit first:"]
        for digest, commit in zip(self.commits, self.script["repository"]["commits"], strict=True):
            names = ", ".join(commit["files"])
            lines.append(f"- {digest} {commit['date']} {commit['message'].splitlines()[0]} ({names})")
        return "\n".join(lines)

    def _file_list(self) -> str:
        if not (files := self._texts()):
            return ""
        lines = [f"Files below {self.script['root']} at the start:"]
        for name, text in files.items():
            lines.append(f"- {name} ({common.count_lines(text)}, {len(text.encode())} bytes)")
        texts = [f"Text of {name}:\n{text.rstrip()}" for name, text in files.items()]
        return "\n\n".join(["\n".join(lines), *texts])

    def _texts(self) -> dict[str, str]:
        """The text of every file below the root, git's own files left out, by relative name."""
        paths = [path for path in sorted(self.root.rglob("*")) if path.is_file()]
        names = {path.relative_to(self.root).as_posix(): path for path in paths}
        return {
            name: path.read_text(encoding="utf-8")
            for name, path in names.items()
            if not name.startswith(".git/")
        }

    def _workbook_list(self) -> str:
        parts = []
        for path, sheets in self.script.get("workbooks", {}).items():
            for sheet, rows in sheets.items():
                lines = [json.dumps(row, ensure_ascii=False) for row in rows]
                head = f"Workbook {path}, sheet {sheet}, rows from A1 on:"
                parts.append("\n".join([head, *lines]))
        return "\n\n".join(parts)


def graph_nodes(graph: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the memory server's file: entities, then relations `[from, type, to]`."""
    entities = [
        {"type": "entity", "name": name, "entityType": node["type"], "observations": node["observations"]}
        for name, node in graph["entities"].items()
    ]
    relations = [
        {"type": "relation", "from": source, "to": target, "relationType": kind}
        for source, kind, target in graph["relations"]
    ]
    return [*entities, *relations]
