"""What can be read of a verdict whose JSON is not valid, without a guess.

In: the text of a block that does not parse. Out: JSON text that does say the same, or nothing. Two ways,
tried in this order and named in the verdict's notes: another spelling of the same object (a Python literal,
commas before closing brackets: no text is lost), or the scores alone where they close the object (the
sentences are then dropped whole: broken quotes make it unsure where they end). Nothing is evaluated, and
the work is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""
    (?P<double>"(?:[^"\\]++|\\.)*+")
    | '(?P<single>(?:[^'\\]++|\\.)*+)'
    | (?P<comma>,(?=\s*[\]}]))
    | (?P<word>[A-Za-z_]++)
    | (?P<other>[^"'A-Za-z_,]++|,)
    """,
    re.VERBOSE | re.DOTALL,
)
_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}
_IN_SINGLE: Final = re.compile(r"\\(.)|\"", re.DOTALL)
_NAMES_SCORES: Final = re.compile(r"scores\W{0,3}:")
_SCORES_LAST: Final = re.compile(r'("scores"\s*:\s*\{[^{}]*\})\s*,?\s*\}\s*\Z')
_LEFT_OUT: Final = re.compile(r",\s*(?:\.\.\.|…)\s*[\]}]")


class Mended(NamedTuple):
    """JSON text made of a block, the way it was made, and the part of the block that it rests on."""

    json: str
    way: str
    source: str


def mended(text: str) -> Iterator[Mended]:
    """Each way to read a block that is no valid JSON; none where its members are left out by dots."""
    if leaves_out(text):
        return
    spelled = _respelled(text)
    if spelled is not None:
        yield Mended(spelled, "another spelling", text)
    scores = _SCORES_LAST.search(text)
    if scores is not None and _holds_one_verdict(text):
        yield Mended(f"{{{scores[1]}}}", "scores alone", scores[1])


def _holds_one_verdict(text: str) -> bool:
    """Whether the scores that close `text` are those of the object that begins it, not quoted in it."""
    pairs = all(text.count(opener) == text.count(closer) for opener, closer in ("{}", "[]"))
    return text.startswith("{") and pairs and len(_NAMES_SCORES.findall(text)) == 1


def leaves_out(text: str) -> bool:
    """Whether dots stand for further members, as in the example of a prompt."""
    return _LEFT_OUT.search(text) is not None


def _respelled(text: str) -> str | None:
    """`text` with single quotes, Python's words and closing commas as JSON wants them."""
    parts: list[str] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            return None  # a quote that nothing closes
        position = token.end()
        if token.lastgroup == "single":
            parts.append(f'"{_IN_SINGLE.sub(_requoted, token["single"])}"')
        elif token.lastgroup != "comma":
            parts.append(_PYTHON.get(token.group(), token.group()))
    spelled = "".join(parts)
    return spelled if spelled != text else None


def _requoted(match: re.Match[str]) -> str:
    if match.group(1) == "'":
        return "'"
    return match.group() if match.group(1) else '\\"'
