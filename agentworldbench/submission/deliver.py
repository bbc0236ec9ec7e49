"""Where a bundle goes: what every target can tell before and do after the submitter has agreed, and the plainest one, a file.

In: a prepared bundle. Out: lines that say what was made. A target is made from the command line's words alone, checks
what can be checked before any work, and touches nothing until `deliver`.
"""

from __future__ import annotations

import filecmp
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from agentworldbench.errors import ConfigError
from agentworldbench.leaderboard.provenance import HTTP_URL
from agentworldbench.render.table import unseen
from agentworldbench.submission.pack import Prepared, write_zip
from agentworldbench.submission.secret_scan import secrets_in
from agentworldbench.texts import count_text


class Target(Protocol):
    """A place that a bundle is handed to."""

    @property
    def leaves(self) -> bool:
        """Whether something leaves this machine: then nothing happens unless a person has agreed."""

    def check(self) -> None:
        """What can be found wrong before any work. Raises ConfigError."""

    def told(self, prepared: Prepared) -> list[str]:
        """What would be written and where to. Raises DataError or ConfigError where the bundle is not fit for it."""

    def deliver(self, prepared: Prepared) -> list[str]:
        """Do it; lines on what was made."""


@dataclass(frozen=True)
class FileTarget:
    """A zip file on this machine."""

    path: Path

    @property
    def leaves(self) -> bool:
        """A file stays here."""
        return False

    def check(self) -> None:
        """Refuse a path that cannot be a file."""
        if self.path.is_dir():
            raise ConfigError(f"--output {self.path}: is a directory; name the file to write")

    def told(self, prepared: Prepared) -> list[str]:
        """The file."""
        return [f"Goes to the file {self.path}."]

    def deliver(self, prepared: Prepared) -> list[str]:
        """Write the file; one with other contents stays. Raises ConfigError then."""
        write_file(prepared.folder, self.path)
        return [f"{self.path}: {count_text(self.path.stat().st_size, 'byte')}, bundle {prepared.sha256}"]


def write_file(folder: Path, path: Path) -> None:
    """Pack a bundle's folder into `path`. Raises ConfigError when it exists with other contents."""
    with tempfile.TemporaryDirectory(prefix="awb-submit-") as scratch:
        made = Path(scratch) / "bundle.zip"
        if path.exists():
            write_zip(folder, made)
            if not filecmp.cmp(made, path, shallow=False):
                raise ConfigError(f"{path}: exists with other contents; remove it or choose another --output")
            return
    write_zip(folder, path)


def check_words(flag: str, text: str | None, longest: int = 200) -> None:
    """Refuse what cannot be shown to others as it stands: nothing, too much, or characters that nobody sees. Raises
    ConfigError."""
    if text is None:
        return
    if not 1 <= len(text.strip()) <= longest:
        raise ConfigError(f"{flag}: expected 1 to {count_text(longest, 'character')}")
    if char := unseen(text):
        raise ConfigError(f"{flag}: holds {char}, which is not shown as it stands; leave it out")


def check_address(flag: str, url: str | None) -> None:
    """Refuse an address that may not be public as it stands. Raises ConfigError."""
    if url is None:
        return
    parts = urlsplit(url) if re.fullmatch(HTTP_URL, url) else None
    if parts is None or not parts.hostname or unseen(url):
        raise ConfigError(f"{flag} {url}: expected an address beginning with https:// or http://")
    if "@" in parts.netloc or any(True for _ in secrets_in(url)):
        raise ConfigError(f"{flag}: the address holds a user name, password or key; it would be public")
