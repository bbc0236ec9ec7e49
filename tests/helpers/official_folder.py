"""Writes a folder in the layout of the official data, with our own texts, and says what is in it.

`make_official_folder(path, seed=...)` writes `{domain}_test.jsonl` for the seven domains and
returns a `Manifest`: each row with its place, id, traits and the cluster it belongs to. Clusters
come from comparing all rows pairwise, text by text (row A continues into row B when system_str is
equal and A's turns and responses are a prefix of B's; connected rows are one cluster), not from
the generator's plan: trajectories that share a sampled turn-1 row are ONE cluster, also when they
part later; the same pair without a sampled row in the shared part is two. `trajectories`,
`turns` and `observation_chars` make the folder as large as a test needs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from .observation_texts import FAILURE, ODD_SEPARATORS, action, observation, words

DOMAINS: Final = ("mcp", "search", "terminal", "swe", "android", "web", "os")
GUI: Final = frozenset({"android", "web", "os"})
MARKER: Final = "**Environment Observation:**"
SUFFIX: Final = (
    "\n\nNow write what this environment answers to the action above.\n\nReason first if you like. Then put "
    "the observation, and nothing else, between <predicted_observation> and </predicted_observation>."
)

Turn = tuple[str, str]
"""Turn text without suffix, response with its marker."""


@dataclass(frozen=True)
class ManifestRow:
    """One row of the folder. `line` counts from 1, `ordinal` counts equal (typed id, turn_idx)."""

    domain: str
    line: int
    id: int | str
    turn_idx: int
    total_turns: int
    ordinal: int
    cluster: str
    trajectory: str
    """The generator's own name of the episode: finer than `cluster`."""
    traits: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """All rows in file order, domain by domain."""

    folder: Path
    rows: tuple[ManifestRow, ...]

    def of(self, domain: str) -> tuple[ManifestRow, ...]:
        """The rows of one domain in file order."""
        return tuple(row for row in self.rows if row.domain == domain)

    def having(self, trait: str) -> tuple[ManifestRow, ...]:
        """The rows with one trait; never empty for the traits of `_special` in their domain."""
        return tuple(row for row in self.rows if trait in row.traits)

    def partition(self, domain: str) -> frozenset[frozenset[int]]:
        """The expected clusters as sets of line numbers."""
        lines: dict[str, set[int]] = {}
        for row in self.of(domain):
            lines.setdefault(row.cluster, set()).add(row.line)
        return frozenset(frozenset(members) for members in lines.values())

    @property
    def row_counts(self) -> Mapping[str, int]:
        """Rows per domain."""
        return Counter(row.domain for row in self.rows)

    @property
    def cluster_counts(self) -> Mapping[str, int]:
        """Clusters per domain."""
        return Counter(domain for domain, _ in dict.fromkeys((row.domain, row.cluster) for row in self.rows))


@dataclass(frozen=True)
class _Episode:
    domain: str
    name: str
    id: int | str
    system: str
    turns: tuple[Turn, ...]
    sampled: tuple[int, ...]
    traits: tuple[str, ...] = ()
    task: str = ""


@dataclass(frozen=True)
class _Row:
    episode: _Episode
    turn_idx: int
    task: str

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.episode.turns[: self.turn_idx]

    def record(self) -> dict[str, Any]:
        prompts = [text for text, _ in self.turns]
        return {
            "task": self.task,
            "id": self.episode.id,
            "prompt": [*prompts[:-1], prompts[-1] + SUFFIX],
            "response": [response for _, response in self.turns],
            "current_prompt": prompts[-1],
            "system_str": self.episode.system,
            "turn_idx": self.turn_idx,
            "total_turns": len(self.episode.turns),
        }


