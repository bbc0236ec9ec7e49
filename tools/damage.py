"""Operators that make an observation worse in one known way: what a metric must notice.

In: a true observation, a strength (0 leaves it as it is), a seeded random generator, and observations
of other samples. Out: the damaged text. Stronger damage contains the weaker one at the same places.
Used by the tests of the metrics' laws and by `make_ordering_table.py`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Final

Operator = Callable[[str, int, random.Random, Iterator[str]], str]


def dropped_lines(text: str, strength: int, order: random.Random, others: Iterator[str]) -> str:
    """`strength` lines are missing."""
    lines = text.split("\n")
    gone = set(order.sample(range(len(lines)), len(lines))[:strength])
    return "\n".join(line for index, line in enumerate(lines) if index not in gone)


def wrong_numbers(text: str, strength: int, order: random.Random, others: Iterator[str]) -> str:
    """`strength` numbers have other digits."""
    numbers = list(re.finditer(r"\d+", text))
    order.shuffle(numbers)
    for match in sorted(numbers[:strength], key=lambda match: -match.start()):
        wrong = "".join(str((int(digit) + 5) % 10) for digit in match.group())
        text = text[: match.start()] + wrong + text[match.end() :]
    return text


def padding(text: str, strength: int, order: random.Random, others: Iterator[str]) -> str:
    """The whole text 3 times more for each step of strength."""
    return "\n".join([text] * (1 + 3 * strength))


def foreign_lines(text: str, strength: int, order: random.Random, others: Iterator[str]) -> str:
    """Observations of `strength` other samples follow."""
    return "\n".join([text, *(next(others) for _ in range(strength))])


OPERATORS: Final[dict[str, Operator]] = {
    operator.__name__: operator for operator in (dropped_lines, wrong_numbers, padding, foreign_lines)
}

_STATUS: Final = (
    (re.compile(r"(?m)^Exit Code: 0$"), "Exit Code: 1"),
    (re.compile(r"(?m)^Exit Code: [1-9]\d*$"), "Exit Code: 0"),
    (re.compile(r'\\"isError\\": false'), r'\\"isError\\": true'),
    (re.compile(r'\\"isError\\": true'), r'\\"isError\\": false'),
)


def wrong_status(text: str) -> str | None:
    """The text with success and failure exchanged; None where no status is written out."""
    for pattern, other in _STATUS:
        swapped, count = pattern.subn(other, text)
        if count:
            return swapped
    return None
