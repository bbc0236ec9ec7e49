"""Tests of the cache's file alone: what goes in comes out, whatever other processes and broken disks do.

The file must keep the rollback journal (WAL does not work on network file systems), lose nothing that
was stored under many writers, and never stop a run: damage is set aside and told of.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench import response_cache
from agentworldbench.errors import ConfigError
from agentworldbench.records import Completion, Usage
from agentworldbench.response_cache import FORMAT, NAME, CachedAnswer, ResponseCache

WRITER = """
import asyncio, sys
from pathlib import Path
from agentworldbench.response_cache import ResponseCache
from tests.test_response_cache import answer

async def main(folder, me):
    told = []
    cache = ResponseCache(Path(folder), told.append)
    await cache.open()
    stored = await asyncio.gather(*(cache.keep(f"{n % 60:064x}", answer(f"{me}-{n}")) for n in range(int(me), 120)))
    await cache.close()
    assert not told, told
    print(sum(stored))

asyncio.run(main(*sys.argv[1:]))
"""


def answer(draw: str, text: str = "an answer", **fields: Any) -> CachedAnswer:
    """What a model said, told apart by its draw."""
    completion = Completion(text=text, finish_reason="stop", **fields)
    return CachedAnswer(draw=draw, asked_at="2026-01-01T00:00:00Z", seconds=1.5, completion=completion)


def key(number: int) -> str:
    return f"{number:064x}"


def with_cache(
    folder: Path, work: Callable[[ResponseCache], Coroutine[Any, Any, Any]], told: list[str] | None = None
) -> Any:
    """What `work` returns on an open cache; without `told` nothing may be told."""
    lines: list[str] = [] if told is None else told

    async def run() -> Any:
        cache = ResponseCache(folder, lines.append)
        await cache.open()
        try:
            return await asyncio.wait_for(work(cache), 60)
        finally:
            await cache.close()

    found = asyncio.run(run())
    assert told is not None or not lines, lines
    return found


def stored(folder: Path, number: int = 1, told: list[str] | None = None) -> CachedAnswer | None:
    found = with_cache(folder, lambda cache: cache.find(key(number)), told)
    assert found is None or isinstance(found, CachedAnswer)
    return found


def store(folder: Path, number: int, one: CachedAnswer, **more: Any) -> bool:
    return bool(with_cache(folder, lambda cache: cache.keep(key(number), one, **more)))


@given(
    text=st.text(),
    reasoning=st.none() | st.text(),
    cost=st.none() | st.floats(0, 9),
    tokens=st.none() | st.integers(0, 10**9),
)
def test_what_is_stored_comes_back_whole(
    text: str, reasoning: str | None, cost: float | None, tokens: int | None, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    usage = Usage(prompt_tokens=tokens, reasoning_tokens=tokens)
    one = answer("d", text, reasoning=reasoning, cost_usd=cost, usage=usage, model_served="served")
    assert stored(folder) is None
    assert store(folder, 1, one)
    assert stored(folder) == one
    assert stored(folder, 2) is None


def test_the_first_answer_stays_unless_it_is_replaced(tmp_path: Path) -> None:
    assert store(tmp_path, 1, answer("first"))
    assert not store(tmp_path, 1, answer("second"))
    assert stored(tmp_path) == answer("first")
    assert store(tmp_path, 1, answer("third"), replace=True)
    assert stored(tmp_path) == answer("third")


def test_the_file_keeps_the_rollback_journal(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / NAME) as file:
        file.execute("PRAGMA journal_mode = WAL")
    file.close()
    store(tmp_path, 1, answer("d"))
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    with sqlite3.connect(tmp_path / NAME) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    file.close()


def test_many_processes_write_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [
        subprocess.Popen([*command, str(me)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for me in range(4)
    ]
    outs = [writer.communicate(timeout=100) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, outs
    assert sum(int(out) for out, _ in outs) == 60, "each key belongs to one writer"

    async def all_of(cache: ResponseCache) -> list[CachedAnswer | None]:
        return [await cache.find(key(number)) for number in range(60)]

    found = with_cache(tmp_path, all_of)
    assert all(one is not None for one in found)
    assert len({one.draw for one in found}) == 60


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no database": lambda data: b"{}\n" * 3000,
    "header gone": lambda data: b"\x00" * 100 + data[100:],
    "pages overwritten": lambda data: data[:100] + b"\xff" * (len(data) - 100),
    "of another program": lambda data: other_database(),
}


def other_database() -> bytes:
    file = sqlite3.connect(":memory:")
    file.execute("CREATE TABLE theirs (x)")
    data = file.serialize()
    file.close()
    return data


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_set_aside_and_told_of(tmp_path: Path, name: str) -> None:
    store(tmp_path, 1, answer("before", "x" * 5000))
    file = tmp_path / NAME
    broken = DAMAGE[name](file.read_bytes())
    file.write_bytes(broken)
    told: list[str] = []
    assert stored(tmp_path, told=told) is None
    aside = [path for path in tmp_path.iterdir() if ".damaged-" in path.name]
    assert [path.read_bytes() for path in aside] == [broken]
    assert len(told) == 1, told
    assert "set aside as" in told[0]
    assert aside[0].name in told[0]
    assert store(tmp_path, 1, answer("after"))
    assert stored(tmp_path) == answer("after")


def test_a_file_of_another_format_is_set_aside_whole_and_both_formats_are_told(tmp_path: Path) -> None:
    store(tmp_path, 1, answer("theirs"))
    file = sqlite3.connect(tmp_path / NAME)
    file.execute(f"PRAGMA user_version = {FORMAT + 6}")
    file.close()
    theirs = (tmp_path / NAME).read_bytes()
    told: list[str] = []
    assert stored(tmp_path, told=told) is None
    (aside,) = (path for path in tmp_path.iterdir() if f".format-{FORMAT + 6}-" in path.name)
    assert aside.read_bytes() == theirs
    (line,) = told
    assert f"it has format {FORMAT + 6}, this version reads and writes {FORMAT}" in line
    assert f"set aside as {aside.name}, and a new one begun" in line
    assert "damaged" not in line
    assert store(tmp_path, 1, answer("ours"))


def test_damage_while_it_is_open_does_not_reach_the_run(tmp_path: Path) -> None:
    told: list[str] = []

    async def work(cache: ResponseCache) -> bool:
        await cache.keep(key(1), answer("before"))
        data = (tmp_path / NAME).read_bytes()
        (tmp_path / NAME).write_bytes(b"\xfe" * len(data))
        assert await cache.find(key(1)) is None
        return await cache.keep(key(2), answer("after"))

    assert with_cache(tmp_path, work, told)
    assert stored(tmp_path, 2) == answer("after")
    assert len(told) == 1


def test_a_flipped_bit_in_an_entry_is_no_answer(tmp_path: Path) -> None:
    text = "an observation"
    store(tmp_path, 1, answer("d", text))
    store(tmp_path, 2, answer("e", text))
    with sqlite3.connect(tmp_path / NAME) as file:
        (body,) = file.execute("SELECT body FROM answers WHERE key = ?", (key(2),)).fetchone()
        file.execute("UPDATE answers SET body = ? WHERE key = ?", (body, key(1)))
    file.close()
    told: list[str] = []
    assert stored(tmp_path, 1, told) is None, "an answer under another key is another answer"
    assert [line.partition(": ")[2] for line in told] == ["an entry is damaged; it is asked for again"]
    assert stored(tmp_path, 2) == answer("e", text)
    assert store(tmp_path, 1, answer("new")), "the damaged entry made room"


def test_a_lock_that_is_never_released_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_cache, "BUSY_SECONDS", 0.5)
    monkeypatch.setattr(response_cache, "LOCKED_SECONDS", 0.05)
    store(tmp_path, 1, answer("d"))
    holder = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    told: list[str] = []

    async def work(cache: ResponseCache) -> None:
        assert await cache.find(key(1)) is not None
        holder.execute("BEGIN IMMEDIATE")
        assert not await cache.keep(key(2), answer("e"))
        assert not await cache.keep(key(3), answer("f"))
        assert await cache.find(key(1)) is not None, "reading still works"

    with_cache(tmp_path, work, told)
    holder.execute("ROLLBACK")
    holder.close()
    assert len(told) == 1
    assert "the run goes on without it" in told[0]


def test_who_waits_for_a_lock_is_not_kept_from_leaving(tmp_path: Path) -> None:
    store(tmp_path, 1, answer("d"))
    holder = sqlite3.connect(tmp_path / NAME, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    asking = threading.Event()

    async def run() -> float:
        cache = ResponseCache(tmp_path, lambda line: None)
        waiting = asyncio.create_task(cache.find(key(1)))
        await asyncio.sleep(0)
        asking.set()
        begun = asyncio.get_running_loop().time()
        await cache.close()
        assert await waiting is None
        return asyncio.get_running_loop().time() - begun

    assert asyncio.run(run()) < response_cache.BUSY_SECONDS / 3
    assert asking.is_set()
    holder.close()


def test_a_place_that_cannot_hold_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / NAME).mkdir(parents=True)
    for folder, said in (("file", "cannot be used"), ("folder", "cannot be read and written")):
        with pytest.raises(ConfigError, match=rf"^--cache .*{folder}: .*{said}"):
            stored(tmp_path / folder)
