"""Strict reading of a judge's reply: five integers 1-5, or a typed failure. Never a guess.

In: the reply, and the texts that the judge was shown and might quote. Out: a `ReadVerdict` or a
`Failure`. The verdict stands in a `<final_evaluation>` block; a reply without one may be the bare
JSON object (servers with structured output send that) or hold it in a fence. A block that occurs in
the shown texts is a quotation and never counts, nor does the answer form of the prompt when a judge
repeats it; two blocks that disagree are `judge_ambiguous`. JSON is parsed as it stands; only where that
fails another spelling of it is tried, or its scores alone (`broken_json.py`), and `found` says so. All
scans are linear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from agentworldbench.official import last_match
from agentworldbench.records import DIMENSIONS, Failure, FailureKind
from agentworldbench.reply import parts_of
from agentworldbench.scoring.broken_json import leaves_out, mended
from agentworldbench.texts import scrub

TAG: Final = "final_evaluation"
_TAGS = re.compile(rf"<(/?){TAG}>", re.IGNORECASE)
_ESCAPED_TAGS = re.compile(rf"^[ \t]*&lt;{TAG}&gt;|&lt;(/){TAG}&gt;", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_CLOSING_FENCE = re.compile(r"\n[ \t]*(?:`{3,}|~{3,})[ \t]*\Z")
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_NUMBER = re.compile(r"\s*([1-5])(?:\.0+)?\s*(?:/\s*5(?:\.0+)?\s*)?")
_KEY = re.compile(r'"(?:scores|strengths|weaknesses|reasons)"\s*:')
_FORM = re.compile(r"<(?:short sentence|integer 1-5)>")
"""Placeholders of the answer form in `tasks/prompts/builtin/answer_text.md`."""
_LAYOUT = re.compile(r"(?:\\{1,8}[nrt]|[\s\\])+")
"""White space and escaping: what a quotation may change."""
_MAX_OBJECTS: Final = 50


@dataclass(frozen=True)
class ReadVerdict:
    """Scores by dimension (integers 1-5), the judge's reasons, and how the verdict was found."""

    scores: dict[str, int]
    strengths: tuple[str, ...]
    weaknesses: tuple[str, ...]
    found: str


class _Invalid(Exception):
    """A block that was meant as a verdict but is none."""


def read_verdict(reply: str, shown: Sequence[str] = (), apart: bool = False) -> ReadVerdict | Failure:
    """Read a judge's reply; `shown` are the texts whose quotation must not count as a verdict.

    `apart`: the server returned the judge's reasoning apart from the reply.
    """
    answer = _without_reasoning(reply, apart)
    if answer is None:
        return _unparsed("the reasoning has no end, so what it holds or follows may be a draft")
    quotes = _Quotes(shown)
    verdicts: list[ReadVerdict] = []
    problem = ""
    for found, body, source in _bodies(answer):
        try:
            verdict = _read_block(body, found)
        except _Invalid as invalid:
            if not quotes.hold(source):
                return _unparsed(str(invalid))
            verdict = None
        if verdict is None:
            problem = problem or _why_none(found, body)
        elif quotes.hold(source):
            problem = "the only verdict-like block is quoted from the texts to be judged"
        else:
            verdicts.append(verdict)
        if max(len(verdicts), quotes.count) > _MAX_OBJECTS:
            return Failure(kind=FailureKind.JUDGE_AMBIGUOUS, message=f"more than {_MAX_OBJECTS} verdicts")
    if not verdicts:
        return _unparsed(problem or f"no verdict in the reply, which begins: {answer.strip()[:60]!r}")
    if any(verdict.scores != verdicts[-1].scores for verdict in verdicts):
        return Failure(kind=FailureKind.JUDGE_AMBIGUOUS, message=f"{len(verdicts)} verdicts that disagree")
    return verdicts[-1]


class _Quotes:
    """Recognises what is quoted from the shown texts, whatever its white space and escaping."""

    def __init__(self, shown: Sequence[str]) -> None:
        self._shown = shown
        self.count = 0

    @cached_property
    def _texts(self) -> list[str]:
        # Only a text that names a dimension can hold a verdict; most hold none and cost nothing.
        return [_LAYOUT.sub("", text) for text in self._shown if DIMENSIONS[1] in text.lower()]

    def hold(self, body: str) -> bool:
        """Whether a shown text holds the block; counted."""
        bare = _LAYOUT.sub("", body)
        quoted = any(bare in text for text in self._texts)
        self.count += quoted
        return quoted


