"""Action code of desktop agents as mouse and keyboard steps: read with `ast`, never executed.

In: lines of `pyautogui.*` or `Agent.*` calls as an agent writes them, with `<<tag|label>>` or
`<<tag|label|n>>` where a script names a place on the screen. Out: the same text with the real
coordinates in it, and the argument lists for `xdotool` that do what it says. Understood besides
calls: `import` lines and `for _ in range(n):`. `time.sleep` and `Agent.wait` become the step `[REST]`:
wait until the screen rests, however many seconds they name. Anything else raises ActionError.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

PLACE = re.compile(r"<<([\w-]+)\|([^|>]*)(?:\|(\d+))?>>")
BUTTONS = {"left": "1", "middle": "2", "right": "3"}
KEYS = {
    "enter": "Return", "return": "Return", "esc": "Escape", "escape": "Escape", "tab": "Tab",
    "backspace": "BackSpace", "delete": "Delete", "insert": "Insert", "space": "space", "home": "Home",
    "end": "End", "pageup": "Prior", "pagedown": "Next", "up": "Up", "down": "Down", "left": "Left",
    "right": "Right", "ctrl": "ctrl", "shift": "shift", "alt": "alt", "win": "super",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
    "+": "plus", "-": "minus", "*": "asterisk", "/": "slash", "=": "equal", ".": "period", ",": "comma",
}  # fmt: skip
KEY_DELAY = "60"  # milliseconds; a calculator key still flashes when it is pressed again sooner
CLICK_DELAY = "80"
REST = "rest"  # not an xdotool command

Steps = list[list[str]]


class ActionError(ValueError):
    """The action text is not one that the recorder can carry out."""


def with_places(text: str, locate: Callable[[str, str, int], tuple[int, int]]) -> str:
    """`text` with every named place replaced by the `x, y` that `locate(tag, label, n)` gives."""

    def coordinates(match: re.Match[str]) -> str:
        x, y = locate(match[1], match[2], int(match[3] or 1))
        return f"{x}, {y}"

    return PLACE.sub(coordinates, text)


def steps(text: str) -> Steps:
    """The xdotool argument lists of an action, in order."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise ActionError(f"not Python: {error}") from error
    return [step for statement in module.body for step in _statement(statement)]


def _statement(statement: ast.stmt) -> Steps:
    if isinstance(statement, ast.Import):
        return []
    if isinstance(statement, ast.For):
        return _rounds(statement.iter) * [step for inner in statement.body for step in _statement(inner)]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _call(statement.value)
    raise ActionError(f"not a call: {ast.unparse(statement)}")


def _rounds(over: ast.expr) -> int:
    """n of `range(n)`."""
    match over:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count))]):
            return count
    raise ActionError(f"loops run over range(n) only: {ast.unparse(over)}")


def _call(call: ast.Call) -> Steps:
    name = ast.unparse(call.func)
    if name not in CALLS:
        raise ActionError(f"unknown call: {name}")
    try:
        values = [ast.literal_eval(value) for value in call.args]
        named = {item.arg or "**": ast.literal_eval(item.value) for item in call.keywords}
        return CALLS[name](*values, **named)
    except (TypeError, ValueError, KeyError) as error:
        raise ActionError(f"{ast.unparse(call)}: {error}") from error


def _click(
    x: int | None = None, y: int | None = None, clicks: int = 1, interval: float = 0, button: str = "left"
) -> Steps:
    times = ["--repeat", str(clicks), "--delay", CLICK_DELAY] if clicks > 1 else []
    return _at(x, y, "click", *times, BUTTONS[button])


def _double_click(x: int | None = None, y: int | None = None) -> Steps:
    return _click(x, y, clicks=2)


def _right_click(x: int | None = None, y: int | None = None) -> Steps:
    return _click(x, y, button="right")


def _move(x: int | None = None, y: int | None = None, duration: float = 0) -> Steps:
    return [] if x is None or y is None else [["mousemove", str(x), str(y)]]


def _at(x: int | None, y: int | None, *command: str) -> Steps:
    """Move and act in one step: a menu opens on its own under a pointer that rests."""
    return [[word for step in _move(x, y) for word in step] + list(command)]


def _drag(x: int, y: int, duration: float = 0, button: str = "left") -> Steps:
    """Press where the pointer is, move in two steps (one would be no drag to GTK), release."""
    near = ["mousemove_relative", "--", "12", "12"]
    return [["mousedown", BUTTONS[button]], near, *_move(x, y), ["mouseup", BUTTONS[button]]]


def _scroll(clicks: int, x: int | None = None, y: int | None = None) -> Steps:
    if clicks == 0:
        return []
    wheel = "4" if clicks > 0 else "5"
    return _at(x, y, "click", "--repeat", str(abs(clicks)), "--delay", KEY_DELAY, wheel)


def _write(message: str, interval: float = 0) -> Steps:
    if not message.isascii():
        raise ValueError("only ASCII can be typed")
    typed: Steps = []
    for number, line in enumerate(message.split("\n")):
        typed += [["key", "Return"]] if number else []
        typed += [["type", "--delay", KEY_DELAY, "--", line]] if line else []
    return typed


def _press(keys: str | list[str], presses: int = 1, interval: float = 0) -> Steps:
    names = [keys] if isinstance(keys, str) else keys
    return [["key", _key(name)] for _ in range(presses) for name in names]


def _hotkey(*keys: str) -> Steps:
    return [["key", "+".join(_key(name) for name in keys)]]


def _key(name: str) -> str:
    """The X name of a key: letters and digits are their own."""
    return name if len(name) == 1 and name.isalnum() else KEYS[name.lower()]


def _wait(seconds: float = 1) -> Steps:
    return [[REST]]


def _agent_click(coordinates: list[int], num_clicks: int = 1, button_type: str = "left") -> Steps:
    x, y = coordinates
    return _click(x, y, clicks=num_clicks, button=button_type)


def _agent_type(
    coordinates: list[int] | None = None, text: str = "", overwrite: bool = False, enter: bool = False
) -> Steps:
    return [
        *(_agent_click(coordinates) if coordinates else []),
        *(_hotkey("ctrl", "a") + _press("backspace") if overwrite else []),
        *_write(text),
        *(_press("enter") if enter else []),
    ]


def _agent_hotkey(keys: list[str]) -> Steps:
    return _hotkey(*keys)


def _agent_scroll(coordinates: list[int], direction: str) -> Steps:
    return _scroll({"up": 5, "down": -5}[direction], *coordinates)


CALLS: dict[str, Callable[..., Any]] = {
    "pyautogui.click": _click,
    "pyautogui.doubleClick": _double_click,
    "pyautogui.rightClick": _right_click,
    "pyautogui.moveTo": _move,
    "pyautogui.dragTo": _drag,
    "pyautogui.scroll": _scroll,
    "pyautogui.write": _write,
    "pyautogui.typewrite": _write,
    "pyautogui.press": _press,
    "pyautogui.hotkey": _hotkey,
    "time.sleep": _wait,
    "Agent.click": _agent_click,
    "Agent.type": _agent_type,
    "Agent.hotkey": _agent_hotkey,
    "Agent.scroll": _agent_scroll,
    "Agent.wait": _wait,
}
