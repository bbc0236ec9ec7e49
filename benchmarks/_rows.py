"""Folders in the official layout with prompts of a wanted size, and two as large as the official data.

`prompts_of(path, rows, chars)` writes rows whose messages hold `chars` characters each, every one a
trajectory and a task of its own, so that nothing has to wait for anything. `full_size(path)` writes 2,170 rows
with the published number of rows, turns and tokens of each domain, 402 MB in all; sizes within a domain
differ as turns do. `scored_size(path)` writes as many rows and about as many bytes, but nearly half of a row is
system text, and the observations have the shapes and lengths that metrics read. All text is our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from benchmarks._observations import keys, screens
from benchmarks.prefix_rows import GUI, SHAPES, SYSTEM_SHARE
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


def scored_size(path: Path, share: float = 1.0) -> int:
    """Write a folder of the official size with texts for the metrics, or a share of it; returns how many rows."""
    path.mkdir(parents=True)
    tokens = sum(rows * mean for rows, mean, _ in SHAPES.values())
    written = 0
    for domain, (published, mean, mean_turns) in SHAPES.items():
        rows = max(ROWS_EACH, round(published * share))
        lines = list(_rows_of(domain, rows, round(mean_turns), BYTES * mean / tokens))
        Random(domain).shuffle(lines)
        (path / f"{domain}_test.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
        written += rows
    return written


def _rows_of(domain: str, rows: int, turns: int, size: float) -> Iterator[str]:
    """`rows` lines of about `size` bytes on average."""
    system = f"You are the {domain} environment. " + words(Random(domain), round(size * SYSTEM_SHARE / 6.5))
    # A row holds half of its trajectory's turns on average; a Chinese character is three bytes.
    chars = round(size * (1 - SYSTEM_SHARE) / ((turns + 1) / 2) / (1.8 if domain == "search" else 1))
    for number in range(-(-rows // ROWS_EACH)):
        rng = Random(f"{domain}/{number}")
        texts = _turns(domain, rng, turns, chars)
        sampled = sorted({1, turns, *rng.sample(range(2, turns), ROWS_EACH - 2)})
        for turn in sampled[: rows - number * ROWS_EACH]:
            prompts, responses = ([text[part] for text in texts[:turn]] for part in (0, 1))
            row = {
                "task": domain,
                "id": 10**14 + number,
                "prompt": [*prompts[:-1], prompts[-1] + SUFFIX],
                "response": responses,
                "current_prompt": prompts[-1],
                "system_str": system,
                "turn_idx": turn,
                "total_turns": turns,
            }
            yield json.dumps(row, ensure_ascii=False) + "\n"


def _turns(domain: str, rng: Random, turns: int, chars: int) -> list[tuple[str, str]]:
    """Turn texts and responses of a trajectory; a screen's first turn shows the state before it."""
    seen = screens(domain, rng, turns + 1, chars)
    found = []
    for turn in range(1, turns + 1):
        head = f"### Turn {turn}\n"
        if turn == 1:
            head += f"**Task Instruction:**\nFind {words(rng, 5)} and note it.\n\n"
            head += f"**Current State:**\n{seen[0]}\n\n" if domain in GUI else ""
        act = keys(seen[turn]) if domain == "terminal" else action(domain, rng, turn)
        text = f"{head}**Action:**\n```\n{act}\n```"
        found.append((text, f"{MARKER}\n{seen[turn]}"))
    return found
