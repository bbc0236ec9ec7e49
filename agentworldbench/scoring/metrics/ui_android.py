"""Reader of a phone's screen in its three forms; they may be mixed, and stand inside other text.

    [  0] | android.widget.Button | text="Save" res="org.example:id/save" | bounds=[0,0][90,60] | clickable
    1. Button: "org.example:id/save", "Save" - (0,0,90,60)
    - Button id="org.example:id/save" text="Save" flags=clickable bounds=0,0,90,60

The third form is also read as elements (`<button id=3 bound_box=0,0,90,60>Save</button>`). Above the
second and third stand bullets (`• **Keyboard:** Hidden`): each is a node, App and Activity name the page,
`Focused Element` the focus. A role is the last part of the class. A name is the resource id and the
label; what an input holds (its text, unless that is its hint) and what a switch shows (On, Off) is its
value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentworldbench.scoring.metrics.ui_nodes import Node, Screen, box, states

INPUTS: Final = (
    "EditText",
    "AutoCompleteTextView",
    "SeekBar",
    "ProgressBar",
    "RatingBar",
    "NumberPicker",
    "input",
)
"""Endings of classes whose text is a value."""
SWITCHES: Final = ("Switch", "SwitchCompat", "ToggleButton", "CheckBox", "RadioButton", "checkbox")
_SHOWN: Final = frozenset(("on", "off", "checked", "not checked"))

_LISTED = re.compile(r"\[ *\d{1,6}\] \| ")
_NUMBERED = re.compile(r" *\d{1,6}\. ?([A-Za-z_$][\w.$]{0,120}):(?: |$)")
_TREE = re.compile(r" *- ([A-Z][\w.$]{0,120})(?= [\w-]{1,40}=)")
_ELEMENT = re.compile(
    r"[ -]*(?:\d{1,6}[.:] )?<([a-z][\w-]{0,40})\b(?=[^>\n]*?\b(?:id=['\"]?\d|bound_box=|bounds=))([^>\n]*)>"
)
_BULLET = re.compile(r"[•*-] \*\*([^*:\n]{1,60}):?\*\*:? ?(.*)$")
_ATTRIBUTE = re.compile(r'(?:^|(?<=" ))([a-z_-]{1,40})="')
_PAIR = re.compile(r"([\w-]{1,40})=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]*))")
_TAG = re.compile(r"<[^<>\n]{0,200}>")
_PACKAGE = re.compile(r"([\w.]{3,200}):id/")
_FORMS: Final[dict[str, tuple[re.Pattern[str], ...]]] = {
    **dict.fromkeys("0123456789", (_NUMBERED, _ELEMENT)),
    **dict.fromkeys("•*", (_BULLET,)),
    "[": (_LISTED,),
    "<": (_ELEMENT,),
    "-": (_TREE, _ELEMENT, _BULLET),
}
"""What a line may be, by its first character."""
_MOST_LINES: Final = 60
"""A label of more lines is not waited for."""


def read_phone(text: str) -> Screen:
    """Nodes of a screen in any of the three forms; app, activity and focus where they are told."""
    nodes: list[Node] = []
    page: dict[str, str] = {}
    focus: tuple[str, ...] | None = None
    # A text of many entries has many equal ones.
    made: dict[str, Node] = {}
    for form, entry in _entries(text):
        found = form.match(entry)
        assert found is not None, "an entry begins in its form"
        if form is not _BULLET:
            if entry not in made:
                made[entry] = _NODES[form](found, entry[found.end() :])
            nodes.append(made[entry])
            continue
        key, told = found.group(1).lower(), found.group(2).strip()
        nodes.append(Node(f"<{key}>", told))
        if key in ("app", "activity"):
            page.setdefault(key, told)
        elif key == "focused element" and focus is None:
            focus = (told,) if told.strip("'\"") else ()
    if not page and (package := _package(nodes)):
        page["app"] = package
    return Screen(tuple(nodes), tuple(page.items()), focus, known=bool(nodes))


def _entries(text: str) -> Iterator[tuple[re.Pattern[str], str]]:
    """(form, text) of bullets and elements; a label in quotes may run over several lines."""
    pending: list[str] = []
    form, quotes = _BULLET, 0
    for line in text.split("\n"):
        forms = _FORMS.get(line.lstrip(" ")[:1], ())
        if (begins := next((some for some in forms if some.match(line)), None)) is not None:
            if pending:
                yield form, "\n".join(pending)
            form, pending = begins, [line]
            quotes = 0 if form in (_BULLET, _ELEMENT) else line.count('"')
        elif pending:
            pending.append(line)
            quotes += line.count('"')
        if pending and (quotes % 2 == 0 or len(pending) > _MOST_LINES):
            yield form, "\n".join(pending)
            pending = []
    if pending:
        yield form, "\n".join(pending)


def _listed(found: re.Match[str], rest: str) -> Node:
    """`[  0] | class | text="…" res="…" | bounds=[…][…] | flags`; a label may hold ` | `."""
    cells = rest.split(" | ")
    last = max((at for at, cell in enumerate(cells) if cell.startswith("bounds=[")), default=len(cells))
    told = " | ".join(cells[1:last])
    attributes: dict[str, str] = {}
    end = len(told)
    for match in reversed(list(_ATTRIBUTE.finditer(told))):
        # Of one that stands twice, the first counts.
        attributes[match.group(1)] = told[match.end() : end].rstrip(" ").removesuffix('"')
        end = match.start()
    flags = " ".join(cells[last + 1 :]).split()
    return _made(cells[0], attributes, flags, cells[last] if last < len(cells) else "")


def _numbered(found: re.Match[str], rest: str) -> Node:
    """`1. Class: "resource id", "text" - (left,top,right,bottom)`; without an id the class stands there."""
    told, _, place = rest.rpartition("- (")
    if box(place) is None:
        told, place = rest, ""
    first, comma, second = told.strip().removeprefix('"').removesuffix('"').partition('", "')
    if comma or ":id/" in first or first.startswith(("android.", "androidx.")):
        attributes = {"res": first, "text": second}
    else:
        attributes = {"text": first}
    return _made(found.group(1), attributes, (), place)


def _branch(found: re.Match[str], rest: str) -> Node:
    """`- Class id="…" text="…" flags=…,… bounds=left,top,right,bottom`."""
    pairs = _pairs(rest)
    flags = pairs.get("flags", "").replace(",", " ").split()
    return _made(found.group(1), pairs, flags, pairs.get("bounds", ""))


def _element(found: re.Match[str], rest: str) -> Node:
    """`<button id=3 bound_box=…>label</button>`; the id is an index. Or `<node class="…" bounds="…" />`."""
    tag, pairs = found.group(1), _pairs(found.group(2))
    label = _TAG.sub(" ", rest.partition(f"</{tag}>")[0]).strip()
    attributes = {
        "text": label or pairs.get("text", ""),
        "res": pairs.get("resource-id", ""),
        "desc": pairs.get("alt") or pairs.get("content-desc") or "",
        "hint": pairs.get("hint", ""),
    }
    words = [f"{name}={value}" for name, value in pairs.items()]
    return _made(
        pairs.get("class") or tag, attributes, words, pairs.get("bound_box") or pairs.get("bounds") or ""
    )


_NODES: Final = {_LISTED: _listed, _NUMBERED: _numbered, _TREE: _branch, _ELEMENT: _element}


def _pairs(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _PAIR.finditer(text):
        found.setdefault(match.group(1), match.group(2) or match.group(3) or match.group(4) or "")
    return found


def _made(kind: str, told: Mapping[str, str], flags: Sequence[str], place: str) -> Node:
    role = kind.rsplit(".", 1)[-1]
    resource = told.get("res") or told.get("id") or told.get("resource-id") or ""
    text, hint = told.get("text", ""), told.get("hint", "")
    about = told.get("desc") or told.get("content-desc") or ""
    field = role.endswith(INPUTS)
    value = ""
    if field or (role in SWITCHES and text.lower() in _SHOWN):
        value, text = ("" if text == hint else text), hint
    labels = [label for label in dict.fromkeys((resource, text, about)) if label]
    return Node(role, "\t".join(labels), value, states(flags), box(place), field)


def _package(nodes: Sequence[Node]) -> str | None:
    """The package of the first element that belongs to an app: not to the system's bars, nor to a keyboard."""
    for node in nodes:
        found = _PACKAGE.match(node.name)
        if found and not re.search(r"^android$|systemui$|keyboard|inputmethod", found.group(1)):
            return found.group(1)
    return None
