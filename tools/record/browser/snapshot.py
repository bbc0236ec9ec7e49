"""Actions as text, and elements named by what a reader sees instead of by number.

In: a script's tool call whose `ref` says what is meant (`button "Sign in"`), and the snapshots so far.
Out: the call with the number that the last snapshot gives the element, and its text
`browser_click(element="Sign in", ref="e12")`.

A name is a role and, in double quotes, the accessible name or its beginning with `…` at the end;
without quotes any name fits. `>` goes down: `row "T-07…" > link "Lend"`. Exactly one
element of the snapshot must fit. A plain number (`e12`) is taken as it stands: an agent may err.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

SNAPSHOT = re.compile(r"^### Snapshot\n```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
NODE = re.compile(r'(?P<indent> *)- (?P<role>[a-z]+)(?: "(?P<name>(?:[^"\\]|\\.)*)")?(?P<rest>.*)')
REF = re.compile(r"\[ref=(e\d+)\]")
STEP = re.compile(r'(?P<role>[a-z]+)(?: "(?P<name>[^"]*)")?')
NUMBER = re.compile(r"e\d+")
REF_KEYS = ("ref", "startRef", "endRef")


class ElementError(Exception):
    """A script names an element that the snapshot does not hold exactly once."""


@dataclass(frozen=True)
class Node:
    """One element of a snapshot; `depth` is its indentation."""

    depth: int
    role: str
    name: str
    ref: str


def snapshot_of(observation: str) -> str | None:
    """The page in an answer of the server; None when the answer shows none."""
    found = SNAPSHOT.search(observation)
    return found.group(1) if found and found.group(1).strip() else None


def nodes(snapshot: str) -> list[Node]:
    """The elements of a snapshot in order, those without a number included."""
    found = []
    for line in snapshot.splitlines():
        if match := NODE.fullmatch(_unquoted(line)):
            ref = REF.search(match["rest"])
            name = re.sub(r"\\(.)", r"\1", match["name"] or "")
            found.append(Node(len(match["indent"]), match["role"], name, ref.group(1) if ref else ""))
    return found


def find_ref(snapshot: str, wanted: str) -> str:
    """The number of the one element that `wanted` names."""
    if NUMBER.fullmatch(wanted):
        return wanted
    found = nodes(snapshot)
    places = list(range(len(found)))
    for number, step in enumerate(wanted.split(" > ")):
        if number:
            places = [place for start in places for place in _below(found, start)]
        places = [place for place in dict.fromkeys(places) if _fits(found[place], step)]
    refs = [found[place].ref for place in places]
    if len(refs) != 1 or not refs[0]:
        raise ElementError(f"{wanted} names {len(refs)} elements of the snapshot:\n{snapshot}")
    return refs[0]


def with_refs(arguments: dict[str, Any], snapshot: str) -> dict[str, Any]:
    """`arguments` with every named element replaced by its number, in form fields too."""
    filled: dict[str, Any] = {}
    for key, value in arguments.items():
        if key in REF_KEYS:
            filled[key] = find_ref(snapshot, value)
        elif key == "fields":
            filled[key] = [with_refs(field, snapshot) for field in value]
        else:
            filled[key] = value
    return filled


def action_text(tool: str, arguments: dict[str, Any]) -> str:
    """The call as the agent writes it: named arguments with JSON values."""
    pairs = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{tool}({', '.join(pairs)})"


def _unquoted(line: str) -> str:
    """A line without the single quotes that YAML puts around a key with odd characters."""
    quoted = re.fullmatch(r"( *- )'(.*)'(:.*)?", line)
    return f"{quoted[1]}{quoted[2].replace(chr(39) * 2, chr(39))}{quoted[3] or ''}" if quoted else line


def _below(found: list[Node], start: int) -> list[int]:
    end = start + 1
    while end < len(found) and found[end].depth > found[start].depth:
        end += 1
    return list(range(start + 1, end))


def _fits(node: Node, step: str) -> bool:
    wanted = STEP.fullmatch(step)
    if not wanted:
        raise ElementError(f"not a role with a name in double quotes: {step}")
    if node.role != wanted["role"]:
        return False
    name = wanted["name"]
    if name is None or node.name == name:
        return True
    return name.endswith("…") and node.name.startswith(name[:-1])
