"""The agenda app of the simulated phone: events by day, a form with a date picker, checks, overlaps.

In: the stored events of a script (title, date, start, end as HH:MM). Out: an `App` of `phone.py`.
Typed times are always HH:MM; shown times follow the settings of the phone.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, ClassVar

from tools.record.phone.app import App, Dialog, Snackbar
from tools.record.phone.phone import Phone
from tools.record.phone.view import (
    BAR,
    LINE,
    MARGIN,
    ROW,
    View,
    across,
    button,
    column,
    fab,
    icon,
    label,
    scrolling,
)

TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


class Agenda(App):
    """Events from today on."""

    name = "Agenda"
    package = "org.example.agenda"
    activities: ClassVar[Mapping[str, str]] = {"detail": "EventActivity", "form": "EditEventActivity"}

    def __init__(self, phone: Phone, stored: list[dict[str, Any]]) -> None:
        super().__init__(phone)
        self.events = [{"place": "", **event} for event in stored]
        self.day = phone.now.date()
        self.month = self.day.replace(day=1)

    def main_views(self) -> list[View]:
        today = self.phone.now.date()
        rows: list[View] = []
        last: date | None = None
        for event in sorted(self.events, key=lambda one: (one["date"], one["start"])):
            if event["date"] < today:
                continue
            if event["date"] != last:
                last = event["date"]
                rows.append(
                    label(
                        f"Today, {long_date(last)}" if last == today else long_date(last), "day_header", 105
                    )
                )
            rows.append(self._row(event))
        agenda = scrolling(rows, "event_list") if rows else label("No events", "empty_view", grow=True)
        return [self.bar("Agenda"), agenda, fab("New event", "add_event", lambda: self._form(None))]

    def detail_views(self) -> list[View]:
        event = self._event
        bar = self.bar(
            "",
            icon("Edit", "action_edit", lambda: self._form(event)),
            icon("Delete", "action_delete", self._ask_delete),
            up="Navigate up",
        )
        place = [label(event["place"], "detail_place", 84, pad=(MARGIN, 0))] if event["place"] else []
        return [
            bar,
            label(event["title"], "detail_title", BAR, pad=(MARGIN, 0)),
            label(long_date(event["date"]), "detail_date", 84, pad=(MARGIN, 0)),
            label(self._span(event), "detail_time", 84, pad=(MARGIN, 0)),
            *place,
        ]

    def form_views(self) -> list[View]:
        bar = self.bar(
            "Edit event" if self.subject else "New event",
            button("Save", "action_save", self._check),
            up="Close",
        )
        day = View("Button", long_date(self.day), res="date_button", height=BAR, tap=self._pick)
        day.desc = f"Date, {long_date(self.day)}"
        parts = [*self.form_field("title", "Title"), day]
        parts += [*self.form_field("start", "Start (HH:MM)"), *self.form_field("end", "End (HH:MM)")]
        return [bar, scrolling([*parts, self.edit("place", "Place")], "form", "ScrollView")]

    @property
    def _event(self) -> dict[str, Any]:
        assert isinstance(self.subject, dict)
        return self.subject

    def _span(self, event: dict[str, Any]) -> str:
        texts = [self.phone.time_text(*map(int, event[key].split(":"))) for key in ("start", "end")]
        return " – ".join(texts)

    def _row(self, event: dict[str, Any]) -> View:
        texts = [label(event["title"], "event_title"), label(self._span(event), "event_time")]
        texts += [label(event["place"], "event_place")] if event["place"] else []
        return column(
            *texts,
            res="event_row",
            height=ROW if len(texts) == 2 else ROW + LINE,
            pad=(MARGIN, 32),
            tap=lambda: self.show("detail", event),
        )

    def _form(self, event: dict[str, Any] | None) -> None:
        values = event or {"title": "", "start": "", "end": "", "place": ""}
        self.fields = {key: values[key] for key in ("title", "start", "end", "place")}
        self.day = event["date"] if event else self.phone.now.date()
        self.show("form", event, "" if event else "title")

    def _pick(self) -> None:
        self.phone.focus_on("")
        self.month = self.day.replace(day=1)
        self._picker(self.day)

    def _picker(self, chosen: date) -> None:
        """The date picker: a month to turn over, its days, OK takes the marked day."""
        month = self.month

        def turn(days: int) -> None:
            self.month = (month + timedelta(days=days)).replace(day=1)
            self._picker(chosen)

        def take() -> None:
            self.day = chosen

        head = across(
            icon("Previous month", "android:id/prev", lambda: turn(-1)),
            label(f"{month:%B %Y}", "month_title"),
            icon("Next month", "android:id/next", lambda: turn(31)),
        )
        first, count = calendar.monthrange(month.year, month.month)
        days = [self._day(month.replace(day=number), chosen) for number in range(1, count + 1)]
        grid = column(*days, cls="View", res="android:id/month_view", flow="grid", lead=first)
        self.dialog = Dialog(f"{chosen:%a}, {chosen.day} {chosen:%b %Y}", body=[head, grid])
        self.dialog.buttons = [("Cancel", None), ("OK", take)]

    def _day(self, day: date, chosen: date) -> View:
        flags = {"selected"} if day == chosen else set()
        return View(
            "View", str(day.day), desc=long_date(day), flags=flags, height=105, tap=lambda: self._picker(day)
        )

    def _check(self) -> None:
        """Save if the form is right; an overlap with another event is asked about."""
        typed = {key: text.strip() for key, text in self.fields.items()}
        self.errors = {}
        if not typed["title"]:
            self.errors["title"] = "Enter a title"
        for key in ("start", "end"):
            if not TIME.fullmatch(typed[key]):
                self.errors[key] = "Write the time as HH:MM"
        if not self.errors and typed["end"] <= typed["start"]:
            self.errors["end"] = "The end must be after the start"
        if self.errors:
            return
        new = {**typed, "date": self.day}
        for other in self.events:
            apart = other["end"] <= new["start"] or other["start"] >= new["end"]
            if other is not self.subject and other["date"] == self.day and not apart:
                message = f"“{other['title']}” is at {self._span(other)} on that day."
                self.confirm("Save anyway?", message, "Back", "Save", lambda: self._save(new))
                return
        self._save(new)

    def _save(self, new: dict[str, Any]) -> None:
        if isinstance(self.subject, dict):
            self.subject.update(new)
        else:
            self.events.append(new)
        self.close()
        self.snackbar = Snackbar(f"Saved for {long_date(self.day)}")

    def back(self) -> None:
        if self.screen == "form" and any(self.fields.values()) and not self.subject:
            self.confirm("Discard event?", "It has not been saved.", "Keep editing", "Discard", self.close)
        else:
            super().back()

    def _ask_delete(self) -> None:
        self.confirm("Delete event?", self._event["title"], "Cancel", "Delete", self._delete)

    def _delete(self) -> None:
        event = self._event
        self.events = [other for other in self.events if other is not event]
        self.close()
        self.snackbar = Snackbar("Event deleted", "Undo", lambda: self.events.append(event))


def long_date(day: date) -> str:
    """Saturday, 14 March 2026."""
    return f"{day:%A}, {day.day} {day:%B %Y}"
