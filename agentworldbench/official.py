"""The official evaluator's rules for the text of a reply, bit for bit.

In: a model's text, or a reference. Out: what the official code makes of it
(github.com/QwenLM/Qwen-AgentWorld at cd0aa83; `docs/protocol.md`). Thinking is removed, the last start
tag counts up to the next end tag or the end, a text without tag counts whole, the result is stripped
and freed of the observation marker. The odd sides of these rules are kept on purpose: they are what
published numbers rest on. All scans are linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from functools import lru_cache

_THINK = re.compile(r"<think>|</think>", re.IGNORECASE)
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


def official_observation(text: str | None, observation: str | None, tag: str, marker: str) -> str | None:
    """What the official code takes for the prediction, or None where it sees no generation.

    `text` is the reply's content as it came, null and empty ones are no generation; anything else is
    text, also blank, cut or refusing text. `observation` stands for a baseline's, which has no text.
    """
    if text is None and observation is not None:
        return without_marker(observation, marker)
    return without_marker(extract(text, tag), marker) if text else None


def extract(text: str, tag: str) -> str:
    """The observation inside a model's text, before the marker step."""
    answer, _ = split_thinking(text, tag)
    start_tag, end_tag = _tags(tag)
    start = last_match(start_tag, answer)
    if start is None:
        return answer.strip() or NOTHING_LEFT
    end = end_tag.search(answer, start.end())
    return answer[start.end() : end.start() if end else len(answer)].strip()


def without_marker(text: str, marker: str) -> str:
    """Cut a leading observation marker, else remove every occurrence; strip.

    Applied to predictions and references alike.
    """
    if text.startswith(marker):
        return text[len(marker) :].strip()
    return text.replace(marker, "").strip()
