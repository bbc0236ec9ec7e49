"""Record the `android` trajectories: a scripted agent on a simulated phone. No device is involved.

In: `trajectories/android/*.yaml`, each with the format of the screens, the state of the phone, the stored
items of its apps and the actions of every turn. Out: `android_test.jsonl` and the android entry of
`provenance.json`. A script names an element by id, text or description; it is looked up on the last
screen and its number or place is written into the action, so a name that is not there stops the recording.
Run from the repository root: `python -m tools.record.android [--output DIR]`. Pure Python.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from tools.record import common
from tools.record.phone.agenda import Agenda
from tools.record.phone.alarms import Alarms
from tools.record.phone.app import App
from tools.record.phone.contacts import Contacts
from tools.record.phone.formats import FORMATS, Entry, Screen, Step, full_id
from tools.record.phone.notes import Notes
from tools.record.phone.phone import SCROLL_STEP, Launcher, Phone
from tools.record.phone.settings import DEFAULTS, Settings, pages_text
from tools.record.phone.shelf import Shelf
from tools.record.phone.view import centre

DOMAIN = "android"
APPS: dict[str, Callable[..., App]] = {
    "Agenda": Agenda,
    "Alarms": Alarms,
    "Contacts": Contacts,
    "Notes": Notes,
    "Settings": Settings,
    "Shelf": Shelf,
}
PACES = (9, 14, 22, 11, 31, 17)
"""Seconds that actions take, in turn: the minute of the clock changes now and then."""


def record(script: dict[str, Any]) -> common.Trajectory:
    """Play one script on a fresh phone."""
    phone = make_phone(script)
    form = FORMATS[script["format"]]
    first = screen = form.screen(phone)
    turns = []
    for number, line in enumerate(script["turns"]):
        step = resolve(line, screen)
        action = form.action(step)
        phone.act(lambda step=step: perform(step, phone), PACES[number % len(PACES)])  # type: ignore[misc]
        screen = form.screen(phone)
        turns.append(common.Turn(action, screen.text))
    return common.Trajectory(
        script["name"], script["task"], system_text(script), tuple(turns), form.state(first), form.heading
    )


def make_phone(script: dict[str, Any]) -> Phone:
    """The phone of a script before its first action."""
    phone = Phone(script["now"], script["battery"], {**DEFAULTS})
    for name, stored in script["apps"].items():
        phone.apps[name] = APPS[name](phone, stored)
    phone.launcher = phone.front = Launcher(phone)
    if script.get("front"):
        phone.open(script["front"])
    return phone


def find(wanted: str | dict[str, Any], screen: Screen) -> Entry:
    """The one entry that a script means: by short or full id, else by text, else by description.

    Raises LookupError when there is none, or several and no `nth` (0-based) says which.
    """
    name = wanted if isinstance(wanted, str) else wanted["name"]
    tests: list[Callable[[Entry], bool]] = [
        lambda entry: name in {entry.view.res, full_id(entry.view, entry.package)},
        lambda entry: entry.view.text == name,
        lambda entry: entry.view.desc == name,
    ]
    for test in tests:
        found = [entry for entry in screen.entries if test(entry)]
        if len(found) == 1 or (found and isinstance(wanted, dict)):
            return found[0 if isinstance(wanted, str) else wanted["nth"]]
        if found:
            raise LookupError(f"{name!r} stands {len(found)} times on the screen:\n{screen.text}")
    raise LookupError(f"{name!r} is not on the screen:\n{screen.text}")


def resolve(line: dict[str, Any], screen: Screen) -> Step:
    """A turn of a script as a step on the screen that the agent saw."""
    notes = [line["note"]] if "note" in line else []
    if "press" in line:
        return Step(line["press"], notes=notes)
    kind = next(
        key
        for key in ("tap", "hold", "type", "scroll", "open", "kill", "start", "wait", "done")
        if key in line
    )
    value = line[kind]
    if kind in {"tap", "hold"}:
        if isinstance(value, list):
            return Step(kind, point=(value[0], value[1]), notes=notes)
        return Step(kind, find(value, screen), notes=notes)
    target = find(line["into"], screen) if "into" in line else None
    step = Step(kind, target, text=str(value), clear=line.get("clear", False), notes=notes)
    if kind == "scroll" and "into" in line and "to" in line:
        step.point = (line["to"][0], line["to"][1])
    return step


def perform(step: Step, phone: Phone) -> None:
    """What the finger or the key of a step does to the phone."""
    point = step.point if not step.target else centre(step.target.view.bounds)
    if step.kind in {"tap", "hold"}:
        assert point
        phone.tap(*point, long=step.kind == "hold")
    elif step.kind == "type":
        if point:
            phone.tap(*point)
        phone.write(step.text, step.clear)
    elif step.kind == "scroll":
        assert step.target and point
        distance = point[1] - step.point[1] if step.point else SCROLL_STEP
        phone.scroll(step.target.view, -distance if step.text == "up" and not step.point else distance)
    elif step.kind == "open":
        phone.open(step.text)
    elif step.kind == "kill":
        phone.kill(phone.front)
    elif step.kind == "start":
        phone.open(next(app.name for app in phone.apps.values() if step.text.startswith(f"{app.package}/")))
    elif step.kind in {"back", "home", "enter"}:
        {"back": phone.back, "home": phone.go_home, "enter": phone.enter}[step.kind]()


def system_text(script: dict[str, Any]) -> str:
    """What the world model is told: the phone, the format, the apps, what is stored in them."""
    now = script["now"]
    form = common.prompt_text(f"{DOMAIN}_{script['format']}")
    apps = script["apps"]
    pages = pages_text({**DEFAULTS, **apps.get("Settings", {})})
    guides = [common.prompt_text(f"{DOMAIN}_app_{name.lower()}", pages=pages) for name in apps]
    stored = [stored_text(name, items) for name, items in apps.items() if name != "Settings"]
    return common.prompt_text(
        DOMAIN,
        time=f"{now:%H:%M}",
        day=f"{now:%A}, {now.day} {now:%B %Y}",
        format=form,
        apps="\n\n".join(guides),
        stored="\n\n".join(stored),
    )


def stored_text(name: str, items: Any) -> str:
    """The stored items of an app, one a line, in the order in which the app keeps them."""
    groups = items if isinstance(items, dict) else {"": items}
    lines = []
    for group, entries in groups.items():
        lines.append(f"{name}, {group}:" if group else f"{name}:")
        for entry in entries:
            values = [f"{key} {_shown(value)}" for key, value in entry.items()]
            lines.append(f"- {'; '.join(values)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(value) or "none"
    return '"' + value.replace("\n", "\\n") + '"' if isinstance(value, str) else str(value)


def provenance() -> dict[str, Any]:
    """What was used. Nothing here was seen on a device."""
    return {
        "kind": "simulated",
        "how": "scripted actions on a small simulated phone with apps of our own (a UI state machine in "
        "Python); no Android device or emulator was involved; tools/record/android.py",
        "programs": {"python": platform.python_version()},
        "mapped": "nothing",
        "volatile": "nothing when recorded again: clock and battery follow from the script",
        "texts": "apps, stored items, tasks and actions: our own; the three screen formats follow those "
        "of the benchmark",
    }


if __name__ == "__main__":
    common.main(DOMAIN, record, provenance)
