"""What a file of another program looks like, so that a refusal can name it and say what to do.

In: a path. Out: what it is ("a SWE-agent trajectory"), or nothing for rows of our own and for anything
unknown. Read are the first 64 KB, whatever the size; nothing is unpacked, unpickled, run or followed. Packed
files are known by their first bytes, JSON by the keys that occur there: a guess, which only ever stands
behind the reason why a file was refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

HEAD: Final = 64 * 1024
"""Bytes that are looked at."""
_UNPACK: Final = "unpack it first"
_EXPORT: Final = "it is never opened here; write its texts out with the program that made it"
PACKED: Final = (
    (b"\x1f\x8b", "gzip data", _UNPACK),
    (b"PK\x03\x04", "a zip archive (an .eval log, say)", _UNPACK),
    (b"PK\x05\x06", "an empty zip archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "Zstandard data", _UNPACK),
    (b"BZh", "bzip2 data", _UNPACK),
    (b"\xfd7zXZ", "xz data", _UNPACK),
    *((b"\x80" + bytes([version]), "a Python pickle", _EXPORT) for version in (2, 3, 4, 5)),
    (b"PAR1", "a Parquet file", "write its rows as JSON Lines"),
    (b"SQLite format 3\0", "an SQLite file", _EXPORT),
)
"""How files begin that hold no lines of text, what they are, and what to do."""
SHAPES: Final[tuple[tuple[str, frozenset[str]], ...]] = tuple(
    (name, frozenset(keys.split()))
    for name, keys in (
        ("a mini-swe-agent trajectory", "trajectory_format messages"),
        ("a SWE-agent trajectory", "trajectory action observation"),
        ("an ATIF trajectory (Harbor, Terminal-Bench)", "schema_version session_id steps step_id"),
        ("results of tau2-bench", "simulations messages"),
        ("results of tau-bench", "task_id traj"),
        ("a log of inspect in JSON", "eval samples"),
        ("results of OpenHands", "instance_id history"),
        ("events of the OpenHands SDK", "kind source action_id"),
        ("events of the OpenHands SDK", "kind source llm_message"),
        ("events of OpenHands", "source action observation cause"),
        ("events of OpenHands", "source action args"),
        ("a Codex session", "timestamp type payload"),
        ("a Claude Code session", "sessionId uuid type"),
        ("a log of MCP messages", "jsonrpc"),
        ("steps of OSWorld", "step_num action_timestamp"),
        ("an AndroidWorld episode", "episode_data task_template"),
        ("a WebArena task", "task_id intent start_url"),
        ("a terminal recording of asciinema", "version width height"),
        ("a terminal recording of asciinema", "version term cols"),
        ("a terminal recording of asciinema", "version stdout duration"),
        ("a chat log with tool results (Anthropic's form)", "messages role tool_use_id"),
        ("a chat log with tool calls (OpenAI's form)", "messages role tool_calls"),
        ("a chat log", "messages role content"),
    )
)
"""Keys that occur together in the JSON of a program; the first line that fits names it."""
OURS: Final = frozenset({"current_prompt", "system_str", "turn_idx", "total_turns"})
NO_IMPORT: Final = "trajectories of other programs are not imported; docs/data.md says what a row holds, and a row is made from each turn"
_KEY: Final = re.compile(rb'"(\w{1,40})"\s*:')


def packed(begin: bytes) -> str | None:
    """`KIND; ADVICE` for a file with these first bytes, where it holds no lines of text."""
    return next((f"{kind}; {advice}" for head, kind, advice in PACKED if begin.startswith(head)), None)


def program_of(path: Path) -> str | None:
    """What a text file of another program is. Never raises: a file that cannot be read is unknown."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return None
    if head.lstrip()[:1] == b"<":
        return "a page of HTML or XML"
    keys = {key.decode() for key in _KEY.findall(head)}
    if len(keys & OURS) > 1:
        return None
    return next((name for name, needed in SHAPES if needed <= keys), None)


def hint(path: Path) -> str:
    """`; it looks like …` for the end of a refusal, or the empty string."""
    program = program_of(path)
    return f"; it looks like {program}: {NO_IMPORT}" if program else ""


def described(path: Path) -> str:
    """What a file is that was named in place of a folder of data: `; this is …`, or the empty string."""
    try:
        with path.open("rb") as file:
            begin = file.read(16)
    except OSError:
        return ""
    kind = packed(begin)
    return f"; this is {kind}" if kind else hint(path)
