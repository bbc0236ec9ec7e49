"""The contacts app of the simulated phone: list with search, details, form with checks, calls.

In: the stored contacts of a script (name, phone, organisation, favourite). Out: an `App` of
`phone.py`. The first call asks for a permission.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tools.record.phone.app import App, Snackbar
from tools.record.phone.phone import Phone
from tools.record.phone.view import (
    MARGIN,
    ROW,
    View,
    across,
    button,
    column,
    fab,
    icon,
    label,
    picture,
    scrolling,
)

NAME_HEIGHT = 168
NUMBER = re.compile(r"\+?[0-9 ]{5,}")
FORM = ("name", "phone", "organisation")


class Contacts(App):
    """Contacts by name, favourites first."""

    name = "Contacts"
    package = "org.example.contacts"
    activities: ClassVar[Mapping[str, str]] = {
        "detail": "DetailActivity",
        "form": "FormActivity",
        "call": "CallActivity",
    }

    def __init__(self, phone: Phone, stored: list[dict[str, Any]]) -> None:
        super().__init__(phone)
        self.people = [{"organisation": "", "favourite": False, **person} for person in stored]

    def main_views(self) -> list[View]:
        asked = self.fields.get("search_field", "").lower()
        people = sorted(self.people, key=lambda person: person["name"])
        found = [person for person in people if asked in f"{person['name']} {person['organisation']}".lower()]
        rows = [self._row(person) for person in found]
        if not asked:
            stars = [self._row(person) for person in people if person["favourite"]]
            heads = [self._head("Favourites"), *stars] if stars else []
            rows = [*heads, self._head(f"All contacts ({len(people)})"), *rows]
        found_list = (
            scrolling(rows, "contact_list") if rows else label("No contacts match", "empty_view", ROW)
        )
        bar = across(
            self.edit("search_field", "Search contacts", enter="Search"), cls="ViewGroup", res="toolbar"
        )
        return [bar, found_list, fab("New contact", "add_contact", lambda: self._form(None))]

    def detail_views(self) -> list[View]:
        person = self._person
        star = "Remove from favourites" if person["favourite"] else "Add to favourites"
        bar = self.bar(
            "",
            icon(star, "action_star", self._star),
            icon("Edit", "action_edit", lambda: self._form(person)),
            icon("Delete", "action_delete", self._ask_delete),
            up="Navigate up",
        )
        organisation = [label(person["organisation"], "detail_organisation", 84, pad=(MARGIN, 0))]
        number = column(
            label(person["phone"], "detail_phone"),
            label("Mobile", "detail_phone_kind"),
            res="phone_row",
            pad=(MARGIN, 21),
            tap=self._call,
        )
        return [
            bar,
            label(person["name"], "detail_name", NAME_HEIGHT, pad=(MARGIN, 0)),
            *(organisation if person["organisation"] else []),
            number,
            button("Call", "call_button", self._call, wide=True),
        ]

    def form_views(self) -> list[View]:
        title = "Edit contact" if self.subject else "New contact"
        bar = self.bar(title, button("Save", "action_save", self._save), up="Close")
        hints = dict(zip(FORM, ("Name", "Phone", "Organisation"), strict=True))
        fields = [view for key in FORM for view in self.form_field(f"field_{key}", hints[key])]
        return [bar, scrolling(fields, "form", "ScrollView")]

    def call_views(self) -> list[View]:
        person = self._person
        return [
            label(person["name"], "call_name", ROW, pad=(MARGIN, 0)),
            label(person["phone"], "call_number", pad=(MARGIN, 0)),
            label("Calling…", "call_state", pad=(MARGIN, 0)),
            View("View", res="spacer", grow=True),
            button("End call", "end_call", self._end, wide=True),
        ]

    @property
    def _person(self) -> dict[str, Any]:
        assert isinstance(self.subject, dict)
        return self.subject

    def _head(self, text: str) -> View:
        return label(text, "header", 105)

    def _row(self, person: dict[str, Any]) -> View:
        star = [picture("Favourite", "star")] if person["favourite"] else []
        lines = [label(person["name"], "name")]
        lines += [label(person["organisation"], "organisation")] if person["organisation"] else []
        texts = column(*lines)
        return across(
            texts,
            *star,
            cls="FrameLayout",
            res="row",
            height=ROW,
            pad=(MARGIN, 0),
            tap=lambda: self.show("detail", person),
        )

    def _star(self) -> None:
        self._person["favourite"] = not self._person["favourite"]

    def _form(self, person: dict[str, Any] | None) -> None:
        for key in FORM:
            self.fields[f"field_{key}"] = person[key] if person else ""
        self.show("form", person, "" if person else "field_name")

    def entered(self, key: str) -> None:
        following = {"field_name": "field_phone", "field_phone": "field_organisation"}
        if key in following:
            self.phone.focus_on(following[key])
        else:
            super().entered(key)

    def _typed(self) -> dict[str, str]:
        return {key: self.fields[f"field_{key}"].strip() for key in FORM}

    def _save(self) -> None:
        new = self._typed()
        self.errors = {}
        if not new["name"]:
            self.errors["field_name"] = "Enter a name"
        if not NUMBER.fullmatch(new["phone"]):
            self.errors["field_phone"] = "Use digits and spaces, at least five, with an optional + in front"
        if self.errors:
            return
        person = self.subject
        if isinstance(person, dict):
            person |= new
            self.phone.toast = "Contact saved"
            self.close()
        else:
            person = {**new, "favourite": False}
            self.people.append(person)
            self.phone.toast = "Contact saved"
            self.close()
            self.show("detail", person)

    def back(self) -> None:
        if self.screen == "form":
            person = self.subject if isinstance(self.subject, dict) else dict.fromkeys(FORM, "")
            if self._typed() != {key: person[key] for key in FORM}:
                question = "Your changes have not been saved."
                self.confirm("Discard changes?", question, "Keep editing", "Discard", self.close)
                return
        elif self.screen == "call":
            self.phone.go_home()
            return
        super().back()

    def _ask_delete(self) -> None:
        name = self._person["name"]
        self.confirm(
            "Delete contact?", f"{name} will be removed from this phone.", "Cancel", "Delete", self._delete
        )

    def _delete(self) -> None:
        person = self._person
        self.people = [other for other in self.people if other is not person]
        self.close()
        self.snackbar = Snackbar(f"{person['name']} deleted", "Undo", lambda: self.people.append(person))

    def _call(self) -> None:
        question = "Allow Contacts to make and manage phone calls?"
        self.phone.ask(self, "calls", question, lambda: self.show("call", self._person))

    def _end(self) -> None:
        self.close()
        self.phone.toast = "Call ended"
