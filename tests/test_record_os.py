"""The os rows: tables of the accessibility tree, action code, and that recording again gives the same.

In: `tools/record/desktop*.py` and `agentworldbench/data/mini/os_test.jsonl`. The committed rows are read
back: every action must be one that the recorder can carry out, every table must have the columns that its
system text promises, and fit on the screen. Recording again needs what `tools/record/setup/os.sh` installs
(Debian 12, root), and is skipped where the script says that it cannot.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.record import common, desktop
from tools.record.desk import settings as desktop_settings
from tools.record.desk.actions import ActionError, steps, with_places
from tools.record.desk.tree import (
    LONG_HEADER,
    SHORT_HEADER,
    Node,
    find,
    is_kept,
    long_table,
    nodes,
    short_table,
)

ROOT = Path(__file__).resolve().parents[1]
MARKER = "**Environment Observation:**\n"
ACTIONS = yaml.safe_load((ROOT / "tests/cases/record_os/actions.yaml").read_text(encoding="utf-8"))
USABLE = ("visible", "showing", "enabled")


# Tables.


def node(tag: str, name: str = "", text: str = "", **other: Any) -> Node:
    """A node that both tables show, unless `other` says otherwise."""
    given = {
        "app": "mousepad",
        "depth": 4,
        "attributes": {},
        "box": (10, 20, 31, 40),
        "states": USABLE,
        **other,
    }
    return Node(tag=tag, name=name, text=text, **{**given, "states": frozenset(given["states"])})


FRAMES = [node("frame", "Notes", depth=1, states=(*USABLE, "active"))]


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (node("push-button", "Save"), 'push-button\tSave\t""""""\t\t\t(10, 20)\t(31, 40)'),
        (node("label", "Name:", "Name:"), "label\tName:\tName:\t\t\t(10, 20)\t(31, 40)"),
        (node("text", "", "one\ntwo\n"), 'text\t\t"one\ntwo\n"\t\t\t(10, 20)\t(31, 40)'),
        (node("text", "", 'say "ho"'), 'text\t\t"say ""ho"""\t\t\t(10, 20)\t(31, 40)'),
        (
            node("link", "Next", attributes={"class": "nav", "description": "Page 2"}),
            'link\tNext\t""""""\tnav\tPage 2\t(10, 20)\t(31, 40)',
        ),
        (
            node("text", "", "draft", states=("visible", "showing", "editable")),
            "text\t\tdraft\t\t\t(10, 20)\t(31, 40)",
        ),
    ],
)
def test_a_line_of_seven_columns(shown: Node, line: str) -> None:
    assert long_table([*FRAMES, shown]) == "\t".join(LONG_HEADER) + "\n" + line


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (node("push-button", "Save"), "push-button\tSave\t(25, 40)\t(31, 40)"),
        (node("label", "Name:", "Name: "), "label\tName:\t(25, 40)\t(31, 40)"),
        (node("entry", "Amount", "12"), "entry\tAmount (12)\t(25, 40)\t(31, 40)"),
        (node("text", "", "one\n\ttwo\n"), "text\tone\\n two\t(25, 40)\t(31, 40)"),
        (node("label", " ", " "), "label\t\t(25, 40)\t(31, 40)"),
        (node("push-button", "Undo", states=("visible", "showing")), "push-button\tUndo\t(25, 40)\t(31, 40)"),
    ],
)
def test_a_line_of_four_columns(shown: Node, line: str) -> None:
    assert short_table([*FRAMES, shown]) == "\t".join(SHORT_HEADER) + "\n" + line


@pytest.mark.parametrize(
    ("left_out", "kept"),
    [
        ({"tag": "panel"}, {"tag": "menu-item"}),
        ({"tag": "separator"}, {"tag": "check-box"}),
        ({"name": ""}, {"name": "", "text": "0"}),
        ({"states": ("visible", "enabled")}, {"states": USABLE}),
        ({"states": ("showing", "enabled")}, {"states": ("visible", "showing")}),
        ({"box": (-1, 5, 9, 9)}, {"box": (0, 0, 9, 9)}),
        ({"box": (5, 5, 0, 9)}, {"box": (5, 5, 1, 9)}),
    ],
)
def test_what_is_kept(left_out: dict[str, Any], kept: dict[str, Any]) -> None:
    usual = {"tag": "push-button", "name": "Save"}
    assert not is_kept(node(**{**usual, **left_out}))
    assert is_kept(node(**{**usual, **kept}))


