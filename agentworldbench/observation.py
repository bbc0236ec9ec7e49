"""Text of a model to the observation it predicts, or to a typed failure.

In: a completion and the task's tag and marker. Out: the observation, the reasoning found inside the
text, or a `Failure`. The extraction is the official evaluator's (github.com/QwenLM/Qwen-AgentWorld
at cd0aa83, `docs/protocol.md`): thinking is removed, the last start tag counts up to the next end
tag or the end, a text without tag counts whole, the result is stripped and freed of the observation
marker. In front of it stands a check that the official code lacks: empty, cut, refused and filtered
replies are failures and are never read as text. All scans are linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from functools import lru_cache

from agentworldbench.records import Completion, Failure, FailureKind

_THINK = re.compile(r"<think>|</think>", re.IGNORECASE)
EXTRACTION = "official, version 1"
"""Name of the rules below, recorded with every run: other rules make other predictions."""
NOTHING_LEFT = "No output"
"""What the official extraction returns when no text is left."""


@lru_cache(maxsize=32)
def _tags(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(f"<{tag}>", re.IGNORECASE), re.compile(f"</{tag}>", re.IGNORECASE)


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last match of `pattern` in `text`, or None."""
    found = deque(pattern.finditer(text), maxlen=1)
    return found[0] if found else None


def split_thinking(text: str, tag: str) -> tuple[str, str]:
    """(text without thinking, the thinking), by the official rules.

    Each closer ends the earliest opener that is still open; a closer without opener takes all that
    stands before it; an opener without closer takes all up to the next start tag of `tag`, or to
    the end. Whatever any of these spans covers is thinking.
    """
    spans: list[tuple[int, int]] = []
    opened: deque[int] = deque()
    for match in _THINK.finditer(text):
        if not match.group().startswith("</"):
            opened.append(match.start())
        else:
            spans.append((opened.popleft() if opened else 0, match.end()))
    if opened:
        answers = [match.start() for match in _tags(tag)[0].finditer(text)]
        for position in opened:
            nearest = bisect_left(answers, position)
            spans.append((position, answers[nearest] if nearest < len(answers) else len(text)))
    kept: list[str] = []
    thought: list[str] = []
    end = 0
    for first, last in sorted(spans):
        if first > end:
            kept.append(text[end:first])
        if last > end:
            thought.append(_THINK.sub("", text[max(first, end) : last]).strip())
            end = last
    kept.append(text[end:])
    return "".join(kept), "\n".join(part for part in thought if part)


def extract(text: str, tag: str) -> str:
    """The observation inside a model's text, before the marker step (official rule)."""
    answer, _ = split_thinking(text, tag)
    start_tag, end_tag = _tags(tag)
    start = last_match(start_tag, answer)
    if start is None:
        return answer.strip() or NOTHING_LEFT
    end = end_tag.search(answer, start.end())
    return answer[start.end() : end.start() if end else len(answer)].strip()


def without_marker(text: str, marker: str) -> str:
    """Cut a leading observation marker, else remove every occurrence; strip (official rule).

    Applied to predictions and references alike.
    """
    if text.startswith(marker):
        return text[len(marker) :].strip()
    return text.replace(marker, "").strip()


def thinking_open(text: str) -> bool:
    """Whether the thinking was begun and never ended. A reply that was cut then holds drafts at most."""
    depth = 0
    for match in _THINK.finditer(text):
        depth = max(depth - 1, 0) if match.group().startswith("</") else depth + 1
    return depth > 0


def complete(text: str, tag: str) -> bool:
    """Whether the text holds a finished answer: thinking ended, and an end tag after the last start tag."""
    if thinking_open(text):
        return False
    answer, _ = split_thinking(text, tag)
    start_tag, end_tag = _tags(tag)
    start = last_match(start_tag, answer)
    return start is not None and end_tag.search(answer, start.end()) is not None


def reply_failure(completion: Completion, complete_answer: bool, has_answer: bool) -> Failure | None:
    """Why a completion may not be read, or None. Shared by predictions and verdicts.

    `complete_answer`: the text holds a finished answer although it may have been cut later;
    `has_answer`: text is left once the thinking is taken away.
    """
    reason = completion.finish_reason
    if completion.refusal:
        return Failure(kind=FailureKind.REFUSED, message=f"the model refused: {completion.refusal[:200]}")
    if reason == "content_filter":
        return Failure(
            kind=FailureKind.CONTENT_FILTER, message="the provider's content filter stopped the answer"
        )
    if reason == "length" and not complete_answer:
        used = completion.usage.completion_tokens
        spent = f" after {used} tokens" if used else ""
        what = "the answer" if has_answer else "the reasoning"
        return Failure(kind=FailureKind.TRUNCATED, message=f"{what} was cut by the token limit{spent}")
    if not has_answer:
        if completion.tool_calls:
            return Failure(kind=FailureKind.TOOL_CALL, message="the model called a tool instead of answering")
        used = completion.usage.completion_tokens
        thinking = completion.reasoning or (completion.text or "").strip()
        hint = " (only reasoning came back)" if thinking else ""
        if used and not thinking:
            hint = (
                f" although {used} tokens were made; is the server's reasoning parser right for this model?"
            )
        return Failure(kind=FailureKind.EMPTY, message=f"the reply has no text{hint}")
    return None


def read_reply(
    completion: Completion, tag: str, marker: str
) -> tuple[str | None, str | None, Failure | None]:
    """(observation, reasoning, failure) of a completion; exactly one of the outer two is None."""
    if completion.observation is not None:
        return completion.observation, completion.reasoning, None
    text = completion.text or ""
    answer, thinking = split_thinking(text, tag)
    stored = completion.reasoning or ""  # a replayed answer's reasoning already holds what its text shows
    reasoning = "\n".join(part for part in (stored, "" if thinking in stored else thinking) if part) or None
    failure = reply_failure(completion, complete(text, tag), bool(answer.strip()))
    if failure:
        return None, reasoning, failure
    return without_marker(extract(text, tag), marker), reasoning, None