def _without_reasoning(reply: str, apart: bool) -> str | None:
    """The reply without the judge's reasoning; None where that has no end.

    Of a reply that is one JSON object nothing is taken: a thinking tag in its strings is a quotation.
    """
    try:
        if reply.lstrip().startswith("{") and isinstance(json.loads(reply), dict):
            return reply
    except (ValueError, RecursionError):
        pass
    parts = parts_of(reply, TAG)
    return None if parts.open else parts.outside(parts.begin(apart))


def _why_none(found: str, body: str) -> str:
    """Why a block is no verdict, for the failure's message; empty where there is nothing to say."""
    if _FORM.search(body):
        return "the answer form came back with its placeholders"
    return "no JSON object with scores inside the block" if found == "tag" else ""


def _unparsed(message: str) -> Failure:
    return Failure(kind=FailureKind.JUDGE_UNPARSED, message=message)


def _bodies(answer: str) -> Iterator[tuple[str, str, str]]:
    """(how it was found, JSON text, what that rests on) of every block that may hold the verdict."""
    for found, block, whole in _candidates(answer):
        body = _unfenced(block)
        if whole and not _FORM.search(whole) and _broken(body):
            for way in mended(_unfenced(whole)):
                if not _broken(way.json):
                    yield f"{found}, {way.way}", way.json, way.source
                    break
            else:
                yield found, body, body
        else:
            yield found, body, body


def _broken(text: str) -> bool:
    """Whether `text` is no JSON for its form; what is only too large or too deep is not mended."""
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _candidates(answer: str) -> Iterator[tuple[str, str, str]]:
    """(how it was found, text, what a broken one may be mended from) of every block that may hold the verdict.

    Tagged blocks exclude others, escaped tags count where no others stand.
    """
    for found, pattern in (("tag", _TAGS), ("escaped tag", _ESCAPED_TAGS)):
        tags = list(pattern.finditer(answer))
        starts = [index for index, tag in enumerate(tags) if not tag.group(1)]
        for index in starts:
            end = tags[index + 1].start() if index + 1 < len(tags) else len(answer)
            block = answer[tags[index].end() : end]
            yield found, block, block
        if starts:
            return
    first_broken = True
    for start, end, whole in _objects(answer):
        # Where a broken object ends nobody knows: it is mended only if nothing stands behind it.
        rest = "" if whole or not first_broken else _CLOSING_FENCE.sub("", answer[start:].rstrip())
        first_broken = first_broken and whole
        yield "no tag", answer[start:end], rest


def _objects(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, valid) of JSON objects that begin a line, outermost only, at most fifty.

    Of one that is broken, the part up to the fault; nothing inside that part is looked at again.
    """
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MAX_OBJECTS):
        match = _OBJECT.search(text, position)
        if match is None:
            return
        start = match.end() - 1
        whole = True
        try:
            _, position = decoder.raw_decode(text, start)
        except json.JSONDecodeError as problem:
            position = max(problem.pos, match.end())
            whole = False
        except (ValueError, RecursionError):
            position = len(text)
        yield start, position, whole


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
    """The verdict in a block; None when it was not meant as one. Raises _Invalid."""
    if _FORM.search(body):
        return None  # the answer form of the prompt, repeated
    faults: list[str] = []
    try:
        value = json.loads(
            body,
            object_pairs_hook=lambda pairs: _no_repeats(pairs, faults),
            parse_constant=lambda word: faults.append(f"the verdict holds {word}"),
        )
        if not isinstance(value, dict) or "scores" not in value:
            return None
        if faults:
            raise _Invalid(faults[0])
        return ReadVerdict(
            scores=_scores(value["scores"]),
            strengths=_sentences(value.get("strengths")),
            weaknesses=_sentences(value.get("weaknesses")),
            found=found,
        )
    except (ValueError, RecursionError) as problem:
        if _KEY.search(body) and not leaves_out(body):
            raise _Invalid(f"the verdict is no valid JSON ({str(problem)[:80]})") from None
        return None


def _no_repeats(pairs: list[tuple[str, Any]], faults: list[str]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        faults.append("a key stands twice in the verdict")
    return members


def _scores(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise _Invalid("scores is not an object")
    given = {name.strip().lower(): score for name, score in value.items()}
    if len(given) != len(value):
        raise _Invalid("a dimension stands twice in the verdict")
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
        given = type(value).__name__ if isinstance(value, (dict, list)) else repr(value)[:40]
        raise _Invalid(f"score '{name}' is {given}, not an integer from 1 to 5")
    return value


def _sentences(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    texts = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items)
    return tuple(scrub(text) for text in texts)  # an escape inside the JSON may be half a pair
