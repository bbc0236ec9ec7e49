"""The library app of the simulated phone: loans to renew, a catalogue to search, reservations.

In: the loans and the catalogue of a script. Out: an `App` of `phone.py`. A loan can be renewed for
21 days if nobody waits for the title, at most twice; a reader has at most `LIMIT` reservations.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, ClassVar

from tools.record.phone.app import App, Dialog, Snackbar
from tools.record.phone.phone import Phone
from tools.record.phone.view import BAR, LINE, MARGIN, ROW, View, across, button, column, label, scrolling

LIMIT = 3
PERIOD = timedelta(days=21)
TIMES = {0: "", 1: " · renewed once", 2: " · renewed twice"}
TABS = (("main", "Loans"), ("catalogue", "Catalogue"), ("reservations", "Reservations"))


class Shelf(App):
    """The reader's account at a town library."""

    name = "Shelf"
    package = "org.example.shelf"
    activities: ClassVar[Mapping[str, str]] = {"detail": "TitleActivity"}

    def __init__(self, phone: Phone, stored: dict[str, list[dict[str, Any]]]) -> None:
        super().__init__(phone)
        self.loans = [{"renewed": 0, "wanted": False, **loan} for loan in stored["loans"]]
        self.titles = [{"waiting": 0, "reserved": False, **title} for title in stored["catalogue"]]

    def restart(self) -> None:
        super().restart()
        self.chosen: set[str] = set()

    def main_views(self) -> list[View]:
        rows = [self._loan(loan) for loan in sorted(self.loans, key=lambda one: one["due"])]
        count = len(self.chosen)
        renew = button(
            f"Renew selected ({count})" if count else "Renew selected",
            "renew",
            self._renew,
            count > 0,
            wide=True,
        )
        return [self.bar("Shelf"), self._tabs(), scrolling(rows, "loan_list"), renew]

    def catalogue_views(self) -> list[View]:
        asked = self.fields.get("query", "").lower()
        found = [one for one in self.titles if asked in f"{one['title']} {one['author']}".lower()]
        rows = [self._title(one) for one in found]
        listed = (
            scrolling(rows, "title_list")
            if rows
            else label("Nothing found", "empty_view", ROW, pad=(MARGIN, 0))
        )
        return [
            self.bar("Shelf"),
            self._tabs(),
            self.edit("query", "Title or author", enter="Search"),
            listed,
        ]

    def reservations_views(self) -> list[View]:
        rows = [self._title(one) for one in self.titles if one["reserved"]]
        empty = label("No reservations", "empty_view", ROW, pad=(MARGIN, 0))
        return [self.bar("Shelf"), self._tabs(), scrolling(rows, "reservation_list") if rows else empty]

    def detail_views(self) -> list[View]:
        title = self._subject
        what = "Cancel reservation" if title["reserved"] else "Reserve"
        tap = self._cancel if title["reserved"] else self._reserve
        return [
            self.bar("Title", up="Navigate up"),
            label(title["title"], "detail_title", BAR, pad=(MARGIN, 0)),
            label(title["author"], "detail_author", 84, pad=(MARGIN, 0)),
            label(f"Shelf mark {title['mark']}", "detail_mark", 84, pad=(MARGIN, 0)),
            label(waiting(title), "detail_waiting", 84, pad=(MARGIN, 0)),
            button(what, "reserve", tap, wide=True),
        ]

    @property
    def _subject(self) -> dict[str, Any]:
        assert isinstance(self.subject, dict)
        return self.subject

    def _tabs(self) -> View:
        tabs = []
        for screen, name in TABS:
            flags = {"selected"} if screen == self.screen else set()
            tap = lambda screen=screen: self._turn(screen)  # noqa: E731
            tabs.append(View("TextView", name, res=f"tab_{name.lower()}", flags=flags, height=126, tap=tap))
        return across(*tabs, cls="HorizontalScrollView", res="tabs", height=126)

    def _turn(self, screen: str) -> None:
        self.screens = [(screen, None)]
        self.phone.focus_on("")

    def _loan(self, loan: dict[str, Any]) -> View:
        name = loan["title"]
        checked = {"checked"} if name in self.chosen else set()

        def turn() -> None:
            self.chosen ^= {name}

        box = View(
            "CheckBox",
            res="loan_check",
            desc=f"Select {name}",
            flags={"checkable"} | checked,
            width=126,
            height=126,
            tap=turn,
        )
        due = f"Due {short_date(loan['due'])}{TIMES[loan['renewed']]}"
        return across(
            box,
            column(label(name, "loan_title"), label(due, "loan_due"), height=2 * LINE),
            res="loan_row",
            height=ROW,
            pad=(MARGIN, 0),
        )

    def _title(self, title: dict[str, Any]) -> View:
        return column(
            label(title["title"], "title_name"),
            label(f"{title['author']} · {waiting(title)}", "title_state"),
            res="title_row",
            height=ROW,
            pad=(MARGIN, 36),
            tap=lambda: self.show("detail", title),
        )

    def _renew(self) -> None:
        """Renew what can be renewed and say what cannot, with the reason."""
        refused, renewed = [], 0
        for loan in sorted(self.loans, key=lambda one: one["due"]):
            if loan["title"] not in self.chosen:
                continue
            if loan["wanted"]:
                refused.append(f"“{loan['title']}” is reserved by another reader.")
            elif loan["renewed"] == 2:
                refused.append(f"“{loan['title']}” has been renewed twice already.")
            else:
                loan["due"] += PERIOD
                loan["renewed"] += 1
                renewed += 1
        self.chosen = set()
        done = f"{renewed} loan{'' if renewed == 1 else 's'} renewed"
        if refused:
            self.dialog = Dialog(
                done if renewed else "Not renewed", " ".join(refused), buttons=[("OK", None)]
            )
        else:
            self.snackbar = Snackbar(done)

    def _reserve(self) -> None:
        if sum(title["reserved"] for title in self.titles) == LIMIT:
            message = f"You have {LIMIT} reservations. Cancel one of them first."
            self.dialog = Dialog("Limit reached", message, buttons=[("OK", None)])
            return
        self._subject["reserved"] = True
        self._subject["waiting"] += 1
        self.snackbar = Snackbar(f"Reserved, number {self._subject['waiting']} in the queue")

    def _cancel(self) -> None:
        def done() -> None:
            self._subject["reserved"] = False
            self._subject["waiting"] -= 1
            self.snackbar = Snackbar("Reservation cancelled")

        self.confirm("Cancel reservation?", self._subject["title"], "Keep", "Cancel it", done)


def short_date(day: date) -> str:
    """14 Mar 2026."""
    return f"{day.day} {day:%b %Y}"


def waiting(title: dict[str, Any]) -> str:
    """How many readers wait for a title, the reader of this phone included."""
    if title["reserved"]:
        return f"Reserved by you, {title['waiting']} waiting"
    return f"{title['waiting']} waiting" if title["waiting"] else "On the shelf"
