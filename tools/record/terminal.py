"""Record the `terminal` trajectories: keystrokes in a real bash, raw screen text out.

In: `trajectories/terminal/*.yaml`, each with user, host, start directory, initial files and the
keystrokes of every turn. Out: `terminal_test.jsonl` and the terminal entry of `provenance.json`.
Run from the repository root: `python -m tools.record.terminal [--output DIR] [--only NAME]`. Needs bash
and the usual small programs (coreutils, grep, sed, awk, diff), and what a script lists in `needs`
(an editor, a pager); no root and no network.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tools.record import common
from tools.record.tty.shell import CUT_SECONDS, WHOLE_COLUMNS, WHOLE_ROWS, Shell

DOMAIN = "terminal"
PROGRAMS = ("bash", "ls", "grep", "sed", "diff", "ed", "less")


def record(script: dict[str, Any]) -> common.Trajectory:
    """Play one script in a fresh home directory."""
    if missing := [program for program in script.get("needs", []) if shutil.which(program) is None]:
        raise SystemExit(f"{script['name']}: not installed: {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="awb") as directory:
        home = Path(directory, "home")
        write_files(home, script["files"])
        (home / script["start"]).mkdir(parents=True, exist_ok=True)
        prompts, whole = script.get("prompts", []), script.get("whole_screen", False)
        with Shell(home, script["user"], script["host"], script["start"], prompts, whole) as shell:
            turns = tuple(
                common.Turn(
                    json.dumps(turn["keys"]),
                    shell.act(turn["keys"], turn.get("cut_after"), tuple(turn.get("unprompted", ()))),
                )
                for turn in script["turns"]
            )
    return common.Trajectory(script["name"], script["task"], system_text(script), turns)


def write_files(home: Path, files: dict[str, dict[str, Any]]) -> None:
    """Lay out the initial files; `run: true` makes one executable."""
    for name, file in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"], encoding="utf-8")
        path.chmod(0o755 if file.get("run") else 0o644)


def system_text(script: dict[str, Any]) -> str:
    """What the world model is told: the machine, the conventions, the files (some in full)."""
    lines = [
        f"- ~/{name} ({common.count_lines(file['text'])}{', executable' if file.get('run') else ''})"
        for name, file in sorted(script["files"].items())
    ]
    shown = [
        f"\nText of ~/{name}:\n{file['text'].rstrip()}"
        for name, file in sorted(script["files"].items())
        if file.get("known", True)
    ]
    return common.prompt_text(
        "terminal_screen" if script.get("whole_screen") else DOMAIN,
        rows=f"{WHOLE_ROWS}",
        columns=f"{WHOLE_COLUMNS}",
        user=script["user"],
        host=script["host"],
        start=script["start"],
        seconds=f"{CUT_SECONDS:g}",
        files="\n".join(lines + shown),
        note=script.get("note", "").strip(),
    )


def provenance() -> dict[str, Any]:
    """What was used, and what of the text was changed on the way into the data."""
    found = [program for program in PROGRAMS if shutil.which(program)]
    versions = {program: first_line([program, "--version"]) for program in found}
    awk = Path(shutil.which("awk") or "awk").resolve().name
    return {
        "kind": "real",
        "how": "bash on a pseudo-terminal, scripted keystrokes; tools/record/terminal.py",
        "programs": {"python": platform.python_version(), **versions, "awk": awk},
        "mapped": "temporary home -> /home/<user>; owner columns of ls -l -> the shown user; "
        "blanks at the end of an observation cut",
        "volatile": "date output, file times and sizes in ls -l, process ids",
        "texts": "tasks, files and actions: our own; outputs: of the programs run on them",
    }


def first_line(command: list[str]) -> str:
    """First line that a program prints about its version."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


if __name__ == "__main__":
    common.main(DOMAIN, record, provenance)
