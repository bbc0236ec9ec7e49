"""Pulls of the look-alike prompts from a loopback repository into a cache of their own.

In: pytest's monkeypatch and a served repository. Out: `Pulls`: call it to pull; what was told, waited and
left in the cache. No setting of the machine counts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from agentworldbench.errors import DataError
from agentworldbench.network import BUNDLES
from agentworldbench.official_files import prompts_folder
from agentworldbench.pull import BASE_VARIABLE, Pulled, pull_prompts

from .awb_command import clean_environment
from .loopback_repository import LoopbackRepository, look_alike

MADE: Final = look_alike()
MCP: Final = "prompts/mcp/judge_system_prompt.txt"


@dataclass
class Pulls:
    """Pulls into a cache of its own, and what was told and waited meanwhile."""

    repository: LoopbackRepository
    folder: Path
    told: list[str]
    waits: list[float]

    def __call__(self, origin: Path | None = None) -> Pulled:
        return pull_prompts(self.told.append, MADE.manifest, origin, self.waits.append)

    def files(self) -> dict[str, bytes]:
        """All that lies in the cache folder."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }

    def asked(self, path: str = MCP) -> list[str | None]:
        """The Range headers of all requests for a file."""
        return [asked.range for asked in self.repository.asked if asked.path == path]

    def refused(self, message: str) -> str:
        """The refusal's text, after which no file lies there that could be taken for the right one."""
        with pytest.raises(DataError, match=message) as refusal:
            self()
        return str(refusal.value)


def pulls_into(cache: Path, monkeypatch: pytest.MonkeyPatch, repository: LoopbackRepository) -> Pulls:
    """Pulls that know no other place, in the folder that holds `cache`."""
    for name in {*BUNDLES, *os.environ} - (set(clean_environment()) - set(BUNDLES)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(cache.parent)
    monkeypatch.setenv("AWB_CACHE", str(cache))
    monkeypatch.setenv(BASE_VARIABLE, repository.base + "/")
    return Pulls(repository, prompts_folder(MADE.manifest), [], [])
