"""The simulated phone of the android rows: layout, touches, what its apps do.

In: `tools/record/phone/*.py`; a phone with a few stored items in every app. Each test plays lines of a
script on it and reads the screen.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.android_agent import Agent
from tools.record.android import find
from tools.record.phone.alarms import repeat
from tools.record.phone.view import View, column, cut, fab, label, path_to, place, scrolling

# Layout and touch.


def test_views_are_laid_out_and_cut() -> None:
    rows = [label(f"row {n}", height=100) for n in range(5)]
    listed = scrolling(rows, "list")
    root = column(label("bar", height=50), listed, fab("add", "add", lambda: None), cls="FrameLayout")
    place(root, (0, 100, 400, 500), {"list": 1000})
    assert listed.bounds == (0, 150, 400, 500)
    assert (listed.offset, listed.hidden, "scrollable" in listed.flags) == (150, 150, True)
    assert [row.bounds for row in rows[1:3]] == [(0, 150, 400, 200), (0, 200, 400, 300)]
    assert rows[0] not in [view for view, _ in root.walk()]
    assert root.children[-1].bounds == (211, 311, 358, 458)


def test_a_grid_begins_in_its_column() -> None:
    days = [View("View", str(n), height=10) for n in range(1, 4)]
    grid = column(*days, flow="grid", lead=5)
    place(grid, (0, 0, 70, 20), {})
    assert [day.bounds for day in days] == [(50, 0, 60, 10), (60, 0, 70, 10), (0, 10, 10, 20)]


rectangles = st.tuples(*[st.integers(0, 3000)] * 4)


@given(rectangles, rectangles)
def test_what_is_cut_lies_inside(inner: tuple[int, int, int, int], outer: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = cut(inner, outer)
    assert left <= right and top <= bottom
    if left < right and top < bottom:
        assert left >= outer[0] and top >= outer[1] and right <= outer[2] and bottom <= outer[3]


def test_a_tap_takes_the_view_on_top() -> None:
    below, above = View("View", "below"), View("View", "above")
    root = View("FrameLayout", children=[below, above])
    for view in (root, below, above):
        view.bounds = (0, 0, 10, 10)
    assert path_to(root, 5, 5) == [root, above]
    assert path_to(root, 10, 5) == []


# The phone.


def test_back_closes_keyboard_then_screen_then_app() -> None:
    agent = Agent("Notes")
    agent.do({"tap": "action_search"})
    assert agent.phone.keyboard
    searching = agent.do({"press": "back"})
    assert not agent.phone.keyboard and "focused" in searching
    assert 'text="Notes"' in agent.do({"press": "back"})
    assert "org.example.launcher" in agent.do({"press": "back"})
    assert "org.example.launcher" in agent.do({"press": "back"})


def test_toasts_and_snackbars_live_for_one_screen() -> None:
    agent = Agent("Notes")
    pinned = agent.do({"tap": "Clay"}, {"tap": "action_pin"})
    assert 'text="Pinned" res="android:id/message"' in pinned
    assert "android:id/message" not in agent.do({"wait": True})
    deleted = agent.do({"tap": "action_delete"}, {"tap": "Delete"})
    assert "Note deleted" in deleted
    assert "Note deleted" not in agent.do({"wait": True})


def test_a_dialog_closes_by_a_tap_beside_it_but_a_permission_does_not() -> None:
    agent = Agent("Contacts")
    agent.do({"tap": "Shop 03"}, {"tap": "action_delete"})
    assert "Delete contact?" not in agent.do({"tap": [20, 300]})
    asked = agent.do({"tap": "call_button"}, {"tap": [20, 300]}, {"press": "back"})
    assert "org.example.permissions:id/alertTitle" in asked
    assert "needs the permission" in agent.do({"tap": "Don't allow"})
    assert "Calling…" in agent.do({"tap": "call_button"}, {"tap": "Allow"})
    agent.do({"tap": "end_call"})
    assert "Calling…" in agent.do({"tap": "call_button"})


def test_a_dialog_stands_in_the_middle_with_its_buttons_at_the_right_end() -> None:
    agent = Agent("Contacts")
    agent.do({"tap": "Shop 03"}, {"tap": "action_delete"})
    bounds = {entry.view.res: entry.view.bounds for entry in agent.screen.entries}
    assert bounds["alertTitle"] == (116, 1039, 964, 1097)
    assert bounds["android:id/message"] == (116, 1097, 964, 1213)  # two lines
    assert (bounds["android:id/button2"][0], bounds["android:id/button1"][2]) == (532, 964)


def test_a_snackbar_lifts_the_round_button() -> None:
    agent = Agent("Notes")
    low = find("add_note", agent.screen).view.bounds
    agent.do({"tap": "Clay"}, {"tap": "action_delete"}, {"tap": "Delete"})
    high = find("add_note", agent.screen).view.bounds
    assert [after - before for before, after in zip(low, high, strict=True)] == [0, -147, 0, -147]


def test_nothing_happens_without_cursor_on_a_disabled_row_and_on_empty_space() -> None:
    agent = Agent("Settings", "state")
    before = agent.do({"tap": "Date and time"})
    assert agent.do({"tap": "Time zone"}) == before
    assert agent.do({"type": "x"}) == before
    assert agent.do({"tap": [540, 2000]}) == before


def test_a_killed_app_keeps_what_is_stored_and_loses_drafts() -> None:
    agent = Agent("Shelf", "tree")
    agent.do({"tap": "Select Looms"}, {"tap": "renew"}, {"tap": "Select Looms"}, {"kill": True})
    text = agent.do({"start": "org.example.shelf/.MainActivity"})
    assert "Due 10 Apr 2026 · renewed once" in text
    assert "checked" not in text.replace("checkable", "")


def test_the_clock_moves_with_the_actions_and_follows_zone_and_format() -> None:
    agent = Agent("Settings")
    assert 'text="9:00 AM"' in agent.screen.text
    agent.do({"tap": "Date and time"}, {"tap": "Use 24-hour format"}, {"tap": "Set time zone automatically"})
    text = agent.do({"tap": "Time zone"}, {"tap": "Riga (GMT+2)"}, *[{"wait": True}] * 8)
    assert 'text="11:01"' in text


# The apps.


def test_notes_are_stored_in_order_and_empty_ones_thrown_away() -> None:
    agent = Agent("Notes")
    text = agent.do({"tap": "add_note"}, {"press": "back"}, {"press": "back"})
    assert "Empty note discarded" in text
    agent.do(
        {"tap": "Clay"}, {"type": ", grogged", "into": "edit_body"}, {"press": "back"}, {"press": "back"}
    )
    titles = [entry.view.text for entry in agent.screen.entries if entry.view.res == "note_title"]
    assert titles == ["Kiln", "Clay", "Glaze"]
    agent.do({"tap": "Clay"}, {"tap": "action_delete"}, {"tap": "Delete"}, {"tap": "Undo"})
    again = [entry.view.text for entry in agent.screen.entries if entry.view.res == "note_title"]
    assert again == titles


@pytest.mark.parametrize(
    ("number", "accepted"),
    [("0555 0142", True), ("+351 5550 142", True), ("05550-142", False), ("0555", False), ("", False)],
)
def test_contacts_check_the_number(number: str, accepted: bool) -> None:
    agent = Agent("Contacts")
    form = [{"type": "Weir", "into": "field_name"}, {"type": number, "into": "field_phone"}]
    text = agent.do({"tap": "add_contact"}, *form, {"tap": "action_save"})
    assert ("Contact saved" in text, "field_phone_error" in text) == (accepted, not accepted)


def test_a_changed_contact_is_not_left_without_a_question() -> None:
    agent = Agent("Contacts")
    agent.do(
        {"tap": "Shop 03"}, {"tap": "action_edit"}, {"type": " East", "into": "field_name"}, {"press": "back"}
    )
    assert "Discard changes?" in agent.do({"press": "back"})
    assert 'text="Shop 03 East"' in agent.do({"tap": "Keep editing"})
    assert 'text="Shop 03" res="org.example.contacts:id/detail_name"' in agent.do(
        {"press": "back"}, {"tap": "Discard"}
    )


@pytest.mark.parametrize(
    ("hour", "minute", "answer"),
    [
        ("24", "0", "The hour must be a number from 0 to 23"),
        ("7", "x", "The minute must be a number from 0 to 59"),
        ("8", "30", "Rings in 23 h 30 min"),
        ("9", "0", "Rings in 1 d"),
        ("9", "45", "Rings in 45 min"),
    ],
)
def test_alarms_check_the_time_and_count_to_it(hour: str, minute: str, answer: str) -> None:
    agent = Agent("Alarms")
    agent.do({"tap": "add_alarm"}, {"type": hour, "into": "hour"}, {"type": minute, "into": "minute"})
    assert f'text="{answer}"' in agent.do({"press": "back"}, {"tap": "save_button"})


def test_days_in_words() -> None:
    assert [repeat(days) for days in ([], ["Sat", "Sun"], ["Mon", "Wed"])] == ["Once", "Weekend", "Mon, Wed"]


def test_a_long_press_opens_the_menu_of_an_alarm() -> None:
    agent = Agent("Alarms")
    text = agent.do({"hold": "alarm_row"}, {"tap": "Duplicate"})
    assert text.count('text="Oven"') == 2 and 'text="Off" desc="Oven, 6:05 AM"' in text


def test_agenda_checks_times_asks_about_overlaps_and_picks_a_day() -> None:
    agent = Agent("Agenda")
    form = [
        {"type": "Talk", "into": "title"},
        {"type": "11:00", "into": "start"},
        {"type": "11:00", "into": "end"},
    ]
    assert "The end must be after the start" in agent.do({"tap": "add_event"}, *form, {"tap": "action_save"})
    asked = agent.do({"type": "11:30", "into": "end", "clear": True}, {"tap": "action_save"})
    assert "“Fair” is at 10:00 AM – 12:00 PM on that day." in asked
    agent.do({"tap": "Back"}, {"tap": "date_button"}, {"tap": "Next month"}, {"tap": "5"}, {"tap": "OK"})
    assert "Saved for Sunday, 5 April 2026" in agent.do({"tap": "action_save"})


def test_the_library_renews_what_it_may_and_reserves() -> None:
    agent = Agent("Shelf", "tree")
    before = agent.screen.text
    assert agent.do({"tap": "renew"}) == before
    text = agent.do({"tap": "Select Looms"}, {"tap": "Select Felt"}, {"tap": "renew"})
    assert "1 loan renewed" in text and "“Felt” has been renewed twice already." in text
    text = agent.do({"tap": "OK"}, {"tap": "tab_catalogue"}, {"tap": "Silk"}, {"tap": "reserve"})
    assert "Reserved, number 1 in the queue" in text and "Reserved by you, 1 waiting" in text
