"""Reads what a tool gave back: opens the envelopes around it, unpacks JSON in strings, lists paths and values.

In: an observation. Out: a `Payload`, or `NotJson` with the reason. Envelopes are those of the Model Context
Protocol — a content part, a list of parts, a tool result with `content`, `structuredContent` and `isError`, a
JSON-RPC message — in any nesting, as JSON or as JSON in a string; and the command envelope of coding agents. What
they hold is the payload; their own keys count for the schema alone. A string in the payload that is JSON, or a
list or dict as Python prints it, is read as what it says; a raw line break in a JSON string is a line break. A
payload that stands twice, in `content` and in `structuredContent`, counts once: the larger count of every leaf
is kept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from agentworldbench.scoring.metrics.python_literal import read_literal
from agentworldbench.scoring.metrics.shell_envelope import read_shell_envelope

Leaf = tuple[str, str, Any]
"""Path, type and value; `[]` in a path is any position of a list. A text has one leaf a line."""

_PART_KEYS: Final = {"type", "text", "annotations", "meta", "_meta", "error"}
_RESULT_KEYS: Final = {"content", "structuredContent", "isError", "meta", "_meta"}
_WRAPPED: Final = {"result", "content"}
"""Keys under which servers put what is no object into structured content."""
_FENCE: Final = re.compile(r"```\w{0,10}\n(.*)\n```", re.DOTALL)
_TYPES: Final[dict[type, str]] = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number",
    type(None): "null",
}  # fmt: skip
_LEAST_DATA: Final = 64
"""Characters of a picture or sound; shorter ones are placeholders."""
_LONGEST_PATH: Final = 400


@dataclass(frozen=True)
class NotJson:
    """An observation that holds no JSON; `reason` says why."""

    reason: str


@dataclass(frozen=True)
class Flat:
    """A value as leaves, as paths with types, and its lists by path."""

    leaves: Counter[Leaf]
    schema: set[tuple[str, str]]
    lists: list[tuple[str, list[Any]]]


@dataclass
class Payload:
    """What an observation holds, and what its envelopes say.

    `raw` is the payload as a string before it was unpacked, None where it was never one. `flag` is `isError`, None
    where it is not given; `fault` marks an error of the protocol itself, `command` a command envelope.
    """

    value: Any
    raw: str | None = None
    structured: Any = None
    flag: bool | None = None
    fault: bool = False
    command: bool = False
    envelope: set[tuple[str, str]] = field(default_factory=set)
    flat: Flat = field(default_factory=lambda: Flat(Counter(), set(), []))

    def note(self, name: str, envelope: dict[str, Any]) -> None:
        """Keep the keys of an envelope for the schema."""
        self.envelope |= {(f"<{name}>.{key}", type_name(value)) for key, value in envelope.items()}


def read_payload(text: str) -> Payload | NotJson:
    """The payload of one observation."""
    found = _load(text)
    if isinstance(found, NotJson):
        fields = read_shell_envelope(text)
        if fields is None:
            return found
        payload = Payload(fields, command=True)
    else:
        payload = _opened(found)
    payload.flat = flatten(payload.value)
    if payload.structured is not None:
        payload.flat = _merged(payload, payload.structured)
    payload.flat.schema.update(payload.envelope)
    return payload


def _load(text: str) -> Any:
    """The object or list that the text is, or NotJson. A code fence around the whole is not part of it."""
    text = text.strip()
    if fence := _FENCE.fullmatch(text):
        text = fence.group(1).strip()
    if not text.startswith(("{", "[", '"')):
        return NotJson("not JSON: it begins with no bracket")
    try:
        found = json.loads(text, strict=False)
    except RecursionError:
        return NotJson("not JSON: nested too deeply")
    except ValueError as problem:
        return NotJson(f"not JSON: {str(problem)[:100]}")
    found = unpack(found) if isinstance(found, str) else found
    return found if isinstance(found, dict | list) else NotJson("not JSON: neither object nor list")


def unpack(text: str) -> Any:
    """The object or list that a string holds, else the string itself."""
    inner = text.strip()
    while inner[:1] == '"' == inner[-1:] and len(inner) > 1:
        try:
            again = json.loads(inner, strict=False)
        except (ValueError, RecursionError):
            return text
        inner = again.strip()
    ends = inner[:1] + inner[-1:]
    if ends not in ("{}", "[]", "()") or (ends == "()" and "," not in inner):
        return text
    try:
        return json.loads(inner, strict=False)
    except (ValueError, RecursionError):
        found = read_literal(inner)
    return text if found is None else found


def _opened(value: Any) -> Payload:
    """Opens envelopes from the outside to the inside."""
    payload = Payload(value)
    while kind := _envelope_kind(payload.value):
        value, payload.raw = payload.value, None
        if kind == "message":
            payload.note(kind, value)
            payload.fault = "error" in value
            payload.value = value["error"] if payload.fault else value["result"]
        elif kind == "result":
            payload.note(kind, value)
            if "isError" in value:
                payload.flag = bool(value["isError"]) or payload.flag is True
            payload.structured = value.get("structuredContent", payload.structured)
            payload.value = value["content"]
            if not payload.value:
                payload.value = payload.raw = ""
        elif kind == "parts" and len(value) > 1:
            for part in value:
                payload.note(part["type"], part)
            payload.value = [_part_value(part) for part in value]
        else:
            part = value[0] if kind == "parts" else value
            payload.note(part["type"], part)
            if "error" in part:
                payload.flag = bool(part["error"]) or payload.flag is True
            payload.value = _part_value(part)
            if isinstance(payload.value, str):
                payload.raw = payload.value
                payload.value = unpack(payload.raw)
    return payload


def _envelope_kind(value: Any) -> str:
    """Which envelope a value is; empty for none."""
    if isinstance(value, list):
        return "parts" if value and all(_is_part(item) for item in value) else ""
    if not isinstance(value, dict):
        return ""
    if "jsonrpc" in value and ("error" in value or "result" in value):
        return "message"
    content = value.get("content")
    if isinstance(content, list) and value.keys() <= _RESULT_KEYS:
        own = len(value) > 1 or (content and all(_is_part(item) for item in content))
        return "result" if own else ""
    return "part" if _is_part(value) else ""


def _is_part(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    match value.get("type"):
        case "text":
            return isinstance(value.get("text"), str) and value.keys() <= _PART_KEYS
        case "image" | "audio":
            return isinstance(value.get("data"), str)
        case "resource":
            return isinstance(value.get("resource"), dict)
        case "resource_link":
            return isinstance(value.get("uri"), str)
    return False


def _part_value(part: dict[str, Any]) -> Any:
    """What a content part holds. Pictures and sounds are known by their kind alone."""
    if part["type"] == "text":
        return part["text"]
    inner = part["resource"] if part["type"] == "resource" else part
    found = {
        key: value for key, value in inner.items() if key not in ("type", "annotations", "meta", "_meta")
    }
    for key in ("data", "blob"):
        if isinstance(found.get(key), str) and len(found[key]) >= _LEAST_DATA:
            found[key] = "<DATA>"
    return found


def type_name(value: Any) -> str:
    """The type of a JSON value; whole numbers and others are one type, since many programs print 8.0 as 8."""
    return _TYPES[type(value)]


def flatten(value: Any, root: str = "") -> Flat:
    """Leaves, schema and lists below `root`; strings that hold JSON are unpacked."""
    flat = Flat(Counter(), set(), [])
    leaves, schema = flat.leaves, flat.schema
    todo = [(root, value)]
    while todo:
        path, node = todo.pop()
        if isinstance(node, str):
            node = unpack(node)
        kind = type_name(node)
        schema.add((path, kind))
        if kind == "object" and node:
            todo.extend((_below(path, _step(key, path)), inner) for key, inner in node.items())
        elif kind == "array" and node:
            below = _below(path, "[]")
            flat.lists.append((below, node))
            todo.extend((below, inner) for inner in node)
        elif kind == "string":
            for line in text_lines(node):
                leaves[path, kind, line] += 1
        else:
            leaf = path, kind, _plain(node)
            # 8 and 8.0 are one leaf; it is a float if any of them is, whichever the list names first.
            count = leaves.pop(leaf, 0) if isinstance(node, float) else leaves[leaf]
            leaves[leaf] = count + 1
    return flat


def text_lines(text: str) -> list[str]:
    """Lines that are not blank, without blanks at their ends; a blank text is one empty line."""
    lines = [stripped for line in text.split("\n") if (stripped := line.rstrip())]
    return lines or [""]


def _plain(node: Any) -> Any:
    """A scalar as a value that equals itself; an empty container as text."""
    if isinstance(node, dict | list):
        return ""
    return "nan" if node != node else node


def _step(key: str, path: str) -> str:
    """What a key adds to a path; one with signs of paths in it is quoted, so that `{"a.b": 1}` is not `{"a": {"b": 1}}`."""
    if not key or "." in key or "[" in key:
        key = json.dumps(key)
    return f".{key}" if path else key


def _below(path: str, step: str) -> str:
    """The path one step down; a very long one as a hash, so that deep nesting stays linear."""
    path += step
    if len(path) <= _LONGEST_PATH:
        return path
    return f"#{blake2b(path.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def _merged(payload: Payload, structured: Any) -> Flat:
    """The payload with the structured content, which often repeats it, alone or under one key such as `result`."""
    choices = [structured]
    if isinstance(structured, dict) and len(structured) == 1:
        choices.append(next(iter(structured.values())))
    if payload.raw == "":
        # Without content the structured part is the payload.
        wrapped = isinstance(structured, dict) and len(structured) == 1 and structured.keys() <= _WRAPPED
        return flatten(choices[-1] if wrapped else structured)
    flat = payload.flat
    if any(_same(choice, held) for choice in choices for held in (payload.value, payload.raw)):
        return flat
    readings = [flatten(choice) for choice in choices]
    shared = [((flat.leaves & other.leaves).total(), len(flat.schema & other.schema)) for other in readings]
    best = max(range(len(readings)), key=lambda index: shared[index])
    other = readings[best] if any(shared[best]) else flatten(structured, "structuredContent")
    return Flat(flat.leaves | other.leaves, flat.schema | other.schema, flat.lists or other.lists)


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except RecursionError:
        return False
