"""Text of a model to the observation it predicts, or to a typed failure.

In: a completion and the task's tag and marker. Out: a `Reading`: the observation or a `Failure`, the
reasoning, and notes on what was odd. The rules are the harness's own (`docs/protocol.md`): reasoning is
taken out by the table of model families, the last complete tagged answer counts, white space inside it
stays but for one newline at each end. Failures stand in front: empty, cut, refused and filtered replies
are never read as text. Where a reply can be read in two ways, the reading that loses least counts if
the model ended by itself, and none if it was cut. The official rules are in `official.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentworldbench.markers import end_of_answer, looks_like_stripped_harmony
from agentworldbench.records import Completion, Failure, FailureKind
from agentworldbench.reply import Answer, Parts, parts_of
from agentworldbench.texts import count_text

EXTRACTION = "strict, version 2"
"""Name of the rules below, recorded with every run: other rules make other predictions."""

NO_OPENER = "closing thinking tag without an opening one: what stands before it was read as reasoning"
STRAY_CLOSER = "stray closing tag in the answer"
STRAY_BEHIND = "stray closing tag behind the answer"
KEPT_INSIDE = "thinking marker or answer tag inside the answer, kept as text"
NEVER_CLOSED = "answer tag never closed"
NO_START_TAG = "end tag of the answer without its start tag, cut"
THOUGHT_AGAIN = "reasoning behind the answer"
UNSURE_END = "opening thinking tags are not balanced by closing ones"
SEVERAL = "several answers: the last complete one counts"
CUT_TOKEN = "end-of-turn token cut from the end of the answer"
HARMONY = "looks like unparsed harmony output"


@dataclass(frozen=True)
class Reading:
    """What a completion was read as. Exactly one of `observation` and `failure` is None."""

    observation: str | None
    reasoning: str | None
    failure: Failure | None
    notes: tuple[str, ...] = ()


def read_reply(completion: Completion, tag: str, marker: str, *, stops_sent: bool) -> Reading:
    """Read a completion. `stops_sent`: stop strings were sent with the request."""
    if completion.observation is not None:
        return Reading(completion.observation, completion.reasoning, None)
    text = completion.text or ""
    end = end_of_answer(text)
    parts = parts_of(text[:end], tag)
    apart, reasoning = reasoning_of(completion, parts)
    begin = parts.begin(apart)
    answer = _answer(parts, begin)
    content, notes = _content(parts, answer, begin, tag)
    thought = f"{parts.before(begin)}{parts.behind(begin)}"
    hints = {
        "it never ended": parts.open,
        "an answer stands only inside it": f"<{tag}>".lower() in thought.lower(),
        "possible stop inside reasoning": stops_sent and completion.finish_reason == "stop",
    }
    failure = reply_failure(
        completion,
        complete_answer=answer is not None and not _goes_on(parts, answer, apart),
        has_answer=answer is not None or (bool(content.strip()) and not parts.open),
        hints=[hint for hint, holds in hints.items() if holds],
    )
    if looks_like_stripped_harmony(text):
        notes = (*notes, HARMONY)
    if failure:
        return Reading(None, reasoning, failure, notes)
    if end < len(text) and not (answer and answer.closed):
        notes = (*notes, CUT_TOKEN)
    if answer is None:
        content = without_blank_lines(content)
        return Reading(without_blank_lines(without_marker(content, marker)), reasoning, None, notes)
    return Reading(without_marker(content, marker), reasoning, None, notes)


def reasoning_of(completion: Completion, parts: Parts) -> tuple[bool, str | None]:
    """(whether the server returned the reasoning apart, all the reasoning of a completion).

    A replayed completion comes with the reasoning that its own text shows, and some servers send it
    twice: reasoning that ends in what stands before a closer without opener was not taken apart.
    """
    stored = completion.reasoning or ""
    begin = parts.begin(False)
    before, behind = parts.before(begin), parts.behind(begin)
    rest = stored[: -len(behind)].removesuffix("\n") if _ends_in(stored, behind) else stored
    if not rest or (before and _ends_in(rest, before)):
        return False, _joined(rest or before, behind)
    everywhere = parts.behind(0)
    return True, stored if _ends_in(stored, everywhere) else _joined(stored, everywhere)


def _ends_in(stored: str, shown: str) -> bool:
    """Whether the last lines of `stored` are `shown`."""
    return bool(shown) and f"\n{stored}".endswith(f"\n{shown}")


def _joined(*texts: str) -> str | None:
    return "\n".join(text for text in texts if text) or None


def reply_failure(
    completion: Completion, complete_answer: bool, has_answer: bool, hints: Sequence[str] = ()
) -> Failure | None:
    """Why a completion may not be read, or None. Shared by predictions and verdicts.

    `complete_answer`: the text holds a finished answer although it may have been cut later;
    `has_answer`: text is left once the reasoning is taken away; `hints`: what to say of the
    reasoning where nothing else came.
    """
    reason = completion.finish_reason
    if completion.refusal:
        return Failure(kind=FailureKind.REFUSED, message=f"the model refused: {completion.refusal[:200]}")
    if reason == "content_filter":
        return Failure(
            kind=FailureKind.CONTENT_FILTER, message="the provider's content filter stopped the answer"
        )
    used = completion.usage.completion_tokens
    if reason == "length" and not complete_answer:
        spent = f" after {count_text(used, 'token')}" if used else ""
        what = "the answer" if has_answer else "the reasoning"
        return Failure(kind=FailureKind.TRUNCATED, message=f"{what} was cut by the token limit{spent}")
    if has_answer:
        return None
    if completion.tool_calls:
        return Failure(kind=FailureKind.TOOL_CALL, message="the model called a tool instead of answering")
    hint = ""
    if completion.reasoning or (completion.text or "").strip():
        hint = f" ({'; '.join(('only reasoning came back', *hints))})"
    elif completion.usage.reasoning_tokens:
        hint = f" ({count_text(completion.usage.reasoning_tokens, 'token')}, all of them hidden reasoning)"
    elif used:
        hint = f" although {count_text(used, 'token was', 'tokens were')} made; is the server's reasoning parser right for this model?"
    return Failure(kind=FailureKind.EMPTY, message=f"the reply has no text{hint}")


def _answer(parts: Parts, begin: int) -> Answer | None:
    """The answer that counts: the last complete one, or one that only lacks its end.

    One that is not closed yields to a complete one unless reasoning stands between them. Empty tags
    are an answer where they stand for themselves, and a mention in a sentence.
    """
    answers = [one for one in parts.answers if one.start >= begin]
    answered = {one.segment for one in answers if one.closed and not one.blank}

    def weight(one: Answer) -> tuple[int, int]:
        if one.blank:
            rank = (1 + 2 * one.opens) if one.closed else 0
        else:
            rank = 4 if one.closed or (one.opens and one.segment not in answered) else 2
        return rank, one.start

    return max((one for one in answers if one.closed or one.opens or not one.blank), key=weight, default=None)


def _goes_on(parts: Parts, answer: Answer, apart: bool) -> bool:
    """Whether the model had not finished with this answer when a cut came: then it may not count."""
    behind = [one.start for one in parts.thoughts] + [one.start for one in parts.answers if not one.closed]
    behind += [] if apart else [start for start, _ in parts.closers]
    return not answer.closed or parts.open or parts.doubtful or any(at >= answer.last for at in behind)


def _content(parts: Parts, answer: Answer | None, begin: int, tag: str) -> tuple[str, tuple[str, ...]]:
    """The text of the answer, or the text outside of the reasoning where none is tagged; with notes."""
    strays = [start for start, _ in parts.closers if start >= begin]
    notes = {NO_OPENER: bool(parts.before(begin)), UNSURE_END: parts.doubtful}
    if answer is None:
        content = parts.outside(begin)
        bare = content.rstrip()
        if bare.lower().endswith(f"</{tag}>".lower()):
            notes[NO_START_TAG] = True
            content = bare[: -len(tag) - 3]
        notes[STRAY_CLOSER] = bool(strays)
    elif answer.closed:
        content = parts.text[answer.first : answer.last]
        notes[KEPT_INSIDE] = answer.verbatim
        notes[STRAY_BEHIND] = any(start >= answer.last for start in strays)
        notes[THOUGHT_AGAIN] = any(one.start >= answer.last for one in parts.thoughts)
        notes[NEVER_CLOSED] = any(one.start >= answer.last and not one.closed for one in parts.answers)
    else:
        content = parts.outside(answer.first)
        notes[NEVER_CLOSED] = True
        notes[STRAY_CLOSER] = any(start >= answer.first for start in strays)
    whole = [one for one in parts.answers if one.start >= begin and one.closed and not one.blank]
    notes[SEVERAL] = len(whole) > 1
    return content, tuple(note for note, holds in notes.items() if holds)


def without_marker(text: str, marker: str) -> str:
    """`text` without the line of a leading observation marker and without one newline at each end.

    The same for what stands in a model's tags, references and previous observations; nothing else
    is taken away, so that indentation and blank lines are compared as they are.
    """
    text = text.removeprefix("\r\n" if text.startswith("\r\n") else "\n")
    behind = text.lstrip()
    if behind.startswith(marker):
        rest = behind[len(marker) :]
        line, newline, below = rest.partition("\n")
        text = below if newline and not line.strip() else rest.removeprefix(" ")
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def without_blank_lines(text: str) -> str:
    """`text` without the blank lines at its ends; the first line keeps its indentation."""
    first = len(text) - len(text.lstrip())
    last = len(text.rstrip())
    if last == 0:
        return ""
    end = text.find("\n", last)
    end = len(text) if end < 0 else end
    return text[text.rfind("\n", 0, first) + 1 : end].rstrip("\r")
