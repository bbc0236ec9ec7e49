"""Reader of a browser's answers in the form of Playwright-MCP.

A snapshot line is `- role "name" [state] [ref=e1]: text`; a key or a text with signs of YAML is quoted;
children stand indented below. `- /url: …` and the like are nodes of their own. What is told beside the
snapshot (errors, results, dialogs, tabs, console, events) gives a node for each line, with the heading
in angle brackets as its role; the code that was run follows from the action and gives none. Older
answers (`### Page state`, `- Page URL:` without a heading), bare trees and snapshots of changes
(`<changed>`, `[unchanged]`) are read the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentworldbench.scoring.metrics.ui_nodes import Node, Screen, states

FIELDS: Final = frozenset(("textbox", "searchbox", "combobox", "spinbutton", "slider"))
"""Roles of things to be filled in."""

_TOLD: Final = frozenset(
    (
        "result", "error", "modal state", "open tabs", "events", "new console messages", "console messages",
        "downloads", "paused",
    )
)  # fmt: skip
"""Headings below which plain lines are told."""
_HEADINGS: Final = _TOLD | {"ran playwright code", "page", "page state", "snapshot", "page snapshot"}
"""What shows that an answer is of this form; below the others, and above them all, a line may be a node."""

_HEADING = re.compile(r"#{2,4} (\S.{0,60})$")
_PAGE = re.compile(r"- Page (URL|Title): ?(.*)$")
_INDEX = re.compile(r"^\d{1,6}: ")
_ROLE = re.compile(r"/?[a-z][\w-]{0,40}")
_STRING = re.compile(r' "((?:[^"\\]|\\.)*)"')
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_ATTRIBUTE = re.compile(r" \[([^\]\n]{1,200})\]")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))")
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def read_playwright(text: str) -> Screen:
    """Nodes of the snapshot and of what is told beside it; URL and title of the page."""
    nodes: list[Node | None] = []
    page: dict[str, str] = {}
    known = False
    # A text of many lines has many equal ones.
    made: dict[tuple[str, str], Node | None] = {}
    for heading, line in _lines(text):
        if not line:
            known = known or heading in _HEADINGS
        elif line.startswith("- Page ") and (found := _PAGE.match(line)):
            page.setdefault(found.group(1).lower(), found.group(2))
        else:
            if (heading, line) not in made:
                made[heading, line] = _read(heading, line)
            nodes.append(made[heading, line])
    shown = tuple(node for node in nodes if node is not None)
    return Screen(shown, tuple(page.items()), known=known or bool(shown or page))


def _read(heading: str, line: str) -> Node | None:
    """A line of the snapshot, or one that is told beside it, without its list mark or index."""
    if heading in _TOLD:
        told = _INDEX.sub("", line.lstrip("- "))
        return Node(f"<{heading}>", told) if told else None
    node = _node(line)
    if node is None and heading == "page" and line.startswith("- "):
        return Node("<page>", line[2:])
    return node


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """(heading above, line) without fences and code; a heading itself comes with an empty line."""
    heading, code = "", False
    for line in text.split("\n"):
        if line.startswith("```"):
            code = not code and line.startswith(("```js", "```javascript", "```ts"))
        elif code or not line:
            continue
        elif line.startswith("##") and (found := _HEADING.match(line)):
            heading = found.group(1).rstrip(":").lower()
            yield heading, ""
        else:
            yield heading, line


def _node(line: str) -> Node | None:
    """The node of one snapshot line; None where the line is none."""
    body = line.lstrip(" ")
    if not body.startswith("- "):
        return None
    body = body[2:].removeprefix("<changed> ")
    if quoted := _QUOTED.match(body):
        key, rest = quoted.group(1).replace("''", "'"), body[quoted.end() :]
    else:
        key, rest = body, ""
    role = _ROLE.match(key)
    if role is None:
        return None
    at, name, words = role.end(), "", []
    if string := _STRING.match(key, at):
        at, name = string.end(), _unescaped(string.group(1))
    while attribute := _ATTRIBUTE.match(key, at):
        at = attribute.end()
        words.append(attribute.group(1))
    rest = key[at:] + rest
    if rest not in ("", ":") and not rest.startswith(": "):
        return None
    value = _value(rest[2:])
    return Node(role.group(), name, value, states(words), None, role.group() in FIELDS)


def _value(text: str) -> str:
    """A YAML text, quoted or not."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _unescaped(text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2)
    return chr(int(code, 16)) if code else _LETTERS.get(match.group(3), match.group(3))
