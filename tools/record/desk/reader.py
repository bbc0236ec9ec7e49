"""Read the accessibility tree of the running desktop until it rests, and print it as JSON.

A program of its own, run with Debian's Python (which has the GObject bindings) inside the session
whose D-Bus address and display are in the environment. In: how many equal readings in a row are
asked for, the seconds between two, the deadline in seconds. Out: a JSON list on stdout, one object
a node, children after their parent; what is not showing is listed without its children. Exit code 1
when the tree did not come to rest in time.
"""

import json
import sys
import time
import warnings

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

warnings.simplefilter("ignore", DeprecationWarning)

STATES = (
    "showing", "visible", "enabled", "editable", "expandable", "checkable", "active", "checked", "selected"
)  # fmt: skip
KINDS = {name: getattr(Atspi.StateType, name.upper()) for name in STATES}
NOWHERE = [-1, -1, -1, -1]


def describe(accessible, app, depth):
    """One node as plain data."""
    held = accessible.get_state_set()
    box = NOWHERE
    if accessible.get_component_iface():
        extents = Atspi.Component.get_extents(accessible, Atspi.CoordType.SCREEN)
        box = [extents.x, extents.y, extents.width, extents.height]
    text = ""
    if accessible.get_text_iface():
        text = Atspi.Text.get_text(accessible, 0, -1) or ""
    return {
        "app": app,
        "depth": depth,
        "role": accessible.get_role_name() or "",
        "name": accessible.get_name() or "",
        "text": text,
        "attributes": dict(accessible.get_attributes() or {}),
        "box": box,
        "states": [name for name, kind in KINDS.items() if held.contains(kind)],
    }


def walk(accessible, app, depth, found):
    """Append the node and all below it to `found`."""
    node = describe(accessible, app, depth)
    found.append(node)
    if depth > 0 and "showing" not in node["states"]:
        return
    for index in range(accessible.get_child_count()):
        child = accessible.get_child_at_index(index)
        if child is not None:
            walk(child, app, depth + 1, found)


def read():
    """All nodes of all programs; None when something vanished while it was read."""
    found = []
    try:
        desktop = Atspi.get_desktop(0)
        desktop.clear_cache()
        programs = [desktop.get_child_at_index(index) for index in range(desktop.get_child_count())]
        for program in programs:
            if program is not None:
                program.clear_cache()
                walk(program, program.get_name() or "", 0, found)
    except GLib.Error:
        return None
    return found


def main(wanted, pause, seconds):
    """Print the tree once it was the same in `wanted` readings, one every `pause` seconds."""
    deadline = time.monotonic() + seconds
    before, equal = None, 0
    while time.monotonic() < deadline:
        now = read()
        equal = equal + 1 if now is not None and now == before else 1
        if now is not None and equal >= wanted:
            print(json.dumps(now))
            return 0
        before = now
        time.sleep(pause)
    print("the screen did not come to rest", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
