"""Rows of the official layout to samples: one checking pass makes an index, rows are read when due.

In: `{domain: path}` of JSONL files whose rows have the official eight fields. Out: a `Dataset` of
`SampleRef`s (ids, hashes, trajectories, file offsets) that reads a row's text again on demand, so
that the 402 MB set never stands in memory. Lines are split on `\\n` alone (texts hold U+2028), read
as UTF-8, and every row is checked: a message carries file:line.

Trajectories [benchmark layout]: row A continues into row B when their system text is equal and all
turn texts and responses of A are a prefix of B's. With running hashes h_0 = H(domain, system),
h_k = H(h_{k-1}, turn text k, response k), rows whose chain passes through another row's end belong
together. Turn texts are `prompt[i]` before the last turn and `current_prompt` for the last, because
the last prompt ends in the instruction suffix.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, StrictStr, ValidationError
from pydantic_core import from_json

from agentworldbench.errors import DataError
from agentworldbench.foreign import hint, packed
from agentworldbench.records import RowId, Sample, SampleRef
from agentworldbench.task import Task
from agentworldbench.texts import count_text, scrub

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

Stamp: TypeAlias = tuple[int, ...]
"""Device, inode, size, and the times in nanoseconds at which a file was last written and replaced."""
SETTLED: Final = 2.0
"""Seconds after which another change of a file cannot have the same times: clocks of file systems are coarse."""


def _whole(value: Any) -> Any:
    """Turn numbers may be written 3, 3.0 or "3"; booleans and anything else are refused."""
    if isinstance(value, bool):
        raise ValueError("expected a whole number")
    return value


def row_id(value: Any) -> Any:
    """An id as it stands in a file: 1 and "1" differ. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("expected an integer or a string")
    return value


class Row(BaseModel):
    """One line of a data file; further fields are allowed and ignored."""

    model_config = ConfigDict(extra="ignore")

    task: StrictStr
    id: Annotated[RowId, PlainValidator(row_id)]
    prompt: list[StrictStr]
    response: list[StrictStr]
    current_prompt: StrictStr
    system_str: StrictStr
    turn_idx: Annotated[int, BeforeValidator(_whole), Field(ge=1)]
    total_turns: Annotated[int, BeforeValidator(_whole), Field(ge=1)]

    def turn_texts(self) -> list[str]:
        """Texts of turns 1..turn_idx without the instruction suffix of the last."""
        last = self.turn_idx - 1
        return [*self.prompt[:last], self.current_prompt or self.prompt[last]]


@dataclass(frozen=True)
class DataFile:
    """One domain's file: where it lies, the SHA-256 of its bytes, how many rows it holds.

    `stamp` tells this version of it from any later one; None where it was changed too short a time before.
    """

    path: Path
    sha256: str
    rows: int
    stamp: Stamp | None = None


@dataclass(frozen=True)
class Dataset:
    """All samples of the chosen domains, in file order, domains in the order of the tasks."""

    files: Mapping[str, DataFile]
    refs: tuple[SampleRef, ...]

    def load(self, ref: SampleRef) -> Sample:
        """Read the row of `ref` again and return it whole.

        Raises DataError when the file has changed or gone since it was indexed.
        """
        row, _ = parse_row(self.raw(ref), self.files[ref.domain].path, ref.line)
        return Sample(
            ref=ref,
            system=row.system_str,
            prompts=tuple(row.prompt[: row.turn_idx]),
            responses=tuple(row.response[: row.turn_idx]),
            action=row.turn_texts()[-1],
        )

    def raw(self, ref: SampleRef) -> bytes:
        """The line of `ref` as it stands in its file, without its end. Raises DataError as `load` does."""
        path, stamp = self.files[ref.domain].path, self.files[ref.domain].stamp
        try:
            with path.open("rb", buffering=0) as file:
                unchanged = stamp is not None and stamp == _stamp(os.fstat(file.fileno()))
                raw = os.pread(file.fileno(), ref.length, ref.offset)
        except OSError as problem:
            raise DataError(f"{path}:{ref.line}: cannot be read ({problem.strerror})") from problem
        if unchanged and len(raw) == ref.length:
            return raw  # to hash it again takes as long as to read it from JSON
        if hashlib.sha256(raw).hexdigest() != ref.row_hash:
            raise DataError(f"{path}:{ref.line}: the file changed while it was in use")
        return raw


