"""The folder of a report: made inside itself, and exchanged when it is whole.

In: where a report shall stand. Out: a new folder to write into; afterwards what was made stands in place of what was there
before. A folder with foreign files is refused, and whatever stops the making leaves an older report as it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agentworldbench.errors import ConfigError, StoreError

MANIFEST: Final = "report.json"
_MAKING: Final = ".making-"
"""How the name of a folder begins in which a report is made."""


@contextmanager
def replaced(output: Path) -> Iterator[Path]:
    """Give a folder to write into; without an error its files, `MANIFEST` among them, take the place of those in `output`.

    Raises ConfigError where `output` holds files and no report, StoreError where the disk refuses.
    """
    _check(output)
    missing = [one for one in (output, *output.parents) if not one.exists()]
    making = output / f"{_MAKING}{os.getpid()}"
    try:
        making.mkdir(parents=True)
        yield making
        _put_in_place(making, output)
    except OSError as problem:
        raise StoreError(f"{problem.filename or output}: cannot be written ({problem.strerror})") from problem
    finally:
        shutil.rmtree(making, ignore_errors=True)
        with suppress(OSError):
            for folder in missing:
                folder.rmdir()  # empty: it was made for a report that did not come about


def _check(output: Path) -> None:
    """Refuse a folder that holds anything but a report, or what is left of one."""
    if output.exists() and not output.is_dir():
        raise ConfigError(f"--output {output}: is a file; name a folder")
    if not output.is_dir() or (output / MANIFEST).is_file():
        return
    if any(not one.name.startswith(_MAKING) for one in output.iterdir()):
        raise ConfigError(
            f"--output {output}: holds files but no report; name an empty folder or an older report"
        )


def _put_in_place(making: Path, output: Path) -> None:
    """Exchange what is in the folder, which may be a mounted one that cannot be exchanged itself.

    The old manifest stays until the new one takes its place, first of all: whatever stops this, the folder is known to be
    a report.
    """
    for old in list(output.iterdir()):
        if old.is_dir() and not old.is_symlink():
            if old != making:
                shutil.rmtree(old)
        elif old.name != MANIFEST:
            old.unlink()
    for new in sorted(making.iterdir(), key=lambda one: one.name != MANIFEST):
        new.replace(output / new.name)
