"""The alarm app of the simulated phone: list with switches, form with checks, delete by long press.

In: the stored alarms of a script (hour, minute, label, days, active). Out: an `App` of `phone.py`.
Times are written as the settings of the phone ask for; saving says how long it is until it rings.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from tools.record.phone.app import App, Snackbar
from tools.record.phone.phone import Phone
from tools.record.phone.view import BAR, LINE, MARGIN, View, across, button, column, fab, label, scrolling

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
ALARM_ROW = 231


class Alarms(App):
    """Alarms by time of day."""

    name = "Alarms"
    package = "org.example.alarms"
    activities: ClassVar[Mapping[str, str]] = {"form": "AlarmActivity"}

    def __init__(self, phone: Phone, stored: list[dict[str, Any]]) -> None:
        super().__init__(phone)
        self.alarms = [{"label": "", "days": [], "active": True, **alarm} for alarm in stored]

    def main_views(self) -> list[View]:
        rows = [
            self._row(alarm) for alarm in sorted(self.alarms, key=lambda one: (one["hour"], one["minute"]))
        ]
        empty = label("No alarms", "empty_view", grow=True)
        alarms = scrolling(rows, "alarm_list") if rows else empty
        return [self.bar("Alarms"), alarms, fab("Add alarm", "add_alarm", lambda: self._form(None))]

    def form_views(self) -> list[View]:
        bar = self.bar("Edit alarm" if self.subject else "New alarm", up="Cancel")
        wrong = [label(self.errors["time"], "time_error")] if "time" in self.errors else []
        time = across(
            self.edit("hour", "Hour"),
            label(":", "colon", width=42),
            self.edit("minute", "Minute"),
            res="time",
        )
        days = across(*(self._day(day) for day in DAYS), res="days")
        save = button("Save", "save_button", self._save, wide=True)
        return [bar, time, *wrong, self.edit("label", "Label"), days, save]

    def _day(self, day: str) -> View:
        chosen = self.fields["days"].split()

        def turn() -> None:
            changed = set(chosen) ^ {day}
            self.fields["days"] = " ".join(one for one in DAYS if one in changed)

        flags = {"checkable"} | ({"checked"} if day in chosen else set())
        return View("CheckBox", day, res=f"day_{day.lower()}", flags=flags, height=BAR, tap=turn)

    def _row(self, alarm: dict[str, Any]) -> View:
        time = self.phone.time_text(alarm["hour"], alarm["minute"])
        texts = column(
            label(time, "alarm_time", 74),
            label(alarm["label"] or "Alarm", "alarm_label"),
            label(repeat(alarm["days"]), "alarm_days"),
            height=74 + 2 * LINE,
        )
        flags = {"checkable"} | ({"checked"} if alarm["active"] else set())
        state = "On" if alarm["active"] else "Off"
        switch = View("Switch", state, res="alarm_switch", flags=flags, width=168, height=126)
        switch.desc = f"{alarm['label'] or 'Alarm'}, {time}"
        switch.flags.add("clickable")
        switch.tap = lambda: self._switch(alarm)
        return across(
            texts,
            switch,
            cls="FrameLayout",
            res="alarm_row",
            height=ALARM_ROW,
            pad=(MARGIN, 0),
            tap=lambda: self._form(alarm),
            hold=lambda: self._menu(alarm),
        )

    def _form(self, alarm: dict[str, Any] | None) -> None:
        values = alarm or {"hour": "", "minute": "", "label": "", "days": []}
        minute = f"{values['minute']:02d}" if alarm else ""
        self.fields = {"hour": str(values["hour"]), "minute": minute, "label": values["label"]}
        self.fields["days"] = " ".join(values["days"])
        self.show("form", alarm, "" if alarm else "hour")

    def entered(self, key: str) -> None:
        if key == "hour":
            self.phone.focus_on("minute")
        else:
            super().entered(key)

    def changed(self, key: str) -> None:
        self.errors = {}

    def _save(self) -> None:
        hour, minute = self.fields["hour"].strip(), self.fields["minute"].strip()
        if not (hour.isdecimal() and int(hour) < 24):
            self.errors = {"time": "The hour must be a number from 0 to 23"}
            return
        if not (minute.isdecimal() and int(minute) < 60):
            self.errors = {"time": "The minute must be a number from 0 to 59"}
            return
        new = {
            "hour": int(hour),
            "minute": int(minute),
            "label": self.fields["label"].strip(),
            "days": self.fields["days"].split(),
            "active": True,
        }
        alarm = self.subject
        if isinstance(alarm, dict):
            alarm |= new
        else:
            self.alarms.append(new)
        self.close()
        self.phone.toast = self._rings(new)

    def _switch(self, alarm: dict[str, Any]) -> None:
        alarm["active"] = not alarm["active"]
        if alarm["active"]:
            self.phone.toast = self._rings(alarm)

    def _rings(self, alarm: dict[str, Any]) -> str:
        """How long it is until an alarm rings, counted in whole minutes of the clock."""
        now = self.phone.now.replace(second=0, microsecond=0)
        at = now.replace(hour=alarm["hour"], minute=alarm["minute"])
        while at <= now or (alarm["days"] and DAYS[at.weekday()] not in alarm["days"]):
            at += timedelta(days=1)
        minutes = (at - now) // timedelta(minutes=1)
        parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
        return "Rings in " + " ".join(f"{count} {unit}" for count, unit in parts if count)

    def _menu(self, alarm: dict[str, Any]) -> None:
        def chosen(option: str) -> None:
            if option == "Delete":
                self.alarms = [one for one in self.alarms if one is not alarm]
                self.snackbar = Snackbar("Alarm deleted", "Undo", lambda: self.alarms.append(alarm))
            else:
                self.alarms.append({**alarm, "active": False})

        self.choose(alarm["label"] or "Alarm", ["Duplicate", "Delete"], "", chosen)


def repeat(days: list[str]) -> str:
    """The days of an alarm in words."""
    named = {DAYS: "Every day", DAYS[:5]: "Weekdays", DAYS[5:]: "Weekend", (): "Once"}
    return named.get(tuple(days), ", ".join(days))
