"""The simulated phone: apps in front or behind, touches and keys, a clock that moves with the actions.

In: apps (`app.App`) and touches, text and keys, as a recorder sends them. Out: windows, each a
package and a laid out view tree, that the printers of `formats.py` turn into text. Nothing here
takes the time of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from tools.record.phone.app import App, Dialog
from tools.record.phone.view import (
    KEYBOARD_TOP,
    MARGIN,
    NAVIGATION_BAR,
    ROW,
    STATUS_BAR,
    WIDTH,
    Callback,
    View,
    across,
    column,
    label,
    path_to,
    place,
)
from tools.record.phone.windows import KEYBOARD, Window, dialog_view, dock_snackbar, keyboard_view

PERMISSIONS = ("Permission controller", "org.example.permissions")
SCROLL_STEP = 1200


class Phone:
    """State of the whole phone and what the finger and the keys do to it."""

    def __init__(self, now: datetime, battery: int, settings: dict[str, str | bool]) -> None:
        self.now = now
        self.battery = battery
        self.settings = settings
        self.apps: dict[str, App] = {}
        self.launcher: App
        self.front: App
        self.focus = ""
        self.keyboard = False
        self.enter_label = "Done"
        self.toast = ""
        self.allowed: set[str] = set()

    def time_text(self, hour: int, minute: int) -> str:
        """A time of day in the format that the settings ask for."""
        if self.settings["24_hour"]:
            return f"{hour:02d}:{minute:02d}"
        return f"{(hour + 11) % 12 + 1}:{minute:02d} {'AM' if hour < 12 else 'PM'}"

    # What the user does. Each call is one action; `act` ages what vanishes by itself.

    def act(self, action: Callback, seconds: int) -> None:
        """Do one thing and let time pass; an old toast or snackbar is gone afterwards."""
        before = self.now
        self.now += timedelta(seconds=seconds)
        if before.minute // 6 != self.now.minute // 6:
            self.battery -= 1
        bars = [(app, app.snackbar) for app in self.apps.values()]
        self.toast = ""
        action()
        for app, bar in bars:
            if app.snackbar is bar:
                app.snackbar = None
        if self.front.dialog:
            self.keyboard = False

    def tap(self, x: int, y: int, long: bool = False) -> None:
        """Touch a point: the innermost view there, or its nearest parent, that reacts to it."""
        for window in reversed(self.windows()):
            path = path_to(window.root, x, y)
            if path:
                self._touch(path, long)
                return
        if self.front.dialog and not self.front.dialog.stays:
            self.front.dialog = None

    def _touch(self, path: list[View], long: bool) -> None:
        for view in reversed(path):
            react = view.hold if long else view.tap
            if "disabled" in view.flags:
                return
            if view.field:
                self.focus_on(view.field)
                return
            if react:
                react()
                return

    def write(self, text: str, clear: bool = False) -> None:
        """Type into the field that has the cursor; without one nothing happens."""
        if not self.focus or self.front.dialog:
            return
        old = "" if clear else self.front.fields.get(self.focus, "")
        self.front.fields[self.focus] = old + text
        self.keyboard = True
        self.front.changed(self.focus)

    def scroll(self, view: View, distance: int) -> None:
        """Move the content of a list up (positive) or down, as far as it goes."""
        self.front.scrolls[view.scroll] = max(0, min(view.offset + distance, view.hidden))

    def enter(self) -> None:
        """The Enter key of the keyboard."""
        if self.focus and self.keyboard:
            self.front.entered(self.focus)

    def back(self) -> None:
        """The back key: first the keyboard goes, then a dialog, then the screen."""
        if self.keyboard:
            self.keyboard = False
        elif self.front.dialog:
            if not self.front.dialog.stays:
                self.front.dialog = None
        else:
            self.front.back()

    def go_home(self) -> None:
        """The home key; the app stays as it is behind the home screen."""
        self.front = self.launcher
        self.focus_on("")

    def open(self, name: str) -> None:
        """Bring an app to the front, on the screen where it was left."""
        self.front = self.apps[name]
        self.focus_on("")

    def kill(self, app: App) -> None:
        """Stop an app: what it has stored stays, drafts and dialogs are lost."""
        app.restart()
        self.go_home()

    def focus_on(self, key: str) -> None:
        """Give a field the cursor and show the keyboard, or take both away."""
        self.focus = key
        self.keyboard = bool(key)

    def ask(self, app: App, permission: str, question: str, then: Callback) -> None:
        """Do `then` if the permission is given, else ask for it first; a refusal is a toast."""
        if permission in self.allowed:
            then()
            return

        def allow() -> None:
            self.allowed.add(permission)
            then()

        def refuse() -> None:
            self.toast = f"{app.name} needs the permission for this"

        choices: list[tuple[str, Callback | None]] = [("Allow", allow), ("Don't allow", refuse)]
        app.dialog = Dialog(question, buttons=choices, owner=PERMISSIONS, stays=True)

    # What is on the screen.

    @property
    def shown(self) -> tuple[str, str]:
        """Name and package of what is in front: an app or the owner of a dialog above it."""
        dialog = self.front.dialog
        return dialog.owner if dialog and dialog.owner else (self.front.name, self.front.package)

    def windows(self) -> list[Window]:
        """The windows that can be touched, lowest first: a dialog hides its app."""
        bottom = KEYBOARD_TOP if self.keyboard else NAVIGATION_BAR
        package = self.shown[1]
        if self.front.dialog:
            found = [Window(package, dialog_view(self.front, self.front.dialog))]
        else:
            root = self.front.build()
            dock_snackbar(self.front, root)
            place(root, (0, STATUS_BAR, WIDTH, bottom), self.front.scrolls)
            found = [Window(package, root)]
        if self.keyboard and not self.front.dialog:
            found.append(Window(KEYBOARD, keyboard_view(self)))
        return found


class Launcher(App):
    """The home screen: the date and one icon for each app."""

    name = "Home"
    package = "org.example.launcher"
    activities: ClassVar[Mapping[str, str]] = {"main": "HomeActivity"}

    def back(self) -> None:
        """The back key does nothing here."""

    def main_views(self) -> list[View]:
        now = self.phone.now
        icons = [
            View(
                "TextView",
                name,
                desc=name,
                res="icon",
                width=249,
                height=210,
                tap=lambda name=name: self.phone.open(name),  # type: ignore[misc]
            )
            for name in self.phone.apps
        ]
        rows = [across(*icons[at : at + 4], height=252, pad=(MARGIN, 21)) for at in range(0, len(icons), 4)]
        day = label(f"{now:%a}, {now.day} {now:%B}", "date", ROW, pad=(MARGIN, 0))
        return [
            day,
            View("View", res="wallpaper", grow=True),
            column(*rows, cls="ViewGroup", res="workspace"),
        ]
