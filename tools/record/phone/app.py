"""What the apps of the simulated phone share: screens, text fields, dialogs, snackbars, bars.

In: nothing but the phone an app runs on. Out: `App`, the base of the app modules. An app
builds the views of its screen anew whenever they are asked for; what lasts is in its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from tools.record.phone.view import BAR, Callback, View, across, column, icon, label

if TYPE_CHECKING:
    from tools.record.phone.phone import Phone


@dataclass
class Dialog:
    """A window above an app: title, text or a body of views, and buttons (label, what a tap does)."""

    title: str
    message: str = ""
    body: list[View] = field(default_factory=list)
    buttons: list[tuple[str, Callback | None]] = field(default_factory=list)
    owner: tuple[str, str] | None = None
    stays: bool = False
    """A tap beside it or the back key does not close it."""


@dataclass
class Snackbar:
    """A line at the bottom of an app that is gone after the next action."""

    text: str
    action: str = ""
    tap: Callback | None = None


class App:
    """An app: a stack of screens (name and subject), text fields by key, at most one dialog."""

    name = ""
    package = ""
    activities: ClassVar[Mapping[str, str]] = {}

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.restart()

    def restart(self) -> None:
        """Cold start: first screen, no drafts."""
        self.screens: list[tuple[str, object]] = [("main", None)]
        self.fields: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.scrolls: dict[str, int] = {}
        self.dialog: Dialog | None = None
        self.snackbar: Snackbar | None = None

    @property
    def screen(self) -> str:
        return self.screens[-1][0]

    @property
    def subject(self) -> object:
        """What the screen on top is about: a note, a page, a contact."""
        return self.screens[-1][1]

    @property
    def activity(self) -> str:
        """Full name of the activity that shows the screen on top."""
        return f"{self.package}.{self.activities.get(self.screen, 'MainActivity')}"

    def show(self, screen: str, subject: object = None, focus: str = "") -> None:
        """Put a screen on top; `focus` names the field that gets the cursor and the keyboard."""
        self.screens.append((screen, subject))
        self.phone.focus_on(focus)

    def close(self) -> None:
        """Take the screen on top away."""
        self.screens.pop()
        self.errors = {}
        self.phone.focus_on("")

    def back(self) -> None:
        """The back key on a screen; the first screen leaves the app."""
        if len(self.screens) > 1:
            self.close()
        else:
            self.phone.go_home()

    def entered(self, key: str) -> None:
        """The Enter key in the field `key`: closes the keyboard unless an app says otherwise."""
        self.phone.keyboard = False

    def changed(self, key: str) -> None:
        """The text of the field `key` has changed."""
        self.errors.pop(key, None)

    def build(self) -> View:
        """The views of the screen on top: methods `<screen>_views` of the app."""
        views: list[View] = getattr(self, f"{self.screen}_views")()
        return column(*views, cls="FrameLayout", res="android:id/content")

    # Parts that all apps use.

    def bar(self, title: str, *actions: View, up: str = "") -> View:
        """The bar on top: a way back when `up` says how it is called, the title, icon buttons."""
        parts = [icon(up, "", self.back)] if up else []
        parts += [label(title, "toolbar_title", BAR)] if title else [View("View", res="spacer", height=BAR)]
        return across(*parts, *actions, cls="ViewGroup", res="toolbar")

    def edit(self, key: str, hint: str, height: int = BAR, grow: bool = False, enter: str = "Done") -> View:
        """A text field; an empty one shows its hint as text, as Android does."""
        flags = {"clickable", "editable", "long_clickable"}
        if self.phone.focus == key:
            flags.add("focused")
            self.phone.enter_label = enter
        shown = self.fields.get(key, "") or hint
        view = View(
            "EditText", shown, hint=hint, res=key, flags=flags, height=0 if grow else height, grow=grow
        )
        view.field = key
        return view

    def form_field(self, key: str, hint: str) -> list[View]:
        """A text field and, below it, what is wrong with its text."""
        wrong = [label(self.errors[key], f"{key}_error")] if key in self.errors else []
        return [self.edit(key, hint), *wrong]

    def confirm(self, title: str, message: str, no: str, yes: str, tap: Callback) -> None:
        """Ask before something is done."""
        self.dialog = Dialog(title, message, buttons=[(no, None), (yes, tap)])

    def choose(self, title: str, options: list[str], chosen: str, tap: Callable[[str], None]) -> None:
        """A list of choices of which one is marked; a tap on one chooses it and closes the dialog."""
        rows = [
            View(
                "CheckedTextView",
                option,
                res="android:id/text1",
                flags={"checkable"} | ({"checked"} if option == chosen else set()),
                height=126,
                tap=lambda option=option: self._chosen(option, tap),  # type: ignore[misc]
            )
            for option in options
        ]
        self.dialog = Dialog(title, body=[column(*rows, cls="ListView", res="select_dialog_listview")])
        self.dialog.buttons = [("Cancel", None)]

    def _chosen(self, option: str, tap: Callable[[str], None]) -> None:
        self.dialog = None
        tap(option)
