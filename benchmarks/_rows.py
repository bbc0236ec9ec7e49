"""Folders in the official layout with prompts of a wanted size, and one as large as the official data.

`prompts_of(path, rows, chars)` writes rows whose messages hold `chars` characters each, every one a
trajectory and a task of its own, so that nothing has to wait for anything. `full_size(path)` writes 2,170 rows
with the published number of rows, turns and tokens of each domain, 402 MB in all; sizes within a domain
differ as turns do. All text is our own.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.prefix_rows import SHAPES
from tests.helpers.observation_texts import action, observation, words
from tests.helpers.official_folder import DOMAINS, MARKER, SUFFIX, make_official_folder

BYTES: Final = 402_000_000
"""The official files together."""
ROWS_EACH: Final = 5
"""Rows of a trajectory."""
TURN_CHARS: Final = 6_000
"""Characters of one turn in a long prompt."""


def prompts_of(path: Path, rows: int, chars: int) -> None:
    """Write `rows` rows with prompts of `chars` characters, spread over the seven domains."""
    path.mkdir(parents=True)
    for number, domain in enumerate(DOMAINS):
        with (path / f"{domain}_test.jsonl").open("w", encoding="utf-8") as file:
            for index in range(number, rows, len(DOMAINS)):
                file.write(json.dumps(_row(domain, index, chars), ensure_ascii=False) + "\n")


def _row(domain: str, index: int, chars: int) -> dict[str, object]:
    rng = Random(f"{domain}/{index}/{chars}")
    system = f"You are environment {index} of {domain}. You answer actions with observations."
    turns = max(1, chars // TURN_CHARS)
    prompts = [
        f"### Turn {n + 1}\n\n**Action:**\n```\n{action(domain, rng, n + 1)}\n```" for n in range(turns)
    ]
    prompts[0] = f"**Task Instruction:**\nFind {words(rng, 5)}, number {index}.\n\n{prompts[0]}"
    room = chars - len(system) - sum(map(len, prompts)) - len(SUFFIX)
    responses = list[str]()
    for n in range(turns - 1):
        size = room // (turns - 1 - n)
        responses.append(f"{MARKER}\n{observation(domain, rng, n + 1, size)}"[:size])
        room -= len(responses[-1])
    system += " " + (words(rng, room // 4 + 1)[: room - 1] if room > 1 else "")
    responses.append(f"{MARKER}\n{observation(domain, rng, turns, 600)}")
    return {
        "task": domain,
        "id": 10**14 + index,
        "prompt": [*prompts[:-1], prompts[-1] + SUFFIX],
        "response": responses,
        "current_prompt": prompts[-1],
        "system_str": system,
        "turn_idx": turns,
        "total_turns": turns,
    }


def full_size(path: Path, share: float = 1.0) -> int:
    """Write a folder of the size of the official data, or a share of its rows; returns how many rows."""
    tokens = sum(rows * mean for rows, mean, _ in SHAPES.values())
    written = 0
    for domain, (published, mean, mean_turns) in SHAPES.items():
        rows = max(ROWS_EACH, round(published * share))
        turns = round(mean_turns)
        wanted = BYTES * mean / tokens  # bytes of a row
        few, many = 200, round(wanted / turns)
        low, high = (_domain(path, domain, rows, turns, chars) for chars in (few, many))
        slope = (high - low) / (many - few)  # texts have frames, and some domains repeat them
        _domain(path, domain, rows, turns, max(50, round(many + (wanted * rows - high) / slope)))
        written += rows
    return written


def _domain(path: Path, domain: str, rows: int, turns: int, chars: int) -> int:
    """Write a domain's file; returns its bytes."""
    make_official_folder(
        path,
        domains=[domain],
        trajectories=-(-rows // ROWS_EACH),
        turns=turns,
        observation_chars=chars,
        special=False,
    )
    file = path / f"{domain}_test.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)[:rows]
    file.write_bytes(b"".join(lines))
    return file.stat().st_size
