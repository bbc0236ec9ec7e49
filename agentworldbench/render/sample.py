"""One sample as a person reads it: task, history, the action, and what the environment really answered.

In: a `Sample`, its task and where it comes from. Out: text for a terminal or a file. Folded unless asked otherwise:
of the system prompt and of earlier observations the first lines, with the number of lines left out;
the action to predict and its observation always whole. Prose (system prompt, task) is wrapped where a width is
given; an observation that is JSON as a whole is taken apart, and its heading says so. Characters that could
steer a terminal are shown as pictures or escapes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from agentworldbench.prompts import action_text, previous_observation, reference_observation
from agentworldbench.provenance import Origin
from agentworldbench.records import Sample
from agentworldbench.render.decoded import decoded
from agentworldbench.task import Task
from agentworldbench.texts import count_text

FOLDED: Final = 5
"""Lines shown of a long text where it is folded."""
FOLDED_JSON: Final = 12
"""The same of JSON that was taken apart, whose first lines are its envelope."""
LONGEST: Final = 400
"""Characters shown of a line where it is folded."""
INDENT: Final = "    "
_FENCED: Final = re.compile(r"\A```[^\n]*\n(.*)\n```\Z", re.DOTALL)


def sample_text(
    sample: Sample, task: Task, origin: Origin | None = None, full: bool = False, width: int | None = None
) -> str:
    """The sample as text that ends in a line break. `full`: nothing is folded. `width`: prose is wrapped to it."""
    return "".join(f"{line}\n" for line in _lines(sample, task, origin, full, width))


def _lines(sample: Sample, task: Task, origin: Origin | None, full: bool, width: int | None) -> Iterator[str]:
    ref = sample.ref
    most = None if full else FOLDED
    made = f" · {origin.kind}, recorded {origin.recorded}" if origin else ""
    yield f"━━ {shown(sample.id)} · turn {ref.turn_idx} of {ref.total_turns} · trajectory {ref.cluster[:8]}{made}"
    if sample.system:
        yield from _part(
            f"System prompt, {count_text(len(sample.system), 'character')}", sample.system, most, width
        )
    first, *_ = sample.prompts if len(sample.prompts) > 1 else (sample.action,)
    yield from _part("Task", _instruction(first, task), None, width)
    for number, (prompt, response) in enumerate(
        zip(sample.prompts[:-1], sample.responses[:-1], strict=True), start=1
    ):
        yield from _part(f"Turn {number}: action", action_text(prompt, task), most)
        observed = response.replace(f"{task.markers.observation}\n", "", 1)
        yield from _observation(f"Turn {number}: observation", observed, most)
    if ref.turn_idx == 1 and (before := previous_observation(sample, task)):
        yield from _observation("Screen before", before, most)
    yield from _part(f"Turn {ref.turn_idx}: action, whose observation is to be predicted", action_text(sample.action, task), None)  # fmt: skip
    reference = reference_observation(sample, task)
    yield from _observation(
        f"Turn {ref.turn_idx}: what came, {count_text(len(reference), 'character')}", reference, None
    )


def unfenced(action: str) -> str:
    """An action without the code fence that it stands in."""
    return _FENCED.sub(r"\1", action)


def _instruction(turn: str, task: Task) -> str:
    """The task instruction of a first turn; empty where it has none."""
    text = turn.partition(task.markers.instruction)[2]
    for marker in (*task.markers.state, task.markers.action):
        text = text.partition(marker)[0]
    return text.strip()


def _observation(heading: str, text: str, most: int | None) -> Iterator[str]:
    lines = decoded(text)
    if lines is None:
        yield from _part(heading, text, most)
    else:
        yield from _part(f"{heading}, JSON taken apart", "\n".join(lines), most and FOLDED_JSON)


def _part(heading: str, text: str, most: int | None, width: int | None = None) -> Iterator[str]:
    """A heading and the text below it, at most `most` lines (one more is not worth a fold)."""
    if not text.strip():
        return
    lines = text.strip("\n").split("\n")
    yield f"── {heading}"
    kept = lines if most is None or len(lines) <= most + 1 else lines[:most]
    for line in kept:
        whole = shown(line) if most is None else _cut(shown(line))
        yield from (INDENT + piece for piece in _wrapped(whole, width))
    if left := len(lines) - len(kept):
        yield f"{INDENT}… {count_text(left, 'more line')} (--full shows all)"


def _wrapped(line: str, width: int | None) -> list[str]:
    """The line in pieces that fit; those after the first stand as far in as the line does."""
    if width is None or len(line) <= width - len(INDENT):
        return [line]
    text = line.lstrip(" ")
    margin = " " * min(len(line) - len(text) + 2 * text.startswith("- "), width // 2)
    return textwrap.wrap(
        line,
        max(width - len(INDENT), 20),
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )


def _cut(line: str) -> str:
    left = len(line) - LONGEST
    return line if left <= 0 else f"{line[:LONGEST]}… ({count_text(left, 'more character')})"


def shown(line: str, kept: str = "\t") -> str:
    """A line with its tabs, and control or unassigned characters as pictures (␛) or escapes; those of `kept` stay."""
    if line.isprintable():
        return line
    odd = (char for char in set(line) if not (char.isprintable() or char in kept))
    return line.translate({ord(char): _picture(char) for char in odd})


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
