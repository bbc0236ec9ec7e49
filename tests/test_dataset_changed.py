"""A data file that is changed while it is in use: told, however it was changed, and hashed again only then."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from agentworldbench import dataset as dataset_module
from agentworldbench.errors import DataError
from tests.test_dataset import line, terminal


@pytest.mark.parametrize("change", ["edited", "cut", "gone"])
def test_a_file_changed_under_our_feet_is_an_error(tmp_path: Path, change: str) -> None:
    data = terminal(tmp_path, line() + line(id=2))
    path = data.files["terminal"].path
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(line() + line(id=3) if change == "edited" else line())
    with pytest.raises(DataError, match=r"terminal_test\.jsonl:2: (the file changed|cannot be read)"):
        data.load(data.refs[1])


@pytest.mark.parametrize("change", ["none", "touched", "edited", "replaced"])
def test_a_file_that_was_left_alone_is_known_by_its_times(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only another version is hashed again, and one that was merely touched is the same."""
    monkeypatch.setattr(dataset_module, "SETTLED", -1e6)
    data = terminal(tmp_path, line() + line(id=2))
    monkeypatch.undo()
    file = data.files["terminal"]
    before = file.path.stat()
    if change == "edited":
        file.path.write_bytes(line() + line(id=3))
    if change == "replaced":
        (tmp_path / "new").write_bytes(line() + line(id=3))
        (tmp_path / "new").replace(file.path)
    if change != "none":
        times = (before.st_atime_ns, before.st_mtime_ns + (0 if change == "replaced" else 10**9))
        os.utime(file.path, ns=times)
    hashed: list[int] = []
    true = hashlib.sha256
    monkeypatch.setattr(hashlib, "sha256", lambda raw: hashed.append(len(raw)) or true(raw))
    if change in ("edited", "replaced"):
        with pytest.raises(DataError, match="changed while it was in use"):
            data.load(data.refs[1])
    else:
        assert data.load(data.refs[1]).ref == data.refs[1]
    assert len(hashed) == (change != "none")


def test_a_file_that_was_just_written_is_hashed_always(tmp_path: Path) -> None:
    assert terminal(tmp_path, line()).files["terminal"].stamp is None
