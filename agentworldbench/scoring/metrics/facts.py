"""What the metrics of one sample share: reference, previous observation, masked lines.

Made once for a sample, from the sample alone; the same object then scores any prediction. Every
value that a metric's applicability rests on is here, so it cannot depend on the prediction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from agentworldbench.prompts import action_text, previous_observation, reference_observation
from agentworldbench.records import Sample
from agentworldbench.scoring.metrics.volatile import Seen, mask
from agentworldbench.task import Task

T = TypeVar("T")

_NUMBERING = re.compile(r" ?\[ref=[\w-]+\]|^\[ *\d+\](?= \|)|^ *\d+\. ")


def normalise(text: str) -> str:
    """N(text): CRLF to LF, blanks at line ends and blank lines at both ends cut. Nothing else."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip(" \t") for line in lines).strip("\n")


def multiset_f1(one: Counter[T], other: Counter[T]) -> float:
    """F1 of two multisets: both empty 1, one empty 0, else 2|A and B| / (|A| + |B|)."""
    total = one.total() + other.total()
    return 1.0 if total == 0 else 2 * (one & other).total() / total


class Facts:
    """One sample as the metrics see it."""

    def __init__(self, sample: Sample, task: Task) -> None:
        self.sample = sample
        self.task = task
        self.reference = normalise(reference_observation(sample, task))
        self._seen = Seen("\n".join((*sample.prompts[:-1], *sample.responses[:-1], sample.action)))
        self._masked: dict[str, str] = {}
        self._read: dict[tuple[Callable[..., Any], str], Any] = {}

    def once(self, read: Callable[[str], T], text: str) -> T:
        """`read(text)`, made once for this sample: several metrics of a family share one parsed text."""
        key = (read, text)
        if key not in self._read:
            self._read[key] = read(text)
        found: T = self._read[key]
        return found

    def mask(self, text: str) -> str:
        """Normalised text with volatile parts masked that the history does not hold."""
        if text not in self._masked:
            self._masked[text] = mask(text, self.task.volatile, self._seen)
        return self._masked[text]

    def lines(self, text: str) -> Counter[str]:
        """Multiset of masked lines that are not blank."""
        return Counter(line for line in self.mask(text).split("\n") if line.strip())

    def state(self, text: str) -> Counter[str]:
        """`lines` without element numbers, which shift when anything is inserted, and without the
        heading of the state, which stands in some sources' responses but not in what follows it in a prompt.
        """
        lines = Counter(_NUMBERING.sub("", line) for line in self.mask(text).split("\n") if line.strip())
        for heading in self.task.markers.state:
            lines.pop(heading, None)
        return lines

    @cached_property
    def action(self) -> str:
        """The action alone, without its marker."""
        return action_text(self.sample.action, self.task)

    @cached_property
    def previous(self) -> str | None:
        """The observation before the action, normalised; None where there is none."""
        previous = previous_observation(self.sample, self.task)
        return None if previous is None else normalise(previous)

    @cached_property
    def masked_reference(self) -> str:
        """The reference, normalised and masked."""
        return self.mask(self.reference)

    @cached_property
    def reference_lines(self) -> Counter[str]:
        """Masked lines of the reference."""
        return self.lines(self.reference)

    @cached_property
    def reference_state(self) -> Counter[str]:
        """Lines of the reference without element numbers."""
        return self.state(self.reference)

    @cached_property
    def previous_state(self) -> Counter[str] | None:
        """Lines of the observation before the action, or None where there is none."""
        return None if self.previous is None else self.state(self.previous)

    @cached_property
    def changed(self) -> bool | None:
        """Whether the action changed the snapshot; None without a previous one."""
        return None if self.previous_state is None else self.reference_state != self.previous_state
