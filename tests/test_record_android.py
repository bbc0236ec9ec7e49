"""The android rows: the three formats, actions that agree with the screens, recording again.

In: `tools/record/android.py, tools/record/phone`, the scripts and `agentworldbench/data/mini/android_test.jsonl`. The
committed rows are read back: every number that an action names must stand on the screen before it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.prompts import previous_observation
from agentworldbench.task import load_tasks
from tests.helpers.android_agent import APPS, Agent
from tools.record import common, compare
from tools.record.android import DOMAIN, find, perform, record, resolve
from tools.record.phone.formats import FORMATS, Step

SCRIPTS = {script["name"]: script for script in common.load_scripts(DOMAIN)}
LIST_LINE = re.compile(
    r'\[ {0,2}(\d{1,3})\] \| (?:android|androidx)\.[\w.]+( \| \w+="[^\n]*")? '
    r"\| bounds=\[(\d+),(\d+)\]\[(\d+),(\d+)\]( \| [a-z_ ]+)?"
)


# The formats.


ACTIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "click": ("list", {"tap": "Glaze"}, '{"action_type": "click", "index": 7}'),
    "click at": ("list", {"tap": [5, 6]}, '{"action_type": "click", "x": 5, "y": 6}'),
    "scroll": ("list", {"scroll": "down"}, '{"action_type": "scroll", "direction": "down"}'),
    "finish": ("list", {"done": True}, '{"action_type": "status", "goal_status": "complete"}'),
    "app": ("list", {"open": "Alarms"}, '{"action_type": "open_app", "app_name": "Alarms"}'),
    "system button": (
        "state",
        {"press": "back"},
        '<invoke name="phone">\n<parameter name="action">system_button</parameter>\n'
        '<parameter name="button">back</parameter>\n</invoke>',
    ),
    "long press": (
        "state",
        {"hold": "Glaze"},
        '<invoke name="phone">\n<parameter name="action">long_press</parameter>\n'
        '<parameter name="index">13</parameter>\n</invoke>',
    ),
    "row": (
        "tree",
        {"tap": {"name": "note_row", "nth": 1}},
        "touch <button id=10 bound_box=0,464,1080,653>Glaze<br>ash</button>",
    ),
    "plain text": ("tree", {"tap": "Notes"}, "touch <p id=2 bound_box=0,128,954,275>Notes</p>"),
    "stop": ("tree", {"kill": True}, "kill_app"),
    "key": ("tree", {"press": "enter"}, "key ENTER"),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_name_what_stands_on_the_screen(name: str) -> None:
    form, line, text = ACTIONS[name]
    agent = Agent("Notes", form)
    assert agent.form.action(resolve(line, agent.screen)) == text


def test_the_script_must_name_exactly_one_element() -> None:
    screen = Agent("Notes").screen
    for name in ("note_row", "Missing"):
        with pytest.raises(LookupError, match=name):
            find(name, screen)


LINES = {
    "list": '[  6] | android.widget.FrameLayout | res="org.example.notes:id/note_row" '
    "| bounds=[0,464][1080,653] | clickable",
    "state": '13. TextView: "org.example.notes:id/note_title", "Glaze" - (42,500,1038,558)',
    "tree": '        - TextView id="org.example.notes:id/note_preview" text="ash" bounds=42,558,1038,616',
}


@pytest.mark.parametrize("form", LINES)
def test_lines_of_a_screen(form: str) -> None:
    assert LINES[form] in Agent("Notes", form).screen.text.split("\n")


def test_the_same_screen_is_written_in_the_same_way() -> None:
    agent = Agent("Notes", "tree")
    first = agent.screen.text
    assert agent.do({"tap": "Glaze"}) != first
    assert agent.do({"press": "back"}) == first


steps = st.one_of(
    st.tuples(st.just("tap"), st.integers(0, 1079), st.integers(0, 2399)),
    st.tuples(st.just("hold"), st.integers(0, 1079), st.integers(0, 2399)),
    st.tuples(st.sampled_from(["back", "home", "enter"])),
    st.tuples(st.just("type"), st.sampled_from(["7", "a", "\n", "12:30"])),
    st.tuples(st.just("open"), st.sampled_from(sorted(APPS))),
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(APPS)), st.lists(steps, max_size=12))
def test_any_walk_leads_to_a_screen_that_can_be_written(front: str, walk: list[tuple[Any, ...]]) -> None:
    phone = Agent(front).phone
    for kind, *values in walk:
        step = Step(kind, text=str(values[0]) if kind in {"type", "open"} else "")
        if kind in {"tap", "hold"}:
            step.point = (values[0], values[1])
        phone.act(lambda step=step: perform(step, phone), 11)  # type: ignore[misc]
        lines = [LIST_LINE.fullmatch(line) for line in FORMATS["list"].screen(phone).text.split("\n")]
        found = [[int(part) for part in line.group(1, 3, 4, 5, 6)] for line in lines if line]
        assert len(found) == len(lines)
        assert [number for number, *_ in found] == list(range(len(found)))
        assert all(
            0 <= left < right <= 1080 and 0 <= top < bottom <= 2400 for _, left, top, right, bottom in found
        )
        for form in ("state", "tree"):
            screen = FORMATS[form].screen(phone)
            assert len(screen.text.split("\n")) == len(screen.entries) + 6


# The committed rows.


def rows() -> list[dict[str, Any]]:
    text = (common.MINI / "android_test.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text[:-1].split("\n")]


def turns() -> list[tuple[str, str]]:
    """(screen before, action) of every turn of the longest row of each trajectory."""
    found = []
    for row in rows():
        if row["turn_idx"] != row["total_turns"]:
            continue
        prompts = [*row["prompt"][:-1], row["current_prompt"]]
        state = prompts[0].split("State:**\n", 1)[1].split("\n\n**Action:**")[0]
        actions = [prompt.split("```\n")[1].removesuffix("\n") for prompt in prompts]
        found += list(zip([state, *row["response"][:-1]], actions, strict=True))
    return found


def test_numbers_in_actions_stand_on_the_screen_before() -> None:
    seen = {"list": 0, "state": 0, "tree": 0}
    for screen, action in turns():
        if match := re.search(r'"index": (\d+)', action):
            seen["list"] += 1
            assert re.search(rf"(?m)^\[ *{match[1]}\] \| ", screen), action
        elif match := re.search(r'name="index">(\d+)<', action):
            seen["state"] += 1
            assert re.search(rf"(?m)^{match[1]}\. \w+: ", screen), action
        elif match := re.search(r" id=(\d+) bound_box=([\d,]+)>", action):
            seen["tree"] += 1
            lines = screen.split("Accessibility Tree:\n")[1].split("\n")
            assert lines[int(match[1])].endswith(f"bounds={match[2]}"), action
    assert min(seen.values()) >= 10


def test_every_format_has_its_heading_and_its_state_is_read_by_the_harness() -> None:
    tasks = load_tasks([DOMAIN])
    dataset = open_dataset({DOMAIN: common.MINI / "android_test.jsonl"}, tasks)
    shown: dict[str, int] = {}
    for sample in map(dataset.load, dataset.refs):
        if sample.ref.turn_idx == 1:
            before = previous_observation(sample, tasks[DOMAIN])
            assert before
            kind = before.partition(" ")[0].partition("\n")[0]
            shown[kind] = shown.get(kind, 0) + 1
            assert "Task Instruction" not in before and "Action" not in before
    assert shown == {"[": 2, "•": 4}


def test_provenance_says_that_it_is_simulated() -> None:
    document = json.loads((common.MINI / "provenance.json").read_text(encoding="utf-8"))
    entry = document["domains"][DOMAIN]
    assert entry["kind"] == "simulated" and "no Android device" in entry["how"]
    assert entry["trajectories"] == sorted(SCRIPTS)


def test_recording_again_gives_the_same(tmp_path: Path) -> None:
    path = common.write_rows(tmp_path, DOMAIN, [record(script) for script in SCRIPTS.values()])
    assert compare.difference(common.MINI / path.name, path) == []
    assert path.read_bytes() == (common.MINI / path.name).read_bytes()
