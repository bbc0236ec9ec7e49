"""The notes app of the simulated phone: list, search, editor, delete with undo.

In: the stored notes of a script (title, body, pinned). Out: an `App` of `phone.py`. Leaving the
editor saves; an empty note is thrown away. Pinned notes stand first, then the last edited ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tools.record.phone.app import App, Snackbar
from tools.record.phone.phone import Phone
from tools.record.phone.view import (
    LINE,
    MARGIN,
    ROW,
    View,
    across,
    column,
    fab,
    icon,
    label,
    picture,
    scrolling,
)


class Notes(App):
    """Notes, newest edit first."""

    name = "Notes"
    package = "org.example.notes"
    activities: ClassVar[Mapping[str, str]] = {"edit": "EditActivity", "search": "SearchActivity"}

    def __init__(self, phone: Phone, stored: list[dict[str, Any]]) -> None:
        super().__init__(phone)
        self.notes = [{"title": "", "body": "", "pinned": False, **note} for note in stored]

    def main_views(self) -> list[View]:
        bar = self.bar(
            "Notes", icon("Search", "action_search", lambda: self.show("search", None, "search_field"))
        )
        notes = self.ordered()
        rows = scrolling([self._row(note) for note in notes], "note_list")
        empty = label("No notes yet", "empty_view", grow=True)
        return [bar, rows if notes else empty, fab("New note", "add_note", self._new)]

    def search_views(self) -> list[View]:
        up = icon("Navigate up", "", self.back)
        bar = across(
            up, self.edit("search_field", "Search notes", enter="Search"), cls="ViewGroup", res="toolbar"
        )
        asked = self.fields.get("search_field", "").lower()
        found = [note for note in self.ordered() if asked in f"{note['title']}\n{note['body']}".lower()]
        if not found:
            return [bar, label("No notes match", "empty_view", ROW, pad=(MARGIN, 0))]
        return [bar, scrolling([self._row(note) for note in found], "search_results")]

    def edit_views(self) -> list[View]:
        note = self._note
        pin = icon("Unpin" if note["pinned"] else "Pin", "action_pin", self._pin)
        bar = self.bar("", pin, icon("Delete", "action_delete", self._ask_delete), up="Navigate up")
        words = len(f"{self.fields['edit_title']} {self.fields['edit_body']}".split())
        count = label(f"{words} word{'' if words == 1 else 's'}", "word_count", 84)
        body = self.edit("edit_body", "Note", grow=True, enter="New line")
        return [bar, self.edit("edit_title", "Title", enter="Next"), body, count]

    def ordered(self) -> list[dict[str, Any]]:
        """Pinned notes first; within both groups as stored, where an edit moves a note to the front."""
        return sorted(self.notes, key=lambda note: not note["pinned"])

    @property
    def _note(self) -> dict[str, Any]:
        note = self.subject
        assert isinstance(note, dict)
        return note

    def _row(self, note: dict[str, Any]) -> View:
        preview = note["body"].split("\n")[0]
        texts = column(
            label(note["title"] or "Untitled", "note_title"),
            label(preview, "note_preview"),
            res="note_texts",
            height=LINE * 2,
        )
        pinned = [picture("Pinned", "note_pin")] if note["pinned"] else []
        return across(
            texts,
            *pinned,
            cls="FrameLayout",
            res="note_row",
            height=ROW,
            pad=(MARGIN, 0),
            tap=lambda: self._open(note),
        )

    def _open(self, note: dict[str, Any]) -> None:
        self.fields |= {"edit_title": note["title"], "edit_body": note["body"]}
        self.show("edit", note)

    def _new(self) -> None:
        note = {"title": "", "body": "", "pinned": False}
        self.notes.insert(0, note)
        self._open(note)
        self.phone.focus_on("edit_title")

    def _pin(self) -> None:
        self._note["pinned"] = not self._note["pinned"]
        self.phone.toast = "Pinned" if self._note["pinned"] else "Unpinned"

    def entered(self, key: str) -> None:
        if key == "edit_title":
            self.phone.focus_on("edit_body")
        elif key == "edit_body":
            self.fields[key] += "\n"
        else:
            super().entered(key)

    def back(self) -> None:
        if self.screen == "edit":
            self._save()
        if self.screen == "search":
            self.fields["search_field"] = ""
        super().back()

    def _save(self) -> None:
        note = self._note
        new = {"title": self.fields["edit_title"].strip(), "body": self.fields["edit_body"].strip()}
        if not any(new.values()):
            self._drop(note)
            self.phone.toast = "Empty note discarded"
        elif new != {key: note[key] for key in new}:
            note |= new
            self._drop(note)
            self.notes.insert(0, note)

    def _drop(self, note: dict[str, Any]) -> None:
        self.notes = [other for other in self.notes if other is not note]

    def _ask_delete(self) -> None:
        title = self.fields["edit_title"] or "Untitled"
        self.confirm("Delete note?", f"“{title}” will be deleted.", "Cancel", "Delete", self._delete)

    def _delete(self) -> None:
        note = self._note
        at = next(number for number, other in enumerate(self.notes) if other is note)

        def undo() -> None:
            self.notes.insert(at, note)

        self._drop(note)
        self.close()
        self.snackbar = Snackbar("Note deleted", "Undo", undo)
