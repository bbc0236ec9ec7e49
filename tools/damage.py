"""Operators that make a true observation worse in one known way, and what the metrics say of it.

In: the bundled rows. Out: damaged texts, and the values of all metrics for them, each scored once. The
operators are those of the laws: a wrong number, a dropped line, the status exchanged, the screen before,
another sample's observation, the text three times more, nothing. Strength 0 leaves a text as it is;
stronger damage contains the weaker one at the same places, and where there is nothing more to damage it
is the same. Used by the tests of the laws and by `make_ordering_table.py`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Final

from agentworldbench.dataset import open_dataset
from agentworldbench.models.baseline import copy_last
from agentworldbench.prompts import reference_observation
from agentworldbench.records import Sample
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.error_kinds import error_kinds
from agentworldbench.sources import resolve_source
from agentworldbench.task import Task

STRENGTHS: Final = (0, 1, 2, 4)
DISTANCE: Final = 7
"""How far away the other sample stands: in another trajectory."""


@dataclass(frozen=True)
class Scene:
    """A sample of the bundled set, with what operators take from elsewhere."""

    sample: Sample
    task: Task
    text: str
    before: str
    """What `baseline/copy-last` answers."""
    other: str
    """The observation of another sample of the domain."""

    def random(self) -> random.Random:
        """Random numbers of its own, the same each time."""
        return random.Random(self.sample.id)


Operator = Callable[[Scene, int], str]


def wrong_number(scene: Scene, strength: int) -> str:
    """`strength` numbers have other digits."""
    numbers = list(re.finditer(r"\d+", scene.text))
    scene.random().shuffle(numbers)
    text = scene.text
    for match in sorted(numbers[:strength], key=lambda match: -match.start()):
        wrong = "".join(str((int(digit) + 5) % 10) for digit in match.group())
        text = text[: match.start()] + wrong + text[match.end() :]
    return text


def dropped_line(scene: Scene, strength: int) -> str:
    """`strength` lines are missing; a text of one line loses lines of the text it quotes."""
    joint = r"\n" if "\n" in scene.text else r"(?:\\+n)"
    parts = re.split(f"({joint})", scene.text)
    lines = range(0, len(parts), 2)
    gone = scene.random().sample(lines, len(lines))[:strength]
    kept = [line for line in lines if line not in gone]
    return "".join(parts[line] + (parts[line + 1] if line != kept[-1] else "") for line in kept)


def wrong_status(scene: Scene, strength: int) -> str:
    """Success and failure exchanged wherever the observation writes its status out, from strength 1 on."""
    swap = STATUS.get(scene.task.domain)
    return swap(scene.text) if swap and strength else scene.text


def stale_copy(scene: Scene, strength: int) -> str:
    """The observation of the turn before, from strength 1 on."""
    return scene.before if strength else scene.text


def another_observation(scene: Scene, strength: int) -> str:
    """The observation of another sample, from strength 1 on."""
    return scene.other if strength else scene.text


def padding(scene: Scene, strength: int) -> str:
    """The whole text three times more for each step of strength."""
    return "\n".join([scene.text] * (1 + 3 * strength))


def empty(scene: Scene, strength: int) -> str:
    """Nothing, from strength 1 on."""
    return "" if strength else scene.text


OPERATORS: Final[dict[str, Operator]] = {
    operator.__name__: operator
    for operator in (
        wrong_number,
        dropped_line,
        wrong_status,
        stale_copy,
        another_observation,
        padding,
        empty,
    )
}


def _tool_flag(text: str) -> str:
    """The flag of a tool's envelope."""
    return re.sub(r'(\\"isError\\": )(true|false)', lambda found: found[1] + _OTHER[found[2]], text)


def _exit_code(text: str) -> str:
    """A command's exit code and the summary of its tests."""
    text = re.sub(
        r"(?m)^(Exit Code: )(\d+)$", lambda found: found[1] + ("1" if found[2] == "0" else "0"), text
    )
    summary = r"(?m)^(?:=+ )?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s.*$"
    words = r"\b(?:passed|failed)\b"
    return re.sub(summary, lambda line: re.sub(words, lambda word: _OTHER[word[0]], line[0]), text)


def _shell_error(text: str) -> str:
    """Error messages left out, or one put before the last prompt where there is none."""
    lines = text.split("\n")
    kept = [line for line in lines if not error_kinds([line])]
    if len(kept) == len(lines) and len(lines) > 1 and re.search(r"[$#>*] ?$", lines[-1]):
        kept.insert(-1, "bash: frobnicate: command not found")
    return "\n".join(kept)


def _browser_error(text: str) -> str:
    """The heading of a browser's result or error."""
    return re.sub(r"(?m)^### (Result|Error)$", lambda found: f"### {_OTHER[found[1]]}", text)


_PAIRS: Final = (("true", "false"), ("passed", "failed"), ("Result", "Error"))
_OTHER: Final = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
STATUS: Final[dict[str, Callable[[str], str]]] = {
    "mcp": _tool_flag,
    "swe": _exit_code,
    "terminal": _shell_error,
    "web": _browser_error,
}
"""How each domain writes success and failure; a list of results, a phone and a desktop write none."""


@cache
def scenes() -> Mapping[str, tuple[Scene, ...]]:
    """The bundled set by domain."""
    source = resolve_source("mini")
    dataset = open_dataset(source.files, source.tasks)
    found = {}
    for domain, task in source.tasks.items():
        samples = [dataset.load(ref) for ref in dataset.refs if ref.domain == domain]
        texts = [reference_observation(sample, task) for sample in samples]
        found[domain] = tuple(
            Scene(sample, task, texts[at], copy_last(sample, task), texts[(at + DISTANCE) % len(texts)])
            for at, sample in enumerate(samples)
        )
    return found


@cache
def _values(domain: str, at: int, text: str) -> Mapping[str, float]:
    scene = scenes()[domain][at]
    return score_observation(scene.sample, scene.task, text).values


@cache
def scored(domain: str, operator: str, strength: int) -> tuple[Mapping[str, float], ...]:
    """The metrics of each sample under a damage."""
    texts = [OPERATORS[operator](scene, strength) for scene in scenes()[domain]]
    return tuple(_values(domain, at, text) for at, text in enumerate(texts))


def mean(domain: str, operator: str, strength: int, metric: str) -> float | None:
    """Mean of a metric over the samples of the bundled set where it applies; None where it never does."""
    found = [values[metric] for values in scored(domain, operator, strength) if metric in values]
    return fmean(found) if found else None


def rule_score(domain: str, operator: str, strength: int, among: str | None = None) -> float | None:
    """Mean over samples of the mean of their primary metrics, 0-100; `among` leaves out the samples that
    this operator does not damage. None where there is no sample.
    """
    found = []
    for scene, values in zip(scenes()[domain], scored(domain, operator, strength), strict=True):
        primary = [values[name] for name in scene.task.primary if name in values]
        if primary and (among is None or OPERATORS[among](scene, 1) != scene.text):
            found.append(fmean(primary))
    return 100 * fmean(found) if found else None
