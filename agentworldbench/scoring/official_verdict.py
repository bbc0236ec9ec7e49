"""The official evaluator's rules for a judge's reply, bit for bit.

In: a judge's reply. Out: an `OfficialVerdict`: what the official code makes of it
(github.com/QwenLM/Qwen-AgentWorld at cd0aa83; `docs/readings.md` shows replies beside their strict
reading). A candidate object is chosen, repaired before it is parsed, and its values are bent to numbers;
missing and unreadable ones are 0 and leave the mean. These sides are kept on purpose: published numbers
rest on them. What the official code finds in super-linear time is found here in linear time, with the
same result, whatever the reply's size. Two bounds stay, and what is beyond them is a failure: an integer
of more than 4,300 digits, and more than 992 levels of nesting. Both are what CPython 3.11 allows
`eval.py`; here they hold on newer versions, and from callers of any depth, too.
"""

from __future__ import annotations

import _thread
import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from agentworldbench.official import extract, split_thinking
from agentworldbench.records import DIMENSIONS

TAG: Final = "final_evaluation"
_FENCE: Final = "```"
_MARK: Final = re.compile(r'[{}"\\]')
_REPAIRS: Final = (
    (re.compile(r",(?=\s*[\]}])"), ""),  # a comma before a closing bracket
    (re.compile(r"'(\w+)'(?=\s*:)"), r'"\1"'),  # a key in single quotes
    (re.compile(r"([,{])\s*(\w+)\s*:"), r'\1"\2":'),  # a key without quotes
)
"""Made one after the other, also where the JSON is valid and inside its strings."""
_MAX_LEVELS: Final = 992
"""Lists and objects in each other that CPython 3.11 parses where 5 functions called `json.loads`, as in the script."""
_FEW_LEVELS: Final = 50
"""So many need no stack of their own."""
_LEVEL: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{}\[\]]', re.DOTALL)
"""A bracket, or a string with all that is in it; one without end reaches to the end."""
_DECODER: Final = json.JSONDecoder()
_SCORES: Final = re.compile(r'"scores"\s*:\s*\{[^}]+\}')


@dataclass(frozen=True)
class OfficialVerdict:
    """What the official code reads: `scores` by dimension, at most 5, also 0 and negative.

    `total` is the mean of the scores above 0, or 0. Without success all scores are 0 and `reason`
    says why. Texts are as the judge escaped them, which can be half a surrogate pair.
    """

    success: bool
    scores: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DIMENSIONS, 0))
    total: float = 0.0
    strengths: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    reason: str = ""


def read_official(reply: str) -> OfficialVerdict:
    """Read a judge's reply by the official rules. Never raises, whatever the reply holds."""
    # An empty block counts as none, and then the whole text is searched.
    candidate = _candidate(extract(reply, TAG) or split_thinking(reply, TAG)[0])
    if candidate is None:
        return OfficialVerdict(success=False, reason="no JSON object in the reply")
    if candidate.count("{") + candidate.count("[") <= _FEW_LEVELS:
        return _verdict(candidate)
    return _on_own_stack(candidate)


def _on_own_stack(candidate: str) -> OfficialVerdict:
    """What the chosen object says, read in a thread: how many levels fit is then the same for every caller."""
    results: list[OfficialVerdict] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(_verdict(candidate))
        finally:
            done.release()

    # A `threading.Thread` has functions of its own on the stack, and levels would be lost to them.
    _thread.start_new_thread(run, ())
    done.acquire()
    return results[0]


def _verdict(candidate: str) -> OfficialVerdict:
    """What the chosen object says."""
    try:
        verdict = _parsed(candidate)
        if not isinstance(verdict.get("scores"), dict):
            return OfficialVerdict(success=False, reason="no object under scores")
        scores = {name: _score(verdict["scores"].get(name)) for name in DIMENSIONS}
        counted = [score for score in scores.values() if score > 0]
        return OfficialVerdict(
            success=True,
            scores=scores,
            total=sum(counted) / len(counted) if counted else 0.0,
            strengths=_texts(verdict.get("strengths")),
            weaknesses=_texts(verdict.get("weaknesses")),
        )
    except RecursionError:
        return OfficialVerdict(success=False, reason=f"more than {_MAX_LEVELS} levels of nesting")
    except (ValueError, OverflowError) as problem:
        return OfficialVerdict(success=False, reason=f"the object cannot be read: {str(problem)[:80]}")


