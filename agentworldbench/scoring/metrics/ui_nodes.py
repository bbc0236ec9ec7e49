"""What a snapshot of a screen or page is read as: nodes, and what names the page.

The readers of the three snapshot domains (`ui_android`, `ui_os`, `ui_playwright`) turn a text into a
`Screen`. They read line by line, never raise, and take time that grows with the length of the text.
Numbers that only count or point (list indices, refs) are left out of nodes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

STATES: Final = frozenset(
    (
        "active", "checked", "collapsed", "current", "disabled", "expanded", "focused", "invalid", "level", "pressed",
        "selected",
    )
)  # fmt: skip
"""What counts as state; capabilities (clickable, editable, scrollable, cursor …) do not."""

FOCUS: Final = frozenset(("active", "focused"))


class Node(NamedTuple):
    """One element: what it is, what it is called, what it holds, and how it stands."""

    role: str
    name: str = ""
    value: str = ""
    state: tuple[str, ...] = ()
    bounds: Box | None = None
    field: bool = False
    """Something to be filled in, so that an empty value counts as one."""


Key = tuple[str, str]
Fact = tuple[str, str, str, tuple[str, ...]]


@dataclass(frozen=True)
class Screen:
    """A text as one of the readers understands it."""

    nodes: tuple[Node, ...] = ()
    page: tuple[tuple[str, str], ...] = ()
    """What names the page: (`url` | `title` | `app` | `activity` | `windows`, text), each once."""
    focus: tuple[str, ...] | None = None
    """What has the focus where a heading says so; None where only nodes do."""
    known: bool = False
    """Whether the text is of the reader's form at all."""

    @cached_property
    def has_tree(self) -> bool:
        """Whether it shows an element, not only what is told beside one."""
        return any(not node.role.startswith("<") for node in self.nodes)

    @cached_property
    def roles(self) -> Counter[str]:
        """Multiset of roles."""
        return Counter(node.role for node in self.nodes)

    @cached_property
    def facts(self) -> Counter[Fact]:
        """Multiset of (role, name, value, state)."""
        return Counter((node.role, node.name, node.value, node.state) for node in self.nodes)

    @cached_property
    def values(self) -> Counter[tuple[str, str, str]]:
        """Multiset of (role, name, value) of the nodes that hold a value or could."""
        return Counter((node.role, node.name, node.value) for node in self.nodes if node.value or node.field)

    @cached_property
    def focused(self) -> Counter[str]:
        """What has the focus: the text of a heading, and role and name of each focused node."""
        found = Counter(f"{node.role}\n{node.name}" for node in self.nodes if FOCUS.intersection(node.state))
        found.update(self.focus or ())
        return found

    @cached_property
    def boxes(self) -> dict[Key, list[Box]]:
        """Bounds by (role, name), equal ones in their order."""
        found: dict[Key, list[Box]] = defaultdict(list)
        for node in self.nodes:
            if node.bounds is not None:
                found[node.role, node.name].append(node.bounds)
        return found


Reader = Callable[[str], Screen]


def states(words: Sequence[str]) -> tuple[str, ...]:
    """The words that name a state, sorted; `checked=true` is `checked`, `checked=false` is none."""
    if not words:
        return ()
    found = set()
    for word in words:
        name, _, value = word.partition("=")
        if name in STATES and value.lower() != "false":
            found.add(name if value.lower() in ("", "true") else word)
    return tuple(sorted(found))


_NUMBERS = re.compile(r"-?\d{1,7}(?:\.\d{1,7})?")


def box(text: str) -> Box | None:
    """Four numbers in a text as bounds; None where there are fewer or more."""
    numbers = _NUMBERS.findall(text, 0, 200)
    if len(text) > 200 or len(numbers) != 4:
        return None
    return float(numbers[0]), float(numbers[1]), float(numbers[2]), float(numbers[3])


def overlap(one: Box, other: Box) -> float:
    """Intersection over union of two boxes; equal ones have 1, also without area."""
    if one == other:
        return 1.0
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    both = wide * high
    return min(1.0, both / (_area(one) + _area(other) - both))


def _area(one: Box) -> float:
    return max(0.0, one[2] - one[0]) * max(0.0, one[3] - one[1])