def test_the_long_table_leaves_out_what_is_disabled() -> None:
    assert "Undo" not in long_table([node("menu-item", "Undo", states=("visible", "showing"))])


def test_the_short_table_shows_the_panel_and_the_active_program_alone() -> None:
    others = [node("label", "behind", app="thunar"), node("push-button", "Files", app="xfce4-panel")]
    table = short_table([*FRAMES, *others, node("menu", "Edit")])
    assert [line.split("\t")[1] for line in table.split("\n")[1:]] == ["Files", "Edit"]
    assert short_table([node("menu", "Edit")]) == "\t".join(SHORT_HEADER)


def test_nodes_of_the_reader() -> None:
    raw = {"app": "a", "depth": 2, "role": "check menu item", "name": "Bar", "text": "\ufffcx"}
    (item,) = nodes([{**raw, "attributes": {}, "box": [1, 2, 3, 4], "states": ["visible"]}])
    assert (item.tag, item.text, item.box, item.centre) == ("check-menu-item", "x", (1, 2, 3, 4), (2, 4))
    (unknown,) = nodes([{**raw, "role": "", "attributes": {}, "box": [1, 2, 3, 4], "states": []}])
    assert unknown.tag == "unknown" and not unknown.shown


def test_find_by_role_and_label() -> None:
    hidden = node("menu", "Edit", states=("visible",))
    tree = [hidden, node("menu", "Edit", box=(1, 1, 2, 2)), node("menu", "Edit  "), node("text", "", "0")]
    assert find(tree, "menu", "Edit").box == (1, 1, 2, 2)
    assert find(tree, "menu", "Edit", 2) is tree[2]
    assert find(tree, "text", "0") is find(tree, "text", "") is tree[3]
    with pytest.raises(LookupError, match=r"'Save' is not on the screen; there: \['Edit'\]"):
        find(tree, "menu", "Save")
    with pytest.raises(LookupError):
        find(tree, "menu", "Edit", 3)


# Actions.


@pytest.mark.parametrize("case", ACTIONS["understood"], ids=lambda case: case["code"])
def test_steps_of_an_action(case: dict[str, Any]) -> None:
    assert steps(case["code"]) == [shlex.split(step) for step in case["steps"]]


@pytest.mark.parametrize("case", ACTIONS["refused"], ids=lambda case: case["code"])
def test_what_is_no_action_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ActionError, match=re.escape(case["message"])):
        steps(case["code"])


def test_places_become_coordinates() -> None:
    asked = []

    def locate(tag: str, label: str, number: int) -> tuple[int, int]:
        asked.append((tag, label, number))
        return 3, 4

    text = with_places("Agent.click([<<menu|Edit>>]); Agent.click([<<push-button|Save As...|2>>])", locate)
    assert text == "Agent.click([3, 4]); Agent.click([3, 4])"
    assert asked == [("menu", "Edit", 1), ("push-button", "Save As...", 2)]
    assert with_places("pyautogui.click(<<text|>>)", locate) == "pyautogui.click(3, 4)"


# Settings and system text.


def test_files_of_the_home(tmp_path: Path) -> None:
    files: dict[str, dict[str, Any]] = {
        "a/": {"read_only": True},
        "a/note.txt": {"text": "hi\n"},
        "b.txt": {"text": "", "read_only": True},
    }
    desktop_settings.write_files(tmp_path, files)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("a", "b.txt")}
    (tmp_path / "a").chmod(0o755)
    assert modes == {"a": 0o555, "b.txt": 0o444}
    assert (tmp_path / "a/note.txt").read_text() == "hi\n"
    assert (tmp_path / "a/note.txt").stat().st_mtime == desktop_settings.FIXED_TIME


