"""Rows of the benchmark's size as sequences of token blocks, without any text.

In: a seed. Out: `SampleRef`s as the harness orders them, and for each the prompt that the model is asked
and the one that a judge is asked, as hashes of its 16-token blocks. Row counts, mean prompt lengths and
mean turns of each domain are the published ones; in the domains of text each trajectory has its first turn,
its last and three between, in the others one to five. What is not published is assumed: nearly half of a
prompt is the system text (so that all prompts have 73 million tokens and all judge prompts 42 million),
three agents ran each task, and a domain has two system texts or, with `own_systems`, one for each task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

from agentworldbench.records import SampleRef

BLOCK: Final = 16
SHAPES: Final = {
    "mcp": (286, 59_300, 24.1), "search": (458, 38_600, 15.3), "terminal": (354, 12_900, 26.5),
    "swe": (472, 34_200, 27.8), "android": (200, 23_200, 33.1), "web": (200, 31_100, 14.4),
    "os": (200, 35_600, 12.1),
}  # fmt: skip
"""By domain: rows, mean tokens of a prompt, mean turns of a trajectory."""
GUI: Final = frozenset({"android", "web", "os"})
SYSTEM_SHARE: Final = 0.47
AGENTS: Final = 3
SUFFIX: Final = 90
JUDGE_SYSTEM: Final = 1_800
OBSERVATION: Final = 800
"""Tokens: of the instruction behind the last action, of a judge's system prompt, of an observation at least."""

Part = tuple[str, int]
"""What stands in a prompt, by a name that is the same exactly where the text is, and its tokens."""


@dataclass(frozen=True)
class Row:
    """One sample: where it belongs, and its prompts as parts."""

    ref: SampleRef
    asked: tuple[Part, ...]
    judged: tuple[Part, ...]

    @property
    def lane(self) -> str:
        """Its trajectory."""
        return self.ref.cluster


@dataclass
class Blocks:
    """Numbers for blocks: equal exactly where everything up to the block's end is equal."""

    known: dict[tuple[int, str], int] = field(default_factory=dict)

    def of(self, parts: Sequence[Part]) -> list[int]:
        """The full blocks of a prompt, in order."""
        chain, start, blocks = 0, 0, list[int]()
        for name, tokens in parts:
            chain = self.known.setdefault((chain, name), len(self.known) + 1)
            blocks += [chain << 20 | number for number in range(start // BLOCK, (start + tokens) // BLOCK)]
            start += tokens
        return blocks


@dataclass(frozen=True)
class _Trajectory:
    name: str
    task: str
    turns: tuple[tuple[int, int], ...]
    """Tokens of prompt and response of each turn."""
    sampled: tuple[int, ...]

    def tokens(self, turn: int) -> int:
        """Tokens of the turns in the prompt of `turn`."""
        return sum(map(sum, self.turns[: turn - 1])) + self.turns[turn - 1][0]


def generate(seed: int, own_systems: bool = False) -> list[Row]:
    """All 2,170 rows in the order of the files; equal arguments give equal rows."""
    return [row for domain in SHAPES for row in _domain(domain, Random(f"{seed} {domain}"), own_systems)]


def _domain(domain: str, random: Random, own_systems: bool) -> Iterator[Row]:
    rows, mean, turns = SHAPES[domain]
    trajectories, left = list[_Trajectory](), rows
    while left:
        made = _trajectory(f"{domain}-{len(trajectories)}", len(trajectories), turns, left, domain, random)
        trajectories.append(made)
        left -= len(made.sampled)
    random.shuffle(trajectories)
    system = round(mean * SYSTEM_SHARE)
    drawn = sum(one.tokens(turn) for one in trajectories for turn in one.sampled) / rows
    scale = (mean - system - SUFFIX) / drawn
    line = count(1)
    for one in trajectories:
        number = int(one.task.rpartition("-")[2])
        text = f"system {one.task if own_systems else f'{domain} {number % 2}'}"
        for turn in one.sampled:
            yield _row(domain, one, turn, next(line), (text, system), scale)


def _trajectory(name: str, number: int, turns: float, left: int, domain: str, random: Random) -> _Trajectory:
    length = max(5, round(random.lognormvariate(0, 0.5) * turns / 1.13))
    actions = [max(10, round(random.lognormvariate(0, 0.8) * 150)) for _ in range(length)]
    actions[0] += 400  # the instruction, which all agents of a task share
    answers = [max(20, round(random.lognormvariate(0, 1.0) * 600)) for _ in range(length)]
    if domain in GUI:
        sampled = random.sample(range(1, length + 1), random.randint(1, 5))
    else:
        sampled = [1, length, *random.sample(range(2, length), 3)]
    task = f"{domain}-task-{number // AGENTS}"
    chosen = tuple(sorted(sampled)[:left])
    return _Trajectory(name, task, tuple(zip(actions, answers, strict=True)), chosen)


def _row(domain: str, one: _Trajectory, turn: int, line: int, system: Part, scale: float) -> Row:
    def part(kind: str, index: int, tokens: int) -> list[Part]:
        scaled = round(tokens * scale)
        if kind == "prompt" and index == 0:  # the instruction is the task's, the first action the agent's
            shared = round(400 * scale)
            return [(f"{one.task} instruction", shared), (f"{one.name} prompt 0", scaled - shared)]
        return [(f"{one.name} {kind} {index}", scaled)]

    history = list[Part]()
    for index, (prompt, response) in enumerate(one.turns[: turn - 1]):
        history += part("prompt", index, prompt) + part("response", index, response)
    action = part("prompt", turn - 1, one.turns[turn - 1][0])
    identity = f"{domain}/{line}"
    unlike = [(f"{identity} {kind}", OBSERVATION) for kind in ("prediction", "reference")]
    frame = [(f"judge {domain}", JUDGE_SYSTEM), ("begin of the history", 150)]
    ref = SampleRef(
        id=identity, domain=domain, row_id=one.name, turn_idx=turn, total_turns=len(one.turns),
        cluster=one.name, task_key=one.task, row_hash="0" * 64, line=line, offset=0, length=1,
        context_chars=4 * (system[1] + one.tokens(turn)),
    )  # fmt: skip
    judged = (*frame, *history, (f"{identity} end of the history", 30), *action, *unlike, ("answer", 150))
    return Row(ref, (system, *history, *action, ("suffix", SUFFIX)), judged)
