"""Record the `os` trajectories: mouse and keyboard code on a real desktop, accessibility tables out.

In: `trajectories/os/*.yaml`, each with a user, the files of the home, the programs that are open at the
start, the number of columns of the tables (7 or 4), the agent's style (pyautogui or Agent) and the code of
every turn. Out: `os_test.jsonl` and the os entry of `provenance.json`. A script names places as
`<<tag|label>>`; the recorder looks them up in the table before the action and writes coordinates.
Run from the repository root: `python -m tools.record.desktop [--output DIR]`. Needs Debian 12, root, and
what `tools/record/setup/os.sh` installs; about two minutes.
"""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
from typing import Any

from tools.record import common
from tools.record.desk import actions, session
from tools.record.desk.tree import TABLES, find

DOMAIN = "os"
PACKAGES = ("xvfb", "xdotool", "openbox", "at-spi2-core", "libgtk-3-0", "xfce4-panel")
PROGRAMS = ("mousepad", "thunar", "galculator")


def record(script: dict[str, Any]) -> common.Trajectory:
    """Play one script on a fresh desktop."""
    table = TABLES[script["columns"]]
    turns = []
    with session.Desktop(script["user"], script["files"], script["programs"]) as desktop:
        state = table(desktop.tree)
        for number, turn in enumerate(script["turns"], 1):
            try:
                action = actions.with_places(
                    turn["do"].strip(), lambda *place: find(desktop.tree, *place).centre
                )
                desktop.act(actions.steps(action), turn.get("shows"), turn.get("gone"))
            except (LookupError, session.DesktopError) as error:
                error.add_note(f"{script['name']}, turn {number}")
                raise
            turns.append(common.Turn(action, table(desktop.tree)))
    return common.Trajectory(script["name"], script["task"], system_text(script), tuple(turns), state)


def system_text(script: dict[str, Any]) -> str:
    """What the world model is told: the desktop, the conventions, the files (some in full)."""
    return common.prompt_text(
        DOMAIN,
        user=script["user"],
        columns=common.prompt_text(f"os_columns_{script['columns']}"),
        actions=common.prompt_text(f"os_{script['style'].lower()}"),
        programs="\n".join(f"- {program['about']}" for program in script["programs"]),
        files="\n".join(_file_lines(script["files"])),
        note=script.get("note", "").strip(),
    )


def _file_lines(files: dict[str, dict[str, Any]]) -> list[str]:
    """The list of the home's files, then the texts of those that the world model may know."""
    names, texts = [], []
    for name, file in sorted(files.items()):
        size = "" if name.endswith("/") else f" ({len(file['text'].encode())} bytes)"
        names.append(f"- ~/{name}{size}{', read-only' if file.get('read_only') else ''}")
        if "text" in file and file.get("known", True):
            texts.append(f"\nText of ~/{name}:\n{file['text'].rstrip()}")
    return names + texts


def provenance() -> dict[str, Any]:
    """What was used, and what of the text was changed on the way into the data."""
    return {
        "kind": "real",
        "how": "programs on a virtual screen, scripted mouse and keyboard (xdotool), read through AT-SPI; "
        "tools/record/desktop.py",
        "programs": {
            "python": platform.python_version(),
            **{name: _version(name) for name in (*PROGRAMS, *PACKAGES)},
        },
        "mapped": "nothing: the home is a real /home/<user> made for the recording; nodes that are not "
        "showing, or have no name, text, position or size, are left out of the tables",
        "volatile": "none",
        "texts": "tasks, files and actions: our own; outputs: of the programs run on them",
    }


def _version(package: str) -> str:
    """Version of an installed Debian package."""
    command = ["dpkg-query", "--showformat=${Version}", "--show", package]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if reason := session.missing():
        sys.exit(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the desktop is taken down
    common.main(DOMAIN, record, provenance)
