"""JSON as a person reads it: one value a line, and JSON that stands in a string of JSON taken apart too.

In: a text. Out: lines, or None where the text as a whole is no JSON object or list. A string of several
lines stands below its key, line by line; one that reads like a number, `null` or nothing keeps its quotes, so
that no two values look alike. It is for looking: the row itself is what `--json` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

DEEPEST: Final = 30
"""Levels that are taken apart; what lies deeper stays on its line."""
STEP: Final = "  "


def decoded(text: str) -> list[str] | None:
    """The lines of a JSON object or list, or None for any other text."""
    value = _container(text)
    return None if value is None else list(_lines(value, 0))


def _container(text: str) -> Any:
    """The object or list that a text is, if it holds anything; else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text) or None
    except (ValueError, RecursionError):
        return None


def _lines(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _entry(f"{_plain(key)}:", inner, depth)
    else:
        for inner in value:
            yield from _entry("-", inner, depth)


def _entry(head: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str) and (held := _container(value)) is not None:
        value = held
    if isinstance(value, (dict, list)) and value and depth < DEEPEST:
        below = [STEP + line for line in _lines(value, depth + 1)]
        if head == "-":  # the first line of an item stands behind its dash
            yield f"- {below[0][len(STEP) :]}"
            yield from below[1:]
        else:
            yield head
            yield from below
    elif isinstance(value, str) and "\n" in value:
        yield head
        yield from (STEP + line for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_plain(value)}"


def _plain(value: Any) -> str:
    """A value on one line: a string without its quotes where that cannot be another value."""
    if isinstance(value, str) and value.strip() == value and value and not _reads_as_value(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _reads_as_value(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
