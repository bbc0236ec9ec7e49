"""Bundles for tests: one honest run with a scripted model and judge, and archives built entry by entry.

`make_run` evaluates on the bundled data, `make_bundle` prepares a bundle of a run, `Archive` writes a zip file whose
entries may be anything: names that lead elsewhere, links, wrong sizes, what no honest program writes.
"""

from __future__ import annotations

import stat
import struct
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentworldbench.run import evaluate
from agentworldbench.submission.manifest import Options
from agentworldbench.submission.pack import Prepared, prepare

from .scripted_calls import ChatCall
from .scripted_server import Reply, ScriptedServer
from .whole_runs import good, options

PUBLIC = Options(reasoning=False, references=True)


def thinking(call: ChatCall) -> Reply:
    """As `good`, with reasoning that comes apart from the answer."""
    reply = good(call)
    return replace(reply, reasoning_content=f"I think of {call.key[:8]}.")


def make_run(folder: Path, **more: Any) -> Path:
    """A complete run on the bundled data, judged, in `folder`."""
    with ScriptedServer(thinking) as server:
        evaluate(**options(server, folder, "mini", **{"limit": "2", **more}))
    return folder


def make_bundle(run: Path, folder: Path, choices: Options = PUBLIC, **more: Any) -> Prepared:
    """The bundle of a run in the new directory `folder`."""
    folder.mkdir(parents=True)
    return prepare(run, folder, choices, **more)


@dataclass(frozen=True)
class Entry:
    """One entry of a forged archive; `content` None takes that of the honest file of this name."""

    name: str
    content: bytes | None = None
    mode: int = 0o644
    kind: int = stat.S_IFREG
    flags: int = 0
    method: int = zipfile.ZIP_DEFLATED


def write_archive(path: Path, entries: list[Entry], honest: Path) -> Path:
    """A zip file with these entries, in this order."""
    with zipfile.ZipFile(path, "w") as archive:
        for entry in entries:
            content = (honest / entry.name).read_bytes() if entry.content is None else entry.content
            info = zipfile.ZipInfo(entry.name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (entry.kind | entry.mode) << 16
            archive.writestr(info, content)
    marks = [(entry.flags, entry.method) for entry in entries]
    _mark(path, marks)
    return path


def _mark(path: Path, marks: list[tuple[int, int]]) -> None:
    """Set flags and method of each entry in the list at the archive's end, where readers look."""
    data = bytearray(path.read_bytes())
    place = -1
    for flags, method in marks:
        place = data.index(b"PK\x01\x02", place + 1)
        struct.pack_into("<HH", data, place + 8, flags, method)
    path.write_bytes(bytes(data))
