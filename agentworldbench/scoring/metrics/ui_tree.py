"""Metrics of screens and pages: what elements there are, what changed, what they hold, where they stand.

A text is read by one of three readers (`ui_android`, `ui_os`, `ui_playwright`): by the one that finds
most in the reference, and the prediction and the observation before by the same. So a state block that
stands in another wrapping than a response is compared by its nodes. All sets are multisets; equal nodes
are matched in their order. A prediction that is not of the reader's form is unparsable.
"""

from __future__ import annotations

from typing import Final

from agentworldbench.scoring.metrics.base import Metric, Unparsable
from agentworldbench.scoring.metrics.change import changed_f1
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1
from agentworldbench.scoring.metrics.ui_android import read_phone
from agentworldbench.scoring.metrics.ui_nodes import Reader, Screen, overlap
from agentworldbench.scoring.metrics.ui_os import read_table
from agentworldbench.scoring.metrics.ui_playwright import read_playwright

READERS: Final[dict[Reader, str]] = {
    read_playwright: "an answer in the form of Playwright-MCP",
    read_table: "an accessibility table",
    read_phone: "a list of screen elements",
}
"""Each reader, and what it reads in words."""

Value = float | Unparsable


def _reader(facts: Facts) -> Reader | None:
    """The reader that finds most in the reference; None where none knows its form."""
    text = facts.masked_reference
    found = {reader: facts.once(reader, text) for reader in READERS}
    best = max(found, key=lambda reader: (found[reader].known, len(found[reader].nodes)))
    return best if found[best].known else None


def _reference(facts: Facts) -> Screen:
    """The reference, read; an empty screen where no reader knows its form."""
    reader = _reader(facts)
    return Screen() if reader is None else facts.once(reader, facts.masked_reference)


def _before(facts: Facts) -> Screen | None:
    """The observation before the action, where there is one of the reference's form."""
    reader = _reader(facts)
    if reader is None or facts.previous is None:
        return None
    screen = facts.once(reader, facts.mask(facts.previous))
    return screen if screen.known else None


def _predicted(facts: Facts, prediction: str) -> Screen | Unparsable:
    """The prediction, read as the reference is."""
    reader = _reader(facts)
    assert reader is not None, "metrics of screens are applied only where the reference can be read"
    screen = facts.once(reader, facts.mask(prediction))
    return screen if screen.known else Unparsable(f"not {READERS[reader]}")


def screens(facts: Facts, prediction: str) -> tuple[Screen | None, Screen, Screen] | None:
    """The screen before the action, the predicted and the real one, as the metrics read them; None where the
    reference or the prediction is of no known form."""
    predicted = None if _reader(facts) is None else _predicted(facts, prediction)
    return (
        None
        if predicted is None or isinstance(predicted, Unparsable)
        else (_before(facts), predicted, _reference(facts))
    )


def nodes_changed(facts: Facts) -> bool:
    """The reference shows elements, and others than the observation before."""
    before, reference = _before(facts), _reference(facts)
    return before is not None and bool(reference.nodes) and before.facts != reference.facts


def active_change_f1(facts: Facts, prediction: str) -> Value:
    """`changed_f1` of nodes (role, name, value, state)."""
    screen, before = _predicted(facts, prediction), _before(facts)
    if isinstance(screen, Unparsable):
        return screen
    assert before is not None, "active_change_f1 is applied only where a previous screen exists"
    return changed_f1(before.facts, _reference(facts).facts, screen.facts)


def shows_elements(facts: Facts) -> bool:
    """The reference shows elements of a tree, and so did the observation before, where there was one.

    Where the tree has to be made from nothing, all of it was added, and `active_change_f1` says all.
    """
    before = _before(facts)
    return _reference(facts).has_tree and (before is None or before.has_tree)


def node_f1(facts: Facts, prediction: str) -> Value:
    """F1 of the kinds of elements: how many of which role."""
    screen = _predicted(facts, prediction)
    if isinstance(screen, Unparsable):
        return screen
    return multiset_f1(screen.roles, _reference(facts).roles)


def names_page(facts: Facts) -> bool:
    """The reference says which page, app or windows it shows."""
    return bool(_reference(facts).page)


def page_identity(facts: Facts, prediction: str) -> Value:
    """Share of what names the reference's page (url, title; app, activity; windows) that is equal."""
    screen = _predicted(facts, prediction)
    if isinstance(screen, Unparsable):
        return screen
    page = _reference(facts).page
    return sum(part in screen.page for part in page) / len(page)


def shows_focus(facts: Facts) -> bool:
    """The reference or the observation before says what has the focus."""
    before = _before(facts)
    return bool(_reference(facts).focused or (before is not None and before.focused))


def focus_match(facts: Facts, prediction: str) -> Value:
    """F1 of what has the focus: no more than one element, as a rule."""
    screen = _predicted(facts, prediction)
    if isinstance(screen, Unparsable):
        return screen
    return multiset_f1(screen.focused, _reference(facts).focused)


def holds_values(facts: Facts) -> bool:
    """The reference has a field, or another node that holds a value."""
    return bool(_reference(facts).values)


def value_match(facts: Facts, prediction: str) -> Value:
    """F1 of (role, name, value) over fields and other nodes that hold a value."""
    screen = _predicted(facts, prediction)
    if isinstance(screen, Unparsable):
        return screen
    return multiset_f1(screen.values, _reference(facts).values)


def has_bounds(facts: Facts) -> bool:
    """An element of the reference has bounds."""
    return bool(_reference(facts).boxes)


def bounds_iou(facts: Facts, prediction: str) -> Value:
    """Sum of intersection over union of the nodes of equal role and name, over the reference's nodes with bounds."""
    screen = _predicted(facts, prediction)
    if isinstance(screen, Unparsable):
        return screen
    boxes, seen = _reference(facts).boxes, screen.boxes
    shared = sum(
        overlap(one, other)
        for key, places in boxes.items()
        for one, other in zip(places, seen.get(key, ()), strict=False)
    )
    return shared / sum(map(len, boxes.values()))


METRICS: Final[dict[str, Metric]] = {
    "active_change_f1": Metric(active_change_f1, nodes_changed),
    "node_f1": Metric(node_f1, shows_elements),
    "page_identity": Metric(page_identity, names_page),
    "focus_match": Metric(focus_match, shows_focus),
    "value_match": Metric(value_match, holds_values),
    "bounds_iou": Metric(bounds_iou, has_bounds),
}
