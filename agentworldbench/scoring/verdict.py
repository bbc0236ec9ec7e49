"""Strict reading of a judge's reply: five integers 1-5, or a typed failure. Never a guess.

In: the reply, and the texts that the judge was shown and might quote. Out: a `ReadVerdict` or a
`Failure`. The verdict stands in a `<final_evaluation>` block; a reply without one may be the bare
JSON object (servers with structured output send that) or hold it in a fence. A block that occurs
word for word in the shown texts is a quotation and never counts; two blocks that disagree are
`judge_ambiguous`. JSON is parsed as it stands, never repaired. All scans are linear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentworldbench.observation import last_match, split_thinking
from agentworldbench.records import DIMENSIONS, Failure, FailureKind

TAG: Final = "final_evaluation"
_TAGS = re.compile(rf"<(/?){TAG}>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_NUMBER = re.compile(r"\s*([1-5])(?:\.0+)?\s*(?:/\s*5(?:\.0+)?\s*)?")
_MAX_OBJECTS: Final = 50
_QUOTABLE: Final = 40
"""A block shorter than this many characters is too short to be recognised as a quotation."""


@dataclass(frozen=True)
class ReadVerdict:
    """Scores by dimension (integers 1-5), the judge's reasons, and how the verdict was found."""

    scores: dict[str, int]
    strengths: tuple[str, ...]
    weaknesses: tuple[str, ...]
    found: str


class _Invalid(Exception):
    """A block that was meant as a verdict but is none."""


def read_verdict(reply: str, shown: Sequence[str] = ()) -> ReadVerdict | Failure:
    """Read a judge's reply; `shown` are the texts whose quotation must not count as a verdict."""
    answer, _ = split_thinking(reply, TAG)
    verdicts: list[ReadVerdict] = []
    problems: list[str] = []
    for found, block in _candidates(answer):
        body = _unfenced(block)
        if len(body) >= _QUOTABLE and any(body in text for text in shown):
            problems.append("the only verdict-like block is quoted from the texts to be judged")
            continue
        try:
            verdict = _read_block(body, found)
        except _Invalid as problem:
            return _unparsed(str(problem))
        if verdict is None:
            problems.append("no JSON object with scores inside the block" if found == "tag" else "")
        else:
            verdicts.append(verdict)
    if not verdicts:
        return _unparsed(next((text for text in problems if text), "no verdict in the reply"))
    if any(verdict.scores != verdicts[-1].scores for verdict in verdicts):
        return Failure(kind=FailureKind.JUDGE_AMBIGUOUS, message=f"{len(verdicts)} verdicts that disagree")
    return verdicts[-1]


def _unparsed(message: str) -> Failure:
    return Failure(kind=FailureKind.JUDGE_UNPARSED, message=message)


def _candidates(answer: str) -> Iterator[tuple[str, str]]:
    """(how it was found, text) of every block that may hold the verdict; tagged blocks exclude others."""
    tags = list(_TAGS.finditer(answer))
    starts = [index for index, tag in enumerate(tags) if not tag.group(1)]
    if starts:
        for index in starts:
            end = tags[index + 1].start() if index + 1 < len(tags) else len(answer)
            yield "tag", answer[tags[index].end() : end]
        return
    yield from (("no tag", block) for block in _objects(answer))


def _objects(text: str) -> Iterator[str]:
    """JSON objects that begin at the start of a line, outermost only, at most fifty."""
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MAX_OBJECTS):
        match = _OBJECT.search(text, position)
        if match is None:
            return
        start = match.end() - 1
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = match.end()
            continue
        yield text[start:end]
        position = end


def _unfenced(block: str) -> str:
    """The block without fence lines around it; fences count only as whole lines."""
    text = block.strip()
    first = _FENCE.match(text)
    if first is None:
        return text
    inner = text[first.end() :]
    last = last_match(_FENCE, inner)
    return (inner[: last.start()] if last and not inner[last.end() :].strip() else inner).strip()


def _read_block(body: str, found: str) -> ReadVerdict | None:
    """The verdict in a block; None when it is no JSON object with scores. Raises _Invalid."""
    try:
        value = json.loads(body, object_pairs_hook=_no_repeats, parse_constant=_no_constants)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "scores" not in value:
        return None
    return ReadVerdict(
        scores=_scores(value["scores"]),
        strengths=_sentences(value.get("strengths")),
        weaknesses=_sentences(value.get("weaknesses")),
        found=found,
    )


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise _Invalid("a key stands twice in the verdict")
    return dict(pairs)


def _no_constants(word: str) -> Any:
    raise _Invalid(f"the verdict holds {word}")


def _scores(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise _Invalid("scores is not an object")
    given = {str(name).strip().lower(): score for name, score in value.items()}
    missing = [name for name in DIMENSIONS if name not in given]
    if missing:
        raise _Invalid(f"scores lacks {', '.join(missing)}")
    return {name: _score(name, given[name]) for name in DIMENSIONS}


def _score(name: str, value: Any) -> int:
    """An integer 1-5, also written 4.0, "4" or "4/5"; halves and anything else are refused."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        value = int(match.group(1)) if match else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5:
        raise _Invalid(f"score '{name}' is {str(value)[:40]!r}, not an integer from 1 to 5")
    return value


def _sentences(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    return tuple(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items)