def open_dataset(files: Mapping[str, Path], tasks: Mapping[str, Task]) -> Dataset:
    """Index the files of `tasks` in one pass. Raises DataError with file:line for a malformed row."""
    refs: list[SampleRef] = []
    indexed: dict[str, DataFile] = {}
    for domain, task in tasks.items():
        data_file, domain_refs = _index_file(files[domain], task)
        indexed[domain] = data_file
        refs.extend(domain_refs)
    return Dataset(files=indexed, refs=tuple(refs))


def sample_id(domain: str, row_id: RowId, turn_idx: int, ordinal: int = 1) -> str:
    """`<domain>/<id>/<turn_idx>`, with `#2`, `#3` for the second and third row of the same triple.

    Type-preserving: the string "1" is written with its quotes, the number 1 without, and so is
    every string that is not plain letters, digits, `_`, `.` and `-`.
    """
    if isinstance(row_id, str):
        plain = row_id.isascii() and row_id.replace("_", "a").replace(".", "a").replace("-", "a").isalnum()
        number = row_id.removeprefix("-").isdigit()
        row_id = row_id if plain and not number else json.dumps(row_id, ensure_ascii=False)
    return f"{domain}/{row_id}/{turn_idx}" + (f"#{ordinal}" if ordinal > 1 else "")


def lines_of(path: Path, whole: Hash | None = None) -> Iterator[tuple[int, int, bytes]]:
    """(line number, byte offset, line without its end) of every line that is not blank.

    `whole` is fed every byte of the file on the way.
    """
    offset = 0
    with path.open("rb") as file:
        if kind := packed(file.peek(16)):  # before a line is looked for, which may be as long as the file
            raise DataError(f"{path}:1: this is {kind}")
        for number, line in enumerate(file, start=1):
            if whole is not None:
                whole.update(line)
            body = line.rstrip(b"\r\n")
            if number == 1 and body.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
                raise DataError(f"{path}:1: this is a JSON array; write one object a line (JSON Lines)")
            if body.strip():
                yield number, offset, body
            offset += len(line)


def _index_file(path: Path, task: Task) -> tuple[DataFile, list[SampleRef]]:
    whole = hashlib.sha256()
    chains: list[list[bytes]] = []
    drafts: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    try:
        before = path.stat()
        settled = time.time_ns() - max(before.st_mtime_ns, before.st_ctime_ns) > SETTLED * 1e9
        for number, offset, raw in lines_of(path, whole):
            row, flags = parse_row(raw, path, number)
            check_row(row, task, path, number)
            base = sample_id(task.domain, row.id, row.turn_idx)
            seen[base] = seen.get(base, 0) + 1
            chains.append(_chain(task.domain, row))
            drafts.append(
                {
                    "id": sample_id(task.domain, row.id, row.turn_idx, seen[base]),
                    "domain": task.domain,
                    "row_id": row.id,
                    "turn_idx": row.turn_idx,
                    "total_turns": row.total_turns,
                    "task_key": _task_key(row, task),
                    "row_hash": hashlib.sha256(raw).hexdigest(),
                    "line": number,
                    "offset": offset,
                    "length": len(raw),
                    "context_chars": _context_chars(row),
                    "flags": flags,
                }
            )
        stamp = _stamp(before) if settled and _stamp(before) == _stamp(path.stat()) else None
    except DataError as problem:
        raise DataError(f"{problem}{'' if drafts else hint(path)}") from None
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from problem
    if not drafts:
        raise DataError(f"{path}: holds no rows")
    refs = [SampleRef(**draft, cluster=name) for draft, name in zip(drafts, _clusters(chains), strict=True)]
    return DataFile(path=path, sha256=whole.hexdigest(), rows=len(refs), stamp=stamp), refs


def _stamp(told: os.stat_result) -> Stamp:
    """Which file it is, how long, and when it was last written or replaced."""
    return told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns


def parse_row(raw: bytes, path: Path, line: int) -> tuple[Row, tuple[str, ...]]:
    """The row that a line holds, and flags of what had to be mended. Raises DataError with file:line and field."""
    flags: tuple[str, ...] = ()
    try:
        value = from_json(raw, cache_strings=False)
    except ValueError:  # damaged, or with a byte order mark or lone surrogates, which this parser refuses too
        value, flags = _parse_odd(raw, path, line)
    if not isinstance(value, dict):
        raise DataError(f"{path}:{line}: expected a JSON object, got {type(value).__name__}")
    try:
        return Row.model_validate(value), flags
    except ValidationError as problem:
        detail = problem.errors()[0]
        field = ".".join(str(part) for part in detail["loc"] if part not in ("int", "str"))
        message = "is missing" if detail["type"] == "missing" else detail["msg"].removeprefix("Value error, ")
        raise DataError(f"{path}:{line}: field '{field}': {message}") from None


def _parse_odd(raw: bytes, path: Path, line: int) -> tuple[Any, tuple[str, ...]]:
    """The value of a line that is no plain JSON, mended where it can be, and flags of that."""
    try:
        text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
        value = json.loads(text)
    except UnicodeDecodeError as problem:
        raise DataError(f"{path}:{line}: not UTF-8 ({problem.reason} at byte {problem.start})") from None
    except (ValueError, RecursionError) as problem:
        raise DataError(f"{path}:{line}: not a JSON object on one line ({problem}): {text[:60]!r}") from None
    clean = _scrubbed(value)
    return clean, ("lone_surrogates_replaced",) if clean != value else ()


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items()}
    return value


def check_row(row: Row, task: Task, path: Path, line: int) -> None:
    """What the types do not say. Raises DataError with file:line and field."""
    domain = row.task.rpartition("/")[2]
    if domain != task.domain:
        raise DataError(
            f"{path}:{line}: field 'task' says '{row.task}', but this is the file of '{task.domain}'"
        )
    for name, turns in (("prompt", row.prompt), ("response", row.response)):
        if len(turns) < row.turn_idx:
            raise DataError(
                f"{path}:{line}: field '{name}' has {count_text(len(turns), 'turn')}, turn_idx is {row.turn_idx}"
            )
    if row.total_turns < row.turn_idx:
        raise DataError(f"{path}:{line}: turn_idx {row.turn_idx} is above total_turns {row.total_turns}")
    if not row.turn_texts()[-1].strip():
        raise DataError(
            f"{path}:{line}: the current turn has no text (current_prompt and last prompt are empty)"
        )


def _hash(*parts: bytes) -> bytes:
    """16 bytes of BLAKE2b over length-prefixed parts, so that no two splits collide."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def _chain(domain: str, row: Row) -> list[bytes]:
    """h_1..h_n of a row; the last is its end."""
    state = _hash(domain.encode(), row.system_str.encode())
    chain = []
    for text, response in zip(row.turn_texts(), row.response, strict=False):
        state = _hash(state, text.encode(), response.encode())
        chain.append(state)
    return chain


def _clusters(chains: list[list[bytes]]) -> list[str]:
    """Name of each row's trajectory: union of rows whose chain passes through another row's end.

    The name is the end hash of the trajectory's shortest row, so it does not depend on file order.
    """
    by_end: dict[bytes, int] = {}
    parent = list(range(len(chains)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for index, chain in enumerate(chains):
        parent[index] = root(by_end.setdefault(chain[-1], index))
    for index, chain in enumerate(chains):
        for state in chain:
            if state in by_end:
                parent[root(by_end[state])] = root(index)
    names: dict[int, tuple[int, str]] = {}
    for index, chain in enumerate(chains):
        candidate = (len(chain), chain[-1].hex())
        top = root(index)
        names[top] = min(names.get(top, candidate), candidate)
    return [names[root(index)][1] for index in range(len(chains))]


def _task_key(row: Row, task: Task) -> str:
    """H(system text, task instruction): trajectories of one source task are dependent too."""
    first = row.turn_texts()[0]
    _, found, rest = first.partition(task.markers.instruction)
    instruction = rest if found else ""
    for marker in (*task.markers.state, task.markers.action):
        instruction = instruction.partition(marker)[0]
    return _hash(row.system_str.encode(), instruction.strip().encode()).hex()


def _context_chars(row: Row) -> int:
    """Characters of the prompt: system, all turns, and the responses before the last."""
    turns = row.prompt[: row.turn_idx]
    return len(row.system_str) + sum(map(len, turns)) + sum(map(len, row.response[: row.turn_idx - 1]))