def make_official_folder(
    path: Path,
    *,
    seed: int = 0,
    domains: Iterable[str] = DOMAINS,
    trajectories: int = 3,
    turns: int = 6,
    observation_chars: int = 400,
    special: bool = True,
) -> Manifest:
    """Writes the folder and returns its manifest; equal arguments give equal bytes.

    Args:
        trajectories: ordinary ones per domain; five rows each (first, last, three between).
        turns: turns of an ordinary trajectory, at least 3.
        observation_chars: rough length of one observation.
        special: also write the trajectories and rows with traps, which `traits` name.
    """
    if turns < 3:
        raise ValueError("a trajectory needs 3 turns for a first, a last and one between")
    path.mkdir(parents=True, exist_ok=True)
    rows: list[ManifestRow] = []
    for domain in domains:
        maker = _Maker(domain, seed, turns, observation_chars)
        episodes = [maker.episode(f"plain-{n}") for n in range(trajectories)]
        if special:
            episodes += _special(maker)
        rows += _write(path / f"{domain}_test.jsonl", domain, episodes, Random(f"{seed}/{domain}/order"))
    return Manifest(path, tuple(rows))


class _Maker:
    """Makes the episodes of one domain; each has random numbers of its own."""

    def __init__(self, domain: str, seed: int, turns: int, chars: int) -> None:
        self.domain = domain
        self._seed = seed
        self._turns = turns
        self._chars = chars
        self._count = 0

    def episode(self, name: str, *, traits: tuple[str, ...] = (), **changes: Any) -> _Episode:
        rng = self._rng(name)
        self._count += 1
        between = rng.sample(range(2, self._turns), min(3, self._turns - 2))
        made = _Episode(
            domain=self.domain,
            name=f"{self.domain}/{name}",
            id=self._id(rng),
            system=self._system(),
            turns=tuple(self._turn(rng, n) for n in range(1, self._turns + 1)),
            sampled=tuple(sorted({1, self._turns, *between})),
            traits=traits,
            task=self.domain,
        )
        return replace(made, **changes)

    def fork(self, trunk: _Episode, name: str, after: int, *, same_action: bool, **changes: Any) -> _Episode:
        """An episode equal to `trunk` for `after` turns; then also the next action may be equal."""
        other = self.episode(name, traits=trunk.traits)
        kept = trunk.turns[:after]
        parting = (trunk.turns[after][0], other.turns[after][1]) if same_action else other.turns[after]
        changes = {"system": trunk.system, "sampled": trunk.sampled, **changes}
        return replace(other, turns=(*kept, parting, *other.turns[after + 1 :]), **changes)

    def _rng(self, name: str) -> Random:
        return Random(f"{self._seed}/{self.domain}/{name}")

    def _id(self, rng: Random) -> int | str:
        if self.domain not in GUI:
            return rng.randrange(10**14, 10**15)
        # Above the small ids that the special episodes set.
        return 100 + self._count if self._count % 2 else f"{100 + self._count}"

    def _system(self) -> str:
        asks = " Put it between <predicted_observation> tags." if self.domain in GUI else ""
        tools = words(self._rng("tools"), 12)
        job = f"You are the {self.domain} environment. You answer actions with observations."
        return f"{job}{asks}\nTools: {tools}"

    def _turn(self, rng: Random, number: int) -> Turn:
        head = f"### Turn {number}\n\n"
        if number == 1:
            state = "**Current Phone State:**" if self.domain == "android" else "**Current State:**"
            head += (
                f"**Task Instruction:**\nFind {words(rng, 5)} and note it.\n\n{state}\n{words(rng, 6)}\n\n"
            )
        text = f"{head}**Action:**\n```\n{action(self.domain, rng, number)}\n```"
        return text, f"{MARKER}\n{observation(self.domain, rng, number, self._chars)}"


def _special(maker: _Maker) -> list[_Episode]:
    """The episodes with traps; each trait below names at least one row of its domain."""
    domain = maker.domain
    if domain in {"mcp", "android"}:
        # Same system_str and first action, other first response: two clusters.
        trunk = maker.episode("early", traits=("fork_early",))
        episodes = [trunk, maker.fork(trunk, "early-other", 0, same_action=True)]
    elif domain in {"swe", "web"}:
        # Same first response too, and turn 1 is sampled: one cluster through the turn-1 rows.
        trunk = maker.episode("late", traits=("fork_late",))
        episodes = [trunk, maker.fork(trunk, "late-other", 1, same_action=True)]
    else:
        # The same, but no sampled row inside the shared part: two clusters.
        trunk = maker.episode("unsampled", traits=("fork_unsampled",), sampled=(2, 3))
        episodes = [trunk, maker.fork(trunk, "unsampled-other", 1, same_action=False)]
    return [*episodes, *_own_special(maker)]


