"""The windows of the simulated phone beside the apps' own: dialogs, keyboard, status bar, toast, snackbar.

In: the phone or the app that they belong to. Out: laid out view trees, or views with their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.record.phone.app import App, Dialog
from tools.record.phone.view import (
    BAR,
    CHARACTER,
    HEIGHT,
    KEYBOARD_TOP,
    MARGIN,
    NAVIGATION_BAR,
    STATUS_BAR,
    WIDTH,
    Callback,
    Rect,
    View,
    across,
    button,
    column,
    label,
    paragraph,
    place,
    text_width,
    wanted_height,
)

if TYPE_CHECKING:
    from tools.record.phone.phone import Phone

SYSTEM = "com.android.systemui"
KEYBOARD = "org.example.keyboard"
DIALOG_LEFT, DIALOG_PAD = 53, 63


@dataclass(frozen=True)
class Window:
    """A view tree and the package that owns its resource ids."""

    package: str
    root: View


def keyboard_view(phone: Phone) -> View:
    """The keyboard: only its function keys are there to see."""
    keys = [("Shift", 162), ("Delete", 162), ("Symbols", 162), ("Space", 432), (phone.enter_label, 162)]
    names = ["shift", "delete", "symbols", "space", "enter"]
    row = [
        View("FrameLayout", desc=desc, res=f"key_{name}", width=size, height=168, flags={"clickable"})
        for (desc, size), name in zip(keys, names, strict=True)
    ]
    row[-1].tap = phone.enter
    top = View("FrameLayout", res="letters", height=672)
    root = column(top, across(*row, height=168), cls="FrameLayout", res="keyboard")
    place(root, (0, KEYBOARD_TOP, WIDTH, NAVIGATION_BAR), {})
    return root


def system_views(phone: Phone) -> list[View]:
    """The status bar and, when there is one, a toast."""
    clock = phone.time_text(phone.now.hour, phone.now.minute)
    right = 52 + CHARACTER * len(clock)
    views = [View("TextView", clock, desc=clock, res="clock", bounds=(52, 0, right, STATUS_BAR))]
    if phone.settings["do_not_disturb"]:
        views.append(View("ImageView", desc="Do not disturb is on.", res="dnd", bounds=(848, 40, 896, 88)))
    wifi = "Wifi three bars." if phone.settings["wifi"] else "Wifi off."
    views.append(View("FrameLayout", desc=wifi, res="wifi_combo", bounds=(908, 34, 956, 94)))
    battery = f"Battery {phone.battery} percent."
    views.append(View("LinearLayout", desc=battery, res="battery", bounds=(972, 0, 1028, STATUS_BAR)))
    return views


def toast_view(phone: Phone) -> View | None:
    """The toast: centred text above the bottom of the screen."""
    if not phone.toast:
        return None
    half = text_width(phone.toast) // 2
    bounds: Rect = (WIDTH // 2 - half, 2085, WIDTH // 2 + half, 2211)
    return View("TextView", phone.toast, res="android:id/message", bounds=bounds)


def dialog_view(app: App, dialog: Dialog) -> View:
    """A dialog as a window of its own, in the middle of the screen above the keyboard."""
    inside = WIDTH - 2 * DIALOG_LEFT - 2 * DIALOG_PAD

    def close_and(tap: Callback | None) -> Callback:
        def done() -> None:
            app.dialog = None
            if tap:
                tap()

        return done

    names = ("button1",) if len(dialog.buttons) == 1 else ("button2", "button1")
    buttons = [
        button(text, f"android:id/{name}", close_and(tap))
        for (text, tap), name in zip(dialog.buttons, names, strict=True)
    ]
    parts = [paragraph(dialog.title, "alertTitle", inside)]
    parts += [paragraph(dialog.message, "android:id/message", inside)] if dialog.message else []
    panel = View("LinearLayout", res="buttonPanel", children=buttons, flow="right", height=BAR)
    root = column(*parts, *dialog.body, panel, cls="FrameLayout", res="parentPanel", pad=(DIALOG_PAD, MARGIN))
    high = wanted_height(root)
    top = (HEIGHT - high) // 2
    place(root, (DIALOG_LEFT, top, WIDTH - DIALOG_LEFT, top + high), {})
    return root


def dock_snackbar(app: App, root: View) -> None:
    """Put the snackbar of an app on its screen and lift the round button above it."""
    if not app.snackbar:
        return
    bar = app.snackbar
    parts = [label(bar.text, "snackbar_text")]
    parts += [button(bar.action, "snackbar_action", bar.tap)] if bar.tap else []
    for view in root.children:
        if view.dock == "fab":
            view.lift = BAR
    root.children.append(across(*parts, cls="FrameLayout", height=126, dock="bottom"))
