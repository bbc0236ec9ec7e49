"""The settings app of the simulated phone: pages of switches, choices and links, as data.

In: `phones/settings.yaml` (pages and their rows) and the settings of the phone, which the rows read and
write. Out: an `App` of `phone.py`. Some settings show elsewhere: the 24-hour format in every app,
Wi-Fi and Do not disturb in the status bar.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

import yaml

from tools.record.common import HERE
from tools.record.phone.app import App
from tools.record.phone.phone import Phone
from tools.record.phone.view import LINE, MARGIN, ROW, View, across, column, label, scrolling

PAGES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (HERE / "phones" / "settings.yaml").read_text("utf-8")
)
DEFAULTS: dict[str, str | bool] = {
    row["key"]: row["value"] for page in PAGES.values() for row in page if "value" in row
}


class Settings(App):
    """Pages of rows; a page is opened from a row of another."""

    name = "Settings"
    package = "org.example.settings"
    activities: ClassVar[Mapping[str, str]] = {"page": "PageActivity"}

    def __init__(self, phone: Phone, stored: dict[str, str | bool]) -> None:
        super().__init__(phone)
        self.phone.settings |= stored

    def main_views(self) -> list[View]:
        return [self.bar("Settings"), self._list("Settings")]

    def page_views(self) -> list[View]:
        title = str(self.subject)
        return [self.bar(title, up="Navigate up"), self._list(title)]

    def _list(self, title: str) -> View:
        listed = scrolling([self._row(row) for row in PAGES[title]], "recycler_view")
        listed.scroll = f"list {title}"
        return listed

    def _row(self, row: dict[str, Any]) -> View:
        enabled = all(self.phone.settings[key] == value for key, value in row.get("when", {}).items())
        summary = self._summary(row)
        lines = [label(row["title"], "android:id/title")]
        lines += [label(summary, "android:id/summary")] if summary else []
        texts = column(*lines, cls="RelativeLayout", height=LINE * len(lines))
        widget = []
        if isinstance(row.get("value"), bool):
            on = self.phone.settings[row["key"]]
            flags = {"checkable"} | ({"checked"} if on else set())
            widget = [
                View(
                    "Switch",
                    "On" if on else "Off",
                    res="android:id/switch_widget",
                    flags=flags,
                    width=126,
                    height=84,
                )
            ]
        parts = [texts, *widget]
        if not enabled:
            for part in [*lines, *widget]:
                part.flags.add("disabled")
        flags = set() if enabled else {"disabled"}
        return across(*parts, height=ROW, pad=(MARGIN, 0), flags=flags, tap=lambda: self._tap(row))

    def _summary(self, row: dict[str, Any]) -> str:
        if "options" in row:
            return str(self.phone.settings[row["key"]])
        return str(row.get("summary", ""))

    def _tap(self, row: dict[str, Any]) -> None:
        if "page" in row:
            self.show("page", row["page"])
        elif "options" in row:
            self.choose(
                row["title"],
                row["options"],
                str(self.phone.settings[row["key"]]),
                lambda one: self._set(row, one),
            )
        elif "value" in row:
            self._set(row, not self.phone.settings[row["key"]])

    def _set(self, row: dict[str, Any], value: str | bool) -> None:
        if row["key"] == "zone":
            self.phone.now += offset(str(value)) - offset(str(self.phone.settings["zone"]))
        self.phone.settings[row["key"]] = value


def pages_text(settings: Mapping[str, str | bool]) -> str:
    """All pages with their rows in words, a page a line, as `settings` has them."""
    titles = {row["key"]: row["title"] for page in PAGES.values() for row in page if "key" in row}

    def described(row: dict[str, Any]) -> str:
        parts = [f'"{row["summary"]}"'] if "summary" in row else []
        if "page" in row:
            parts.append("opens the page")
        elif "options" in row:
            parts.append(f"{settings[row['key']]} of {', '.join(row['options'])}")
        elif "value" in row:
            parts.append("on" if settings[row["key"]] else "off")
        needs = [f"{titles[key]} is {'on' if value else 'off'}" for key, value in row.get("when", {}).items()]
        parts += [f"only while {need}" for need in needs]
        return f"{row['title']} ({'; '.join(parts)})"

    return "\n".join(f"- {title}: {', '.join(map(described, rows))}" for title, rows in PAGES.items())


def offset(zone: str) -> timedelta:
    """How far a time zone is ahead of Greenwich: `Oslo (GMT+1)` is an hour."""
    return timedelta(hours=int(zone.partition("GMT")[2].rstrip(")")))