def _own_special(maker: _Maker) -> list[_Episode]:
    match maker.domain:
        case "search":
            odd = _with_response(maker.episode("separators", traits=("odd_separators",)), 1, ODD_SEPARATORS)
            one = maker.episode("single", traits=("single_turn",), sampled=(1,))
            return [odd, replace(one, turns=one.turns[:1])]
        case "terminal":
            path = maker.episode("path", traits=("path_task",), task="x/terminal")
            return [path, maker.episode("silent", traits=("no_system",), system="")]
        case "swe":
            failed = maker.episode("failure", traits=("environment_failure",), sampled=(1, 2))
            return [_with_response(failed, 2, FAILURE)]
        case "android":
            # Equal ids of distinct episodes; (7, 3) occurs twice.
            first = maker.episode("seven", traits=("equal_id",), id=7, sampled=(1, 3))
            return [first, maker.episode("seven-other", traits=("equal_id",), id=7, sampled=(2, 3))]
        case "web":
            number = maker.episode("one", traits=("typed_id",), id=1, sampled=(1, 3))
            return [number, maker.episode("one-text", traits=("typed_id",), id="1", sampled=(1, 3))]
        case _:
            return []


def _with_response(episode: _Episode, number: int, text: str) -> _Episode:
    turns = list(episode.turns)
    turns[number - 1] = (turns[number - 1][0], f"{MARKER}\n{text}")
    return replace(episode, turns=tuple(turns))


def _rows(episodes: Iterable[_Episode]) -> Iterator[_Row]:
    for episode in episodes:
        for turn_idx in episode.sampled:
            # The path form of the task stands on one row only, in the middle of its cluster.
            plain = episode.task if turn_idx == episode.sampled[1 % len(episode.sampled)] else episode.domain
            yield _Row(episode, turn_idx, plain)


def _write(path: Path, domain: str, episodes: list[_Episode], rng: Random) -> Iterator[ManifestRow]:
    rows = list(_rows(episodes))
    rng.shuffle(rows)
    clusters = _clusters(rows)
    seen: Counter[tuple[str, int]] = Counter()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line, (row, cluster) in enumerate(zip(rows, clusters, strict=True), start=1):
            file.write(json.dumps(row.record(), ensure_ascii=False) + "\n")
            episode = row.episode
            key = (repr(episode.id), row.turn_idx)
            seen[key] += 1
            yield ManifestRow(
                domain=domain,
                line=line,
                id=episode.id,
                turn_idx=row.turn_idx,
                total_turns=len(episode.turns),
                ordinal=seen[key],
                cluster=f"{domain}-{cluster}",
                trajectory=episode.name,
                traits=_traits(row),
            )


def _traits(row: _Row) -> tuple[str, ...]:
    """The episode's traits, less those that do not show in this row."""
    response = row.turns[-1][1]
    shown = {
        "path_task": row.task != row.episode.domain,
        "environment_failure": response.endswith(FAILURE),
        "odd_separators": any(ODD_SEPARATORS in text for _, text in row.turns),
    }
    return tuple(trait for trait in row.episode.traits if shown.get(trait, True))


def _clusters(rows: list[_Row]) -> list[int]:
    """A number per row, equal for connected rows: all pairs compared, text by text."""
    numbers = list(range(len(rows)))
    texts = [(row.episode.system, row.turns) for row in rows]
    for a, (system, turns) in enumerate(texts):
        for b, (other_system, other_turns) in enumerate(texts):
            if a != b and system == other_system and other_turns[: len(turns)] == turns:
                low, high = sorted((numbers[a], numbers[b]))
                numbers = [low if number == high else number for number in numbers] if low < high else numbers
    return numbers