def _candidate(text: str) -> str | None:
    """The text of the object that counts: the last one that names scores, else the last one.

    Fenced blocks go before objects in the open; where no object is balanced, one is sought from the end.
    """
    objects = [block for block in _fenced(text) if block.startswith("{") and block.endswith("}")]
    if not objects:
        last = text.rfind("}")
        marks = [mark.start() for mark in _MARK.finditer(text, 0, last + 1)]
        objects = _balanced(text, marks)
        if not objects:
            return _from_the_end(text, marks)
    return next((one for one in reversed(objects) if '"scores"' in one), objects[-1])


def _fenced(text: str) -> list[str]:
    """What stands between each pair of fences, wherever they stand in a line."""
    blocks: list[str] = []
    position = 0
    while (opener := text.find(_FENCE, position)) >= 0:
        first = opener + len(_FENCE)
        if text.startswith("json", first):
            first += len("json")
        closer = text.find(_FENCE, first)
        if closer < 0:
            break
        blocks.append(text[first:closer].strip())
        position = closer + len(_FENCE)
    return blocks


def _balanced(text: str, marks: list[int]) -> list[str]:
    """The objects found from left to right, outermost only: each opening brace is tried in turn.

    Each trial begins outside of a string, so two trials can see the same quote in different ways. All
    of them are answered by one pass from the end: for each mark, which one is the first closing brace
    that belongs to an opener before it, if the mark is met outside of a string, and if inside.
    """
    none = len(marks)
    outside = [none] * (none + 2)
    inside = [none] * (none + 2)
    closers: dict[int, int] = {}
    for at in range(none - 1, -1, -1):
        outside[at], inside[at] = outside[at + 1], inside[at + 1]
        mark = text[marks[at]]
        if mark == '"':
            outside[at], inside[at] = inside[at], outside[at]
        elif mark == "}":
            outside[at] = at
        elif mark == "{":
            closers[at] = outside[at]
            outside[at] = outside[closers[at] + 1]
        elif at + 1 < none and marks[at + 1] == marks[at] + 1:
            inside[at] = inside[at + 2]  # a backslash hides the mark behind it
    objects: list[str] = []
    at = 0
    while at < none:
        closer = closers.get(at, none)
        if closer < none:
            objects.append(text[marks[at] : marks[closer] + 1])
            at = closer
        at += 1
    return objects


def _from_the_end(text: str, marks: list[int]) -> str | None:
    """The object that ends at the last closing brace, its quotes paired from the end."""
    depth = 0
    in_string = False
    for at in reversed(marks):
        mark = text[at]
        if mark == '"':
            if text[at - 1 : at] != "\\":
                in_string = not in_string
        elif in_string:
            continue
        elif mark == "}":
            depth += 1
        elif mark == "{":
            depth -= 1
            if depth == 0:
                return text[at : marks[-1] + 1]
    return None


def _parsed(candidate: str) -> dict[str, Any]:
    """The object, repaired and parsed; or its first scores alone. Raises ValueError, RecursionError."""
    for pattern, replacement in _REPAIRS:
        candidate = pattern.sub(replacement, candidate)
    try:
        return _loaded(candidate)
    except json.JSONDecodeError:
        scores = _SCORES.search(candidate)
        if scores is None:
            raise
        return _loaded(f"{{{scores.group()}}}")


def _loaded(text: str) -> dict[str, Any]:
    """The object that `text` holds. Raises ValueError, and RecursionError where it is nested too deeply.

    Newer Pythons allow more levels. What they meet beyond the bound does not count, be it a fault.
    """
    bound = _too_deep(text)
    try:
        value: dict[str, Any] = _DECODER.decode(text)
    except json.JSONDecodeError as problem:
        if bound is None or problem.pos < bound:
            raise
        raise RecursionError from None
    if bound is not None:
        raise RecursionError
    return value


def _too_deep(text: str) -> int | None:
    """Where one level too many begins, if one does."""
    if text.count("{") + text.count("[") <= _MAX_LEVELS:
        return None
    level = 0
    for mark in _LEVEL.finditer(text):
        if mark.group() in ("{", "["):
            level += 1
            if level > _MAX_LEVELS:
                return mark.start()
        elif mark.group() in ("}", "]"):
            level -= 1
    return None


def _score(value: Any) -> int:
    """A value as a whole number of at most 5. Raises ValueError for NaN, OverflowError for infinity."""
    score = 0
    if isinstance(value, int | float):
        score = round(value)  # halves go to the even number
    elif isinstance(value, str):
        try:
            score = int(value.partition("/")[0].strip())
        except ValueError:
            score = 0
    return min(score, 5)


def _texts(value: Any) -> tuple[str, ...]:
    """A list member by member, as Python writes them; a text alone as a list of one."""
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return (value,) if isinstance(value, str) and value else ()
