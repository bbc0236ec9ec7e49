"""When a journal is forced to the disk: once a second, behind the back of who writes, and at its end."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import wait
from pathlib import Path

import pytest

from agentworldbench import journal as journal_module
from agentworldbench.errors import StoreError
from agentworldbench.journal import Journal
from agentworldbench.records import Prediction


def prediction(name: str = "swe/1/1") -> Prediction:
    return Prediction(sample_id=name, row_hash="r")


def journal(path: Path) -> Journal[Prediction]:
    return Journal(path / "predictions.jsonl", Prediction)


def test_a_slow_disk_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forced to the disk once a second is forced in a thread; closing waits for it."""
    begun, go_on, synced = threading.Event(), threading.Event(), list[int]()

    def slow(number: int) -> None:
        begun.set()
        assert go_on.wait(20)
        synced.append(number)

    monkeypatch.setattr(journal_module.os, "fsync", slow)
    made = journal(tmp_path)
    made.append(prediction())
    assert begun.wait(20)
    made.append(prediction("swe/2/1"))
    assert (len(made), synced) == (2, [])
    assert len(journal(tmp_path)) == 2  # written and flushed all the same
    go_on.set()
    made.close()
    assert len(synced) == 2  # the one that was begun, and that of closing


@pytest.mark.parametrize("closing", [False, True])
def test_a_disk_that_loses_what_was_written_is_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closing: bool
) -> None:
    def fails(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(journal_module.os, "fsync", fails)
    made = journal(tmp_path)
    made.append(prediction())
    assert made._syncing is not None
    wait([made._syncing], timeout=20)
    with pytest.raises(StoreError, match="Input/output error"):
        made.close() if closing else made.append(prediction("swe/2/1"))
    monkeypatch.undo()
    made.append(prediction("swe/3/1"))
    made.close()
    assert [record.sample_id for record in journal(tmp_path)][-1] == "swe/3/1"
