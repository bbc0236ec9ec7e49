"""What all recorders share: recorded turns become benchmark rows, rows become files.

In: a `Trajectory` (name, task instruction, system text) and its `Turn`s (action text as shown to
the model, observation as the environment gave it). Out: `<domain>_test.jsonl` in the row format of
AgentWorldBench (task, id, prompt, response, current_prompt, system_str, turn_idx, total_turns) and
the domain's entry in `provenance.json`. Five turns of a trajectory become rows: the first, the last
and three between; a row holds turns 1..turn_idx, and only the last element of its `prompt`
ends in the instruction suffix (`prompts/suffix.md`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
MINI = HERE.parents[1] / "agentworldbench" / "data" / "mini"
SAMPLED_TURNS = 5
LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Turn:
    """One step: the action as text (without its fence) and the observation it led to."""

    action: str
    observation: str


@dataclass(frozen=True)
class Trajectory:
    """One recorded episode of a domain; `name` is unique in the domain and fixes the id.

    `state` is what the agent saw before its first action, shown on turn 1 (domains whose
    observations are whole screens); `state_heading` stands above it.
    """

    name: str
    instruction: str
    system: str
    turns: tuple[Turn, ...]
    state: str = ""
    state_heading: str = "**Current State:**"


def load_scripts(domain: str) -> list[dict[str, Any]]:
    """The scripted agents of `domain`, sorted by file name; the file's stem becomes `name`."""
    paths = sorted((HERE / "trajectories" / domain).glob("*.yaml"))
    if not paths:
        raise FileNotFoundError(f"no trajectory scripts for domain {domain}")
    return [{"name": path.stem, **yaml.safe_load(path.read_text(encoding="utf-8"))} for path in paths]


def prompt_text(name: str, **values: str) -> str:
    """The text `prompts/<name>.md` with its `$placeholders` filled; surrounding blanks removed."""
    text = (HERE / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values).strip()


def count_lines(text: str) -> str:
    """The number of lines of a file's text, in words: `1 line`, `12 lines`."""
    count = len(text.splitlines())
    return f"{count} line{'' if count == 1 else 's'}"


def suffix() -> str:
    """What is appended to the last prompt of a row: think, then answer inside the tag."""
    return "\n\n" + prompt_text("suffix")


def row_id(domain: str, name: str) -> int:
    """A 15-digit integer that depends on domain and trajectory name only."""
    digest = hashlib.sha256(f"{domain}/{name}".encode()).digest()
    return 10**14 + int.from_bytes(digest[:8], "big") % (9 * 10**14)


def sampled_turns(total: int) -> list[int]:
    """1-based turns that become rows: first, last and three evenly spread between (all if <= 5)."""
    if total <= SAMPLED_TURNS:
        return list(range(1, total + 1))
    return [1 + (total - 1) * step // (SAMPLED_TURNS - 1) for step in range(SAMPLED_TURNS)]


def turn_prompt(trajectory: Trajectory, number: int) -> str:
    """The text of turn `number` (1-based): heading, instruction and state on turn 1, fenced action."""
    head = f"### Turn {number}\n"
    if number == 1:
        head += f"**Task Instruction:**\n{trajectory.instruction.strip()}\n\n"
        if trajectory.state:
            head += f"{trajectory.state_heading}\n{trajectory.state}\n\n"
    return f"{head}**Action:**\n```\n{trajectory.turns[number - 1].action}\n```"


def rows(domain: str, trajectory: Trajectory) -> list[dict[str, Any]]:
    """The sampled rows of one trajectory, ascending in `turn_idx`."""
    total = len(trajectory.turns)
    prompts = [turn_prompt(trajectory, number) for number in range(1, total + 1)]
    responses = [f"**Environment Observation:**\n{turn.observation}" for turn in trajectory.turns]
    return [
        {
            "task": domain,
            "id": row_id(domain, trajectory.name),
            "prompt": [*prompts[: turn - 1], prompts[turn - 1] + suffix()],
            "response": responses[:turn],
            "current_prompt": prompts[turn - 1],
            "system_str": trajectory.system,
            "turn_idx": turn,
            "total_turns": total,
        }
        for turn in sampled_turns(total)
    ]


def write_rows(output: Path, domain: str, trajectories: Iterable[Trajectory]) -> Path:
    """Write `<output>/<domain>_test.jsonl`: one row a line, sorted by trajectory then turn."""
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{domain}_test.jsonl"
    lines = [
        json.dumps(row, ensure_ascii=False) + "\n"
        for trajectory in sorted(trajectories, key=lambda item: item.name)
        for row in rows(domain, trajectory)
    ]
    replace_text(path, "".join(lines))
    return path


def write_provenance(output: Path, domain: str, entry: dict[str, Any]) -> None:
    """Set the entry of `domain` in `<output>/provenance.json`; other domains stay as they are."""
    path = output / "provenance.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    document.setdefault("schema_version", 1)
    document.setdefault("data_set", "mini")
    document.setdefault("licence", LICENCE)
    domains = document.setdefault("domains", {})
    domains[domain] = {"recorded": datetime.now(UTC).date().isoformat(), "licence": LICENCE, **entry}
    document["domains"] = dict(sorted(domains.items()))
    replace_text(path, json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def replace_text(path: Path, text: str) -> None:
    """Write `text` to `path` in one step, so that a reader never sees half a file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8", newline="\n")
    draft.replace(path)


def main(
    domain: str,
    record: Callable[[dict[str, Any]], Trajectory],
    provenance: Callable[[], dict[str, Any]],
    argv: list[str] | None = None,
) -> None:
    """The command of one recorder: record every script of `domain`, write rows and provenance.

    With `--only` some of the scripts, into another directory: to try a script, or where a program
    that another one needs is missing.
    """
    parser = argparse.ArgumentParser(description=f"Record the bundled {domain} trajectories.")
    parser.add_argument("--output", type=Path, default=MINI, help="directory to write to (%(default)s)")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="these scripts alone; needs --output")
    options = parser.parse_args(argv)
    if options.only and options.output.resolve() == MINI:
        parser.error("--only would drop rows of the bundled data: give another --output")
    scripts = {script["name"]: script for script in load_scripts(domain)}
    if unknown := set(options.only or ()) - set(scripts):
        parser.error(f"no scripts {', '.join(sorted(unknown))}; there are {', '.join(scripts)}")
    trajectories = [record(scripts[name]) for name in options.only or scripts]
    path = write_rows(options.output, domain, trajectories)
    texts = {"trajectories": [trajectory.name for trajectory in trajectories]}
    write_provenance(options.output, domain, {**provenance(), **texts})
    count = sum(len(sampled_turns(len(trajectory.turns))) for trajectory in trajectories)
    print(f"{path}: {count} rows of {len(trajectories)} trajectories")
