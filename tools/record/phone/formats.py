"""The three ways in which the android rows write a screen and an action.

In: a `Phone` of `phone.py`. Out: the text of its screen (`Screen.text`), the numbered entries of that
text, and the text of a `Step` that touches one of them. `list` writes one line per element and JSON actions,
`state` a short phone state with a numbered list and XML actions, `tree` an indented tree and DroidBot-like
commands. Numbers belong to one screen: they are counted anew on the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from tools.record.phone.phone import Phone
from tools.record.phone.view import HEIGHT, WIDTH, View, centre
from tools.record.phone.windows import KEYBOARD, SYSTEM, system_views, toast_view

STATE_HEADING = "**Current Phone State:**"
LIST_HEADING = "**Current State:**"
SCHEMA = "Clickable UI elements on the screen, as 'index. className: resourceId, text - bounds(x1,y1,x2,y2)':"
REACTS = {"clickable", "scrollable", "long_clickable", "checkable"}


@dataclass(frozen=True)
class Entry:
    """A view as it stands in the text of a screen: its number and the package that owns its id."""

    view: View
    number: int
    package: str


@dataclass(frozen=True)
class Screen:
    """A screen as text and the entries that an action can name."""

    text: str
    entries: list[Entry]


@dataclass
class Step:
    """One action of a script, its target found on the last screen (`android.py` fills it)."""

    kind: str
    target: Entry | None = None
    point: tuple[int, int] | None = None
    text: str = ""
    clear: bool = False
    notes: list[str] = field(default_factory=list)


def full_id(view: View, package: str) -> str:
    """The resource id with its package, or nothing."""
    return view.res if ":" in view.res or not view.res else f"{package}:id/{view.res}"


def one_line(text: str) -> str:
    """Text on one line: a line break is written as a backslash and n."""
    return text.replace("\n", "\\n")


# One line per element, JSON actions.


def list_screen(phone: Phone) -> Screen:
    """Leaves and all that reacts to touch, the status bar at the end."""
    found: list[tuple[View, str]] = []
    for window in phone.windows():
        found += [
            (view, window.package)
            for view, _ in window.root.walk()
            if not view.children or view.desc or view.flags & REACTS
        ]
    toast = toast_view(phone)
    found += [(toast, "android")] if toast else []
    found += [(view, SYSTEM) for view in system_views(phone)]
    entries = [Entry(view, number, package) for number, (view, package) in enumerate(found)]
    return Screen("\n".join(map(_list_line, entries)), entries)


def _list_line(entry: Entry) -> str:
    view = entry.view
    names = [
        ("text", view.text),
        ("desc", view.desc),
        ("hint", view.hint),
        ("res", full_id(view, entry.package)),
    ]
    shown = " ".join(f'{name}="{one_line(value)}"' for name, value in names if value)
    left, top, right, bottom = view.bounds
    flags = " ".join(sorted(view.flags - {"checkable"}))
    parts = [view.full_class, shown, f"bounds=[{left},{top}][{right},{bottom}]", flags]
    return f"[{entry.number:3d}] | " + " | ".join(part for part in parts if part)


def list_action(step: Step) -> str:
    """A JSON object as AndroidWorld agents write it."""
    fixed = {
        "back": {"action_type": "navigate_back"},
        "home": {"action_type": "navigate_home"},
        "enter": {"action_type": "keyboard_enter"},
        "wait": {"action_type": "wait"},
        "open": {"action_type": "open_app", "app_name": step.text},
        "done": {"action_type": "status", "goal_status": "complete"},
    }
    names = {"tap": "click", "hold": "long_press", "type": "input_text"}
    action: dict[str, object] = dict(fixed.get(step.kind, {"action_type": names.get(step.kind, step.kind)}))
    if step.kind == "type":
        action["text"] = step.text
    if step.kind == "scroll":
        action["direction"] = step.text
    if step.target:
        action["index"] = step.target.number
    elif step.point:
        action["x"], action["y"] = step.point
    if step.clear:
        action["clear_text"] = True
    return json.dumps(action, ensure_ascii=False)


# A phone state and a numbered list, XML actions.


def state_screen(phone: Phone) -> Screen:
    """App, keyboard, focus, then what stands on the app's or the dialog's window, numbered from 1."""
    found: list[tuple[View, str]] = []
    focused = ""
    for window in phone.windows():
        if window.package == KEYBOARD:
            continue
        for view, _ in window.root.walk():
            if "focused" in view.flags:
                focused = one_line(view.text)
            if view.children or view.text or view.desc or view.flags & REACTS:
                found.append((view, window.package))
    toast = toast_view(phone)
    found += [(toast, "android")] if toast else []
    entries = [Entry(view, number, package) for number, (view, package) in enumerate(found, 1)]
    name, package = phone.shown
    head = [
        STATE_HEADING,
        f"• **App:** {name} ({package})",
        f"• **Keyboard:** {'Shown' if phone.keyboard else 'Hidden'}",
        f"• **Focused Element:** '{focused}'",
        "",
        SCHEMA,
    ]
    return Screen("\n".join([*head, *map(_state_line, entries)]), entries)


def _state_line(entry: Entry) -> str:
    view = entry.view
    names = [full_id(view, entry.package) or view.full_class, one_line(view.text or view.desc)]
    quoted = ", ".join(f'"{name}"' for name in names if name)
    return f"{entry.number}. {view.cls}: {quoted} - ({','.join(map(str, view.bounds))})"


def state_action(step: Step) -> str:
    """A call of the tool `phone`; what the agent wants to remember stands before it."""
    values: list[tuple[str, object]] = []
    if step.kind in {"back", "home", "enter"}:
        values = [("action", "system_button"), ("button", step.kind)]
    elif step.kind in {"tap", "hold"}:
        values = [("action", {"tap": "click", "hold": "long_press"}[step.kind])]
        values += [("index", step.target.number)] if step.target else [("coordinate", list(step.point or ()))]
    elif step.kind == "type":
        values = [("action", "type"), ("text", step.text), *([("clear", "true")] if step.clear else [])]
    elif step.kind == "scroll":
        assert step.target and step.point
        x, y = centre(step.target.view.bounds)
        values = [("action", "swipe"), ("coordinate", [x, y]), ("coordinate2", list(step.point))]
    elif step.kind == "open":
        values = [("action", "open_app"), ("text", step.text)]
    else:
        values = [("action", {"wait": "wait", "done": "finish"}[step.kind])]
    calls = [_invoke("remember", [("note", note)]) for note in step.notes]
    return "\n".join([*calls, _invoke("phone", values)])


def _invoke(tool: str, values: list[tuple[str, object]]) -> str:
    lines = [f'<parameter name="{name}">{value}</parameter>' for name, value in values]
    return "\n".join([f'<invoke name="{tool}">', *lines, "</invoke>"])


# An indented tree, commands as DroidBot writes them.


def tree_screen(phone: Phone) -> Screen:
    """Package, activity and size, then all views, children indented."""
    window = phone.windows()[0]
    walked = list(window.root.walk())
    toast = toast_view(phone)
    walked += [(toast, 1)] if toast else []
    entries = [Entry(view, number, window.package) for number, (view, _) in enumerate(walked)]
    lines = [_tree_line(entry, depth) for entry, (_, depth) in zip(entries, walked, strict=True)]
    head = [
        STATE_HEADING,
        f"• **App:** {phone.shown[1]}",
        f"• **Activity:** {phone.front.activity}",
        f"• **Screen:** {WIDTH}x{HEIGHT}",
        "",
        "Accessibility Tree:",
    ]
    return Screen("\n".join([*head, *lines]), entries)


def _tree_line(entry: Entry, depth: int) -> str:
    view = entry.view
    names = [("id", full_id(view, entry.package)), ("text", view.text), ("desc", view.desc)]
    parts = [f'{name}="{one_line(value)}"' for name, value in names if value]
    flags = view.flags | ({"focusable"} if view.flags & {"clickable", "editable"} else set())
    parts += [f"flags={','.join(sorted(flags))}"] if flags else []
    return "  " * depth + " ".join([f"- {view.cls}", *parts, f"bounds={','.join(map(str, view.bounds))}"])


def tree_action(step: Step) -> str:
    """`touch`, `long_touch`, `set_text`, `select`, `unselect`, `scroll`, and what concerns the whole app."""
    if not step.target:
        whole = {"kill": "kill_app", "start": f"intent am start {step.text}"}
        return whole.get(step.kind, f"key {step.kind.upper()}")
    view = step.target.view
    names = {"tap": "touch", "hold": "long_touch", "type": "set_text", "scroll": f"scroll {step.text}"}
    command = names[step.kind]
    if step.kind == "tap" and "checkable" in view.flags:
        command = "unselect" if "checked" in view.flags else "select"
    element = _tag(step.target)
    return f"{command} {element} {step.text}" if step.kind == "type" else f"{command} {element}"


def _tag(entry: Entry) -> str:
    """The element with its number, its place and the texts that stand in it."""
    view = entry.view
    kinds = [
        ("editable", "input"),
        ("checkable", "checkbox"),
        ("scrollable", "scrollbar"),
        ("clickable", "button"),
    ]
    tag = next((name for flag, name in kinds if flag in view.flags), "p")
    texts = [] if tag == "scrollbar" else [one_line(one.text or one.desc) for one, _ in view.walk()]
    shown = "<br>".join(text for text in texts if text)
    return f"<{tag} id={entry.number} bound_box={','.join(map(str, view.bounds))}>{shown}</{tag}>"


@dataclass(frozen=True)
class Format:
    """How one source writes: the heading above the screen of turn 1, screens, actions."""

    heading: str
    screen: Callable[[Phone], Screen]
    action: Callable[[Step], str]

    def state(self, screen: Screen) -> str:
        """The screen as it stands below the heading of turn 1."""
        return screen.text.removeprefix(f"{self.heading}\n")


FORMATS = {
    "list": Format(LIST_HEADING, list_screen, list_action),
    "state": Format(STATE_HEADING, state_screen, state_action),
    "tree": Format(STATE_HEADING, tree_screen, tree_action),
}
