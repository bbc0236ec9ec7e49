"""The accessibility tree of a desktop as a table, in the two shapes that desktop agents read.

In: the nodes that `reader.py` found (depth, role, name, text, attributes, box, states), in
document order. Out: a tab-separated table. Seven columns: top-left corners, quoting as in csv, the
two quote characters that stand for no text quoted once more. Four columns: centres, name and text
in one column, and only the panel and the program that holds the active window.

Kept is what an agent could use: a control, cell, icon or piece of text that is visible and showing,
has a name or a text, lies at a position that is not negative and has a size. The long table also
leaves out what cannot be operated: neither enabled nor editable, expandable or checkable.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

LONG_HEADER = ("tag", "name", "text", "class", "description", "position (top-left x&y)", "size (w&h)")
SHORT_HEADER = ("tag", "text", "position (center x & y)", "size (w & h)")
KEPT_TAGS = re.compile(
    r"document.*|.*(?:item|button|heading|label|scrollbar|searchbox|textbox|link|textfield|textarea|menu)"
    r"|alert|canvas|check-box|combo-box|entry|icon|image|paragraph|scroll-bar|section|slider|static"
    r"|table-cell|terminal|text"
)
SHELL = "xfce4-panel"
NO_TEXT = '""'


@dataclass(frozen=True)
class Node:
    """One accessible object; `box` is (left, top, width, height) on the screen, `app` its program."""

    app: str
    depth: int
    tag: str
    name: str
    text: str
    attributes: dict[str, str]
    box: tuple[int, int, int, int]
    states: frozenset[str]

    @property
    def centre(self) -> tuple[int, int]:
        """Where a click on the node goes."""
        left, top, width, height = self.box
        return left + width // 2, top + height // 2

    @property
    def shown(self) -> bool:
        """Visible and showing, at a place on the screen."""
        left, top, width, height = self.box
        return {"visible", "showing"} <= self.states and min(left, top) >= 0 and min(width, height) > 0


def nodes(raw: list[dict[str, Any]]) -> list[Node]:
    """Nodes from the reader's JSON; spaces of role names become hyphens."""
    return [
        Node(
            app=item["app"],
            depth=item["depth"],
            tag=item["role"].replace(" ", "-") or "unknown",
            name=item["name"],
            text=item["text"].replace("\ufffc", "").replace("\ufffd", ""),
            attributes=item["attributes"],
            box=tuple(item["box"]),
            states=frozenset(item["states"]),
        )
        for item in raw
    ]


def is_kept(node: Node) -> bool:
    """Does the node belong into a table of either shape?"""
    return bool(KEPT_TAGS.fullmatch(node.tag) and node.shown and (node.name or node.text))


def long_table(tree: list[Node]) -> str:
    """The table of seven columns, of all programs."""
    usable = {"enabled", "editable", "expandable", "checkable"}
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
    writer.writerow(LONG_HEADER)
    for node in tree:
        if is_kept(node) and node.states & usable:
            left, top, width, height = node.box
            kinds = [node.attributes.get(key, "") for key in ("class", "description")]
            place = [f"({left}, {top})", f"({width}, {height})"]
            writer.writerow([node.tag, node.name, node.text or NO_TEXT, *kinds, *place])
    return stream.getvalue().rstrip("\n")


def short_table(tree: list[Node]) -> str:
    """The table of four columns, of the panel and the active program; line breaks become `\\n`."""
    active = {node.app for node in tree if node.depth == 1 and "active" in node.states}
    lines = ["\t".join(SHORT_HEADER)]
    for node in tree:
        if is_kept(node) and node.app in active | {SHELL}:
            name, text = node.name.strip(), node.text.strip()
            label = f"{name} ({text})" if name and text and name != text else text or name
            label = label.replace("\n", "\\n").replace("\t", " ")
            (x, y), (width, height) = node.centre, node.box[2:]
            lines.append(f"{node.tag}\t{label}\t({x}, {y})\t({width}, {height})")
    return "\n".join(lines)


TABLES = {7: long_table, 4: short_table}


def find(tree: list[Node], tag: str, label: str, number: int = 1) -> Node:
    """The shown node of role `tag` whose name or text is `label` (empty: any); the number-th of several.

    Raises LookupError, with the labels that there are, when it is not on the screen.
    """
    candidates = [node for node in tree if node.tag == tag and node.shown]
    matches = [node for node in candidates if label in ("", node.name.strip(), node.text.strip())]
    if len(matches) < number:
        seen = sorted({node.name.strip() or node.text.strip() for node in candidates})
        raise LookupError(f"{number} x {tag} {label!r} is not on the screen; there: {seen}")
    return matches[number - 1]
