"""Reader of the desktop's accessibility table: seven or four columns, separated by tabs.

Seven columns: tag, name, text, class, description, position (top left), size. Four: tag, text,
position (centre), size. A cell in double quotes may run over several lines; six double quotes are an
empty text. The name is the name (and the description, where there is one), the value is the text
where it says more than the name; in four columns the text of a field is its value and any other text
is a name. The class column may hold words of state (`current`, `selected`), nothing else tells one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentworldbench.scoring.metrics.ui_nodes import Node, Screen, states

FIELDS: Final = frozenset(
    ("text", "entry", "password-text", "spin-button", "slider", "terminal", "paragraph")
)
"""Tags of things that hold a text or number of their own."""

_HEAD = re.compile(r"tag\t(?:name\t)?text\t")
_BEGIN = re.compile(r"[a-z][\w-]{0,40}\t")
_PAIR: Final = r"\((-?\d{1,7}(?:\.\d{1,7})?), ?(-?\d{1,7}(?:\.\d{1,7})?)\)"
_END = re.compile(rf"\t{_PAIR}\t{_PAIR}$")
_MOST_LINES: Final = 400
"""A cell of more lines is not waited for."""
_BAR: Final = 40.0
"""The bar at the upper edge, which names the open windows, is at most this high."""
_BAR_TAGS: Final = ("menu", "toggle-button")


def read_table(text: str) -> Screen:
    """Nodes of a table; the entries of the bar at the upper edge name the windows."""
    nodes = []
    known = False
    for row in _rows(text):
        if _HEAD.match(row):
            known = True
        elif (node := _node(row)) is not None:
            nodes.append(node)
    bar = [
        f"{node.role}\t{node.name}"
        for node in nodes
        if node.role in _BAR_TAGS and node.bounds and node.bounds[1] <= 0 and node.bounds[3] <= _BAR
    ]
    page = (("windows", "\n".join(bar)),) if bar else ()
    return Screen(tuple(nodes), page, known=known or bool(nodes))


def _rows(text: str) -> Iterator[str]:
    """Rows of the table: each ends in a line with position and size, and may begin lines before."""
    pending: list[str] = []
    quotes = 0
    for line in text.split("\n"):
        begins, ends = _BEGIN.match(line), line.endswith(")") and _END.search(line, max(0, len(line) - 100))
        if _HEAD.match(line) or (begins and ends):
            pending = []
            yield line
        elif begins and quotes % 2 == 0:
            pending, quotes = [line], line.count('"')
        elif pending:
            pending.append(line)
            quotes += line.count('"')
            if ends:
                yield "\n".join(pending)
            if ends or len(pending) > _MOST_LINES:
                pending = []
        if not pending:
            quotes = 0


def _node(row: str) -> Node | None:
    """The node of a row; None where it has another number of columns."""
    end = _END.search(row)
    assert end is not None, "rows end in position and size"
    tag, *cells = row[: end.start()].split("\t")
    x, y, width, height = map(float, end.groups())
    if len(cells) == 1:
        left, top = x - width / 2, y - height / 2
        bounds = (left, top, left + width, top + height)
        text = cells[0].strip()
        held = tag in FIELDS
        return Node(tag, "" if held else text, text if held else "", (), bounds, held)
    if len(cells) < 4:
        return None
    # A tab inside the text would make more cells.
    name, text, kind, about = cells[0].strip(), _plain("\t".join(cells[1:-2])), cells[-2], cells[-1].strip()
    value = "" if text == name else text
    label = f"{name}\t{about}" if about else name
    return Node(tag, label, value, states(kind.split()), (x, y, x + width, y + height), tag in FIELDS)


def _plain(cell: str) -> str:
    """The text of a cell without its quotes; two quotes alone are no text."""
    cell = cell.strip()
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        cell = cell[1:-1].replace('""', '"')
    return "" if cell == '""' else cell.strip()