def test_the_environment_is_closed(tmp_path: Path) -> None:
    """Nothing of the caller's environment reaches the programs, and all folders are private ones."""
    given = desktop_settings.environment(Path("/home/ada"), tmp_path)
    folders = [
        value for key, value in given.items() if key.startswith("XDG_") and key != "XDG_CURRENT_DESKTOP"
    ]
    assert len(folders) == 7 and all(value.startswith(str(tmp_path)) for value in folders)
    assert given["HOME"] == "/home/ada" and "NO_AT_BRIDGE" not in given and "DISPLAY" not in given


@pytest.mark.parametrize("script", common.load_scripts("os"), ids=lambda script: script["name"])
def test_system_text_names_what_is_there(script: dict[str, Any]) -> None:
    text = desktop.system_text(script)
    assert f"/home/{script['user']}" in text and "$" not in text
    for name, file in script["files"].items():
        assert f"- ~/{name}" in text
        if "text" in file:
            assert (file["text"].rstrip() in text) == file.get("known", True)


# The committed rows.


def rows() -> list[dict[str, Any]]:
    text = (common.MINI / "os_test.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.rstrip("\n").split("\n")]


def observations(row: dict[str, Any]) -> list[str]:
    """What the agent saw before each of the row's turns, and after the last."""
    state = row["prompt"][0].split("**Current State:**\n")[1].split("\n\n**Action:**")[0]
    return [state, *(response.removeprefix(MARKER) for response in row["response"])]


def actions(row: dict[str, Any]) -> list[str]:
    prompts = [*row["prompt"][:-1], row["current_prompt"]]
    return [prompt.split("**Action:**\n```\n")[1].removesuffix("\n```") for prompt in prompts]


def cells(table: str) -> list[list[str]]:
    """The lines of a table of either shape, split into columns; the first holds the headings."""
    if table.startswith("\t".join(LONG_HEADER)):
        return list(csv.reader(io.StringIO(table), delimiter="\t"))
    return [line.split("\t") for line in table.split("\n")]


LONGEST = list({row["id"]: row for row in rows()}.values())


@pytest.mark.parametrize("row", LONGEST, ids=lambda row: str(row["id"]))
def test_tables_have_the_promised_columns(row: dict[str, Any]) -> None:
    headers = set()
    for table in observations(row):
        first, *lines = cells(table)
        headers.add(tuple(first))
        assert lines and all(len(line) == len(first) for line in lines)
        pairs = [re.fullmatch(r"\((\d+), (\d+)\)", cell) for line in lines for cell in line[-2:]]
        assert all(pair and int(pair[1]) <= 1920 and int(pair[2]) <= 1080 for pair in pairs)
    (header,) = headers
    assert header == (LONG_HEADER if "one line a widget: tag, name" in row["system_str"] else SHORT_HEADER)


@pytest.mark.parametrize("row", LONGEST, ids=lambda row: str(row["id"]))
def test_actions_can_be_carried_out_and_use_one_style(row: dict[str, Any]) -> None:
    texts = actions(row)
    assert all(steps(text) for text in texts)
    styles = {call for text in texts for call in re.findall(r"\b(pyautogui|Agent)\.", text)}
    assert len(styles) == 1
    assert styles.pop() in row["system_str"]


def test_both_shapes_and_both_styles_are_there() -> None:
    kinds = {(len(cells(observations(row)[0])[0]), actions(row)[0].startswith("Agent.")) for row in LONGEST}
    assert kinds == {(7, False), (4, False), (4, True)}


def test_the_screen_sometimes_stays_as_it_was_and_mostly_does_not() -> None:
    changes = [
        before != after
        for row in LONGEST
        for before, after in zip(observations(row), observations(row)[1:], strict=False)
    ]
    assert 4 <= changes.count(False) < len(changes) / 4


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_recording_again_gives_the_same(tmp_path: Path) -> None:
    setup = subprocess.run([ROOT / "tools/record/setup/os.sh"], capture_output=True, text=True, timeout=600)
    if setup.returncode == 3:
        pytest.skip(setup.stderr.strip())
    assert setup.returncode == 0, setup.stderr
    for command in (
        ("tools.record.desktop", "--output", str(tmp_path)),
        ("tools.record.compare", str(common.MINI), str(tmp_path), "--domain", "os"),
    ):
        done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
