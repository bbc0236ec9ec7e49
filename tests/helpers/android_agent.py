"""Drives the simulated phone of the android recorder by lines of a script, for the tests of it."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from tools.record.android import make_phone, perform, resolve
from tools.record.phone.formats import FORMATS, Screen

APPS: dict[str, Any] = {
    "Notes": [
        {"title": "Kiln", "body": "cone 6\nslow", "pinned": True},
        {"title": "Glaze", "body": "ash"},
        {"title": "Clay", "body": "stoneware"},
    ],
    "Alarms": [{"hour": 6, "minute": 5, "label": "Oven", "days": ["Mon"]}],
    "Contacts": [{"name": f"Shop {n:02d}", "phone": "0555 0100"} for n in range(20)],
    "Agenda": [{"title": "Fair", "date": date(2026, 3, 14), "start": "10:00", "end": "12:00"}],
    "Shelf": {
        "loans": [
            {"title": "Looms", "due": date(2026, 3, 20)},
            {"title": "Felt", "due": date(2026, 3, 21), "renewed": 2},
        ],
        "catalogue": [{"title": "Silk", "author": "A. B.", "mark": "T 1"}],
    },
    "Settings": {},
}


class Agent:
    """Drives a phone as the recorder does, a line of a script at a time, and shows the screen as text."""

    def __init__(self, front: str, form: str = "list") -> None:
        script = {"now": datetime(2026, 3, 14, 9, 0), "battery": 50, "apps": APPS, "front": front}
        self.phone = make_phone(script)
        self.form = FORMATS[form]

    @property
    def screen(self) -> Screen:
        return self.form.screen(self.phone)

    def do(self, *lines: dict[str, Any]) -> str:
        for line in lines:
            step = resolve(line, self.screen)
            self.form.action(step)
            self.phone.act(lambda step=step: perform(step, self.phone), 5)  # type: ignore[misc]
        return self.screen.text
