"""What Python prints of its lists and dicts: `[{'id': 6, 'price': Decimal('3.20'), 'taken': None}]`.

Many tool servers answer with `str(rows)`. In: such a text. Out: lists, dicts with text keys, numbers, strings,
true, false and None; tuples and sets become lists, a call (`datetime.date(2026, 4, 6)`) stays text. None for
anything else. Nothing is evaluated; one pass, without recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"\s*(?:([\[{(])|([\]})])|([,:])"
    r"|[bBrRuU]?('[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\")"
    r"|([^\s\[\]{}(),:'\"]+)(\()?)",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NAMES: Final[dict[str, Any]] = {
    "None": None, "null": None, "True": True, "true": True, "False": False, "false": False,
    "nan": float("nan"), "NaN": float("nan"), "inf": float("inf"), "-inf": float("-inf"),
}  # fmt: skip
_PAIRS: Final = {"[": "]", "{": "}", "(": ")"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
_LONGEST_INTEGER: Final = 4000
"""Digits; Python refuses to read longer ones."""


@dataclass(slots=True)
class _Open:
    """A bracket that is not closed yet; `call` is where a call's name begins, `inner` marks all inside a call."""

    bracket: str
    call: int | None = None
    inner: bool = False
    keys: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    due: bool = True  # a value may follow


def read_literal(text: str) -> list[Any] | dict[str, Any] | None:
    """The list or dict that `text` prints, or None."""
    stack = [_Open("")]
    place, size = 0, len(text.rstrip())
    while place < size:
        token = _TOKEN.match(text, place)
        if token is None or not _read(token, stack):
            return None
        place = token.end()
    found = stack[0].values
    return found[0] if len(stack) == 1 and len(found) == 1 and isinstance(found[0], list | dict) else None


def _read(token: re.Match[str], stack: list[_Open]) -> bool:
    """One token; False where it may not stand."""
    opening, closing, mark, quoted, word, call = token.groups()
    here = stack[-1]
    if opening or call:
        inner = here.inner or here.call is not None
        stack.append(_Open(opening or call, call=token.start(5) if call else None, inner=inner))
        return True
    if closing:
        value = _closed(here, token, closing)
        stack.pop()
        return value is not None and _take(stack[-1], value)
    if mark:
        return _mark(here, mark)
    return _take(here, _unquoted(quoted) if quoted else _word(word, here.call is not None))


def _take(here: _Open, value: Any) -> bool:
    """Put a value into the open bracket; False where none may stand."""
    if value is _UNKNOWN or not (here.due or here.call is not None):
        return False
    here.values.append(value)
    here.due = False
    return True


def _mark(here: _Open, mark: str) -> bool:
    """A comma, or the colon behind a key."""
    if here.call is not None:
        return True
    if here.due:
        return False
    if mark == ":":
        if here.bracket != "{" or len(here.keys) >= len(here.values):
            return False
        key = here.values.pop()
        here.keys.append(key if isinstance(key, str) else str(key))
    here.due = True
    return True


def _closed(here: _Open, token: re.Match[str], closing: str) -> Any:
    """What stood in the bracket; None where it was another one or a value is missing."""
    if _PAIRS.get(here.bracket) != closing:
        return None
    if here.inner:
        # The text of the whole call is kept; that of each part would make nested calls quadratic.
        return ""
    if here.call is not None:
        return " ".join(token.string[here.call : token.end()].split())
    if here.bracket == "{" and (here.keys or not here.values):
        return dict(zip(here.keys, here.values, strict=True)) if len(here.keys) == len(here.values) else None
    return here.values


_UNKNOWN: Final = object()


def _word(word: str, in_call: bool) -> Any:
    """A number or a name."""
    if word in _NAMES:
        return _NAMES[word]
    if _NUMBER.fullmatch(word):
        if word.lstrip("+-").isdigit():
            return int(word) if len(word) < _LONGEST_INTEGER else word
        return float(word)
    return word if in_call else _UNKNOWN


def _unquoted(quoted: str) -> str:
    inner = quoted[1:-1]
    return _ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner


def _unescaped(match: re.Match[str]) -> str:
    *codes, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(next(code for code in codes if code), 16)
    return chr(code) if code < 0x110000 else match.group()
